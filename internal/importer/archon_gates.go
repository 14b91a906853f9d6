package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// loop makes the gate that sends a loop's step back to itself.
func (a *archon) loop(x *archonNode, s *step) {
	l := get(x.n, "loop")
	n := get(l, "max_iterations")
	most := whole(n, 1, 1000)
	if most == 0 {
		most = 10
		a.near(n, "ours is a number from 1 to 1000: 10 stands here")
	}
	if !isTrue(get(l, "fresh_context")) {
		s.session = s.id
	}
	g := &gate{id: x.gateID(), level: "auto", fromStep: true, pass: []string{"DONE"}, onFail: s.id, maxFailures: most,
		onExhausted: "FAILED", verdict: []entry{{"again", "not answer.done"}, {"pass", "true"}},
		routes: []entry{{"again", s.id}}}
	g.notes = append(g.notes, fmt.Sprintf("the loop: at most %d times in all", most))
	a.until(x, s, l)
	a.flow.judge(s, g)
	a.untilBash(x, l, g)
	if isTrue(get(l, "interactive")) {
		a.interactive(x, l, g)
	}
}

// until asks for the loop's end in the answer.
func (a *archon) until(x *archonNode, s *step, l *yaml.Node) {
	word := str(get(l, "until"))
	if f := str(get(l, "until_field")); f != "" && s.answer != nil {
		word = f
	}
	done := field{"done", describe(kindSchema("boolean"), "true: the work of all iterations is finished")}
	if s.answer != nil && get(x.n, "output_format") != nil {
		addField(s.answer, done)
	} else {
		s.answer = objectSchema(done, field{"output", textSchema("what this iteration did, for those who come next")})
	}
	s.prompt += "\n\nThis is one iteration of a loop. Say `done: true` in your answer where this text asks you to say `" +
		literal(strings.ReplaceAll(word, "`", "'")) + "`, else `done: false`."
	a.flow.plays(s, map[string]string{"done": "true"})
}

// untilBash has a command decide: the loop ends when it exits 0.
func (a *archon) untilBash(x *archonNode, l *yaml.Node, g *gate) {
	n := get(l, "until_bash")
	if str(n) == "" {
		return
	}
	got := fit(str(n), outsideNames(), noRefs)
	if got.why != "" || len(got.reads) > 0 {
		a.leave(n, "values from outside are put into it: only the step's own word ends the loop")
		return
	}
	last := &gate{id: g.id + "-until", level: "auto", pass: g.pass, onFail: x.id, maxFailures: g.maxFailures,
		onExhausted: "FAILED", run: a.runs(a.flow, x.id+"-until.sh", "bash",
			": \"${ARTIFACTS_DIR:=$SLUICE_FILES}\"\nexport ARTIFACTS_DIR\n"+got.text)}
	g.pass, g.passGate = nil, last.id
	a.flow.gates = append(a.flow.gates, last)
	a.near(n, "the loop ends when the step says so and this command exits 0; there one of them is enough")
}

// interactive has a person look at each iteration.
func (a *archon) interactive(x *archonNode, l *yaml.Node, g *gate) {
	g.level, g.fromStep, g.verdict, g.routes, g.onExhausted = "human", false, nil, nil, ""
	g.prompt = a.words(str(get(l, "gate_message")), x)
	g.prompt = cmp.Or(g.prompt, "Pass ends the loop; fail, with your words, makes another iteration.")
	g.notes = append(g.notes, "a person's pass ends the loop, also where the agent says that it is not done")
}

// approval makes a step without work whose gate asks a person.
func (a *archon) approval(x *archonNode, s *step) {
	n := get(x.n, "approval")
	g := a.flow.ask(s, cmp.Or(a.words(str(get(n, "message")), x), "Go on?"))
	if isTrue(get(n, "capture_response")) || x.read {
		g.answer = objectSchema(field{"response", textSchema("what you answer")})
	}
	if r := get(n, "on_reject"); isMap(r) {
		a.rework(x, s, r, g)
	}
	if ds := get(n, "decisions"); ds != nil {
		var names []string
		for _, d := range items(ds) {
			names = append(names, str(get(d, "id")))
		}
		a.near(ds, "the person says which in the answer's `decision`: %s", strings.Join(names, ", "))
		g.answer = objectSchema(field{"decision", enumSchema(names)}, field{"response", textSchema("what you say to it")})
	}
}

