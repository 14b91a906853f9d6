package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// script plays the world by hand: one line of a test is one event.
type script struct {
	*world
	run string // the current run
	ids int
}

// begin starts the workflow's first run and carries out at once what it owes.
func begin(t *testing.T, rule, sentence string, specs ...*Spec) *script {
	t.Helper()
	if rule != "" {
		conform.Rule(t, rule, sentence)
	}
	s := &script{world: newWorld(t, specs...)}
	s.start(specs[0].ID)
	return s
}

// start requests a run and makes it the current one.
func (s *script) start(workflow string) string {
	s.t.Helper()
	s.do(RunRequested{Workflow: workflow, Digest: "d-" + workflow, By: Actor{Who: "ann"}})
	s.run = s.st.Order[len(s.st.Order)-1]
	s.writes()
	return s.run
}

func (s *script) r() *Run { return s.st.Runs[s.run] }

// writes writes every owed file.
func (s *script) writes() {
	for _, e := range s.owed(DoWrite) {
		s.do(FileWritten{Run: e.Run, ID: e.Key})
	}
}

// tell sends every notice.
func (s *script) tell() {
	for _, e := range s.owed(DoNotify) {
		s.do(Noticed{Run: e.Run, ID: e.Key, Results: []string{"log: shown"}})
	}
}

// later passes time, tick by tick.
func (s *script) later(d time.Duration) {
	end := s.now.Add(d)
	for range 10_000 {
		at := s.st.Wake(s.now)
		if at.IsZero() || at.After(end) {
			s.now = end
			s.do(Ticked{})
			return
		}
		s.now = at
		s.do(Ticked{})
	}
	s.t.Fatal("the clock does not come on")
}

// scan reads the inboxes, now.
func (s *script) scan() { s.do(Scanned{Began: s.now}) }

// sentinel puts a step's sentinel into the inbox.
func (s *script) sentinel(step, status string, more ...func(*FileSeen)) []Fact {
	s.ids++
	s.now = s.now.Add(time.Second)
	ev := FileSeen{Name: step + "-done.json", Dir: s.run, ID: fmt.Sprint("f", s.ids), Written: s.now, Sentinel: &Sentinel{Status: status}, By: Actor{Who: "agent"}}
	for _, m := range more {
		m(&ev)
	}
	return s.do(ev)
}

// exit ends the step's process.
func (s *script) exit(step string, e Exit) {
	s.t.Helper()
	a := s.r().Current(step)
	if a == nil {
		s.t.Fatalf("%s has no attempt", step)
	}
	s.do(ProcessEnded{Run: s.run, Key: a.Key, Exit: e})
}

// stopped ends every process that must stop.
func (s *script) stopped() {
	for _, e := range s.owed(DoStop) {
		s.do(ProcessEnded{Run: e.Run, Key: e.Key, Exit: Exit{Stopped: true}})
	}
}

// checked ends every check successfully.
func (s *script) checked() {
	for _, e := range s.owed(DoRun) {
		if e.Proc.Kind == ProcCheck {
			s.do(ProcessEnded{Run: e.Run, Key: e.Key, Check: &CheckResult{OK: true, Digest: "tree-" + e.Key}})
		}
	}
}

// done takes the step from running to its gate.
func (s *script) done(steps ...string) {
	s.t.Helper()
	for _, step := range steps {
		s.writes()
		if !strings.HasSuffix(s.step(step), "running") {
			s.t.Fatalf("%s is %s, not running", step, s.step(step))
		}
		s.sentinel(step, StatusDone)
		s.exit(step, Exit{})
		s.checked()
	}
}

// judged ends the gate's review with the outcome.
func (s *script) judged(gate, outcome string) []Fact {
	s.t.Helper()
	q := s.r().CurrentRound(gate)
	if q == nil || s.r().Procs.Of(q.Key) == nil {
		s.t.Fatalf("%s is not under review: %s", gate, s.gate(gate))
	}
	return s.do(ProcessEnded{Run: s.run, Key: q.Key, Verdict: &Judgement{Outcome: outcome, Feedback: outcome + " of " + gate}})
}

// says is a person's answer by command, about the current state; it returns why it did not count.
func (s *script) says(gate, outcome string, more ...func(*Answered)) string {
	s.now = s.now.Add(time.Second)
	ev := Answered{Gate: gate, Run: s.run, Outcome: outcome, Text: "because", Written: s.now, By: Actor{Who: "ann", Via: "command", Trust: TrustFile}}
	if r := s.r(); r != nil {
		if q := r.CurrentRound(gate); q != nil {
			ev.DigestNow = q.Digest
		}
	}
	for _, m := range more {
		m(&ev)
	}
	return ignored(s.do(ev))
}

