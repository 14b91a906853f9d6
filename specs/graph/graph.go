// Package graph draws a workflow, and how far a run of it is, as text, Mermaid, DOT and SVG.
//
// graph.go derives the picture. text.go and dot.go write it for a terminal and for other tools. SVG
// is one drawing for documents, pages and exports: node.go says what its nodes and lines show,
// layers.go, order.go, ports.go, place.go and route.go place them, svg.go writes them. What a state
// looks like is in style.css, by classes. Strip is the same in one row.
//
// A page puts Style into its stylesheet and each drawing into its HTML:
//
//	graph.SVG(spec, run.States(), graph.Options{Fragment: true, Link: address, Prefix: run.ID + "-"})
package graph

import (
	"fmt"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/text"
)

// edgeKind is the meaning of a line in a picture.
type edgeKind int

const (
	edgePass  edgeKind = iota // after a pass
	edgeFail                  // after a failure
	edgeRoute                 // by a route, labelled with its name
	edgeSpent                 // by on_exhausted
	edgeNeed                  // a need
)

// edge is a line of the picture: from a step or gate to a step, a gate, an end or "human".
type edge struct {
	from, to string
	kind     edgeKind
	label    string
}

// picture is a drawn workflow: its nodes in order, and its lines.
type picture struct {
	spec   *engine.Spec
	states map[string]string
	notes  map[string]string
	order  []string // steps, upstream first, each followed by its gates; then the ends
	edges  []edge
}

// draw derives the picture. It does not draw implicit gates: their edges become their step's.
func draw(spec *engine.Spec, states map[string]string, o Options) *picture {
	p := &picture{spec: spec, states: states, notes: o.Notes}
	ends := map[string]bool{}
	add := func(from, to string, kind edgeKind, label string) {
		if to == "" {
			return
		}
		p.edges = append(p.edges, p.counted(edge{from, to, kind, label}, o))
		if engine.IsEnd(to) || to == engine.Human {
			ends[to] = true
		}
	}
	for _, need := range spec.Needs {
		add(need.Workflow+"/"+need.Step, spec.Steps[0].ID, edgeNeed, "needs")
	}
	for _, s := range inOrder(spec) {
		p.order = append(p.order, s.ID)
		for _, n := range s.ExtNeeds {
			add(n.Workflow+"/"+n.Step, s.ID, edgeNeed, "needs")
		}
		for _, n := range s.Needs {
			if !slices.Contains(spec.LastGate(spec.Step(n)).OnPass, s.ID) {
				add(exit(spec, n), s.ID, edgeNeed, "needs")
			}
		}
		if l := s.ForEach; l != nil {
			add(s.ID, l.OnMissing, edgeRoute, "missing")
			add(s.ID, l.OnInvalid, edgeRoute, "invalid")
			add(s.ID, l.OnExhausted, edgeSpent, fmt.Sprintf("after %d tries", l.Attempts))
		}
		from := s.ID
		for _, id := range s.Gates {
			g := spec.Gate(id)
			if g.Implicit {
				for _, to := range g.OnPass {
					add(s.ID, to, edgePass, "")
				}
				if g.OnFail != engine.EndFailed && !slices.Contains(g.OnPass, g.OnFail) {
					add(s.ID, g.OnFail, edgeFail, "fail")
				}
				continue
			}
			p.order = append(p.order, id)
			add(from, id, edgePass, "")
			from = id
			outcomes(g, add)
		}
	}
	for _, end := range []string{engine.Human, engine.EndDone, engine.EndFailed, engine.EndAborted} {
		if ends[end] {
			p.order = append(p.order, end)
		}
	}
	for _, h := range p.hooks() {
		p.order = append(p.order, h.when)
	}
	return p
}

// outcomes adds the edges from a gate.
func outcomes(g *engine.Gate, add func(from, to string, kind edgeKind, label string)) {
	for _, to := range g.OnPass {
		add(g.ID, to, edgePass, "pass")
	}
	add(g.ID, g.OnFail, edgeFail, "fail")
	for _, r := range g.Routes {
		add(g.ID, r.To, edgeRoute, r.Outcome)
	}
	spent := []string{g.OnExhausted}
	switch g.OnExhausted {
	case engine.Human:
		spent = nil
	case engine.OutcomePass:
		spent = g.OnPass
	}
	for _, to := range spent {
		add(g.ID, to, edgeSpent, fmt.Sprintf("after %d", g.MaxRetries))
	}
}

// hook is a command run beside the steps; when cannot be a step's id.
type hook struct {
	when string
	run  *engine.Command
}

