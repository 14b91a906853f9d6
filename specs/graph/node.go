package graph

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice/engine"
)

const (
	maxDrawn   = 200   // nodes in a drawing
	maxText    = 200.0 // pixels of a line of text in a node
	maxLabel   = 150.0
	heightHead = 17.0
	heightWho  = 15.0
	padX, padY = 14.0, 9.0
	hexCut     = 11.0 // how far the tips of a gate stick out
)

// shape is what a node looks like; it is also its class.
type shape string

const (
	shapeStep shape = "step"
	shapeGate shape = "gate"
	shapeEnd  shape = "end"
	shapeNeed shape = "other" // a step of another workflow
)

// node is what the layered drawing shows of a step, a gate or an end.
type node struct {
	id        string
	shape     shape
	head      string
	more      []string // the lines below: its name, who acts
	note      string   // how far it is
	full      string   // everything in words, unclipped
	condition condition
	w, h      float64
}

// inset is how far the outline at its side lies within the node's width; at is the height, from
// -1 (top) to 1.
func (n *node) inset(at, h float64) float64 {
	at = min(math.Abs(at), 1)
	switch n.shape {
	case shapeGate:
		return hexCut * at
	case shapeEnd:
		return h / 2 * (1 - math.Sqrt(1-at*at))
	}
	return 0
}

// drawnNodes lists the nodes of the layered drawing: those of other workflows first, as nothing
// leads to them. Hooks are not among them, as no line leads to or from one.
func (p *picture) drawnNodes() []*node {
	all := p.nodes()
	ids := append(slices.Clone(all[len(p.order):]), all[:len(p.order)]...)
	var out []*node
	for _, id := range ids {
		if len(out) == maxDrawn {
			break
		}
		if !slices.ContainsFunc(p.hooks(), func(h hook) bool { return h.when == id }) {
			out = append(out, p.drawnNode(id))
		}
	}
	return out
}

func (p *picture) drawnNode(id string) *node {
	n := &node{id: id, shape: shapeNeed, head: id, full: id, condition: conditionOf(p.states[id])}
	_, who := p.title(id)
	name := ""
	if s := p.spec.Step(id); s != nil {
		n.shape, name = shapeStep, clean(s.Name)
	} else if g := p.spec.Gate(id); g != nil {
		n.shape, name = shapeGate, clean(g.Name)
	} else if p.isEnd(id) {
		n.shape = shapeEnd
	}
	if id == engine.Human && n.shape == shapeEnd {
		n.head = "a person"
	}
	for _, l := range []string{name, who} {
		if l != "" && !sameWords(l, id) && !slices.Contains(n.more, fitted(l, sizeWho, maxText)) {
			n.more = append(n.more, fitted(l, sizeWho, maxText))
		}
		if l != "" && l != id {
			n.full += ", " + l
		}
	}
	if n.note = p.progress(id); n.note == waiting {
		n.note = ""
	}
	if n.note != "" {
		n.full += ": " + n.note
	}
	n.note = fitted(n.note, sizeWho, maxText)
	n.head = fitted(clean(n.head), sizeHead, maxText)
	n.size()
	return n
}

func (n *node) size() {
	n.w, n.h = textWidth(n.head, sizeHead), heightHead+2*padY
	lines := n.more
	if n.note != "" {
		lines = append(slices.Clone(lines), n.note)
	}
	for _, l := range lines {
		n.w = max(n.w, textWidth(l, sizeWho))
		n.h += heightWho
	}
	n.w = math.Ceil(n.w/2)*2 + 2*padX
	switch n.shape {
	case shapeGate:
		n.w += 2*hexCut - 4
	case shapeEnd:
		n.h -= 4
	}
}

// sameWords reports whether a name says no more than the id.
func sameWords(name, id string) bool {
	plain := strings.NewReplacer("-", " ", "_", " ")
	return strings.EqualFold(plain.Replace(name), plain.Replace(id))
}

func join(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}

// drawnEdges lists the lines between the nodes: one between any two, with the labels of all.
func (p *picture) drawnEdges(nodes []*node) (out []edge) {
	has := map[string]bool{}
	for _, n := range nodes {
		has[n.id] = true
	}
	for _, e := range p.edges {
		if !has[e.from] || !has[e.to] {
			continue
		}
		if e.kind == edgeNeed {
			e.label = "" // its own look says so
		}
		i := slices.IndexFunc(out, func(o edge) bool { return o.from == e.from && o.to == e.to })
		if i < 0 {
			out = append(out, e)
			continue
		}
		out[i].label = join(", ", out[i].label, e.label)
	}
	for i, e := range out {
		out[i].label = fitted(clean(e.label), sizeLabel, maxLabel)
	}
	return out
}

// progress returns a node's state and what is noted about it.
func (p *picture) progress(id string) string {
	return join(" · ", Words(p.states[id]), clean(p.notes[id]))
}

// counted returns an edge with how often a run has taken it in its label.
func (p *picture) counted(e edge, o Options) edge {
	times, known := o.Taken[e.from]
	if !known {
		return e
	}
	switch e.kind {
	case edgeFail:
		if g := p.spec.Gate(e.from); g != nil && !g.Implicit {
			e.label = fmt.Sprintf("%s %d/%d", e.label, times[engine.OutcomeFail], g.MaxRetries)
		}
	case edgeRoute:
		if n := times[e.label]; n > 0 {
			e.label = fmt.Sprintf("%s ×%d", e.label, n)
		}
	}
	return e
}
