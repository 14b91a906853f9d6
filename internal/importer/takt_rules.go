package importer

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// splitCondition splits a condition into its label and what it asks of the state.
func splitCondition(c string) (label, when string) {
	c = strings.TrimSpace(c)
	i := strings.Index(c, "when(")
	switch {
	case i < 0 || !strings.HasSuffix(c, ")"):
		return c, ""
	case i == 0:
		return "", c[5 : len(c)-1]
	}
	if head := strings.TrimSpace(c[:i]); strings.HasSuffix(head, "&&") {
		return strings.TrimSpace(strings.TrimSuffix(head, "&&")), c[i+5 : len(c)-1]
	}
	return c, ""
}

const structuredAtom = `structured\.([A-Za-z_][\w-]*)\.([\w.]+)\s*(==|!=)\s*("[^"]*"|true|false|-?[0-9.]+)`

// structuredFields are the parts of a step's answer that a condition reads.
func structuredFields(condition, step string) (out []string) {
	for _, m := range regexp.MustCompile(structuredAtom).FindAllStringSubmatch(condition, -1) {
		if m[1] == step && !strings.Contains(m[2], ".") {
			out = append(out, m[2])
		}
	}
	return out
}

// state translates what a condition asks of the state; ok is false where ours knows nothing of it.
func (t *takt) state(when string) (expr string, ok bool) {
	if when == "" || when == "true" {
		return "true", true
	}
	atom := regexp.MustCompile(`^\s*` + structuredAtom + `\s*`)
	return conjunction(when, atom, func(m []string) (string, bool) {
		x := t.byName[m[1]]
		if x == nil {
			return "", false
		}
		value := answerOf(x.enter, strings.Split(m[2], ".")...)
		return fmt.Sprintf("string(%s ?? \"\") %s %s", value, m[3], strconv.Quote(strings.Trim(m[4], `"`))), true
	})
}

// condition translates the condition of a rule of x.
func (t *takt) condition(x *taktStep, r taktRule) (expr string, ok bool) {
	label, when := splitCondition(r.condition)
	state, ok := t.state(when)
	if !ok {
		return "", false
	}
	said := ""
	switch m := regexp.MustCompile(`^(all|any)\((.*)\)$`).FindStringSubmatch(label); {
	case m != nil && len(x.children) > 0:
		said = aggregate(x, m[1], strings.Split(m[2], `", "`))
	case m != nil:
		return "", false
	case label != "":
		said = fmt.Sprintf("answer.outcome == %s", strconv.Quote(label))
	}
	switch {
	case said == "":
		return state, true
	case state == "true":
		return said, true
	}
	return said + " and " + state, true
}

// aggregate translates all() and any() over the children of x.
func aggregate(x *taktStep, which string, words []string) string {
	for i, w := range words {
		words[i] = strings.Trim(strings.TrimSpace(w), `"`)
	}
	var out []string
	for i, c := range x.children {
		status, said := "steps["+strconv.Quote(c.step.id)+"]?.status", answerOf(c.step.id, "outcome")
		if which == "any" {
			for _, w := range words {
				if w == "error" {
					out = append(out, status+` == "failed"`)
				} else {
					out = append(out, said+" == "+strconv.Quote(w))
				}
			}
			continue
		}
		one := said + " == " + strconv.Quote(words[min(i, len(words)-1)])
		if c.pool {
			one = "(" + status + ` == "skipped" or ` + one + ")"
		}
		out = append(out, one)
	}
	if which == "any" {
		return "(" + strings.Join(out, " or ") + ")"
	}
	return strings.Join(out, " and ")
}

// outcome is one that a gate of ours has: a name, its condition and where it leads.
type outcome struct{ name, expr, to string }

