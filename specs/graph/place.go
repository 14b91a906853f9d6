package graph

import (
	"cmp"
	"math"
	"slices"
)

const (
	maxRounds = 40 // of moving layers towards their neighbours
	nearly    = 20.0
)

// block is vertices one below the other that a straight line joins.
type block struct {
	members    []*vertex
	rel        []float64 // of each member: its x less the block's
	x          float64
	left       []*block // what is directly left of a member, and how far away it has to be
	apart      []float64
	lefter     int // of its left neighbours, those not placed yet
	right      []*block
	rightApart []float64
}

// apart returns the least distance between the middles of neighbours.
func apart(a, b *vertex) float64 {
	gap := gapNodes
	switch {
	case a.node == nil && b.node == nil:
		gap = gapLanes
	case a.node == nil:
		gap = max(gapLane, besideRoom(b, -1))
	case b.node == nil:
		gap = max(gapLane, besideRoom(a, 1))
	}
	return a.w/2 + gap + b.w/2
}

// besideRoom is what the labels of ways back need at a side of v.
func besideRoom(v *vertex, sign float64) (room float64) {
	for _, k := range v.side {
		if k.beside && k.ax == sign {
			room = max(room, gapLane, labelWidth(k.label)+2*labelPad)
		}
	}
	return room
}

// place sets x: each layer as near to its neighbours as its order and the distances allow, then
// lanes and what hangs together straight.
func (s *sheet) place() {
	for _, l := range s.layers {
		x := 0.0
		for i, v := range l {
			if i > 0 {
				x += apart(l[i-1], v)
			}
			v.x = x
		}
		for _, v := range l {
			v.x -= x / 2
		}
	}
	for round := range maxRounds {
		for i := range s.layers {
			l := s.layers[i]
			if round%2 == 1 {
				l = s.layers[len(s.layers)-1-i]
			}
			want, weight := make([]float64, len(l)), make([]float64, len(l))
			for j, v := range l {
				late := round > maxRounds/2
				want[j], weight[j] = v.wish(round%2 == 0 || late, round%2 == 1 || late)
			}
			pool(l, want, weight)
		}
	}
	s.blocks()
	s.straighten()
	s.dodge()
}

// wish returns where v would have straight lines to its neighbours above or below, and how much
// they weigh.
func (v *vertex) wish(up, down bool) (x, weight float64) {
	add := func(at, w float64) { x, weight = x+at*w, weight+w }
	if up {
		for _, k := range v.up {
			add(k.a.x+k.ax-k.bx, pull(k))
		}
	}
	if down {
		for _, k := range v.down {
			add(k.b.x+k.bx-k.ax, pull(k))
		}
	}
	if v.node == nil {
		for _, k := range v.side {
			sign := math.Copysign(1, v.x-k.a.x)
			add(k.a.x+sign*(k.a.w/2+gapLane+labelWidth(k.label)), 0.5)
		}
	}
	if weight == 0 {
		return v.x, 0.01
	}
	return x / weight, weight
}

// pull is how much a link wants to be straight.
func pull(k *link) float64 {
	switch {
	case k.a.node == nil && k.b.node == nil:
		return 10
	case k.a.node == nil || k.b.node == nil:
		return 0.7
	case straightOn(k.lane.kind):
		return 3
	}
	return 1
}

// pool places a layer with the least squares of the distances to what is wanted, in order and
// apart: neighbours that would overlap move as one.
func pool(l []*vertex, want, weight []float64) {
	type group struct {
		sum, weight float64
		n           int
	}
	off := make([]float64, len(l))
	var gs []group
	for j := range l {
		if j > 0 {
			off[j] = off[j-1] + apart(l[j-1], l[j])
		}
		gs = append(gs, group{(want[j] - off[j]) * weight[j], weight[j], 1})
		for m := len(gs); m > 1 && gs[m-2].sum/gs[m-2].weight > gs[m-1].sum/gs[m-1].weight; m = len(gs) {
			gs[m-2] = group{gs[m-2].sum + gs[m-1].sum, gs[m-2].weight + gs[m-1].weight, gs[m-2].n + gs[m-1].n}
			gs = gs[:m-1]
		}
	}
	j := 0
	for _, g := range gs {
		for range g.n {
			l[j].x = g.sum/g.weight + off[j]
			j++
		}
	}
}

// blocks joins what a straight line should join, and places the blocks as near as they can be to
// where their members are.
func (s *sheet) blocks() {
	var all []*block
	for y, l := range s.layers {
		var joined []*link
		if y > 0 {
			joined = s.straightLinks(y - 1)
		}
		for _, v := range l {
			i := slices.IndexFunc(joined, func(k *link) bool { return k.b == v })
			if i < 0 {
				v.block = &block{members: []*vertex{v}, rel: []float64{0}}
				all = append(all, v.block)
				continue
			}
			k := joined[i]
			b := k.a.block
			b.rel = append(b.rel, b.rel[slices.Index(b.members, k.a)]+k.ax-k.bx)
			b.members = append(b.members, v)
			v.block = b
		}
	}
	for _, b := range all {
		for i, v := range b.members {
			b.x += (v.x - b.rel[i]) / float64(len(b.members))
		}
	}
	s.neighbours()
	all = sorted(all)
	settleBlocks(all)
	for range 2 * maxRounds {
		for _, b := range all {
			b.move()
		}
		for _, b := range slices.Backward(all) {
			b.move()
		}
	}
}

