package importer

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/fault"
	"sluice/internal/text"
)

// construct is a row of a format's table: what becomes of a key.
type construct struct {
	path string // as in nodes[].loop.until
	mark
	deep bool // a mapping or a list of mappings whose own keys have rows; it is not counted itself
}

func taken(paths ...string) []construct { return rows(construct{mark: mark{as: Taken}}, paths) }

func near(note string, paths ...string) []construct {
	return rows(construct{mark: mark{Approximated, note}}, paths)
}

func left(note string, paths ...string) []construct {
	return rows(construct{mark: mark{Left, note}}, paths)
}

func deep(paths ...string) []construct {
	return rows(construct{mark: mark{as: Taken}, deep: true}, paths)
}

func rows(c construct, paths []string) (out []construct) {
	for _, c.path = range paths {
		out = append(out, c)
	}
	return out
}

// under returns rows whose paths begin with a prefix.
func under(prefix string, rows ...construct) (out []construct) {
	for _, c := range rows {
		c.path = prefix + c.path
		out = append(out, c)
	}
	return out
}

// mark is what a reader says of one value, against the table.
type mark struct {
	as   As
	note string
}

// ledger counts the constructs of an original.
type ledger struct {
	src    *tree
	table  map[string]construct
	marks  map[*yaml.Node]mark
	origin map[*yaml.Node]string // the file of a root and of what was merged from elsewhere
	done   map[*yaml.Node]bool   // keys that were counted
	report *Report
	err    error
}

func newLedger(src *tree, table []construct, report *Report) *ledger {
	l := &ledger{src: src, table: map[string]construct{}, marks: map[*yaml.Node]mark{}, done: map[*yaml.Node]bool{},
		origin: map[*yaml.Node]string{}, report: report}
	for _, c := range table {
		l.table[c.path] = c
	}
	return l
}

// fail keeps the first fault of the original; the import then writes nothing.
func (l *ledger) fail(n *yaml.Node, format string, args ...any) {
	if l.err == nil {
		file, line := l.place(n)
		l.err = fault.At(file, line, 0, format, args...)
	}
}

// place returns where a node is, as messages show it.
func (l *ledger) place(n *yaml.Node) (file string, line int) {
	file = l.src.file
	if n == nil {
		return l.src.name(file), 1
	}
	if f, ok := l.origin[n]; ok {
		file = f
	}
	return l.src.name(file), n.Line
}

// from says which file the nodes below n come from, and how many lines of it are above them.
func (l *ledger) from(n *yaml.Node, file string, above int) {
	l.origin[n] = file
	n.Line += above
	for _, c := range n.Content {
		l.from(c, file, above)
	}
}

// near says that a value is approximated; the note says what ours does.
func (l *ledger) near(n *yaml.Node, format string, args ...any) {
	l.set(n, mark{Approximated, fmt.Sprintf(format, args...)})
}

// leave says that a value is left.
func (l *ledger) leave(n *yaml.Node, format string, args ...any) {
	l.set(n, mark{Left, fmt.Sprintf(format, args...)})
}

func (l *ledger) take(n *yaml.Node) { l.set(n, mark{as: Taken}) }

func (l *ledger) set(n *yaml.Node, m mark) {
	if n = resolve(n); n != nil {
		l.marks[n] = m
	}
}

// account counts the keys of a mapping by the table's rows below prefix, and adds a note for each
// that is not taken over. of is the step of the original.
func (l *ledger) account(n *yaml.Node, prefix, of string, notes *[]string) {
	for _, p := range pairs(n) {
		path := strings.TrimPrefix(prefix+"."+p.key.Value, ".")
		row, known := l.table[path]
		m, marked := l.marks[p.value]
		switch {
		case marked:
		case row.deep && isList(p.value):
			for _, c := range items(p.value) {
				l.account(c, path+"[]", of, notes)
			}
			continue
		case row.deep && isMap(p.value):
			l.account(p.value, path, of, notes)
			continue
		case known:
			m = row.mark
		default:
			m = mark{Left, "the importer does not know this key"}
		}
		l.add(p.key, path, of, m, notes)
	}
}

// add counts one construct once.
func (l *ledger) add(key *yaml.Node, path, of string, m mark, notes *[]string) {
	if l.done[key] {
		return
	}
	l.done[key] = true
	file, line := l.place(key)
	l.report.Constructs = append(l.report.Constructs, Construct{File: file, Line: line, Name: text.Line(path), As: m.as,
		Note: text.Line(m.note), Of: text.Line(of)})
	if m.as != Taken && notes != nil {
		name := path[strings.LastIndexByte(path, '.')+1:]
		*notes = append(*notes, fmt.Sprintf("%s: %s (line %d): %s", m.as, name, line, m.note))
	}
}
