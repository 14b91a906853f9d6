package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/goccy/go-graphviz"

	"sluice/engine"
)

// fill is the colour of a node's state, as the drawings have it: its background and its border.
func fill(state string) (back, border string) {
	switch state {
	case engine.RunCompleted, engine.Passed:
		return "#dcfce7", "#16a34a"
	case engine.RunFailed:
		return "#fee2e2", "#dc2626"
	case engine.Running, engine.Signalled, engine.OnReview, engine.Gating:
		return "#dbeafe", "#2563eb"
	case engine.OnHuman, engine.OnWindow, engine.OnNotice:
		return "#fef9c3", "#ca8a04"
	case engine.Superseded, engine.RunAborted, engine.Skipped, engine.Routed:
		return "#f3f4f6", "#9ca3af"
	}
	return "#ffffff", "#4b5563"
}

// text draws the picture as an indented list, one node after the other.
func (p *picture) text(a *app) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", a.paint(bold, p.title))
	for _, n := range p.nodes {
		if n.kind == stepNode {
			b.WriteByte('\n')
			p.textNode(a, &b, n, "")
			for _, e := range p.from(n.id) {
				if g, ok := p.node(e.to); ok && g.kind == gateNode {
					p.textGate(a, &b, g)
				}
			}
		}
	}
	return b.String()
}

// textGate draws a gate below its step, and the gates that follow it in a row.
func (p *picture) textGate(a *app, b *strings.Builder, g node) {
	p.textNode(a, b, g, "  ")
	for _, e := range p.from(g.id) {
		if next, ok := p.node(e.to); ok && next.kind == gateNode {
			p.textGate(a, b, next)
		}
	}
}

func (p *picture) textNode(a *app, b *strings.Builder, n node, in string) {
	sign, style := "□", plain
	if n.kind == gateNode {
		sign = "◇"
	}
	if n.state != "" {
		sign, style = mark(n.state)
	}
	fmt.Fprintf(b, "%s%s %s", in, a.paint(style, sign), a.paint(bold, n.id))
	if n.name != "" && n.name != n.id {
		fmt.Fprintf(b, "  %s", clean(n.name))
	}
	if n.detail != "" {
		fmt.Fprintf(b, "  %s", a.paint(dim, "("+n.detail+")"))
	}
	if n.state != "" {
		fmt.Fprintf(b, "  %s", a.paint(style, n.state))
	}
	b.WriteByte('\n')
	for _, e := range p.from(n.id) {
		arrow, label := "→", e.label
		if e.back {
			arrow = "↺"
		}
		if label != "" {
			label += " "
		}
		fmt.Fprintf(b, "%s    %s %s%s\n", in, label, a.paint(dim, arrow+" "), e.to)
	}
}

func (p *picture) node(id string) (node, bool) {
	for _, n := range p.nodes {
		if n.id == id {
			return n, true
		}
	}
	return node{}, false
}

// mermaid draws the picture as a Mermaid flowchart, for Markdown.
func (p *picture) mermaid() string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %q\n---\nflowchart TD\n", p.title)
	for i, n := range p.nodes {
		text := quoteMermaid(strings.Join(labels(n), "<br/>"))
		switch n.kind {
		case gateNode:
			fmt.Fprintf(&b, "  n%d{{%s}}\n", i, text)
		case endNode:
			fmt.Fprintf(&b, "  n%d([%s])\n", i, text)
		default:
			fmt.Fprintf(&b, "  n%d[%s]\n", i, text)
		}
		back, border := fill(n.state)
		fmt.Fprintf(&b, "  style n%d fill:%s,stroke:%s,color:#111827\n", i, back, border)
	}
	for _, e := range p.edges {
		arrow := "-->"
		if e.back {
			arrow = "-.->"
		}
		if e.label != "" {
			arrow += "|" + quoteMermaid(e.label) + "|"
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", p.index(e.from), arrow, p.index(e.to))
	}
	return b.String()
}

func quoteMermaid(s string) string {
	s = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<br/>", "<br/>", "<", "#lt;", ">", "#gt;").Replace(s)
	return `"` + s + `"`
}

func labels(n node) []string {
	out := []string{n.id}
	if n.name != "" && n.name != n.id {
		out = append(out, clean(n.name))
	}
	if n.detail != "" {
		out = append(out, n.detail)
	}
	if n.state != "" {
		out = append(out, n.state)
	}
	return out
}

func (p *picture) index(id string) int {
	for i, n := range p.nodes {
		if n.id == id {
			return i
		}
	}
	return -1
}

// dot draws the picture in Graphviz' language.
func (p *picture) dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph sluice {\n  label=%s; labelloc=t; fontname=\"Helvetica\";\n", quoteDot(p.title))
	b.WriteString("  node [fontname=\"Helvetica\", fontsize=11, style=\"filled,rounded\"]; edge [fontname=\"Helvetica\", fontsize=10];\n")
	for i, n := range p.nodes {
		shape := "box"
		switch n.kind {
		case gateNode:
			shape = "hexagon"
		case endNode:
			shape = "oval"
		}
		back, border := fill(n.state)
		fmt.Fprintf(&b, "  n%d [shape=%s, label=%s, fillcolor=%q, color=%q];\n", i, shape, quoteDot(strings.Join(labels(n), "\n")), back, border)
	}
	for _, e := range p.edges {
		style := "solid"
		if e.back {
			style = "dashed"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s, style=%s, constraint=%v];\n", p.index(e.from), p.index(e.to), quoteDot(e.label), style, !e.back)
	}
	b.WriteString("}\n")
	return b.String()
}

func quoteDot(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// svg lays the picture out by Graphviz.
func (p *picture) svg(ctx context.Context) (_ []byte, err error) {
	g, err := graphviz.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("svg: %w: take --format dot and draw it elsewhere", err)
	}
	defer func() {
		if cerr := g.Close(); err == nil {
			err = cerr
		}
	}()
	drawn, err := graphviz.ParseBytes([]byte(p.dot()))
	if err != nil {
		return nil, fmt.Errorf("svg: %w: take --format dot and draw it elsewhere", err)
	}
	var b strings.Builder
	if err := g.Render(ctx, drawn, graphviz.SVG, &b); err != nil {
		return nil, fmt.Errorf("svg: %w: take --format dot and draw it elsewhere", err)
	}
	return []byte(b.String()), drawn.Close()
}
