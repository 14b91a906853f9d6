package graph

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// until returns the line as far as to where it meets one of those drawn, and a little further along
// with it, so that a rounded corner leaves no gap.
func until(pts []spot, drawn [][]spot) []spot {
	for i := 1; i < len(pts); i++ {
		a, b := pts[i-1], pts[i]
		at, met := 2.0, false
		for _, d := range drawn {
			for j := 1; j < len(d); j++ {
				if t, ok := meets(a, b, d[j-1], d[j]); ok && t < at {
					at, met = t, true
				}
			}
		}
		if !met || at > 1 {
			continue
		}
		out := append(slices.Clone(pts[:i]), spot{a.x + (b.x-a.x)*at, a.y + (b.y-a.y)*at})
		rest := append([]spot{out[len(out)-1]}, pts[i:]...)
		return append(out, along(rest, corner+1)...)
	}
	return pts
}

// meets returns where on the way from a to b, from 0 to 1, the first point of c to d is. All run at
// right angles.
func meets(a, b, c, d spot) (float64, bool) {
	const near = 0.6
	lo, hi := spot{min(c.x, d.x) - near, min(c.y, d.y) - near}, spot{max(c.x, d.x) + near, max(c.y, d.y) + near}
	if max(a.x, b.x) < lo.x || min(a.x, b.x) > hi.x || max(a.y, b.y) < lo.y || min(a.y, b.y) > hi.y {
		return 0, false
	}
	first := func(from, to, lo, hi float64) float64 {
		switch {
		case from < lo && to > from:
			return (min(lo+near, to) - from) / (to - from)
		case from > hi && to < from:
			return (from - max(hi-near, to)) / (from - to)
		}
		return 0
	}
	return max(first(a.x, b.x, lo.x, hi.x), first(a.y, b.y, lo.y, hi.y)), true
}

// along returns the points of a way's beginning of a length, without the first.
func along(pts []spot, length float64) (out []spot) {
	for i := 1; i < len(pts) && length > 0; i++ {
		a, b := pts[i-1], pts[i]
		d := math.Hypot(b.x-a.x, b.y-a.y)
		if d == 0 {
			continue
		}
		t := min(1, length/d)
		out = append(out, spot{a.x + (b.x-a.x)*t, a.y + (b.y-a.y)*t})
		length -= d
	}
	return out
}

const corner = 6.0

// rounded is the path of a line, with round corners.
func rounded(pts []spot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%s %s", px(pts[0].x), px(pts[0].y))
	for i := 1; i+1 < len(pts); i++ {
		p, q, r := pts[i-1], pts[i], pts[i+1]
		c := min(corner, math.Hypot(q.x-p.x, q.y-p.y)/2, math.Hypot(r.x-q.x, r.y-q.y)/2)
		fmt.Fprintf(&b, "L%s %sQ%s %s %s %s", px(q.x-c*sign(q.x-p.x)), px(q.y-c*sign(q.y-p.y)), px(q.x), px(q.y),
			px(q.x+c*sign(r.x-q.x)), px(q.y+c*sign(r.y-q.y)))
	}
	last := pts[len(pts)-1]
	fmt.Fprintf(&b, "L%s %s", px(last.x), px(last.y))
	return b.String()
}

func arrow(pts []spot) string {
	a, b := pts[len(pts)-2], pts[len(pts)-1]
	dx, dy := sign(b.x-a.x), sign(b.y-a.y)
	if dx != 0 {
		dy = 0
	}
	const long, half = 7, 3.5
	return fmt.Sprintf(`<path class="tip" d="M%s %sL%s %sL%s %sZ"/>`, px(b.x), px(b.y),
		px(b.x-long*dx-half*dy), px(b.y-long*dy-half*dx), px(b.x-long*dx+half*dy), px(b.y-long*dy+half*dx))
}

func sign(x float64) float64 {
	switch {
	case x > 0.05:
		return 1
	case x < -0.05:
		return -1
	}
	return 0
}
