package render

import (
	"fmt"
	"slices"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// endShown is how many steps, and how many gates, the end of a run names.
const endShown = 3

// endWidth is how many columns a line of them has without a terminal.
const endWidth = 160

// EndLines returns what an ended run has to say: the words of its last steps, who decided its last
// gates, and what it used.
func EndLines(c *console.Console, r daemon.RunStatus) (out []string) {
	width := 0
	var said, decided [][2]string
	for _, s := range r.Steps {
		if s.State == engine.Passed && s.Summary != "" {
			said = append(said, [2]string{s.ID, text.Line(s.Summary)})
		}
		for _, g := range s.Gates {
			kinds := []string{"reviewer", "window", "human", "exhausted"}
			if g.Implicit || g.Outcome == "" || !slices.Contains(kinds, g.ByKind) {
				continue
			}
			words := g.Outcome
			if w := map[string]string{engine.OutcomePass: "passed", engine.OutcomeFail: "failed"}[words]; w != "" {
				words = w
			}
			words += " by " + By(g.ByKind, g.By)
			if g.Round > 1 {
				words += fmt.Sprintf(", at its %s round", ordinal(g.Round))
			}
			decided = append(decided, [2]string{g.ID, words})
		}
	}
	said, decided = said[max(len(said)-endShown, 0):], decided[max(len(decided)-endShown, 0):]
	lines := append(said, decided...)
	if used := SpentShort(r.Usage, engine.Usage{}); used != "" {
		lines = append(lines, [2]string{"used", used})
	}
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	columns := c.Width()
	if columns == 0 {
		columns = endWidth
	}
	for _, l := range lines {
		words := console.Clip(l[1], max(columns-width-4, 1))
		out = append(out, fmt.Sprintf("  %s  %s", c.Paint(console.Dim, console.Pad(l[0], width)), words))
	}
	return out
}

// ordinal returns 1st, 2nd, 3rd, 4th …
func ordinal(n int) string {
	end := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return fmt.Sprint(n) + end
}
