package show

import (
	"strings"

	"sluice/internal/console"
	"sluice/internal/review"
)

// PrintPatch prints the lines of a patch, coloured, and marks the changed words within lines if wanted.
func PrintPatch(con *console.Console, patch []byte, words bool) {
	p := printer{con: con, words: words}
	for raw := range strings.Lines(string(patch)) {
		kind := p.place.Next(strings.TrimSuffix(raw, "\n")).Kind
		line := review.Visible(raw)
		if kind != '+' && (kind != '-' || len(p.came) > 0) {
			p.flush()
		}
		switch {
		case kind == '-':
			p.gone = append(p.gone, []byte(line[1:]))
		case kind == '+':
			p.came = append(p.came, []byte(line[1:]))
		case kind == '@', kind == 0 && strings.HasPrefix(line, "diff "):
			con.Print("%s", con.Paint(console.Bold, line))
		default:
			con.Print("%s", line)
		}
	}
	p.flush()
}

// printer collects the removed and added lines of a change.
type printer struct {
	con        *console.Console
	words      bool
	place      review.Place
	gone, came [][]byte
}

// flush prints the change.
func (p *printer) flush() {
	olds, news := make([][]review.Span, len(p.gone)), make([][]review.Span, len(p.came))
	if p.words {
		for i, j := range review.Pairs(p.gone, p.came) {
			if j >= 0 {
				olds[i], news[j] = review.Differ(p.gone[i], p.came[j])
			}
		}
	}
	for i, line := range p.gone {
		p.con.Print("%s", marked(p.con, console.Red, "-", line, olds[i]))
	}
	for i, line := range p.came {
		p.con.Print("%s", marked(p.con, console.Green, "+", line, news[i]))
	}
	p.gone, p.came = nil, nil
}

// marked returns a changed line with its changed words marked.
func marked(con *console.Console, style, sign string, line []byte, words []review.Span) string {
	var out strings.Builder
	at := 0
	for _, w := range words {
		out.WriteString(con.Paint(style, sign+string(line[at:w.From])))
		out.WriteString(word(con, style, string(line[w.From:w.To])))
		sign, at = "", w.To
	}
	return out.String() + con.Paint(style, sign+string(line[at:]))
}

// word marks a changed word: reversed, or without colours as git does.
func word(con *console.Console, style, s string) string {
	switch {
	case con.Colour && strings.TrimSpace(s) == "":
		return con.Paint(style+";7", strings.ReplaceAll(s, "\t", "→\t")) // a terminal need not paint a tab
	case con.Colour:
		return con.Paint(style+";7", s)
	case style == console.Red:
		return "[-" + s + "-]"
	}
	return "{+" + s + "+}"
}
