package graph

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/specs"
)

func loaded(t *testing.T, src string) *engine.Spec {
	t.Helper()
	spec, faults := specs.Load("", []byte(src))
	if spec == nil {
		t.Fatal(faults)
	}
	return spec
}

func phase4(t *testing.T) *engine.Spec {
	t.Helper()
	src, err := os.ReadFile("../testdata/phase-4-search-index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return loaded(t, string(src))
}

// TestFragment: a page's drawing has no style of its own, ids and links for each node, what is known of
// the run, and nothing of a name or an address as markup.
func TestFragment(t *testing.T) {
	spec := phase4(t)
	spec.Step("X-1").Name = `<b a="1">` + strings.Repeat("long", 50)
	got := string(SVG(spec, someStates(), Options{
		Fragment: true, Prefix: "r1-", Link: func(id string) string {
			if engine.IsEnd(id) {
				return ""
			}
			return `/run?a&b="` + id
		},
		Notes: map[string]string{"X-2": "attempt 2 · 33m"},
		Taken: map[string]map[string]int{"XG-1-2": {"fail": 1}},
	}))
	for _, want := range []string{
		`<g id="r1-n-X-1" class="node step passed"><a href="/run?a&amp;b=&#34;X-1">`,
		`<g id="r1-n-XG-1-2" class="node gate asking">`, `<g id="r1-n-DONE" class="node end ahead"><title>DONE</title>`,
		`>running · attempt 2 · 33m</text>`, `>fail 1/2</text>`, `role="group"`, "longlong", "…</text>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, bad := range []string{"<style", "<b ", "paper"} {
		if strings.Contains(got, bad) {
			t.Errorf("there is %s", bad)
		}
	}
	for _, want := range []string{".sluice-graph .asking .box", "prefers-color-scheme: dark"} {
		if !strings.Contains(Style(), want) {
			t.Errorf("the style has no %s", want)
		}
	}
}

// TestSameInputSameDrawing: a drawing does not depend on chance.
func TestSameInputSameDrawing(t *testing.T) {
	for name, src := range goodSpecs(t) {
		spec, faults := specs.Load(name, src)
		if spec == nil {
			t.Fatal(faults)
		}
		first := string(SVG(spec, nil, Options{}))
		for range 5 {
			if string(SVG(spec, nil, Options{})) != first {
				t.Fatalf("%s: it is drawn in two ways", name)
			}
		}
	}
}

// TestLargeWorkflow: a drawing is bounded, and says how much it leaves out.
func TestLargeWorkflow(t *testing.T) {
	var b, gates strings.Builder
	b.WriteString("workflow: {id: w}\nsteps:\n")
	for i := range 150 {
		next := fmt.Sprintf("S%d", i+1)
		if i == 149 {
			next = "DONE"
		}
		fmt.Fprintf(&b, "  - {id: S%d, agent: {type: coder}, gate: G%d}\n", i, i)
		fmt.Fprintf(&gates, "  - {id: G%d, reviewer: {level: human}, on_pass: {next_step: %s}}\n", i, next)
	}
	b.WriteString("gates:\n" + gates.String())
	spec := loaded(t, b.String())
	if got := string(SVG(spec, nil, Options{})); strings.Count(got, `class="node `) != maxDrawn ||
		!strings.Contains(got, ">and 101 more</text>") {
		t.Errorf("%d nodes", strings.Count(got, `class="node `))
	}
	got := string(Strip(spec, nil, Options{}))
	if n := strings.Count(got, `class="node `); n != maxBullets || !strings.Contains(got, ">…<") {
		t.Errorf("the strip has %d bullets", n)
	}
}
