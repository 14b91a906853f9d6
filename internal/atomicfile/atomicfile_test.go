package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"sluice/tools/conform"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// only fails unless dir holds just these names: a dotfile left over would be one more.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(names) {
		t.Fatalf("folder holds %q, want %q", got, names)
	}
	for i := range names {
		if got[i] != names[i] {
			t.Fatalf("folder holds %q, want %q", got, names)
		}
	}
}

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must(t, Write(path, []byte("old"), 0o600))
	must(t, Write(path, []byte("new"), 0o640))
	if got := content(t, path); got != "new" {
		t.Errorf("content %q", got)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	only(t, dir, "x")
}

func TestWriteReplacesLinkNotTarget(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	must(t, os.WriteFile(target, []byte("kept"), 0o600))
	must(t, os.Symlink(target, link))
	must(t, Write(link, []byte("new"), 0o600))
	if got := content(t, target); got != "kept" {
		t.Errorf("target is now %q", got)
	}
}

func TestWriteFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "x"), 0o700))
	if err := Write(filepath.Join(dir, "x"), []byte("new"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	only(t, dir, "x")
}

// Readers beside a writer see one of its versions whole, never a part.
func TestWriteIsAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	versions := [2][]byte{make([]byte, 70_000), make([]byte, 30_000)}
	for i := range versions {
		for j := range versions[i] {
			versions[i][j] = byte('a' + i)
		}
	}
	must(t, Write(path, versions[0], 0o600))
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			if err := Write(path, versions[i%2], 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	for range 300 {
		b, err := os.ReadFile(path)
		must(t, err)
		if s := string(b); s != string(versions[0]) && s != string(versions[1]) {
			t.Fatalf("read %d bytes of neither version", len(b))
		}
	}
	wg.Wait()
}

func TestWriteNewNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must(t, WriteNew(path, []byte("first"), 0o600))
	if err := WriteNew(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second: %v", err)
	}
	if got := content(t, path); got != "first" {
		t.Errorf("content %q", got)
	}
	must(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "y")))
	if err := WriteNew(filepath.Join(dir, "y"), []byte("z"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("dangling link: %v", err)
	}
	only(t, dir, "x", "y")
}

// Of many that write one name, one wins, and all the others are told.
func TestWriteNewHasOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	wins := make(chan string, 8)
	var wg sync.WaitGroup
	for i := range 8 {
		text := string(rune('a' + i))
		wg.Go(func() {
			switch err := WriteNew(path, []byte(text), 0o600); {
			case err == nil:
				wins <- text
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(wins)
	winner := <-wins
	if more, ok := <-wins; ok || content(t, path) != winner {
		t.Errorf("winners %q and %q", winner, more)
	}
}

func TestMove(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []string{"x-done.json", "x-done.2.json", "x-done.3.json"} {
		src := filepath.Join(dir, "in")
		must(t, os.WriteFile(src, []byte{byte('0' + i)}, 0o600))
		got, err := Move(src, filepath.Join(dir, "a", "b", "x-done.json"))
		must(t, err)
		if filepath.Base(got) != want || content(t, got) != string(rune('0'+i)) {
			t.Errorf("move %d: %s holds %q", i, got, content(t, got))
		}
	}
	only(t, dir, "a")
	if _, err := Move(filepath.Join(dir, "in"), filepath.Join(dir, "z")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing source: %v", err)
	}
}

func TestMoveNames(t *testing.T) {
	for _, c := range []struct {
		path string
		n    int
		want string
	}{
		{"/d/x", 1, "/d/x"}, {"/d/x", 2, "/d/x.2"}, {"/d/x.json", 9, "/d/x.9.json"}, {"/d/.x", 2, "/d/.x.2"}, {"/d.e/x", 2, "/d.e/x.2"},
	} {
		if got := numbered(c.path, c.n); got != c.want {
			t.Errorf("numbered(%q, %d) = %q, want %q", c.path, c.n, got, c.want)
		}
	}
}

// However many doubles there are, none is lost.
func TestMoveManyDoubles(t *testing.T) {
	conform.Rule(t, "2-files signal 5", "however many doubles, none is lost")
	dir := t.TempDir()
	seen := map[string]bool{}
	for range 200 {
		src := filepath.Join(dir, "in")
		must(t, os.WriteFile(src, nil, 0o600))
		got, err := Move(src, filepath.Join(dir, "out", "x"))
		must(t, err)
		if seen[got] {
			t.Fatalf("%s given twice", got)
		}
		seen[got] = true
	}
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	must(t, err)
	if len(entries) != 200 {
		t.Errorf("%d files of 200", len(entries))
	}
}

// The free number is found without a look at each that is taken.
func TestNextFree(t *testing.T) {
	for _, last := range []int{1, 2, 3, 7, 20_000, maxSuffix - 1, maxSuffix} {
		asked := 0
		got := nextFree(1, func(n int) bool { asked++; return n <= last })
		if got != last+1 || asked > 40 {
			t.Errorf("of %d: %d after %d looks", last, got, asked)
		}
	}
	holes := map[int]bool{1: true, 2: true, 4: true, 5: true, 6: true}
	if got := nextFree(1, func(n int) bool { return holes[n] }); got < 2 || holes[got] {
		t.Errorf("with holes: %d", got)
	}
}

// The longest names there are have no room for a number: they are cut, and what has one all the same is kept.
func TestMoveDoublesOfLongNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		strings.Repeat("n", 255), strings.Repeat("n", 250) + ".json", strings.Repeat("é", 127) + "e", "e" + strings.Repeat("é", 127),
		"." + strings.Repeat("n", 254), "n." + strings.Repeat("n", 253), strings.Repeat("\x80", 255),
	} {
		seen := map[string]bool{}
		for range 12 {
			src := filepath.Join(dir, "in")
			must(t, os.WriteFile(src, nil, 0o600))
			got, err := Move(src, filepath.Join(dir, "out", name))
			must(t, err)
			base := filepath.Base(got)
			if seen[base] || len(base) > 255 || utf8.ValidString(name) && !utf8.ValidString(base) || strings.HasSuffix(name, ".json") && !strings.HasSuffix(base, ".json") {
				t.Errorf("%.20q…: became %q", name, base)
			}
			seen[base] = true
		}
	}
}

func TestMoveTakesLinksAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("nowhere", filepath.Join(dir, "l")))
	got, err := Move(filepath.Join(dir, "l"), filepath.Join(dir, "r", "l"))
	must(t, err)
	if target, err := os.Readlink(got); err != nil || target != "nowhere" {
		t.Errorf("%q %v", target, err)
	}
}

