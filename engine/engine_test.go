package engine

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"sluice/tools/conform"
)

// world is a small driver for scripts: one repo and a manual clock.
type world struct {
	t     *testing.T
	st    *State
	specs map[string]*Spec
	now   time.Time
	log   []Fact
	stamp []time.Time
}

func newWorld(t *testing.T, specs ...*Spec) *world {
	w := &world{t: t, st: NewState(), specs: map[string]*Spec{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	if watchMoves != nil {
		t.Cleanup(func() { watchMoves.replay(w) })
	}
	for _, s := range specs {
		if f := s.Link(); f != nil {
			t.Fatalf("spec %s: %v", s.ID, f)
		}
		s.Digest = "d-" + s.ID
		w.specs[s.Digest] = s
	}
	return w
}

func (w *world) spec(digest string) *Spec { return w.specs[digest] }

func (w *world) do(ev Event) []Fact {
	w.t.Helper()
	facts := Decide(w.st, w.spec, ev, w.now)
	for _, f := range facts {
		w.log, w.stamp = append(w.log, f), append(w.stamp, w.now)
	}
	return facts
}

// replayed checks I11: the facts alone, read back from JSON, reproduce the live state.
func (w *world) replayed() {
	w.t.Helper()
	st := NewState()
	for i, f := range w.log {
		raw, err := EncodeFact(f)
		if err != nil {
			w.t.Fatal(err)
		}
		back, err := DecodeFact(raw)
		if err != nil {
			w.t.Fatal(err)
		}
		st.Apply(w.stamp[i], back)
	}
	a, _ := json.Marshal(st)
	b, _ := json.Marshal(w.st)
	if string(a) != string(b) {
		w.t.Errorf("replay gives another state:\n%s\n%s", a, b)
	}
	var snap State
	if err := json.Unmarshal(b, &snap); err != nil {
		w.t.Fatal(err)
	}
	c, _ := json.Marshal(&snap)
	if !reflect.DeepEqual(b, c) {
		w.t.Error("a snapshot does not read back as the state")
	}
}

func (w *world) owed(kind string) []Effect {
	var out []Effect
	for _, e := range w.st.Owed(w.spec) {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// example is document 004's pipeline in the compiled form.
func example() *Spec {
	step := func(id, gate string) *Step {
		return &Step{ID: id, Name: id, Agent: &Agent{Type: "role-" + id, Launch: LaunchHeadless, Worktree: Text{Source: "phase-4/"}},
			Outputs: []Output{{Path: Text{Source: "out"}}}, Signal: Signal{Type: SignalFile, Value: ".workflow/signals/" + id + "-done.json"}, Gates: []string{gate}}
	}
	return &Spec{ID: "ex", Steps: []*Step{step("X-1", "XG-1-2"), step("X-2", "XG-2-end")}, Gates: []*Gate{
		{ID: "XG-1-2", Step: "X-1", Reviewer: Reviewer{Level: LevelNotify, AgentType: "reviewer"}, OnPass: []string{"X-2"}, OnFail: "X-1", MaxRetries: 2,
			RetryContext: ".workflow/retry-context/XG-1-2-attempt-{n}.md", OnExhausted: Human},
		{ID: "XG-2-end", Step: "X-2", Reviewer: Reviewer{Level: LevelHuman}, OnPass: []string{EndDone}, OnFail: "X-2", MaxRetries: 3,
			RetryContext: ".workflow/retry-context/XG-2-end-attempt-{n}.md", OnExhausted: Human},
	}}
}

// finish makes the only running step signal, end and be checked.
func (w *world) finish(run, step string) {
	w.t.Helper()
	a := w.st.Runs[run].Current(step)
	if a == nil || a.State != Running {
		w.t.Fatalf("%s is not running: %+v", step, a)
	}
	w.now = w.now.Add(time.Second)
	w.do(FileSeen{Name: step + "-done.json", ID: step + w.now.String(), Written: w.now, Sentinel: &Sentinel{Step: step, Status: StatusDone}})
	w.do(ProcessEnded{Run: run, Key: a.Key})
	for _, e := range w.owed(DoRun) {
		if e.Proc.Kind == ProcCheck {
			w.do(ProcessEnded{Run: run, Key: e.Key, Check: &CheckResult{OK: true, Digest: "tree-" + e.Key}})
		}
	}
}

func (w *world) review(run, gate string, j Judgement) {
	w.t.Helper()
	q := w.st.Runs[run].CurrentRound(gate)
	w.do(ProcessEnded{Run: run, Key: q.Key, Verdict: &j})
}

func TestExampleToDone(t *testing.T) {
	conform.Rule(t, "8-semantics 20", "pass, notice, window from noticed, closed by the first scan begun after its deadline")
	conform.Rule(t, "1-language rule 1", "from the first step over a failed review to DONE")
	conform.Rule(t, "004 §2 Gate.on_pass", "a pass goes to X-2")
	conform.Rule(t, "004 §2 Gate.on_fail", "a fail goes back to X-1, with its context owed")
	conform.Rule(t, "004 §2 Gate", "the steps do not say what comes next")
	conform.Rule(t, "004 §2 Step", "the gate decides where the work goes")
	conform.Rule(t, "004 §2 Signal", "a sentinel brings the step to its gate")
	conform.Rule(t, "004 §2 Retry.written", "the write is owed before the next attempt is launched")
	conform.Rule(t, "004 §2 Reviewer.notify", "decided by the reviewer, told, on after the window")
	conform.Rule(t, "004 §2 Reviewer.human", "on by a person's pass file")
	conform.Rule(t, "004 §2 Reviewer.per-gate", "a notify gate and a human one in one run")
	conform.Rule(t, "004 §3 DONE", "the last pass completes the run")
	conform.Rule(t, "3-engine folded", "the facts read back give the live state")
	w := newWorld(t, example())
	w.do(RunRequested{Workflow: "ex", Digest: "d-ex"})
	r := w.st.Runs["ex-1"]
	w.do(FileWritten{Run: "ex-1", ID: w.owed(DoWrite)[0].Key}) // the files of earlier runs are out of the way
	w.finish("ex-1", "X-1")
	w.review("ex-1", "XG-1-2", Judgement{Outcome: OutcomeFail, Feedback: "no edge cases"})
	if a := r.Current("X-1"); a.N != 2 || a.State != Ready {
		t.Fatalf("a failed review sends back: %+v", a)
	}
	if ws := w.owed(DoWrite); len(ws) != 1 || ws[0].Write.Path != ".workflow/retry-context/XG-1-2-attempt-1.md" {
		t.Fatalf("the retry context is owed: %+v", ws)
	}
	w.do(FileWritten{Run: "ex-1", ID: w.owed(DoWrite)[0].Key})
	w.finish("ex-1", "X-1")
	w.review("ex-1", "XG-1-2", Judgement{Outcome: OutcomePass})
	w.do(Noticed{ID: w.owed(DoNotify)[0].Key, Results: []string{"log: shown"}})
	q := r.CurrentRound("XG-1-2")
	if q.State != OnWindow {
		t.Fatalf("the window opens when the notice was attempted: %+v", q)
	}
	w.now = w.st.Wake(w.now)
	w.do(Scanned{Began: w.now.Add(-time.Millisecond)})
	if q.State != OnWindow {
		t.Fatal("a scan begun before the deadline does not close the window")
	}
	w.do(Scanned{Began: w.now})
	w.finish("ex-1", "X-2")
	q = r.CurrentRound("XG-2-end")
	w.do(FileSeen{Name: "XG-2-end-pass", ID: "p", Written: w.now, Human: &HumanSay{}, DigestNow: q.Digest, By: Actor{Who: "ann", Via: "file"}})
	if r.Phase != RunCompleted {
		t.Fatalf("phase %s; %+v", r.Phase, w.log[len(w.log)-3:])
	}
	w.replayed()
}
