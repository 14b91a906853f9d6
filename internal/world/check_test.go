//go:build linux || darwin

package world

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
	"sluice/tools/conform"
)

const checkSpec = `
workflow: {id: w, protect: ["test/**"], hooks: {after_step: "echo $SLUICE_STATUS $SLUICE_STEP >>hook.txt; exit 4", after_run: "echo $SLUICE_STATUS >>end.txt"}}
steps:
  - id: A
    agent: {type: writer}
    outputs: [out.txt, {.workflow/backlog/plan.json: answer.plan}, {note.txt: answer.note}]
    success_criterion:
      - "echo ran >>$HOME/ran.txt; test -s out.txt exits 0"
      - {file: out.txt, non_empty: true}
      - the text reads well
    answer: {type: object, required: [plan], properties: {plan: {type: array}, note: {type: string}}}
    signal: {type: sentinel_file}
    gate: G
gates:
  - id: G
    reviewer: {level: human}
    on_pass: {next_step: DONE}
`

// begin records how things are, as the step's launch does.
func (b *bench) begin(j job.Job) {
	b.t.Helper()
	if _, err := b.e.Begun(b.ctx(), j, b.spec.Step(j.Step), j.N); err != nil {
		b.t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	conform.Rule(t, "1-language outputs", "a text is written as it is, else JSON")
	conform.Rule(t, "1-language rule 4", "files and commands are checked; other texts are left to the reviewer")
	conform.Rule(t, "1-language outputs", "path: expression is written")
	conform.Rule(t, "004 §2 Step.outputs", "a missing output fails the check")
	conform.Rule(t, "field ask 8", "outputs and criterion are looked at by the daemon")
	b := newBench(t, checkSpec)
	b.put("test/old.txt", "was changed before")
	j := b.checkJob("A", 1)
	j.Attempt.Answer = []byte(`{"plan":[1,2],"note":"as it is"}`)
	b.begin(j)
	ev := b.carry(j)
	if c := ev.Check; c == nil || c.OK || !strings.Contains(c.Why, "out.txt") || c.Broken != "" {
		t.Fatalf("without its output: %+v", c)
	}
	if b.has("ran.txt") {
		t.Error("a command was run over what is not there")
	}
	b.put("out.txt", "good")
	j.Key = "w-1/A#1.check-77"
	for range 2 { // the second time what was recorded is given
		ev = b.carry(j)
	}
	c := ev.Check
	if !c.OK || len(c.ToReview) != 1 || c.ToReview[0] != "the text reads well" || len(c.Protected) != 0 || c.Digest == "" {
		t.Errorf("check %+v", c)
	}
	if got := b.get("ran.txt"); got != "ran\n" {
		t.Errorf("the criterion ran %q", got)
	}
	if got := b.get(".workflow/backlog/plan.json"); got != "[\n  1,\n  2\n]\n" {
		t.Errorf("plan.json %q", got)
	}
	if got := b.get("note.txt"); got != "as it is" {
		t.Errorf("note.txt %q", got)
	}
}

func TestCheckOfFailedStepRunsNothing(t *testing.T) {
	b := newBench(t, checkSpec)
	j := b.checkJob("A", 1)
	j.Attempt.Status = engine.StatusBlocked
	ev := b.carry(j)
	if c := ev.Check; !c.OK || len(c.ToReview) != 1 || c.Digest == "" {
		t.Errorf("check %+v", c)
	}
	if b.has("ran.txt") || b.has("note.txt") {
		t.Error("something was run or written")
	}
}

func TestCheckHoldsTheAnswerAgainstItsSchema(t *testing.T) {
	conform.Rule(t, "1-language answer", "an answer not to its schema fails")
	b := newBench(t, checkSpec)
	for answer, want := range map[string]string{``: "gave no answer", `{"plan":"none"}`: "plan", `{"plan":[],"note":null}`: "note"} {
		j := b.checkJob("A", 1)
		j.Attempt.Answer = []byte(answer)
		if c := b.carry(j).Check; c.OK || !strings.Contains(c.Why, want) {
			t.Errorf("%s: %+v", answer, c)
		}
	}
}

// digestNow is what a person's pass would be held against.
func (b *bench) digestNow() string {
	b.t.Helper()
	d, err := b.e.DigestNow(b.ctx(), job.Reviewed{Run: run1, Gate: "G", Step: "A", Attempt: 1, Digest: "x"})
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

func TestDigestIsOfOutputsAndChangedFiles(t *testing.T) {
	conform.Rule(t, "1-language protect", "changed files that protect names are told")
	conform.Rule(t, "8-semantics 23", "the digest covers the declared outputs and the changed files, and nothing else")
	conform.Rule(t, "8-semantics 23", "what the digest covers, and nothing else")
	conform.Rule(t, "1-language protect", "a protected file that changed is told")
	conform.Rule(t, "4-trust bound", "the digest is of outputs and changed files")
	b := newBench(t, checkSpec)
	b.put("test/old.txt", "was changed before")
	j := b.checkJob("A", 1)
	j.Attempt.Answer = []byte(`{"plan":[],"note":"n"}`)
	b.begin(j)
	b.put("out.txt", "good")
	b.put("test/new.txt", "new")
	b.put("README.md", "changed and committed")
	b.sh("git add README.md && git commit -q -m change")
	c := b.carry(j).Check
	if len(c.Protected) != 1 || c.Protected[0] != "test/new.txt" {
		t.Errorf("protected %v", c.Protected)
	}
	if want := []string{"100644 " + strings.TrimSpace(b.sh("git hash-object test/new.txt"))}; !slices.Equal(c.ProtectedAs, want) {
		t.Errorf("protected as %q, want %q", c.ProtectedAs, want)
	}
	was := b.digestNow()
	if was != c.Digest {
		t.Fatalf("the digest is another though nothing happened: %s, %s", was, c.Digest)
	}
	changes := []struct {
		path, text string
		same       bool
	}{
		{"out.txt", "other", false}, {"README.md", "other", false}, {"test/new.txt", "other", false}, {".workflow/backlog/plan.json", "{}", false},
		{"test/old.txt", "other", true}, {"others.txt", "of another branch", true}, {".workflow/signals/x", "x", true}, {".workflow/runs/w-1/x", "x", true},
	}
	for _, x := range changes {
		before := ""
		if b.has(x.path) {
			before = b.get(x.path)
		}
		b.put(x.path, x.text)
		if got := b.digestNow() == was; got != x.same {
			t.Errorf("after a change of %s the digest is the same: %v", x.path, got)
		}
		if before != "" {
			b.put(x.path, before)
		} else {
			b.sh("rm " + x.path)
		}
	}
	if b.digestNow() != was {
		t.Error("the digest is another after all was changed back")
	}
}

// TestDigestSeesNoProgress: an attempt that changes nothing has the digest of the one before it, committed or not.
func TestDigestSeesNoProgress(t *testing.T) {
	conform.Rule(t, "1-language same_failure", "an attempt that changes nothing has the digest of the one before")
	conform.Rule(t, "1-language same_failure", "an unchanged tree has the same digest")
	conform.Rule(t, "field ask 14", "an unchanged tree has the same digest")
	b := newBench(t, strings.Replace(checkSpec, "echo ran >>$HOME/ran.txt; ", "", 1))
	var digests []string
	for n := range 3 {
		j := b.checkJob("A", n+1)
		j.Attempt.Answer = []byte(`{"plan":[],"note":"n"}`)
		b.begin(j)
		switch n {
		case 0:
			b.put("out.txt", "good")
			b.put("code.txt", "x")
		case 1:
			b.sh("git add -A && git commit -q -m work")
		case 2:
			b.put("code.txt", "y")
		}
		digests = append(digests, b.carry(j).Check.Content)
	}
	if digests[0] == "" || digests[0] != digests[1] || digests[1] == digests[2] {
		t.Errorf("digests %v: want two alike and another", digests)
	}
}

func TestHooks(t *testing.T) {
	conform.Rule(t, "1-language hooks", "after_step and after_run get the status; an exit code is recorded")
	conform.Rule(t, "1-language hooks", "a failing hook is recorded, not fatal")
	b := newBench(t, checkSpec)
	j := b.job(engine.Effect{Kind: engine.DoRun, Key: "w-1/A#1.hook", Step: "A", N: 1, Proc: &engine.Proc{Key: "w-1/A#1.hook", Kind: engine.ProcHook, Step: "A", N: 1}})
	for range 2 {
		if ev := b.carry(j); ev.Exit.Code != 4 || ev.Exit.Class != "" {
			t.Errorf("exit %+v", ev.Exit)
		}
	}
	if got := b.get("hook.txt"); got != "done A\n" {
		t.Errorf("the hook saw %q", got)
	}
	j = b.job(engine.Effect{Kind: engine.DoRun, Key: "w-1/after_run-9", N: 9, Proc: &engine.Proc{Key: "w-1/after_run-9", Kind: engine.ProcHook, N: 9}})
	j.RunInfo.Phase, j.Env, j.Attempt = engine.RunFailed, nil, nil
	if ev := b.carry(j); ev.Exit.Code != 0 {
		t.Errorf("exit %+v", ev.Exit)
	}
	if got := b.get("end.txt"); got != "failed\n" {
		t.Errorf("the hook saw %q", got)
	}
}

// TestOwnFilesAreNoWork: what sluice and the signals leave in .workflow/ is covered by no digest, ignored or not; nor are
// the worktrees of other branches.
func TestOwnFilesAreNoWork(t *testing.T) {
	b := newBench(t, checkSpec)
	b.sh("git rm -q .workflow/.gitignore && git commit -q -m 'nothing is ignored' && git worktree add -q trees/x")
	j := b.checkJob("A", 1)
	j.Attempt.Answer = []byte(`{"plan":[],"note":"n"}`)
	b.begin(j)
	for _, p := range []string{"signals/x", "runs/w-1/x", "retry-context/x", "audit/x", "specs/x"} {
		b.put(".workflow/"+p, "x")
	}
	b.put("trees/x/file", "x")
	b.put("out.txt", "good")
	b.carry(j)
	var c tree.Covered
	if err := layout.Load(b.e.AttemptFile(run1, "A", 1, "files"), &c); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Files, " "); got != ".workflow/backlog/plan.json .workflow/specs/x note.txt out.txt" {
		t.Errorf("covered %s", got)
	}
}

func TestLook(t *testing.T) {
	conform.Rule(t, "8-semantics 33", "it waits until the other step's output is there")
	b := newBench(t, checkSpec)
	j := b.checkJob("A", 1)
	j.Attempt.Answer = []byte(`{"plan":[],"note":"n"}`)
	b.put("out.txt", "good")
	b.carry(j)
	look := b.job(engine.Effect{Kind: engine.DoLook, Key: "w-1/B", Step: "B", Pins: []string{"w-1/A#1"}})
	ev, ok := b.e.Carry(b.ctx(), look, nil).(engine.Looked)
	if !ok || ev.Run != run1 || ev.Step != "B" || len(ev.Pins) != 1 || ev.Pins[0] != "w-1/A#1" {
		t.Errorf("looked %+v", ev)
	}
	called, off := context.WithCancel(b.ctx())
	off()
	for _, pin := range []string{"", "w-1/A", "../A#1", "w-1/../A#1", "w-1/A#x"} {
		look := b.job(engine.Effect{Kind: engine.DoLook, Key: "w-1/B", Step: "B", Pins: []string{pin}})
		if ev := b.e.Carry(called, look, nil); ev != nil {
			t.Errorf("%q is met", pin)
		}
	}
	b.sh("rm out.txt")
	ctx, cancel := context.WithCancel(b.ctx())
	seen := make(chan engine.Event)
	go func() { seen <- b.e.Carry(ctx, look, nil) }()
	eventually(t, "health names what is missing", func() bool { return strings.Contains(strings.Join(b.e.Health(), "\n"), "out.txt") })
	cancel()
	if ev := <-seen; ev != nil {
		t.Errorf("looked %+v though it is gone", ev)
	}
	if h := strings.Join(b.e.Health(), "\n"); strings.Contains(h, "out.txt") {
		t.Errorf("health still says: %s", h)
	}
}
