package importer

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"sluice/internal/fault"
	"sluice/specs"
)

// Limits of a YAML text, counted before anything of it is read.
const (
	maxNodes = 20_000 // counting each use of an alias
	maxDepth = 60
)

// fileTag marks a value that is a file's text, in conductor.
const fileTag = "!file"

// parse reads one YAML document and returns its root. Each fault names the file and the line, which
// counts from 1 + above.
func parse(file string, src []byte, above int) (*yaml.Node, error) {
	at := func(line int, format string, args ...any) error {
		return fault.At(file, above+max(line, 1), 0, format, args...)
	}
	if line := binaryLine(src); line > 0 {
		return nil, at(line, "not a text file: a workflow is UTF-8 text")
	}
	doc, rest, err := specs.Decode(src)
	if err != nil {
		line, why := specs.YAMLFault(src, err)
		return nil, at(line, "not YAML: %s", why)
	}
	switch {
	case doc == nil || len(doc.Content) == 0:
		return nil, at(1, "the file is empty")
	case rest != nil:
		return nil, at(rest.Line, "a second document begins here: one file holds one workflow")
	}
	count := 0
	if bad, why := measure(doc, 0, &count); bad != nil {
		return nil, at(bad.Line, "%s", why)
	}
	return resolve(doc.Content[0]), nil
}

// measure counts nodes as they will be visited, following aliases, and returns the first that is not
// taken, with the reason.
func measure(n *yaml.Node, depth int, count *int) (*yaml.Node, string) {
	switch *count++; {
	case depth > maxDepth:
		return n, fmt.Sprintf("nested deeper than %d levels, or in itself", maxDepth)
	case *count > maxNodes:
		return n, fmt.Sprintf("more than %d YAML nodes, counting each use of an alias", maxNodes)
	case n.Kind == yaml.AliasNode:
		return measure(n.Alias, depth+1, count)
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != fileTag:
		return n, fmt.Sprintf("the tag %s is not read here: write the value out", n.Tag)
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch {
			case c.ShortTag() == "!!merge":
				return c, "merge keys (<<) are not read: write the keys out"
			case c.Kind != yaml.ScalarNode:
				return c, "a key is a plain text"
			case seen[c.Value]:
				return c, fmt.Sprintf("key %q is given twice", c.Value)
			}
			seen[c.Value] = true
		}
		if bad, why := measure(c, depth+1, count); bad != nil {
			return bad, why
		}
	}
	return nil, ""
}

// binaryLine returns the line of the first byte that no text has; 0 if there is none.
func binaryLine(src []byte) int {
	line := 1
	for len(src) > 0 {
		r, size := utf8.DecodeRune(src)
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\n' && r != '\t' && r != '\r', r == 0x7f:
			return line
		case r == '\n':
			line++
		}
		src = src[size:]
	}
	return 0
}

func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// pair is one entry of a mapping.
type pair struct {
	key   *yaml.Node
	value *yaml.Node // resolved
}

// pairs returns a mapping's entries in their order; none for any other node.
func pairs(n *yaml.Node) (out []pair) {
	if n = resolve(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, pair{n.Content[i], resolve(n.Content[i+1])})
	}
	return out
}

// get returns the value of a key, nil if the mapping lacks it.
func get(n *yaml.Node, key string) *yaml.Node {
	for _, p := range pairs(n) {
		if p.key.Value == key {
			return p.value
		}
	}
	return nil
}

// at returns the value at a path of keys.
func at(n *yaml.Node, keys ...string) *yaml.Node {
	for _, k := range keys {
		n = get(n, k)
	}
	return n
}

// str returns a scalar's text; "" for anything else and for null.
func str(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// whole returns a number from least to most; 0 for anything else.
func whole(n *yaml.Node, least, most int) int {
	if v, err := strconv.Atoi(str(n)); err == nil && v >= least && v <= most {
		return v
	}
	return 0
}

// items returns a list's entries; a scalar counts as a list of itself.
func items(n *yaml.Node) (out []*yaml.Node) {
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, c := range n.Content {
			out = append(out, resolve(c))
		}
	case str(n) != "":
		out = append(out, n)
	}
	return out
}

// texts returns the texts of a list's scalars.
func texts(n *yaml.Node) (out []string) {
	for _, c := range items(n) {
		if s := str(c); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func isMap(n *yaml.Node) bool  { return n != nil && n.Kind == yaml.MappingNode }
func isList(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }
func isTrue(n *yaml.Node) bool { return n != nil && n.ShortTag() == "!!bool" && str(n) == "true" }
