package tree

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// TestHidden: what only new ignore rules keep out of the tree is listed with its digest; what
// earlier rules ignore is not.
func TestHidden(t *testing.T) {
	conform.Rule(t, "9-one-tree ignored", "files that only the agent's rules ignore are listed, wherever it put the rules")
	write := func(r *repo, files ...string) {
		for _, f := range files {
			r.write(f, "x\n")
		}
	}
	for name, c := range map[string]struct {
		act  func(r *repo)
		want string
	}{
		"no rule": {func(r *repo) { write(r, "x.log", "build/y", "new.txt") }, ""},
		"the top's": {func(r *repo) {
			r.write(".gitignore", "*.log\nbuild/\nfake/\n*.pyc\n")
			write(r, "fake/m.py", "sub/a.pyc", "x.log", "build/y")
		}, "fake/m.py sub/a.pyc"},
		"one that is hidden": {func(r *repo) { r.write("fake/.gitignore", "*\n"); write(r, "fake/m.py") }, "fake/.gitignore fake/m.py"},
		"committed": {func(r *repo) {
			r.write(".gitignore", "*.log\nbuild/\nz\n")
			write(r, "z")
			r.run("commit", "-qam", "z")
		}, "z"},
		"fewer":                {func(r *repo) { r.write(".gitignore", "*.log\n"); write(r, "build/y", "x.log") }, ""},
		"of a person's":        {func(r *repo) { r.write(".gitignore", "*.log\nbuild/\nq\n"); write(r, "own/new", "q") }, "q"},
		"in the repo's list":   {func(r *repo) { r.write(".git/info/exclude", "mine\nagents\n"); write(r, "agents", "mine") }, "agents mine"},
		"in a folder that was": {func(r *repo) { r.write("build/dep/.gitignore", "*\n"); write(r, "build/dep/x") }, ""},
		"odd names":            {func(r *repo) { r.write(".gitignore", "*.log\nbuild/\n*-\n"); write(r, "a \n\"b-", "ü-") }, "a \n\"b- ü-"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write(".git/info/exclude", "mine\n")
			f := r.folder()
			f.Law = func(file string) bool { return path.Base(file) == ".gitignore" }
			r.write("own/.gitignore", "*\n") // hides itself, and existed before
			write(r, "own/old")
			o, _ := r.begin()
			was, err := f.Find(t.Context(), o)
			r.try(err)
			o.Found = was.Found
			c.act(r)
			taken, err := f.Take(t.Context(), o, r.run("rev-parse", "HEAD"), was)
			r.try(err)
			if name == "in a folder that was" && len(taken.Law) > 0 {
				t.Errorf("what says nothing to git is law: %v", taken.Law)
			}
			var got []string
			for _, h := range taken.Hidden {
				if got = append(got, h.Path); len(h.Digest) != 64 {
					t.Errorf("%q has the digest %q", h.Path, h.Digest)
				}
			}
			if strings.Join(got, " ") != c.want || taken.More != 0 {
				t.Errorf("hidden %q and %d more, want %q", got, taken.More, c.want)
			}
		})
	}
}

// TestManyHidden: files beyond the limit are counted.
func TestManyHidden(t *testing.T) {
	r := newRepo(t)
	o, _ := r.begin()
	f := r.folder()
	was, err := f.Find(t.Context(), o)
	r.try(err)
	o.Found = was.Found
	r.write(".gitignore", "*.log\nbuild/\nmany/\n")
	if err := os.Mkdir(filepath.Join(r.dir, "many"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range maxHidden + 7 {
		r.write(fmt.Sprintf("many/%03d", i), "")
	}
	taken, err := f.Take(t.Context(), o, o.Base, was)
	r.try(err)
	if len(taken.Hidden) != maxHidden || taken.More != 7 || !slices.IsSortedFunc(taken.Hidden, func(a, b Beside) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("%d listed, %d more", len(taken.Hidden), taken.More)
	}
}
