//go:build unix

package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/tools/conform"
)

// A chore is what a separate process does to a folder, so that it, its disk or its gits can be
// killed or made to fail.
type chore struct {
	Do      string // find, take, receive, advance or land
	Top     string
	Scratch string
	Order   Order
	Was     Before
	Tip     string
	Own     Private
	Move    Advance
	Land    Landing
}

const (
	choreVar = "SLUICE_TEST_CHORE" // what the test program does instead of its tests
	// choreRefused and choreFailed begin such a process's output; otherwise it is a commit, or why
	// a person is asked.
	choreRefused = "refused: "
	choreFailed  = "failed: "
)

// doChore does what the JSON requests, and prints the result.
func doChore(text string) {
	var c chore
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	commit, why, err := c.do(context.Background())
	var no *Refused
	switch {
	case errors.As(err, &no):
		fmt.Println(choreRefused + no.Why)
	case err != nil:
		fmt.Println(choreFailed + err.Error())
	default:
		fmt.Println(commit + why)
	}
}

func (c chore) do(ctx context.Context) (commit, why string, err error) {
	repo, err := git.OpenWith(ctx, c.Top, git.Options{Scratch: c.Scratch})
	if err != nil {
		return "", "", err
	}
	defer repo.Close()
	f := Folder{Repo: repo, Top: c.Top}
	switch c.Do {
	case "find":
		was, err := f.Find(ctx, c.Order)
		return was.Found, "", err
	case "take":
		t, err := f.Take(ctx, c.Order, c.Tip, c.Was)
		return t.Commit, "", err
	case "receive":
		s := launched{p: c.Own}
		r, err := Receive(ctx, repo, c.Own, s.inside)
		if r.Refused != "" {
			err = errors.Join(err, &Refused{r.Refused})
		}
		return r.Tip, r.Aside, err // an unreadable folder of the agent is set aside: its files are taken
	case "advance":
		_, why, err := c.Move.Do(ctx, repo)
		return "", why, err
	}
	out, why, err := c.Land.Do(ctx, repo)
	if out.Already { // from before it was killed
		why = ""
	}
	return "", why, err // the commit has the time of the landing
}

// trial is a chore in a place that is restored for each try.
type trial struct {
	*testing.T
	dir  string // everything a chore writes to
	copy string // the original state of dir
	c    chore
	want string // the undisturbed result
	gits int    // how many it starts
}

// newTrial saves a place's state, and does the chore once undisturbed.
func newTrial(t *testing.T, dir string, c chore) *trial {
	t.Helper()
	y := &trial{T: t, dir: dir, copy: filepath.Join(t.TempDir(), "as-it-was"), c: c}
	y.sh("cp", "-a", dir, y.copy)
	y.want = y.again("undisturbed")
	y.again("counting", y.nth(0, "exit 1"))
	count, err := os.ReadFile(y.file("at"))
	if y.gits = strings.Count(string(count), "\n"); err != nil || y.gits == 0 {
		t.Fatalf("it starts no git: %v", err)
	}
	return y
}

// nth returns a script that counts the gits and replaces the nth.
func (y *trial) nth(n int, does string) string {
	return fmt.Sprintf("exec 8>>%[1]s; flock 8; echo >&8; n=$(wc -l <%[1]s); exec 8>&-\nif [ $n = %[2]d ]; then\n%[3]s\nfi", y.file("at"), n, does)
}

func (y *trial) file(name string) string { return filepath.Join(filepath.Dir(y.copy), name) }

func (y *trial) sh(args ...string) {
	y.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		y.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// restore restores the place.
func (y *trial) restore() {
	y.Helper()
	y.sh("rm", "-rf", y.dir, y.file("at"))
	y.sh("cp", "-a", y.copy, y.dir)
}

// start does the chore in a separate process. Each of its gits begins with a shell script that can
// run the real git.
func (y *trial) start(script string, front ...string) (said string, killed bool) {
	y.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		y.Fatal(err)
	}
	job, err := json.Marshal(y.c)
	text := fmt.Sprintf("#!/bin/sh\ngit=%s\n%s\nexec $git \"$@\"\n", real, script)
	// A program that another test starts meanwhile would have the file open for writing, so that it cannot run.
	syscall.ForkLock.RLock()
	err = errors.Join(err, os.MkdirAll(y.file("bin"), 0o755), atomicfile.Write(y.file("bin/git"), []byte(text), 0o755)) // a git of a killed process may still start
	syscall.ForkLock.RUnlock()
	if err != nil {
		y.Fatal(err)
	}
	argv := append(front, os.Args[0])
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), choreVar+"="+string(job), "PATH="+y.file("bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL || exit.ExitCode() == 128+int(syscall.SIGKILL)
	}
	said = strings.TrimSpace(string(out))
	if err != nil && !killed {
		said = fmt.Sprintf("%s%v: %s", choreFailed, err, said)
	}
	return said, killed
}

