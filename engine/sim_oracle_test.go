package engine

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"sluice/tools/conform"
	"sluice/tools/oracle"
)

// beside feeds the model the engine's events and compares the two after each event. It translates
// what the model does not know: a check between the signal and the gate (the model's process ends
// with it), the grace after an exit without a signal (likewise), a verdict and its process's end in
// one event, owed files and backoffs (Withheld).
type beside struct {
	m    *oracle.State
	runs map[string]int    // the engine's run -> the model's
	ends map[string]string // launch -> ok or crash
	seqs map[string]int    // file or answer -> the model's count when it was written
}

func newBeside() *beside {
	return &beside{m: oracle.New(), runs: map[string]int{}, ends: map[string]string{}, seqs: map[string]int{}}
}

// follow passes the event to the model, and compares.
func (b *beside) follow(w *sim, t *told, facts []Fact, pre *glimpse) {
	b.m.Withheld = func(run int, step, gate string) bool { return b.withheld(w, facts, run, step, gate) }
	evs := b.needs(w, facts)
	if pre != nil && !pre.taken {
		evs = append(evs, b.told(w, t, facts, pre)...)
	}
	evs = append(evs, b.gone(w, facts, true)...)
	for _, f := range facts {
		switch f := f.(type) {
		case RunBegan:
			if w.st.Runs[f.Run].Workflow[0] == 'x' { // the model only hears what others need of it
				continue
			}
			b.runs[f.Run] = len(b.m.Runs) + 1
			evs = append(evs, oracle.Event{K: "start", Spec: b.spec(w.spec(w.st.Runs[f.Run].Digest), f.Run)})
		case WindowOpened:
			evs = append(evs, oracle.Event{K: "noticed", Run: b.runs[f.Run], Gate: f.Gate, N: f.N})
		case Judged:
			if b.runs[f.Run] > 0 && w.spec(w.st.Runs[f.Run].Digest).Gate(f.Gate).Reviewer.FromStep {
				evs = append(evs, oracle.Event{K: "review", Run: b.runs[f.Run], Gate: f.Gate, N: f.N, Status: f.Outcome})
			}
		}
	}
	oracle.Handle(b.m, evs...)
	if after := b.gone(w, facts, false); len(after) > 0 { // what a run's end has undone is no longer judged
		oracle.Handle(b.m, after...)
	}
	b.compare(w, t)
}

func (b *beside) withheld(w *sim, facts []Fact, run int, step, gate string) bool {
	for id, n := range b.runs {
		if n != run {
			continue
		}
		r := w.st.Runs[id]
		if !r.Live() { // it ended in this event, with what was owed: was it launched before?
			return step != "" && !slices.ContainsFunc(facts, func(f Fact) bool { l, ok := f.(StepLaunched); return gate == "" && ok && l.Run == id && l.Step == step })
		}
		if gate != "" {
			q := r.CurrentRound(gate)
			return q != nil && q.NotBefore.After(w.now)
		}
		a := r.Current(step)
		return len(r.Writes) > 0 || a != nil && a.NotBefore.After(w.now)
	}
	return false
}

// told translates the event itself.
func (b *beside) told(w *sim, t *told, facts []Fact, pre *glimpse) []oracle.Event {
	switch ev := t.ev.(type) {
	case FileSeen:
		seq := b.seqs[ev.ID]
		if s := ev.Sentinel; s != nil {
			step := ev.Name[:len(ev.Name)-len("-done.json")]
			return []oracle.Event{{K: "signal", Run: b.runs[ev.Dir], Step: step, N: s.Attempt, Launch: s.Launch, Status: s.Status, Written: seq}}
		}
		return []oracle.Event{{K: "human", Run: b.runs[ev.Dir], Gate: t.key, N: ev.Human.Round, Status: ev.Name[len(t.key)+1:], Written: seq, File: true}}
	case Answered:
		return []oracle.Event{{K: "human", Run: b.runs[ev.Run], Gate: ev.Gate, N: ev.Round, Status: ev.Outcome, Written: b.m.Seq}}
	case PauseRequested:
		return []oracle.Event{{K: "pause", Run: b.runs[ev.Run]}}
	case ResumeRequested:
		return []oracle.Event{{K: "resume", Run: b.runs[ev.Run]}}
	case AbortRequested:
		return []oracle.Event{{K: "abort", Run: b.runs[ev.Run]}}
	case RetryRequested:
		return []oracle.Event{{K: "retry", Run: b.runs[ev.Run], Step: ev.Step}}
	case ProcessEnded:
		return b.ended(w, ev, facts)
	case Scanned:
		return b.closed(w, pre)
	}
	return nil
}

