package main

import (
	"fmt"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/notify"
)

// picture is a workflow as a drawing: nodes in the order of the spec, and edges.
type picture struct {
	title string
	nodes []node
	edges []edge
}

type node struct {
	id, name string
	kind     string // step, gate, end
	detail   string // who does it, or who judges
	state    string // of a run; "" = none
}

type edge struct {
	from, to string
	label    string
	back     bool // leads back, or elsewhere: drawn apart from the way forward
}

// Kinds of node.
const (
	stepNode = "step"
	gateNode = "gate"
	endNode  = "end"
)

// draw makes the picture of a workflow; with a run, each node has its state.
func draw(spec *engine.Spec, run *daemon.RunStatus) *picture {
	p := &picture{title: spec.ID}
	if spec.Name != "" && spec.Name != spec.ID {
		p.title += ": " + notify.Clean(spec.Name, maxForeign)
	}
	if run != nil {
		p.title = run.ID + " (" + runState(*run) + ") of " + p.title
	}
	for _, st := range spec.Steps {
		p.step(spec, st)
	}
	for _, g := range spec.Gates {
		if !g.Implicit {
			p.gate(spec, g)
		}
	}
	p.ends()
	if run != nil {
		p.states(*run)
	}
	return p
}

func (p *picture) step(spec *engine.Spec, st *engine.Step) {
	p.nodes = append(p.nodes, node{id: st.ID, name: st.Name, kind: stepNode, detail: whoDoes(st)})
	if g := spec.Gate(st.Gates[0]); g != nil && !g.Implicit {
		p.edges = append(p.edges, edge{from: st.ID, to: g.ID})
	} else if g != nil {
		for _, to := range g.OnPass {
			p.edges = append(p.edges, edge{from: st.ID, to: to})
		}
	}
	for _, n := range st.Needs {
		p.edges = append(p.edges, edge{from: n, to: st.ID, label: "needs"})
	}
}

func whoDoes(st *engine.Step) string {
	var parts []string
	switch {
	case st.Run != nil:
		parts = append(parts, "run: "+commandWords(st.Run))
	case st.Agent != nil:
		parts = append(parts, st.Agent.Type)
		if st.Agent.Launch != engine.LaunchHeadless {
			parts = append(parts, st.Agent.Launch)
		}
	}
	if st.Agent != nil && st.Agent.Worktree.Source != "" {
		parts = append(parts, "in "+st.Agent.Worktree.Source)
	}
	return notify.Clean(strings.Join(parts, " "), maxDetail)
}

// maxDetail is how many characters of a command or a role stand in a drawing.
const maxDetail = 60

func commandWords(c *engine.Command) string {
	if c.Shell != "" {
		return c.Shell
	}
	var words []string
	for _, w := range c.Argv {
		words = append(words, w.Source)
	}
	return strings.Join(words, " ")
}

func (p *picture) gate(spec *engine.Spec, g *engine.Gate) {
	p.nodes = append(p.nodes, node{id: g.ID, name: g.Name, kind: gateNode, detail: whoJudges(g)})
	if g.NextGate != "" {
		p.edges = append(p.edges, edge{from: g.ID, to: g.NextGate, label: "pass"})
	}
	for _, to := range g.OnPass {
		p.edges = append(p.edges, edge{from: g.ID, to: to, label: "pass"})
	}
	if g.OnFail != "" {
		p.edges = append(p.edges, edge{from: g.ID, to: g.OnFail, label: fmt.Sprintf("fail ×%d", g.MaxRetries), back: true})
	}
	for _, r := range g.Routes {
		if r.To != engine.Human {
			p.edges = append(p.edges, edge{from: g.ID, to: r.To, label: r.Outcome, back: true})
		}
	}
	if spec.Step(g.OnExhausted) != nil || engine.IsEnd(g.OnExhausted) {
		p.edges = append(p.edges, edge{from: g.ID, to: g.OnExhausted, label: "exhausted", back: true})
	}
}

func whoJudges(g *engine.Gate) string {
	who := g.Reviewer.Level
	switch {
	case g.Reviewer.AgentType != "":
		who += " · " + g.Reviewer.AgentType
	case g.Reviewer.Run != nil:
		who += " · run: " + commandWords(g.Reviewer.Run)
	case g.Reviewer.FromStep:
		who += " · the step's own word"
	}
	return notify.Clean(who, maxDetail)
}

// ends adds a node for each end that something leads to.
func (p *picture) ends() {
	for _, end := range []string{engine.EndDone, engine.EndFailed, engine.EndAborted} {
		if slices.ContainsFunc(p.edges, func(e edge) bool { return e.to == end }) {
			p.nodes = append(p.nodes, node{id: end, kind: endNode})
		}
	}
}

func (p *picture) states(run daemon.RunStatus) {
	state := map[string]string{}
	for _, st := range run.Steps {
		state[st.ID] = st.State
		for _, g := range st.Gates {
			if !g.Implicit {
				state[g.ID] = g.State
			}
		}
	}
	switch run.Phase {
	case engine.RunCompleted:
		state[engine.EndDone] = engine.Passed
	case engine.RunFailed:
		state[engine.EndFailed] = engine.RunFailed
	case engine.RunAborted:
		state[engine.EndAborted] = engine.RunAborted
	}
	for i := range p.nodes {
		p.nodes[i].state = state[p.nodes[i].id]
	}
}

// runState is a run's phase, or that it is paused.
func runState(r daemon.RunStatus) string {
	if r.Paused != "" {
		return "paused"
	}
	return r.Phase
}

// from gives the edges that leave a node, in the order they were added.
func (p *picture) from(id string) []edge {
	var out []edge
	for _, e := range p.edges {
		if e.from == id {
			out = append(out, e)
		}
	}
	return out
}