func ignored(facts []Fact) string {
	for _, f := range facts {
		if i, ok := f.(Ignored); ok {
			return i.Why
		}
	}
	return ""
}

// step returns the step's current attempt in words: "2 running", "-" for none.
func (s *script) step(id string) string {
	a := s.r().Current(id)
	if a == nil {
		return "-"
	}
	return fmt.Sprint(a.N, " ", a.State)
}

// gate returns the gate's current round in words.
func (s *script) gate(id string) string {
	q := s.r().CurrentRound(id)
	if q == nil {
		return "-"
	}
	return fmt.Sprint(q.N, " ", q.State)
}

// failures returns the gate's count of failures.
func (s *script) failures(gate string) string { return fmt.Sprint(s.r().Fails[gate]) }

// want compares pairs of actual and expected values. If any differ it prints the newest facts.
func (s *script) want(pairs ...string) {
	s.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] != pairs[i+1] {
			s.t.Errorf("at %d: got %q, want %q", i/2, pairs[i], pairs[i+1])
		}
	}
	if s.t.Failed() {
		for _, f := range s.log[max(0, len(s.log)-12):] {
			raw, _ := EncodeFact(f)
			s.t.Logf("%.200s", raw)
		}
		s.t.FailNow()
	}
}

// has checks that the text contains the words.
func (s *script) has(text string, words ...string) {
	s.t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Fatalf("got %q, want %q in it", text, w)
		}
	}
}

// restart discards the state and replays the journal; away is how long the daemon was down.
func (s *script) restart(away time.Duration) {
	s.t.Helper()
	s.replayed()
	from := s.now
	s.now = s.now.Add(away)
	s.do(Woken{From: from, To: s.now})
	s.do(Ticked{})
}

func (s *script) owes(kind, key string) bool {
	for _, e := range s.owed(kind) {
		if strings.HasPrefix(e.Key, key) {
			return true
		}
	}
	return false
}

func count[F Fact](log []Fact) (n int) {
	for _, f := range log {
		if _, ok := f.(F); ok {
			n++
		}
	}
	return n
}

// aStep is a headless agent's step with a sentinel, in a worktree of its own.
func aStep(id string, more ...func(*Step)) *Step {
	st := &Step{ID: id, Name: id, Agent: &Agent{Type: "dev", Launch: LaunchHeadless, Worktree: Text{Source: "w-" + id}},
		Signal: Signal{Type: SignalFile, Value: ".workflow/signals/" + id + "-done.json"}, Gates: []string{"g" + id}}
	for _, m := range more {
		m(st)
	}
	return st
}

// aGate is an auto gate of the step; to are the targets of a pass.
func aGate(step string, to []string, more ...func(*Gate)) *Gate {
	g := &Gate{ID: "g" + step, Step: step, Reviewer: Reviewer{Level: LevelAuto, AgentType: "reviewer"}, OnPass: to, OnFail: step, MaxRetries: 3,
		OnExhausted: Human, RetryContext: ".workflow/retry-context/g" + step + "-attempt-{n}.md"}
	for _, m := range more {
		m(g)
	}
	return g
}

func to(targets ...string) []string { return targets }

func level(l string) func(*Gate)  { return func(g *Gate) { g.Reviewer.Level = l } }
func onFail(t string) func(*Gate) { return func(g *Gate) { g.OnFail = t } }
func most(m int) func(*Gate)      { return func(g *Gate) { g.MaxRetries = m } }
func exhausted(t string) func(*Gate) {
	return func(g *Gate) { g.OnExhausted = t }
}
func route(o, t string) func(*Gate) {
	return func(g *Gate) { g.Routes = append(g.Routes, Route{Outcome: o, To: t}) }
}
func needs(ids ...string) func(*Step) {
	return func(s *Step) { s.HasNeeds, s.Needs = true, ids }
}
func tree(w string) func(*Step) { return func(s *Step) { s.Agent.Worktree = Text{Source: w} } }

// flow makes a workflow of steps and gates, in any order.
func flow(id string, parts ...any) *Spec {
	w := &Spec{ID: id}
	for _, p := range parts {
		switch p := p.(type) {
		case *Step:
			w.Steps = append(w.Steps, p)
		case *Gate:
			w.Gates = append(w.Gates, p)
		case func(*Spec):
			p(w)
		}
	}
	return w
}

// ungated makes a step without a gate: the implicit one has its id.
func ungated(id string, next []string, more ...func(*Step)) (*Step, *Gate) {
	st := aStep(id, more...)
	st.Gates = []string{id}
	return st, &Gate{ID: id, Step: id, Implicit: true, Reviewer: Reviewer{Level: LevelAuto, FromStep: true}, OnPass: next, OnFail: EndFailed,
		OnExhausted: EndFailed, MaxRetries: 1, RetryContext: "rc/" + id + "-{n}.md"}
}