// again does the chore in the restored place, and returns its result.
func (y *trial) again(what string, script ...string) string {
	y.Helper()
	y.restore()
	said, killed := y.start(strings.Join(script, "\n"))
	if killed || strings.HasPrefix(said, choreRefused) || strings.HasPrefix(said, choreFailed) {
		y.Fatalf("%s: %s (killed: %v)", what, said, killed)
	}
	return said
}

// complete does the chore once more after a disturbance, and compares the result with the
// undisturbed one.
func (y *trial) complete(what string, look func(what string)) {
	y.Helper()
	said, _ := y.start("")
	for range maxLocks {
		if !y.unlocked(what, said) {
			break
		}
		said, _ = y.start("")
	}
	if said != y.want {
		y.Errorf("%s: the next call says %q, undisturbed it is %q", what, said, y.want)
	}
	find := []string{y.dir, "-name", "*.lock", "-o", "-name", "sluice-index*"}
	// a dead lock on our ref is removed at the ref's next write: TestKeepPassesADeadLock
	if strings.Contains(what, "unlink") {
		find = append([]string{y.dir, "-path", "*/refs/sluice/*", "-prune", "-o", "("}, append(find[1:], ")", "-print")...)
	}
	left, err := exec.Command("find", find...).Output()
	if err != nil || len(left) > 0 {
		y.Errorf("%s: left: %s %v", what, left, err)
	}
	if out, err := exec.Command("git", "-C", y.c.Top, "fsck", "--strict", "--no-dangling").CombinedOutput(); err != nil {
		y.Errorf("%s: git fsck: %s", what, out)
	}
	look(what)
}

// maxLocks is how many locks a git leaves that cannot remove one: of the branch, and of HEAD.
const maxLocks = 2

// unlocked does what a person is told to do about a branch's lock. It may be another git's, so it
// stays until then, and a call that finds it changes nothing.
func (y *trial) unlocked(what, said string) bool {
	y.Helper()
	_, after, found := strings.Cut(said, git.ErrIndexHeld.Error()+": ")
	lock, told, _ := strings.Cut(after, " exists: ")
	if !found || !strings.HasPrefix(said, choreFailed) || told != "wait for that git, or remove the file if none is running, and try again" {
		return false
	}
	if !strings.Contains(what, "unlink") || lock != filepath.Join(y.c.Top, ".git/refs/heads/main.lock") && lock != filepath.Join(y.c.Top, ".git/HEAD.lock") {
		y.Errorf("%s: a person is to remove %s", what, lock)
		return false
	}
	before := y.stands()
	if again, _ := y.start(""); !strings.HasSuffix(again, ": "+after) || y.stands() != before {
		y.Errorf("%s: while there is %s it says %q, and after\n%s\nit is\n%s", what, lock, again, before, y.stands())
	}
	if err := os.Remove(lock); err != nil {
		y.Errorf("%s: %v", what, err)
	}
	return true
}

// stands returns what a person sees of the folder, and our own files in it.
func (y *trial) stands() string {
	y.Helper()
	text := ""
	for _, args := range [][]string{{"git", "-C", y.c.Top, "status", "--porcelain"}, {"git", "-C", y.c.Top, "log", "--oneline", "main"},
		{"git", "-C", y.c.Top, "diff", "--cached"}, {"find", filepath.Join(y.c.Top, ".git"), "-name", "*.lock", "-o", "-name", "sluice-index*"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			y.Errorf("%q: %v", args, err)
		}
		text += string(out)
	}
	return text
}

