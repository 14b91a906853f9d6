package graph

import (
	"cmp"
	"slices"
)

// sheet is the layered drawing of a picture. Its phases are in the order of the files: layers.go
// (what leads back, layers, lanes), order.go (what is left of what), ports.go and place.go (across),
// route.go (down, and the lines).
type sheet struct {
	nodes  []*vertex
	layers [][]*vertex
	links  []*link
	lanes  []*lane
	lines  []*line
	manner manner

	left, right, height float64
}

// vertex is what has a place in a layer: a node, or a point where a lane passes the layer.
type vertex struct {
	node       *node // nil: a point of a lane
	layer, pos int
	up, down   []*link // from the layer above, to the layer below
	side       []*link // a node's ends of ways back, and the same at the lane's point
	x, y       float64 // the middle of its upper side
	w, h       float64
	block      *block
}

// lane is the way that all lines of one kind to one node share: down, or back up.
type lane struct {
	to     *vertex
	kind   edgeKind
	back   bool
	points map[int]*vertex // by layer
	last   int             // of a way back: the lowest layer
}

// link is a part of a line: between neighbouring layers, or within a layer from the end of a way
// back (a, a node) to its lane (b).
type link struct {
	a, b   *vertex
	lane   *lane
	label  string // stands at a
	leaves bool   // of an end: the line leaves a, and does not reach it
	ax, bx float64
	sideY  float64 // of an end at a's side: its height in the row
	beside bool    // of an end: nothing but lanes is between a and b
}

// line is an edge of the picture with the links that it runs along.
type line struct {
	edge
	lane  *lane
	links []*link
	pts   []spot
}

type spot struct{ x, y float64 }

// manner is a way to place nodes and lines: whether each line has a lane of its own, and which lines
// lead back.
type manner struct {
	alone bool
	back  backRule
}

type backRule int

const (
	backLoop   backRule = iota // what closes a loop, if one goes the way of a pass first
	backListed                 // what leads to an earlier node
	backNeeds                  // as backLoop, but needs are followed first
)

// lay derives the drawing: with shared lanes, or in another manner if that saves crossings. from and
// to of an edge are in nodes.
func lay(nodes []*node, edges []edge) *sheet {
	var best *sheet
	var order *search
	least := 0
	for _, b := range []backRule{backLoop, backListed, backNeeds} {
		for _, alone := range []bool{false, true} {
			if best != nil && least < 2*costCross {
				continue
			}
			s := connected(nodes, edges, manner{alone, b})
			o := s.order()
			switch {
			case best == nil:
				best, order, least = s, o, o.cost
			case o.cost+costCross < least:
				best, order, least = s, o, o.cost+costCross
			}
		}
	}
	best.arrange(order.all)
	best.ports()
	best.place()
	best.route()
	return best
}

// connected makes the layers and lanes, in a manner.
func connected(nodes []*node, edges []edge, m manner) *sheet {
	s := &sheet{manner: m}
	at := map[string]*vertex{}
	for _, n := range nodes {
		v := &vertex{node: n, w: n.w, h: n.h}
		at[n.id] = v
		s.nodes = append(s.nodes, v)
	}
	for _, e := range edges {
		s.lines = append(s.lines, &line{edge: e})
	}
	back := s.backward(at)
	s.layer(at, back)
	for i, l := range s.lines {
		if back[i] {
			s.climb(at, l)
		} else {
			s.descend(at, l)
		}
	}
	for _, l := range s.lanes {
		if l.back {
			s.chain(l)
		}
	}
	return s
}

// backward finds the lines that lead back: to a node that is still open in a depth-first walk which
// takes the way of a pass first.
func (s *sheet) backward(at map[string]*vertex) []bool {
	rank := [...]int{edgePass: 0, edgeNeed: 0, edgeRoute: 1, edgeSpent: 2, edgeFail: 3}
	if s.manner.back == backNeeds {
		rank[edgeNeed] = -1
	}
	outs := map[*vertex][]int{}
	for i, l := range s.lines {
		outs[at[l.from]] = append(outs[at[l.from]], i)
	}
	for _, o := range outs {
		slices.SortStableFunc(o, func(a, b int) int {
			return cmp.Compare(rank[s.lines[a].kind], rank[s.lines[b].kind])
		})
	}
	back := make([]bool, len(s.lines))
	if s.manner.back == backListed {
		for i, l := range s.lines {
			back[i] = slices.Index(s.nodes, at[l.to]) <= slices.Index(s.nodes, at[l.from])
		}
		return back
	}
	open, done := map[*vertex]bool{}, map[*vertex]bool{}
	var walk func(v *vertex)
	walk = func(v *vertex) {
		open[v] = true
		for _, i := range outs[v] {
			to := at[s.lines[i].to]
			if open[to] {
				back[i] = true
			} else if !done[to] {
				walk(to)
			}
		}
		open[v], done[v] = false, true
	}
	for _, v := range s.nodes {
		if !done[v] {
			walk(v)
		}
	}
	return back
}

