package console

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"sluice/internal/text"
)

// Clip cuts s to a width in terminal cells; 0 = not at all.
func Clip(s string, width int) string { return cut(s, width, "…") }

// ClipPainted is Clip for a line that has colours in it, without a mark at its end.
func ClipPainted(s string, width int) string { return cut(s, width, "") }

// ClipMiddle is Clip that keeps the end too: the ids of two runs may differ only there.
func ClipMiddle(s string, width int) string {
	if width <= 0 || Width(s) <= width {
		return s
	}
	end := ansi.TruncateLeft(s, Width(s)-(width-1)/2, "")
	return ansi.Truncate(s, width-1-Width(end), "") + "…" + end
}

func cut(s string, width int, mark string) string {
	if width <= 0 {
		return s
	}
	return ansi.Truncate(s, width, mark)
}

// Width returns how many cells of a terminal s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		if !text.IsPlain(r) {
			return ansi.StringWidth(s)
		}
		n++
	}
	return n
}

// Pad fills s with spaces up to a width in terminal cells.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-Width(s), 0))
}

// Fit says how a column takes part in fitting a table to the terminal.
type Fit int

// How columns fit. Where there is no terminal, every cell is whole and each row is one line.
const (
	Keep    Fit = iota // as wide as its cells, else cut in their middle
	Cut                // cut at what the other columns leave
	Wrapped            // wrapped within what the other columns leave
	Below              // on lines of its own below the row, unless the row has room for it
)

// Column is a column of a table.
type Column struct {
	Fit   Fit
	Least int // cells
	Most  int // cells of a column that is kept, in a terminal; 0 = no bound
}

// Limits of a table in a terminal.
const (
	columnGap  = 2
	flexLeast  = 20 // a column that is cut or wrapped goes below the row where it has less
	keptLeast  = 6  // of a column that is kept, before the row is cut at the terminal's width
	belowLeast = 30 // with less room below a row, its indentation is small
	belowFirst = 4  // the indentation of the first line below a row
	cellMost   = 1 << 16
	padMost    = 40 // without a terminal, a longer cell that would be cut, wrapped or put below pads no other row
)

// Table has rows whose columns are as wide as they need, and which are no wider than the terminal. A column that is not
// described is kept.
type Table struct {
	Columns []Column
	Indent  int
	rows    [][]Cell
}

// Cell is a text of parts that have a style each.
type Cell []part

type part struct{ text, style string }

// Styled is a cell of a table. It is cleaned; spaces around it stay.
func Styled(s, style string) Cell {
	right := strings.TrimLeft(s, " ")
	bare := strings.TrimRight(right, " ")
	return Cell{{s[:len(s)-len(right)] + text.Clean(bare, cellMost) + right[len(bare):], style}}
}

// Joined is a cell of several cells, which are not separated.
func Joined(cells ...Cell) Cell { return slices.Concat(cells...) }

func (x Cell) bare() string {
	if len(x) == 1 {
		return x[0].text
	}
	var b strings.Builder
	for _, p := range x {
		b.WriteString(p.text)
	}
	return b.String()
}

// Width is how many cells of a terminal the text takes.
func (x Cell) Width() int { return Width(x.bare()) }

func (x Cell) painted(c *Console) string {
	var b strings.Builder
	for _, p := range x {
		b.WriteString(c.Paint(p.style, p.text))
	}
	return b.String()
}

// lines returns the cell at a width: cut, or wrapped.
func (x Cell) lines(c *Console, width int, fit Fit) []string {
	switch {
	case x.Width() <= width:
		return []string{x.painted(c)}
	case fit == Keep:
		return []string{ClipMiddle(x.painted(c), width)}
	case fit == Cut:
		return []string{Clip(x.painted(c), width)}
	}
	all := x.bare()
	lines, at := Wrap(all, width), 0
	for i, l := range lines {
		from := at + strings.Index(all[at:], l)
		at = from + len(l)
		lines[i] = x.between(from, at).painted(c)
	}
	return lines
}

// between returns a part of the cell, in its styles; from and to are bytes of its text.
func (x Cell) between(from, to int) (out Cell) {
	for _, p := range x {
		a, b := min(max(from, 0), len(p.text)), min(max(to, 0), len(p.text))
		out = append(out, part{p.text[a:b], p.style})
		from, to = from-len(p.text), to-len(p.text)
	}
	return out
}

// Row adds a row.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

// PrintTable writes the table to Out, no wider than the terminal.
func (c *Console) PrintTable(t *Table) {
	for _, lines := range c.TableRows(t, c.Width()) {
		c.PrintLines(lines)
	}
}

// WrappedLines returns a text in lines of at most width, indented; 0 = on one line.
func (c *Console) WrappedLines(width, indent int, x Cell) []string {
	t := Table{Indent: indent, Columns: []Column{{Fit: Wrapped}}}
	t.Row(x)
	return c.TableRows(&t, width)[0]
}

// PrintWrapped writes a text in lines that fit the terminal, indented.
func (c *Console) PrintWrapped(indent int, x Cell) {
	c.PrintLines(c.WrappedLines(c.Width(), indent, x))
}

// TableRows returns the lines of each row of the table, no wider than width; 0 = each row is one line.
func (c *Console) TableRows(t *Table, width int) [][]string {
	l := t.layout(width)
	out := make([][]string, 0, len(t.rows))
	for _, r := range t.rows {
		out = append(out, l.row(c, r))
	}
	return out
}

