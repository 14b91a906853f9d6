package specs

import (
	"bytes"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Format returns a spec in its canonical layout: two spaces per level, one after each key, dash and
// comma, at least two before a comment, one empty line between sections, steps and gates, and LF
// line ends. The author's choices stay: the order of keys, comments, quotes, and which lists and
// mappings are on one line. Every error is a Fault.
func Format(src []byte) ([]byte, error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	b := &book{}
	if i := bytes.IndexAny(src, "\r\u0085\u2028\u2029"); i >= 0 {
		return nil, Fault{Line: 1 + bytes.Count(src[:i], []byte("\n")), Col: 1,
			Message: "holds a line end that is neither LF nor CRLF: editors and YAML count lines differently there"}
	}
	root := b.parse(src)
	if len(b.faults) > 0 {
		return nil, b.faults[0]
	}
	// retry without, in case a mapping on one line is too unusual
	for _, inFlows := range []bool{true, false} {
		l := newArrangement(string(src), root, inFlows)
		out := []byte(l.print())
		if again := (&book{}); sameNodes(root, again.parse(out), 0) && sameComments(src, out) {
			return out, nil
		}
	}
	return nil, Fault{Line: 1, Col: 1, Message: "left as it is: formatting would have changed its meaning"}
}

// arrangement is where each line of a file goes.
type arrangement struct {
	lines  []string
	kind   []lineKind
	indent []int  // of lines that begin an entry
	apart  []bool // an empty line precedes it
	close  []bool // no empty line precedes it
	flows  bool
}

// lineKind is what is on a line.
type lineKind int

const (
	other    lineKind = iota // empty, a comment, or the rest of an entry
	entry                    // begins with a key or a dash
	within                   // of a text or a bracket from an earlier line; shifted with it
	verbatim                 // of a block of text; shifted with the block
)

func newArrangement(src string, root *yaml.Node, flows bool) *arrangement {
	l := &arrangement{lines: strings.Split(strings.TrimSuffix(src, "\n"), "\n"), flows: flows}
	n := len(l.lines)
	l.kind, l.indent, l.apart, l.close = make([]lineKind, n), make([]int, n), make([]bool, n), make([]bool, n)
	l.walk(root, 0)
	l.sections(root)
	return l
}

// walk enters a block node's lines.
func (l *arrangement) walk(n *yaml.Node, indent int) {
	block := n.Style&yaml.FlowStyle == 0 && n.Kind != yaml.AliasNode
	switch {
	case n.Kind == yaml.MappingNode && block:
		for i := 0; i+1 < len(n.Content); i += 2 {
			l.enter(n.Content[i].Line-1, indent)
			l.walk(n.Content[i+1], indent+2)
		}
	case n.Kind == yaml.SequenceNode && block:
		for _, item := range n.Content {
			l.enter(l.dash(item.Line-1, n.Column-1), indent)
			l.walk(item, indent+2)
		}
	default:
		l.extent(n, indent)
	}
}

// enter records that an entry begins on a line, unless an outer one does.
func (l *arrangement) enter(row, indent int) {
	if l.kind[row] == other {
		l.kind[row], l.indent[row] = entry, indent
	}
}

// dash finds the line with an item's dash, which may be alone above it.
func (l *arrangement) dash(row, col int) int {
	for r := row; r >= 0; r-- {
		if line := l.lines[r]; len(line) > col && line[col] == '-' && strings.Trim(line[:col], " -") == "" {
			return r
		}
	}
	return row
}

// extent marks the following lines of a text or a flow.
func (l *arrangement) extent(n *yaml.Node, indent int) {
	row := n.Line - 1
	if row < 0 || row >= len(l.lines) {
		return
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		l.textBlock(row, indent)
		return
	}
	offset := byteOffset(l.lines[row], n.Column-1)
	last := row
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0,
		n.Kind == yaml.AliasNode:
		// A plain text continues over lines that begin no entry and are no comments; see print.
	default:
		last, _ = l.closes(row, offset)
	}
	for r := row + 1; r <= last; r++ {
		l.kind[r] = within
	}
}

