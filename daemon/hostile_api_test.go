package daemon

import (
	"testing"

	"sluice/engine"
)

// leaky is a world whose sandbox holds what is to come, and did not hold an agent of any run so far.
type leaky struct{ *stage }

func (leaky) Level(run string) (level, why string) {
	if run == "" {
		return engine.TrustSandbox, ""
	}
	return engine.TrustFile, "an agent was not held"
}

// TestAnswerThatNamesNoRun: it has the level of the run that it is for, not of runs to come.
func TestAnswerThatNamesNoRun(t *testing.T) {
	s := serveTest(t, t.TempDir(), leaky{newStage()})
	if _, err := s.client.Do(t.Context(), engine.RunRequested{Workflow: "two", Source: "two"}, ""); err != nil {
		t.Fatal(err)
	}
	asks := func(r RunStatus) bool { _, g := r.Gate("GB"); return g != nil && g.State == engine.OnHuman }
	s.until("two-1", "the gate asks", asks)
	done, err := s.client.Do(t.Context(), engine.Answered{Gate: "GB", Outcome: engine.OutcomePass}, "")
	if err != nil || done.Ignored != "" {
		t.Fatalf("%+v %v", done, err)
	}
	r := s.until("two-1", "the run is over", func(r RunStatus) bool { return !r.Live() })
	if _, g := r.Gate("GB"); g.By == nil || g.By.Trust != engine.TrustFile {
		t.Errorf("decided by %+v", g.By)
	}
}
