//go:build linux || darwin

package world

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/tools/conform"
)

const treeSpec = `
workflow: {id: w}
steps:
  - id: A
    agent: {type: writer, worktree: trees/a, branch: work/a}
    run: "pwd -P >cwd.txt; git rev-parse --abbrev-ref HEAD >branch.txt"
    signal: {type: git_commit, value: "[A-DONE]"}
    next_step: B
  - id: B
    agent: {type: writer, worktree: sub/}
    run: "pwd -P >cwd.txt"
    next_step: C
  - id: C
    run: "true"
    signal: {type: git_commit, value: "[DONE]"}
    next_step: DONE
`

func TestWorktrees(t *testing.T) {
	conform.Rule(t, "001 agent.settings", "folder")
	conform.Rule(t, "1-language worktree", "made of its branch where it is missing, used as it is where it is there")
	conform.Rule(t, "1-language worktree", "made of its branch; a plain folder used as it is")
	conform.Rule(t, "004 §3 agent.worktree", "relative to the root")
	b := newBench(t, treeSpec)
	b.put("sub/file", "x")
	if trees := b.e.Trees(b.ctx(), b.spec); len(trees) != 1 || trees["sub"] != "." {
		t.Errorf("trees %v", trees)
	}
	for n := range 2 {
		if ev := b.carry(b.stepJob("A", n+1, 1)); ev.Exit.Code != 0 {
			t.Fatalf("%+v %s", ev.Exit, ev.Output)
		}
	}
	if got := b.get("trees/a/cwd.txt"); got != b.path("trees/a")+"\n" {
		t.Errorf("cwd %q", got)
	}
	if got := b.get("trees/a/branch.txt"); got != "work/a\n" {
		t.Errorf("branch %q", got)
	}
	b.carry(b.stepJob("B", 1, 1))
	if got := b.get("sub/cwd.txt"); got != b.path("sub")+"\n" {
		t.Errorf("a plain folder: cwd %q", got)
	}
	if trees := b.e.Trees(b.ctx(), b.spec); trees["trees/a"] != "trees/a" {
		t.Errorf("trees %v", trees)
	}
}

func TestWorktreeOutOfTheRepo(t *testing.T) {
	b := newBench(t, treeSpec)
	out := t.TempDir()
	if err := os.Symlink(out, b.path("sub")); err != nil {
		t.Fatal(err)
	}
	if ev := b.carry(b.stepJob("B", 1, 1)); ev.Exit.Refused == "" {
		t.Errorf("%+v", ev.Exit)
	}
	if entries, _ := os.ReadDir(out); len(entries) > 0 {
		t.Errorf("%v was left outside", entries)
	}
}

func TestWorktreeInTheWay(t *testing.T) {
	b := newBench(t, treeSpec)
	b.sh("git branch work/a && git worktree add -q elsewhere work/a")
	if ev := b.carry(b.stepJob("A", 1, 1)); !strings.Contains(ev.Exit.NotStarted, "elsewhere") {
		t.Errorf("%+v", ev.Exit)
	}
}

// seen gathers what is emitted.
type seen struct {
	mu sync.Mutex
	is []engine.Event
}

func (s *seen) emit(ev engine.Event) {
	if _, ok := ev.(engine.Polled); ok {
		return // that a look is over is not what was seen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.is = append(s.is, ev)
}

func (s *seen) all() []engine.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]engine.Event{}, s.is...)
}

func (b *bench) watchJob(step string, n int) job.Job {
	j := b.stepJob(step, n, 1)
	j.Kind, j.Proc = engine.DoWatch, nil
	return j
}

// watch looks for a step's signal until the test ends.
func (b *bench) watch(step string, n int) *seen {
	var s seen
	ctx, cancel := context.WithCancel(context.Background())
	done := background(ctx, b.e, b.watchJob(step, n), s.emit)
	b.t.Cleanup(func() { cancel(); <-done })
	return &s
}

const commit = "git -c user.name=A -c user.email=a@example.org commit -q --allow-empty "