func (p *picture) hooks() (out []hook) {
	for _, h := range []hook{{"after each step", p.spec.AfterStep}, {"after each task", p.spec.AfterTask},
		{"after the run", p.spec.AfterRun}} {
		if h.run != nil {
			out = append(out, h)
		}
	}
	return out
}

// inOrder returns the steps, upstream first, otherwise as in the file.
func inOrder(spec *engine.Spec) []*engine.Step {
	out := slices.Clone(spec.Steps)
	below := map[*engine.Step][]string{}
	for _, s := range out {
		below[s] = spec.Downstream(s.ID)
	}
	placed := map[string]bool{}
	for i := range out {
		for k := i; k < len(out); k++ { // the first remaining step with nothing remaining upstream
			free := !slices.ContainsFunc(out[i:], func(o *engine.Step) bool {
				return o != out[k] && slices.Contains(below[o], out[k].ID)
			})
			if free && !placed[out[k].ID] {
				s := out[k]
				out = slices.Insert(slices.Delete(out, k, k+1), i, s)
				break
			}
		}
		placed[out[i].ID] = true
	}
	return out
}

// exit returns the node from which a step's work continues: its last drawn gate, or the step.
func exit(spec *engine.Spec, step string) string {
	if g := spec.LastGate(spec.Step(step)); !g.Implicit {
		return g.ID
	}
	return step
}

// title returns a node's labels: its id and name; who acts; its state.
func (p *picture) title(id string) (head, who string) {
	if s := p.spec.Step(id); s != nil {
		return headOf(s.ID, s.Name), doer(s)
	}
	if g := p.spec.Gate(id); g != nil {
		return headOf(g.ID, g.Name), judge(g)
	}
	for _, h := range p.hooks() {
		if h.when == id {
			return id, "run " + commandLine(h.run)
		}
	}
	return id, ""
}

func headOf(id, name string) string {
	if name == id {
		return id
	}
	return id + " " + clean(name)
}

// clean makes a name or command safe to show on one line.
func clean(s string) string { return text.Clean(s, maxShown) }

const maxShown = 1000 // characters of a name or a command in a picture

func doer(s *engine.Step) string {
	var out string
	switch {
	case s.ForEach != nil:
		out = "each task of " + clean(s.ForEach.Tasks.Source)
		if from := s.ForEach.From.Source; from != "" {
			out += " from " + clean(from)
		}
		if k := s.Child; k != nil && k.Inline && len(k.Steps) == 1 {
			return out + ": " + doer(k.Steps[0])
		} else if k != nil {
			return out + ": " + childOf(s)
		}
		return out
	case s.Agent == nil && s.Run == nil && s.Child != nil:
		return childOf(s)
	case s.Run != nil && s.Run.Nothing():
		out = "no work"
	case s.Run != nil:
		out = "run " + commandLine(s.Run)
	case s.Agent != nil && s.Agent.Type != "":
		out = s.Agent.Type
	default:
		out = "agent"
	}
	if s.Run == nil && s.Agent != nil && s.Agent.Launch != engine.LaunchHeadless {
		out += ", " + s.Agent.Launch
	}
	if s.Reads() {
		out += ", only looks"
	}
	if s.Agent != nil && s.Agent.Worktree.Source != "" {
		out += " in " + clean(s.Agent.Worktree.Source)
	}
	if len(s.On) > 0 {
		out += " on " + strings.Join(s.On, ", ")
	}
	return out
}

// childOf describes which workflow a step runs, with its inputs and outputs.
func childOf(s *engine.Step) string {
	out := "workflow " + s.Child.ID
	for i, v := range s.ChildVars {
		out += []string{" with ", ", "}[min(i, 1)] + v.Name
	}
	if s.ChildAnswer.Source != "" {
		out += ", answer " + clean(s.ChildAnswer.Source)
	}
	return out
}

func judge(g *engine.Gate) string {
	r := g.Reviewer
	switch {
	case r.AgentType != "":
		return r.Level + ": " + r.AgentType
	case r.Run != nil:
		return r.Level + ": " + commandLine(r.Run)
	case r.FromStep:
		return r.Level + ": its step's own report"
	case len(r.Forge) > 0:
		return r.Level + ": " + strings.Join(r.Forge, " and ") + " of the forge"
	}
	if g.AsksAnswer() {
		return r.Level + ", with an answer"
	}
	return r.Level
}

const maxCommandRunes = 40

func commandLine(c *engine.Command) string {
	line := c.Shell
	if line == "" {
		var words []string
		for _, a := range c.Argv {
			words = append(words, a.Source)
		}
		line = strings.Join(words, " ")
	}
	line = clean(line)
	if r := []rune(line); len(r) > maxCommandRunes {
		return string(r[:maxCommandRunes-1]) + "…"
	}
	return line
}
