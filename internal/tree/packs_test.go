package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/git"
	"sluice/tools/conform"
)

// clone returns another machine's clone of the repo.
func (r *repo) clone() *repo {
	r.Helper()
	dir, err := filepath.EvalSymlinks(r.TempDir())
	if err != nil {
		r.Fatal(err)
	}
	c := &repo{T: r.T, dir: filepath.Join(dir, "repo")}
	r.run("clone", "-q", "--no-local", r.dir, c.dir)
	if c.git, err = git.OpenWith(context.Background(), c.dir, git.Options{Scratch: filepath.Join(dir, "scratch")}); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.git.Close() })
	return c
}

// stored lists the repo's objects and refs.
func (r *repo) stored() string {
	r.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(r.dir, ".git/objects"), func(path string, d fs.DirEntry, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return strings.Join(out, "\n") + "\n" + r.run("for-each-ref")
}

// raw stores a commit on the HEAD that an ordinary git would not write.
func (r *repo) raw(more string) string {
	r.Helper()
	file := filepath.Join(r.TempDir(), "commit")
	text := "tree " + r.run("rev-parse", "HEAD^{tree}") + "\nparent " + r.run("rev-parse", "HEAD") + "\n" + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	return r.run("hash-object", "-t", "commit", "-w", "--literally", file)
}

// A commit goes from one repo to another as a thin pack, and comes whole or not at all.
func TestBring(t *testing.T) {
	conform.Rule(t, "13-cluster packs", "a pack is read as strictly as the commits of a launch")
	t.Parallel()
	a := newRepo(t)
	var lines []string
	for range 2000 {
		lines = append(lines, "the quick brown fox jumps over the lazy dog")
	}
	a.write("large.txt", strings.Join(lines, "\n"))
	a.run("add", "-A")
	a.run("commit", "-qm", "large")
	base := a.run("rev-parse", "HEAD")
	b := a.clone()
	lines[1000] = "the slow one"
	a.write("large.txt", strings.Join(lines, "\n"))
	a.write("new.txt", "new\n")
	a.run("add", "-A")
	a.run("commit", "-qm", "work")
	tip := a.run("rev-parse", "HEAD")

	pack := func(tip string, bases ...string) []byte {
		t.Helper()
		var out bytes.Buffer
		if err := Pack(t.Context(), a.git, &out, tip, bases...); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	ref := git.Own("taken", "w-1/X-1.1")
	refused := func(want string, pack []byte, tip string, bases ...string) {
		t.Helper()
		before := b.stored()
		var no *Refused
		err := Bring(t.Context(), b.git, bytes.NewReader(pack), ref, tip, bases...)
		if !errors.As(err, &no) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if after := b.stored(); after != before {
			t.Errorf("%s: it left\n%s\nbefore\n%s", want, after, before)
		}
	}
	thin := pack(tip, base)
	if len(thin) > 1000 {
		t.Errorf("the pack has %d bytes: it is not thin", len(thin))
	}
	flipped := bytes.Clone(thin)
	flipped[len(flipped)/2] ^= 1
	refused("git refuses", flipped, tip, base)
	refused("git refuses", thin[:len(thin)-30], tip, base)
	refused("git refuses", []byte("no pack"), tip, base)
	refused("are missing", thin, strings.Repeat("ab", 20), base)
	refused("are missing", thin, tip, base, strings.Repeat("ab", 20))
	refused("missingAuthor", pack(a.raw("committer A <a@x> 1 +0000\n\nx\n"), base), tip, base)

	// a second commit, whose base is not there yet
	a.write("more.txt", "more\n")
	a.run("add", "-A")
	a.run("commit", "-qm", "more")
	next := a.run("rev-parse", "HEAD")
	refused("git refuses", pack(next, tip), next, tip) // it has deltas on what is missing

	for _, c := range []struct{ tip, base string }{{tip, base}, {next, tip}, {next, next}} {
		if err := Bring(t.Context(), b.git, bytes.NewReader(pack(c.tip, c.base)), ref, c.tip, c.base); err != nil {
			t.Fatal(err)
		}
		if got := b.run("rev-parse", ref); got != c.tip {
			t.Errorf("the ref is at %s, want %s", got, c.tip)
		}
		if a.listing(c.tip) != b.listing(c.tip) {
			t.Error("the files differ")
		}
	}
	b.run("fsck", "--strict")

	// all of it, into a repo that has nothing
	empty := newRepo(t)
	if err := Bring(t.Context(), empty.git, bytes.NewReader(pack(next, "")), ref, next); err != nil {
		t.Fatal(err)
	}
}

// A pack that is too large is an error, and not the start of one.
func TestPackBounds(t *testing.T) {
	t.Parallel()
	a := newRepo(t)
	var out bytes.Buffer
	if err := git.Pack(t.Context(), a.git, &out, 100, a.run("rev-parse", "HEAD")); !errors.Is(err, git.ErrOutput) {
		t.Errorf("%v", err)
	}
	if err := Pack(t.Context(), a.git, &out, "--all"); err == nil {
		t.Error("an option for a commit")
	}
}

// TestReturn: a worker's work becomes the files of the folder. What is not built on the base, or has
// files where only sluice writes, is refused and writes nothing.
func TestReturn(t *testing.T) {
	t.Parallel()
	a := newRepo(t)
	b := a.clone()
	base := a.run("rev-parse", "HEAD")
	f := Folder{Repo: b.git, Top: b.dir, Own: []string{".workflow/signals"}}
	o := Order{Run: "w-1", Step: "X-1", N: 1, Base: base}
	send := func(r Returned) Received {
		t.Helper()
		var pack bytes.Buffer
		if err := Pack(t.Context(), a.git, &pack, r.Commit, base); err != nil {
			t.Fatal(err)
		}
		got, err := f.Return(t.Context(), o, r, &pack)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	tip := a.commit(base, "x.txt")
	work := a.commit(tip, "y.txt")
	word := a.commit(tip, ".workflow/signals/w-1/G-pass.json")
	a.run("checkout", "-q", "--orphan", "other")
	a.run("commit", "-qm", "other")
	other := a.run("rev-parse", "HEAD")
	for _, c := range []struct {
		r    Returned
		want string
	}{
		{Returned{word, tip}, "where only sluice writes"},
		{Returned{other, other}, "is not built on"},
		{Returned{work, other}, "is not built on"},
		{Returned{work, "main"}, "names no commit"},
	} {
		if got := send(c.r); !strings.Contains(got.Refused, c.want) {
			t.Errorf("%+v: %+v, want %q", c.r, got, c.want)
		}
		if left := b.run("status", "--porcelain", "--ignored"); left != "" {
			t.Fatalf("%+v wrote %s", c.r, left)
		}
	}
	if got := send(Returned{work, tip}); got != (Received{Tip: tip}) {
		t.Errorf("%+v", got)
	}
	if got := b.run("status", "--porcelain"); got != "?? x.txt\n?? y.txt" {
		t.Errorf("the folder has %s", got)
	}
}

// Many packs become few: every git reads the index of each.
func TestPacksAreGathered(t *testing.T) {
	t.Parallel()
	a := newRepo(t)
	b := a.clone()
	packs := func() int {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(b.dir, ".git/objects/pack/*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	b.write("loose.txt", "no commit has it\n")
	loose := b.run("hash-object", "-w", "loose.txt")
	most, base := 0, a.run("rev-parse", "HEAD")
	first := base
	for n := range 120 {
		a.write("n.txt", strings.Repeat("n", n))
		a.run("add", "-A")
		a.run("commit", "-qm", "n")
		tip := a.run("rev-parse", "HEAD")
		var pack bytes.Buffer
		if err := Pack(t.Context(), a.git, &pack, tip, base); err != nil {
			t.Fatal(err)
		}
		if err := Bring(t.Context(), b.git, &pack, git.Own("taken", "w-1/A.1"), tip, base); err != nil {
			t.Fatal(err)
		}
		most, base = max(most, packs()), tip
	}
	if most > 55 || packs() > 30 {
		t.Errorf("there were %d packs, there are %d", most, packs())
	}
	if n := b.run("rev-list", "--count", first+".."+base); n != "120" {
		t.Errorf("%s commits of 120", n)
	}
	b.run("cat-file", "-e", loose)
	b.run("fsck", "--full", "--strict")
}

// Work that is too large to be sent is refused by name, which no later try would change.
func TestPackThatIsTooLarge(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	base := r.run("rev-parse", "HEAD")
	r.write("new.txt", strings.Repeat("x", 100))
	r.run("add", "-A")
	r.run("commit", "-qm", "work")
	var out bytes.Buffer
	if err := packed(t.Context(), r.git, &out, 1<<20, r.run("rev-parse", "HEAD"), base); err != nil {
		t.Fatal(err)
	}
	var no *Refused
	err := packed(t.Context(), r.git, io.Discard, int64(out.Len()-1), r.run("rev-parse", "HEAD"), base)
	if !errors.As(err, &no) || !strings.Contains(no.Why, "too large to be sent") {
		t.Errorf("%v", err)
	}
}
