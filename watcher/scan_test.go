package watcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"sluice/internal/atomicfile"
	"sluice/tools/conform"
)

// A file written byte by byte is given as it is at each moment, and never as unchanged while it
// grows.
func TestHalfWrittenFile(t *testing.T) {
	conform.Rule(t, "2-files signal 2", "a growing file is never given as at rest")
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	const text = `{"step":"X-1"}`
	path := filepath.Join(dir, "X-1-done.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var last Seen
	for i := range len(text) {
		if _, err := f.WriteString(text[i : i+1]); err != nil {
			t.Fatal(err)
		}
		seen := scan(t, w, dir)
		if !has(seen, "X-1-done.json", text[:i+1]) {
			t.Fatalf("after %d bytes: %+v", i+1, seen)
		}
		if seen[0].Unchanged || (i > 0 && (!seen[0].Since.After(last.Since) || !seen[0].FirstSeen.Equal(last.FirstSeen))) {
			t.Fatalf("after %d bytes: %+v, before: %+v", i+1, seen[0], last)
		}
		last = seen[0]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	seen := scan(t, w, dir)
	if !seen[0].Unchanged || !seen[0].Since.Equal(last.Since) || string(seen[0].Data) != text {
		t.Errorf("at rest: %+v", seen[0])
	}
}

// A file that comes while its folder is listed was not there before: it may be the answer to what was asked meanwhile.
func TestFileWhileListing(t *testing.T) {
	dir := newDir(t)
	asked := 0
	o := quiet().withDefaults()
	o.Now = func() time.Time {
		now := time.Now()
		if asked++; asked == 1 {
			time.Sleep(50 * time.Millisecond) // as long as a slow file system takes
			write(t, filepath.Join(dir, "x"), "1")
		}
		return now
	}
	w := &Watcher{opt: o, wake: make(chan struct{}, 1), folders: map[string]*folder{dir: {name: dir, path: dir, memory: memory{files: map[string]remembered{}}}}}
	if seen := scan(t, w, dir); len(seen) != 1 || seen[0].FirstSeen.Before(seen[0].Stat.ModTime) {
		t.Errorf("%+v", seen)
	}
}

// A file that rests is hinted at once more, so that its age is looked at when it counts.
func TestSettleHint(t *testing.T) {
	o := quiet()
	o.Settle = 50 * time.Millisecond
	dir, w := newDir(t), start(t, o)
	add(t, w, dir)
	write(t, filepath.Join(dir, "x"), "{")
	until(t, w, "the file settled", func() bool {
		seen := scan(t, w, dir)
		return len(seen) == 1 && seen[0].Unchanged && time.Since(seen[0].Since) >= o.Settle
	})
}

// All ways to write a file end in the same: its bytes are seen, woken by an event.
func TestWaysToWrite(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "however a file is written, it is seen")
	dir, w := newDir(t), start(t, quiet())
	outside := t.TempDir()
	add(t, w, dir)
	tested(t, w, dir)
	path := func(name string) string { return filepath.Join(dir, name) }
	ways := map[string]func(name string) error{
		"in place": func(n string) error { return os.WriteFile(path(n), []byte(n), 0o600) },
		"dotfile and rename": func(n string) error {
			return errors.Join(os.WriteFile(path("."+n), []byte(n), 0o600), os.Rename(path("."+n), path(n)))
		},
		"rename from outside": func(n string) error {
			return errors.Join(os.WriteFile(filepath.Join(outside, n), []byte(n), 0o600), os.Rename(filepath.Join(outside, n), path(n)))
		},
		"hard link": func(n string) error {
			return errors.Join(os.WriteFile(filepath.Join(outside, n), []byte(n), 0o600), os.Link(filepath.Join(outside, n), path(n)))
		},
		"editor": func(n string) error {
			return errors.Join(os.WriteFile(path(n), []byte("old"), 0o600), os.Rename(path(n), path("."+n+"~")),
				os.WriteFile(path("."+n+".swp"), []byte("x"), 0o600), os.WriteFile(path(n), []byte(n), 0o600))
		},
		"atomicfile": func(n string) error { return atomicfile.Write(path(n), []byte(n), 0o600) },
	}
	for name, write := range ways {
		if err := write(name); err != nil {
			t.Fatal(err)
		}
		until(t, w, name, func() bool { return has(scan(t, w, dir), name, name) })
	}
	if got := scan(t, w, dir); len(got) != len(ways) {
		t.Errorf("%d files, want %d: dotfiles are not read", len(got), len(ways))
	}
}

// A write by another name of the file makes no event: the look by time finds it. Its bytes count
// too, not only what stat says.
func TestWriteWithoutEvent(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "a write without an event is found by the look by time")
	o := quiet()
	o.Rescan, o.Check = 30*time.Millisecond, 30*time.Millisecond
	dir, w := newDir(t), start(t, o)
	outside := filepath.Join(t.TempDir(), "x")
	write(t, outside, "old")
	if err := os.Link(outside, filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	add(t, w, dir)
	tested(t, w, dir)
	until(t, w, "the file", func() bool { return has(scan(t, w, dir), "x", "old") })
	before := scan(t, w, dir)[0]
	write(t, outside, "new")
	if err := os.Chtimes(outside, time.Time{}, before.Stat.ModTime); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the new text", func() bool {
		seen := scan(t, w, dir)
		if has(seen, "x", "new") && seen[0].Since.Equal(before.Since) {
			t.Fatal("other bytes count as the same")
		}
		return has(seen, "x", "new")
	})
}

