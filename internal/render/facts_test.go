package render

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
)

// kinds are all kinds of fact that the engine has, read from its source.
func kinds(t *testing.T) []string {
	t.Helper()
	src, err := os.ReadFile("../../engine/codec.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`FactKind\(\) string +\{ return "(\w+)" \}`).FindAllStringSubmatch(string(src), -1) {
		out = append(out, m[1])
	}
	if len(out) < 40 {
		t.Fatalf("%d kinds were found", len(out))
	}
	return out
}

// TestEveryFactHasWords: the log never shows a fact's kind for want of words.
func TestEveryFactHasWords(t *testing.T) {
	for _, kind := range kinds(t) {
		raw, _ := json.Marshal(map[string]any{"kind": kind, "run": "w-1", "step": "A", "gate": "G", "n": 1})
		s := Fact(raw)
		if s.Text == "" || s.Text == kind || strings.Contains(s.Text, "{") {
			t.Errorf("%s: %q", kind, s.Text)
		}
	}
}

// TestForeignTextInFacts: what an agent wrote cannot drive the terminal of who reads the log.
func TestForeignTextInFacts(t *testing.T) {
	evil := "\x1b[2J\x1b]0;x\x07\u202e ok\nsecond"
	for _, kind := range kinds(t) {
		m := map[string]any{"kind": kind, "run": "w-1", "step": "A", "gate": "G", "n": 1}
		for _, k := range []string{"why", "text", "feedback", "summary", "question", "failure", "broken", "outcome", "word", "via", "to", "path", "what", "workflow", "when", "phase", "worktree", "key"} {
			m[k] = evil
		}
		raw, _ := json.Marshal(m)
		var out strings.Builder
		c := console.New(nil, nil, &out, nil)
		c.Print("%s", Line(c, daemon.Line{Fact: raw}, Fact(raw), true))
		if strings.ContainsAny(out.String(), "\x1b\x07\u202e") || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: %q", kind, out.String())
		}
	}
}

