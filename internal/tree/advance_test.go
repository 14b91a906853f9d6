//go:build unix

package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/git"
)

// killed is the variable that makes the test program an Advance that kills itself at a step.
const killed = "SLUICE_TEST_KILL"

func TestMain(m *testing.M) {
	if c := os.Getenv(choreVar); c != "" {
		doChore(c)
		os.Exit(0)
	}
	if at := os.Getenv(killed); at != "" {
		advanceAndDie(at, strings.Split(os.Getenv("SLUICE_TEST_MOVE"), "|"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func advanceAndDie(at string, f []string) {
	if step, ok := strings.CutPrefix(at, "land:"); ok {
		landAndDie(step, f)
		return
	}
	repo, err := git.Open(context.Background(), f[3])
	if err != nil {
		panic(err)
	}
	a := Advance{Branch: f[0], From: f[1], To: f[2], Top: f[3], Write: f[4] == "true"}
	if at == "full" { // no file may grow beyond this, which is less than an index needs
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: 100}); err != nil {
			panic(err)
		}
	}
	_, why, err := a.do(context.Background(), repo, time.Minute, func(step string) {
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	fmt.Println("not killed:", why, err)
}

func landAndDie(at string, f []string) {
	repo, err := git.Open(context.Background(), f[2])
	if err != nil {
		panic(err)
	}
	l := Landing{Run: "x-1", Base: f[0], Tip: f[1], Onto: "refs/heads/main", Top: f[2], How: Squash, Message: "the work",
		By: git.Person{Name: "Ann", Email: "ann@example.org"}}
	_, why, err := l.do(context.Background(), repo, func(step string) {
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	fmt.Println("not killed:", why, err)
}

// person is a checkout and plain git to work in it.
type person struct {
	t   *testing.T
	dir string
}

func newPerson(t *testing.T, initArgs ...string) *person {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, dir: filepath.Join(dir, "repo")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.git(append([]string{"init", "-q", "-b", "main"}, initArgs...)...)
	for _, name := range []string{"a", "b", "c", "d/e", "gone", "mine", "staged"} {
		p.write(name, name+"\n")
	}
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "first")
	return p
}

func (p *person) in(dir string) *person { return &person{t: p.t, dir: dir} }

func (p *person) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org",
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (p *person) git(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (p *person) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

func (p *person) open() *git.Repo {
	p.t.Helper()
	repo, err := git.Open(p.t.Context(), p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := repo.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return repo
}

// taken commits the work of a step without changing the checkout's branch or index, and leaves the
// files: a is changed, gone is deleted, d/new is added and the file d/e becomes a folder.
func (p *person) taken() (from, to string) {
	p.t.Helper()
	from = p.git("rev-parse", "HEAD")
	p.write("a", "work\n")
	p.write("d/new", "new\n")
	if err := errors.Join(os.Remove(filepath.Join(p.dir, "gone")), os.Remove(filepath.Join(p.dir, "d/e"))); err != nil {
		p.t.Fatal(err)
	}
	p.write("d/e/f", "deep\n")
	return from, p.commitTree(from, "a", "d", "gone")
}

// commitTree commits files in their current state on top of a commit, through a separate index.
func (p *person) commitTree(parent string, files ...string) string {
	p.t.Helper()
	index := filepath.Join(p.t.TempDir(), "index")
	run := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = p.dir
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_AUTHOR_NAME=s", "GIT_AUTHOR_EMAIL=s@s", "GIT_COMMITTER_NAME=s",
			"GIT_COMMITTER_EMAIL=s@s", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			p.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("read-tree", parent)
	run(append([]string{"add", "-A", "--sparse", "--"}, files...)...)
	return run("commit-tree", "-m", "work", "-p", parent, run("write-tree"))
}

// busy makes a person's own changes in the checkout: staged, unstaged, both on one file, new and
// ignored.
func (p *person) busy() {
	p.t.Helper()
	p.write("staged", "to be staged\n")
	p.git("add", "staged")
	p.write("staged", "and changed again\n")
	p.write("mine", "unstaged\n")
	p.write("untracked", "untracked\n")
	p.write(".git/info/exclude", ".env\n")
	p.write(".env", "secret\n")
	p.write("intent", "later\n")
	p.git("add", "-N", "intent")
}

// busyStatus is git's status of exactly these changes.
const busyStatus = " A intent\n M mine\nMM staged\n?? untracked"

func (p *person) status() string { return p.git("status", "--porcelain") }

// undoesNothing commits all of a person's changes and checks that the work is still there.
func (p *person) undoesNothing(to string) {
	p.t.Helper()
	p.git("commit", "-q", "-a", "-m", "mine")
	if got := p.git("diff", "--name-only", to, "HEAD"); got != "intent\nmine\nstaged" {
		p.t.Errorf("commit -a changed what the step had made: %q", got)
	}
}

func (p *person) advance(a Advance) (bool, string, error) {
	p.t.Helper()
	return a.do(p.t.Context(), p.open(), 100*time.Millisecond, func(string) {})
}

func TestAdvanceLeavesAPersonsChanges(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		p := newPerson(t, "--object-format="+format)
		p.busy()
		from, to := p.taken()
		moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir})
		if !moved || why != "" || err != nil {
			t.Fatalf("%s: %v %q %v", format, moved, why, err)
		}
		if got := p.status(); got != busyStatus {
			t.Errorf("%s: status:\n%s\nwant:\n%s", format, got, busyStatus)
		}
		p.undoesNothing(to)
		left, err := filepath.Glob(filepath.Join(p.dir, ".git", "*sluice*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %q %v", left, err)
		}
	}
}

func TestAdvanceLeavesWhatAPersonStagedOfTheSameFile(t *testing.T) {
	p := newPerson(t)
	from, to := p.taken()
	p.write("a", "mine\n")
	p.git("add", "a")
	p.git("add", "-N", "d/new")
	if moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}); !moved {
		t.Fatal(why, err)
	}
	if got := p.status(); got != "M  a" {
		t.Errorf("status: %q", got)
	}
	if got := p.git("show", ":a"); got != "mine" {
		t.Errorf("staged: %q", got)
	}
}

// The ref has moved, and the index cannot be put in place.
func TestAdvanceIsCompletedAfterAnError(t *testing.T) {
	p := newPerson(t)
	p.busy()
	from, to := p.taken()
	a := Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}
	index := filepath.Join(p.dir, ".git", "index")
	moved, why, err := a.do(t.Context(), p.open(), time.Second, func(step string) {
		if step == "moved" {
			if err := errors.Join(os.Rename(index, index+".away"), os.Mkdir(index, 0o755)); err != nil {
				t.Error(err)
			}
		}
	})
	if moved || err == nil {
		t.Fatalf("%v %q %v", moved, why, err)
	}
	if err := errors.Join(os.Remove(index), os.Rename(index+".away", index)); err != nil {
		t.Fatal(err)
	}
	if moved, why, err := p.advance(a); !moved {
		t.Fatal(why, err)
	}
	if got := p.status(); got != busyStatus {
		t.Errorf("status:\n%s\nwant:\n%s", got, busyStatus)
	}
	p.undoesNothing(to)
}

func TestAdvanceIsCompletedAfterAKill(t *testing.T) {
	steps := []string{"looked", "locked", "recorded", "patched", "moved", "swapped"}
	for _, write := range []bool{false, true} {
		for _, at := range steps {
			t.Run(fmt.Sprintf("%s,%v", at, write), func(t *testing.T) { killAndComplete(t, at, write) })
		}
	}
	t.Run("written,true", func(t *testing.T) { killAndComplete(t, "written", true) })
}

func killAndComplete(t *testing.T, at string, write bool) {
	p := newPerson(t)
	from, to := p.taken()
	if write { // the work was done elsewhere
		p.git("checkout", "-q", "-f", "HEAD")
		p.git("clean", "-qfd")
	}
	p.busy()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killed+"="+at, "SLUICE_TEST_MOVE="+strings.Join([]string{"refs/heads/main", from, to, p.dir, fmt.Sprint(write)}, "|"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("not killed at %s: %v %s", at, err, out)
	}
	for range 2 {
		moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir, Write: write})
		if !moved || why != "" || err != nil {
			t.Fatalf("%v %q %v", moved, why, err)
		}
	}
	if got := p.status(); got != busyStatus {
		t.Errorf("status:\n%s\nwant:\n%s", got, busyStatus)
	}
	if p.read("a") != "work\n" || p.read("d/e/f") != "deep\n" || p.read("gone") != "" || p.read("mine") != "unstaged\n" {
		t.Error("the files are not the work and the person's changes")
	}
	p.undoesNothing(to)
}

