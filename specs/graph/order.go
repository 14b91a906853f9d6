package graph

import (
	"cmp"
	"maps"
	"slices"
)

const (
	maxWork    = 100_000 // pairs of columns compared in a search for an order
	maxStill   = 100     // shaken orders in a row that are no better
	maxTurned  = 20      // columns that are turned around at once
	maxColumns = 600     // more stay in their order

	costCross = 16
	costRound = 7 // an end of a way back that cannot be at its node's side
)

// column is what has one place from the left to the right in all its layers: a node, or a lane with
// all its points. So lanes cross only where they begin and end.
type column struct {
	points      []*vertex
	first, last int     // layers
	at          int     // its place
	up, down    []touch // links to columns in the layer above, in the layer below
	ends        []end
}

// touch is a link of a column, in one of its layers.
type touch struct {
	layer int
	to    *column
}

// end is the end of a way back: at the column of the node, and at that of the lane.
type end struct {
	layer  int
	to     *column // the other one
	node   *vertex
	leaves bool
}

// passes reports whether c goes on from a layer into the next one.
func (c *column) passes(layer int) bool { return c.first <= layer && layer < c.last }

func (c *column) in(layer int) bool { return c.first <= layer && layer <= c.last }

// columns lists the columns of a sheet: the nodes as given, and the lanes at their right.
func (s *sheet) columns() (all []*column) {
	of := map[*vertex]*column{}
	add := func(points ...*vertex) {
		if len(points) == 0 {
			return
		}
		c := &column{points: points, first: points[0].layer, last: points[len(points)-1].layer, at: len(all)}
		all = append(all, c)
		for _, v := range points {
			of[v] = c
		}
	}
	for _, v := range s.nodes {
		add(v)
	}
	for _, l := range s.lanes {
		add(slices.SortedFunc(maps.Values(l.points), func(a, b *vertex) int { return cmp.Compare(a.layer, b.layer) })...)
	}
	for _, k := range s.links {
		a, b := of[k.a], of[k.b]
		switch {
		case a == b:
		case k.a.layer == k.b.layer:
			a.ends = append(a.ends, end{k.a.layer, b, k.a, k.leaves})
			b.ends = append(b.ends, end{k.a.layer, a, k.a, k.leaves})
		default:
			a.down = append(a.down, touch{k.a.layer, b})
			b.up = append(b.up, touch{k.b.layer, a})
		}
	}
	return all
}

// over is what it costs that c is between a node and the lane of its way back.
func (e end) over(c *column) int {
	v := c.points[e.layer-c.first]
	switch {
	case v.node != nil && e.leaves:
		return 1 + costRound + costCross*len(c.down)
	case v.node != nil:
		return 1 + costRound + costCross*len(c.up)
	case endsAt(v, e.node):
		return 1
	}
	return 1 + costCross
}

// endsAt reports whether a lane ends at its point p, at the side of v: what ends further out goes
// around it.
func endsAt(p, v *vertex) bool {
	if len(p.side) != 1 || p.side[0].a != v {
		return false
	}
	return p.side[0].leaves && len(p.down) == 0 || !p.side[0].leaves && len(p.up) == 0
}

// search is a search for an order of columns in which few lines cross.
type search struct {
	all  []*column
	cost int
	work int
	dice random
}

// order finds an order: from the given one, then from the best one with a part turned around.
func (s *sheet) order() *search {
	f := &search{all: s.columns()}
	if len(f.all) > maxColumns {
		return f
	}
	f.cost = f.total()
	f.settle()
	for still := 0; f.cost >= costCross && still < maxStill && f.work < maxWork; still++ {
		best, least := slices.Clone(f.all), f.cost
		f.turn()
		f.settle()
		switch {
		case f.cost < least:
			still = 0
		case f.cost > least:
			f.cost = least
			copy(f.all, best)
			for i, c := range f.all {
				c.at = i
			}
		}
	}
	return f
}