// textBlock marks the lines of a | or > block and where their text should begin.
func (l *arrangement) textBlock(row, indent int) {
	begin := -1
	for r := row + 1; r < len(l.lines); r++ {
		line := l.lines[r]
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if spaces == len(line) {
			l.kind[r], l.indent[r] = verbatim, -1
			continue
		}
		if begin < 0 && spaces > 0 {
			begin = spaces
		}
		if begin < 0 || spaces < begin {
			break
		}
		l.kind[r] = verbatim
		if l.indent[r] = indent + spaces - begin; l.indicated(row) {
			l.indent[r] = -1
		}
	}
	for r := l.lastOf(row); r > row && strings.TrimSpace(l.lines[r]) == "" && !l.keeps(row); r-- {
		l.kind[r] = other // empty lines after the text are not part of it
	}
}

// header returns the | or > at the end of a line, with its modifiers.
func (l *arrangement) header(row int) string {
	line, _, _ := strings.Cut(l.lines[row], " #")
	return line[max(0, strings.LastIndexAny(line, "|>")):]
}

func (l *arrangement) keeps(row int) bool     { return strings.Contains(l.header(row), "+") }
func (l *arrangement) indicated(row int) bool { return strings.ContainsAny(l.header(row), "123456789") }

func (l *arrangement) lastOf(row int) int {
	for row+1 < len(l.lines) && l.kind[row+1] == verbatim {
		row++
	}
	return row
}

// closes finds the end of the quoted text or bracket that begins at an offset of a line.
func (l *arrangement) closes(row, offset int) (lastRow, end int) {
	depth, quote := 0, byte(0)
	for r := row; r < len(l.lines); r++ {
		line := l.lines[r]
		for i := offset; i < len(line); i++ {
			c := line[i]
			switch {
			case quote == '"' && c == '\\':
				i++
			case quote == '\'' && c == '\'' && i+1 < len(line) && line[i+1] == '\'':
				i++
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case (c == '"' || c == '\'') && (i == offset && r == row || strings.ContainsRune(" ,[{:", rune(before(line, i)))):
				quote = c
			case c == '[' || c == '{':
				depth++
			case c == ']' || c == '}':
				depth--
			case c == '#' && (i == 0 || line[i-1] == ' '):
				i = len(line)
			}
			if depth == 0 && quote == 0 && i < len(line) && strings.ContainsRune(`]}"'`, rune(c)) {
				return r, i + 1
			}
		}
		offset = 0
	}
	return row, len(l.lines[row])
}

func before(line string, i int) byte {
	if i == 0 {
		return ' '
	}
	return line[i-1]
}

// sections puts an empty line before each section but the first, and between multi-line steps and
// gates.
func (l *arrangement) sections(root *yaml.Node) {
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		l.mark(root.Content[i].Line-1, i > 0)
		list := root.Content[i+1]
		if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 {
			continue
		}
		for k, item := range list.Content {
			if item.Kind == yaml.MappingNode && item.Style&yaml.FlowStyle == 0 {
				l.mark(l.dash(item.Line-1, list.Column-1), k > 0)
			}
		}
	}
}

func (l *arrangement) mark(row int, apart bool) {
	l.apart[row] = l.apart[row] || apart
	l.close[row] = l.close[row] || !apart
}

// level is an open entry: its old and its new indentation.
type level struct{ was, is int }

func (l *arrangement) print() string {
	p := &printer{arrangement: l}
	for row := range l.lines {
		p.line(row)
	}
	p.flush(-1)
	for len(p.out) > p.floor && p.out[len(p.out)-1] == "" {
		p.out = p.out[:len(p.out)-1]
	}
	return strings.Join(p.out, "\n") + "\n"
}

type printer struct {
	*arrangement
	out     []string
	floor   int     // lines that stay, even empty ones: of a text
	empty   int     // empty lines since the last other one
	shift   int     // of the last entry
	open    []level // entries whose level a comment may take
	comment []int   // rows of comments, with their empty lines, that wait for the next line
}