// killedAtEachGit kills the process before and after each git that it starts, and during that git,
// which continues while the next call already runs.
func (y *trial) killedAtEachGit(look func(what string)) {
	y.Helper()
	for _, program := range []string{"flock", "strace"} {
		if _, err := exec.LookPath(program); err != nil {
			y.Skipf("needs: %s", program)
		}
	}
	for n := 1; n <= y.gits; n++ {
		if left(3) {
			continue
		}
		ways := []struct{ when, does string }{
			{"before", "kill -9 $PPID; exit 1"},
			{"after", `$git "$@"; kill -9 $PPID; exit`},
			{"beside", `kill -9 $PPID; sleep 0.05; exec $git "$@"`},
			{"in the middle of", `kill -9 $PPID; exec strace -f -qq -o /dev/null -e trace=rename -e inject=rename:delay_enter=200000 $git "$@"`},
		}
		if os.Getenv(callsVar) == "" { // the short form
			at := rand.IntN(len(ways))
			ways = ways[at : at+1]
		}
		for _, at := range ways {
			what := fmt.Sprintf("%s killed %s git %d of %d", y.c.Do, at.when, n, y.gits)
			y.restore()
			if said, killed := y.start(y.nth(n, at.does)); !killed {
				y.Errorf("%s: it lived, and says %s", what, said)
			}
			y.complete(what, look)
		}
	}
}

// failing names system calls that fail, for strace, and the disk's error.
type failing struct{ calls, err string }

func faults() []failing {
	return []failing{{"pwrite64", "ENOSPC"}, {"openat,mkdir,mkdirat", "ENOSPC"}, {"fsync,fdatasync", "EIO"},
		{"rename,renameat,renameat2,link,linkat,unlink,unlinkat", "EIO"}, {"ftruncate", "EIO"}}
}

const (
	callsVar   = "SLUICE_CALLS" // "all": each call of each git
	faultsMost = 400            // no process makes so many calls of a kind
	faultsTry  = 4              // in the short form
)

// left reports whether the short form leaves a case out: it tries one of n, another each time.
func left(n int) bool { return os.Getenv(callsVar) == "" && rand.IntN(n) > 0 }

// eachCallFails makes the nth call of a kind fail, once, in one git or in the process itself (git
// 0).
func (y *trial) eachCallFails(look func(what string)) {
	y.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		y.Skip("needs: strace (apt-get install strace)")
	}
	for of := 1; of <= y.gits; of++ { // a write to a pipe never fails so: only files have a size limit
		what := fmt.Sprintf("%s, git %d of %d can write no file", y.c.Do, of, y.gits)
		if left(10) {
			continue
		}
		y.restore()
		if said, _ := y.start(y.nth(of, "trap '' XFSZ; ulimit -f 0")); strings.HasPrefix(said, choreRefused) {
			y.Errorf("%s: the attempt is to blame for the disk: %s", what, said)
		}
		y.complete(what, look)
	}
	if os.Getenv(callsVar) == "" {
		for range faultsTry {
			all := faults()
			y.oneCallFails(rand.IntN(y.gits+1), all[rand.IntN(len(all))], 1+rand.IntN(6), look)
		}
		return
	}
	tried := 0
	for of := range y.gits + 1 {
		for _, f := range faults() {
			n := 1
			for n < faultsMost && y.oneCallFails(of, f, n, look) && !y.Failed() {
				n++
			}
			tried += n - 1
		}
	}
	y.Logf("%s: %d calls failed", y.c.Do, tried)
}

