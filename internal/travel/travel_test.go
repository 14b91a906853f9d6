package travel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/cluster"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

const (
	journalID = "0123456789abcdef0123456789abcdef"
	run       = "w-1"
)

// machine is a repo with its state folder and its Work.
type machine struct {
	*testing.T
	root, state string
	git         *git.Repo
	packs       *cluster.Packs
	*Work
}

// newMachine makes a machine with a clone of another's repo, or a repo with a first commit.
// staging is where worktrees are made.
const staging = ".git/made"

func newMachine(t *testing.T, servers *natstest.Servers, of *machine) *machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{T: t, root: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state")}
	if err := errors.Join(os.Mkdir(m.root, 0o755), os.Mkdir(m.state, 0o700)); err != nil {
		t.Fatal(err)
	}
	if of == nil {
		m.run("init", "-q", "-b", "main")
		m.write("first.txt", "first\n")
		m.run("add", "-A")
		m.run("commit", "-qm", "first")
	} else {
		m.run("clone", "-q", "--no-local", of.root, ".")
	}
	if m.git, err = git.OpenWith(context.Background(), m.root, git.Options{Scratch: filepath.Join(dir, "scratch"),
		Staging: filepath.Join(m.root, staging)}); err != nil {
		t.Fatal(err)
	}
	conn, err := cluster.Connect(cluster.Servers{URLs: servers.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); _ = m.git.Close() })
	m.packs = conn.Packs(journalID, 1)
	m.packs.Patience = 2 * time.Second
	m.Work = New(Options{Layout: layout.Layout{Root: m.root, State: m.state, Top: m.root}, Notes: &health.Notes{Log: t.Logf},
		Git: m.git, Packs: m.packs})
	return m
}

func (m *machine) run(args ...string) string { return m.in(m.root, args...) }

