package stats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice/engine"
)

const (
	quietRounds   = 50 // a gate that failed nothing in so many rounds is named
	overriddenMin = 3  // and one with so many failures, each overridden
)

// Counter counts facts of the runs of Workflow ("" = all) that started at Since or later. The zero
// value is ready; one goroutine uses it.
type Counter struct {
	Workflow string
	Since    time.Time

	from, to time.Time
	runs     map[string]*run
	order    []string // of runs
	steps    map[[2]string]*step
	gates    map[[2]string]*gate
	stepKeys [][2]string
	gateKeys [][2]string
	procs    map[string]*proc // by run and key
	roles    map[string]*Used
	days     map[string]*Used
	people   []time.Duration
	known    map[string]bool
}

type run struct {
	workflow   string
	child      bool
	phase      string
	start, end time.Time
	began      map[string]time.Time // the current attempt of a step
	rounds     map[string]*round    // the current round of a gate
}

type round struct {
	asked   time.Time // of a person; zero = not asked
	refused bool
}

type step struct {
	Step
	times []time.Duration
}

type gate struct {
	Gate
	people []time.Duration
}

type proc struct {
	role  string
	gate  *gate
	since time.Time
	used  engine.Usage
}

// Add counts a fact; facts come in the journal's order. A fact that it does not count is skipped.
func (c *Counter) Add(at time.Time, raw json.RawMessage) error {
	f, err := engine.DecodeFact(raw)
	if err != nil {
		return err
	}
	if c.runs == nil {
		c.runs, c.known = map[string]*run{}, map[string]bool{}
		c.steps, c.gates, c.procs = map[[2]string]*step{}, map[[2]string]*gate{}, map[string]*proc{}
		c.roles, c.days = map[string]*Used{}, map[string]*Used{}
	}
	if s, ok := f.(engine.RunStarted); ok && c.counts(s, at) {
		c.runs[s.Run] = &run{workflow: s.Workflow, child: s.Child != nil, phase: engine.RunPending, start: at,
			began: map[string]time.Time{}, rounds: map[string]*round{}}
		c.order = append(c.order, s.Run)
	}
	if r := c.runs[f.RunID()]; r != nil {
		if c.to = at; c.from.IsZero() {
			c.from = at
		}
		c.ofRun(r, f, at)
		c.ofGate(r, f, at)
		c.ofProcess(r, f, at)
	}
	return nil
}

// counts reports whether the run is counted; a child run is if its parent is.
func (c *Counter) counts(s engine.RunStarted, at time.Time) bool {
	if s.Child != nil {
		return c.runs[s.Child.Parent] != nil
	}
	c.known[s.Workflow] = true
	return !at.Before(c.Since) && (c.Workflow == "" || s.Workflow == c.Workflow)
}

func (c *Counter) ofRun(r *run, f engine.Fact, at time.Time) {
	switch f := f.(type) {
	case engine.RunBegan:
		r.phase = engine.RunRunning
	case engine.RunEnded:
		r.phase, r.end = f.Phase, at
		clear(r.rounds)
	case engine.RunReopened:
		r.phase, r.end = engine.RunRunning, time.Time{}
	case engine.StepStarted:
		c.step(r, f.Step).Attempts++
		r.began[f.Step] = at
	case engine.StepPassed:
		s := c.step(r, f.Step)
		s.Passed++
		if from, ok := r.began[f.Step]; ok {
			s.times = append(s.times, at.Sub(from))
		}
	}
}

func (c *Counter) ofGate(r *run, f engine.Fact, at time.Time) {
	switch f := f.(type) {
	case engine.RoundOpened:
		r.rounds[f.Gate] = &round{}
	case engine.Judged:
		if f.Outcome != engine.OutcomePass {
			c.gate(r, f.Gate).Refused++
			if q := r.rounds[f.Gate]; q != nil {
				q.refused = true
			}
		}
	case engine.Inconclusive:
		c.gate(r, f.Gate).Inconclusive++
	case engine.HumanAsked:
		if q := r.rounds[f.Gate]; q != nil && q.asked.IsZero() {
			q.asked = at
		}
	case engine.RoundPassed:
		g := c.gate(r, f.Gate)
		g.Passed++
		refused := c.decided(r, g, f.Gate, at)
		if refused && f.ByKind == engine.Human {
			g.Overridden++
		}
		if g.Quiet++; refused {
			g.Quiet = 0
		}
	case engine.RoundFailed:
		g := c.gate(r, f.Gate)
		g.Failed++
		switch q := r.rounds[f.Gate]; {
		case f.ByKind != engine.Human:
		case q == nil: // a late veto: the round had passed
			g.Passed--
			g.Vetoes++
		case q.asked.IsZero():
			g.Vetoes++
		}
		g.Quiet = 0
		c.decided(r, g, f.Gate, at)
	case engine.RoundRouted:
		g := c.gate(r, f.Gate)
		g.Routed++
		g.Quiet = 0
		c.decided(r, g, f.Gate, at)
	case engine.RoundVoided:
		g := c.gate(r, f.Gate)
		g.Voided++
		c.decided(r, g, f.Gate, at)
	}
}

// decided counts a round's wait for a person. It reports whether its reviewer had refused the work.
func (c *Counter) decided(r *run, g *gate, id string, at time.Time) bool {
	q := r.rounds[id]
	if q == nil {
		return false
	}
	delete(r.rounds, id)
	if !q.asked.IsZero() {
		g.people = append(g.people, at.Sub(q.asked))
		c.people = append(c.people, at.Sub(q.asked))
	}
	return q.refused
}

