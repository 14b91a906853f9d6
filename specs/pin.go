package specs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Pin returns the text that one run uses. It is the spec with the content of schema files, and with
// the counts, durations and other texts that the run's vars fix at the start. Later edits therefore
// cannot affect the run. Load of the pinned text equals LoadFile and LoadFor together; comments and
// layout stay. root is the repo's. All faults are reported.
func Pin(root, file string, src []byte, vars map[string]any) ([]byte, []Fault) {
	from := below(root)
	from.given = vars
	return pin(file, src, from)
}

func pin(file string, src []byte, from sources) ([]byte, []Fault) {
	c, faults := load(file, src, from)
	if c == nil {
		return nil, faults
	}
	lines := strings.Split(string(src), "\n")
	edits := c.edits()
	for _, n := range slices.SortedFunc(maps.Keys(edits), fromTheEnd) {
		if !replaceScalar(lines, n, edits[n]) {
			return nil, []Fault{{file, n.Line, n.Column,
				"cannot be fixed for the run: write the value on one line, after its key, without an alias"}}
		}
	}
	out := []byte(strings.Join(lines, "\n"))
	if out, faults = c.pinChildren(out); faults != nil {
		return nil, faults
	}
	if _, faults := Load("", out); len(faults) > 0 {
		return nil, []Fault{{file, 1, 1,
			fmt.Sprintf("with its schemas and values written into it, the spec does not load: %s", faults[0].Message)}}
	}
	return out, nil
}

// edits returns the scalars that differ in a pinned text, with their new values.
func (c *compiler) edits() map[*yaml.Node]string {
	out := map[*yaml.Node]string{}
	for n, v := range c.fixed {
		out[n] = scalarOf(v)
	}
	for _, d := range c.doc.Steps {
		s := c.spec.Step(d.ID.value)
		if k := s.Child; k != nil && k.Inline {
			s = k.Steps[0]
		}
		if s.Answer != nil && s.Answer.Path != "" {
			out[d.Answer.node] = string(s.Answer.Source)
		}
	}
	for _, d := range c.doc.Gates {
		if g := c.spec.Gate(d.ID.value); g.Answer != nil && g.Answer.Path != "" {
			out[d.Answer.node] = string(g.Answer.Source)
		}
	}
	return out
}

// scalarOf writes a value in YAML: a number plain, since counts are read so, anything else quoted
// as JSON.
func scalarOf(v string) string {
	if _, why := parseNumber(v); why == "" {
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("specs: a text is no JSON: " + err.Error())
	}
	return string(b)
}

// fromTheEnd orders nodes so that an edit keeps the positions of later edits valid.
func fromTheEnd(a, b *yaml.Node) int {
	return cmp.Or(b.Line-a.Line, b.Column-a.Column)
}

func replaceScalar(lines []string, n *yaml.Node, with string) bool {
	row := n.Line - 1
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || row < 0 || row >= len(lines) ||
		n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	at := byteOffset(lines[row], n.Column-1)
	end := at + len(n.Value)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		last, e := (&arrangement{lines: lines}).closes(row, at)
		if end = e; last != row {
			return false
		}
	} else if end > len(lines[row]) || lines[row][at:end] != n.Value {
		return false
	}
	lines[row] = lines[row][:at] + with + lines[row][end:]
	return true
}
