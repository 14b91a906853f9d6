package text

import (
	"strings"
	"unicode/utf8"
)

const (
	maxNear      = 200  // bytes of a name that is compared
	maxKnown     = 1000 // known names that are looked at
	nearPerRunes = 3    // one typing error for so many characters,
	mostErrors   = 3    // and no more than this
)

// Nearest returns the known name that name was likely meant to be, "" where none is near. Near is at most one
// character wrong, missing, added or swapped for each three of the shorter name, three in all; one is allowed where
// the longer has three. A name that differs only in case is nearest of all; of several alike the first counts.
func Nearest(name string, known []string) string {
	if name == "" || len(name) > maxNear || !utf8.ValidString(name) {
		return ""
	}
	best, nearest := mostErrors+1, ""
	for _, k := range known[:min(len(known), maxKnown)] {
		if len(k) > maxNear || k == "" {
			continue
		}
		if strings.EqualFold(k, name) {
			return k
		}
		x, y := utf8.RuneCountInString(name), utf8.RuneCountInString(k)
		if max(x, y) < nearPerRunes {
			continue
		}
		d := distance(strings.ToLower(name), strings.ToLower(k), best)
		if d < best && d <= max(1, min(x, y)/nearPerRunes) {
			best, nearest = d, k
		}
	}
	return nearest
}

// distance returns how many runes have to be inserted, removed, changed or swapped with their neighbour to turn a
// into b, at most limit. Its cost is the product of the lengths.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) >= limit || len(y)-len(x) >= limit {
		return limit
	}
	before, above, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return min(above[len(y)], limit)
}

// Meant is the known name that was likely meant: the one with few letters wrong, else the only one of which one
// is the beginning of the other.
func Meant(name string, known []string) string {
	if near := Nearest(name, known); near != "" || name == "" {
		return near
	}
	found := ""
	for _, k := range known {
		if !strings.HasPrefix(k, name) && !strings.HasPrefix(name, k) {
			continue
		}
		if found != "" {
			return ""
		}
		found = k
	}
	return found
}