// Git advises a person who finds index.lock to remove it.
func TestAdvanceIsCompletedWhereThePersonRemovedTheLock(t *testing.T) {
	p := newPerson(t)
	p.busy()
	from, to := p.taken()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killed+"=moved", "SLUICE_TEST_MOVE="+strings.Join([]string{"refs/heads/main", from, to, p.dir, "false"}, "|"))
	_ = cmd.Run()
	if err := os.Remove(filepath.Join(p.dir, ".git", "index.lock")); err != nil {
		t.Fatal(err)
	}
	p.write("b", "staged since\n")
	p.git("add", "b")
	if moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}); !moved || why != "" || err != nil {
		t.Fatalf("%v %q %v", moved, why, err)
	}
	if got, want := p.status(), "M  b\n"+busyStatus; got != want {
		t.Errorf("status:\n%s\nwant:\n%s", got, want)
	}
}

// A branch's lock may be another git's: nothing begins while it exists, and no file is written.
func TestAdvanceMeetsTheLockOfABranch(t *testing.T) {
	for _, name := range []string{"refs/heads/main.lock", "HEAD.lock"} {
		p := newPerson(t)
		from, to := p.taken()
		p.git("checkout", "-q", "-f", "HEAD") // the work was done elsewhere
		p.git("clean", "-qfd")
		p.busy()
		lock := filepath.Join(p.dir, ".git", name)
		p.write(".git/"+name, "")
		a := Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir, Write: true}
		moved, why, err := p.advance(a)
		if moved || why != "" || !errors.Is(err, ErrBusy) || !strings.HasSuffix(err.Error(), lock+" exists: wait for that git, or remove the file if none is running, and try again") {
			t.Errorf("%v %q %v", moved, why, err)
		}
		if got := p.status(); got != busyStatus || p.git("rev-parse", "main") != from {
			t.Errorf("%s: status:\n%s\nwant\n%s", name, got, busyStatus)
		}
		if left, err := filepath.Glob(filepath.Join(p.dir, ".git", "*index?*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left: %q %v", name, left, err)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		if moved, why, err := p.advance(a); !moved || p.git("rev-parse", "main") != to || p.status() != busyStatus {
			t.Errorf("%s: %v %q %v", name, moved, why, err)
		}
	}
}

