package engine

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/tools/conform"
)

func TestLimitsOfTexts(t *testing.T) {
	long := strings.Repeat("ü", MaxFeedback)
	s := begin(t, "style 5", "what an agent, a reviewer or a person says is cut at its limit, on a rune, and says so", one(most(9)))
	s.sentinel("a", StatusFailed, func(f *FileSeen) { f.Sentinel.Summary = long })
	s.exit("a", Exit{})
	s.checked()
	q := s.r().Rounds["ga"][0]
	if len(q.Feedback) > MaxFeedback || !utf8.ValidString(q.Feedback) || !strings.HasSuffix(q.Feedback, "\n[cut]") {
		t.Errorf("%d bytes of feedback, ends %q", len(q.Feedback), q.Feedback[len(q.Feedback)-8:])
	}
	s.writes()
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Exit: Exit{Class: ClassWork}, Output: long})
	if n := len(s.r().Attempts["a"][1].Output); n > MaxOutput {
		t.Errorf("%d bytes of output", n)
	}
	s.checked()
	s.done("a")
	s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key, Verdict: &Judgement{Outcome: OutcomeFail, Feedback: long}})
	s.done("a")
	s.judged("ga", OutcomePass)
	s.says("ga", OutcomeVeto, func(a *Answered) { a.Text = long })
	for _, f := range s.log {
		if raw, err := EncodeFact(f); err != nil || len(raw) > 3*MaxFeedback {
			t.Errorf("%s has %d bytes (%v)", f.FactKind(), len(raw), err)
		}
	}
}

func TestLimitsOfRuns(t *testing.T) {
	conform.Rule(t, "style 5", "runs that are alive, and vars, are bounded")
	w := one()
	w.Vars = []Var{{Name: "v", Default: ""}}
	s := &script{world: newWorld(t, w)}
	s.has(ignored(s.do(RunRequested{Workflow: "x", Digest: "d-x", Vars: map[string]any{"v": strings.Repeat("x", MaxVars)}})), "more than 64 KiB")
	for range MaxPending {
		s.do(RunRequested{Workflow: "x", Digest: "d-x"})
	}
	s.has(ignored(s.do(RunRequested{Workflow: "x", Digest: "d-x"})), fmt.Sprint(MaxPending, " runs are live"))
	if n := len(s.st.Runs); n != MaxPending {
		t.Errorf("%d runs", n)
	}
}

func TestBackoff(t *testing.T) {
	conform.Rule(t, "1-language restarts", "launches are tried again after a backoff that doubles up to its bound")
	var got []string
	for n := range 10 {
		got = append(got, backoff(n, backoffFirst, backoffMost).String())
	}
	if want := "2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s"; strings.Join(got, " ") != want {
		t.Errorf("got %v", got)
	}
	if d := backoff(1<<30, limitFirst, limitMost); d != limitMost {
		t.Errorf("got %s", d)
	}
}