func TestFactsInWords(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.Local)
	score := 62.0
	for _, c := range []struct {
		fact engine.Fact
		want string
	}{
		{engine.StepSignalled{Step: "X-1", N: 2, Status: "blocked", Via: "X-1-done.json", Question: "which database?"}, "X-1.2|says blocked (X-1-done.json): which database?"},
		{engine.Judged{Gate: "G", N: 1, Outcome: "revise", Word: "fail", Score: &score, Feedback: "more"}, "G #1|reviewer: revise (it said: fail), score 62: more"},
		{engine.Judged{Gate: "G", N: 1, Outcome: "pass", ByKind: "step"}, "G #1|the step's own report: pass"},
		{engine.Judged{Gate: "G", N: 1, Outcome: "fail", ByKind: "command", Feedback: "red"}, "G #1|its command: fail: red"},
		{engine.RoundPassed{Gate: "G", N: 1, ByKind: "step"}, "G #1|passed by the step's own report"},
		{engine.WindowOpened{Gate: "G", N: 1, Until: at}, "G #1|goes on unless you veto until 12:00:00: sluice veto G"},
		{engine.RoundPassed{Gate: "G", N: 1, ByKind: "human", By: &engine.Actor{Who: "ann", Via: "file"}, Feedback: "good"}, "G #1|passed by ann (by a file): good"},
		{engine.Judged{Gate: "G", N: 1, Outcome: "fail", ByKind: "command", Feedback: "exit code 1: “--- FAIL”\n\nstdout:\n--- FAIL\nx_test.go:3"}, "G #1|its command: fail: exit code 1: “--- FAIL”"},
		{engine.HumanAsked{Gate: "G", N: 3, Why: "it failed 3 times: exit code 1: “--- FAIL”", Forced: true}, "G #3|asks you (it failed 3 times): sluice show G; it asks you for the rest of the run"},
		{engine.RoundFailed{Gate: "G", N: 1, Outcome: "fail", ByKind: "criterion", To: "X-1", Feedback: "no file"}, "G #1|failed by its checks → X-1: no file"},
		{engine.RoundFailed{Gate: "G", N: 4, Outcome: "skip", ByKind: "reviewer", To: "X-2", LetThrough: 4, Feedback: "bad"}, "G #4|skip by its reviewer → X-2 (not passed, and goes on after 4 failures)"},
		{engine.RoundRouted{Gate: "G", N: 4, Outcome: "skip", ByKind: "reviewer", To: "X-2", LetThrough: 4, Feedback: "bad"}, "G #4|skip by its reviewer → X-2 (not passed, and goes on)"},
		{engine.RoundRouted{Gate: "G", N: 2, Outcome: "replan", ByKind: "reviewer", To: "X-1", Times: 2, Feedback: "bad"}, "G #2|replan by its reviewer → X-1 (time 2)"},
		{engine.RouteCounted{Gate: "G", N: 2, Route: "replan", Count: 2}, "G #2|replan 2 counted"},
		{engine.CountRenewed{Gate: "G"}, "G|its counts restart: the step of on_exhausted has passed"},
		{engine.RoundFailed{Gate: "G", N: 2, Outcome: "fail", ByKind: "human", By: &engine.Actor{Who: "ann", Via: "file"}, To: "X-1", Forced: true, Feedback: "no"},
			"G #2|failed by ann (by a file) → X-1 (its failures are used up: from here on the gate asks you): no"},
		{engine.RoundFailed{Gate: "G", N: 2, Outcome: "fail", Veto: true, ByKind: "human", By: &engine.Actor{Who: "ann", Via: "command"}, To: "X-1", Feedback: "too few tests"},
			"G #2|vetoed by ann (command) → X-1: too few tests"},
		{engine.RoundPassed{Gate: "G", N: 1, ByKind: "window"}, "G #1|passed by its reviewer, no veto came"},
		{engine.HumanAsked{Gate: "G", N: 3, Why: "forced", Forced: true}, "G #3|asks you (it went back too often before, so it asks you for the rest of the run): sluice show G; it asks you for the rest of the run"},
		{engine.ProcessGone{Key: "w-1/X-1#1.1", Exit: engine.Exit{Code: 3}}, "X-1#1.1|process gone: exit code 3"},
		{engine.ProcessGone{Key: "w-1/X-1#1.1", Exit: engine.Exit{Code: -1, Signal: "SIGKILL"}}, "X-1#1.1|process gone: ended by SIGKILL"},
		{engine.Ignored{What: "answered", Why: "too late", Who: &engine.Actor{Who: "ann", Via: "command"}}, "|ignored: answer by ann (command): too late"},
		{engine.Ignored{What: "pause_requested", Why: "the run is over", Who: &engine.Actor{Who: "ann"}}, "|ignored: pause by ann: the run is over"},
		{engine.Ignored{What: "X-1-done.json", Why: "the run is over"}, "|ignored: X-1-done.json: the run is over"},
		{engine.StepSignalled{Step: "two", N: 1, Status: "failed", Via: "exit", Broken: "it timed out"}, "two.1|failed: it timed out"},
		{engine.StepSignalled{Step: "two", N: 1, Status: "failed", Via: "timeout", Failure: "nobody signalled within the step's timeout"}, "two.1|failed: nobody signalled within the step's timeout"},
		{engine.StepSignalled{Step: "two", N: 1, Status: "failed", Via: "exit", Summary: "too big", Failure: "too big"}, "two.1|says failed (exit): too big"},
		{engine.StepSignalled{Step: "two", N: 1, Status: "failed", Via: "exit", Failure: "it ended with exit code 3"}, "two.1|says failed (exit): it ended with exit code 3"},
		{engine.RunEnded{Phase: "aborted", Cause: engine.CausePerson, By: &engine.Actor{Who: "ann", Via: "command"}, Why: "aborted by ann: no need"}, "|run aborted by ann: no need"},
		{engine.RunEnded{Phase: "failed", By: &engine.Actor{Who: "ann"}, Why: "no"}, "|run failed by ann: no"},
		{engine.RunPaused{Why: "limit:max_steps", Text: "the limit max_steps is hit: sluice resume w-1 grants the same amount once more"},
			"|paused by the limit max_steps: sluice resume w-1 grants the same amount once more"},
	} {
		raw, err := engine.EncodeFact(c.fact)
		if err != nil {
			t.Fatal(err)
		}
		if s := Fact(raw); s.Subject+"|"+s.Text != c.want {
			t.Errorf("%T: %q, want %q", c.fact, s.Subject+"|"+s.Text, c.want)
		}
	}
}

// TestLineNamesItsRun: also where the fact has the run within what it records.
func TestLineNamesItsRun(t *testing.T) {
	for _, f := range []engine.Fact{
		engine.NoticeOwed{Notice: engine.Notice{Run: "w-1.T-2.1"}},
		engine.FileTaken{Move: engine.Move{Run: "w-1.T-2.1"}},
		engine.NoticeTried{Run: "w-1.T-2.1"},
	} {
		raw, err := engine.EncodeFact(f)
		if err != nil {
			t.Fatal(err)
		}
		for withRun, want := range map[bool]string{true: "w-1.T-2.1", false: "T-2"} {
			if head, _ := LineParts(daemon.Line{Fact: raw}, Fact(raw), withRun); !strings.Contains(head, want) {
				t.Errorf("%T, with its run: %v: %q, want %q", f, withRun, head, want)
			}
		}
	}
}
