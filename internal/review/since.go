package review

import "sluice/internal/findings"

// What became of the place of a finding.
const (
	Changed   = "changed since"
	Unchanged = "unchanged"
)

// near is how many lines around a finding count as its place.
const near = 3

// Since returns what became of the place of a finding, by the patch from the tree that was judged to
// a later one, best without lines around its changes; "" if the finding names no file.
func Since(f findings.Finding, patch []Line) string {
	if f.File == "" {
		return ""
	}
	for _, l := range patch {
		if findings.File(l.File) != f.File {
			continue
		}
		switch {
		case f.Line == 0, l.Kind == '-' && abs(l.Old-f.Line) <= near:
			return Changed
		case l.Kind == '+' && abs(l.Old-f.Line) <= near: // beside the old line that it follows
			return Changed
		}
	}
	return Unchanged
}

func abs(n int) int { return max(n, -n) }
