package specs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// TestBounds: too much is refused, soon and with a reason.
func TestBounds(t *testing.T) {
	conform.Rule(t, "1-language bounds", "128 KiB, 10,000 nodes")
	conform.Rule(t, "style 5", "what a spec may have")
	flat := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d: 1\n", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ src, want string }{
		"bytes":           {"# " + strings.Repeat("x", MaxBytes), "the file has 131074 bytes"},
		"nodes":           {flat(6000), "more than 10000 YAML nodes"},
		"alias bomb":      {bomb(), "more than 10000 YAML nodes"},
		"recursive alias": {"a: &a [*a]", "nested deeper"},
		"depth":           {"a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper"},
		"not UTF-8":       {"workflow: {id: w\xff}", "not UTF-8"},
		"steps":           {"workflow: {id: w}\nsteps:\n" + strings.Repeat("- {id: a, run: x}\n", MaxSteps+1), "more than 200 steps"},
		"control bytes":   {"workflow: {id: \x01}", "not YAML"},
	} {
		began := time.Now()
		spec, faults := Load("", []byte(c.src))
		if spec != nil || !strings.Contains(fmt.Sprint(faults), c.want) {
			t.Errorf("%s: %.300s", name, fmt.Sprint(faults))
		}
		if took := time.Since(began); took > 20*time.Second { // some milliseconds; quadratic growth would take minutes
			t.Errorf("%s took %v", name, took)
		}
	}
}

// TestLargestSpecs: the largest valid specs load, or fail, in time.
func TestLargestSpecs(t *testing.T) {
	var chain, wide, wrong strings.Builder
	chain.WriteString("workflow: {id: w}\nsteps:\n")
	wide.WriteString("workflow: {id: w}\nsteps:\n")
	wrong.WriteString("workflow: {id: w}\nsteps:\n")
	const n = MaxSteps
	for i := range n {
		next := fmt.Sprintf("s%d", i+1)
		if i == n-1 {
			next = "DONE"
		}
		fmt.Fprintf(&chain, "- {id: s%d, run: x, next_step: %s}\n", i, next)
		fmt.Fprintf(&wide, "- {id: s%d, run: x, gate: g%d}\n", i, i)
		fmt.Fprintf(&wrong, "- {id: s%d, run: x, next_stpe: DONE, needs: [t%d, u%d]}\n", i, i, i)
	}
	wide.WriteString("gates:\n")
	for i := range n {
		fmt.Fprintf(&wide, "- {id: g%d, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: s%d}}\n", i, min(i+1, n-1))
	}
	for name, src := range map[string]string{"chain": chain.String(), "elsewhere": wide.String(), "wrong": wrong.String()} {
		began := time.Now()
		spec, faults := Load("", []byte(src))
		if took := time.Since(began); took > 20*time.Second { // some milliseconds; quadratic growth would take minutes
			t.Errorf("%s took %v", name, took)
		}
		if spec == nil && len(faults) == 0 {
			t.Errorf("%s: neither", name)
		}
	}
}
