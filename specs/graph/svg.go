package graph

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/engine"
)

// Measures of the SVG, in pixels.
const (
	svgChar   = 7  // approximate width of a character
	svgLine   = 16 // height of a line
	svgPadX   = 14 // inside a node
	svgPadY   = 10
	svgGapX   = 36 // between nodes of a row
	svgGapY   = 52 // between rows
	svgLane   = 26 // between lines that go around the rows
	svgMargin = 20
)

type box struct {
	id          string
	lines       []string
	row         int
	x, y, w, h  float64
	near        float64 // where its predecessors are
	shape       string  // rect, hexagon or oval
	fill, frame string
}

// SVG draws the workflow as an SVG image, without other programs or libraries. Rows go from the top
// down; lines back go around at the right, lines that skip rows at the left.
func SVG(spec *engine.Spec, states map[string]string) []byte {
	p := draw(spec, states)
	boxes := p.boxes()
	p.rows(boxes)
	width, height := place2D(p.ids(), boxes)
	c := &canvas{picture: p, boxes: boxes, right: width, left: 0}
	for _, e := range merged(p.edges) {
		c.edge(e)
	}
	for _, id := range p.ids() {
		c.node(boxes[id])
	}
	left, right := c.left-svgMargin, c.right+svgMargin
	return []byte(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="%.0f %d %.0f %.0f" width="%.0f" height="%.0f" font-family="Helvetica, Arial, sans-serif" font-size="12">`+"\n"+
		"<title>%s</title>\n<rect x=\"%.0f\" y=\"%d\" width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n%s</svg>\n",
		left, -svgMargin, right-left, height+2*svgMargin, right-left, height+2*svgMargin, html.EscapeString(clean(spec.Name)), left, -svgMargin, c.out.String()))
}

// merged joins the lines between the same two nodes into one, with all labels.
func merged(edges []edge) (out []edge) {
	for _, e := range edges {
		i := slices.IndexFunc(out, func(o edge) bool { return o.from == e.from && o.to == e.to })
		if i < 0 {
			out = append(out, e)
			continue
		}
		out[i].label = strings.Trim(out[i].label+", "+e.label, ", ")
	}
	return out
}

// ids lists the nodes, with the needed steps of other workflows first.
func (p *picture) ids() []string {
	all := p.nodes()
	return append(slices.Clone(all[len(p.order):]), all[:len(p.order)]...)
}

func (p *picture) boxes() map[string]*box {
	out := map[string]*box{}
	for _, id := range p.ids() {
		head, who := p.title(id)
		b := &box{id: id, lines: []string{head}, shape: "rect"}
		for _, more := range []string{who, p.states[id]} {
			if more != "" {
				b.lines = append(b.lines, more)
			}
		}
		switch {
		case p.isEnd(id):
			b.shape = "oval"
		case p.spec.Step(id) == nil && p.spec.Gate(id) != nil:
			b.shape = "hexagon"
		}
		for _, l := range b.lines {
			b.w = max(b.w, float64(utf8.RuneCountInString(l)*svgChar+2*svgPadX))
		}
		b.h = float64(len(b.lines)*svgLine + 2*svgPadY)
		if b.shape == "hexagon" {
			b.w += svgPadX
		}
		b.fill, b.frame = colour(p.states[id])
		out[id] = b
	}
	return out
}

// rows puts each node in the row below everything earlier that leads to it.
func (p *picture) rows(boxes map[string]*box) {
	at := map[string]int{}
	for i, id := range p.ids() {
		at[id] = i
	}
	for _, id := range p.ids() {
		for _, e := range p.edges {
			if e.to == id && at[e.from] < at[id] {
				boxes[id].row = max(boxes[id].row, boxes[e.from].row+1)
			}
		}
	}
	for _, id := range p.ids() {
		n := 0.0
		for _, e := range p.edges {
			if e.to == id && boxes[e.from].row < boxes[id].row {
				boxes[id].near += float64(at[e.from])
				n++
			}
		}
		boxes[id].near /= max(n, 1)
	}
	last := 0
	for _, b := range boxes {
		last = max(last, b.row)
	}
	for _, h := range p.hooks() { // nothing leads to them; they go to the bottom
		boxes[h.when].row = last + 1
	}
}

// place2D sets each box's coordinates, and returns the total size.
func place2D(ids []string, boxes map[string]*box) (width, height float64) {
	var rows [][]*box
	for _, id := range ids {
		b := boxes[id]
		for len(rows) <= b.row {
			rows = append(rows, nil)
		}
		rows[b.row] = append(rows[b.row], b)
	}
	widths := make([]float64, len(rows))
	for i, row := range rows {
		slices.SortStableFunc(row, func(a, b *box) int { return cmp.Compare(a.near, b.near) })
		for _, b := range row {
			widths[i] += b.w + svgGapX
		}
		width = max(width, widths[i]-svgGapX)
	}
	for i, row := range rows {
		x, tallest := (width-widths[i]+svgGapX)/2, 0.0
		for _, b := range row {
			b.x, b.y = x, height
			x += b.w + svgGapX
			tallest = max(tallest, b.h)
		}
		height += tallest + svgGapY
	}
	return width, height - svgGapY
}

type canvas struct {
	*picture
	boxes       map[string]*box
	left, right float64 // how far lines have gone around
	out         strings.Builder
}

func (c *canvas) edge(e edge) {
	a, b := c.boxes[e.from], c.boxes[e.to]
	stroke := map[edgeKind]string{edgePass: "#16a34a", edgeFail: "#dc2626", edgeRoute: "#7c3aed", edgeSpent: "#d97706", edgeNeed: "#4b5563"}[e.kind]
	dash := ""
	if e.kind != edgePass && e.kind != edgeNeed {
		dash = ` stroke-dasharray="5 4"`
	}
	var path string
	var lx, ly, tx, ty, dx, dy float64 // the label's place, the arrow's tip and direction
	switch {
	case b.row == a.row+1: // straight down
		x1, y1, x2, y2 := a.x+a.w/2, a.y+a.h, b.x+b.w/2, b.y
		path = fmt.Sprintf("M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f", x1, y1, x1, y1+svgGapY/2, x2, y2-svgGapY/2, x2, y2)
		lx, ly, tx, ty, dx, dy = (x1+x2)/2, (y1+y2)/2, x2, y2, 0, 1
	case b.row > a.row: // past rows: around at the left
		c.left -= svgLane
		path, ly, ty = round(a.x, a.y+a.h*0.5, c.left, b.x, b.y+b.h*0.4)
		lx, tx, dx = c.left, b.x, 1
	default: // back: around at the right
		c.right += svgLane
		path, ly, ty = round(a.x+a.w, a.y+a.h*0.6, c.right, b.x+b.w, b.y+b.h*0.6)
		lx, tx, dx = c.right, b.x+b.w, -1
	}
	fmt.Fprintf(&c.out, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"%s/>`+"\n", path, stroke, dash)
	fmt.Fprintf(&c.out, `<path d="M%.1f %.1f L%.1f %.1f L%.1f %.1f Z" fill="%s"/>`+"\n", tx, ty,
		tx-8*dx-4*dy, ty-8*dy-4*dx, tx-8*dx+4*dy, ty-8*dy+4*dx, stroke)
	if e.label != "" {
		w := float64(utf8.RuneCountInString(e.label)*6 + 6)
		c.left, c.right = min(c.left, lx-w/2), max(c.right, lx+w/2)
		fmt.Fprintf(&c.out, `<rect x="%.1f" y="%.1f" width="%.1f" height="14" fill="#ffffff"/><text x="%.1f" y="%.1f" text-anchor="middle" font-size="11" fill="%s">%s</text>`+"\n",
			lx-w/2, ly-9, w, lx, ly+2, stroke, html.EscapeString(e.label))
	}
}

