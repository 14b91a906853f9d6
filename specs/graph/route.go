package graph

import (
	"cmp"
	"math"
	"slices"
)

const (
	costOverlap = 1000 // lines of different meaning on one another
	tooNear     = 6.0
	maxOrderNet = 200 // lines across a channel; more stay in their order
)

// net is all of a lane in the channel between two layers: one line across, joined from above and
// from below.
type net struct {
	tops, bots []float64
	lo, hi     float64
	track      int
	y          float64
}

type netKey struct {
	lane    *lane
	channel int     // the layer below it
	port    float64 // of a node in that layer
}

// key returns the net of a link that crosses a channel.
func (k *link) key() netKey {
	if k.b.node == nil {
		return netKey{k.lane, k.b.layer, 0}
	}
	return netKey{k.lane, k.b.layer, k.bx}
}

// route sets y, chooses the tracks in the channels and draws the lines.
func (s *sheet) route() {
	nets := map[netKey]*net{}
	channels := make([][]*net, len(s.layers)+1)
	labels := make([]bool, len(s.layers)+1)
	join := func(at netKey, tops, bots []float64) {
		n := nets[at]
		if n == nil {
			n = &net{}
			nets[at] = n
			channels[at.channel] = append(channels[at.channel], n)
		}
		n.tops, n.bots = append(n.tops, tops...), append(n.bots, bots...)
	}
	for _, k := range s.links {
		switch {
		case k.a.layer != k.b.layer:
			join(k.key(), []float64{k.a.x + k.ax}, []float64{k.b.x + k.bx})
			labels[k.b.layer] = labels[k.b.layer] || k.label != ""
		case k.beside:
		case k.leaves:
			join(netKey{k.lane, k.a.layer + 1, 0}, []float64{k.a.x + k.ax, k.b.x}, nil)
			labels[k.a.layer+1] = labels[k.a.layer+1] || k.label != ""
		default:
			join(netKey{k.lane, k.a.layer, 0}, nil, []float64{k.a.x + k.ax, k.b.x})
		}
	}
	y := 0.0
	for i := range channels {
		n := tracks(channels[i])
		if labels[i] {
			y += rowLabel
		} else if i > 0 && i < len(s.layers) || n > 0 {
			y += minRow
		}
		for _, t := range channels[i] {
			t.y = y + gapTrack*float64(t.track)
		}
		if i == len(s.layers) {
			y += gapTrack * float64(n)
			break
		}
		if n > 0 {
			y += gapTrack * float64(n-1)
		}
		if i > 0 || n > 0 {
			y += rowArrow
		}
		y = s.row(i, y)
	}
	for _, l := range s.lines {
		l.pts = nil
		l.draw(nets)
	}
	s.bounds(y)
}

// row places a layer's vertices from y down, and returns its lower edge.
func (s *sheet) row(i int, y float64) float64 {
	h := 0.0
	for _, v := range s.layers[i] {
		h = max(h, v.h)
	}
	for _, v := range s.layers[i] {
		v.y = y + (h-v.h)/2
		if v.node == nil {
			v.y, v.h = y, h
		}
	}
	return y + h
}

func (n *net) within(x float64) bool { return x > n.lo-tooNear && x < n.hi+tooNear }

// above is the cost of n's line across lying above o's.
func (n *net) above(o *net) (c int) {
	for _, x := range distinct(n.bots) {
		if o.within(x) {
			c++
		}
		for _, t := range o.tops {
			if math.Abs(x-t) < tooNear {
				c += costOverlap
			}
		}
	}
	for _, x := range distinct(o.tops) {
		if n.within(x) {
			c++
		}
	}
	return c
}

func distinct(xs []float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(xs)))
}

// tracks orders the lines across a channel so that few cross, and returns how many tracks they
// need. Lines that are straight have none.
func tracks(all []*net) (count int) {
	var ns []*net
	for _, n := range all {
		xs := append(slices.Clone(n.tops), n.bots...)
		n.lo, n.hi = slices.Min(xs), slices.Max(xs)
		if n.hi-n.lo > 0.5 {
			ns = append(ns, n)
		}
	}
	slices.SortStableFunc(ns, func(a, b *net) int { return cmp.Compare(a.lo, b.lo) })
	if len(ns) <= maxOrderNet {
		improve(ns)
	}
	for i, n := range ns {
		for _, o := range ns[:i] {
			if o.lo < n.hi+gapTrack && n.lo < o.hi+gapTrack {
				n.track = max(n.track, o.track+1)
			}
		}
		count = max(count, n.track+1)
	}
	return count
}

