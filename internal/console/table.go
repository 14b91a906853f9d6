package console

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Clip cuts s to a width in terminal cells; 0 = not at all.
func Clip(s string, width int) string {
	if width <= 0 || runewidth.StringWidth(s) <= width {
		return s
	}
	return runewidth.Truncate(s, width, "…")
}

// Cells is how many cells of a terminal plain text takes.
func Cells(s string) int { return runewidth.StringWidth(s) }

// Pad fills s with spaces up to a width in terminal cells.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-runewidth.StringWidth(s), 0))
}

// Table has rows whose columns are as wide as they need. A style goes with each cell; the last column is cut at the
// terminal's width.
type Table struct {
	rows [][]Cell
}

// Cell is a text and its style.
type Cell struct{ text, style string }

// Styled is a cell of a table.
func Styled(text, style string) Cell { return Cell{text, style} }

// Row adds a row.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

// PrintTable writes the table to Out, no wider than the terminal.
func (c *Console) PrintTable(t *Table) {
	var widths []int
	for _, r := range t.rows {
		for i, x := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(x.text))
		}
	}
	most := c.Width()
	for _, r := range t.rows {
		var b strings.Builder
		left := most
		for i, x := range r {
			text := x.text
			if i < len(r)-1 {
				text = Pad(text, widths[i]) + "  "
			}
			if most > 0 {
				text = Clip(text, max(left, 1))
				left -= runewidth.StringWidth(text)
			}
			b.WriteString(c.Paint(x.style, text))
			if most > 0 && left <= 0 {
				break
			}
		}
		c.Print("%s", strings.TrimRight(b.String(), " "))
	}
}

// ClipPainted cuts a line that has colours in it; 0 = not at all.
func ClipPainted(s string, width int) string {
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