func (c *Counter) ofProcess(r *run, f engine.Fact, at time.Time) {
	switch f := f.(type) {
	case engine.StepLaunched:
		if !f.Offered && !f.Person {
			c.procs[f.Run+" "+f.Key] = &proc{role: f.Role, since: at}
		}
	case engine.ReviewStarted:
		c.procs[f.Run+" "+f.Key] = &proc{role: f.Role, gate: c.gate(r, f.Gate), since: at}
	case engine.ClockBegun:
		if p := c.procs[f.Run+" "+f.Key]; p != nil {
			p.since = at // until now it waited for a slot
		}
	case engine.UsageCounted:
		if p := c.procs[f.Run+" "+f.Key]; p != nil {
			p.used = f.Usage
		}
	case engine.ProcessGone:
		if p := c.procs[f.Run+" "+f.Key]; p != nil {
			delete(c.procs, f.Run+" "+f.Key)
			p.used.Tokens = max(p.used.Tokens, f.Exit.Usage.Tokens)
			p.used.CostUSD = max(p.used.CostUSD, f.Exit.Usage.CostUSD)
			c.use(p, at, cmp.Or(f.Day, at.Format(time.DateOnly)))
		}
	}
}

// use counts a process that has ended.
func (c *Counter) use(p *proc, at time.Time, day string) {
	role := cmp.Or(p.role, "(commands)")
	for _, x := range []struct {
		of   map[string]*Used
		name string
	}{{c.roles, role}, {c.days, day}} {
		u := x.of[x.name]
		if u == nil {
			u = &Used{Name: x.name}
			x.of[x.name] = u
		}
		u.Launches++
		u.Time += engine.Duration(at.Sub(p.since))
		u.Tokens, u.CostUSD = u.Tokens+p.used.Tokens, u.CostUSD+p.used.CostUSD
	}
	if p.gate != nil {
		p.gate.Time += engine.Duration(at.Sub(p.since))
		p.gate.Reviews.Tokens += p.used.Tokens
		p.gate.Reviews.CostUSD += p.used.CostUSD
	}
}

func (c *Counter) step(r *run, id string) *step {
	key := [2]string{r.workflow, id}
	if c.steps[key] == nil {
		c.steps[key] = &step{Step: Step{Workflow: r.workflow, Step: id}}
		c.stepKeys = append(c.stepKeys, key)
	}
	return c.steps[key]
}

func (c *Counter) gate(r *run, id string) *gate {
	key := [2]string{r.workflow, id}
	if c.gates[key] == nil {
		c.gates[key] = &gate{Gate: Gate{Workflow: r.workflow, Gate: id}}
		c.gateKeys = append(c.gateKeys, key)
	}
	return c.gates[key]
}

// Known returns the workflows that have run, counted or not, sorted.
func (c *Counter) Known() []string { return slices.Sorted(maps.Keys(c.known)) }

// Stats returns what was counted so far.
func (c *Counter) Stats() Stats {
	out := Stats{From: c.from, To: c.to, People: timesOf(c.people),
		Steps: []Step{}, Gates: []Gate{}, Roles: []Used{}, Days: []Used{}}
	var took []time.Duration
	for _, id := range c.order {
		r := c.runs[id]
		if r.child {
			continue
		}
		switch r.phase {
		case engine.RunCompleted:
			out.Runs.Completed++
		case engine.RunFailed:
			out.Runs.Failed++
		case engine.RunAborted:
			out.Runs.Aborted++
		default:
			out.Runs.Live++
			continue
		}
		took = append(took, r.end.Sub(r.start))
	}
	out.Runs.Times = timesOf(took)
	byWorkflow := func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) }
	for _, key := range slices.SortedStableFunc(slices.Values(c.stepKeys), byWorkflow) {
		s := c.steps[key]
		s.Times = timesOf(s.times)
		out.Steps = append(out.Steps, s.Step)
	}
	for _, key := range slices.SortedStableFunc(slices.Values(c.gateKeys), byWorkflow) {
		g := c.gates[key]
		g.Rounds, g.People = g.Passed+g.Failed+g.Routed, timesOf(g.people)
		out.Gates = append(out.Gates, g.Gate)
		if text := advice(g.Gate); text != "" {
			out.Advice = append(out.Advice, Advice{g.Workflow, g.Gate.Gate, text})
		}
	}
	for _, u := range c.roles {
		out.Roles = append(out.Roles, *u)
	}
	slices.SortFunc(out.Roles, func(a, b Used) int {
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(b.Tokens, a.Tokens),
			cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, day := range slices.Sorted(maps.Keys(c.days)) {
		out.Days = append(out.Days, *c.days[day])
	}
	return out
}

// advice returns why a gate may not earn its cost; "" if it does, or if that is unknown.
func advice(g Gate) string {
	switch {
	case g.Quiet >= quietRounds:
		return fmt.Sprintf("failed nothing in its last %d rounds", g.Quiet)
	case g.Refused >= overriddenMin && g.Overridden == g.Refused:
		return fmt.Sprintf("a person overrode all %d failures", g.Refused)
	}
	return ""
}

func timesOf(all []time.Duration) Times {
	if len(all) == 0 {
		return Times{}
	}
	sorted := slices.Sorted(slices.Values(all))
	t := Times{Count: len(all), Median: engine.Duration(sorted[len(sorted)/2]),
		Most: engine.Duration(sorted[len(sorted)-1])}
	for _, d := range all {
		t.Sum += engine.Duration(d)
	}
	return t
}