func (p *printer) line(row int) {
	line := p.lines[row]
	words := strings.TrimLeft(line, " ")
	was := len(line) - len(words)
	switch {
	case p.kind[row] == verbatim:
		p.flush(row)
		p.block(line, p.indent[row])
	case p.kind[row] == entry:
		p.entry(row, was)
	case words == "" && p.kind[row] == other && len(p.comment) > 0:
		p.comment = append(p.comment, row)
	case words == "" && p.kind[row] == other:
		p.empty++
	case p.kind[row] == other && words[0] == '#':
		p.comment = append(p.comment, row)
	case p.kind[row] == other &&
		(strings.HasPrefix(line, "---") || strings.HasPrefix(line, "%") || strings.HasPrefix(line, "...")):
		p.flush(row)
		p.put(0, words)
	default: // a text or a bracket continues: its empty lines are line breaks
		for ; p.empty > 0; p.empty-- {
			p.out = append(p.out, "")
		}
		p.put(was+p.shift, words)
	}
}

// entry prints a line that begins with a key or a dash.
func (p *printer) entry(row, was int) {
	is := p.indent[row]
	open := slices.DeleteFunc(slices.Clone(p.open),
		func(o level) bool { return o.was > was || o.was == was && o.is >= is })
	p.open = append(p.open, level{was, is})
	p.flush(row)
	p.shift, p.open = is-was, append(open, level{was, is})
	tidy, after := p.tidy(row, was)
	if after > 0 { // a key after a dash is its own entry
		p.open = append(p.open, level{was + after, is + 2})
	}
	p.put(is, tidy)
}

func (p *printer) put(indent int, words string) {
	p.out = append(p.out, strings.TrimRight(strings.Repeat(" ", max(indent, 0))+words, " "))
}

// block adds a line of a text, which keeps its spaces.
func (p *printer) block(line string, indent int) {
	defer func() { p.floor = len(p.out) }()
	switch {
	case strings.TrimLeft(line, " ") == "" && indent < 0:
		p.out = append(p.out, "")
	case indent < 0:
		p.out = append(p.out, line)
	default:
		p.out = append(p.out, strings.Repeat(" ", indent)+strings.TrimLeft(line, " "))
	}
}

// flush prints what waited for the line at row: empty lines, as at most one, and comments, each at
// the level of an open entry.
func (p *printer) flush(row int) {
	gap := p.empty > 0
	parted := slices.ContainsFunc(p.comment, func(r int) bool { return strings.TrimSpace(p.lines[r]) == "" })
	if row >= 0 && p.apart[row] && !parted {
		gap = true
	}
	if row >= 0 && p.close[row] && len(p.comment) == 0 {
		gap = false
	}
	p.gap(gap)
	for i, r := range p.comment {
		words := strings.TrimLeft(p.lines[r], " ")
		if words == "" {
			p.gap(i < len(p.comment)-1 || row >= 0)
			continue
		}
		col, best := len(p.lines[r])-len(words), level{-1, 0}
		for _, o := range p.open { // the last is the next entry: it wins a tie
			if o.was <= col && (o.was > best.was || row >= 0 && o.was == best.was) {
				best = o
			}
		}
		p.put(best.is, words)
	}
	p.empty, p.comment = 0, nil
}

// gap adds an empty line, unless there is one or nothing above.
func (p *printer) gap(wanted bool) {
	if wanted && len(p.out) > 0 && p.out[len(p.out)-1] != "" {
		p.out = append(p.out, "")
	}
}

// sameNodes reports whether two documents mean the same.
func sameNodes(a, b *yaml.Node, depth int) bool {
	if a == nil || b == nil || depth > maxDepth {
		return a == b
	}
	return a.Kind == b.Kind && a.Value == b.Value && a.ShortTag() == b.ShortTag() && a.Anchor == b.Anchor &&
		slices.EqualFunc(a.Content, b.Content, func(x, y *yaml.Node) bool { return sameNodes(x, y, depth+1) })
}

// sameComments reports whether no comment was lost, wherever the library attaches them.
func sameComments(a, b []byte) bool {
	return slices.Equal(commentsOf(a), commentsOf(b))
}

func commentsOf(src []byte) (out []string) {
	doc, _, err := Decode(src)
	if err != nil || doc == nil {
		return nil
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for c := range strings.SplitSeq(n.HeadComment+"\n"+n.LineComment+"\n"+n.FootComment, "\n") {
			if c = strings.TrimSpace(c); c != "" {
				out = append(out, c)
			}
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(doc)
	slices.Sort(out)
	return out
}