func TestAdvanceWaitsForAPersonsGit(t *testing.T) {
	p := newPerson(t)
	from, to := p.taken()
	lock := filepath.Join(p.dir, ".git", "index.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}
	moved, _, err := p.advance(a)
	if moved || !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), lock+" exists: wait for that git, or remove the file") {
		t.Fatalf("%v %v", moved, err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Error("the person's lock is gone:", err)
	}
	if got := p.git("rev-parse", "main"); got != from {
		t.Errorf("main is at %s", got)
	}
	done := make(chan error, 1)
	repo := p.open()
	go func() {
		moved, why, err := a.do(t.Context(), repo, time.Minute, func(string) {})
		if !moved {
			err = errors.Join(err, errors.New("not moved: "+why))
		}
		done <- err
	}()
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAdvanceReportsWhatAPersonHasToDecide(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *person, to string)
		want string
		here string // where main is afterwards; "" = where do left it
	}{
		"moved":   {func(p *person, _ string) { p.git("commit", "-q", "--allow-empty", "-m", "x") }, "has moved from", ""},
		"rebased": {func(p *person, _ string) { p.git("commit", "-q", "--amend", "--allow-empty", "-m", "x") }, "was rebased or reset", ""},
		"gone":    {func(p *person, _ string) { p.git("checkout", "-q", "--detach"); p.git("branch", "-D", "main") }, "is gone: the work is kept", ""},
		"elsewhere": {func(p *person, _ string) {
			p.git("checkout", "-q", "-b", "other")
			p.git("worktree", "add", "-q", p.dir+"-two", "main")
		}, "is checked out in", ""},
		"merging": {func(p *person, _ string) { p.write(".git/MERGE_HEAD", p.git("rev-parse", "HEAD")) }, "in the middle of a merge: run git merge --continue", ""},
		"rebasing": {func(p *person, _ string) {
			p.git("checkout", "-q", "--detach")
			p.write(".git/rebase-merge/head-name", "refs/heads/main\n")
		}, "is being rebased", ""},
		"bisecting": {func(p *person, _ string) {
			p.git("checkout", "-q", "--detach")
			p.write(".git/BISECT_START", "main\n")
		}, "is being bisected", ""},
		"conflict": {func(p *person, _ string) {
			blob := p.git("rev-parse", "HEAD:b")
			info := fmt.Sprintf("100644 %s 1\tb\n100644 %s 2\tb\n", blob, blob)
			cmd := exec.Command("git", "update-index", "--index-info")
			cmd.Dir, cmd.Stdin = p.dir, strings.NewReader(info)
			if out, err := cmd.CombinedOutput(); err != nil {
				p.t.Fatal(err, string(out))
			}
		}, "has conflicts in b: resolve them", ""},
		"folder staged where a file is to be": {func(p *person, _ string) {
			blob := p.git("rev-parse", "HEAD:b")
			p.git("update-index", "--add", "--cacheinfo", "100644,"+blob+",d/new/x")
		}, "staged changes in the way: d/new/x", ""},
		"corrupt index": {func(p *person, _ string) { p.write(".git/index", "rubbish that is no index at all") }, "remove that file and run git reset", ""},
		"symbolic": {func(p *person, _ string) {
			p.git("branch", "other")
			p.git("checkout", "-q", "other")
			p.git("symbolic-ref", "refs/heads/main", "refs/heads/other")
		}, "stands for refs/heads/other", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			from, to := p.taken()
			c.do(p, to)
			refs := p.git("for-each-ref")
			index := p.read(".git/index")
			moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir})
			if moved || err != nil || !strings.Contains(why, c.want) {
				t.Errorf("%v %q %v, want %q", moved, why, err, c.want)
			}
			if got := p.git("for-each-ref"); got != refs {
				t.Errorf("refs were %s and are %s", refs, got)
			}
			if p.read(".git/index") != index {
				t.Error("the index was changed")
			}
			if p.read("a") != "work\n" {
				t.Error("the work is gone from the files")
			}
			if _, err := os.Lstat(filepath.Join(p.dir, ".git/index.lock")); err == nil {
				t.Error("index.lock is left")
			}
		})
	}
	p := newPerson(t)
	from, to := p.taken()
	if moved, why, err := p.advance(Advance{From: from, To: to, Top: p.dir}); moved || err != nil || !strings.Contains(why, "is detached") {
		t.Errorf("%v %q %v", moved, why, err)
	}
}

