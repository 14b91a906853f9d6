package engine

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// graph is what Link derives from a spec: which step leads to which.
type graph struct {
	steps map[string]*Step
	gates map[string]*Gate
	order []string                   // steps in file order
	topo  []*Step                    // steps, upstream first
	fwd   map[string][]string        // forward edges: on_pass, needs, and what leads elsewhere
	down  map[string]map[string]bool // strictly downstream
	pass  map[string][]string        // on_pass and needs only
	ext   []*Step                    // steps that need something from other workflows
	forge bool                       // see Spec.AtForge
	files map[string][]*Step         // by the name of their sentinel
	words map[string][]word          // by the name of a person's file, without extension
}

// word is the meaning of a person's file: an outcome at a gate.
type word struct {
	gate    *Gate
	outcome string
}

// joint is what Link derives for a step: its part in the law of joins.
type joint struct {
	place  int   // in the file
	starts bool  // starts a run (8-semantics 4)
	byNeed bool  // only its needs lead to it
	needs  []int // places of its needs in this workflow
	below  []int // places of what is strictly downstream
}

// GraphFault is a load error in the graph. Steps are the steps concerned, in order.
type GraphFault struct {
	Kind    string // "cycle" or "unreached"
	Steps   []string
	Message string
}

// Link derives the graph. Use the spec only if Link returns no fault. The loader must have checked
// before that all names resolve.
func (s *Spec) Link() []GraphFault {
	g := graphOf(s)
	s.graph = g
	s.look()
	in := map[string]int{} // forward edges except needs
	cycles := g.forward(s, in)
	g.pass = maps.Clone(g.fwd)
	if cycles == nil {
		cycles = g.sideways(s, in)
	}
	for i, st := range s.Steps {
		st.joint = joint{place: i, byNeed: i > 0 && in[st.ID] == 0 && len(st.Needs) > 0,
			starts: i == 0 || in[st.ID] == 0 && st.HasNeeds && len(st.Needs) == 0}
	}
	if cycles != nil {
		return append(cycles, g.unreached()...)
	}
	g.sort()
	g.tables(s)
	return g.unreached()
}

// look marks a spec and all its child specs if a step of any of them only reads.
func (s *Spec) look() {
	all := s.All()
	if !slices.ContainsFunc(all, func(w *Spec) bool { return w.Looked || slices.ContainsFunc(w.Steps, (*Step).Reads) }) {
		return
	}
	for _, w := range all {
		w.Looked = true
	}
}

// Cycles returns the forward cycles: a shortest one per strongly connected set of steps. Names need
// not resolve.
func (s *Spec) Cycles() []GraphFault { return graphOf(s).forward(s, map[string]int{}) }

func graphOf(s *Spec) *graph {
	g := &graph{steps: map[string]*Step{}, gates: map[string]*Gate{}, fwd: map[string][]string{}}
	for _, st := range s.Steps {
		g.steps[st.ID] = st
		g.order = append(g.order, st.ID)
	}
	for _, gt := range s.Gates {
		g.gates[gt.ID] = gt
	}
	return g
}

// tables precomputes what decisions look up often.
func (g *graph) tables(s *Spec) {
	g.files, g.words, g.forge = map[string][]*Step{}, map[string][]word{}, s.AtForge()
	for _, st := range s.Steps {
		for _, n := range st.Needs {
			st.needs = append(st.needs, g.steps[n].place)
		}
		for _, o := range s.Steps {
			if g.down[st.ID][o.ID] {
				st.below = append(st.below, o.place)
			}
		}
		if len(st.ExtNeeds) > 0 {
			g.ext = append(g.ext, st)
		}
		if st.Signal.Type == SignalFile && st.Child == nil {
			name := path.Base(st.Signal.Value)
			g.files[name] = append(g.files[name], st)
		}
	}
	for _, gt := range s.Gates {
		outcomes := []string{OutcomePass, OutcomeFail, OutcomeVeto}
		for _, r := range gt.Routes {
			if !slices.Contains(outcomes, r.Outcome) {
				outcomes = append(outcomes, r.Outcome)
			}
		}
		for _, o := range outcomes {
			name := gt.ID + "-" + o
			g.words[name] = append(g.words[name], word{gt, o})
		}
	}
}

// inOrder returns attempts in the file order of their steps.
func (s *Spec) inOrder(as []*Attempt) []*Attempt {
	if len(as) < 2 {
		return as
	}
	out := slices.Clone(as)
	slices.SortFunc(out, func(a, b *Attempt) int { return s.Step(a.step).place - s.Step(b.step).place })
	return out
}

func (g *graph) forward(s *Spec, in map[string]int) (cycles []GraphFault) {
	for _, st := range s.Steps {
		for _, n := range st.Needs {
			if g.steps[n] != nil {
				g.fwd[n] = append(g.fwd[n], st.ID)
			}
		}
		if len(st.Gates) == 0 {
			continue
		}
		last := g.gates[st.Gates[len(st.Gates)-1]]
		if last == nil {
			continue
		}
		for _, t := range last.OnPass {
			if g.steps[t] != nil {
				g.fwd[st.ID] = append(g.fwd[st.ID], t)
				in[t]++
			}
		}
	}
	return g.close()
}