// total is what the order costs: the crossings, and how far the ways back are from their nodes.
func (f *search) total() (cost int) {
	channels := map[int][][2]*column{}
	for _, c := range f.all {
		for y := c.first; y < c.last; y++ {
			channels[y] = append(channels[y], [2]*column{c, c})
		}
		for _, t := range c.down {
			channels[t.layer] = append(channels[t.layer], [2]*column{c, t.to})
		}
		for _, e := range c.ends {
			if c.points[0] != e.node {
				continue
			}
			for _, b := range f.all[min(c.at, e.to.at)+1 : max(c.at, e.to.at)] {
				if b.in(e.layer) {
					cost += e.over(b)
				}
			}
		}
	}
	for _, links := range channels {
		for i, k := range links {
			for _, o := range links[i+1:] {
				if cmp.Compare(k[0].at, o[0].at)*cmp.Compare(k[1].at, o[1].at) < 0 {
					cost += costCross
				}
			}
		}
	}
	return cost
}

// settle brings columns to better places until none has one.
func (f *search) settle() {
	for still := 0; still < len(f.all); {
		for _, c := range slices.Clone(f.all) {
			if f.work >= maxWork {
				return
			}
			if still++; f.sift(c) {
				still = 0
			}
		}
	}
}

// sift brings a column to its best place, and reports whether that is another.
func (f *search) sift(c *column) bool {
	cost, least, to := 0, 0, c.at
	for i := c.at + 1; i < len(f.all); i++ {
		if cost += f.past(c, f.all[i]); cost < least {
			least, to = cost, i
		}
	}
	cost = 0
	for i := c.at - 1; i >= 0; i-- {
		if cost -= f.past(c, f.all[i]); cost < least {
			least, to = cost, i
		}
	}
	f.cost += least
	f.move(c, to)
	return least < 0
}

// past is what it costs to bring a from directly left of b to directly right of it. The place that
// a has meanwhile is not looked at.
func (f *search) past(a, b *column) (cost int) {
	if a.last < b.first || b.last < a.first {
		return 0
	}
	f.work++
	cost = costCross * (swapped(a, b, a.down, b.down, 0) + swapped(a, b, a.up, b.up, -1))
	for _, e := range a.ends {
		if e.to != b && b.in(e.layer) {
			cost += e.over(b) * cmp.Compare(b.at, e.to.at)
		}
	}
	for _, e := range b.ends {
		if e.to != a && a.in(e.layer) {
			cost += e.over(a) * cmp.Compare(e.to.at, b.at)
		}
	}
	return cost
}

// swapped returns how many more of the links cross that a and b have downwards, or upwards with
// shift -1, when a comes from directly left of b to directly right of it.
func swapped(a, b *column, as, bs []touch, shift int) (more int) {
	for _, t := range as {
		for _, u := range bs {
			if t.layer == u.layer {
				more += cmp.Compare(u.to.at, t.to.at)
			}
		}
		if b.passes(t.layer + shift) {
			more += cmp.Compare(b.at, t.to.at)
		}
	}
	for _, u := range bs {
		if u.to != a && a.passes(u.layer+shift) {
			more += cmp.Compare(u.to.at, b.at)
		}
	}
	return more
}

// turn turns a part of the order around.
func (f *search) turn() {
	from := f.dice.below(len(f.all))
	to := min(from+1+f.dice.below(maxTurned), len(f.all)-1)
	for i := from; i < to; i++ {
		c := f.all[to]
		for j := to - 1; j >= i; j-- {
			f.cost -= f.past(c, f.all[j])
		}
		f.move(c, i)
	}
}

// move brings a column to a place.
func (f *search) move(c *column, to int) {
	for ; c.at < to; c.at++ {
		f.all[c.at] = f.all[c.at+1]
		f.all[c.at].at--
	}
	for ; c.at > to; c.at-- {
		f.all[c.at] = f.all[c.at-1]
		f.all[c.at].at++
	}
	f.all[to] = c
}

// random is a generator of numbers that are always the same.
type random uint64

func (r *random) below(n int) int {
	*r = *r*6364136223846793005 + 1442695040888963407
	return int(*r>>33) % n
}