// TestAdvanceMovesADetachedHead: a checkout that is on no branch moves by itself, without a branch.
func TestAdvanceMovesADetachedHead(t *testing.T) {
	p := newPerson(t)
	from, to := p.taken()
	p.git("checkout", "-q", "--detach")
	head := Advance{Branch: git.Detached, From: from, To: to, Top: p.dir}
	before := p.git("rev-parse", "main")
	for range 2 {
		if moved, why, err := p.advance(head); !moved || why != "" || err != nil {
			t.Fatalf("%v %q %v", moved, why, err)
		}
		if p.git("rev-parse", "HEAD") != to || p.git("rev-parse", "main") != before {
			t.Errorf("HEAD is at %s, main at %s", p.git("rev-parse", "HEAD"), p.git("rev-parse", "main"))
		}
	}
	p.git("checkout", "-q", "-B", "other", from)
	if moved, why, err := p.advance(head); moved || err != nil || !strings.Contains(why, "is on branch other by now") {
		t.Errorf("%v %q %v", moved, why, err)
	}
	if p.git("rev-parse", "other") != from {
		t.Error("the branch has moved")
	}
}

func TestAdvanceMovesARefThatIsCheckedOutNowhere(t *testing.T) {
	p := newPerson(t)
	from, to := p.taken()
	p.git("checkout", "-q", "-b", "other")
	before := p.status()
	if moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}); !moved || why != "" || err != nil {
		t.Fatalf("%v %q %v", moved, why, err)
	}
	if got := p.git("rev-parse", "main"); got != to {
		t.Errorf("main is at %s", got)
	}
	if got := p.status(); got != before {
		t.Errorf("status was %q and is %q", before, got)
	}
}