// ended: a review's verdict and the end of its process are one event for the engine, two for the
// model.
func (b *beside) ended(w *sim, ev ProcessEnded, facts []Fact) []oracle.Event {
	if !slices.ContainsFunc(facts, func(f Fact) bool { g, ok := f.(ProcessGone); return ok && g.Key == ev.Key }) {
		return nil
	}
	p := w.procs[ev.Key]
	if p == nil || p.kind != ProcReview {
		b.ends[ev.Key] = "ok"
		if ev.Exit != (Exit{}) {
			b.ends[ev.Key] = "crash"
		}
		return nil
	}
	run := b.runs[ev.Run]
	var evs []oracle.Event
	if ev.Verdict != nil {
		what := ev.Verdict.Outcome
		if what == Human {
			what = "esc"
		}
		evs = append(evs, oracle.Event{K: "review", Run: run, Gate: p.gate, N: p.n, Launch: p.k, Status: what})
	}
	return evs
}

func (b *beside) closed(w *sim, pre *glimpse) (evs []oracle.Event) {
	for _, c := range pre.closes {
		if c.gate == "" {
			evs = append(evs, oracle.Event{K: "signal", Run: b.runs[c.run], Step: c.step, N: c.n, Launch: c.k, Status: StatusFailed})
			continue
		}
		evs = append(evs, oracle.Event{K: "expired", Run: b.runs[c.run], Gate: c.gate, N: c.n})
	}
	return evs
}

// judged reports whether a round of the step opened in this event: its process was gone before.
func judged(facts []Fact, run, step string) bool {
	return slices.ContainsFunc(facts, func(f Fact) bool { q, ok := f.(RoundOpened); return ok && q.Run == run && q.Step == step })
}

// gone returns ends of the model's processes that the engine no longer has, in runs that continue
// or in ended ones.
func (b *beside) gone(w *sim, facts []Fact, on bool) (evs []oracle.Event) {
	var undone []oracle.Event // of attempts that the event has undone: their cause comes first
	for _, id := range w.st.Order {
		r, run := w.st.Runs[id], b.runs[id]
		for _, key := range b.m.Order {
			p := b.m.Procs[key]
			if p.Run != run || (r.Live() || judged(facts, id, p.Step)) != on {
				continue
			}
			if p.Gate != "" {
				if r.Procs.Of(launchKey(id, p.Gate, p.N, p.Launch)) == nil {
					evs = append(evs, oracle.Event{K: "gone", Key: key})
				}
				continue
			}
			ek := launchKey(id, p.Step, p.N, p.Launch)
			a := r.Attempt(p.Step, p.N)
			grace := a.State == Running && a.K == p.Launch && !a.GraceUntil.IsZero()
			checked := slices.ContainsFunc(r.Procs, func(x *Proc) bool { return x.Kind == ProcCheck && x.Step == p.Step && x.N == p.N })
			switch gone := (oracle.Event{K: "gone", Key: key, Status: b.ends[ek]}); {
			case r.Procs.Of(ek) != nil || grace || checked:
			case a.State == Superseded && !judged(facts, id, p.Step):
				undone = append(undone, gone)
			default:
				evs = append(evs, gone)
			}
		}
	}
	return append(evs, undone...)
}

// needs reports to the model which needs of other workflows are met now.
func (b *beside) needs(w *sim, facts []Fact) (evs []oracle.Event) {
	started := map[string]bool{}
	for _, f := range facts {
		switch f := f.(type) {
		case StepStarted:
			started[f.Run+"/"+f.Step] = true
		case StepSkipped:
			started[f.Run+"/"+f.Step] = true
		}
	}
	for _, id := range w.st.Order {
		r := w.st.Runs[id]
		for _, st := range w.spec(r.Digest).Steps {
			if len(st.ExtNeeds) == 0 {
				continue
			}
			on := started[id+"/"+st.ID]
			if o := w.st.index.newest(st.ExtNeeds[0].Workflow, r); o != nil && o.Current("e").Done() {
				on = on || slices.Equal(r.Met[st.ID], []string{fmt.Sprintf("%s/e#%d", o.ID, o.Current("e").N)})
			}
			evs = append(evs, oracle.Event{K: "ext", Key: id + "/" + st.ID, On: on})
		}
	}
	return evs
}