// straightLinks chooses the links below layer y that become straight: none cross.
func (s *sheet) straightLinks(y int) (out []*link) {
	var can []*link
	for _, v := range s.layers[y] {
		for _, k := range v.down {
			lanes := k.a.node == nil && k.b.node == nil
			close := math.Abs(k.a.x+k.ax-k.b.x-k.bx) < nearly
			if lanes || close {
				can = append(can, k)
			}
		}
	}
	slices.SortStableFunc(can, func(a, b *link) int { return cmp.Compare(pull(b), pull(a)) })
	for _, k := range can {
		if !slices.ContainsFunc(out, func(o *link) bool {
			return o.a == k.a || o.b == k.b || (o.a.pos < k.a.pos) != (o.b.pos < k.b.pos)
		}) {
			out = append(out, k)
		}
	}
	return out
}

// neighbours notes which blocks stand next to one another.
func (s *sheet) neighbours() {
	for _, l := range s.layers {
		for i := 1; i < len(l); i++ {
			a, b := l[i-1].block, l[i].block
			d := apart(l[i-1], l[i]) + a.rel[slices.Index(a.members, l[i-1])] - b.rel[slices.Index(b.members, l[i])]
			b.left, b.apart = append(b.left, a), append(b.apart, d)
			a.right, a.rightApart = append(a.right, b), append(a.rightApart, d)
		}
	}
}

// sorted puts blocks in an order in which each follows what is left of it.
func sorted(all []*block) (out []*block) {
	for _, b := range all {
		b.lefter = len(b.left)
		if b.lefter == 0 {
			out = append(out, b)
		}
	}
	for i := 0; i < len(out); i++ {
		for _, r := range out[i].right {
			if r.lefter--; r.lefter == 0 {
				out = append(out, r)
			}
		}
	}
	return out
}

// settleBlocks moves blocks apart: halfway between pushing all to the right and all to the left.
func settleBlocks(all []*block) {
	low, high := map[*block]float64{}, map[*block]float64{}
	for _, b := range all {
		low[b] = b.x
		for i, l := range b.left {
			low[b] = max(low[b], low[l]+b.apart[i])
		}
	}
	for _, b := range slices.Backward(all) {
		high[b] = b.x
		for i, r := range b.right {
			high[b] = min(high[b], high[r]-b.rightApart[i])
		}
	}
	for _, b := range all {
		b.x = (low[b] + high[b]) / 2
		b.tell()
	}
}

func (b *block) tell() {
	for i, v := range b.members {
		v.x = b.x + b.rel[i]
	}
}

// move brings a block to where its outer lines are straight, as far as its neighbours let it.
func (b *block) move() {
	x, weight := 0.0, 0.0
	for i, v := range b.members {
		at, w := v.wish(true, true)
		x, weight = x+(at-b.rel[i])*w, weight+w
	}
	x /= weight
	low, high := math.Inf(-1), math.Inf(1)
	for i, l := range b.left {
		low = max(low, l.x+b.apart[i])
	}
	for i, r := range b.right {
		high = min(high, r.x-b.rightApart[i])
	}
	b.x = max(min(x, high), low)
	b.tell()
}

// straighten moves ports a little where that makes a line straight.
func (s *sheet) straighten() {
	for _, k := range s.links {
		if k.a.layer == k.b.layer {
			continue
		}
		d := k.b.x + k.bx - k.a.x - k.ax
		if math.Abs(d) < 0.01 || math.Abs(d) > 3*nearly {
			continue
		}
		switch {
		case k.a.node != nil && k.a.free(k, k.ax+d):
			k.ax += d
		case k.b.node != nil && len(k.b.up) == 1 && k.b.free(nil, k.bx-d):
			k.bx -= d
		}
	}
}

// dodge moves a port where two lines would change places in a channel: whichever were drawn above,
// they would lie on one another.
func (s *sheet) dodge() {
	for _, l := range s.layers {
		var ks []*link
		for _, v := range l {
			for _, k := range v.down {
				for _, o := range ks {
					if k.lane != o.lane && k.faces(o) {
						_ = k.step() || o.step()
					}
				}
				ks = append(ks, k)
			}
		}
	}
}

// faces reports whether two links begin where the other one ends.
func (k *link) faces(o *link) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) < tooNear }
	a, b, c, d := k.a.x+k.ax, k.b.x+k.bx, o.a.x+o.ax, o.b.x+o.bx
	return near(a, d) && near(b, c) && !near(a, b)
}

// step moves an end of a link along its node, and reports whether there was room for it.
func (k *link) step() bool {
	for _, by := range []float64{2 * tooNear, -2 * tooNear} {
		switch {
		case k.a.node != nil && k.a.free(k, k.ax+by):
			k.ax += by
			return true
		case k.b.node != nil && len(k.b.up) == 1 && k.b.free(nil, k.bx+by):
			k.bx += by
			return true
		}
	}
	return false
}

// free reports whether k, or without k the only line from above, can be at x of a node's side.
func (v *vertex) free(k *link, x float64) bool {
	right := 0.0
	if k != nil {
		right = labelWidth(k.label)
	}
	if x < -v.w/2+insetPort || x+right > v.w/2-insetPort {
		return false
	}
	if k == nil {
		return !slices.ContainsFunc(v.side, func(o *link) bool { return !o.leaves && !o.beside })
	}
	clear := func(o *link) bool {
		return o == k || o.ax+labelWidth(o.label)+gapPort <= x || x+right+gapPort <= o.ax
	}
	for _, o := range v.down {
		if !clear(o) || (o != k && (o.ax < x) != (o.ax < k.ax)) {
			return false
		}
	}
	for _, o := range v.side {
		if o.leaves && !o.beside && (!clear(o) || (o.ax < x) != (o.ax < k.ax)) {
			return false
		}
	}
	return true
}
