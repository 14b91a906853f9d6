package console

import (
	"strings"
	"testing"
)

// TestQRLines: in colours and without them a dark module is the other's opposite, and the margin is
// light.
func TestQRLines(t *testing.T) {
	corner := func(x, y int) bool { return x == 0 && (y == 0 || y == 1) || x == 1 && y == 0 }
	blank := strings.Repeat(" ", 10)
	for ink, row := range map[bool]string{true: "    █▀    ", false: "████ ▄████"} {
		lines := qrLines(2, corner, ink)
		edge := blank
		if !ink {
			edge = strings.ReplaceAll(blank, " ", "█")
		}
		want := []string{edge, edge, row, edge, edge}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("ink %v:\n%s\nwant\n%s", ink, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestPrintQR: a stream that is no terminal gets none.
func TestPrintQR(t *testing.T) {
	var out strings.Builder
	if c := New(nil, nil, &out, &out); c.PrintQR("https://sluice.example.org") || out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}
