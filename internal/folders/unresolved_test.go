package folders

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/tree"
)

// TestUnresolvedOfAnySize: markers are found wherever they are in a file, and a file that cannot be read is not resolved.
func TestUnresolvedOfAnySize(t *testing.T) {
	const marked = "<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n"
	for name, c := range map[string]struct {
		text string
		left bool
	}{
		"large":           {strings.Repeat("line\n", 17<<18) + marked, true},
		"one long line":   {strings.Repeat("x", 17<<20) + "\n" + marked, true},
		"across reads":    {strings.Repeat("x", 4090) + "\n" + marked, true},
		"not at its head": {strings.Repeat("x", 4096) + "<<<<<<< a\n" + strings.Repeat("x", 4086) + ">>>>>>> b\n", false},
		"one of them":     {"<<<<<<< a\n", false},
		"empty":           {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "file.txt"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := unresolved(tree.Begin{Top: dir, Conflicts: []string{"gone.txt", "file.txt", "file.txt/below"}}); (err != nil) != c.left {
				t.Errorf("%v", err)
			}
		})
	}
	loop := t.TempDir()
	if err := os.Mkdir(filepath.Join(loop, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	var no *tree.Refused
	if err := unresolved(tree.Begin{Top: loop, Conflicts: []string{"dir/" + strings.Repeat("n", 300)}}); err == nil || errors.As(err, &no) {
		t.Errorf("a file that cannot be looked at: %v", err)
	}
}
