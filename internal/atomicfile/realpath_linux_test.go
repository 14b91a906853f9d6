package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealPath: as filepath.EvalSymlinks has it, with and without links on the way, and without a look at each part.
func TestRealPath(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	deep := filepath.Join(top, strings.Repeat("d/", 20))
	must(t, os.MkdirAll(deep, 0o755))
	must(t, os.WriteFile(filepath.Join(deep, "file"), nil, 0o644))
	for name, to := range map[string]string{"in": "d/d", "out": deep, "gone": "nowhere", "loop": "loop"} {
		must(t, os.Symlink(to, filepath.Join(top, name)))
	}
	t.Chdir(top)
	for _, path := range []string{deep, top + "/in", top + "/in/d", top + "/in/../d", top + "/d/../d//./d", top + "/out/file", top + "/gone", top + "/loop", top + "/none/d", top + "/none/../d",
		top + "/d/", top + "/in/", deep + "/file", deep + "/file/", deep + "/file/x", deep + "/file/..", "/", "/..", "", ".", "in", "d/../in/d", "/proc/self/cwd", "/dev/stdin"} {
		got, gerr := RealPath(path)
		want, werr := filepath.EvalSymlinks(path)
		if got != want || (gerr == nil) != (werr == nil) || os.IsNotExist(gerr) != os.IsNotExist(werr) {
			t.Errorf("%s is %s %v, want %s %v", path, got, gerr, want, werr)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = RealPath(filepath.Clean(deep)) }); n > 3 {
		t.Errorf("%v allocations: each part is looked at", n)
	}
}