// unconditional leaves out the condition of a step whose gate asks a person: what an agent said may
// not pass over a person.
func (a *archon) unconditional(x *archonNode, s *step) {
	if s.when == "" || s.gate == nil || s.gate.level != "human" {
		return
	}
	s.when = ""
	for _, c := range x.when {
		a.leave(c.n, "a person is asked whatever an agent said: this condition is left out")
	}
	s.notes = append(s.notes, "other: there it may be skipped; here a person is asked whatever an agent said")
}

// rework makes the step that an agent does when the person says no.
func (a *archon) rework(x *archonNode, s *step, r *yaml.Node, g *gate) {
	fix := &step{id: a.ids.id(x.id + "-rework"), role: a.role(x), prompt: a.words(str(get(r, "prompt")), x),
		next: []string{s.id}}
	if len(x.deps) > 0 { // the work is between what came before and the question
		fix.notes = append(fix.notes, "only when the person says no")
	}
	g.onFail = fix.id
	g.maxFailures = whole(get(r, "max_attempts"), 1, math.MaxInt32)
	a.flow.steps = append(a.flow.steps, fix)
}

// child makes a step that runs another workflow, which is imported too.
func (a *archon) child(x *archonNode, s *step) {
	n := get(x.n, "workflow")
	name := str(n)
	f, ok := a.children[name]
	if !ok {
		d, ok := a.workflow(n, name)
		if !ok {
			a.leave(n, "no workflow %q was found in this tree", name)
			a.flow.byHand(s, "Archon runs the workflow "+name+" here, which was not found at the import.")
			return
		}
		if a.depth >= maxChildren || len(a.flows) >= maxSources {
			a.leave(n, "child runs are at most 4 deep, and 60 in all")
			a.flow.byHand(s, "Archon runs the workflow "+name+" here. Start it by hand.")
			return
		}
		a.depth++
		a.children[name] = a.flow // while it is read, so that one that runs itself is a fault of ours
		f = a.archonFlow(d)
		a.children[name] = f
		a.depth--
	}
	s.workflow = f.id
	a.given(x, s, f)
}

// given gives a child run its values.
func (a *archon) given(x *archonNode, s *step, child *flow) {
	for _, v := range child.vars {
		switch value := get(x.n, "with"); {
		case v.name == "arguments" && str(get(x.n, "input")) != "":
			s.vars = append(s.vars, entry{v.name, a.words(str(get(x.n, "input")), x)})
		case isMap(value):
			for _, p := range pairs(value) {
				if varName(p.key.Value) == v.name {
					s.vars = append(s.vars, entry{v.name, a.words(str(p.value), x)})
				}
			}
		case v.name == "arguments":
			s.vars = append(s.vars, entry{v.name, a.variable("ARGUMENTS", x)})
		}
	}
}

// joinOf is the only node after x, if it takes a failure of x; "" if there is none.
func (a *archon) joinOf(x *archonNode) string {
	join := ""
	for _, y := range a.nodes {
		if slices.Contains(y.deps, x.id) {
			if join != "" || y.rule != "all_done" && y.rule != "one_success" {
				return ""
			}
			join = y.id
		}
	}
	return join
}

// joins says where a join takes less than there: a failure of a step that others wait for as well
// ends the run.
func (a *archon) joins(x *archonNode) {
	if x.rule != "all_done" && x.rule != "one_success" {
		return
	}
	for _, y := range a.nodes {
		if slices.Contains(x.deps, y.id) && a.joinOf(y) == "" && y.kind != "approval" {
			a.near(get(x.n, "trigger_rule"), "a failure of %s ends the run, as others wait for it as well", y.id)
		}
	}
}

// edges says what comes after each step.
func (a *archon) edges() {
	for _, x := range a.nodes {
		if s := x.step; s.gate == nil && len(s.next) == 0 {
			if join := a.joinOf(x); join != "" {
				s.next, s.onFail = []string{join}, join
				continue
			}
			s.next = []string{"DONE"}
		}
	}
	for _, x := range a.nodes { // what leads to a join by next_step is not in its needs
		if join := a.flow.step(x.step.onFail); join != nil {
			join.needs = slices.DeleteFunc(slices.Clone(join.needs), func(n string) bool { return n == x.id })
		}
	}
}
