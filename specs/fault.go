package specs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/text"
)

// Fault is one fault in a spec. Line and Col count from 1.
type Fault struct {
	File      string
	Line, Col int
	Message   string
}

// Error returns "file:line:col: message", without the file if it has no name.
func (f Fault) Error() string {
	if f.File == "" {
		return fmt.Sprintf("%d:%d: %s", f.Line, f.Col, f.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Message)
}

// Limits of reports.
const (
	maxFaults  = 500 // faults reported; only the first ones of a spec with more
	maxNearest = 100 // faults that get a search for the nearest name, which is slow
	maxQuoted  = 80  // runes of a quoted value
)

// book collects the faults of one file.
type book struct {
	file     string
	lines    []string // the source, to find a place within a block of text
	faults   []Fault
	searches int
}

func (b *book) at(n *yaml.Node, format string, args ...any) {
	line, col := 1, 1
	if n != nil {
		line, col = max(n.Line, 1), max(n.Column, 1)
	}
	b.pos(line, col, format, args...)
}

func (b *book) pos(line, col int, format string, args ...any) {
	b.faults = append(b.faults, Fault{b.file, line, col, fmt.Sprintf(format, args...)})
}

// sorted returns the faults by position, without duplicates.
func (b *book) sorted() []Fault {
	if len(b.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(b.faults, func(x, y Fault) int {
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Col, y.Col), cmp.Compare(x.Message, y.Message))
	})
	out := slices.Compact(b.faults)
	return out[:min(len(out), maxFaults)]
}

// near returns `: did you mean "x"?` if a known name is near, else "".
func (b *book) near(name string, known []string) string {
	if b.searches++; b.searches > maxNearest {
		return ""
	}
	if best := text.Nearest(name, known); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ""
}

func (b *book) oneOf(name string, known []string) string {
	if s := b.near(name, known); s != "" {
		return s
	}
	if len(known) == 0 {
		return ": no key has a meaning here"
	}
	return ": it is one of " + strings.Join(known, ", ")
}

// distinct returns the entries of a list without those that are odd or there twice, which it
// reports. odd ends a sentence that begins with the entry; "" = it is not.
func (b *book) distinct(l textList, what string, odd func(string) string) (out []string) {
	for _, t := range l.items {
		bad := odd(t.value)
		if bad == "" && slices.Contains(out, t.value) {
			bad = "is in the list twice"
		}
		if bad != "" {
			b.at(t.node, "%s: %s %s", what, quote(t.value), bad)
			continue
		}
		out = append(out, t.value)
	}
	return out
}

func quote(s string) string {
	r := []rune(s)
	if len(r) > maxQuoted {
		return fmt.Sprintf("%q…", string(r[:maxQuoted]))
	}
	return fmt.Sprintf("%q", s)
}
