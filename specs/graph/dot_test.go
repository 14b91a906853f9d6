package graph

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// plainDot writes what a sheet shows for dot: nodes of the same sizes, the same lines.
func plainDot(s *sheet) string {
	var b strings.Builder
	b.WriteString("digraph {\nnode [shape=box, fixedsize=true]; edge [fontsize=10];\n")
	num := map[string]int{}
	for i, v := range s.nodes {
		num[v.node.id] = i
		fmt.Fprintf(&b, "n%d [width=%.2f, height=%.2f];\n", i, v.w/72, v.h/72)
	}
	for _, l := range s.lines {
		fmt.Fprintf(&b, "n%d -> n%d [label=%s];\n", num[l.from], num[l.to], dotText(l.label))
	}
	return b.String() + "}\n"
}

// curve is an edge as dot draws it, in short straight pieces.
type curve struct {
	from, to string
	pts      []spot
}

// readPlain reads what dot -Tplain prints of several graphs.
func readPlain(t *testing.T, out string) (graphs [][]curve) {
	num := func(s string) float64 {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x * 72
	}
	var one []curve
	for l := range strings.SplitSeq(out, "\n") {
		f := strings.Fields(l)
		switch {
		case len(f) == 0:
		case f[0] == "stop":
			graphs, one = append(graphs, one), nil
		case f[0] == "edge":
			n, err := strconv.Atoi(f[3])
			if err != nil {
				t.Fatal(err)
			}
			var p []spot
			for i := range n {
				p = append(p, spot{num(f[4+2*i]), num(f[5+2*i])})
			}
			c := curve{from: f[1], to: f[2], pts: []spot{p[0]}}
			for i := 0; i+3 < len(p); i += 3 {
				for k := 1; k <= 16; k++ {
					c.pts = append(c.pts, bezier(p[i:i+4], float64(k)/16))
				}
			}
			one = append(one, c)
		}
	}
	return graphs
}

func bezier(p []spot, t float64) spot {
	u := 1 - t
	a, b, c, d := u*u*u, 3*u*u*t, 3*u*t*t, t*t*t
	return spot{a*p[0].x + b*p[1].x + c*p[2].x + d*p[3].x, a*p[0].y + b*p[1].y + c*p[2].y + d*p[3].y}
}

// cross reports whether two pieces cross, not only touch.
func cross(a, b, c, d spot) bool {
	turn := func(p, q, r spot) float64 { return (q.x-p.x)*(r.y-p.y) - (q.y-p.y)*(r.x-p.x) }
	return turn(a, b, c)*turn(a, b, d) < 0 && turn(c, d, a)*turn(c, d, b) < 0
}

func curveCrossings(cs []curve) (n int) {
	for i, c := range cs {
		for _, o := range cs[i+1:] {
			for j := 1; j < len(c.pts); j++ {
				for k := 1; k < len(o.pts); k++ {
					if cross(c.pts[j-1], c.pts[j], o.pts[k-1], o.pts[k]) {
						n++
					}
				}
			}
		}
	}
	return n
}

// dotCrossings counts the crossings in dot's drawings of the sheets' nodes and lines.
func dotCrossings(t *testing.T, sheets []*sheet) (out []int) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("needs: dot (apt-get install graphviz)")
	}
	var in strings.Builder
	for _, s := range sheets {
		in.WriteString(plainDot(s))
	}
	cmd := exec.Command(dot, "-Tplain")
	cmd.Stdin = strings.NewReader(in.String())
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range readPlain(t, string(printed)) {
		out = append(out, curveCrossings(g))
	}
	if len(out) != len(sheets) {
		t.Fatalf("dot drew %d of %d", len(out), len(sheets))
	}
	return out
}
