//go:build linux

package world

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/settings"
	"sluice/internal/tree"
	"sluice/tools/conform"
)

const lookSpec = `
workflow: {id: w, hooks: {after_step: "echo hook >hooked"}}
steps:
  - {id: A, agent: {type: writer}, signal: {type: stdout_exit}, next_step: [R, S, T]}
  - id: R
    agent: {type: looker, prompt: look, reads: true}
    inputs: [a.txt, docs/plan.md]
    answer: {type: object, required: [commit]}
    outputs: [{".workflow/runs/${{run}}/files/r.json": answer}]
    success_criterion: [{run: "test $(cat a.txt) = work"}, {file: a.txt}]
    signal: {type: stdout_exit}
    gate: G
  - {id: S, agent: {type: looker, prompt: look, reads: true}, signal: {type: stdout_exit}, gate: H}
  - {id: T, run: "cat a.txt >$SLUICE_FILES/../t.txt; ! echo x >a.txt", agent: {type: looker, reads: true}, next_step: DONE}
gates:
  - {id: G, reviewer: {level: auto, agent_type: reviewer, prompt: look}, on_pass: {next_step: DONE}}
  - {id: H, reviewer: {level: auto, run: "test $(cat a.txt) = work && test ! -e evil"}, on_pass: {next_step: DONE}}
`

// hostile is a reader that writes wherever it can, and reports what it saw.
const hostile = `saw="$(cat a.txt) $(git rev-parse HEAD) $(ls | tr '\n' ' ')"
echo evil >a.txt; echo evil >evil; git commit -qam evil; git config core.fsmonitor evil; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; rm -f docs/plan.md
echo evil >"$ROOTDIR/a.txt"; echo evil >"$ROOTDIR/evil"; echo evil >"$ROOTDIR/.git/config"; echo evil >"$ROOTDIR/.git/refs/heads/main"; echo evil >.workflow/evil
echo "{\"commit\": \"$saw\"}"
`

// lookBench is a bench in whose folder A has worked, with things that nobody has taken.
func lookBench(t *testing.T, held bool, script string) *bench {
	t.Helper()
	b := newBench(t, lookSpec)
	b.hold(held)
	b.put("a.txt", "first\n")
	b.put("docs/plan.md", "plan\n")
	root := b.root
	if !held {
		root = "/nowhere" // nothing keeps one there from the folder itself: that is what a sandbox is for
	}
	b.script("looker", "ROOTDIR="+root+"\n"+script)
	b.script("reviewer", "printf '```json\\n{\"verdict\":\"pass\"}\\n```\\n'\n")
	b.script("writer", "echo work >a.txt\n")
	for _, role := range []string{"looker", "reviewer", "writer"} {
		b.settings.Roles[role] = settings.Role{Agent: []string{role}}
	}
	b.sh("git add -A; git commit -q -m before")
	b.carry(b.stepJob("A", 1, 1))
	if c := b.carry(b.checkJob("A", 1)).Check; !c.OK || !c.Apart || tree.CommitIn(c.Digest) == "" {
		t.Fatalf("what nobody checks is not taken: %+v", c)
	}
	b.put("a.txt", "not taken\n")
	b.put("new.txt", "not taken\n")
	return b
}