func (y *trial) oneCallFails(of int, f failing, n int, look func(what string)) (hit bool) {
	y.Helper()
	trace := y.file("trace")
	what := fmt.Sprintf("%s, git %d of %d: %s %d: %s", y.c.Do, of, y.gits, f.calls, n, f.err)
	strace := []string{"strace", "-f", "-qq", "-o", trace, "-e", "trace=" + f.calls, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", f.calls, f.err, n)}
	y.restore()
	_ = os.Remove(trace)
	var said string
	if of == 0 {
		said, _ = y.start("", append([]string{"env", "GOMAXPROCS=1"}, append(strace, "-b", "execve")...)...)
	} else {
		said, _ = y.start(y.nth(of, "exec "+strings.Join(strace, " ")+` $git "$@"`))
	}
	calls, err := os.ReadFile(trace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		y.Fatal(err)
	}
	if hit = strings.Contains(string(calls), "(INJECTED)"); !hit {
		return false
	}
	if strings.HasPrefix(said, choreRefused) {
		y.Errorf("%s: the attempt is to blame for the disk: %s", what, said)
	}
	y.complete(what, look)
	return true
}

// tookPlace is a person's folder in which an agent has worked: staged, committed, ignored, left.
func tookPlace(t *testing.T) (dir string, c chore) {
	t.Helper()
	r := newRepo(t)
	r.write("a.txt", "a person's own\n")
	r.run("add", "a.txt")
	r.write("a.txt", "and once more\n")
	r.write(".env", "secret")
	r.write(".git/info/exclude", ".env\n")
	r.try(r.git.Close())
	c = chore{Top: r.dir, Scratch: filepath.Join(filepath.Dir(r.dir), "scratch"), Order: Order{Run: "w-1", Step: "X-1", N: 1, Base: r.run("rev-parse", "HEAD")}}
	return filepath.Dir(r.dir), c
}

// TestTakingIsCompleted: whatever interrupts a taking, the next one returns the same commit, and
// the folder, its index and its branch are unchanged.
func TestTakingIsCompleted(t *testing.T) {
	conform.Rule(t, "9-one-tree killed", "a taking that was killed anywhere, or whose disk failed, is made again: the same commit, nothing lost, nothing left")
	for _, do := range []string{"find", "take"} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			dir, c := tookPlace(t)
			p := &person{t: t, dir: c.Top}
			c.Do = "find"
			if do == "take" {
				found, _, err := c.do(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.Do, c.Was, c.Order.Found = do, Before{Found: found}, found
				p.write("sub/b.txt", "work\n")
				p.git("commit", "-qm", "work", "sub/b.txt")
				p.write("left.txt", "left\n")
				p.write("build/o", "ignored")
				c.Tip = p.git("rev-parse", "HEAD")
			}
			status, refs := p.status(), p.git("rev-parse", "main")
			y := newTrial(t, dir, c)
			look := func(what string) {
				kept := map[string]string{"find": "refs/sluice/found/w-1/X-1.1", "take": "refs/sluice/taken/w-1/X-1.1"}[do]
				if got := p.git("rev-parse", kept); got != y.want {
					t.Errorf("%s: kept as %s", what, got)
				}
				if got := p.status(); got != status || p.git("rev-parse", "main") != refs || p.read(".env") != "secret" {
					t.Errorf("%s: the folder was\n%s\nand is\n%s", what, status, got)
				}
			}
			y.killedAtEachGit(look)
			y.eachCallFails(look)
		})
	}
}

// TestReceivingIsCompleted is the same for the commits of a sandboxed launch.
func TestReceivingIsCompleted(t *testing.T) {
	t.Parallel()
	s := newPlace(t, "sha1")
	s.make()
	s.put("b/c.txt", "two\n")
	s.own("add", "-A")
	s.own("commit", "-q", "-m", "second")
	s.put("left.txt", "left\n")
	if err := s.repo.Close(); err != nil {
		t.Fatal(err)
	}
	status := s.git("status", "--porcelain")
	y := newTrial(t, filepath.Dir(s.top), chore{Do: "receive", Top: s.top, Scratch: filepath.Join(filepath.Dir(s.top), "scratch"), Own: s.p})
	look := func(what string) {
		if got := s.git("rev-parse", "refs/sluice/tip/w-1/A.1"); got != y.want || got != s.own("rev-parse", "HEAD") {
			t.Errorf("%s: kept as %s", what, got)
		}
		if got := s.git("status", "--porcelain"); got != status || s.git("rev-parse", "main") != s.p.Base {
			t.Errorf("%s: the checkout was\n%s\nand is\n%s", what, status, got)
		}
	}
	y.killedAtEachGit(look)
	y.eachCallFails(look)
}

