package engine

import (
	"maps"
	"slices"
)

// sortedKeys returns the map's keys in order, so that what is derived from a map is the same each time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
