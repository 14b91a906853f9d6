package specs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/internal/ids"

	"gopkg.in/yaml.v3"
)

// topName is the document's name in messages.
const topName = "the spec"

// Limits of single values.
const (
	maxDuration = 365 * 24 * time.Hour
	maxCount    = 1_000_000
)

type scalar struct {
	value string
	node  *yaml.Node
}

func (t *scalar) read(r *reader, n *yaml.Node, what string) {
	*t = r.scalar(n, what, "a text")
}

func (t scalar) set() bool { return t.node != nil }

type ident struct{ scalar }

func (t *ident) read(r *reader, n *yaml.Node, what string) {
	t.scalar.read(r, n, what)
	if t.node == nil {
		return
	}
	if bad := ids.Fault(t.value); bad != "" {
		r.at(n, "%s %s %s", what, quote(t.value), bad)
		t.node = nil
	}
}

// textList is a list of texts. Its node is set if the key has a list, even an empty one.
type textList struct {
	items []scalar
	node  *yaml.Node
}

func (l *textList) read(r *reader, n *yaml.Node, what string) {
	items, ok := r.items(n, what)
	if !ok {
		return
	}
	l.node = n
	for _, item := range items {
		var t scalar
		switch t.read(r, item, what); {
		case t.value != "":
			l.items = append(l.items, t)
		case t.set():
			r.at(item, "%s: an entry is empty", what)
		}
	}
}

type pathList struct{ textList }

// labelsDoc is `on:` of a step.
type labelsDoc struct{ textList }

func (l *labelsDoc) read(r *reader, n *yaml.Node, what string) {
	l.textList.read(r, n, what)
	r.distinct(l.textList, what, func(s string) string {
		if strings.Contains(s, "${{") {
			return "holds ${{ }}: a label is a fixed text: which machine works is not for an agent to say"
		}
		return ids.Fault(s)
	})
	if most := len(l.items); l.node != nil && (most == 0 || most > ids.MaxLabels) {
		r.at(n, "%s: %d labels: want 1 to %d, or remove it", what, most, ids.MaxLabels)
	}
}

type exprDoc struct{ scalar }

func (e *exprDoc) read(r *reader, n *yaml.Node, what string) {
	e.scalar = r.scalar(n, what, "an expression")
	if e.set() && strings.TrimSpace(e.value) == "" {
		r.at(n, "%s: the expression is empty", what)
		e.scalar = scalar{}
	}
}

// commandDoc is a text for sh -c, or a list of arguments.
type commandDoc struct {
	shell string
	argv  []scalar
	node  *yaml.Node
}

func (c *commandDoc) set() bool { return c.node != nil }

func (c *commandDoc) read(r *reader, n *yaml.Node, what string) {
	if resolve(n).Kind == yaml.SequenceNode {
		var argv []scalar
		for _, item := range resolve(n).Content {
			var t scalar
			if t.read(r, item, what); t.set() {
				argv = append(argv, t)
			}
		}
		switch {
		case len(resolve(n).Content) == 0:
			r.at(n, "%s: the list of arguments is empty", what)
		case len(argv) > 0 && argv[0].value == "":
			r.at(n, "%s: the command's name is empty", what)
		default:
			c.argv, c.node = argv, n
		}
		return
	}
	switch t := r.scalar(n, what, "a command (a text, or a list of arguments)"); {
	case !t.set():
	case strings.TrimSpace(t.value) == "":
		r.at(n, "%s: the command is empty", what)
	case strings.Contains(t.value, "${{"):
		r.at(n, "%s: ${{ }} has no place in a shell command, where a value could become a command: use `env`, "+
			"$SLUICE_VAR_…, or a list of arguments", what)
	default:
		c.shell, c.node = t.value, n
	}
}

// targetsDoc is a step, an end, or a list of steps.
type targetsDoc struct {
	items []scalar
	list  bool
}

func (d *targetsDoc) read(r *reader, n *yaml.Node, what string) {
	if resolve(n).Kind == yaml.SequenceNode {
		var l textList
		l.read(r, n, what)
		if len(resolve(n).Content) == 0 {
			r.at(n, "%s: the list is empty: name a step, or DONE", what)
		}
		d.items, d.list = l.items, true
	} else if t := r.scalar(n, what, "a step, a list of steps, or an end"); t.set() {
		d.items = []scalar{t}
	}
}

// written is where a value is written, and its text if that is an expression.
type written struct {
	texpr string // the text with ${{ }}, if it is one
	node  *yaml.Node
}

func (w *written) set() bool { return w.node != nil }

// plain reads a scalar's text; not ok if it is an expression, which is kept, or at fault.
func (w *written) plain(r *reader, n *yaml.Node, what, want string) (v string, ok bool) {
	t := r.scalar(n, what, want)
	if strings.Contains(t.value, "${{") {
		w.texpr, w.node = t.value, n
		return "", false
	}
	return t.value, t.set()
}

// readValue reads a scalar with one of the tags, none = any, by parse, which returns what is wrong with it.
func readValue[T any](r *reader, w *written, n *yaml.Node, what, want string, parse func(string) (T, string),
	tags ...string) (v T) {
	s, ok := w.plain(r, n, what, want)
	if !ok {
		return v
	}
	if m := resolve(n); len(tags) > 0 && !slices.Contains(tags, m.ShortTag()) {
		r.at(n, "%s: expected %s, found %s", what, want, kindAndValue(m))
		return v
	}
	v, why := parse(s)
	if why != "" {
		r.at(n, "%s: %s", what, why)
	} else {
		w.node = n
	}
	return v
}

