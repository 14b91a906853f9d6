//go:build linux

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsedIn: a name more is no room more, and a file that only looks large has little.
func TestUsedIn(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a/big"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "a/big"), filepath.Join(dir, "b/again")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b/hole"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "b/hole"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if n, err := usedIn([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "none")}); err != nil || n < 1<<20 || n > 1<<20+64<<10 {
		t.Errorf("%d bytes %v", n, err)
	}
	deep := dir
	for range 19 { // what cannot be looked into is not taken for empty
		deep = filepath.Join(deep, strings.Repeat("x", 200))
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(dir, strings.Repeat(strings.Repeat("y", 200)+"/", 3))
	if err := os.MkdirAll(top, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, strings.Repeat("x", 200)), filepath.Join(top, "deep")); err != nil {
		t.Fatal(err)
	}
	if n, err := usedIn([]string{dir}); err == nil {
		t.Errorf("%d bytes of what cannot be read", n)
	}
}
