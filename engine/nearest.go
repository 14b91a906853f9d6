package engine

import (
	"maps"
	"slices"
)

// nearest gives the known name within a third of its length in edits, "" where none is near.
func nearest(name string, known []string) string {
	best, dist := "", 1<<30
	for _, k := range known {
		if len(k) > 200 || len(name) > 200 {
			continue
		}
		if d := edits(name, k); d < dist {
			best, dist = k, d
		}
	}
	if dist > max(len(best)/3, 1) {
		return ""
	}
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := prev
			if a[i-1] != b[j-1] {
				cost++
			}
			prev = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// sortedKeys gives the map's keys in order, so that what is derived from a map is the same each time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
