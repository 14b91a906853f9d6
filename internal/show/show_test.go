package show

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/layout"
	"sluice/internal/stats"
	"sluice/specs"
)

// TestShowTasksInJSON: of a list, JSON has each answer whole.
func TestShowTasksInJSON(t *testing.T) {
	long := json.RawMessage(`{"files":["` + strings.Repeat("a", 400) + `"]}`)
	tasks := []daemon.TaskStatus{{ID: "T1", State: "done", Answer: json.RawMessage(`{"n":1}`), Summary: "made it"}, {ID: "T2", State: "done", Answer: long},
		{ID: "T3", State: "failed", Why: "no\ncompiler"}, {ID: "T4", State: "todo"}}
	raw, err := json.Marshal(Shown{Tasks: tasks})
	if err != nil || !strings.Contains(string(raw), string(long)) {
		t.Errorf("%s %v", raw, err)
	}
}

// TestShowJudgedByNobody: a criterion that no gate judges is shown as such, and machine's checks only where there are any.
func TestShowJudgedByNobody(t *testing.T) {
	const text, file = "The plan can be followed.", "file plan.md exists"
	for _, c := range []struct{ name, criteria, gate, want string }{
		{"a command", text, `level: auto, run: "true"`, "done when   The plan can be followed. (nobody judges this)\n|criterion   nobody judges: The plan can be followed.\n"},
		{"a command, and a file", text + ", " + file, `level: auto, run: "true"`, "criterion   the machine's checks passed; nobody judges: The plan can be followed.\n"},
		{"an agent", text, "level: auto, agent_type: r", "done when   The plan can be followed. (a reviewer judges this)\n|criterion   for a reviewer: The plan can be followed.\n"},
		{"a person, and a file", text + ", " + file, "level: human", "criterion   the machine's checks passed; for a reviewer: The plan can be followed.\n"},
	} {
		spec, faults := specs.Load("w.yaml", []byte("workflow: {id: w}\nsteps:\n  - {id: a, run: x, success_criterion: ["+c.criteria+
			"], gate: g}\ngates:\n  - {id: g, reviewer: {"+c.gate+"}, on_pass: {next_step: DONE}}\n"))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		at := &engine.Attempt{N: 1, Checked: true, ToReview: []string{text}}
		sh := &Shown{Run: "w-1", Step: "a", Attempt: at}
		sh.of(spec, spec.Step("a"), &engine.Env{})
		var out strings.Builder
		Print(console.New(nil, nil, &out, nil), sh)
		for want := range strings.SplitSeq(c.want, "|") {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, out.String())
			}
		}
	}
}

// TestShowSaysWhatTheStepSaid: a failure that no step has told is not shown as its word, and a gate that always asks a
// person does not ask when its failures are used up.
func TestShowSaysWhatTheStepSaid(t *testing.T) {
	printed := func(sh *Shown) string {
		var out strings.Builder
		Print(console.New(nil, nil, &out, nil), sh)
		return out.String()
	}
	lost := &engine.Attempt{N: 1, Status: engine.StatusFailed, Via: "exit", Broken: "it timed out"}
	if out := printed(&Shown{Step: "a", Attempt: lost}); strings.Contains(out, "it says") || !strings.Contains(out, "broken      it timed out\n") {
		t.Error(out)
	}
	said := &engine.Attempt{N: 1, Status: engine.StatusFailed, Via: "a-done.json"}
	if out := printed(&Shown{Step: "a", Attempt: said}); !strings.Contains(out, "it says     failed\n") {
		t.Error(out)
	}
	gate := daemon.GateStatus{ID: "g", Level: engine.LevelHuman, Count: 1, Max: 3, Rounds: []engine.Round{{N: 1, Outcome: engine.OutcomeFail, Veto: true}}}
	if out := printed(&Shown{Step: "a", Gate: &gate}); !strings.Contains(out, "failures    1 of 3\n") || !strings.Contains(out, "verdict     veto\n") {
		t.Error(out)
	}
	gate.Level = engine.LevelAuto
	if out := printed(&Shown{Step: "a", Gate: &gate}); !strings.Contains(out, "failures    1 of 3, then the gate asks you\n") {
		t.Error(out)
	}
}

