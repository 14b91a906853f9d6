package tree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

// programs returns which random programs a run tries, by their seeds: the first 400, or those that
// SLUICE_PROGRAMS names ("100000", "50000-100000"). SLUICE_PROGRAM selects one.
func programs(t *testing.T) (from, to uint64) {
	if s := os.Getenv("SLUICE_PROGRAM"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return seed, seed + 1
	}
	n := uint64(120)
	if s := os.Getenv("SLUICE_PROGRAMS"); s != "" {
		first, last, ok := strings.Cut(s, "-")
		if !ok {
			first, last = "0", s
		}
		var errs [2]error
		from, errs[0] = strconv.ParseUint(first, 10, 64)
		n, errs[1] = strconv.ParseUint(last, 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
	}
	return from, n
}

// TestPrograms: whatever a random program does to a checkout, the taken work equals what git makes
// of the folder by hand, or is refused; the branch then has that tree, with nothing left to commit.
func TestPrograms(t *testing.T) {
	conform.Rule(t, "9-one-tree programs", "random programs on a checkout: taken = the folder = on the branch")
	from, to := programs(t)
	const workers = 4
	for w := range uint64(workers) {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.run("config", "maintenance.auto", "false") // a process less with every commit
			r.write("deep/er/c.txt", "c\n")
			r.write("x.log", "tracked and ignored\n")
			r.run("add", "-Af")
			r.run("commit", "-qm", "second")
			r.run("branch", "keep")
			for seed := from + w; seed < to; seed += workers {
				tryProgram(r, seed)
				if t.Failed() {
					t.Fatalf("seed %d: SLUICE_PROGRAM=%d runs it again", seed, seed)
				}
			}
		})
	}
}

// tryProgram has one program act on the checkout, takes its work and puts it on the branch.
func tryProgram(r *repo, seed uint64) {
	r.Helper()
	r.again()
	p := &program{repo: r, rnd: rand.New(rand.NewPCG(seed, 9))}
	for range p.rnd.IntN(4) { // a person's own changes
		p.step(false)
	}
	o, was := r.begin()
	o.N = int(seed) + 1
	for range 1 + p.rnd.IntN(12) {
		p.step(true)
	}
	tip := r.run("rev-parse", "HEAD")
	got, err := r.folder().Take(context.Background(), o, tip, was)
	if _, ok := errors.AsType[*Refused](err); ok {
		if !p.odd() {
			r.Errorf("refused: %v\n%s", err, p.log())
		}
		return
	}
	if err != nil {
		r.Errorf("%v\n%s", err, p.log())
		return
	}
	if p.odd() {
		r.Errorf("taken though git cannot hold it\n%s", p.log())
	}
	if want := r.byHandFrom(got.Tip); r.run("rev-parse", got.Commit+"^{tree}") != want {
		r.Errorf("taken\n%s\nby hand\n%s\n%s", r.listing(got.Commit), r.run("ls-tree", "-r", want), p.log())
	}
	if o.Found != o.Base || got.Tip != tip {
		return // no branch moves: a person's changes are in the folder, or the history differs
	}
	r.run("update-ref", "--no-deref", "HEAD", tip)
	moved, why, err := Advance{Branch: "refs/heads/main", From: tip, To: got.Commit, Top: r.dir}.Do(context.Background(), r.git)
	if err != nil || !moved && why == "" && tip != got.Commit {
		r.Errorf("advance: %v %q %v\n%s", moved, why, err, p.log())
	}
	if moved && r.run("rev-parse", "main^{tree}") != r.run("rev-parse", got.Commit+"^{tree}") {
		r.Errorf("the branch has another tree\n%s", p.log())
	}
}