func TestNamesAreRaw(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	tested(t, w, dir)
	names := []string{"a\nb", "n\xff.json", "x y", "ünï"}
	for _, n := range names {
		write(t, filepath.Join(dir, n), "1")
		until(t, w, fmt.Sprintf("%q", n), func() bool { return has(scan(t, w, dir), n, "1") })
	}
}

func TestTooLarge(t *testing.T) {
	conform.Rule(t, "2-files signal 7", "what is too large is not read")
	o := quiet()
	o.MaxBytes = 10
	dir, w := newDir(t), start(t, o)
	write(t, filepath.Join(dir, "exact"), "1234567890")
	write(t, filepath.Join(dir, "over"), "12345678901")
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err == nil {
		err = errors.Join(f.Truncate(1<<30), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	add(t, w, dir)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	seen := scan(t, w, dir)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("a scan of a sparse file took %d bytes", grown)
	}
	if len(seen) != 3 || seen[0].Err != nil || !errors.Is(seen[1].Err, atomicfile.ErrTooLarge) || !errors.Is(seen[2].Err, atomicfile.ErrTooLarge) || seen[2].Data != nil {
		t.Errorf("%+v", seen)
	}
}

// More files than one scan gives come in as many as it takes, by name, each once a pass, and the
// work of each is bounded.
func TestManyFiles(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	const files = 2*MaxScanFiles + 7
	var want []string
	for i := range files {
		name := fmt.Sprintf("f%05d", i)
		want = append(want, name)
		write(t, filepath.Join(dir, name), "x")
	}
	add(t, w, dir)
	for pass := range 2 {
		var got []string
		for more := true; more; {
			var seen []Seen
			var err error
			seen, more, err = w.Scan(dir)
			if err != nil || len(seen) > MaxScanFiles {
				t.Fatal(len(seen), err)
			}
			for _, s := range seen {
				got = append(got, s.Name)
				if s.Unchanged != (pass == 1) {
					t.Fatalf("pass %d: %+v", pass, s)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pass %d: %d files, or not in order", pass, len(got))
		}
	}
}

func TestManyBytes(t *testing.T) {
	o := quiet()
	o.MaxBytes = MaxScanBytes
	dir, w := newDir(t), start(t, o)
	big := string(make([]byte, MaxScanBytes/2+1))
	for _, n := range []string{"a", "b", "c"} {
		write(t, filepath.Join(dir, n), big)
	}
	add(t, w, dir)
	first, more, err := w.Scan(dir)
	if err != nil || !more || len(first) != 2 {
		t.Fatal(len(first), more, err)
	}
	second, more, err := w.Scan(dir)
	if err != nil || more || len(second) != 1 || second[0].Name != "c" {
		t.Fatal(len(second), more, err)
	}
}

// A file that is touched, or replaced by one with the same text, has changed.
func TestSameTextIsAChange(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	path := filepath.Join(dir, "x")
	write(t, path, "1")
	first := scan(t, w, dir)[0]
	if err := atomicfile.Write(path, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := scan(t, w, dir)[0]; again.Unchanged || !again.Since.After(first.Since) || !again.FirstSeen.Equal(first.FirstSeen) {
		t.Errorf("%+v", again)
	}
}

// A file that was taken away is forgotten: one of its name that comes later is a new one.
func TestForgets(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	path := filepath.Join(dir, "x")
	write(t, path, "1")
	first := scan(t, w, dir)[0]
	if err := os.Rename(path, filepath.Join(t.TempDir(), "x")); err != nil {
		t.Fatal(err)
	}
	if seen := scan(t, w, dir); len(seen) != 0 {
		t.Fatal(seen)
	}
	write(t, path, "1")
	if again := scan(t, w, dir)[0]; again.Unchanged || !again.FirstSeen.After(first.FirstSeen) {
		t.Errorf("%+v", again)
	}
}

func TestScanOfWhatIsNoFolder(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	file, link, none := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "none")
	write(t, file, "")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{file: ErrNotFolder, link: ErrNotFolder, none: ErrMissing} {
		add(t, w, path)
		if seen, _, err := w.Scan(path); !errors.Is(err, want) || seen != nil {
			t.Errorf("%s: %v %v", path, seen, err)
		}
		if _, degraded := w.Health(path); degraded == "" {
			t.Errorf("%s: healthy", path)
		}
	}
	if _, _, err := w.Scan(dir); !errors.Is(err, ErrNotAdded) {
		t.Error(err)
	}
}

// What a killed process left behind is swept; the cookies of others that live are not.
func TestStaleCookiesAreSwept(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	stale, fresh := filepath.Join(dir, cookiePrefix+"stale"), filepath.Join(dir, cookiePrefix+"fresh")
	write(t, stale, "")
	write(t, fresh, "")
	old := time.Now().Add(-2 * staleCookie)
	if err := os.Chtimes(stale, old, old); err != nil {
		t.Fatal(err)
	}
	add(t, w, dir)
	if seen := scan(t, w, dir); len(seen) != 0 {
		t.Errorf("%+v", seen)
	}
	if _, err := os.Lstat(stale); err == nil {
		t.Error("stale cookie is left")
	}
	if _, err := os.Lstat(fresh); err != nil {
		t.Error(err)
	}
}

// TestAnEmptyFolderAtRestIsNotRead: what tells is its time. Where the file system sends no events
// it is read all the same, and any other change has it read.
func TestAnEmptyFolderAtRestIsNotRead(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	old := time.Now().Add(-time.Hour)
	rest := func() {
		t.Helper()
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	rest()
	if got := scan(t, w, dir); len(got) != 0 {
		t.Fatal(got)
	}
	write(t, filepath.Join(dir, "a.json"), "{}")
	if got := scan(t, w, dir); len(got) != 1 {
		t.Fatalf("a file that came is not seen: %v", got)
	}
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	rest()
	scan(t, w, dir)
	write(t, filepath.Join(dir, "b.json"), "{}")
	rest() // as tar and rsync do: they set the folder's time back
	if got := scan(t, w, dir); len(got) != 1 {
		t.Errorf("a file that came with the folder's time set back is not seen: %v", got)
	}
	st, err := folderAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.folders[dir].memory.empty = st // as if nothing had come: the only way to see that it is not read
	if got := scan(t, w, dir); len(got) != 0 {
		t.Errorf("it was read: %v", got)
	}
	w.mu.Lock()
	w.folders[dir].polling = true
	w.mu.Unlock()
	if got := scan(t, w, dir); len(got) != 1 {
		t.Errorf("a folder without events was not read: %v", got)
	}
}

// TestAFolderThatJustChangedIsRead: its time cannot tell what comes next from what came.
func TestAFolderThatJustChangedIsRead(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		t.Fatal(err)
	}
	if got := scan(t, w, dir); len(got) != 0 {
		t.Fatal(got)
	}
	write(t, filepath.Join(dir, "a.json"), "{}")
	if err := os.Chtimes(dir, now, now); err != nil {
		t.Fatal(err)
	}
	if got := scan(t, w, dir); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// A file that was handed on may be moved away and another be written under its name before anybody
// looks again: that one was not begun when the first was. One that grows before it is handed on
// was.
func TestAnotherOfTheSameName(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	path := filepath.Join(dir, "x")
	write(t, path, "{")
	first := scan(t, w, dir)[0]
	write(t, path, "{}")
	if grown := scan(t, w, dir)[0]; !grown.FirstSeen.Equal(first.FirstSeen) {
		t.Errorf("it grew: %+v, before: %+v", grown, first)
	}
	w.Taken(dir, "x")
	if again := scan(t, w, dir)[0]; !again.Unchanged || !again.FirstSeen.Equal(first.FirstSeen) {
		t.Errorf("it is as it was: %+v, before: %+v", again, first)
	}
	if err := os.Rename(path, filepath.Join(t.TempDir(), "x")); err != nil {
		t.Fatal(err)
	}
	write(t, path, "{ }")
	next := scan(t, w, dir)[0]
	if next.Unchanged || !next.FirstSeen.After(first.FirstSeen) {
		t.Errorf("another file: %+v, the first: %+v", next, first)
	}
	write(t, path, "{  }")
	if grown := scan(t, w, dir)[0]; !grown.FirstSeen.Equal(next.FirstSeen) {
		t.Errorf("it grew: %+v, before: %+v", grown, next)
	}
}

// A folder that is replaced while its names are being given is read anew: nothing of the old one is
// told of.
func TestFolderReplacedMidway(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	for i := range MaxScanFiles + 500 {
		write(t, filepath.Join(dir, fmt.Sprintf("f%05d", i)), "old")
	}
	add(t, w, dir)
	if _, more, err := w.Scan(dir); err != nil || !more {
		t.Fatal(more, err)
	}
	if err := errors.Join(os.Rename(dir, dir+"2"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "f01200", "z"} {
		write(t, filepath.Join(dir, name), "new")
	}
	seen := scan(t, w, dir)
	if !has(seen, "f01200", "new") || !has(seen, "z", "new") {
		t.Errorf("the scan that goes on says that there is no more than %+v", seen)
	}
	seen = append(seen, scan(t, w, dir)...)
	for _, name := range []string{"a", "f01200", "z"} {
		if !has(seen, name, "new") {
			t.Errorf("%s is not seen", name)
		}
	}
	for _, s := range seen {
		if string(s.Data) != "new" {
			t.Errorf("%q of the old folder: %+v", s.Data, s)
		}
	}
}