func (m *machine) in(dir string, args ...string) string {
	m.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (m *machine) write(name, text string) {
	m.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) worktree() string { return filepath.Join(m.root, ".workflow", "worktrees", run) }

// begin makes the run's own worktree.
func (m *machine) begin() {
	m.Helper()
	base := m.run("rev-parse", "HEAD")
	if err := os.MkdirAll(filepath.Dir(m.worktree()), 0o755); err != nil {
		m.Fatal(err)
	}
	m.run("update-ref", git.Own("base", run), base)
	m.run("worktree", "add", "-q", "-b", "sluice/"+run, m.worktree())
}

// take has an attempt of a step add a file, whose work is taken and not yet passed.
func (m *machine) take(step, file string) result {
	m.Helper()
	return m.takeIn(m.worktree(), "sluice/"+run, step, file)
}

func (m *machine) takeIn(top, branch, step, file string) result {
	m.Helper()
	head := m.in(top, "rev-parse", "HEAD")
	if err := os.WriteFile(filepath.Join(top, file), []byte(file+"\n"), 0o644); err != nil {
		m.Fatal(err)
	}
	m.in(top, "add", "-A")
	taken := m.in(top, "commit-tree", m.in(top, "write-tree"), "-p", head, "-m", step)
	m.in(top, "reset", "-q")
	m.run("update-ref", git.Own("taken", layout.AttemptName(run, step, 1)), taken)
	for what, v := range map[string]any{
		"begin": tree.Begin{Dir: top, Top: top, Head: head, Found: head, On: "refs/heads/" + branch},
		"files": tree.Covered{Key: run + "/" + step, Dir: top, Top: top, Found: head, Taken: tree.Taken{Commit: taken}},
	} {
		if err := layout.Save(m.opt.AttemptFile(run, step, 1, what), v); err != nil {
			m.Fatal(err)
		}
	}
	if err := layout.Save(m.opt.PIDFile(run+"/"+step+"#1.1"), "its launch"); err != nil {
		m.Fatal(err)
	}
	if err := layout.Save(m.folder(), map[string]any{"taken": taken, "n": int64(1) << 60}); err != nil {
		m.Fatal(err)
	}
	return result{run, step, 1, taken}
}

// made is work with these results, the newest first.
func made(digests ...string) daemon.Work { return daemon.Work{Digests: digests} }

// folder is the file about the run's worktree.
func (m *machine) folder() string {
	return filepath.Join(m.state, layout.AttemptsDir, run, "folder-"+layout.HexSum([]byte(m.worktree()))[:16])
}

func (m *machine) mustSave(results ...result) {
	m.Helper()
	if err := m.save(m.Context(), run, did{results: results}); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) lacking(err error, want string) {
	m.Helper()
	var l *Lacking
	if !errors.As(err, &l) || !strings.Contains(err.Error(), want) {
		m.Errorf("%v, want %q", err, want)
	}
}

// Work that one machine stores is on another as it was: commits, worktree, files.
func TestTravels(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	a.mustSave(one)
	a.in(a.worktree(), "reset", "-q", "--hard", one.digest) // it has passed
	a.mustSave()
	two := a.take("B", "b.txt")
	a.mustSave(two)

	digests := []string{two.digest, one.digest}
	for range 2 { // a second call finds it there
		if err := b.Bring(t.Context(), run, made(digests...)); err != nil {
			t.Fatal(err)
		}
		for ref, want := range map[string]string{
			git.Own("taken", run+"/A.1"): one.digest, git.Own("taken", run+"/B.1"): two.digest,
			git.Own("base", run): a.run("rev-parse", "main"), git.Own("found", run+"/A.1"): a.run("rev-parse", "main"),
			git.Own("found", run+"/B.1"): one.digest, "refs/heads/sluice/" + run: one.digest,
		} {
			if got := b.run("rev-parse", ref); got != want {
				t.Errorf("%s is at %s, want %s", ref, got, want)
			}
		}
		if got := b.in(b.worktree(), "status", "--porcelain"); got != "?? b.txt" {
			t.Errorf("the worktree:\n%s", got)
		}
	}
	if got := b.run("status", "--porcelain"); got != "" {
		t.Errorf("the person's checkout:\n%s", got)
	}
	var begin tree.Begin
	if err := layout.Load(b.opt.AttemptFile(run, "B", 1, "begin"), &begin); err != nil || begin.Top != b.worktree() {
		t.Errorf("it begins in %s, %v", begin.Top, err)
	}
	data, err := os.ReadFile(b.folder())
	if err != nil || !strings.Contains(string(data), "1152921504606846976") {
		t.Errorf("the folder's file: %s, %v", data, err)
	}

	// it goes on there, and comes back
	b.in(b.worktree(), "add", "-A")
	b.in(b.worktree(), "reset", "-q", "--hard", two.digest)
	three := b.take("C", "c.txt")
	b.mustSave(three)
	if err := os.WriteFile(filepath.Join(a.worktree(), "mine.txt"), []byte("of a killed agent\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := a.Bring(t.Context(), run, made(three.digest, two.digest, one.digest)); err != nil {
		t.Fatal(err)
	}
	if got := a.in(a.worktree(), "status", "--porcelain"); got != "?? c.txt" {
		t.Errorf("the first machine's worktree:\n%s", got)
	}
	if got := a.run("ls-tree", "--name-only", git.Own("salvage", run+"/brought.1.before")); !strings.Contains(got, "mine.txt") {
		t.Errorf("what a killed agent left is not kept:\n%s", got)
	}
}

// A kill has left a worktree where it is made, with the run's branch. The branch has moved on since, and
// the work comes all the same.
func TestHalfMadeWorktree(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	a.in(a.worktree(), "reset", "-q", "--hard", one.digest)
	a.mustSave(one)
	b.run("branch", "sluice/"+run)
	half := filepath.Join(b.root, staging, fmt.Sprintf("%x", sha256.Sum256([]byte(b.worktree())))[:16], run)
	b.run("worktree", "add", "-q", "--no-checkout", half, "sluice/"+run)
	if err := b.Bring(t.Context(), run, made(one.digest)); err != nil {
		t.Fatal(err)
	}
	if got := b.in(b.worktree(), "rev-parse", "HEAD"); got != one.digest {
		t.Errorf("the worktree is at %s", got)
	}
	if got := b.in(b.worktree(), "status", "--porcelain"); got != "" {
		t.Errorf("the worktree:\n%s", got)
	}
}

// Work that is not stored, or is something else, is a person's matter, and leaves nothing.
func TestLacking(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	digests := []string{one.digest}

	// what this machine has made itself, before there were packs, is stored then
	if err := a.Bring(t.Context(), run, made(digests...)); err != nil {
		t.Fatal(err)
	}
	s, digest, err := a.kept(run)
	if err != nil || s.pack(one.digest) == nil {
		t.Fatalf("%+v, %v", s, err)
	}

	// every pack, and the sheet, is bytes of somebody else's
	nc, err := nats.Connect(servers.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(t.Context(), "SLUICE_PACKS_"+journalID)
	if err != nil {
		t.Fatal(err)
	}
	refs := b.run("for-each-ref")
	t.Run("lacks", func(t *testing.T) {
		for name, object := range map[string]string{"sheet": digest, "pack": s.Packs[len(s.Packs)-1].Object} {
			was, err := store.GetBytes(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			bad := bytes.Clone(was)
			bad[len(bad)/2] ^= 1
			if _, err := store.PutBytes(t.Context(), object, bad); err != nil {
				t.Fatal(err)
			}
			b.lacking(b.Bring(t.Context(), run, made(digests...)), "other bytes")
			if err := store.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			b.lacking(b.Bring(t.Context(), run, made(digests...)), "do not have it")
			if _, err := store.PutBytes(t.Context(), object, was); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
	b.lacking(b.Bring(t.Context(), run, made(one.digest, strings.Repeat("ab", 20))), "do not have it")
	if layout.IsDir(b.worktree()) || layout.IsFile(b.opt.AttemptFile(run, "A", 1, "begin")) {
		t.Error("part of the work is there")
	}
	for line := range strings.SplitSeq(b.run("for-each-ref"), "\n") {
		if !strings.Contains(refs, line) && !strings.HasPrefix(line, b.run("rev-parse", "main")) { // that was here before
			t.Errorf("it left %s", line)
		}
	}
	if err := b.Bring(t.Context(), run, made(digests...)); err != nil {
		t.Errorf("now it is all there: %v", err)
	}
}

// A sheet of somebody else's can name no file and no ref but those of its run.
func TestForgedSheets(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	a.begin()
	one := a.take("A", "a.txt")
	a.mustSave(one)
	good, _, err := a.kept(run)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(change func(*sheet)) error {
		t.Helper()
		s := good
		s.Files, s.Packs, s.Places, s.Runs = maps.Clone(s.Files), slices.Clone(s.Packs), slices.Clone(s.Places), slices.Clone(s.Runs)
		change(&s)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.parse(bytes.NewReader(data), run)
		return err
	}
	if err := parse(func(*sheet) {}); err != nil {
		t.Fatal(err)
	}
	file := func(name string) func(*sheet) {
		return func(s *sheet) { s.Files[name] = json.RawMessage("{}") }
	}
	for what, change := range map[string]func(*sheet){
		"another run":         func(s *sheet) { s.Run = "w-2" },
		"a run beside it":     func(s *sheet) { s.Runs = append(s.Runs, "w-2") },
		"a file outside":      file("../x.begin"),
		"a file below":        file("attempts/w-1/../../../x.begin"),
		"an absolute file":    file("/etc/x.begin"),
		"another run's file":  file("attempts/w-2/A.1.begin"),
		"another file":        file("attempts/w-1/A.1.level"),
		"another run's place": file("workspaces/w-2"),
		"a branch for a ref":  func(s *sheet) { s.Packs[0].Refs = []string{"refs/heads/main"} },
		"another run's ref":   func(s *sheet) { s.Packs[0].Refs = []string{git.Own("taken", "w-2/A.1")} },
		"no ref":              func(s *sheet) { s.Packs[0].Refs = nil },
		"a child of another":  func(s *sheet) { s.Runs = append(s.Runs, "w-2.a.1") },
		"an option":           func(s *sheet) { s.Packs[0].Commit = "--all" },
		"a base of nothing":   func(s *sheet) { s.Packs[0].Bases = []string{"HEAD"} },
		"a tag for a branch":  func(s *sheet) { s.Places[0].Branch = "refs/tags/x" },
		"a folder elsewhere":  func(s *sheet) { s.Places[0].Top = "/etc" },
		"no root":             func(s *sheet) { s.Root = "" },
	} {
		if err := parse(change); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := a.parse(strings.NewReader(`{"run": "w-1"} x`), run); err == nil {
		t.Error("more than JSON is taken")
	}
}

// What is stored of a run goes once the run is landed or unknown; what others use stays.
func TestSweep(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	a.begin()
	one := a.take("A", "a.txt")
	a.mustSave(one)
	stored := func() []cluster.Named {
		t.Helper()
		list, err := a.packs.Names(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	s, _, err := a.kept(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, keeps := range []struct{ live, known []string }{{[]string{run}, nil}, {nil, []string{run}}} {
		if err := a.swept(t.Context(), keeps.live, keeps.known); err != nil || len(stored()) != 1 {
			t.Fatalf("%v: %v, %v", keeps, stored(), err)
		}
	}
	// another run has the same base
	other := s
	other.Run, other.Runs, other.Packs = "w-2", []string{"w-2"}, slices.Clone(s.Packs[:1])
	other.Packs[0].Refs, other.Places, other.Files = []string{git.Own("base", "w-2")}, nil, nil
	data, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := a.packs.Put(t.Context(), bytes.NewReader(data))
	if err == nil {
		err = a.packs.Name(t.Context(), nameOf("w-2", one.digest), digest)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.run("update-ref", git.Own("landed", run), one.digest)
	if err := a.swept(t.Context(), []string{"w-2"}, []string{run, "w-2"}); err != nil {
		t.Fatal(err)
	}
	if left := stored(); len(left) != 1 || left[0].Name != nameOf("w-2", one.digest) {
		t.Errorf("%v is left", left)
	}
	if _, err := a.packs.Get(t.Context(), s.Packs[0].Object); err != nil {
		t.Errorf("what another run uses is gone: %v", err)
	}
	within, cancel := context.WithTimeout(t.Context(), localIn)
	defer cancel()
	var unfit *cluster.Unfit
	if _, err := a.packs.Get(within, s.Packs[1].Object); !errors.As(err, &unfit) {
		t.Errorf("the work of the landed run is still stored: %v", err)
	}
	// a sheet is read once
	if err := a.packs.Remove(t.Context(), digest); err != nil {
		t.Fatal(err)
	}
	if err := a.swept(t.Context(), []string{"w-2"}, []string{run, "w-2"}); err != nil || len(stored()) != 1 {
		t.Errorf("%v: %v", stored(), err)
	}
}

// stage is a World whose every check has a result.
type stage struct {
	daemon.World
	digest  string
	carried int
}

func (s *stage) Carry(_ context.Context, j job.Job, _ func(engine.Event)) engine.Event {
	s.carried++
	if j.Kind == engine.DoWrite {
		return engine.FileWritten{Run: j.Run, ID: j.Key}
	}
	return engine.ProcessEnded{Run: j.Run, Key: j.Key, Check: &engine.CheckResult{OK: true, Digest: s.digest}}
}

func (s *stage) DigestNow(context.Context, job.Reviewed) (string, error) { return s.digest, nil }

// check is the check of step A.
func check(step string) job.Job {
	st := &engine.Step{ID: step, Run: &engine.Command{}, Outputs: []engine.Output{{}}}
	return job.Job{Effect: engine.Effect{Kind: engine.DoRun, Key: "w-1/" + step, Run: run,
		Proc: &engine.Proc{Kind: engine.ProcCheck, Step: step}},
		Spec: &engine.Spec{Steps: []*engine.Step{st}}, Attempt: &engine.Attempt{N: 1, Key: run + "/" + step + "#1.1"}}
}

// The event that names a commit comes once the commit is stored, however long the servers are silent.
func TestStoredFirst(t *testing.T) {
	conform.Rule(t, "13-cluster stored first", "a result is held back until its commit is stored")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	x := a.World(&stage{digest: one.digest})
	servers.Stop(0)
	got := make(chan engine.Event, 1)
	go func() { got <- x.Carry(t.Context(), check("A"), nil) }()
	for until := time.Now().Add(time.Minute); a.packs.Stalled() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("nobody is told that it waits")
		}
	}
	select {
	case ev := <-got:
		t.Fatalf("not stored, and it is named: %+v", ev)
	default:
	}
	servers.Continue(0)
	if ev := <-got; ev == nil {
		t.Fatal("no event")
	}
	if err := b.Bring(t.Context(), run, made(one.digest)); err != nil {
		t.Error(err)
	}
	servers.Stop(0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if ev := x.Carry(ctx, check("A"), nil); ev != nil { // the loop ends: it stays owed
		if s, _, err := a.kept(run); err != nil || s.lacks(made(one.digest)) != "" {
			t.Errorf("not stored, and it is named: %+v", ev)
		}
	}
}

// A check of work that another machine had, and did not store, fails: what is in the folder here is
// something else.
func TestLeftElsewhere(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	a.begin()
	one := a.take("A", "a.txt")
	inner := &stage{digest: one.digest}
	x := a.World(inner)
	again := check("A")
	again.Effect.Key, again.Attempt.Key = run+"/A again", run+"/A#1.2" // its first launch was here, another machine made the second
	for _, j := range []job.Job{check("B"), again} {
		ev, ok := x.Carry(t.Context(), j, nil).(engine.ProcessEnded)
		if !ok || ev.Check == nil || ev.Check.OK || inner.carried != 0 {
			t.Errorf("%s: %+v was checked here", j.Attempt.Key, ev)
		}
	}
	sent := check("A")
	sent.Effect.Key, sent.Attempt.Key = run+"/A sent", run+"/A#1.3"
	pid := a.opt.PIDFile(sent.Attempt.Key)
	if err := layout.Save(pid+layout.SentMark, "its order"); err != nil {
		t.Fatal(err)
	}
	if ev, ok := x.Carry(t.Context(), sent, nil).(engine.ProcessEnded); !ok || ev.Check.OK || inner.carried != 0 {
		t.Errorf("its worker has returned nothing, and %+v", ev)
	}
	if err := layout.Save(pid+layout.BackMark, true); err != nil {
		t.Fatal(err)
	}
	offered := check("A")
	offered.Effect.Key, offered.Attempt.Key, offered.Attempt.Offered = run+"/A again", "", true
	for i, j := range []job.Job{check("A"), sent, offered} {
		ev, ok := x.Carry(t.Context(), j, nil).(engine.ProcessEnded)
		if !ok || !ev.Check.OK || inner.carried != i+1 {
			t.Errorf("%s: %+v", j.Attempt.Key, ev)
		}
	}
}

// move is the write that moves the branch to step A's work.
func move() job.Job {
	w := &engine.Write{ID: run + "/A#1.advance", Kind: engine.WriteAdvance, Step: "A", N: 1}
	return job.Job{Effect: engine.Effect{Kind: engine.DoWrite, Key: w.ID, Run: run, Write: w}}
}

// The branch has moved, and a name stands for a sheet from before that: a deposed machine has named it,
// or a server answers what it had. It does not count: no branch stays behind or goes back, no folder is
// replaced.
func TestOlderSheet(t *testing.T) {
	conform.Rule(t, "13-cluster packs", "a sheet that lacks a move of the journal does not count")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	a.mustSave(one)
	if err := b.Bring(t.Context(), run, made(one.digest)); err != nil { // it led for a while
		t.Fatal(err)
	}
	_, before, err := a.kept(run)
	if err != nil {
		t.Fatal(err)
	}
	a.in(a.worktree(), "reset", "-q", "--hard", one.digest)
	if ev := a.World(&stage{}).Carry(t.Context(), move(), nil); ev == nil {
		t.Fatal("the move has no event")
	}
	a.take("B", "b.txt") // a launch's work, not checked yet
	work := daemon.Work{Digests: []string{one.digest}, Moved: []string{move().Key}}
	for _, id := range append(work.Digests, work.Moved...) {
		if err := a.packs.Name(t.Context(), nameOf(run, id), before); err != nil {
			t.Fatal(err)
		}
	}
	b.lacking(b.Bring(t.Context(), run, work), "what is stored lacks "+move().Key)
	for _, m := range []*machine{a, b} { // the first has made all of it, and names it anew
		if err := m.Bring(t.Context(), run, work); err != nil {
			t.Fatal(err)
		}
		if now := m.in(m.worktree(), "rev-parse", "HEAD"); now != one.digest {
			t.Errorf("the branch is at %s", now)
		}
	}
	if got := a.in(a.worktree(), "status", "--porcelain"); got != "?? b.txt" {
		t.Errorf("the launch's work is gone: %s", got)
	}
}

// Another machine led meanwhile and stored something: its work replaces what a launch has left in the
// folder here. That launch's work is not checked, as what is there is not its own.
func TestReplacedWork(t *testing.T) {
	conform.Rule(t, "13-cluster stored first", "a folder that was replaced passes for no launch's work")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	a.mustSave(one)
	a.take("B", "b.txt") // signalled, not checked yet
	if err := b.Bring(t.Context(), run, made(one.digest)); err != nil {
		t.Fatal(err)
	}
	b.in(b.worktree(), "add", "-A")
	b.in(b.worktree(), "reset", "-q", "--hard", one.digest)
	if ev := b.World(&stage{}).Carry(t.Context(), move(), nil); ev == nil {
		t.Fatal("the move has no event")
	}
	work := daemon.Work{Digests: []string{one.digest}, Moved: []string{move().Key}}
	if err := a.Bring(t.Context(), run, work); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(a.opt.AttemptFile(run, "B", 1, "files")); err != nil { // it was not taken
		t.Fatal(err)
	}
	inner := &stage{digest: one.digest}
	x := a.World(inner)
	ev, ok := x.Carry(t.Context(), check("B"), nil).(engine.ProcessEnded)
	if !ok || ev.Check == nil || ev.Check.OK || inner.carried != 0 {
		t.Errorf("%+v was checked over a folder of another machine's", ev)
	}
	again := check("B")
	again.Effect.Key, again.Attempt.Key = run+"/B again", run+"/B#1.2"
	if err := layout.Save(a.opt.PIDFile(again.Attempt.Key), "its next launch"); err != nil {
		t.Fatal(err)
	}
	if ev, ok := x.Carry(t.Context(), again, nil).(engine.ProcessEnded); !ok || !ev.Check.OK || inner.carried != 1 {
		t.Errorf("the next launch's work: %+v", ev)
	}
}

// While the work of a run is not here, none of its effects begins and nobody passes it; others do.
func TestAwaited(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	inner := &stage{digest: one.digest}
	x := b.World(inner)
	if why := x.Brought(t.Context(), "w-2", made("no commit")); why != "" {
		t.Errorf("a result without a commit needs nothing, and %s", why)
	}
	if why := x.Brought(t.Context(), run, made(one.digest)); !strings.Contains(why, "not on this machine") {
		t.Fatalf("%q", why)
	}
	within, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if ev := x.Carry(within, check("A"), nil); ev != nil || inner.carried != 0 {
		t.Errorf("%+v, carried %d times", ev, inner.carried)
	}
	_, err := x.DigestNow(t.Context(), job.Reviewed{Run: run})
	b.lacking(err, "not on this machine")
	if _, err := x.DigestNow(t.Context(), job.Reviewed{Run: "w-2"}); err != nil {
		t.Error(err)
	}
	a.mustSave(one)
	if ev := x.Carry(t.Context(), check("A"), nil); ev == nil || inner.carried != 1 {
		t.Errorf("its work is there, and %+v", ev)
	}
}

// Two effects of a run wait for its work. What the second finds is not brought again over what the first
// has done with it.
func TestBroughtOnce(t *testing.T) {
	t.Parallel()
	a := newMachine(t, natstest.Start(t, 1), nil)
	x := a.World(&stage{})
	a.away[run] = made(strings.Repeat("a", 40)) // it is stored nowhere
	unlock := a.one(tried + run)                // the first is at it
	second := make(chan error, 1)
	go func() { second <- x.try(t.Context(), run) }()
	time.Sleep(100 * time.Millisecond)
	a.mu.Lock()
	delete(a.away, run)
	a.mu.Unlock()
	unlock()
	if err := <-second; err != nil {
		t.Errorf("brought again: %v", err)
	}
}

// A person's branch is left alone: the run waits until it has the work.
func TestPersonsCheckout(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	one := a.takeIn(a.root, "main", "A", "a.txt")
	a.mustSave(one)
	before := b.run("rev-parse", "main")
	b.lacking(b.Bring(t.Context(), run, made(one.digest)), "branch main here lacks "+one.digest[:12])
	if b.run("rev-parse", "main") != before || b.run("status", "--porcelain") != "" {
		t.Error("the person's checkout was changed")
	}
	b.run("merge", "-q", one.digest) // it is there by its ref
	if err := b.Bring(t.Context(), run, made(one.digest)); err != nil {
		t.Error(err)
	}
}

// What a remote has is not sent: a clone has it, or a person is told to fetch it.
func TestThin(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	origin := newMachine(t, servers, nil)
	old := newMachine(t, servers, origin)
	origin.write("large.txt", strings.Repeat("line\n", 10_000)+strings.Repeat("0123456789abcdef", 64))
	origin.run("add", "-A")
	origin.run("commit", "-qm", "large")
	a, b := newMachine(t, servers, origin), newMachine(t, servers, origin)
	a.begin()
	one := a.take("A", "a.txt")
	a.mustSave(one)
	s, _, err := a.kept(run)
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Packs[0]; !slices.Equal(p.Bases, []string{a.run("rev-parse", "origin/main")}) {
		t.Errorf("the first pack is built on %v", p.Bases)
	}
	if err := b.Bring(t.Context(), run, made(one.digest)); err != nil {
		t.Error(err)
	}
	old.lacking(old.Bring(t.Context(), run, made(one.digest)), "this clone lacks")
	old.run("fetch", "-q")
	if err := old.Bring(t.Context(), run, made(one.digest)); err != nil {
		t.Error(err)
	}
}

// TestAwaitedAfterAnEnd: the service ends while the work is brought. The loop acts once more before it ends: nothing of
// the run begins without its work.
func TestAwaitedAfterAnEnd(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, servers, nil)
	b := newMachine(t, servers, a)
	a.begin()
	one := a.take("A", "a.txt")
	a.mustSave(one)
	inner := &stage{digest: one.digest}
	x := b.World(inner)
	ending, end := context.WithCancel(t.Context())
	end()
	if why := x.Brought(ending, run, made(one.digest)); why != "" {
		t.Fatalf("a person has to see to it: %q", why)
	}
	within, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next := check("B") // its launch, after A has passed
	next.Proc.Kind = engine.ProcStep
	ev := x.Carry(within, next, nil)
	if _, err := os.Stat(b.worktree()); inner.carried > 0 && err != nil {
		t.Errorf("%+v was carried out, and its work is not here: %v", ev, err)
	}
}