// A person commits on top of the work before the journal has the move.
func TestAdvanceFindsItDoneUnderneath(t *testing.T) {
	p := newPerson(t)
	from, to := p.taken()
	a := Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}
	if moved, why, err := p.advance(a); !moved {
		t.Fatal(why, err)
	}
	p.git("commit", "-q", "--allow-empty", "-m", "on top")
	p.write("a", "a\n")
	p.git("add", "a") // as before the work
	if moved, why, err := p.advance(a); !moved || why != "" || err != nil {
		t.Errorf("%v %q %v", moved, why, err)
	}
	if got := p.status(); got != "M  a" {
		t.Errorf("status: %q", got)
	}
}

func TestAdvanceInALinkedWorktreeAndBack(t *testing.T) {
	p := newPerson(t)
	p.git("worktree", "add", "-q", "-b", "sluice/run", p.dir+"-run")
	w := p.in(p.dir + "-run")
	w.write(".git-not", "x")
	from, to := w.taken()
	a := Advance{Branch: "refs/heads/sluice/run", From: from, To: to, Top: w.dir}
	if moved, why, err := a.do(t.Context(), p.open(), time.Second, func(string) {}); !moved {
		t.Fatal(why, err)
	}
	if got := w.status(); got != "?? .git-not" {
		t.Errorf("status: %q", got)
	}
	back := Advance{Branch: "refs/heads/sluice/run", From: to, To: from, Top: w.dir}
	if moved, why, err := back.do(t.Context(), p.open(), time.Second, func(string) {}); !moved {
		t.Fatal(why, err)
	}
	if got := w.status(); got != " M a\n D d/e\n D gone\n?? .git-not\n?? d/new" {
		t.Errorf("status after the way back: %q", got)
	}
}

func TestAdvanceWithIndexesOfOtherKinds(t *testing.T) {
	for name, set := range map[string]func(p *person){
		"split": func(p *person) { p.git("update-index", "--split-index") },
		"sparse": func(p *person) {
			p.write("far/away", "far\n")
			p.write("a", "a\n")
			p.git("add", "far")
			p.git("commit", "-q", "-m", "far")
			p.git("sparse-checkout", "set", "--cone", "--sparse-index", "d")
		},
		"flags": func(p *person) {
			p.git("update-index", "--assume-unchanged", "a", "b")
			p.git("update-index", "--skip-worktree", "c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			set(p)
			from, to := p.taken()
			flags := p.git("ls-files", "-v", "b", "c", "far/away")
			moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir})
			if !moved {
				t.Fatal(why, err)
			}
			if got := p.status(); got != "" {
				t.Errorf("status: %q", got)
			}
			if got := p.git("ls-files", "-v", "b", "c", "far/away"); got != flags {
				t.Errorf("flags were %q and are %q", flags, got)
			}
			if name == "flags" && p.git("ls-files", "-v", "a") != "h a" {
				t.Errorf("a: %s", p.git("ls-files", "-v", "a"))
			}
			p.git("fsck", "--strict")
		})
	}
}

