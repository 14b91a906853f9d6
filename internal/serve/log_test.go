//go:build unix

package serve

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/console"
)

// The daemon's lines have their priority where journald takes them, and only there.
func TestLogPriorities(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	for stream, want := range map[string]string{fmt.Sprintf("%d:%d", st.Dev, st.Ino): "<4>{", fmt.Sprintf("%d:%d", st.Dev, st.Ino+1): "{", "": "{"} {
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		log := newLogger(console.New([]string{"JOURNAL_STREAM=" + stream}, strings.NewReader(""), &bytes.Buffer{}, f), f)
		log.Warn().Msg("x")
		raw, err := os.ReadFile(f.Name())
		if err != nil || !strings.HasPrefix(string(raw), want) {
			t.Errorf("JOURNAL_STREAM=%s: %q (%v), want it to begin %q", stream, raw, err, want)
		}
	}
}
