package graph

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/specs"
	"sluice/tools/conform"
)

// sheetOf lays a workflow out as SVG does.
func sheetOf(spec *engine.Spec) *sheet {
	p := draw(spec, nil, Options{})
	nodes := p.drawnNodes()
	return lay(nodes, p.drawnEdges(nodes))
}

// randomSpec writes a workflow of n steps with parallel ways, joins, loops and routes in all directions. Not
// each is a right one.
func randomSpec(g *rand.Rand, n int) string {
	step := func() string { return fmt.Sprintf("S%d", g.IntN(n)) }
	some := func(ends ...string) string {
		if k := g.IntN(len(ends) + 3); k < len(ends) {
			return ends[k]
		}
		return step()
	}
	next := func(i int) string {
		switch {
		case i == n-1:
			return "DONE"
		case g.IntN(4) == 0 && i+2 < n:
			return fmt.Sprintf("[S%d, S%d]", i+1, i+2+g.IntN(n-i-2))
		case g.IntN(8) == 0:
			return some("DONE")
		}
		return fmt.Sprintf("S%d", i+1)
	}
	var steps, gates strings.Builder
	for i := range n {
		fmt.Fprintf(&steps, "  - id: S%d\n    agent: {type: coder}\n", i)
		if i > 2 && g.IntN(7) == 0 {
			fmt.Fprintf(&steps, "    needs: [S%d]\n", g.IntN(i))
		}
		if g.IntN(3) == 0 {
			fmt.Fprintf(&steps, "    next_step: %s\n", next(i))
			continue
		}
		fmt.Fprintf(&steps, "    gate: G%d\n", i)
		id := fmt.Sprintf("G%d", i)
		if g.IntN(5) == 0 {
			fmt.Fprintf(&gates, "  - id: %s\n    reviewer: {level: human}\n    on_pass: {next_gate: %sb}\n", id, id)
			id += "b"
		}
		fmt.Fprintf(&gates, "  - id: %s\n    reviewer: {level: auto, agent_type: judge}\n    on_pass: {next_step: %s}\n"+
			"    on_fail: {next_step: %s}\n    max_retries: 3\n    on_exhausted: %s\n", id, next(i),
			[]string{fmt.Sprintf("S%d", i), fmt.Sprintf("S%d", g.IntN(i+1)), "FAILED"}[g.IntN(3)],
			some("FAILED", "FAILED", "FAILED", "human", "human", "ABORTED"))
		if g.IntN(4) == 0 {
			fmt.Fprintf(&gates, "    verdict: {pass: score > 7, again: score > 4, other: score > 2, reject: true}\n"+
				"    routes: {again: %s, other: %s}\n", some("FAILED"), some("DONE", "human"))
		}
	}
	return "workflow: {id: w}\nsteps:\n" + steps.String() + "gates:\n" + gates.String()
}

// randomOf returns a small one of these workflows.
func randomOf(seed uint64) string {
	g := rand.New(rand.NewPCG(seed, 16))
	return randomSpec(g, 2+g.IntN(9))
}

// drawings are the workflows that we ship, by their names, and a thousand at random.
func drawings(t testing.TB) map[string]*engine.Spec {
	out := map[string]*engine.Spec{}
	for file, src := range goodSpecs(t) {
		spec, faults := specs.Load(file, src)
		if spec == nil {
			t.Fatal(faults)
		}
		out[filepath.Base(file)] = spec
	}
	count := 1000
	if testing.Short() {
		count = 100
	}
	for seed := uint64(0); count > 0; seed++ {
		if seed > 20_000 {
			t.Fatalf("too few random workflows are right: %d are missing", count)
		}
		if spec, _ := specs.Load("", []byte(randomOf(seed))); spec != nil {
			out[fmt.Sprintf("seed %d", seed)] = spec
			count--
		}
	}
	return out
}

func (b box) hits(o box) bool {
	return b.x < o.x+o.w && o.x < b.x+b.w && b.y < o.y+o.h && o.y < b.y+b.h
}

func (b box) grown(by float64) box { return box{b.x - by, b.y - by, b.w + 2*by, b.h + 2*by} }

func boxOf(a, b spot) box {
	return box{min(a.x, b.x), min(a.y, b.y), math.Abs(a.x - b.x), math.Abs(a.y - b.y)}
}

func (v *vertex) box() box { return box{v.x - v.w/2, v.y, v.w, v.h} }