// layout is a table fitted to a width.
type layout struct {
	columns []Column
	widths  []int
	below   []bool // columns that are below the row
	width   int    // of the terminal; 0 = none
	indent  int
}

func (t *Table) layout(width int) layout {
	l := layout{columns: slices.Clone(t.Columns), width: width, indent: t.Indent}
	for _, r := range t.rows {
		for len(l.widths) < max(len(r), len(t.Columns)) {
			l.widths = append(l.widths, 0)
		}
		for i, x := range r {
			w := x.Width()
			if width == 0 && i < len(t.Columns) && t.Columns[i].Fit != Keep {
				w = min(w, padMost)
			}
			l.widths[i] = max(l.widths[i], w)
		}
	}
	for len(l.columns) < len(l.widths) {
		l.columns = append(l.columns, Column{})
	}
	l.below = make([]bool, len(l.widths))
	for i, col := range l.columns[:len(l.widths)] {
		if l.widths[i] > 0 || col.Fit == Keep {
			l.widths[i] = max(l.widths[i], col.Least)
		}
		if width > 0 && col.Fit == Keep && col.Most > 0 {
			l.widths[i] = min(l.widths[i], col.Most)
		}
	}
	if width > 0 {
		l.fit()
	}
	return l
}

// over is by how many cells the row is wider than the terminal.
func (l *layout) over() int {
	sum, gap := l.indent, 0
	for i, w := range l.widths {
		if w > 0 && !l.below[i] {
			sum, gap = sum+gap+w, columnGap
		}
	}
	return sum - l.width
}

// fit makes the row as narrow as the terminal: what can be cut or wrapped is, if enough is left of it; then what can go
// below goes; then the widest are cut.
func (l *layout) fit() {
	if l.flex(false); l.over() > 0 {
		for i, col := range l.columns {
			l.below[i] = col.Fit == Below
		}
	}
	l.flex(true)
	for l.over() > 0 {
		widest := -1
		for i, w := range l.widths {
			if !l.below[i] && w > keptLeast && (widest < 0 || w > l.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return // row cuts it
		}
		l.widths[widest]--
	}
}

// flex makes columns that are cut or wrapped narrower or, with below, puts them there where too little is left.
func (l *layout) flex(below bool) {
	for i, col := range l.columns {
		over := l.over()
		if over <= 0 {
			return
		}
		if col.Fit != Cut && col.Fit != Wrapped || l.below[i] {
			continue
		}
		if left := l.widths[i] - over; left >= flexLeast {
			l.widths[i] = left
		} else if below {
			l.below[i] = true
		}
	}
}

// row returns a row and what is below it.
func (l *layout) row(c *Console, r []Cell) []string {
	var beside [][]string
	var out []string
	deep := 1
	for i, x := range r {
		var lines []string
		switch {
		case l.below[i] || l.widths[i] == 0:
		case l.width == 0:
			lines = []string{x.painted(c)}
		default:
			lines = x.lines(c, l.widths[i], l.columns[i].Fit)
		}
		beside = append(beside, lines)
		deep = max(deep, len(lines))
	}
	for n := range deep {
		var b strings.Builder
		gap := l.indent
		for i, lines := range beside {
			if l.below[i] || l.widths[i] == 0 {
				continue
			}
			cell := ""
			if n < len(lines) {
				cell = lines[n]
			}
			b.WriteString(strings.Repeat(" ", gap) + Pad(cell, l.widths[i]))
			gap = columnGap
		}
		out = append(out, ClipPainted(strings.TrimRight(b.String(), " "), l.width))
	}
	if line, ok := l.besides(c, r, out[0]); ok && deep == 1 {
		return []string{line}
	}
	return append(out, l.under(c, r)...)
}

// besides adds the cells that go below a row to its line, if there is room for all of them.
func (l *layout) besides(c *Console, r []Cell, line string) (string, bool) {
	at, gap := l.indent, 0
	cells, wide := "", 0
	for i, x := range r {
		switch w := l.widths[i]; {
		case l.below[i] && x.Width() > 0:
			cells += strings.Repeat(" ", columnGap) + x.painted(c)
			wide += columnGap + x.Width()
		case l.below[i] || w == 0:
		default:
			if l.columns[i].Fit != Keep {
				w = min(w, max(x.Width(), flexLeast))
			}
			at, gap = at+gap+w, columnGap
		}
	}
	at = max(at, Width(line))
	return Pad(line, at) + cells, wide > 0 && at+wide <= l.width
}

// under returns the cells that are below a row: as many on a line as there is room for.
func (l *layout) under(c *Console, r []Cell) (out []string) {
	indent := l.indent + belowFirst
	if l.width-indent < belowLeast {
		indent = 2
	}
	room, left := max(l.width-indent, 1), -1 // left on the last line
	for i, x := range r {
		width := x.Width()
		switch {
		case !l.below[i] || width == 0:
		case width+columnGap <= left:
			out[len(out)-1] += strings.Repeat(" ", columnGap) + x.painted(c)
			left -= columnGap + width
		default:
			for _, line := range x.lines(c, room, l.columns[i].Fit) {
				out = append(out, strings.Repeat(" ", indent)+line)
				left = room - Width(line)
			}
		}
	}
	return out
}