// gate makes what comes after x: a gate that computes the outcome, or the next step where there is
// but one.
func (t *takt) gate(x *taktStep) {
	s := x.leave
	if s.gate != nil { // a person does it
		t.byHandRoutes(x)
		return
	}
	if str(get(x.n, "mode")) == "system" || get(x.n, "effects") != nil {
		t.flow.byHand(s, "takt does the step "+x.name+" itself: do by hand what it says, then pass or name where it goes on.")
		t.byHandRoutes(x)
		return
	}
	outs, failTo, why := t.outcomes(x)
	if why != "" {
		t.flow.byHand(s, "takt decides here by what ours does not know ("+why+"): pass, or name where it goes on.")
		t.byHandRoutes(x)
		return
	}
	if len(outs) == 1 && outs[0].name == "pass" && failTo == "" {
		s.next = []string{outs[0].to}
		return
	}
	g := &gate{id: s.id + "-gate", level: "auto", fromStep: true, pass: []string{t.target(x.passes)}, onFail: failTo,
		maxFailures: t.bound(x)}
	for _, o := range outs {
		g.verdict = append(g.verdict, entry{o.name, o.expr})
		if o.name != "pass" && o.name != "human" {
			g.routes = append(g.routes, entry{o.name, o.to})
		}
	}
	t.flow.judge(s, g)
	for _, r := range x.rules {
		name := returnName(r.word)
		if r.word != "" && slices.ContainsFunc(outs, func(o outcome) bool { return o.name == name }) {
			t.returns = append(t.returns, taktReturn{g.id, name, r.word})
		}
	}
}

func returnName(word string) string { return "return-" + slug(word, 40) }

// target is where a name leads: the first step of ours of a step, or an end.
func (t *takt) target(name string) string {
	switch {
	case name == "" || name == "COMPLETE":
		return "DONE"
	case name == "ABORT":
		return "ABORTED"
	}
	return t.byName[name].enter
}

// outcomes are the outcomes of x in the order of its rules; failTo is where a failed child run leads.
// why says what of them has no counterpart.
func (t *takt) outcomes(x *taktStep) (outs []outcome, failTo, why string) {
	var before []string
	for _, r := range x.rules {
		if x.callee != nil && r.condition == "ABORT" {
			failTo = t.target(r.next)
			continue
		}
		expr, ok := t.condition(x, r)
		if !ok {
			return nil, "", strings.Join(strings.Fields(r.condition), " ")
		}
		o := outcome{expr: expr, to: t.target(r.next)}
		switch {
		case r.asks:
			o.name = "human"
		case r.word != "":
			o.name, o.to = returnName(r.word), "DONE"
		case r.next == x.passes && x.passes != "":
			o.name = "pass"
		default:
			o.name = routeTo(r.next)
		}
		if at := slices.IndexFunc(outs, func(e outcome) bool { return e.name == o.name }); at >= 0 {
			// The first true one wins: this one only where none between held.
			outs[at].expr = fmt.Sprintf("(%s) or (%s%s)", outs[at].expr, negated(before[at+1:]), o.expr)
		} else {
			outs = append(outs, o)
		}
		before = append(before, expr)
	}
	if len(outs) == 0 {
		outs = []outcome{{"pass", "true", t.target(x.passes)}}
	}
	return outs, failTo, ""
}

// negated says that none of the conditions holds.
func negated(conds []string) string {
	out := ""
	for _, c := range conds {
		if !strings.HasPrefix(c, "answer.outcome == ") { // labels exclude one another
			out += "not (" + c + ") and "
		}
	}
	return out
}

// byHandRoutes lets a person at the gate of x say where the work goes on.
func (t *takt) byHandRoutes(x *taktStep) {
	g := x.leave.gate
	g.pass = []string{t.target(x.passes)}
	for _, r := range x.rules {
		switch {
		case r.word == "" && r.next != x.passes:
			g.route(routeTo(r.next), t.target(r.next))
		case r.word != "" && g.route(returnName(r.word), "DONE"):
			t.returns = append(t.returns, taktReturn{g.id, returnName(r.word), r.word})
		}
	}
	x.leave.when = ""
}

// bound is how often the work of x goes back before a person is asked.
func (t *takt) bound(x *taktStep) int {
	n := 0
	for _, m := range items(get(t.doc.root, "loop_monitors")) {
		if slices.Contains(texts(get(m, "cycle")), x.name) {
			n = max(n, whole(get(m, "threshold"), 1, math.MaxInt32))
		}
	}
	switch {
	case n > 0:
		return min(n+1, 1000)
	case t.most > 0:
		return min(t.most, 1000)
	}
	return 20
}

// monitors writes the limit of the run.
func (t *takt) monitors() {
	if t.most == 0 || t.err != nil {
		return
	}
	wide := 1
	for _, x := range t.nodes {
		wide = max(wide, len(x.children)+2)
	}
	t.flow.limits = append(t.flow.limits, entry{"max_steps", strconv.Itoa(min(t.most*wide, 1_000_000))})
}
