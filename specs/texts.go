package specs

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"sluice/engine"
)

// part is a piece of a text: literal words, or an expression.
type part struct {
	words  string
	value  bool   // it is an expression
	source string // the expression between ${{ and }}
	offset int    // of the expression in the text, in bytes
	code   *program
}

// split splits a text at its ${{ }}.
func split(s string) (parts []part, why string) {
	at := 0
	for {
		i := strings.Index(s[at:], "${{")
		if i < 0 {
			if at < len(s) {
				parts = append(parts, part{words: s[at:]})
			}
			return parts, ""
		}
		if i > 0 {
			parts = append(parts, part{words: s[at : at+i]})
		}
		begin := at + i + len("${{")
		end := closing(s[begin:])
		if end < 0 {
			return nil, "${{ is not closed: }} is missing"
		}
		src := s[begin : begin+end]
		parts = append(parts, part{value: true, source: src, offset: begin})
		at = begin + end + len("}}")
	}
}

// closing finds the }} that ends an expression, skipping quoted texts and the expression's own
// braces.
func closing(s string) int {
	quoted, depth := outside(s), 0
	for i := range len(s) {
		switch {
		case quoted[i]:
		case s[i] == '{':
			depth++
		case s[i] == '}' && depth > 0:
			depth--
		case s[i] == '}' && i+1 < len(s) && s[i+1] == '}':
			return i
		}
	}
	return -1
}

func (c *values) parts(t scalar, s scope, what string) ([]part, bool) {
	parts, why := split(t.value)
	if why != "" {
		c.at(t.node, "%s: %s", what, why)
		return nil, false
	}
	good := true
	for i := range parts {
		if !parts[i].value {
			continue
		}
		if strings.TrimSpace(parts[i].source) == "" {
			c.within(t.node, t.value, parts[i].offset, "%s: ${{ }} holds no expression", what)
			good = false
			continue
		}
		code, faults := c.world.compile(parts[i].source, s, asText, c.near)
		for _, f := range faults {
			c.within(t.node, t.value, parts[i].offset+byteOffset(parts[i].source, f.offset), "%s: ${{%s}}: %s", what,
				parts[i].source, f.message)
		}
		parts[i].code = code
		good = good && faults == nil
	}
	return parts, good
}

// compiled returns a text's expressions. One at fault has no code: where the text is compiled, that is reported.
func (c *values) compiled(t scalar, s scope) (out []part) {
	parts, _ := split(t.value)
	for _, p := range parts {
		if p.value {
			p.code, _ = c.world.compile(p.source, s, asText, c.near)
			out = append(out, p)
		}
	}
	return out
}

// byteOffset converts an offset in runes to one in bytes.
func byteOffset(s string, runes int) int {
	for i := range s {
		if runes == 0 {
			return i
		}
		runes--
	}
	return len(s)
}

// within places a fault inside a scalar if its text is unchanged in the file, otherwise at the
// scalar.
func (c *values) within(n *yaml.Node, value string, offset int, format string, args ...any) {
	line, col := max(n.Line, 1), max(n.Column, 1)
	m := resolve(n)
	before := value[:min(offset, len(value))]
	switch {
	case m != n || m.Value != value || m.Style&yaml.FoldedStyle != 0:
	case m.Style&yaml.LiteralStyle != 0:
		row := n.Line + strings.Count(before, "\n") // counts from 0: the text begins on the line after its |
		words, _, _ := strings.Cut(value[strings.LastIndexByte(before, '\n')+1:], "\n")
		if row < len(c.lines) && strings.HasSuffix(strings.TrimRight(c.lines[row], "\r"), words) {
			indent := strings.LastIndex(c.lines[row], words)
			line, col = row+1, utf8.RuneCountInString(c.lines[row][:indent]+before[strings.LastIndexByte(before, '\n')+1:])+1
		}
	case !strings.ContainsAny(value, "\n\\\"'"):
		if m.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			col++
		}
		col += utf8.RuneCountInString(before)
	}
	c.pos(line, col, format, args...)
}

func render(parts []part, env *engine.Env) (string, error) {
	var b strings.Builder
	for _, p := range parts {
		if p.code == nil {
			b.WriteString(p.words)
			continue
		}
		s, err := p.code.printed(env)
		if err != nil {
			return "", fmt.Errorf("${{%s}}: %w", p.source, err)
		}
		if env != nil && env.Foreign != nil && p.code.foreign() {
			s = env.Foreign(strings.TrimSpace(p.source), s)
		}
		if b.WriteString(s); b.Len() > maxValueBytes {
			return "", errTooBig
		}
	}
	return b.String(), nil
}

