package sandbox

import (
	"path/filepath"
	"testing"
)

// TestInside: same results as package filepath, without its cost: a launch calls it hundreds of
// times.
func TestInside(t *testing.T) {
	paths := []string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/a/", "/a//b", "/a/./b", "/a/../b", "/a/b/..", "/.a", "/a/.b", "/a/..b", "/..", "//"}
	for _, dir := range paths {
		for _, path := range paths {
			rel, err := filepath.Rel(dir, path)
			if got, want := Inside(dir, path), err == nil && filepath.IsLocal(rel); got != want {
				t.Errorf("%s in %s: %t", path, dir, got)
			}
		}
	}
	if Inside("a", "/a") || Inside("/a", "a") || Inside("", "/a") || Inside("/", "") {
		t.Error("what is not absolute lies nowhere")
	}
	for _, path := range []string{"/work/repo/.workflow/signals", "/work/rep", "/home"} {
		if n := testing.AllocsPerRun(10, func() { Inside("/work/repo", path) }); n > 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}
