package workspace

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/console"
)

// TestBrokenPageLabel: a label that was cut holds up no command, and the daemon makes another.
func TestBrokenPageLabel(t *testing.T) {
	dir := t.TempDir()
	con := console.New([]string{"HOME=" + dir, "XDG_STATE_HOME=" + dir}, strings.NewReader(""), io.Discard, io.Discard)
	home, err := Home(con)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, labelFile), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Settings(con, "", nil); err != nil || s.Web.Label != "" {
		t.Errorf("the settings with a broken label: %v", err)
	}
	label, err := PageLabel(home)
	again, err2 := PageLabel(home)
	if err != nil || err2 != nil || len(label) != 8 || again != label {
		t.Errorf("labels %q and %q: %v %v", label, again, err, err2)
	}
}
