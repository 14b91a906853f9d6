package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"sluice/daemon"
	"sluice/internal/words"
)

// Colours as the terminal has them.
const (
	plain  = words.Plain
	bold   = words.Bold
	dim    = words.Dim
	red    = words.Red
	green  = words.Green
	yellow = words.Yellow
	blue   = words.Blue
)

// colourOn says whether a stream gets colours: a terminal that knows them, unless the person wants none.
func (a *app) colourOn(w io.Writer) bool {
	if a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return false
	}
	_, ok := terminal(w)
	return ok
}

func paint(on bool, style, s string) string {
	if !on || style == plain || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func (a *app) paint(style, s string) string    { return paint(a.colour, style, s) }
func (a *app) paintErr(style, s string) string { return paint(a.colourOn(a.err), style, s) }

// mark is the sign and the colour of a state of a run, a step or a gate.
func mark(state string) (sign, style string) { return words.Mark(state) }

// clip cuts s to a width in terminal cells; 0 = not at all.
func clip(s string, width int) string {
	if width <= 0 || runewidth.StringWidth(s) <= width {
		return s
	}
	return runewidth.Truncate(s, width, "…")
}

// pad fills s with spaces up to a width in terminal cells.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-runewidth.StringWidth(s), 0))
}

// ago is a span of time as a person says it.
func ago(d time.Duration) string { return words.Ago(d) }

// plural is "1 run", "2 runs".
func plural(n int, one string) string { return words.Plural(n, one) }

// clean is foreign text on one line.
func clean(s string) string { return words.Clean(s) }

// table lays out rows in columns as wide as they need. A style goes with each cell; the last column is cut at the
// terminal's width.
type table struct {
	rows [][]cell
}

type cell struct{ text, style string }

func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

func (a *app) printTable(t *table) {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(c.text))
		}
	}
	most := a.width()
	for _, r := range t.rows {
		var b strings.Builder
		left := most
		for i, c := range r {
			text := c.text
			if i < len(r)-1 {
				text = pad(text, widths[i]) + "  "
			}
			if most > 0 {
				text = clip(text, max(left, 1))
				left -= runewidth.StringWidth(text)
			}
			b.WriteString(a.paint(c.style, text))
			if most > 0 && left <= 0 {
				break
			}
		}
		a.print("%s", strings.TrimRight(b.String(), " "))
	}
}

// clipPainted cuts a line that has colours in it; 0 = not at all.
func clipPainted(s string, width int) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	used := 0
	for i := 0; i < len(s); {
		if s[i] == '\x1b' {
			end := strings.IndexByte(s[i:], 'm')
			if end < 0 {
				break
			}
			b.WriteString(s[i : i+end+1])
			i += end + 1
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if used += runewidth.RuneWidth(r); used > width {
			return b.String() + "\x1b[0m"
		}
		b.WriteString(s[i : i+n])
		i += n
	}
	return b.String()
}

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// joinMost names a few of many.
func joinMost(names []string) string {
	const most = 8
	s := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		s += ", …"
	}
	return s
}

// stubWords is what is said of a run with --stub wherever its state is shown.
const stubWords = "stubbed: stand-ins play its agents, nothing in it is real work"

// stubMark is that in a word.
func stubMark(stubbed bool) string {
	if stubbed {
		return " (stubbed)"
	}
	return ""
}

// runState is a run's phase, or that it is paused.
func runState(r daemon.RunStatus) string {
	if r.Paused != "" && live(r) {
		return "paused"
	}
	return r.Phase
}
