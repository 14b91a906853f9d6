package graph

import (
	"fmt"
	"html"

	"sluice/engine"
)

// Measures of a strip, in pixels.
const (
	stripHeight = 18
	stripPitch  = 16
	stripBullet = 4.5
	maxBullets  = 60
)

// Strip draws the steps in their order as a row of bullets on a line, 18 pixels high, for lists of
// runs. Explicit gates are small hexagons. Each bullet's title has its id and state. The options
// mean what they mean for SVG; of more than maxBullets nodes the rest is a "…".
func Strip(spec *engine.Spec, states map[string]string, o Options) []byte {
	p := draw(spec, states, o)
	w := &writer{picture: p, options: o}
	var nodes []*node
	more := false
	for _, id := range p.order {
		if p.spec.Step(id) == nil && p.spec.Gate(id) == nil {
			continue
		}
		if len(nodes) == maxBullets {
			more = true
			break
		}
		nodes = append(nodes, p.drawnNode(id))
	}
	width := stripPitch * len(nodes)
	if more {
		width += stripPitch
	}
	w.open(0, 0, float64(width), stripHeight, nodes)
	w.print(`<path class="thread" d="M%d %dH%d"/>`+"\n", stripPitch/2, stripHeight/2, width-stripPitch/2)
	for i, n := range nodes {
		w.bullet(n, float64(stripPitch*i+stripPitch/2))
	}
	if more {
		w.print(`<text class="who" x="%d" y="%d">…</text>`+"\n", width-stripPitch+2, stripHeight/2+4)
	}
	w.print("</svg>\n")
	return []byte(w.out.String())
}

func (w *writer) bullet(n *node, x float64) {
	const y, r = stripHeight / 2.0, stripBullet
	mark := fmt.Sprintf(`<circle class="box" cx="%s" cy="%s" r="%s"/>`, px(x), px(y), px(r))
	if n.shape == shapeGate {
		mark = hexagon(box{x - r - 1, y - r, 2*r + 2, 2 * r}, r/2+1)
	}
	w.print("<g id=\"%s\" class=\"node %s %s\">", html.EscapeString(w.options.Prefix+"n-"+n.id), n.shape, n.condition)
	w.linked(n, func() { w.print("<title>%s</title>%s", html.EscapeString(n.full), mark) })
	w.print("</g>\n")
}
