package graph

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/specs"
)

// longSpec is a workflow of 99 steps and 99 gates, with a loop at each and some parallel ways.
func longSpec(t *testing.T) *engine.Spec {
	t.Helper()
	const n = 99
	var steps, gates strings.Builder
	for i := range n {
		next := fmt.Sprintf("S%d", i+1)
		switch {
		case i == n-1:
			next = "DONE"
		case i%7 == 0 && i+4 < n:
			next = fmt.Sprintf("[S%d, S%d]", i+1, i+4)
		}
		fmt.Fprintf(&steps, "  - {id: S%d, agent: {type: coder}, gate: G%d}\n", i, i)
		fmt.Fprintf(&gates, "  - {id: G%d, reviewer: {level: auto, agent_type: judge}, on_pass: {next_step: %s}, "+
			"on_fail: {next_step: S%d}, max_retries: 3, on_exhausted: FAILED}\n", i, next, i)
	}
	return loaded(t, "workflow: {id: w}\nsteps:\n"+steps.String()+"gates:\n"+gates.String())
}

func searched(spec *engine.Spec) (*sheet, *search) {
	p := draw(spec, nil, Options{})
	nodes := p.drawnNodes()
	s := connected(nodes, p.drawnEdges(nodes), manner{})
	return s, s.order()
}

// TestWork: the search for an order ends soon, and with the cost that it has counted.
func TestWork(t *testing.T) {
	s, f := searched(longSpec(t))
	if len(s.nodes) != maxDrawn || f.cost >= costCross || f.work > 30_000 {
		t.Errorf("%d nodes: cost %d after %d comparisons", len(s.nodes), f.cost, f.work)
	}
	tried := 0
	for seed := uint64(1000); tried < 3; seed++ {
		spec, _ := specs.Load("", []byte(randomSpec(rand.New(rand.NewPCG(seed, 17)), 30)))
		if spec == nil {
			continue
		}
		tried++
		_, f := searched(spec)
		if f.work < maxWork/10 || f.work > maxWork+len(f.all)*maxTurned || f.cost != f.total() {
			t.Errorf("seed %d: cost %d, counted as %d, after %d comparisons of %d columns", seed, f.total(), f.cost,
				f.work, len(f.all))
		}
	}
}

// TestArrows: where lines of a lane arrive at two places of a node, both have an arrow.
func TestArrows(t *testing.T) {
	type arrival struct {
		lane *lane
		at   spot
	}
	parted := 0
	for seed := uint64(0); parted == 0 && seed < 1000; seed++ {
		spec, _ := specs.Load("", []byte(randomOf(seed)))
		if spec == nil {
			continue
		}
		lanes, ends := map[*lane]bool{}, map[arrival]bool{}
		for _, l := range sheetOf(spec).lines {
			lanes[l.lane], ends[arrival{l.lane, l.pts[len(l.pts)-1]}] = true, true
		}
		if len(ends) == len(lanes) {
			continue
		}
		parted++
		if got := strings.Count(string(SVG(spec, nil, Options{})), `class="tip"`); got != len(ends) {
			t.Errorf("seed %d: %d arrows at %d places", seed, got, len(ends))
		}
	}
	if parted == 0 {
		t.Error("no lane arrives at two places")
	}
}