// TestMovingIsCompleted is the same for the branch, and for a landing: the branch has the work or
// not, the person's changes stay, and a commit of all changes undoes nothing.
func TestMovingIsCompleted(t *testing.T) {
	for _, name := range []string{"advance", "land", "forged"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, w, l := worked(t)
			do, commits := name, "2"
			if name == "forged" { // such a landing is always refused
				w.git("commit", "-q", "--allow-empty", "-m", "x\n\nSluice-Gate: G pass by ann (signed)")
				l.Tip, do, commits = w.git("rev-parse", "HEAD"), "land", "1"
			}
			c := chore{Do: do, Top: p.dir, Scratch: filepath.Join(filepath.Dir(p.dir), "scratch"), Land: l}
			if do == "advance" {
				from, to := p.taken()
				c.Move = Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}
			}
			p.busy()
			y := newTrial(t, filepath.Dir(p.dir), c)
			tree := p.git("rev-parse", "main^{tree}")
			y.killedAtEachGit(y.moved(p, tree, commits))
			y.eachCallFails(y.moved(p, tree, commits))
			if forged := strings.Contains(y.want, "which only sluice may write"); forged != (name == "forged") {
				t.Errorf("it says %q", y.want)
			}
		})
	}
}

func (y *trial) moved(p *person, tree, commits string) func(what string) {
	tip := y.c.Land.Tip
	if y.c.Do == "advance" {
		tip = y.c.Move.To
	}
	judged := p.git("rev-list", "--objects", "--no-object-names", tip)
	return func(what string) {
		for object := range strings.FieldsSeq(p.git("rev-list", "--objects", "--no-object-names", "main")) {
			if !strings.Contains(judged, object) && p.git("cat-file", "-t", object) == "blob" {
				y.Errorf("%s: the branch has %s, which nobody has judged", what, object)
			}
		}
		if got := p.git("rev-parse", "main^{tree}"); got != tree {
			y.Errorf("%s: the branch has %s", what, p.git("ls-tree", "-r", "main"))
		}
		if got := p.status(); got != busyStatus || p.read(".env") != "secret\n" {
			y.Errorf("%s: status:\n%s\nwant\n%s", what, got, busyStatus)
		}
		if y.c.Do == "land" && commits != "1" {
			if commit, there, err := LandedAs(y.Context(), p.open(), y.c.Land.Run, y.c.Land.Onto); err != nil || !there || commit != p.git("rev-parse", "main") {
				y.Errorf("%s: landed as %s, there: %v, %v", what, commit, there, err)
			}
		}
		if n := p.git("rev-list", "--count", "main"); n != commits {
			y.Errorf("%s: %s commits", what, n)
		}
	}
}

// TestMovingIsCompletedAfterMore: killed after the branch but before the index moved, and then each
// git that would complete it fails once.
func TestMovingIsCompletedAfterMore(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	from, to := p.taken()
	p.busy()
	c := chore{Do: "advance", Top: p.dir, Scratch: filepath.Join(filepath.Dir(p.dir), "scratch"),
		Move: Advance{Branch: "refs/heads/main", From: from, To: to, Top: p.dir}}
	y := newTrial(t, filepath.Dir(p.dir), c)
	for n := 1; n <= y.gits; n++ {
		if left(3) {
			continue
		}
		what := fmt.Sprintf("git %d", n)
		y.restore()
		if said, killed := y.start(`case "$*" in *update-ref*refs/heads/main*) $git "$@"; kill -9 $PPID; exit;; esac`); !killed {
			t.Fatal(said)
		}
		said, _ := y.start(y.nth(n, `echo "fatal: x: Input/output error" >&2; exit 128`))
		if strings.HasPrefix(said, choreRefused) {
			t.Errorf("%s: %s", what, said)
		}
		y.complete(what, y.moved(p, p.git("rev-parse", "main^{tree}"), "2"))
	}
}

// TestLandingThatCannotWriteFiles: if the git that writes the files fails, those it began are
// restored.
func TestLandingThatCannotWriteFiles(t *testing.T) {
	t.Parallel()
	p, _, l := worked(t)
	p.busy()
	y := newTrial(t, filepath.Dir(p.dir), chore{Do: "land", Top: p.dir, Scratch: filepath.Join(filepath.Dir(p.dir), "scratch"), Land: l})
	tree := p.git("rev-parse", "main^{tree}")
	y.restore()
	before := y.stands()
	said, _ := y.start(`case " $* " in *" checkout-index "*) [ -e ` + y.file("at") + ` ] || { : >` + y.file("at") + `; trap '' XFSZ; ulimit -f 0; };; esac`)
	if got := y.stands(); !strings.HasPrefix(said, choreFailed) || got != before {
		t.Errorf("it says %q, and after\n%s\nit is\n%s", said, before, got)
	}
	y.complete("no file can be written", y.moved(p, tree, "2"))
}
