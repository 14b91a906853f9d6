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

// Counter counts facts of the runs of Workflow ("" = all) that started at Since or later, without
// runs with stubs. A gate with the id of its step counts as none: it stands for a step's missing
// gate. The zero value is ready; one goroutine uses it.
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
	stubbed  int
	known    map[string]bool // workflows by name: true = it ran by itself
}

type run struct {
	workflow   string
	child      bool
	phase      string
	start      time.Time            // since when it is live
	took       time.Duration        // in all, reopened or not
	began      map[string]time.Time // the current attempt of a step
	rounds     map[string]*round    // the current round of a gate
	overridden map[string]bool      // the gate's last pass overrode a failure
	implicit   map[string]bool      // gates with their step's id
}

type round struct {
	step   string
	asked  time.Time // of a person; zero = not asked
	failed bool      // not by a person
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
	held  bool // it waits for a slot
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
		r := &run{workflow: s.Workflow, child: s.Child != nil, phase: engine.RunPending, start: at,
			began: map[string]time.Time{}, rounds: map[string]*round{}, overridden: map[string]bool{},
			implicit: map[string]bool{}}
		if r.child && c.runs[s.Child.Parent].workflow == s.Workflow { // the task of a list, with the list's own step
			r.workflow += " (task)"
		}
		c.runs[s.Run] = r
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
	if c.known[s.Workflow] = c.known[s.Workflow] || s.Child == nil; s.Child != nil {
		return c.runs[s.Child.Parent] != nil
	}
	if at.Before(c.Since) || c.Workflow != "" && s.Workflow != c.Workflow {
		return false
	}
	if len(s.Stubs) > 0 {
		c.stubbed++
		return false
	}
	return true
}

func (c *Counter) ofRun(r *run, f engine.Fact, at time.Time) {
	switch f := f.(type) {
	case engine.RunBegan:
		r.phase = engine.RunRunning
	case engine.RunEnded:
		r.phase = f.Phase
		r.took += since(r.start, at)
		c.undone(r, "", at)
	case engine.RunReopened:
		r.phase, r.start = engine.RunRunning, at
	case engine.StepSuperseded:
		c.undone(r, f.Step, at)
	case engine.StepStarted:
		c.step(r, f.Step).Attempts++
		r.began[f.Step] = at
	case engine.StepPassed:
		s := c.step(r, f.Step)
		s.Passed++
		if from, ok := r.began[f.Step]; ok {
			s.times = append(s.times, since(from, at))
		}
	}
}

// since returns the time from one moment to another; 0 if the clock was set back meanwhile.
func since(from, at time.Time) time.Duration { return max(at.Sub(from), 0) }

func (c *Counter) step(r *run, id string) *step {
	key := [2]string{r.workflow, id}
	if c.steps[key] == nil {
		c.steps[key] = &step{Step: Step{Workflow: r.workflow, Step: id}}
		c.stepKeys = append(c.stepKeys, key)
	}
	return c.steps[key]
}

// gate returns what is counted of a gate; what is counted of an implicit one is dropped.
func (c *Counter) gate(r *run, id string) *gate {
	if r.implicit[id] {
		return &gate{}
	}
	key := [2]string{r.workflow, id}
	if c.gates[key] == nil {
		c.gates[key] = &gate{Gate: Gate{Workflow: r.workflow, Gate: id}}
		c.gateKeys = append(c.gateKeys, key)
	}
	return c.gates[key]
}

// Known returns the workflows that have run, counted or not, by name: true if one ran by itself, and
// not only as a child of others.
func (c *Counter) Known() map[string]bool { return c.known }

// Stats returns what was counted so far.
func (c *Counter) Stats() Stats {
	out := Stats{From: c.from, To: c.to, Stubbed: c.stubbed, People: timesOf(c.people),
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
		took = append(took, r.took)
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
		return fmt.Sprintf("had %d failures, and a person overrode them all", g.Refused)
	}
	return ""
}

func timesOf(all []time.Duration) Times {
	if len(all) == 0 {
		return Times{}
	}
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	t := Times{Count: n, Median: engine.Duration((sorted[(n-1)/2] + sorted[n/2]) / 2), Most: engine.Duration(sorted[n-1])}
	for _, d := range all {
		t.Sum += engine.Duration(d)
	}
	return t
}
