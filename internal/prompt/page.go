package prompt

import (
	"fmt"
	"strings"

	"sluice/internal/text"
)

// Bounds of a prompt, in bytes where nothing else is said. The parts together stay below Max; a test holds it.
const (
	Max            = 400 << 10
	maxTemplate    = 12 << 10
	maxDescription = 4 << 10
	maxTask        = 48 << 10
	maxGiven       = 20 << 10 // more than tasks.Shown returns
	maxLook        = 48 << 10
	maxCriteria    = 48 << 10
	maxListed      = 100 // lines of a list
	maxListBytes   = 6 << 10
	maxInline      = 1024 // a line of foreign text
	maxLabel       = 200  // a name within a line
	maxName        = 64   // an outcome, a rubric line, an id
	maxNames       = 64   // outcomes, or rubric lines
	maxSchemaShown = 16 << 10
	maxRetryFile   = 12 << 10 // one file's text
	maxRetryAll    = 64 << 10
	maxRetryFiles  = 50 // files
	maxNote        = 4 << 10
	maxNotes       = 5  // notes: there are so many kinds, and the first is the task itself
	maxWords       = 20 // notes of a person
	maxWordsAll    = 20 << 10
	maxSummary     = 4 << 10
	maxAnswerShown = 12 << 10
	maxContent     = 12 << 10 // one output's content
	maxContentAll  = 36 << 10
	maxContents    = 40       // outputs
	maxChanged     = 32 << 10 // the names of all changed files
	maxDiff        = 40 << 10
	minRoom        = 256 // with less room no text is shown
)

// page builds Markdown.
type page struct{ out strings.Builder }

func (p *page) title(s string) { p.out.WriteString("# " + text.RevealLine(s, maxInline) + "\n") }

func (p *page) section(s string) { p.out.WriteString("\n## " + s + "\n\n") }

// text writes a paragraph of ours.
func (p *page) text(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// prose writes text of the project's own, if there is any.
func (p *page) prose(s string, limit int) {
	if s = text.Prose(s, limit); s != "" {
		p.out.WriteString(s + "\n")
	}
}

// list writes lines of Markdown, as many as there is room for.
func (p *page) list(items []string) {
	used := 0
	for i, item := range items {
		used += len(item)
		if i >= maxListed || used > maxListBytes {
			p.text("- … (%d more left out)", len(items)-i)
			return
		}
		p.text("- %s", item)
	}
}

func (p *page) raw(s string) { p.out.WriteString(s) }

func (p *page) String() string { return p.out.String() }

// newest returns the newest of a list, the last ones, and writes how many older ones are left out.
func newest[T any](p *page, list []T, most int, older string) []T {
	more := len(list) - most
	if more <= 0 {
		return list
	}
	p.text("(%d %s are left out.)\n", more, older)
	return list[more:]
}

// each returns what f makes of each of a list.
func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// firstNames bounds a list of outcomes or rubric lines.
func firstNames(names []string) []string { return names[:min(len(names), maxNames)] }

// name is a name within a line.
func name(s string) string { return text.RevealLine(s, maxName) }

func orElse(s, other string) string {
	if strings.TrimSpace(s) == "" {
		return other
	}
	return s
}