// layer puts each node below what leads to it, and as near to its neighbours as that allows.
func (s *sheet) layer(at map[string]*vertex, back []bool) {
	ins, outs := map[*vertex][]*vertex{}, map[*vertex][]*vertex{}
	wait := map[*vertex]int{}
	for i, l := range s.lines {
		if a, b := at[l.from], at[l.to]; !back[i] {
			ins[b], outs[a] = append(ins[b], a), append(outs[a], b)
			wait[b]++
		}
	}
	var sorted []*vertex
	for _, v := range s.nodes {
		if wait[v] == 0 {
			sorted = append(sorted, v)
		}
	}
	for i := 0; i < len(sorted); i++ {
		for _, b := range outs[sorted[i]] {
			b.layer = max(b.layer, sorted[i].layer+1)
			if wait[b]--; wait[b] == 0 {
				sorted = append(sorted, b)
			}
		}
	}
	for _, v := range slices.Backward(sorted) { // down, where more leads on than leads here
		if len(outs[v]) <= len(ins[v]) {
			continue
		}
		low := len(s.nodes)
		for _, b := range outs[v] {
			low = min(low, b.layer-1)
		}
		v.layer = max(v.layer, low)
	}
	for _, v := range s.nodes {
		s.put(v)
	}
}

// arrange puts the layers in an order of the columns.
func (s *sheet) arrange(all []*column) {
	clear(s.layers)
	for _, c := range all {
		for _, v := range c.points {
			s.put(v)
		}
	}
}

// put adds a vertex to its layer.
func (s *sheet) put(v *vertex) {
	for len(s.layers) <= v.layer {
		s.layers = append(s.layers, nil)
	}
	v.pos = len(s.layers[v.layer])
	s.layers[v.layer] = append(s.layers[v.layer], v)
}

// laneOf returns the lane of a line.
func (s *sheet) laneOf(to *vertex, kind edgeKind, back bool) *lane {
	for _, l := range s.lanes {
		if l.to == to && l.kind == kind && l.back == back && !s.manner.alone {
			return l
		}
	}
	l := &lane{to: to, kind: kind, back: back, points: map[int]*vertex{}, last: to.layer}
	s.lanes = append(s.lanes, l)
	return l
}

func (s *sheet) point(l *lane, layer int) *vertex {
	if l.points[layer] == nil {
		l.points[layer] = &vertex{layer: layer}
		s.put(l.points[layer])
	}
	return l.points[layer]
}

// descend gives a line its way down.
func (s *sheet) descend(at map[string]*vertex, l *line) {
	to := at[l.to]
	l.lane = s.laneOf(to, l.kind, false)
	v, label := at[l.from], l.label
	for v != to {
		next := to
		if v.layer+1 < to.layer {
			next = s.point(l.lane, v.layer+1)
		}
		i := slices.IndexFunc(v.down, func(k *link) bool { return k.lane == l.lane })
		if i < 0 {
			i = len(v.down)
			k := &link{a: v, b: next, lane: l.lane, label: label}
			v.down, next.up = append(v.down, k), append(next.up, k)
			s.links = append(s.links, k)
		}
		l.links = append(l.links, v.down[i])
		v, label = next, ""
	}
}

// climb gives a line that leads back its two ends; chain joins what is between them.
func (s *sheet) climb(at map[string]*vertex, l *line) {
	from, to := at[l.from], at[l.to]
	l.lane = s.laneOf(to, l.kind, true)
	l.lane.last = max(l.lane.last, from.layer)
	for y := to.layer; y <= from.layer; y++ {
		s.point(l.lane, y)
	}
	end := func(v *vertex, leaves bool) *link {
		p := l.lane.points[v.layer]
		for _, k := range p.side {
			if k.a == v && k.leaves == leaves {
				return k
			}
		}
		k := &link{a: v, b: p, lane: l.lane, leaves: leaves}
		v.side, p.side = append(v.side, k), append(p.side, k)
		s.links = append(s.links, k)
		return k
	}
	out := end(from, true)
	out.label = l.label
	l.links = []*link{out, end(to, false)}
}

func (s *sheet) chain(l *lane) {
	for y := l.to.layer; y < l.last; y++ {
		k := &link{a: l.points[y], b: l.points[y+1], lane: l}
		k.a.down, k.b.up = append(k.a.down, k), append(k.b.up, k)
		s.links = append(s.links, k)
	}
}
