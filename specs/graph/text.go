package graph

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"sluice/engine"
)

// Text draws the workflow for a terminal: each step with its gates below it, and the lines from
// each. states has the known states of steps and gates by id; nil draws only the workflow. Of the
// options, the notes and what was taken are shown.
//
//	write-tests    test-writer in phase-4/    passed
//	 └─ <XG-1-2> review-tests    notify: reviewer
//	     ├─ pass ─> X-2
//	     └─ fail ─> X-1
func Text(spec *engine.Spec, states map[string]string, o Options) string {
	return rowsOf(spec, states, o).String()
}

// Outline draws the same without who acts. A tab stands before the state of a step or gate, as the engine names it.
func Outline(spec *engine.Spec, states map[string]string) string {
	var b strings.Builder
	for _, r := range rowsOf(spec, states, Options{}).rows {
		b.WriteString(r.head)
		if state := states[r.id]; state != "" {
			b.WriteString("\t" + state)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func rowsOf(spec *engine.Spec, states map[string]string, o Options) *textPicture {
	p := draw(spec, states, o)
	t := &textPicture{picture: p}
	t.row(spec.ID, "", "")
	if spec.Name != spec.ID {
		t.rows[0].head += "  " + clean(spec.Name)
	}
	for _, n := range spec.Needs {
		t.row(" needs "+n.Workflow+"/"+n.Step, "", "")
	}
	for _, s := range inOrder(spec) {
		t.row("", "", "")
		t.step(s)
	}
	if hooks := t.hooks(); len(hooks) > 0 {
		t.row("", "", "")
		for _, h := range hooks {
			t.row(h.when, "run "+commandLine(h.run), "")
		}
	}
	return t
}

// textRow is a line of the text: what it is, who acts, and the step or gate whose state it shows.
type textRow struct{ head, who, id string }

type textPicture struct {
	*picture
	rows []textRow
}

func (t *textPicture) row(head, who, id string) {
	t.rows = append(t.rows, textRow{head, who, id})
}

// step draws a step and its gates and lines.
func (t *textPicture) step(s *engine.Step) {
	_, who := t.title(s.ID)
	head := "[" + s.ID + "]"
	if s.Name != s.ID {
		head += " " + clean(s.Name)
	}
	t.row(head, who, s.ID)
	for _, e := range t.edges {
		if e.to == s.ID && e.kind == edgeNeed {
			t.row(" │ needs "+e.from, "", "")
		}
	}
	if s.When.Source != "" {
		t.row(" │ when "+clean(s.When.Source), "", "")
	}
	indent := " "
	var from []string
	for _, id := range s.Gates {
		if g := t.spec.Gate(id); !g.Implicit {
			from = append(from, id)
		}
	}
	if len(from) == 0 {
		t.leave(s.ID, "", indent)
		return
	}
	t.leave(s.ID, from[0], indent)
	for _, id := range from {
		g := t.spec.Gate(id)
		name := "<" + id + ">"
		if g.Name != id {
			name += " " + clean(g.Name)
		}
		_, who := t.title(id)
		t.row(indent+"└─ "+name, who, id)
		indent += "    "
		if g.When.Source != "" {
			t.row(indent+"│ when "+clean(g.When.Source), "", "")
		}
		t.leave(id, g.NextGate, indent)
	}
}

// leave draws the lines that leave a node, except the one to the next gate of the row, drawn below.
func (t *textPicture) leave(id, next, indent string) {
	var out []edge
	width := 0
	for _, e := range t.edges {
		if e.from == id && e.to != next && e.kind != edgeNeed {
			e.label = cmp.Or(e.label, "then")
			out = append(out, e)
			width = max(width, utf8.RuneCountInString(e.label))
		}
	}
	for i, e := range out {
		corner := "├─"
		if i == len(out)-1 && next == "" {
			corner = "└─"
		}
		line := strings.Repeat("─", width-utf8.RuneCountInString(e.label))
		t.row(fmt.Sprintf("%s%s %s %s─> %s", indent, corner, e.label, line, e.to), "", "")
	}
}

// String aligns the columns.
func (t *textPicture) String() string {
	var heads, whos int
	for _, r := range t.rows {
		if r.who != "" {
			heads, whos = max(heads, utf8.RuneCountInString(r.head)), max(whos, utf8.RuneCountInString(r.who))
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		line := r.head
		if r.who != "" {
			line = pad(r.head, heads) + "    " + r.who
		}
		if state := t.progress(r.id); state != "" {
			line = pad(r.head, heads) + "    " + pad(r.who, whos) + "    " + state
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
