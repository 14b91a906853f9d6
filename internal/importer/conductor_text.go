package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// jinjaToken is a token of a condition: a text, a number, a word with dots, or an operator.
const jinjaToken = `^\s*("[^"\\]*"|'[^'\\]*'|-?[0-9]+(?:\.[0-9]+)?|` +
	`[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*|==|!=|>=|<=|>|<|\(|\)|\[|\]|,)`

// condition translates a condition in Jinja, or in plain expressions over the step's own output.
func (c *conductor) condition(when string, x *place) (expr string, ok bool) {
	s := strings.TrimSpace(when)
	if strings.HasPrefix(s, "{{") && strings.HasSuffix(s, "}}") && strings.Count(s, "{{") == 1 {
		s = s[2 : len(s)-2]
	}
	token := regexp.MustCompile(jinjaToken)
	var out []string
	for strings.TrimSpace(s) != "" {
		m := token.FindStringSubmatch(s)
		if m == nil {
			return "", false
		}
		s = s[len(m[0]):]
		switch t := m[1]; {
		case t[0] == '"' || t[0] == '\'':
			out = append(out, strconv.Quote(t[1:len(t)-1]))
		case strings.ContainsAny(t[:1], "=!<>()[],-0123456789"), t == "and", t == "or", t == "not", t == "in":
			out = append(out, t)
		case t == "True", t == "true", t == "False", t == "false":
			out = append(out, strings.ToLower(t))
		default:
			v, ok := c.value(t, x)
			if !ok && !strings.Contains(t, ".") {
				v, ok = "answer."+t, x != nil && x.leave.answer != nil
			}
			if !ok {
				return "", false
			}
			out = append(out, v)
		}
	}
	return strings.Join(out, " "), len(out) > 0
}

// value is the expression for a reference in a template of x.
func (c *conductor) value(ref string, x *place) (expr string, ok bool) {
	parts := strings.Split(ref, ".")
	switch {
	case len(parts) == 3 && parts[0] == "workflow" && parts[1] == "input":
		return c.flow.addVar(variable{name: varName(parts[2]), value: quoted("")}), true
	case ref == "workflow.name":
		return "workflow", true
	case ref == "context.iteration":
		return "attempt", false // a gate does not know it
	case parts[0] == "output" && x != nil && (x.kind == "script" || x.kind == "set"):
		return c.value(x.name+"."+ref, x)
	case parts[0] == "output" && x != nil:
		return strings.Join(append([]string{"answer"}, parts[1:]...), "?."), true
	case len(parts) < 2 || parts[1] != "output" && parts[1] != "outputs":
		return "", false
	}
	y := c.byName[parts[0]]
	if y == nil {
		return "", false
	}
	rest := parts[2:]
	switch {
	case y.kind == "set":
		expr, ok := c.sets[strings.Join(append([]string{y.name}, rest...), ".")]
		return expr, ok
	case y.kind == "parallel" && len(rest) > 0 && c.byName[rest[0]] != nil:
		return answerOf(c.byName[rest[0]].enter, rest[1:]...), true
	case y.kind == "for_each":
		return "tasks", len(rest) == 0
	case y.kind == "script" && len(rest) == 1 && rest[0] == "stdout":
		return printed(y.enter, nil), true
	case y.kind == "script" && len(rest) == 1 && (rest[0] == "stderr" || rest[0] == "exit_code"):
		return fmt.Sprintf("(steps[%q]?.status ?? \"\")", y.enter), rest[0] == "stderr"
	case y.kind == "script" && len(rest) > 0:
		return printed(y.enter, rest), true
	case y.kind == "human_gate" || y.kind == "questions":
		return fmt.Sprintf("gates[%q]?.feedback", y.enter+"-gate"), true
	}
	return answerOf(y.enter, rest...), true
}

const jinjaValue = `\{\{-?\s*([A-Za-z_][A-Za-z0-9_.]*)\s*` +
	`(?:\|\s*(?:json|tojson|trim|string|default\([^(){}]*\)|join\([^(){}]*\))\s*)*-?\}\}`

// words puts ours in the place of a template's values. whole is false where something of it stays as
// text that conductor would evaluate.
func (c *conductor) words(s string, x *place) (out string, whole bool) {
	out = fill(s, regexp.MustCompile(jinjaValue), func(m []string) (string, bool) {
		ref := m[1]
		if ref == "item" || strings.HasPrefix(ref, "item.") {
			return embed("task." + ref), true
		}
		if ref == "context.iteration" {
			return embed("attempt"), true
		}
		value, ok := c.value(ref, x)
		return embed(value), ok
	})
	plain := regexp.MustCompile(`\$\{\{.*?\}\}`).ReplaceAllString(out, "")
	return out, !strings.Contains(plain, "{%") && !strings.Contains(plain, "{{")
}

// joined translates a template whose parts are texts and values into one expression.
func (c *conductor) joined(s string, x *place) (expr string, ok bool) {
	if expr, ok := c.condition(s, x); ok && strings.Contains(s, "{{") {
		return expr, true
	}
	re := regexp.MustCompile(jinjaValue)
	between := re.Split(s, -1)
	var out []string
	for i, m := range re.FindAllStringSubmatch(s, -1) {
		v, ok := c.value(m[1], x)
		if !ok {
			return "", false
		}
		if between[i] != "" {
			out = append(out, strconv.Quote(between[i]))
		}
		out = append(out, "string("+v+` ?? "")`)
	}
	s = between[len(between)-1]
	if strings.Contains(s, "{{") || strings.Contains(s, "{%") {
		return "", false
	}
	if s != "" || len(out) == 0 {
		out = append(out, strconv.Quote(s))
	}
	return strings.Join(out, " + "), true
}

// set translates the values of a set node, which others read in its place.
func (c *conductor) set(x *place) {
	if x.kind != "set" {
		return
	}
	if v := get(x.n, "value"); v != nil {
		expr, ok := c.joined(str(v), x)
		if !ok {
			c.leave(v, "the expression is not read: what reads it stays as it is")
			return
		}
		c.sets[x.name] = expr
	}
	for _, p := range pairs(get(x.n, "values")) {
		expr, ok := c.joined(str(p.value), x)
		if !ok {
			c.near(get(x.n, "values"), "%s is not read: what reads it stays as it is", p.key.Value)
			continue
		}
		c.sets[x.name+"."+p.key.Value] = expr
	}
}

// plainTests are the parts of a condition that name a value: what the output has, and what it is to be.
func plainTests(when string) (out [][2]string) {
	s := strings.Trim(when, "{} ")
	test := regexp.MustCompile(`(not )?\b(?:output\.)?([a-z_][a-z0-9_]*)\b\s*` +
		`(?:(==|>=|>|<|<=)\s*('[^']*'|"[^"]*"|[0-9.]+))?`)
	for _, m := range test.FindAllStringSubmatch(s, -1) {
		switch {
		case m[2] == "and" || m[2] == "or" || m[2] == "not" || m[2] == "output" || m[2] == "true" || m[2] == "false":
		case m[3] == "":
			out = append(out, [2]string{m[2], strconv.FormatBool(m[1] == "")})
		case m[3] == "==" || m[3] == ">=" || m[3] == "<=":
			out = append(out, [2]string{m[2], strings.Trim(m[4], `'"`)})
		case m[3] == ">":
			out = append(out, [2]string{m[2], "100"})
		}
	}
	return out
}