// round returns a line that leaves sideways, follows a lane and returns sideways.
func round(x1, y1, lane, x2, y2 float64) (path string, middle, end float64) {
	return fmt.Sprintf("M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f S%.1f %.1f %.1f %.1f", x1, y1, lane, y1, lane, y1, lane, (y1+y2)/2, lane, y2, x2, y2), (y1 + y2) / 2, y2
}

func (c *canvas) node(b *box) {
	frame := fmt.Sprintf(`fill="%s" stroke="%s" stroke-width="1.5"`, b.fill, b.frame)
	switch b.shape {
	case "oval":
		fmt.Fprintf(&c.out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f" %s/>`+"\n", b.x, b.y, b.w, b.h, b.h/2, frame)
	case "hexagon":
		cut := svgPadX * 0.7
		fmt.Fprintf(&c.out, `<polygon points="%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f" %s/>`+"\n", b.x, b.y+b.h/2, b.x+cut, b.y,
			b.x+b.w-cut, b.y, b.x+b.w, b.y+b.h/2, b.x+b.w-cut, b.y+b.h, b.x+cut, b.y+b.h, frame)
	default:
		fmt.Fprintf(&c.out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5" %s/>`+"\n", b.x, b.y, b.w, b.h, frame)
	}
	for i, l := range b.lines {
		style := ` fill="#111827" font-weight="bold"`
		if i > 0 {
			style = ` fill="#4b5563"`
		}
		fmt.Fprintf(&c.out, `<text x="%.1f" y="%.1f" text-anchor="middle"%s>%s</text>`+"\n", b.x+b.w/2, b.y+float64(svgPadY+svgLine*i+12), style, html.EscapeString(l))
	}
}