// wrongs lists what a drawing must not have.
func wrongs(s *sheet) (out []string) {
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for i, v := range s.nodes {
		for _, o := range s.nodes[i+1:] {
			if v.box().grown(4).hits(o.box().grown(4)) {
				wrong("%s overlaps %s", v.node.id, o.node.id)
			}
		}
	}
	for i, l := range s.lines {
		name := l.from + "→" + l.to
		for j := 1; j < len(l.pts); j++ {
			a, b := l.pts[j-1], l.pts[j]
			if math.Abs(a.x-b.x) > 0.6 && math.Abs(a.y-b.y) > 0.6 {
				wrong("%s runs aslant", name)
			}
			for _, v := range s.nodes {
				in := 3.0
				if j == 1 && v.node.id == l.from || j == len(l.pts)-1 && v.node.id == l.to {
					in = -v.node.inset(1, v.h) - 0.6
				} else if v.node.id == l.from || v.node.id == l.to {
					in = -0.6
				}
				if v.box().grown(in).hits(boxOf(a, b)) {
					wrong("%s passes through %s", name, v.node.id)
				}
			}
		}
		if l.label != "" {
			wrongLabel(s, i, wrong)
		}
		for _, o := range s.lines[i+1:] {
			if (l.kind != o.kind || l.to != o.to) && shared(l, o) > 0.5 {
				wrong("%s runs along %s→%s for %.0f", name, o.from, o.to, shared(l, o))
			}
		}
	}
	return out
}

func wrongLabel(s *sheet, i int, wrong func(string, ...any)) {
	l := s.lines[i]
	b := l.labelBox()
	name := l.from + "→" + l.to
	for _, v := range s.nodes {
		if v.box().hits(b) {
			wrong("the label of %s is on %s", name, v.node.id)
		}
	}
	for k, o := range s.lines {
		for j := 1; j < len(o.pts); j++ {
			if b.hits(boxOf(o.pts[j-1], o.pts[j])) {
				wrong("the label of %s is on the line %s→%s", name, o.from, o.to)
			}
		}
		if k != i && o.label != "" && o.labelBox().hits(b) {
			wrong("the label of %s is on the label of %s→%s", name, o.from, o.to)
		}
	}
}

// shared is how far two lines run along one another.
func shared(l, o *line) (most float64) {
	for i := 1; i < len(l.pts); i++ {
		for j := 1; j < len(o.pts); j++ {
			a, b := boxOf(l.pts[i-1], l.pts[i]), boxOf(o.pts[j-1], o.pts[j])
			both := box{max(a.x, b.x), max(a.y, b.y), min(a.x+a.w, b.x+b.w), min(a.y+a.h, b.y+b.h)}
			dx, dy := both.w-both.x, both.h-both.y
			if (a.w > a.h) != (b.w > b.h) || dx < -2 || dy < -2 {
				continue
			}
			most = max(most, dx, dy)
		}
	}
	return most
}

// crossings counts where lines of different lanes cross.
func (s *sheet) crossings() int {
	type place struct {
		a, b *lane
		x, y int
	}
	seen := map[place]bool{}
	for i, l := range s.lines {
		for _, o := range s.lines[i+1:] {
			if l.lane == o.lane {
				continue
			}
			for j := 1; j < len(l.pts); j++ {
				for k := 1; k < len(o.pts); k++ {
					if x, y, ok := crossing(l.pts[j-1], l.pts[j], o.pts[k-1], o.pts[k]); ok {
						seen[place{l.lane, o.lane, int(math.Round(x / 3)), int(math.Round(y / 3))}] = true
						delete(seen, place{o.lane, l.lane, int(math.Round(x / 3)), int(math.Round(y / 3))})
					}
				}
			}
		}
	}
	return len(seen)
}

// crossing returns where a line from a to b crosses one from c to d at a right angle.
func crossing(a, b, c, d spot) (x, y float64, ok bool) {
	if math.Abs(a.y-b.y) > math.Abs(a.x-b.x) {
		a, b, c, d = c, d, a, b
	}
	if math.Abs(a.y-b.y) > 0.6 || math.Abs(c.x-d.x) > 0.6 {
		return 0, 0, false
	}
	x, y = c.x, a.y
	return x, y, min(a.x, b.x)+1 < x && x < max(a.x, b.x)-1 && min(c.y, d.y)+1 < y && y < max(c.y, d.y)-1
}

// TestDrawings: no line passes through a node or along a line of another meaning, no node overlaps
// another, no label is on a line or a node. Against dot's drawings of the same nodes and lines, none
// has more than two crossings more, and all together have fewer.
func TestDrawings(t *testing.T) {
	conform.Rule(t, "11-page graph", "no label on a line or node")
	conform.Rule(t, "11-page bars", "at most 2 crossings more than dot in any one")
	all := drawings(t)
	names := slices.Sorted(maps.Keys(all))
	sheets := make([]*sheet, len(names))
	for i, name := range names {
		sheets[i] = sheetOf(all[name])
	}
	t.Run("clear", func(t *testing.T) {
		for i, s := range sheets {
			if w := wrongs(s); len(w) > 0 {
				t.Errorf("%s: %s", names[i], strings.Join(w, "; "))
			}
		}
	})
	t.Run("crossings", func(t *testing.T) {
		mine, theirs, most := 0, 0, 0
		for i, c := range dotCrossings(t, sheets) {
			n := sheets[i].crossings()
			mine, theirs, most = mine+n, theirs+c, max(most, n-c)
			if n > c+2 {
				t.Errorf("%s: %d crossings, dot %d", names[i], n, c)
			}
		}
		t.Logf("%d crossings in %d drawings, dot %d; at most %d more in one", mine, len(names), theirs, most)
		if mine > theirs {
			t.Errorf("%d crossings, dot %d", mine, theirs)
		}
	})
}
