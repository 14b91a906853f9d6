//go:build unix

package tree

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/git"
)

// loseObject removes an object from the repo's store.
func loseObject(t *testing.T, top, sha string) {
	t.Helper()
	if err := os.Remove(filepath.Join(top, ".git/objects", sha[:2], sha[2:])); err != nil {
		t.Fatal(err)
	}
}

// oneLine checks an error: a cause and what to do, on one line.
func oneLine(t *testing.T, said string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("it says %q and not %q", said, w)
		}
	}
	if strings.Contains(said, "\n") || len(said) > 1000 {
		t.Errorf("no line: %q", said)
	}
}

const (
	missing = "objects are missing in this repo"
	bring   = "git fsck names them, and git fetch brings back what a remote has"
)

// TestTakeFromADamagedRepo: objects missing from the base are not the attempt's fault, and are
// reported; missing objects of files in the folder are recreated.
func TestTakeFromADamagedRepo(t *testing.T) {
	for object, fine := range map[string]bool{":w.txt": true, "^:sub": false, "^^{tree}": false, "^": false} {
		t.Run(object, func(t *testing.T) {
			r := newRepo(t)
			o, was := r.begin()
			r.write("w.txt", "work\n")
			r.run("add", "w.txt")
			r.run("commit", "-qm", "w")
			tip := r.run("rev-parse", "HEAD")
			loseObject(t, r.dir, r.run("rev-parse", "HEAD"+object))
			got, err := r.folder().Take(t.Context(), o, tip, was)
			if fine {
				r.try(err)
				r.run("fsck", "--strict", got.Commit)
				return
			}
			var no *Refused
			if err == nil || errors.As(err, &no) {
				t.Fatalf("%T %v", err, err)
			}
			oneLine(t, err.Error(), missing, bring)
			if text, err := os.ReadFile(filepath.Join(r.dir, "w.txt")); err != nil || string(text) != "work\n" {
				t.Errorf("the work: %q %v", text, err)
			}
		})
	}
}

func TestReceiveIntoADamagedRepo(t *testing.T) {
	for _, object := range []string{"HEAD:b", "HEAD^{tree}", "HEAD"} {
		t.Run(object, func(t *testing.T) {
			s := newPlace(t, "sha1")
			s.put("b/c.txt", "b")
			s.git("add", "-A")
			s.git("commit", "-qm", "x")
			s.make()
			s.put("a.txt", "two\n")
			s.own("commit", "-qam", "second")
			loseObject(t, s.top, s.git("rev-parse", object))
			r, err := Receive(t.Context(), s.repo, s.p, s.inside)
			if !errors.Is(err, git.ErrMissing) || r.Refused+r.Aside != "" || r.Tip != s.p.Base {
				t.Fatalf("%+v %v", r, err)
			}
			oneLine(t, err.Error(), missing, bring)
		})
	}
}

// TestLandFromADamagedRepo: a landing of half the work changes nothing. Git itself merges a missing
// tree as an empty one: the landing would remove every file.
func TestLandFromADamagedRepo(t *testing.T) {
	for _, how := range []string{Squash, FF, Merge, Rebase} {
		for _, object := range []string{":d/new", ":d", "^{tree}", ""} {
			for _, out := range []bool{true, false} {
				p, w, l := worked(t)
				l.How = how
				if !out {
					p.git("checkout", "-q", "-b", "mine")
				}
				p.busy()
				before := p.git("rev-parse", "main")
				loseObject(t, p.dir, w.git("rev-parse", "HEAD"+object))
				_, why, err := l.run(p)
				if why == "" || err != nil {
					t.Fatalf("%s %q: %q %v", how, object, why, err)
				}
				if !strings.Contains(why, missing) {
					t.Errorf("%s %q %v", how, object, out)
				}
				oneLine(t, why, missing, bring)
				if got := p.status(); got != busyStatus || p.git("rev-parse", "main") != before || p.read("a") != "a\n" {
					t.Errorf("%s %q: something was changed:\n%s", how, object, got)
				}
			}
		}
	}
}

// TestLandInOddPlaces: checkouts in states in which a landing is impossible or unusual.
func TestLandInOddPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *person, l *Landing)
		want []string
	}{
		"corrupt index": {func(p *person, _ *Landing) { p.write(".git/index", "nonsense") }, []string{"the index cannot be read", "remove that file and run git reset"}},
		"checked out elsewhere": {func(p *person, _ *Landing) {
			p.git("checkout", "-q", "-b", "x")
			p.git("worktree", "add", "-q", p.dir+"-e", "main")
		}, []string{"is checked out in", "or run git merge there"}},
		"branch without commit": {func(p *person, l *Landing) { p.git("checkout", "-q", "--orphan", "new"); l.Onto = "refs/heads/new" }, []string{"there is no branch new", "run git branch new"}},
		"base that git removed": {func(_ *person, l *Landing) { l.Base = strings.Repeat("01", 20) }, []string{missing, bring}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, l := worked(t)
			c.do(p, &l)
			refs, index := p.git("for-each-ref"), p.read(".git/index")
			_, why, err := l.run(p)
			if err != nil {
				t.Fatal(err)
			}
			oneLine(t, why, c.want...)
			if p.git("for-each-ref") != refs || p.read(".git/index") != index || p.read("a") != "a\n" {
				t.Error("something was changed")
			}
		})
	}
	p, _, l := worked(t)
	p.git("checkout", "-q", "--detach") // the branch is checked out nowhere
	if _, why, err := l.run(p); why != "" || err != nil || p.git("show", "main:a") != "work" || p.read("a") != "a\n" || p.status() != "" {
		t.Errorf("detached: %q %v %s", why, err, p.status())
	}
}

// TestTakeALargeFile: a file is streamed, never kept in memory. SLUICE_LARGE is its size in MiB.
func TestTakeALargeFile(t *testing.T) {
	size := 600 // more than git keeps in memory
	if s := os.Getenv("SLUICE_LARGE"); s != "" {
		var err error
		if size, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	r := newRepo(t)
	o, was := r.begin()
	large := filepath.Join(r.dir, "large")
	r.write("large", "begins\n")
	r.try(os.Truncate(large, int64(size)<<20))
	own, gits := mostMemory(t)
	got, err := r.take(o, was)
	r.try(err)
	if n := r.run("cat-file", "-s", got.Commit+":large"); n != strconv.Itoa(size<<20) {
		t.Errorf("taken: %s bytes", n)
	}
	ownNow, gitsNow := mostMemory(t)
	t.Logf("%d MiB: we grew by %d KiB, the largest git had %d KiB", size, ownNow-own, gitsNow)
	if most := int64(size) << 10 / 2; ownNow-own > most || gitsNow > most && gitsNow > gits {
		t.Errorf("it was kept in memory: we grew by %d KiB, the largest git had %d KiB", ownNow-own, gitsNow)
	}
}

// mostMemory returns the peak memory of this process and of its largest child, in KiB.
func mostMemory(t *testing.T) (own, children int64) {
	t.Helper()
	var self, kids syscall.Rusage
	if err := errors.Join(syscall.Getrusage(syscall.RUSAGE_SELF, &self), syscall.Getrusage(syscall.RUSAGE_CHILDREN, &kids)); err != nil {
		t.Fatal(err)
	}
	unit := int64(1)
	if runtime.GOOS == "darwin" { // macOS counts bytes
		unit = 1 << 10
	}
	return self.Maxrss / unit, kids.Maxrss / unit
}
