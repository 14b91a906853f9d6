package text

import "strings"

// Fence is the fenced block of Markdown that is open at the end of a line, by the rules of CommonMark.
// The zero Fence is none.
type Fence struct {
	Mark string // the backticks or tildes that opened it
	Info string // what follows them
}

// Open reports whether a block is open.
func (f Fence) Open() bool { return f.Mark != "" }

// Next returns the fence that is open after the line l. At most three spaces and three or more backticks
// or tildes open a block; at least as many of the same, alone on a line, close it. A block within a block
// is text.
func (f Fence) Next(l string) Fence {
	mark, rest := fenceOf(l)
	info := strings.TrimSpace(rest)
	switch {
	case mark == "":
	case !f.Open() && (mark[0] == '~' || !strings.Contains(rest, "`")):
		return Fence{Mark: mark, Info: info}
	case f.Open() && mark[0] == f.Mark[0] && len(mark) >= len(f.Mark) && info == "":
		return Fence{}
	}
	return f
}

// fenceOf returns the fence that a line begins with, and what follows it.
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

// Prose is text of the project's own (a task, a template): clean, at most max bytes, every block in it
// closed, so that a forgotten fence does not swallow what follows.
func Prose(s string, max int) string {
	s = Head(strings.TrimSpace(s), max)
	var open Fence
	for l := range strings.SplitSeq(s, "\n") {
		open = open.Next(l)
	}
	if open.Open() {
		s += "\n" + open.Mark
	}
	return s
}