func TestCommitSeen(t *testing.T) {
	conform.Rule(t, "1-language rule 3 git_commit", "of marked commits only the one that is new and no double is seen, also detached")
	conform.Rule(t, "1-language rule 3 git_commit", "old, quoted, reverted, amended and picked commits do not fire")
	b := newBench(t, treeSpec)
	b.sh(commit + "--date 2020-01-02T03:04:05Z -m 'old [DONE]'") // before the attempt
	old := b.sh("git rev-parse HEAD")
	b.begin(b.stepJob("C", 1, 1))
	s := b.watch("C", 1)
	// None of these counts.
	b.sh(commit + "-m 'talks of [DONE] in its middle'")
	b.sh("git -c user.name=A -c user.email=a@example.org revert --no-edit " + old + " >/dev/null 2>&1 || " + commit + "-m 'Revert \"old [DONE]\"'")
	b.sh("git checkout -q -b other HEAD~2 && " + commit + "--amend --no-edit && git checkout -q main") // an amended twin
	b.sh("git checkout -q -b third main && git -c user.name=A -c user.email=a@example.org cherry-pick --allow-empty " + old + " >/dev/null && git checkout -q main")
	b.sh("git checkout -q --detach && " + commit + "-m 'mine' -m '[DONE]' && git branch last && git checkout -q main")
	eventually(t, "a commit is seen", func() bool { return len(s.all()) > 0 })
	want := b.sh("git rev-parse last")
	ev := s.all()[0].(engine.CommitSeen)
	if ev.SHA != want || ev.Run != run1 || ev.Step != "C" || ev.N != 1 || ev.K != 1 || ev.Subject != "mine" || !strings.HasPrefix(ev.Author, "A|a@example.org|") {
		t.Errorf("seen %+v, want %s", ev, want)
	}
	if len(s.all()) != 1 {
		t.Errorf("seen %+v", s.all())
	}
	// A second look, as after a restart, reports it again, and nothing else.
	b.e = b.executor()
	s = b.watch("C", 1)
	eventually(t, "a commit is seen again", func() bool { return len(s.all()) > 0 })
	if len(s.all()) != 1 || s.all()[0].(engine.CommitSeen).SHA != want {
		t.Errorf("seen %+v", s.all())
	}
}

// TestCommitOfItsBranchOnly: a step with a branch of its own is not answered by another's commit.
func TestCommitOfItsBranchOnly(t *testing.T) {
	conform.Rule(t, "1-language rule 3 git_commit", "a step with a branch is not answered by another's commit")
	b := newBench(t, treeSpec)
	s := b.watch("A", 1) // before the attempt has begun: it waits for that
	b.carry(b.stepJob("A", 1, 1))
	b.sh(commit + "-m 'on main [A-DONE]'")
	b.sh("cd trees/a && " + commit + "-m 'its own [A-DONE]'")
	eventually(t, "a commit is seen", func() bool { return len(s.all()) > 0 })
	if got := s.all(); len(got) != 1 || got[0].(engine.CommitSeen).Subject != "its own [A-DONE]" {
		t.Errorf("seen %+v", got)
	}
}

func TestPullSeen(t *testing.T) {
	conform.Rule(t, "1-language rule 3 pr_creation", "a pull request with the branch as its head, also one that moved on")
	conform.Rule(t, "1-language rule 3 pr_creation", "a pull request whose head is the step's commit")
	conform.Rule(t, "004 §2 Signal.pr_creation", "a pull request is the signal")
	b := newBench(t, strings.Replace(treeSpec, `{type: git_commit, value: "[A-DONE]"}`, "{type: pr_creation}", 1))
	forge := realPath(t, t.TempDir()) + "/forge.git"
	b.sh("git init -q --bare " + forge + " && git remote add origin " + forge + " && git push -q origin main")
	b.sh("git push -q origin main:refs/pull/1/head") // somebody's, from before
	b.begin(b.stepJob("A", 1, 1))
	b.sh("git config remote.origin.url /nowhere") // an agent may write this: the recorded one is asked
	s := b.watch("A", 1)
	b.carry(b.stepJob("A", 1, 1))
	b.sh("cd trees/a && " + commit + "-m mine && git push -q " + forge + " work/a:refs/pull/7/head")
	b.sh(commit + "-m 'of another' && git push -q " + forge + " main:refs/pull/8/head")
	eventually(t, "a pull request is seen", func() bool { return len(s.all()) > 0 })
	ev := s.all()[0].(engine.PullSeen)
	if ev.Ref != "refs/pull/7/head" || ev.SHA != b.sh("git rev-parse work/a") || ev.Run != run1 || ev.Step != "A" || ev.N != 1 || ev.K != 1 || len(s.all()) != 1 {
		t.Errorf("seen %+v", s.all())
	}
	// The next attempt pushes to the same pull request: its new head is what is seen.
	b.begin(b.stepJob("A", 2, 1))
	s = b.watch("A", 2)
	b.sh("cd trees/a && " + commit + "-m more && git push -q " + forge + " work/a:refs/pull/7/head")
	eventually(t, "the new head is seen", func() bool { return len(s.all()) > 0 })
	if ev := s.all()[0].(engine.PullSeen); ev.Ref != "refs/pull/7/head" || ev.N != 2 {
		t.Errorf("seen %+v", ev)
	}
}

