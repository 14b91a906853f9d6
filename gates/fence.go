package gates

import "strings"

// block is a fenced block of Markdown.
type block struct {
	info   string // what stands after the opening fence
	text   string
	fence  string // the opening fence
	closed bool
}

// blocks finds the fenced blocks of Markdown as CommonMark has them: three or more backticks or tildes, at most three
// spaces before them, closed by at least as many of the same alone on a line. A block in a block is text. The last one
// may be unclosed: it goes to the end.
func blocks(s string) []block {
	var found []block
	var b *block
	var body []string
	for _, l := range strings.Split(s, "\n") {
		l = strings.TrimSuffix(l, "\r")
		mark, rest := fenceOf(l)
		switch {
		case b == nil && mark != "" && (mark[0] == '~' || !strings.Contains(rest, "`")):
			b, body = &block{info: strings.TrimSpace(rest), fence: mark}, nil
		case b == nil:
		case mark != "" && mark[0] == b.fence[0] && len(mark) >= len(b.fence) && strings.TrimSpace(rest) == "":
			b.text, b.closed = strings.Join(body, "\n"), true
			found = append(found, *b)
			b = nil
		default:
			body = append(body, l)
		}
	}
	if b != nil {
		b.text = strings.Join(body, "\n")
		found = append(found, *b)
	}
	return found
}

// fenceOf is the fence a line begins with, and what follows it; "" where it begins with none.
func fenceOf(l string) (mark, rest string) {
	trimmed := strings.TrimLeft(l, " ")
	if len(l)-len(trimmed) > 3 || trimmed == "" || trimmed[0] != '`' && trimmed[0] != '~' {
		return "", ""
	}
	n := len(trimmed) - len(strings.TrimLeft(trimmed, trimmed[:1]))
	if n < 3 {
		return "", ""
	}
	return trimmed[:n], trimmed[n:]
}

// prose is text of the project's own (a task, a template): clean, at most max bytes, every block in it closed, so that
// a forgotten fence does not swallow what follows.
func prose(s string, max int) string {
	s = head(strings.TrimSpace(s), max)
	if all := blocks(s); len(all) > 0 && !all[len(all)-1].closed {
		s += "\n" + all[len(all)-1].fence
	}
	return s
}