// TestReaderSeesWhatWasTaken: a step that only looks sees the tree that was taken last, and no more; what it writes, into its
// checkout, the folder or git's, is nobody's; so do its criterion, its hook and its gates.
func TestReaderSeesWhatWasTaken(t *testing.T) {
	conform.Rule(t, "13-law reads tree", "\"see the taken tree read-only\": a step that only looks sees what was taken last in its folder; what it leaves, in its checkout, the folder or git's, is seen by nobody")
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) {
			b := lookBench(t, held, hostile)
			taken := b.sh("git rev-parse refs/sluice/taken/w-1/A.1")
			status := b.sh("git status --porcelain; git rev-parse HEAD; cat .git/config")
			for n, step := range []string{"R", "S", "R"} {
				j := b.stepJob(step, n+1, 1)
				ev := b.carry(j)
				if ev.Exit.Code != 0 || ev.Exit.NotStarted+ev.Exit.Refused != "" {
					t.Fatalf("%s: %+v\n%s", step, ev.Exit, ev.Output)
				}
				got := b.get(b.e.JobDir(j) + "/stdout")
				if want := "work " + taken + " README.md a.txt agents docs "; !strings.Contains(got, want) {
					t.Errorf("%s saw %s\nwant %s", step, got, want)
				}
				wantText(t, "its prompt", b.get(b.e.JobDir(j)+"/prompt.md"), "You only look: the folder is a checkout of commit `"+taken[:12]+"`")
				hook := b.stepJob(step, n+1, 1)
				hook.Key, hook.Proc.Kind = fmt.Sprintf("w-1/%s#%d.hook", step, n+1), engine.ProcHook
				hook.Proc.Key = hook.Key
				if ev := b.carry(hook); ev.Exit.Code != 0 {
					t.Errorf("hook: %+v %s", ev.Exit, ev.Output)
				}
				check := b.checkJob(step, n+1)
				check.Attempt.Answer = ev.Answer
				c := b.carry(check).Check
				if !c.OK || tree.CommitIn(c.Digest) != taken || !c.Apart || len(c.Protected) > 0 {
					t.Errorf("%s: %+v", step, c)
				}
			}
			if got := b.get(".workflow/runs/w-1/files/r.json"); !strings.Contains(got, taken) {
				t.Errorf("its output: %s", got)
			}
			j := b.reviewJob("H", 1)
			j.Attempt.N = 2
			if v := b.carry(ofCommit(j, taken)).Verdict; v.Outcome != engine.OutcomePass {
				t.Errorf("its gate: %+v", v)
			}
			if now := b.sh("git status --porcelain; git rev-parse HEAD; cat .git/config"); now != status || b.get("a.txt") != "not taken\n" || b.has("evil") || b.has("hooked") || b.has(".git/hooks/pre-commit") || b.has(".workflow/evil") {
				t.Errorf("the repo: %s\nwas: %s", now, status)
			}
			if refs := b.sh("git for-each-ref refs/sluice/salvage"); strings.Contains(refs, "/R.") || strings.Contains(refs, "/S.") {
				t.Errorf("something was kept of a reader: %s", refs)
			}
			if ev := b.carry(b.stepJob("T", 1, 1)); held && ev.Exit.Code != 0 {
				t.Errorf("a command could write into its checkout: %+v %s", ev.Exit, ev.Output)
			}
		})
	}
}

