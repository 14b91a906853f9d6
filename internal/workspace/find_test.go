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

// TestPathNotUTF8: the list of repos and the prompts would name another folder.
func TestPathNotUTF8(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r\xff")
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Skip(err) // macOS has no such names
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	con := console.New([]string{"HOME=" + t.TempDir()}, strings.NewReader(""), io.Discard, io.Discard)
	if p, err := Bare(t.Context(), con, dir); err == nil {
		t.Errorf("it is used as %q", p.Root)
	} else if !strings.Contains(err.Error(), "not UTF-8") {
		t.Error(err)
	}
}