// again restores the checkout; our own index and records of it stay.
func (r *repo) again() {
	r.Helper()
	entries, err := os.ReadDir(r.dir)
	r.try(err)
	for _, e := range entries {
		if e.Name() != ".git" {
			r.try(os.RemoveAll(filepath.Join(r.dir, e.Name())))
		}
	}
	_ = os.Remove(filepath.Join(r.dir, ".git/index"))
	r.try(os.WriteFile(filepath.Join(r.dir, ".git/HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	r.run("reset", "-q", "--hard", "keep")
}

// byHandFrom returns the tree that git makes of the folder, starting from the files of a commit.
func (r *repo) byHandFrom(commit string) string {
	r.Helper()
	index := "GIT_INDEX_FILE=" + filepath.Join(filepath.Dir(r.dir), "hand")
	_ = os.Remove(filepath.Join(filepath.Dir(r.dir), "hand"))
	for _, args := range [][]string{{"read-tree", commit}, {"add", "-A"}} {
		r.runWith(index, args...)
	}
	return r.runWith(index, "write-tree")
}

// program does one random thing after the other.
type program struct {
	*repo
	rnd  *rand.Rand
	did  []string
	made []string // what git cannot store, if both of a line exist
	last int
}

func (p *program) log() string { return strings.Join(p.did, "\n") }

// name returns a file that may exist.
func (p *program) name() string {
	names := []string{"a.txt", "sub/b.txt", "deep/er/c.txt", "x.log", "y.log", "new.txt", "new/file", "build/out", "deep/d", "we ird\"ü.txt", ".hidden", "sub/.gitignore"}
	return names[p.rnd.IntN(len(names))]
}

// step does one thing and ignores failures, which an agent could have too. With all it includes an
// agent's own actions: a person leaves only files.
func (p *program) step(all bool) {
	n := p.rnd.IntN(12)
	if all {
		n = p.rnd.IntN(24)
	}
	name := p.name()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	p.did = append(p.did, fmt.Sprintf("%d %s", n, name))
	p.last++
	text := fmt.Sprintf("%d %d\n", p.last, p.rnd.IntN(1000))
	switch n {
	case 0, 1, 2, 3:
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.WriteFile(path, []byte(text), 0o644)
	case 4:
		_ = os.RemoveAll(path)
	case 5:
		_ = os.Chmod(path, 0o755)
	case 6:
		_ = os.Remove(path)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.Symlink(p.name(), path)
	case 7:
		to := filepath.Join(p.dir, filepath.FromSlash(p.name()))
		_ = os.MkdirAll(filepath.Dir(to), 0o755)
		_ = os.Rename(path, to)
	case 8:
		_ = os.RemoveAll(path)
		_ = os.MkdirAll(path, 0o755)
		_ = os.WriteFile(filepath.Join(path, "in"), []byte(text), 0o644)
	case 9:
		p.rewrite(path)
	case 10:
		p.ignore("*.txt\n")
	case 11:
		p.ignore("new\n!x.log\n")
	case 12, 13:
		p.may("add", "-A")
	case 14, 15:
		p.may("commit", "-qam", text)
	case 16:
		p.may("commit", "-q", "--allow-empty", "-m", text)
	case 17:
		p.may("reset", "-q", "HEAD~1")
	case 18:
		p.may("update-index", []string{"--assume-unchanged", "--skip-worktree"}[p.rnd.IntN(2)], name)
	case 19:
		p.may("checkout", "-q", "-B", "other")
	case 20:
		p.may("rm", "-q", "--cached", name)
	case 21:
		p.may("stash", "-q")
	case 22:
		if p.rnd.IntN(6) == 0 {
			p.strange()
		}
	case 23:
		_ = os.WriteFile(filepath.Join(p.dir, ".git/info/exclude"), []byte("*.none\n"), 0o644)
	}
}

// rewrite changes a file without changing its size or time.
func (p *program) rewrite(path string) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return
	}
	data, err := os.ReadFile(path)
	p.try(err)
	data[0] ^= 1
	p.try(os.WriteFile(path, data, 0o644))
	p.try(os.Chtimes(path, time.Now(), info.ModTime()))
}

func (p *program) ignore(rules string) {
	path := filepath.Join(p.dir, ".gitignore")
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		_ = os.WriteFile(path, []byte(rules), 0o644)
	}
}

// strange creates what no commit can store.
func (p *program) strange() {
	name := filepath.Join(p.dir, fmt.Sprintf("odd-%d", p.last))
	also := name
	switch p.rnd.IntN(3) {
	case 0:
		also = filepath.Join(name, ".git")
		_ = os.MkdirAll(also, 0o755)
	case 1:
		_ = syscall.Mkfifo(name, 0o644)
	case 2:
		also = filepath.Join(p.dir, fmt.Sprintf("ODD-%d", p.last))
		_ = errors.Join(os.WriteFile(name, nil, 0o644), os.WriteFile(also, nil, 0o644))
	}
	p.made = append(p.made, name+"\n"+also)
}

// odd reports whether what git cannot store is still in the folder: a later step may have removed
// it.
func (p *program) odd() bool {
	return slices.ContainsFunc(p.made, func(pair string) bool {
		name, also, _ := strings.Cut(pair, "\n")
		_, err := os.Lstat(name)
		_, other := os.Lstat(also)
		return err == nil && other == nil
	})
}

// may runs git, and ignores its failure.
func (p *program) may(args ...string) { _, _ = p.gitIn("", args...) }