// TestTenReadersAtOnce: ten look at one folder at the same time, and at the same commit, while somebody works there.
func TestTenReadersAtOnce(t *testing.T) {
	conform.Rule(t, "13-law reads ten", "\"and so share it\": ten steps that only look at one folder are live at once, and each sees the same commit, whatever happens in the folder meanwhile")
	b := lookBench(t, true, "echo \"{\\\"commit\\\": \\\"$(cat a.txt) $(git rev-parse HEAD)\\\"}\"; until [ -e $HOME/../../go ] || [ -e \"$(dirname $SLUICE_PROMPT)/go\" ]; do sleep 0.05; done\n")
	b.settings.MaxAgents = 10
	taken := b.sh("git rev-parse refs/sluice/taken/w-1/A.1")
	ctx, die := context.WithCancel(b.ctx())
	defer die()
	var ended []<-chan engine.Event
	var jobs []job.Job
	for n := range 10 {
		jobs = append(jobs, b.stepJob("S", n+1, 1))
		ended = append(ended, background(ctx, b.e, jobs[n], nil))
		b.put("a.txt", fmt.Sprint("changed ", n, "\n"))
	}
	eventually(t, "ten are live", func() bool {
		n := 0
		for _, j := range jobs {
			if b.has(b.e.JobDir(j)+"/stdout") && strings.Contains(b.get(b.e.JobDir(j)+"/stdout"), "work "+taken) {
				n++
			}
		}
		return n == 10
	})
	seats, err := filepath.Glob(filepath.Join(b.state, "judge", "*", "user"))
	if err != nil || len(seats) != 10 {
		t.Errorf("%d checkouts are in use: %v", len(seats), err)
	}
	die() // another daemon adopts them
	for _, e := range ended {
		<-e
	}
	b.e = b.executor(func(o *Options) { o.Sandbox = b.e.opt.Sandbox })
	for i, j := range jobs {
		b.put(b.e.JobDir(j)+"/go", "")
		if ev := b.carry(j); ev.Exit.Code != 0 || ev.Exit.Lost {
			t.Errorf("%d: %+v", i, ev.Exit)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(b.state, "judge", "*", "user")); len(left) > 0 {
		t.Errorf("checkouts are still in use: %v", left)
	}
}

// TestReaderFirst: where the run has not worked yet, those who look see the folder as it was when the first of them looked,
// with what is not committed.
func TestReaderFirst(t *testing.T) {
	b := newBench(t, lookSpec)
	b.put("a.txt", "mine, not committed\n")
	b.script("looker", "cat a.txt\n")
	for n, want := range []string{"mine, not committed\n", "mine, not committed\n"} {
		j := b.stepJob("S", n+1, 1)
		if ev := b.carry(j); ev.Exit.Code != 0 {
			t.Fatalf("%+v", ev.Exit)
		}
		if got := b.get(b.e.JobDir(j) + "/stdout"); got != want {
			t.Errorf("%d: %q", n, got)
		}
		b.put("a.txt", "changed since\n")
	}
}

// TestReaderIsAskedAgain: for its answer, in a checkout of the same commit.
func TestReaderIsAskedAgain(t *testing.T) {
	b := lookBench(t, true, "if [ -e \"$(dirname $SLUICE_PROMPT)/../prompt.md\" ]; then echo \"{\\\"commit\\\": \\\"$(git rev-parse HEAD)\\\"}\"; else echo nothing; fi\n")
	ev := b.carry(b.stepJob("R", 1, 1))
	var got struct{ Commit string }
	if err := json.Unmarshal(ev.Answer, &got); err != nil || got.Commit != b.sh("git rev-parse refs/sluice/taken/w-1/A.1") || ev.AnswerBad != "" {
		t.Errorf("%s %q %v", ev.Answer, ev.AnswerBad, err)
	}
}

// TestReaderInAWorktree: it looks at what was taken there; many may be the first.
func TestReaderInAWorktree(t *testing.T) {
	b := newBench(t, strings.ReplaceAll(lookSpec, "reads: true}", "reads: true, worktree: wt/a}"))
	b.script("looker", "cat a.txt; pwd\n")
	b.put("a.txt", "committed\n")
	b.sh("git add -A; git commit -q -m before")
	var ended []<-chan engine.Event
	for n := range 4 {
		ended = append(ended, background(b.ctx(), b.e, b.stepJob("S", n+1, 1), nil))
	}
	for n := range ended {
		if ev := (<-ended[n]).(engine.ProcessEnded); ev.Exit.Code != 0 || ev.Exit.Class != "" {
			t.Fatalf("%d: %+v", n, ev)
		}
		if got := b.get(b.e.JobDir(b.stepJob("S", n+1, 1)) + "/stdout"); !strings.HasPrefix(got, "committed\n") || strings.Contains(got, filepath.Join(b.root, "wt")) {
			t.Errorf("%d: %s", n, got)
		}
	}
	if _, err := os.Stat(b.path("wt/a/a.txt")); err != nil {
		t.Error(err)
	}
}

// TestSetupOfAReader: what its judges need is made of the folder without work that has not passed, though that is what it sees.
func TestSetupOfAReader(t *testing.T) {
	b := lookBench(t, true, "cat a.txt\n")
	before := func(status string) string {
		j := b.stepJob("S", 1, 1)
		j.Env.Steps["A"] = engine.StepEnv{Status: status, Attempt: 1}
		at, err := b.e.Begun(b.ctx(), j, b.spec.Step("S"), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.sh("git show " + at.Look + ":a.txt"); got != "work" {
			t.Errorf("it sees %q", got)
		}
		b.sh("rm " + b.e.AttemptFile("w-1", "S", 1, "begin"))
		return b.sh("git show " + at.Base() + ":a.txt")
	}
	if got := before(engine.Gating); got != "first" {
		t.Errorf("while A is judged, a setup sees %q", got)
	}
	if got := before(engine.Passed); got != "work" {
		t.Errorf("when A has passed, a setup sees %q", got)
	}
}

// TestReaderWritesLaw: what sluice writes of its answer, and is law, has a person look.
func TestReaderWritesLaw(t *testing.T) {
	b := lookBench(t, false, "cat a.txt\n")
	b.load(strings.Replace(lookSpec, ".workflow/runs/${{run}}/files/r.json", ".workflow/${{answer.commit}}/CLAUDE.md", 1))
	j := b.stepJob("R", 1, 1)
	b.carry(j)
	check := b.checkJob("R", 1)
	check.Attempt.Answer = []byte(`{"commit": "notes"}`)
	if c := b.carry(check).Check; len(c.Protected) != 1 || c.Protected[0] != ".workflow/notes/CLAUDE.md" {
		t.Errorf("%+v", c)
	}
}
