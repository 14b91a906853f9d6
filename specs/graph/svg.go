package graph

import (
	_ "embed"
	"fmt"
	"html"
	"slices"
	"strings"

	"sluice/engine"
)

// Options are what a drawing shows beside the states, and how it is written.
type Options struct {
	Notes map[string]string         // a line about a step or gate by id, such as "attempt 2, 33 min"
	Taken map[string]map[string]int // how often a gate sent work back: by gate, then "fail" or the route
	Link  func(id string) string    // the address that a node leads to; "" = none
	// Fragment leaves the style out: the page has Style in its own stylesheet.
	Fragment bool
	// Prefix stands before the ids in the SVG. A page with several drawings needs one for each.
	Prefix string
}

//go:embed style.css
var style string

// Style is the stylesheet of the drawings, for a page that holds them as fragments. Its colours are
// custom properties of .sluice-graph, light or dark as the reader prefers.
func Style() string { return style }

// SVG draws the workflow in layers: steps, gates and ends with the lines between them, down from
// the first step, ways back at the side. Lines of one kind to one node share a lane, no line passes
// through a node, and the result is the same for the same input. The element of a node has the id
// "n-" and the step's or gate's id, and its title says in full what is clipped. At most maxDrawn
// nodes are drawn.
func SVG(spec *engine.Spec, states map[string]string, o Options) []byte {
	p := draw(spec, states, o)
	nodes := p.drawnNodes()
	s := lay(nodes, p.drawnEdges(nodes))
	w := &writer{picture: p, options: o, sheet: s}
	foot := w.foot()
	left, right := s.left-margin, s.right+margin
	for _, l := range foot {
		right = max(right, left+2*margin+textWidth(l, sizeWho))
	}
	height := s.height + 2*margin
	if len(foot) > 0 {
		height += heightWho*float64(len(foot)) + margin
	}
	w.open(left, -margin, right-left, height, nodes)
	for _, l := range s.lanes {
		w.lane(l)
	}
	for _, l := range s.lines {
		w.label(l)
	}
	for _, v := range s.nodes {
		w.node(v)
	}
	for i, l := range foot {
		w.print("<text class=\"hook\" x=\"%s\" y=\"%s\">%s</text>\n", px(left+margin),
			px(s.height+margin+heightWho*float64(i+1)), html.EscapeString(l))
	}
	w.print("</svg>\n")
	return []byte(w.out.String())
}

type writer struct {
	*picture
	sheet   *sheet
	options Options
	out     strings.Builder
}

func (w *writer) print(format string, args ...any) { fmt.Fprintf(&w.out, format, args...) }