// TestShowNamesOfFiles: the name of a changed file shows what a reader does not see, and moves nothing on the screen.
func TestShowNamesOfFiles(t *testing.T) {
	var out strings.Builder
	Print(console.New(nil, nil, &out, nil), &Shown{Step: "a", Changed: []string{"README.md\u200b", "x.go\n  verdict     pass"},
		Attempt: &engine.Attempt{N: 1, Protected: []string{"CLAUDE.md", ".claude/\x1b[2Jx\n  verdict     pass"}}})
	for _, want := range []string{"changed     README.md<U+200B>\n", " x.go<U+000A> verdict pass\n", "protected   changed: CLAUDE.md, .claude/x verdict pass\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestShowBesideManyGates: that the gate asks in many more runs leaves the rest of the page in sight.
func TestShowBesideManyGates(t *testing.T) {
	var out strings.Builder
	gate := daemon.GateStatus{ID: "g", State: engine.OnHuman}
	sh := &Shown{Run: "w-200", Step: "a", Gate: &gate}
	for i := range 199 {
		sh.Also = append(sh.Also, fmt.Sprint("w-", i+1))
	}
	Print(console.New(nil, nil, &out, nil), sh)
	if want := "also        it asks in w-1, w-2, w-3, w-4, w-5, w-6, w-7, w-8, … too: sluice show g --run RUN\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// TestLevelsOnce: the level of trust is said at the end of a status only where no live run says it, and of new launches
// where live runs differ.
func TestLevelsOnce(t *testing.T) {
	run := func(phase, trust, why string) daemon.RunStatus {
		return daemon.RunStatus{Phase: phase, Trust: trust, Exposed: why}
	}
	const off, file, held = "the sandbox is off", "trust: file (not held): nothing keeps an agent from answering a gate (the sandbox is off)\n",
		"trust: sandbox: an agent cannot answer a gate\n"
	for _, c := range []struct {
		name string
		st   daemon.Status
		want string
	}{
		{"a live run says it", daemon.Status{Trust: "file", Exposed: off, Runs: []daemon.RunStatus{run("running", "file", off)}}, ""},
		{"a live run says another reason", daemon.Status{Trust: "file", Exposed: off, Runs: []daemon.RunStatus{run("running", "file", "x")}}, "new launches: " + file},
		{"the sandbox was switched on", daemon.Status{Trust: "sandbox", Runs: []daemon.RunStatus{run("running", "file", off)}}, "new launches: " + held},
		{"held", daemon.Status{Trust: "sandbox", Runs: []daemon.RunStatus{run("completed", "file", off), run("running", "sandbox", "")}}, held},
		{"no live run", daemon.Status{Trust: "file", Exposed: off, Runs: []daemon.RunStatus{run("completed", "file", off)}}, ""},
		{"unknown", daemon.Status{Runs: []daemon.RunStatus{run("running", "file", off)}}, ""},
	} {
		var out strings.Builder
		printLevels(console.New(nil, nil, &out, nil), c.st)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, out.String(), c.want)
		}
	}
}

// TestStatsNameWhatAGateCosts: a gate that may not earn its cost is named with what it has cost.
func TestStatsNameWhatAGateCosts(t *testing.T) {
	var out strings.Builder
	idle := stats.Gate{Workflow: "w", Gate: "G", Rounds: 60, Passed: 60, Time: engine.Duration(2 * time.Hour),
		Reviews: engine.Usage{CostUSD: 3.5}, People: stats.Times{Count: 2, Sum: engine.Duration(5 * time.Minute)}}
	Stats(console.New(nil, nil, &out, nil), stats.Stats{From: time.Now(), To: time.Now(), Gates: []stats.Gate{{Workflow: "w", Gate: "H", Rounds: 1}, idle},
		Advice: []stats.Advice{{Workflow: "w", Gate: "G", Text: "failed nothing in its last 50 rounds"}, {Workflow: "w", Gate: "H", Text: "x"}}})
	for _, want := range []string{"note: gate G of w failed nothing in its last 50 rounds; it cost 3.50 USD, 2h00m of reviews, 5m00s of waiting for a person\n", "note: gate H of w x\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestShowOfAnotherGate: at the gate behind a review its score, its verdict and its findings are shown, on the same step
// or a later one; not those on an attempt that was done again.
func TestShowOfAnotherGate(t *testing.T) {
	score := 92.0
	said := engine.Round{N: 1, Step: "words", Attempt: 2, State: engine.Approved, Outcome: "pass", ByKind: "reviewer", Score: &score,
		Feedback: "clear", Findings: json.RawMessage(`[{"file":"words.py","line":2,"message":"a name\u001b[2J is short"}]`)}
	old := said
	old.Attempt, old.Feedback = 1, "of the first attempt"
	approve := daemon.GateStatus{ID: "approve", Level: engine.LevelHuman, State: engine.OnHuman, Round: 1}
	review := daemon.GateStatus{ID: "review", Rounds: []engine.Round{old, said}}
	lint := daemon.GateStatus{ID: "lint", Rounds: []engine.Round{{Step: "words", Attempt: 2, Outcome: "pass", ByKind: "command", Feedback: "ok"}}}
	words := daemon.StepStatus{ID: "words", Attempt: 2, Gates: []daemon.GateStatus{lint, review, approve}}
	ship := daemon.StepStatus{ID: "ship", Attempt: 1, Gates: []daemon.GateStatus{approve}}
	for want, step := range map[string]daemon.StepStatus{
		"judged      lint: pass by its command: ok\n  judged      review: pass, score 92 by its reviewer: clear\n": words,
		"judged      review of words: pass, score 92 by its reviewer: clear\n":                                     ship,
	} {
		sh := &Shown{Run: "w-1", Step: step.ID, Gate: &approve, Attempt: &engine.Attempt{N: step.Attempt}}
		sh.judged(daemon.RunStatus{Steps: []daemon.StepStatus{words, ship}})
		var out strings.Builder
		Print(console.New(nil, nil, &out, nil), sh)
		if s := out.String(); !strings.Contains(s, "\n  "+want) || !strings.Contains(s, "finding     words.py:2 a name") ||
			strings.Contains(s, "first attempt") || strings.Contains(s, "\x1b[2J") {
			t.Errorf("%s:\n%s", step.ID, s)
		}
	}
}

// TestShowOfOneAttempt: a gate is shown with the attempt that its round judged, also when a newer one is at work; its step
// with the newest, which was not judged.
func TestShowOfOneAttempt(t *testing.T) {
	gate := daemon.GateStatus{ID: "g", State: engine.Superseded, Round: 2, Reviewed: "22a2", Rounds: []engine.Round{{N: 2, Step: "a", Attempt: 2, Outcome: "fail", Feedback: "no"}}}
	st := daemon.StepStatus{ID: "a", Attempts: []engine.Attempt{{N: 1}, {N: 2}, {N: 3}}, Gates: []daemon.GateStatus{gate}}
	for id, want := range map[string]string{
		"g": "attempt     2, , content 22a2; `sluice show a` has attempt 3\n  verdict     fail: no\n",
		"a": "attempt     3, \n  judged      attempt 2, as follows\n  verdict     fail: no\n",
	} {
		var out strings.Builder
		Print(console.New(nil, nil, &out, nil), &Shown{Run: "w-1", Step: "a", Gate: &gate, Attempt: attemptOf(st, &gate, id), Newest: 3})
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s:\n%s", id, out.String())
		}
	}
}

// TestShowSaysAFailureOnce: what a failed criterion printed is also the round's feedback.
func TestShowSaysAFailureOnce(t *testing.T) {
	why := "The success criterion does not hold:\n\nstderr:\nValueError: no"
	gate := daemon.GateStatus{ID: "g", State: engine.OnHuman, Round: 1, Rounds: []engine.Round{{N: 1, Step: "a", Attempt: 1, Outcome: "fail", Feedback: why}}}
	sh := &Shown{Run: "w-1", Step: "a", Gate: &gate, Attempt: &engine.Attempt{N: 1, Failure: why, Checked: true},
		Checked: []checkedBy{{Command: "make test", Output: "stderr:\nValueError: no\n"}, {Command: "make lint", Output: "a.py is long\n"}}}
	var out strings.Builder
	Print(console.New(nil, nil, &out, nil), sh)
	if s := out.String(); strings.Count(s, "ValueError: no") != 1 || !strings.Contains(s, "printed     a.py is long\n") ||
		!strings.Contains(s, "verdict     fail\n") {
		t.Error(s)
	}
	sh.Attempt, sh.Criteria, sh.Checked = &engine.Attempt{N: 1, Broken: "it timed out"}, []string{"`make test` exits 0"}, nil
	out.Reset()
	Print(console.New(nil, nil, &out, nil), sh)
	if want := "broken      it timed out\n  criterion   not checked: a pass takes the work as it is\n"; !strings.Contains(out.String(), want) {
		t.Error(out.String())
	}
}

// TestUnservedAdvice: where nobody serves a repo, no command is advised that needs a daemon, and the inbox says so.
func TestUnservedAdvice(t *testing.T) {
	r := daemon.RunStatus{ID: "w-1", Phase: engine.RunRunning, Paused: "user", Waits: []daemon.Wait{{Kind: "paused", Text: "it is paused: " + daemon.Resume("w-1", false)}}}
	st := daemon.Status{Root: "/r", Runs: []daemon.RunStatus{r}}
	var out, errs strings.Builder
	con := console.New(nil, nil, &out, &errs)
	here, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	for _, name := range []string{"w-1/G-pass.json", "rejected/G-veto", ".half"} {
		file := filepath.Join(layout.InboxOf(here), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := PrintInbox(con, []Waiting{{Repo: here}}, 0); err != nil {
		t.Fatal(err)
	}
	const words = "note: no sluice process serves this repo: `sluice run RUN` continues it here, `sluice watch add` and `sluice daemon` in the background\n" +
		"note: given, and not read yet: w-1/G-pass.json\n"
	if errs.String() != words {
		t.Errorf("%s", errs.String())
	}
	out.Reset()
	if err := PrintInbox(con, Waits(st, false, nil), 0); err != nil {
		t.Fatal(err)
	}
	_ = Runs(t.Context(), con, st, false, true)
	if s := out.String(); strings.Contains(s, "resume") || strings.Count(s, "run w-1") != 2 || !strings.Contains(errs.String(), "no sluice process serves /r: `sluice -C /r run RUN` continues it here, `sluice -C /r watch add`") {
		t.Errorf("%s%s", s, errs.String())
	}
}

// TestInboxTypes: the command of a row can be pasted, whatever the repo's folder is called.
func TestInboxTypes(t *testing.T) {
	r := daemon.RunStatus{ID: "w-1", Phase: engine.RunRunning, Waits: []daemon.Wait{{Kind: "human", Gate: "g"}, {Kind: "window", Gate: "g"}, {Kind: "offer"}, {Kind: "paused"}}}
	for _, w := range Waits(daemon.Status{Root: "/my $(touch x)", Runs: []daemon.RunStatus{r}}, true, nil) {
		if !strings.HasPrefix(w.Type, "sluice -C '/my $(touch x)' ") {
			t.Errorf("%s: %s", w.Kind, w.Type)
		}
	}
}