// spec translates a workflow.
func (b *beside) spec(w *Spec, run string) *oracle.Spec {
	out := &oracle.Spec{Steps: map[string]*oracle.Step{}, Gates: map[string]*oracle.Gate{}, Starts: map[string]bool{}, MaxSteps: w.Limits.MaxSteps,
		LimitHuman: w.Limits.OnHit["max_steps"] == Human, Skip: func(step string, n int) bool { return !drawn(run, step, n) }}
	for _, st := range w.Steps {
		out.Order = append(out.Order, st.ID)
		s := &oracle.Step{ID: st.ID, Gates: st.Gates, Needs: st.Needs, When: st.When.Eval != nil, WT: run + "/" + st.Agent.Worktree.Source, Reads: st.Agent.Reads, Apart: apart(st.ID), Retries: 1}
		if st.Restarts != nil {
			s.Retries = *st.Restarts
		}
		if len(st.ExtNeeds) > 0 {
			s.Ext = run + "/" + st.ID
		}
		out.Steps[st.ID], out.Starts[st.ID] = s, st.HasNeeds && len(st.Needs) == 0
	}
	exh := map[string]string{EndFailed: "fail", EndAborted: "abort"}
	for _, g := range w.Gates {
		o := &oracle.Gate{ID: g.ID, Step: g.Step, Level: g.Reviewer.Level, OnPass: g.OnPass, OnFail: g.OnFail, Routes: map[string]string{}, M: g.MaxRetries, OnExh: g.OnExhausted}
		if e, ok := exh[g.OnExhausted]; ok {
			o.OnExh = e
		}
		for _, r := range g.Routes {
			o.Routes[r.Outcome] = r.To
		}
		out.Gates[g.ID] = o
	}
	if !out.Derive() {
		panic("the model does not load what the engine loads")
	}
	return out
}

// compare compares the two states.
func (b *beside) compare(w *sim, t *told) {
	for id, n := range b.runs {
		r, m := w.st.Runs[id], b.m.Runs[n-1]
		differ := func(what string, engine, model any) {
			if !reflect.DeepEqual(engine, model) {
				w.fail("after %s: %s: %s: engine %v, model %v", t.ev.EventKind(), id, what, engine, model)
			}
		}
		differ("phase", fmt.Sprint(r.Phase, r.Paused), fmt.Sprint(m.Phase, m.Paused))
		differ("steps begun and allowed", []int{r.Begun, r.Allowance}, []int{m.Begun, m.Allowance})
		differ("sent", fmt.Sprint(r.Sent), fmt.Sprint(m.Sent))
		for _, st := range w.spec(r.Digest).Steps {
			differ("attempts of "+st.ID, engineAttempts(r.Attempts[st.ID]), modelAttempts(m.Att[st.ID]))
		}
		for _, g := range w.spec(r.Digest).Gates {
			differ("rounds of "+g.ID, engineRounds(r.Rounds[g.ID]), modelRounds(m.Rounds[g.ID]))
			differ("counts of "+g.ID, fmt.Sprint(r.Fails[g.ID], r.Forced[g.ID], r.Exhausted[g.ID], r.Renews[g.ID]), fmt.Sprint(m.Fails[g.ID], m.Forced[g.ID], m.Exh[g.ID], m.Renews[g.ID]))
			for _, to := range g.Routes {
				differ("count of "+g.ID+" "+to.Outcome, r.Count(g.ID, to.Outcome), m.Fails[oracle.Route(g.ID, to.Outcome)])
			}
		}
	}
}

func engineAttempts(as []*Attempt) (out []string) {
	for _, a := range as {
		out = append(out, fmt.Sprintf("%d.%d %s %v", a.N, a.K, a.State, a.To))
	}
	return out
}

func modelAttempts(as []*oracle.Attempt) (out []string) {
	for _, a := range as {
		out = append(out, fmt.Sprintf("%d.%d %s %v", a.N, a.Launch, a.State, a.To))
	}
	return out
}

func engineRounds(qs []*Round) (out []string) {
	for _, q := range qs {
		out = append(out, fmt.Sprintf("%d over %d %s %s", q.N, q.Attempt, q.Level, q.State))
	}
	return out
}

func modelRounds(qs []*oracle.Round) (out []string) {
	for _, q := range qs {
		out = append(out, fmt.Sprintf("%d over %d %s %s", q.N, q.Attempt, q.Level, q.State))
	}
	return out
}

// TestOracle plays random histories on the engine and on the design's own model and compares them
// after every event.
func TestOracle(t *testing.T) {
	conform.Rule(t, "8-semantics model", "the engine and the design's model agree after every event of the same histories")
	play(t, 170, true)
}