// px prints a length.
func px(x float64) string {
	s := fmt.Sprintf("%.1f", x)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// foot lists what stands below the drawing: the hooks, and how much is not drawn.
func (w *writer) foot() (out []string) {
	for _, h := range w.hooks() {
		out = append(out, h.when+": "+commandLine(h.run))
	}
	if n := len(w.nodes()) - len(w.hooks()) - len(w.sheet.nodes); n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return out
}

func (w *writer) open(left, top, width, height float64, nodes []*node) {
	role := "img"
	if w.options.Link != nil {
		role = "group" // an img hides the links within it
	}
	name := clean(w.spec.Name)
	w.print(`<svg xmlns="http://www.w3.org/2000/svg" class="sluice-graph" viewBox="%s %s %s %s" width="%s" height="%s"`+
		` role="%s" aria-label="%s">`+"\n", px(left), px(top), px(width), px(height), px(width), px(height), role,
		html.EscapeString("workflow "+name))
	var words []string
	for _, n := range nodes {
		words = append(words, n.full)
	}
	w.print("<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(name), html.EscapeString(strings.Join(words, "; ")))
	if !w.options.Fragment {
		w.print("<style>%s</style>\n<rect class=\"paper\" x=\"%s\" y=\"%s\" width=\"100%%\" height=\"100%%\"/>\n",
			style, px(left), px(top))
	}
}

// lane draws the lines of a lane, each as far as to where it meets one that is drawn.
func (w *writer) lane(l *lane) {
	class := kindClass(l.kind)
	if w.ahead(l) {
		class += " ahead"
	}
	var drawn [][]spot
	var names []string
	for _, e := range w.sheet.lines {
		if e.lane == l {
			names = append(names, join(" ", e.from, "→", e.to+":", e.label))
			drawn = append(drawn, e.pts)
		}
	}
	if len(drawn) == 0 {
		return
	}
	slices.SortStableFunc(drawn, func(a, b []spot) int { return len(b) - len(a) })
	w.print("<g class=\"line %s\"><title>%s</title><path d=\"", class,
		html.EscapeString(clean(strings.TrimSuffix(strings.Join(names, "; "), ":"))))
	tips := map[spot]bool{}
	for i, pts := range drawn {
		w.out.WriteString(rounded(until(pts, drawn[:i])))
	}
	w.print("\"/>")
	for _, pts := range drawn {
		if to := pts[len(pts)-1]; !tips[to] {
			tips[to] = true
			w.out.WriteString(arrow(pts))
		}
	}
	w.print("</g>\n")
}

// ahead reports whether a run has not come to any node that the lane leads away from.
func (w *writer) ahead(l *lane) bool {
	if len(w.states) == 0 {
		return false
	}
	for _, e := range w.sheet.lines {
		foreign := w.spec.Step(e.from) == nil && w.spec.Gate(e.from) == nil
		if e.lane == l && (foreign || conditionOf(w.states[e.from]) != condAhead) {
			return false
		}
	}
	return true
}

func kindClass(k edgeKind) string {
	return [...]string{edgePass: "pass", edgeFail: "fail", edgeRoute: "route", edgeSpent: "spent", edgeNeed: "need"}[k]
}

func (w *writer) label(l *line) {
	if l.label == "" {
		return
	}
	b := l.labelBox()
	class, x := "", b.x
	if l.labelLeft() {
		class, x = " left", b.x+b.w
	}
	w.print("<text class=\"label %s%s\" x=\"%s\" y=\"%s\">%s</text>\n", kindClass(l.kind), class, px(x),
		px(b.y+b.h-2.5), html.EscapeString(l.label))
}

// labelLeft reports whether the label ends at its line's node instead of beginning there.
func (l *line) labelLeft() bool { return l.lane.back && l.links[0].beside && l.links[0].ax < 0 }

// box is a rectangle; x and y are its upper left corner.
type box struct{ x, y, w, h float64 }

const heightLabel = 12.0

// labelBox is where a line's label is.
func (l *line) labelBox() box {
	k := l.links[0]
	b := box{w: textWidth(l.label, sizeLabel), h: heightLabel}
	if !l.lane.back || !k.beside {
		b.x, b.y = k.a.x+k.ax+labelPad, k.a.y+k.a.h+1
		return b
	}
	b.x, b.y = k.a.x+k.a.w/2+labelPad, k.a.y+k.a.h/2+k.sideY-heightLabel-1
	if k.ax < 0 {
		b.x = k.a.x - k.a.w/2 - labelPad - b.w
	}
	return b
}

func (w *writer) node(v *vertex) {
	n, b := v.node, box{v.x - v.w/2, v.y, v.w, v.h}
	w.print("<g id=\"%s\" class=\"node %s %s\">", html.EscapeString(w.options.Prefix+"n-"+n.id), n.shape, n.condition)
	w.linked(n, func() {
		w.print("<title>%s</title>", html.EscapeString(n.full))
		switch n.shape {
		case shapeGate:
			w.print("%s", hexagon(b, hexCut))
		case shapeEnd:
			w.print("%s", rect(b, b.h/2))
		default:
			w.print("%s", rect(b, 6))
		}
		w.text(v)
	})
	w.print("</g>\n")
}

func rect(b box, corner float64) string {
	return fmt.Sprintf(`<rect class="box" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`, px(b.x), px(b.y), px(b.w),
		px(b.h), px(corner))
}

func hexagon(b box, cut float64) string {
	return fmt.Sprintf(`<path class="box" d="M%s %sL%s %sH%sL%s %sL%s %sH%sZ"/>`, px(b.x), px(b.y+b.h/2), px(b.x+cut),
		px(b.y), px(b.x+b.w-cut), px(b.x+b.w), px(b.y+b.h/2), px(b.x+b.w-cut), px(b.y+b.h), px(b.x+cut))
}

// linked writes what stands for a node, within its link if it has one.
func (w *writer) linked(n *node, write func()) {
	link := ""
	if w.options.Link != nil {
		link = w.options.Link(n.id)
	}
	if link == "" {
		write()
		return
	}
	w.print("<a href=\"%s\">", html.EscapeString(link))
	write()
	w.print("</a>")
}

// text writes a node's lines in its middle.
func (w *writer) text(v *vertex) {
	n := v.node
	high := heightHead + heightWho*float64(len(n.more))
	if n.note != "" {
		high += heightWho
	}
	y := v.y + (v.h-high)/2 + heightHead - 4.5
	w.print("<text class=\"head\" x=\"%s\" y=\"%s\">%s</text>", px(v.x), px(y), html.EscapeString(n.head))
	for _, l := range n.more {
		y += heightWho
		w.print("<text class=\"who\" x=\"%s\" y=\"%s\">%s</text>", px(v.x), px(y), html.EscapeString(l))
	}
	if n.note != "" {
		w.print("<text class=\"note\" x=\"%s\" y=\"%s\">%s</text>", px(v.x), px(y+heightWho), html.EscapeString(n.note))
	}
}
