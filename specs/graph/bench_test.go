package graph

import (
	"cmp"
	"slices"
	"testing"

	"sluice/engine"
	"sluice/specs"
)

// BenchmarkSVG draws the largest of the workflows that we ship.
func BenchmarkSVG(b *testing.B) {
	var all []*engine.Spec
	for file, src := range goodSpecs(b) {
		spec, faults := specs.Load(file, src)
		if spec == nil {
			b.Fatal(faults)
		}
		all = append(all, spec)
	}
	largest := slices.MaxFunc(all, func(a, b *engine.Spec) int {
		return cmp.Or(len(draw(a, nil, Options{}).edges)-len(draw(b, nil, Options{}).edges), cmp.Compare(a.ID, b.ID))
	})
	for b.Loop() {
		SVG(largest, nil, Options{})
	}
}
