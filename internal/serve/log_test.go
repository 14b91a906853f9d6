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

	"github.com/rs/zerolog"

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

// TestLogWithoutRoom: a log that cannot be written says nothing on the screen, which shows the run.
func TestLogWithoutRoom(t *testing.T) {
	screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("kernel: %v", err)
	}
	was := os.Stderr
	os.Stderr = screen
	log := zerolog.New(asFits{full})
	log.Info().Msg("x")
	os.Stderr = was
	if said, err := os.ReadFile(screen.Name()); err != nil || len(said) > 0 {
		t.Errorf("%q, %v", said, err)
	}
}