// TestPullOfABranch: with a value, a pull request from that branch is the signal, and one from the step's own is not.
func TestPullOfABranch(t *testing.T) {
	conform.Rule(t, "13-law 004 value", "a pull request from the branch that value names")
	b := newBench(t, strings.Replace(treeSpec, `{type: git_commit, value: "[A-DONE]"}`, "{type: pr_creation, value: out/a}", 1))
	forge := realPath(t, t.TempDir()) + "/forge.git"
	b.sh("git init -q --bare " + forge + " && git remote add origin " + forge + " && git push -q origin main")
	b.begin(b.stepJob("A", 1, 1))
	s := b.watch("A", 1)
	b.carry(b.stepJob("A", 1, 1))
	b.sh("cd trees/a && " + commit + "-m mine && git push -q " + forge + " work/a:refs/pull/7/head")
	b.sh("cd trees/a && git switch -qc out/a main && " + commit + "-m out && git switch -q work/a && git push -q " + forge + " out/a:refs/pull/8/head")
	eventually(t, "a pull request is seen", func() bool { return len(s.all()) > 0 })
	if ev := s.all()[0].(engine.PullSeen); ev.Ref != "refs/pull/8/head" || len(s.all()) != 1 {
		t.Errorf("seen %+v", s.all())
	}
}

const offerSpec = `
workflow: {id: w}
steps:
  - id: A
    agent: {type: writer, launch: subagent, worktree: tree, prompt: do it}
    inputs: [in.txt]
    answer: {type: object}
    gate: G
gates:
  - {id: G, reviewer: {level: auto, from: step}, on_pass: {next_step: DONE}}
`

func TestOffer(t *testing.T) {
	conform.Rule(t, "004 §3 agent.launch", "a subagent step is offered")
	b := newBench(t, offerSpec)
	j := b.stepJob("A", 1, 1)
	j.Kind, j.Proc = engine.DoOffer, nil
	var s seen
	ctx, cancel := context.WithCancel(b.ctx())
	done := background(ctx, b.e, j, s.emit)
	eventually(t, "it is said that it cannot be offered", func() bool { return len(s.all()) > 0 })
	ev := s.all()[0].(engine.FileSeen)
	if ev.Name != "A-done.json" || ev.Dir != run1 || ev.ID != "" || ev.Sentinel.Status != engine.StatusFailed || !strings.Contains(ev.Sentinel.Summary, "in.txt") {
		t.Errorf("said %+v %+v", ev, ev.Sentinel)
	}
	cancel()
	if ev := <-done; ev != nil {
		t.Errorf("%+v", ev)
	}
	b.put("in.txt", "x")
	for range 2 {
		ctx, cancel = context.WithCancel(b.ctx())
		done = background(ctx, b.e, j, func(ev engine.Event) { t.Errorf("said %+v", ev) })
		eventually(t, "it is laid out", func() bool { return b.has(".workflow/runs/w-1/A.1/offer.json") })
		cancel()
		<-done
	}
	wantText(t, "the offer", b.get(".workflow/runs/w-1/A.1/offer.json"), b.path("tree"), "A-done.json", "prompt.md")
	wantText(t, "the prompt", b.get(".workflow/runs/w-1/A.1/prompt.md"), "do it", "../in.txt", "as the key \"answer\" of the signal file")
	if !b.has("tree/README.md") {
		t.Error("its worktree is not there")
	}
}

// TestBrokenGitIsNoResult: an attempt that takes git away is not one that changed nothing, and none begins where git cannot
// be read.
func TestBrokenGitIsNoResult(t *testing.T) {
	conform.Rule(t, "1-language protect", "where git cannot tell what was changed there is no result, and a person is asked")
	b := newBench(t, checkSpec)
	j := b.checkJob("A", 1)
	j.Attempt.Answer = []byte(`{"plan":[],"note":"n"}`)
	b.begin(j)
	b.put("out.txt", "good")
	b.put("test/new.txt", "new")
	b.sh("mv .git/HEAD .git/away")
	if c := b.carry(j).Check; !strings.Contains(c.Broken, "could not be read") || c.Digest != "" {
		t.Errorf("%+v", c)
	}
	again := b.checkJob("A", 2)
	again.Attempt.Answer = j.Attempt.Answer
	if c := b.carry(again).Check; !strings.Contains(c.Broken, "fix the checkout") {
		t.Errorf("%+v", c)
	}
	b.sh("mv .git/away .git/HEAD")
	if c := b.carry(j).Check; c.Broken != "" || len(c.Protected) != 1 {
		t.Errorf("%+v", c)
	}
}

// TestDigestWithoutGit: what is no checkout is judged by the declared outputs alone.
func TestDigestWithoutGit(t *testing.T) {
	b := newBench(t, checkSpec)
	b.e = b.executor(func(o *Options) { o.Git = nil })
	j := b.checkJob("A", 1)
	j.Attempt.Answer = []byte(`{"plan":[],"note":"n"}`)
	b.put("out.txt", "good")
	c := b.carry(j).Check
	if !c.OK || c.Digest == "" || c.Digest != b.digestNow() {
		t.Errorf("%+v", c)
	}
	b.put("README.md", "changed")
	if c.Digest != b.digestNow() {
		t.Error("a file that no output names counts")
	}
	b.put("out.txt", "other")
	if c.Digest == b.digestNow() {
		t.Error("an output does not count")
	}
}
