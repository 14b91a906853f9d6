//go:build linux

package test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// TestScreensInEachTerminal: at 80 by 24 and 140 by 40, on a dark and on a light background, the screens of all runs, of
// one run and of a gate show what a decision needs and every key that they offer, whole. On a light background no text has
// a colour that cannot be read there.
func TestScreensInEachTerminal(t *testing.T) {
	t.Parallel()
	w, sluice := gated(t)
	defer w.serve(sluice)()
	if code, out := w.binary(sluice, "start", "w", "--stub"); code != 0 { // its page has a yellow note
		t.Fatal(out)
	}
	w.until(`G +review`, "inbox")
	screens := []struct{ command, top, keys, leave string }{
		{"top", `^sluice \? 1 for you`, `^p pass · f fail · c comment · ⏎ show(?s:.*)q quit`, "q"},
		{"run w-1", `^▸ w-1 running · 0/1 steps`, `^p pass · f fail · c comment · ⏎ show(?s:.*)q leave \(it goes on\)`, "q"},
		{"show G", `^G review of w-1, round 1: asks you`, `^p pass · f fail · c comment · t tail(?s:.*)esc leave`, "Escape"},
	}
	for _, size := range [][2]int{{80, 24}, {140, 40}} {
		for _, background := range []string{"black", "white"} {
			t.Run(fmt.Sprintf("%dx%d %s", size[0], size[1], background), func(t *testing.T) {
				line := "read x; unset NO_COLOR"
				for _, s := range screens {
					line += "; " + sluice + " " + s.command
				}
				win := w.inTerminal(size[0], size[1], line)
				win.tmux("set-option", "-g", "window-style", "bg="+background)
				win.types("Enter")
				for _, s := range screens {
					win.sees(s.keys)
					plain := win.sees(s.top)
					painted := win.fits(background == "white")
					for l := range strings.SplitSeq(plain, "\n") {
						if strings.Contains(l, "p pass") && strings.HasSuffix(l, "…") {
							t.Errorf("%s: the keys are cut:\n%s", s.command, plain)
						}
					}
					switch graph := `│ \[A\]`; {
					case s.command != "run w-1":
					case size[0] >= 120:
						win.sees(graph) // it comes after the rows
					case regexp.MustCompile(`(?m)` + graph).MatchString(plain):
						t.Errorf("the graph is drawn:\n%s", plain)
					}
					if ansi.Strip(painted) == painted {
						t.Errorf("%s has no colours:\n%s", s.command, plain)
					}
					win.types(s.leave)
				}
				win.sees(`^rc=0`)
			})
		}
	}
}

// fits waits until the colours fit the background, which the terminal tells when it is asked, and returns the screen.
func (win *terminalWindow) fits(light bool) (painted string) {
	win.t.Helper()
	faint := regexp.MustCompile(`\x1b\[(?:[0-9]+;)*3[36]m`) // yellow and cyan
	eventually(win.t, "the colours fit the background", func() bool {
		painted = win.tmux("capture-pane", "-e", "-p")
		return faint.MatchString(painted) != light
	})
	return painted
}