// sideways reads on_fail, routes and on_exhausted in file order. A target that is the step itself
// or upstream leads back; any other becomes a forward edge. So every loop has a gate that counts
// it.
func (g *graph) sideways(s *Spec, in map[string]int) (cycles []GraphFault) {
	for _, st := range s.Steps {
		for _, id := range st.Gates {
			for _, t := range g.gates[id].sideTargets() {
				if g.steps[t] == nil || t == st.ID || g.down[t][st.ID] {
					continue
				}
				in[t]++
				g.fwd[st.ID] = append(slices.Clip(g.fwd[st.ID]), t)
				if c := g.close(); c != nil {
					return c
				}
			}
		}
	}
	return nil
}

// sideTargets returns the targets of on_fail, routes and on_exhausted, in file order.
func (gt *Gate) sideTargets() []string {
	out := []string{gt.OnFail}
	for _, r := range gt.Routes {
		out = append(out, r.To)
	}
	return append(out, gt.OnExhausted)
}

// close computes what is downstream of each step, and returns the cycles: one per strongly
// connected set of steps.
func (g *graph) close() (cycles []GraphFault) {
	g.down = map[string]map[string]bool{}
	for _, id := range g.order {
		seen := map[string]bool{}
		var walk func(string)
		walk = func(x string) {
			for _, t := range g.fwd[x] {
				if !seen[t] {
					seen[t] = true
					walk(t)
				}
			}
		}
		walk(id)
		g.down[id] = seen
	}
	for i, id := range g.order {
		told := slices.ContainsFunc(g.order[:i], func(x string) bool { return g.down[x][id] && g.down[id][x] })
		if g.down[id][id] && !told {
			cycles = append(cycles, cycleFault(g.findCycle(id)))
		}
	}
	return cycles
}

// findCycle returns a shortest path from id back to id.
func (g *graph) findCycle(id string) []string {
	from := map[string]string{}
	queue := []string{id}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, t := range g.fwd[x] {
			if t == id {
				path := []string{x}
				for x != id {
					x = from[x]
					path = append([]string{x}, path...)
				}
				return path
			}
			if _, ok := from[t]; !ok {
				from[t] = x
				queue = append(queue, t)
			}
		}
	}
	return []string{id}
}

func cycleFault(steps []string) GraphFault {
	way := strings.Join(append(append([]string{}, steps...), steps[0]), " -> ")
	return GraphFault{Kind: "cycle", Steps: steps, Message: fmt.Sprintf(
		"cycle %s: a pass goes forward; to go back, name it under on_fail or routes", way)}
}

// sort orders the steps upstream first, otherwise as in the file.
func (g *graph) sort() {
	depth := map[string]int{}
	for range g.order { // without cycles, one round per step suffices
		for _, id := range g.order {
			for _, t := range g.fwd[id] {
				depth[t] = max(depth[t], depth[id]+1)
			}
		}
	}
	for d := 0; len(g.topo) < len(g.order); d++ {
		for _, id := range g.order {
			if depth[id] == d {
				g.topo = append(g.topo, g.steps[id])
			}
		}
	}
}

func (g *graph) unreached() (faults []GraphFault) {
	seen := map[string]bool{}
	var reach func(string)
	reach = func(id string) {
		if seen[id] || g.steps[id] == nil {
			return
		}
		seen[id] = true
		for _, t := range g.fwd[id] {
			reach(t)
		}
		for _, t := range g.steps[id].ForEach.sides() {
			reach(t)
		}
		for _, gt := range g.steps[id].Gates {
			for _, t := range g.gates[gt].sideTargets() {
				reach(t)
			}
		}
	}
	for _, id := range g.order {
		if g.steps[id].starts || g.steps[id].byNeed || g.down[id][id] { // the start of a cycle is unknown
			reach(id)
		}
	}
	for _, id := range g.order {
		if !seen[id] {
			faults = append(faults, GraphFault{Kind: "unreached", Steps: []string{id}, Message: fmt.Sprintf(
				"step %s is never reached: nothing leads to it: name it in an on_pass, next_step, on_fail or route, or "+
					"give it `needs`", id)})
		}
	}
	return faults
}

// leadsBack reports whether target is step itself or upstream of it.
func (s *Spec) leadsBack(target, step string) bool {
	return target == step || s.graph.down[target][step]
}

// LeadsTo reports whether to is strictly downstream of from.
func (s *Spec) LeadsTo(from, to string) bool { return s.graph.down[from][to] }

// Concerns reports whether an attempt of step should read that work of from failed and was sent to
// another step: step is one of the two, or between them.
func (s *Spec) Concerns(step, from, to string) bool {
	return step == from || step == to || s.graph.down[to][step] && s.graph.down[step][from]
}

// Downstream returns the steps strictly downstream of id, in file order.
func (s *Spec) Downstream(id string) []string {
	var out []string
	for _, x := range s.graph.order {
		if s.graph.down[id][x] {
			out = append(out, x)
		}
	}
	return out
}

// Forward returns the targets of the step's forward edges, in the order found.
func (s *Spec) Forward(id string) []string { return s.graph.fwd[id] }

// Starts returns the steps that start a run, in file order.
func (s *Spec) Starts() []string {
	var out []string
	for _, st := range s.Steps {
		if st.starts {
			out = append(out, st.ID)
		}
	}
	return out
}
