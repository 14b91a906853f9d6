package specs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Limits of a spec's text. The YAML library is quadratic on large maps, so nodes are counted first.
const (
	MaxBytes = 128 << 10 // of a spec, and of a schema it names
	MaxNodes = 10_000    // YAML nodes, counting each use of an alias
	MaxSteps = 200       // steps of a workflow, and gates; the graph's closure can be cubic
	maxDepth = 100       // nested lists and mappings
)

// parse returns the only document's root node; nil, with faults, if it is unusable.
func (b *book) parse(src []byte) *yaml.Node {
	if len(src) > MaxBytes {
		b.pos(1, 1, "the file has %d bytes: a spec has at most %d", len(src), MaxBytes)
		return nil
	}
	if line, col, bad := invalidUTF8(src); bad {
		b.pos(line, col, "not UTF-8: save the file as UTF-8")
		return nil
	}
	b.lines = strings.Split(string(src), "\n")
	doc, rest, err := Decode(src)
	if err != nil {
		line, why := YAMLFault(src, err)
		b.pos(line, 1, "not YAML: %s", why)
		return nil
	}
	if doc == nil || len(doc.Content) == 0 {
		b.pos(1, 1, "the file is empty: a spec begins with `workflow:`")
		return nil
	}
	if rest != nil {
		if len(rest.Content) > 0 {
			rest = rest.Content[0]
		}
		b.at(rest, "a second document begins here: one file holds one workflow")
	}
	count := 0
	if deep := measure(doc, 0, &count); deep != nil {
		b.at(deep, "nested deeper than %d levels", maxDepth)
		return nil
	}
	if count > MaxNodes {
		b.pos(1, 1, "the file has more than %d YAML nodes: split the workflow", MaxNodes)
		return nil
	}
	return doc.Content[0]
}

// Decode reads the first document, and the second's node; nil = there is none. It recovers from the
// library's panics on some invalid inputs. YAMLFault places its errors.
func Decode(src []byte) (doc, rest *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			doc, rest, err = nil, nil, fmt.Errorf("yaml: %v", p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(src))
	var first, second yaml.Node
	if err := d.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil, nil
		}
		return nil, nil, err
	}
	switch err := d.Decode(&second); {
	case err == nil:
		rest = &second
	case !errors.Is(err, io.EOF):
		return nil, nil, err
	}
	return &first, rest, nil
}

// YAMLFault returns the line of invalid YAML, from 1, and the library's message with advice. The library
// names the preceding line, or the line where the broken list or mapping begins.
func YAMLFault(src []byte, err error) (line int, why string) {
	told, why := yamlWords(err)
	lines := bytes.SplitAfter(src, []byte("\n"))
	told = min(told, len(lines))
	ends := func(n int) bool { // with n lines, the fault is the same
		_, _, err := Decode(bytes.Join(lines[:n], nil))
		if err == nil {
			return false
		}
		_, words := yamlWords(err)
		return words == why
	}
	switch {
	case !strings.Contains(why, "',' or '"):
		told += sort.Search(len(lines)-told, func(i int) bool { return ends(told + i) })
	case ends(told): // unclosed bracket: report its beginning, the first line, which the library omits
		told = 1
	default:
		told++
	}
	line = max(min(told, len(lines)), 1)
	switch indented := bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t")); {
	case indented && (strings.Contains(why, "any token") || strings.Contains(why, "a tab")):
		why = fmt.Sprintf("line %d is indented with a tab: YAML takes spaces only", line)
	case regexp.MustCompile("expected|not allowed|any token").MatchString(why):
		why += ": put a text that contains : # ? or a bracket in quotes, and check the indentation"
	}
	return line, why
}

// yamlWords separates the line from the library's message; 0 if there is none.
func yamlWords(err error) (line int, why string) {
	why = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): (?s)(.*)$`).FindStringSubmatch(why); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n, m[2]
		}
	}
	return 0, why
}

func invalidUTF8(src []byte) (line, col int, bad bool) {
	line, col = 1, 1
	for len(src) > 0 {
		r, size := utf8.DecodeRune(src)
		if r == utf8.RuneError && size == 1 {
			return line, col, true
		}
		if col++; r == '\n' {
			line, col = line+1, 1
		}
		src = src[size:]
	}
	return 0, 0, false
}

// measure counts nodes as they will be visited, following aliases, and stops soon after MaxNodes.
// It returns the node that is nested too deep, as any recursive alias is.
func measure(n *yaml.Node, depth int, count *int) *yaml.Node {
	if depth > maxDepth {
		return n
	}
	if *count++; *count > MaxNodes {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return measure(n.Alias, depth+1, count)
	}
	for _, c := range n.Content {
		if deep := measure(c, depth+1, count); deep != nil {
			return deep
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping (key: value)"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	}
	return "a text"
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
