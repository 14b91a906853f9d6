package graph

import (
	"cmp"
	"math"
	"slices"
)

// Measures of the drawing, in pixels.
const (
	gapNodes  = 28.0 // between nodes of a layer
	gapLane   = 16.0 // between a node and a lane
	gapLanes  = 12.0 // between lanes
	gapPort   = 14.0 // between lines at a node's upper or lower side
	gapBeside = 16.0 // between lines at its left or right side
	insetPort = 12.0 // of the outermost line from a node's corner
	gapTrack  = 10.0 // between lines across a channel
	rowLabel  = 16.0 // for the labels below a layer
	rowArrow  = 14.0 // for the arrows above a layer
	minRow    = 12.0 // of a channel
	labelPad  = 5.0  // between a line and its label
	margin    = 12.0
)

// port is where lines of a lane touch a node's upper or lower side.
type port struct {
	at   []*float64 // where its lines are, from the middle of the node
	key  float64    // the order from the left
	room float64    // to the next port at the right
	main bool
}

// ports gives each link its places at the nodes that it joins. Nodes grow to hold them.
func (s *sheet) ports() {
	for _, l := range s.layers {
		for _, v := range l {
			if v.node == nil {
				continue
			}
			v.w, v.h = v.node.w, v.node.h
			for _, k := range v.side {
				lo, hi := min(v.pos, k.b.pos), max(v.pos, k.b.pos)
				k.beside = !slices.ContainsFunc(l[lo+1:hi], func(w *vertex) bool { return w.node != nil })
			}
			s.spread(v, v.below(len(l)))
			s.spread(v, v.above(len(l)))
			v.sides()
		}
	}
}

// below lists the ports at a node's lower side.
func (v *vertex) below(n int) (out []*port) {
	for _, k := range v.down {
		out = append(out, &port{at: []*float64{&k.ax}, key: float64(k.b.pos), room: gapPort + labelWidth(k.label),
			main: straightOn(k.lane.kind)})
	}
	return append(out, v.rounds(true, n)...)
}

// above lists the ports at a node's upper side: neighbouring lines of a lane share one.
func (v *vertex) above(n int) (out []*port) {
	links := slices.Clone(v.up)
	slices.SortStableFunc(links, func(a, b *link) int { return cmp.Compare(a.a.pos, b.a.pos) })
	for i, k := range links {
		if i > 0 && links[i-1].lane == k.lane {
			p := out[len(out)-1]
			p.at = append(p.at, &k.bx)
			continue
		}
		out = append(out, &port{at: []*float64{&k.bx}, key: float64(k.a.pos), room: gapPort, main: straightOn(k.lane.kind)})
	}
	return append(out, v.rounds(false, n)...)
}

// rounds lists the ports of ways back that go round to their lanes: of those that leave, or that arrive.
func (v *vertex) rounds(leaves bool, n int) (out []*port) {
	for _, k := range v.side {
		if k.leaves == leaves && !k.beside {
			out = append(out, &port{at: []*float64{&k.ax}, key: around(v, k, n), room: gapPort + labelWidth(k.label)})
		}
	}
	return out
}

// around is the key of a port whose line goes round to its lane in the same layer: beyond all
// others, and the nearer, the further out.
func around(v *vertex, k *link, n int) float64 {
	far := float64(k.b.pos - v.pos)
	return math.Copysign(1000+float64(n), far) - far
}

func straightOn(k edgeKind) bool { return k == edgePass || k == edgeNeed }

// spread places ports from the left to the right, the main one in the middle if there is room.
func (s *sheet) spread(v *vertex, ports []*port) {
	if len(ports) == 0 {
		return
	}
	slices.SortStableFunc(ports, func(a, b *port) int { return cmp.Compare(a.key, b.key) })
	main, total := (len(ports)-1)/2, 0.0
	var mains []int
	for i, p := range ports {
		total += p.room
		if p.main {
			mains = append(mains, i)
		}
	}
	if len(mains) > 0 {
		main = mains[(len(mains)-1)/2]
	}
	total -= gapPort
	v.w = max(v.w, total+2*insetPort)
	x := 0.0
	for _, p := range ports[:main] {
		x -= p.room
	}
	half := v.w/2 - insetPort
	x = max(min(x, half-total), -half)
	for _, p := range ports {
		for _, at := range p.at {
			*at = x
		}
		x += p.room
	}
}

// sides places the ends of ways back at a node's left and right: what leaves above what arrives, so
// that a line up and a line from below do not cross; further out, lines go around those further in.
func (v *vertex) sides() {
	for _, sign := range []int{-1, 1} {
		var ends []*link
		for _, k := range v.side {
			if k.beside && (k.b.pos-v.pos)*sign > 0 {
				ends = append(ends, k)
			}
		}
		slices.SortStableFunc(ends, func(a, b *link) int {
			if a.leaves != b.leaves {
				return map[bool]int{true: -1, false: 1}[a.leaves]
			}
			far := cmp.Compare((a.b.pos-v.pos)*sign, (b.b.pos-v.pos)*sign)
			if a.leaves {
				return far
			}
			return -far
		})
		v.h = max(v.h, gapBeside*float64(len(ends)+1))
		for i, k := range ends {
			k.sideY = gapBeside * (float64(i) - float64(len(ends)-1)/2)
			k.ax = float64(sign)
		}
	}
}