// The rename without the system's help keeps the same promise.
func TestRenameByLink(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, os.WriteFile(a, []byte("a"), 0o600))
	must(t, renameByLink(a, b))
	must(t, os.WriteFile(a, []byte("a2"), 0o600))
	if err := renameByLink(a, b); !errors.Is(err, fs.ErrExist) {
		t.Errorf("taken name: %v", err)
	}
	if content(t, b) != "a" {
		t.Error("overwritten")
	}
	must(t, os.Mkdir(filepath.Join(dir, "f"), 0o700))
	must(t, renameByLink(filepath.Join(dir, "f"), filepath.Join(dir, "g")))
	only(t, dir, "a", "b", "g")
}

func TestCopyNew(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, os.WriteFile(a, []byte("a"), 0o640))
	must(t, copyNew(a, b, 0o640))
	if err := copyNew(a, b, 0o640); !errors.Is(err, fs.ErrExist) || content(t, b) != "a" {
		t.Errorf("taken name: %v", err)
	}
	only(t, dir, "a", "b")
}

func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("12345"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	must(t, os.Symlink("x", filepath.Join(dir, "l")))
	data, st, err := OpenRegular(dir, "x", 5)
	if err != nil || string(data) != "12345" || st.Size != 5 || st.Ino == 0 || st.Nlink != 1 || st.ModTime.IsZero() {
		t.Errorf("%q %+v %v", data, st, err)
	}
	if data, st, err := OpenRegular(dir, "x", 4); !errors.Is(err, ErrTooLarge) || data != nil || st.Size != 5 {
		t.Errorf("too large: %q %+v %v", data, st, err)
	}
	for _, name := range []string{"d", "l"} {
		if data, _, err := OpenRegular(dir, name, 5); !errors.Is(err, ErrNotRegular) || data != nil {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	if _, _, err := OpenRegular(dir, "none", 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestSame(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must(t, os.WriteFile(path, []byte("1"), 0o600))
	a, err := Lstat(dir, "x")
	must(t, err)
	must(t, os.Link(path, filepath.Join(dir, "y")))
	b, err := Lstat(dir, "x")
	must(t, err)
	if !a.Same(b) {
		t.Error("a link made to it counts")
	}
	must(t, os.WriteFile(path, []byte("12"), 0o600))
	must(t, os.Chtimes(path, a.ModTime, a.ModTime))
	if b, err = Lstat(dir, "x"); err != nil || a.Same(b) {
		t.Error("a longer file is the same")
	}
}

// Who repeats a write that fails says the same each time: the name of the temporary file is not in the error.
func TestErrorWithoutTheTemporaryName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "x")
	for name, write := range map[string]func(string, []byte, fs.FileMode) error{"Write": Write, "WriteNew": WriteNew} {
		err := write(path, nil, 0o600)
		if want := "write " + path + ": no such file or directory"; !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