// countDoc is a whole number, or an expression for one.
type countDoc struct {
	written
	n int
}

func (c *countDoc) read(r *reader, n *yaml.Node, what string) {
	c.n = readValue(r, &c.written, n, what, "a whole number", parseCount, "!!int")
}

// parseCount parses a plain decimal. A leading zero could mean octal or decimal.
func parseCount(v string) (n int, why string) {
	switch {
	case leadingZero(v):
		return 0, fmt.Sprintf("%s has a leading zero: write %s", quote(v), trimZeros(v))
	case strings.HasPrefix(v, "-"):
		return 0, fmt.Sprintf("%s is less than 0", v)
	}
	i, err := strconv.Atoi(v)
	if err != nil {
		return 0, fmt.Sprintf("%s is not a plain whole number", quote(v))
	}
	if i > maxCount {
		return 0, fmt.Sprintf("%d is more than %d", i, maxCount)
	}
	return i, ""
}

func leadingZero(v string) bool {
	v = strings.TrimLeft(v, "+-")
	return len(v) > 1 && v[0] == '0' && v[1] >= '0' && v[1] <= '9'
}

func trimZeros(v string) string {
	if v = strings.TrimLeft(v, "+-0"); v == "" {
		return "0"
	}
	return v
}

// spanDoc is a duration, or an expression for one.
type spanDoc struct {
	written
	d time.Duration
}

func (s *spanDoc) read(r *reader, n *yaml.Node, what string) {
	s.d = readValue(r, &s.written, n, what, "a duration such as 30s, 15m or 2h", parseSpan)
}

func parseSpan(v string) (d time.Duration, why string) {
	d, err := time.ParseDuration(v)
	switch {
	case strings.Trim(v, "0123456789.") == "" && v != "":
		// other programs count in milliseconds
		if ms, err := time.ParseDuration(v + "ms"); err == nil && ms >= time.Second {
			return 0, fmt.Sprintf("%s has no unit: write %s if it is of milliseconds, else %ss, %sm or %sh", v, ms, v, v, v)
		}
		return 0, fmt.Sprintf("%s has no unit: write %ss, %sm or %sh", v, v, v, v)
	case err != nil:
		return 0, fmt.Sprintf("%s is not a duration: write 30s, 15m, 2h or 1h30m", quote(v))
	case d < 0:
		return 0, fmt.Sprintf("%s is less than 0", v)
	case d > maxDuration:
		return 0, fmt.Sprintf("%s is more than a year", v)
	}
	return d, ""
}

// number is a number of at least 0, or an expression for one.
type number struct {
	written
	f float64
}

func (c *number) read(r *reader, n *yaml.Node, what string) {
	c.f = readValue(r, &c.written, n, what, "a number", parseNumber, "!!int", "!!float")
}

func parseNumber(v string) (f float64, why string) {
	if leadingZero(v) {
		return 0, fmt.Sprintf("%s has a leading zero: write %s", quote(v), trimZeros(v))
	}
	f, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil || f != f || f > 1e15:
		return 0, fmt.Sprintf("%s is not a plain number", quote(v))
	case f < 0:
		return 0, fmt.Sprintf("%s is less than 0", v)
	}
	return f, ""
}

// kindAndValue describes a scalar of the wrong kind.
func kindAndValue(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Value != "" {
		return kindOf(n) + " " + quote(n.Value)
	}
	return kindOf(n)
}

// spanLimit, countLimit and numberLimit are limits of a run: N, or {max: N, on_hit: …}.
type (
	spanLimit struct {
		max   spanDoc
		onHit scalar
	}
	countLimit struct {
		max   countDoc
		onHit scalar
	}
	numberLimit struct {
		max   number
		onHit scalar
	}
)

func (l *spanLimit) read(r *reader, n *yaml.Node, what string)   { l.onHit = r.limit(&l.max, n, what) }
func (l *countLimit) read(r *reader, n *yaml.Node, what string)  { l.onHit = r.limit(&l.max, n, what) }
func (l *numberLimit) read(r *reader, n *yaml.Node, what string) { l.onHit = r.limit(&l.max, n, what) }

func (r *reader) limit(bound shape, n *yaml.Node, what string) (onHit scalar) {
	m := resolve(n)
	if m.Kind != yaml.MappingNode {
		bound.read(r, n, what)
		return scalar{}
	}
	found := false
	for _, kv := range r.pairs(m, what) {
		switch kv.name {
		case "max":
			found = true
			bound.read(r, kv.value, what)
		case "on_hit":
			onHit.read(r, kv.value, what+": on_hit")
			if hits := []string{"ABORTED", "FAILED", "human"}; onHit.set() && !slices.Contains(hits, onHit.value) {
				r.at(kv.value, "%s: on_hit: unknown word %s%s", what, quote(onHit.value), r.oneOf(onHit.value, hits))
			}
		default:
			r.strange(kv, what, "max", "on_hit")
		}
	}
	if !found {
		r.at(n, `%s: "max" is missing`, what)
	}
	return onHit
}
