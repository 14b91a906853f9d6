package specs

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Pin gives the spec's text with the schemas that are files written into it, so that a run that recorded it goes by nothing
// that can be edited later. root is the repo's; vars are the run's (a schema's path may read them). Load of the result
// gives the same spec, each Answer inline; comments and layout stay. All faults are told, as by LoadFile.
func Pin(root, file string, src []byte, vars map[string]any) ([]byte, []Fault) {
	read := schemasBelow(root)
	spec, doc, faults := load(file, src, vars, read)
	if spec == nil {
		return nil, faults
	}
	var answers []*yaml.Node // those that name a file
	schemas := map[*yaml.Node]string{}
	enter := func(d answerDoc, source []byte) {
		if d.path.set() && resolve(d.node) == d.node {
			answers = append(answers, d.node)
			schemas[d.node] = string(source)
		}
	}
	for _, d := range doc.Steps {
		if s := spec.Step(d.ID.value); s.Answer != nil {
			enter(d.Answer, s.Answer.Source)
		}
	}
	for _, d := range doc.Gates {
		if g := spec.Gate(d.ID.value); g.Answer != nil {
			enter(d.Answer, g.Answer.Source)
		}
	}
	lines := strings.Split(string(src), "\n")
	slices.SortFunc(answers, func(a, b *yaml.Node) int { // from the end, so that columns before stay true
		if a.Line != b.Line {
			return b.Line - a.Line
		}
		return b.Column - a.Column
	})
	l := &layout{lines: lines}
	for _, n := range answers {
		row := n.Line - 1
		at := byteOffset(lines[row], n.Column-1)
		end := at + len(n.Value)
		if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			_, end = l.closes(row, at)
		}
		if end > len(lines[row]) || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || !strings.Contains(lines[row][at:end], n.Value) {
			return nil, []Fault{{file, n.Line, n.Column, "answer: write the schema's path on one line, after its key"}}
		}
		lines[row] = lines[row][:at] + schemas[n] + lines[row][end:]
	}
	out := []byte(strings.Join(lines, "\n"))
	if _, faults := LoadFor(file, out, vars); len(faults) > 0 {
		return nil, []Fault{{file, 1, 1, fmt.Sprintf("with its schemas written into it, the spec does not load: %s", faults[0].Message)}}
	}
	return out, nil
}
