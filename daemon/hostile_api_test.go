package daemon

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
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

// idle is a world in which no process ends.
type idle struct{ *stage }

func (w idle) Carry(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	if j.Kind != engine.DoRun {
		return w.stage.Carry(ctx, j, emit)
	}
	<-ctx.Done()
	return nil
}

// TestHostileJSON: what a broken client submits is refused, and neither the journal nor a reader of it is harmed.
func TestHostileJSON(t *testing.T) {
	root := t.TempDir()
	world := idle{newStage()}
	s := serveTest(t, root, world)
	if _, err := s.client.Do(t.Context(), engine.RunRequested{Workflow: "two", Source: "two"}, ""); err != nil {
		t.Fatal(err)
	}
	s.until("two-1", "the step is at work", func(r RunStatus) bool { return r.Step("A").State == engine.Running })
	const deep = 9996
	for what, event := range map[string]string{
		"deep":    `{"name":"A-done.json","dir":"two-1","sentinel":{"answer":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}}`,
		"doubled": `{"run":"two-1","run":"two-2","step":"A"}`,
		"case":    `{"run":"two-1","Run":"two-2","step":"A"}`,
	} {
		kind := engine.Claimed{}.EventKind()
		if what == "deep" {
			kind = engine.FileSeen{}.EventKind()
		}
		var done Done
		err := s.client.ask(t.Context(), "POST", "/v1/do", Do{Kind: kind, Event: json.RawMessage(event)}, &done)
		if err == nil {
			t.Errorf("%s: taken: %s", what, done.Ignored)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := s.client.Run(ctx, "two-1"); err != nil {
		t.Errorf("status: %.300v", err)
	}
	s.stop()
	again := serveTest(t, root, world)
	if _, err := again.client.Run(ctx, "two-1"); err != nil {
		t.Errorf("after a restart: %.300v", err)
	}
}