// A commit made elsewhere has a file outside a sparse checkout.
func TestAdvanceHidesNewFilesOutsideASparseCheckout(t *testing.T) {
	p := newPerson(t)
	p.write("far/away", "far\n")
	p.git("add", "far")
	p.git("commit", "-q", "-m", "far")
	from := p.git("rev-parse", "HEAD")
	p.write("far/new", "new\n")
	p.write("far/away", "changed\n")
	to := p.commitTree(from, "far")
	p.git("checkout", "-q", "far/away")
	if err := os.Remove(filepath.Join(p.dir, "far/new")); err != nil {
		t.Fatal(err)
	}
	p.git("sparse-checkout", "set", "--cone", "--sparse-index", "d")
	if moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}); !moved {
		t.Fatal(why, err)
	}
	if got := p.status(); got != "" {
		t.Errorf("status: %q", got)
	}
}

func TestAdvanceOnAnUnbornBranch(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, dir: dir}
	p.git("init", "-q", "-b", "main")
	p.write("a", "a\n")
	p.git("add", "a")
	tree := p.git("write-tree")
	p.git("rm", "-q", "--cached", "a")
	to := p.git("commit-tree", "-m", "x", tree)
	if moved, why, err := p.advance(Advance{Branch: "refs/heads/main", To: to, Top: p.dir}); !moved {
		t.Fatal(why, err)
	}
	if got := p.status(); got != "" {
		t.Errorf("status: %q", got)
	}
}

func TestAdvanceWithWriteRefusesFilesOfThePerson(t *testing.T) {
	for name, do := range map[string]func(p *person) (file string){
		"changed":     func(p *person) string { p.write("a", "mine\n"); return "a" },
		"staged":      func(p *person) string { p.write("a", "mine\n"); p.git("add", "a"); return "a" },
		"staged back": func(p *person) string { p.write("a", "mine\n"); p.git("add", "a"); p.write("a", "a\n"); return "a" },
		"untracked":   func(p *person) string { p.write("d/new", "mine\n"); return "d/new" },
		"ignored": func(p *person) string {
			p.write(".git/info/exclude", "new\n")
			p.write("d/new", "mine\n")
			return "d/new"
		},
		"in the folder":   func(p *person) string { p.git("rm", "-q", "--cached", "d/e"); p.git("reset", "-q"); return "d/e" },
		"deleted, edited": func(p *person) string { p.write("gone", "mine\n"); return "gone" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			from, to := p.taken()
			p.git("checkout", "-q", "-f", "HEAD")
			p.git("clean", "-qfd")
			file := do(p)
			if name == "in the folder" {
				p.write("d/e", "mine\n")
			}
			before, was := p.status(), p.read(file)
			moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir, Write: true})
			if moved || err != nil || !strings.Contains(why, file) {
				t.Fatalf("%v %q %v", moved, why, err)
			}
			if got := p.status(); got != before || p.read(file) != was || p.read("a") == "work\n" {
				t.Errorf("status was %q and is %q; %s: %q", before, got, file, p.read(file))
			}
		})
	}
}

func TestAdvanceWithoutRoom(t *testing.T) {
	p := newPerson(t)
	p.busy()
	from, to := p.taken()
	before := p.status()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killed+"=full", "SLUICE_TEST_MOVE="+strings.Join([]string{"refs/heads/main", from, to, p.dir, "false"}, "|"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "file too large") {
		t.Fatalf("%v %s", err, out)
	}
	if got := p.git("rev-parse", "main"); got != from || p.status() != before {
		t.Errorf("main is at %s, status %q", got, p.status())
	}
	p.write("b", "b again\n")
	p.git("add", "b") // no lock is left
	if moved, why, err := p.advance(Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}); !moved {
		t.Fatal(why, err)
	}
	if got, want := p.status(), "M  b\n"+busyStatus; got != want {
		t.Errorf("status:\n%s\nwant:\n%s", got, want)
	}
}

func TestAdvanceWhereTheGitFolderCannotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes anywhere")
	}
	p := newPerson(t)
	from, to := p.taken()
	dir := filepath.Join(p.dir, ".git")
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	a := Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}
	moved, why, err := p.advance(a)
	if err2 := os.Chmod(dir, 0o755); err2 != nil {
		t.Fatal(err2)
	}
	if moved || err == nil {
		t.Fatalf("%v %q %v", moved, why, err)
	}
	if moved, why, err := p.advance(a); !moved {
		t.Fatal(why, err)
	}
}
