package engine

import (
	"maps"
	"slices"
)

// sortedKeys returns the map's keys in order, so that results are deterministic.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
