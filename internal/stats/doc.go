// Package stats counts what a journal says: how long work and people took, how gates decided, what
// agents used, and which gates earn their cost. Counter reads the facts in order, Stats is the
// result, SVG draws it. It reads nothing itself.
package stats