// text compiles a text; check, if not nil, returns what is wrong with a value.
func (c *values) text(t scalar, s scope, what string, check func(string) string) engine.Text {
	out := engine.Text{Source: t.value}
	if !t.set() || !strings.Contains(t.value, "${{") {
		return out
	}
	parts, ok := c.parts(t, s, what)
	if !ok {
		return out
	}
	out.Eval = func(env *engine.Env) (string, error) {
		v, err := render(parts, env)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		if strings.ContainsRune(v, 0) {
			return "", fmt.Errorf("%s: the value holds a NUL character", what)
		}
		if check != nil {
			if why := check(v); why != "" {
				return "", fmt.Errorf("%s: %s %s", what, quote(v), why)
			}
		}
		return v, nil
	}
	return out
}

// yes reads true or false, fixed when the run starts.
func (c *values) yes(t scalar, what string) bool {
	v, ok := c.bound(t, what)
	if ok && t.set() && v != "true" && v != "false" {
		c.at(t.node, "%s: want true or false, found %s", what, quote(v))
	}
	return v == "true"
}

// bound returns a text's value from the run's start on; its expressions only read vars. It is not
// ok if a required var has no value yet.
func (c *values) bound(t scalar, what string) (string, bool) {
	if !strings.Contains(t.value, "${{") {
		return t.value, true
	}
	parts, ok := c.parts(t, inVars, what)
	if !ok {
		return "", false
	}
	for _, p := range parts {
		if p.code == nil {
			continue
		}
		for _, r := range p.code.reads {
			if r.root == "vars" && (c.from.late[r.id] || r.whole && len(c.from.late) > 0) {
				c.at(t.node, "%s: it is fixed when the whole run starts, and a var that it reads has its value only when this "+
					"child run does (vars beside workflow)", what)
				return "", false
			}
			v := c.variable(r.id)
			if _, given := c.from.given[r.id]; !given && v != nil && v.Required {
				return "", false
			}
		}
	}
	s, err := render(parts, &engine.Env{Vars: c.from.given})
	if err != nil {
		c.at(t.node, "%s: %v", what, err)
		return "", false
	}
	c.fixed[t.node] = s
	return s, true
}

func (c *values) variable(name string) *varDoc {
	i := slices.IndexFunc(c.world.vars, func(v varDoc) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &c.world.vars[i]
}

// condition compiles a bare boolean expression. A missing one is the zero Cond.
func (c *values) condition(t scalar, s scope, what string) engine.Cond {
	if !t.set() {
		return engine.Cond{}
	}
	code := c.expression(t, s, asCond, what)
	if code == nil {
		return engine.Cond{Source: t.value}
	}
	return engine.Cond{Source: t.value, Eval: func(env *engine.Env) (bool, error) {
		v, err := code.condition(env)
		if err != nil {
			return false, fmt.Errorf("%s: %s: %w", what, t.value, err)
		}
		return v, nil
	}}
}

// expression compiles a bare expression; nil if it does not compile.
func (c *values) expression(t scalar, s scope, m mode, what string) *program {
	code, faults := c.world.compile(t.value, s, m, c.near)
	for _, f := range faults {
		c.within(t.node, t.value, byteOffset(t.value, f.offset), "%s: %s", what, f.message)
	}
	return code
}

// value compiles a bare expression of any type.
func (c *values) value(t scalar, s scope, what string) engine.Value {
	if !t.set() {
		return engine.Value{}
	}
	code := c.expression(t, s, asValue, what)
	v := code.valueOf(t, what)
	if code != nil {
		v.Reads = c.world.readsOf(code)
	}
	return v
}

// valueOf returns the program of a text as its value; the program is nil if it does not compile.
func (p *program) valueOf(t scalar, what string) engine.Value {
	if p == nil {
		return engine.Value{Source: t.value}
	}
	return engine.Value{Source: t.value, Eval: func(env *engine.Env) (any, error) {
		v, err := p.value(env)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", what, t.value, err)
		}
		return v, nil
	}}
}

// readsOf returns the steps and gates that the program names; all of them if it computes a name.
func (w *world) readsOf(p *program) (out []string) {
	for _, r := range p.reads {
		switch all := map[string][]string{"steps": w.steps, "gates": w.gates}[r.root]; {
		case r.whole:
			out = append(out, all...)
		case all != nil && r.id != "":
			out = append(out, r.id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// varsOnly reports whether the program only reads vars.
func (p *program) varsOnly() bool {
	return !slices.ContainsFunc(p.reads, func(r reading) bool { return r.root != "vars" }) && !p.foreign()
}

// said reports whether the program reads what an agent said, beyond the attempt, the task and its
// status.
func (p *program) said() bool {
	return slices.ContainsFunc(p.reads,
		func(r reading) bool { return r.root == "vars" && p.theirs(r) || r.id == "" && !r.fact && p.theirs(r) })
}

// foreign reports whether the program reads what agents or people said during the run.
func (p *program) foreign() bool {
	return slices.ContainsFunc(p.reads, p.theirs)
}

// theirs reports whether agents or people influence what is read.
func (p *program) theirs(r reading) bool {
	if r.root == "vars" {
		return p.world.said[r.id] || r.whole && len(p.world.said) > 0
	}
	own := []string{"run", "workflow", "step", "attempt", "gate", "failures", "exhausted", "time"}
	return !slices.Contains(own, r.root)
}