// improve moves nets up and down their list as long as that saves crossings.
func improve(ns []*net) {
	cost := make([][]int, len(ns))
	for i, n := range ns {
		cost[i] = make([]int, len(ns))
		for j, o := range ns {
			if i != j {
				cost[i][j] = n.above(o)
			}
		}
		n.track = i
	}
	order := make([]int, len(ns))
	for i := range order {
		order[i] = i
	}
	given := slices.Clone(ns)
	for better, turns := true, 0; better && turns < 8*len(ns); turns++ {
		better = false
		for from := range order {
			best, to, c := 0, from, 0
			for j := from - 1; j >= 0; j-- {
				c += cost[order[from]][order[j]] - cost[order[j]][order[from]]
				if c < best {
					best, to = c, j
				}
			}
			c = 0
			for j := from + 1; j < len(order); j++ {
				c += cost[order[j]][order[from]] - cost[order[from]][order[j]]
				if c < best {
					best, to = c, j
				}
			}
			if to != from {
				n := order[from]
				order = slices.Insert(slices.Delete(order, from, from+1), to, n)
				better = true
			}
		}
	}
	for i, o := range order {
		ns[i] = given[o]
		ns[i].track = 0
	}
}

// draw sets the points of a line.
func (l *line) draw(nets map[netKey]*net) {
	add := func(x, y float64) {
		if n := len(l.pts); n > 0 && math.Abs(l.pts[n-1].x-x) < 0.01 && math.Abs(l.pts[n-1].y-y) < 0.01 {
			return
		} else if n > 1 && (same(l.pts[n-2].x, l.pts[n-1].x, x) || same(l.pts[n-2].y, l.pts[n-1].y, y)) {
			l.pts[n-1] = spot{x, y}
			return
		}
		l.pts = append(l.pts, spot{x, y})
	}
	if !l.lane.back {
		for _, k := range l.links {
			t := nets[k.key()].y
			add(k.a.x+k.ax, k.a.y+k.a.h)
			if math.Abs(k.a.x+k.ax-k.b.x-k.bx) > 0.5 {
				add(k.a.x+k.ax, t)
				add(k.b.x+k.bx, t)
			}
			add(k.b.x+k.bx, k.b.y)
		}
		return
	}
	out, in := l.links[0], l.links[1]
	if out.beside {
		add(out.a.edge(out), out.a.y+out.a.h/2+out.sideY)
		add(out.b.x, out.a.y+out.a.h/2+out.sideY)
	} else {
		t := nets[netKey{l.lane, out.a.layer + 1, 0}].y
		add(out.a.x+out.ax, out.a.y+out.a.h)
		add(out.a.x+out.ax, t)
		add(out.b.x, t)
	}
	for y := out.a.layer; y > in.a.layer; y-- {
		low, high := l.lane.points[y], l.lane.points[y-1]
		t := nets[netKey{l.lane, y, 0}].y
		if math.Abs(low.x-high.x) > 0.5 {
			add(low.x, t)
			add(high.x, t)
		}
	}
	if in.beside {
		add(in.b.x, in.a.y+in.a.h/2+in.sideY)
		add(in.a.edge(in), in.a.y+in.a.h/2+in.sideY)
	} else {
		t := nets[netKey{l.lane, in.a.layer, 0}].y
		add(in.b.x, t)
		add(in.a.x+in.ax, t)
		add(in.a.x+in.ax, in.a.y)
	}
}

func same(a, b, c float64) bool { return math.Abs(a-b) < 0.01 && math.Abs(b-c) < 0.01 }

// edge returns the x at which an end at v's side touches its outline.
func (v *vertex) edge(k *link) float64 {
	return v.x + k.ax*(v.w/2-v.node.inset(k.sideY/(v.h/2), v.h))
}

// bounds sets the drawing's extent.
func (s *sheet) bounds(height float64) {
	s.left, s.right, s.height = math.Inf(1), math.Inf(-1), height
	for _, l := range s.layers {
		for _, v := range l {
			s.left, s.right = min(s.left, v.x-v.w/2), max(s.right, v.x+v.w/2)
		}
	}
}
