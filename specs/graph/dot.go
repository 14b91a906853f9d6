package graph

import (
	"fmt"
	"strings"

	"sluice/engine"
)

// Mermaid draws the workflow as a Mermaid flowchart, with what Text shows.
func Mermaid(spec *engine.Spec, states map[string]string, o Options) string {
	p := draw(spec, states, o)
	name := p.numbers()
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, id := range p.nodes() {
		head, who := p.title(id)
		label := join("<br/>", mermaidText(head), mermaidText(who), mermaidText(p.progress(id)))
		open, shut := "[", "]"
		switch {
		case p.isEnd(id):
			open, shut = "([", "])"
		case p.spec.Step(id) == nil && p.spec.Gate(id) != nil:
			open, shut = "{{", "}}"
		}
		fmt.Fprintf(&b, "  %s%s\"%s\"%s\n", name[id], open, label, shut)
	}
	for _, e := range p.edges {
		line := map[edgeKind]string{edgePass: "-->", edgeFail: "-.->", edgeRoute: "-.->", edgeSpent: "-.->",
			edgeNeed: "==>"}[e.kind]
		if e.label != "" {
			line += "|\"" + mermaidText(e.label) + "\"|"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", name[e.from], line, name[e.to])
	}
	for _, id := range p.nodes() {
		if p.states[id] != "" {
			fill, border := colour(p.states[id])
			fmt.Fprintf(&b, "  style %s fill:%s,stroke:%s\n", name[id], fill, border)
		}
	}
	return b.String()
}

// mermaidText keeps a label from ending its quotes or being read as markup.
func mermaidText(s string) string {
	return strings.NewReplacer("&", "&amp;", "\"", "&quot;", "<", "&lt;", ">", "&gt;", "#", "&#35;", "\n", " ").Replace(s)
}

// Dot draws the workflow in Graphviz' language, with what Text shows.
func Dot(spec *engine.Spec, states map[string]string, o Options) string {
	p := draw(spec, states, o)
	name := p.numbers()
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotText(spec.ID))
	b.WriteString("  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=11, style=\"filled,rounded\", shape=box];\n" +
		"  edge [fontname=\"Helvetica\", fontsize=10];\n")
	for _, id := range p.nodes() {
		head, who := p.title(id)
		label := join("\n", head, who, p.progress(id))
		shape := ""
		switch {
		case p.isEnd(id):
			shape = ", shape=oval"
		case p.spec.Step(id) == nil && p.spec.Gate(id) != nil:
			shape = ", shape=hexagon, style=filled"
		}
		fill, border := colour(p.states[id])
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=%q, color=%q%s];\n", name[id], dotText(label), fill, border, shape)
	}
	for _, e := range p.edges {
		style := map[edgeKind]string{edgePass: "color=\"#16a34a\"",
			edgeFail:  "style=dashed, color=\"#dc2626\", constraint=false",
			edgeRoute: "style=dashed, color=\"#7c3aed\"", edgeSpent: "style=dotted, color=\"#d97706\"",
			edgeNeed: "color=\"#4b5563\", arrowhead=empty"}[e.kind]
		fmt.Fprintf(&b, "  %s -> %s [label=%s, %s];\n", name[e.from], name[e.to], dotText(e.label), style)
	}
	b.WriteString("}\n")
	return b.String()
}

func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// nodes lists what is drawn: p.order, and the needed steps of other workflows.
func (p *picture) nodes() []string {
	out := append([]string{}, p.order...)
	seen := map[string]bool{}
	for _, id := range out {
		seen[id] = true
	}
	for _, e := range p.edges {
		for _, id := range []string{e.from, e.to} {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}

// numbers gives each node a name that is valid in every picture language.
func (p *picture) numbers() map[string]string {
	out := map[string]string{}
	for i, id := range p.nodes() {
		out[id] = fmt.Sprintf("n%d", i)
	}
	return out
}

func (p *picture) isEnd(id string) bool {
	return engine.IsEnd(id) || id == engine.Human && p.spec.Step(id) == nil
}
