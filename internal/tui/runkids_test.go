package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
)

// family is a host with several runs.
type family struct {
	served
	runs []daemon.RunStatus
}

func (s *family) Status(context.Context, string) (daemon.Status, error) {
	return daemon.Status{Runs: s.runs}, nil
}

// TestTheScreenHasTheChildrensGates: a gate of a task's run asks at the screen of the run that the task is of, by the task's
// name; what is typed is for that gate and that round, also where another one comes to ask meanwhile.
func TestTheScreenHasTheChildrensGates(t *testing.T) {
	now := time.Now()
	parent := daemon.RunStatus{ID: "goal-1", Workflow: "goal", Phase: engine.RunRunning, Started: now,
		Steps: []daemon.StepStatus{{ID: "work", State: engine.Running}}, Waits: []daemon.Wait{{Kind: "tasks", Step: "work", Text: "work for its tasks"}}}
	kid := func(id, of, task, kind, state string) daemon.RunStatus {
		r := at(kind, state)
		r.ID, r.Child = id, &engine.ChildOf{Parent: of, Step: "work", Task: task, Try: 2}
		return r
	}
	other := kid("other-1.T9.1", "other-1", "T9", "human", engine.OnHuman)
	over := kid("goal-1.T0.2", "goal-1", "T0", "human", engine.OnHuman)
	over.Phase = engine.RunCompleted
	sc, _ := newScreen(parent)
	s := &family{runs: []daemon.RunStatus{parent, other, over, kid("goal-1.T1.2", "goal-1", "T1", "agent", ""), kid("goal-1.T1.2.S3.2", "goal-1.T1.2", "S3", "human", engine.OnHuman)}}
	sc.host = s
	sc.kids = sc.kidsNow(t.Context())
	if len(sc.kids) != 2 {
		t.Fatalf("%d runs below", len(sc.kids))
	}
	all := bare(strings.Join(sc.frame(120, 30, now), "\n"))
	for _, want := range []string{"? S3 of goal-1.T1.2, try 2 waits", "? G review of S3 of goal-1.T1.2, try 2 asks you", "p pass"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	_ = sc.typeKeys(t, "p", "\r")
	_ = sc.typeKeys(t, "f", "bad")
	sc.kids = []daemon.RunStatus{kid("goal-1.T2.2", "goal-1", "T2", "human", engine.OnHuman), sc.kids[1]} // it asks before the other
	_ = sc.typeKeys(t, "\r")
	if got := answers(s.events); got != "goal-1.T1.2.S3.2 G#3 pass, goal-1.T1.2.S3.2 G#3 fail" {
		t.Errorf("answered %s", got)
	}
	s.events = s.events[:1]
	_ = sc.typeKeys(t, "f", "bad")
	sc.kids = sc.kids[1:] // it was answered elsewhere meanwhile
	_ = sc.typeKeys(t, "\r")
	if got := answers(s.events); got != "goal-1.T1.2.S3.2 G#3 pass" {
		t.Errorf("answered %s", got)
	}
	if !strings.Contains(sc.note, "does not ask any more") {
		t.Errorf("%q", sc.note)
	}
	sc.kids = []daemon.RunStatus{kid("goal-1.T2.2", "goal-1", "T2", "window", engine.OnWindow)}
	_ = sc.typeKeys(t, "v", "no", "\r")
	if got := answers(s.events[1:]); got != "goal-1.T2.2 G#3 veto" {
		t.Errorf("answered %s", got)
	}
	// Of many, only those that wait for a person are shown.
	sc.kids = nil
	for i := range kidsShown + 1 {
		sc.kids = append(sc.kids, kid(fmt.Sprintf("goal-1.K%d.1", i), "goal-1", fmt.Sprint("K", i), "agent", ""))
	}
	if got := sc.kidLines(now); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if sc.kids = sc.kids[1:]; len(sc.kidLines(now)) != kidsShown {
		t.Errorf("%q", sc.kidLines(now))
	}
	sc.run.Waits = nil
	if got := sc.kidsNow(t.Context()); got != nil {
		t.Errorf("looked for without a list: %v", got)
	}
}

func answers(events []engine.Event) string {
	var out []string
	for _, ev := range events {
		if an, ok := ev.(engine.Answered); ok {
			out = append(out, fmt.Sprintf("%s %s#%d %s", an.Run, an.Gate, an.Round, an.Outcome))
		}
	}
	return strings.Join(out, ", ")
}
