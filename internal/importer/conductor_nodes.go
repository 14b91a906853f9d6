package importer

import (
	"cmp"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/layout"
	"sluice/internal/shells"
)

// agent makes a step that an agent does; n is its node, which in a group's list is not the place's.
func (c *conductor) agent(x *place, n *yaml.Node, s *step) {
	s.role = c.role(n)
	var parts []string
	for _, key := range []string{"system_prompt", "prompt"} {
		p := get(n, key)
		if str(p) == "" {
			continue
		}
		words, whole := c.words(str(p), x)
		if !whole {
			c.near(p, "what stands between {%% %%}, and some filters, are not evaluated: the agent reads them as they are")
		}
		parts = append(parts, strings.TrimRight(words, "\n"))
	}
	c.inputs(n, x, &parts)
	for _, i := range items(at(c.doc.root, "workflow", "instructions")) {
		parts = append([]string{literal(str(i))}, parts...)
	}
	if s.prompt = strings.Join(parts, "\n\n"); s.prompt == "" {
		s.prompt = literal("Do the step " + x.name + ".")
	}
	if out := get(n, "output"); isMap(out) && len(pairs(out)) > 0 {
		s.answer = conductorSchema(out)
	}
	if tools := get(n, "tools"); isList(tools) && len(tools.Content) == 0 {
		s.reads = true
		c.near(tools, "`reads: true`: the agent has its tools, and what it writes does not count")
	}
	s.session = slugOrNone(str(get(n, "session_key")))
	s.timeout = cmp.Or(seconds(get(n, "max_session_seconds")), seconds(get(n, "timeout_seconds")))
	s.restarts = max(0, whole(at(n, "retry", "max_attempts"), 2, 100)-1)
	c.validator(n, s, x)
}

// role is who does an agent's node: its model and provider, so that the settings can tell.
func (c *conductor) role(n *yaml.Node) string {
	model := cmp.Or(str(get(n, "model")), str(at(c.doc.root, "workflow", "runtime", "default_model")))
	return roleOf(str(get(n, "provider")), model)
}

// inputs gives an agent the outputs that it names.
func (c *conductor) inputs(n *yaml.Node, x *place, parts *[]string) {
	var lines []string
	text := strings.Join(*parts, "\n")
	for _, ref := range texts(get(n, "input")) {
		ref = strings.TrimSuffix(ref, "?")
		expr, ok := c.value(ref, x)
		if ok && !strings.Contains(text, "${{"+expr) {
			lines = append(lines, "`"+ref+"`:\n${{"+expr+"}}")
		}
	}
	if len(lines) > 0 {
		*parts = append(*parts, "What it is about:\n\n"+strings.Join(lines, "\n\n"))
	}
}

// validator has an agent judge the answer by the criteria.
func (c *conductor) validator(n *yaml.Node, s *step, x *place) {
	v := get(n, "validator")
	criteria := str(get(v, "criteria"))
	if criteria == "" || x.inGroup {
		return
	}
	words, _ := c.words(criteria, x)
	g := &gate{id: c.ids.id(s.id + "-validator"), level: "auto", agent: "validator", prompt: words, pass: []string{"DONE"},
		onFail: s.id, maxFailures: 2, onExhausted: "human"}
	c.flow.judge(s, g)
}

// conductorSchema makes a JSON Schema of an output.
func conductorSchema(out *yaml.Node) *yaml.Node {
	var fields []field
	for _, p := range pairs(out) {
		fields = append(fields, field{p.key.Value, conductorField(p.value)})
	}
	return objectSchema(fields...)
}

func conductorField(n *yaml.Node) *yaml.Node {
	m := blockMap()
	for _, p := range pairs(n) {
		switch p.key.Value {
		case "type":
			if slices.Contains([]string{"string", "number", "boolean", "array", "object"}, str(p.value)) && !isTrue(get(n,
				"nullable")) {
				addText(m, "type", str(p.value))
			}
		case "description":
			addText(m, "description", str(p.value))
		case "enum", "minimum", "maximum", "minLength", "maxLength":
			add(m, p.key.Value, clone(p.value))
		case "items":
			add(m, "items", conductorField(p.value))
		case "properties":
			add(m, "properties", at(conductorSchema(p.value), "properties"))
		}
	}
	return m
}

// script makes a step of a command. A text that a shell runs becomes a file; one that values are put
// into is not run.
func (c *conductor) script(x *place, s *step) {
	command, args := str(get(x.n, "command")), texts(get(x.n, "args"))
	code := shells.CodeArgs(append([]string{command}, args...)) // places in both
	held := ""
	switch {
	case strings.Contains(command, "{{"):
		held = "its command has values in it"
	case slices.ContainsFunc(code, func(i int) bool { return strings.Contains(args[i-1], "{{") }):
		held = "values are put into a text that " + command + " runs as code"
	case get(x.n, "stdin") != nil:
		held = "ours gives a command no input"
	}
	if held != "" {
		c.leave(get(x.n, "command"), "it is not run (%s): a person is asked instead", held)
		c.flow.byHand(s, "conductor runs "+command+" here, and sluice does not ("+held+"). Do by hand what it does.")
		return
	}
	s.argv = []string{command}
	if command == "" {
		s.argv = []string{"true"}
	}
	shell := regexp.MustCompile(`^(ba|z|da)?sh$`)
	for i, a := range args {
		words, whole := c.words(a, x)
		if i == len(args)-1 && slices.Contains(code, i+1) && shell.MatchString(path.Base(command)) {
			s.argv, s.shell = nil, c.runs(c.flow, s.id+".sh", path.Base(command), a)
			break
		}
		if !whole {
			c.near(get(x.n, "args"), "what stands between {{ }} with filters stays as it is")
		}
		s.argv = append(s.argv, words)
	}
	for _, p := range pairs(get(x.n, "env")) {
		words, _ := c.words(str(p.value), x)
		if envName(p.key.Value) {
			s.env = append(s.env, entry{p.key.Value, words})
		}
	}
	s.timeout = seconds(get(x.n, "timeout"))
}

// wait makes a step that sleeps.
func (c *conductor) wait(x *place, s *step) {
	d := str(get(x.n, "duration"))
	m := regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?$`).FindStringSubmatch(d)
	if m == nil {
		c.near(get(x.n, "duration"), "the time is not fixed: 60 seconds stand here")
		m = []string{"", "60", "s"}
	}
	v, _ := strconv.ParseFloat(m[1], 64)
	v *= map[string]float64{"ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600}[m[2]]
	s.argv = []string{"sleep", strconv.FormatFloat(min(max(v, 0.001), 86400), 'f', -1, 64)}
	s.timeout = duration(v + 60)
}

// human makes a step without work whose gate asks a person to choose.
func (c *conductor) human(x *place, s *step) {
	words, _ := c.words(str(get(x.n, "prompt")), x)
	g := c.flow.ask(s, cmp.Or(words, "Choose."))
	for _, o := range items(get(x.n, "options")) {
		to, value := str(get(o, "route")), str(get(o, "value"))
		if to == x.passes {
			g.pass = []string{c.target(to)}
			g.prompt = strings.TrimRight(g.prompt, "\n") + "\npass: " + literal(str(get(o, "label")))
			continue
		}
		if name := slug(value, 40); g.route(name, c.target(to)) {
			g.prompt = strings.TrimRight(g.prompt, "\n") + "\n" + name + ": " + literal(str(get(o, "label")))
		}
	}
}

// questions has a person answer questions in words.
func (c *conductor) questions(x *place, s *step) {
	words, _ := c.words(str(get(x.n, "prompt")), x)
	if src := str(get(x.n, "source")); src != "" {
		if expr, ok := c.value(src, x); ok {
			words = strings.TrimRight(words, "\n") + "\n\nThe questions: ${{" + expr + "}}"
		}
	}
	for _, q := range items(get(x.n, "questions")) {
		words += "\n- " + literal(str(q)+str(get(q, "question")))
	}
	g := c.flow.ask(s, cmp.Or(words, "Answer the questions."))
	g.answer = objectSchema(field{"answers", textSchema("your answers")})
}

// child makes a step that runs another workflow, which is imported too.
func (c *conductor) child(x *place, n *yaml.Node, s *step) {
	at := get(n, "workflow")
	file := path.Join(path.Dir(c.doc.file), str(at))
	f, known := c.children[file]
	if !known && c.depth < maxChildren && len(c.flows) < maxSources {
		if _, err := c.src.read(file, maxSource); err != nil {
			c.leave(at, "%s: %v", str(at), err)
		} else if d, ok := c.open(at, file); ok {
			c.children[file] = nil // one that runs itself is not found again
			c.depth++
			f = c.conductorFlow(d)
			c.depth--
			c.children[file] = f
		}
	}
	if f == nil {
		c.leave(at, "the workflow is not imported: a person starts it")
		c.flow.byHand(s, "conductor runs the workflow "+str(at)+" here. Start it by hand.")
		return
	}
	s.workflow = f.id
	given := map[string]string{}
	for _, p := range pairs(get(n, "input_mapping")) {
		words, _ := c.words(str(p.value), x)
		given[varName(p.key.Value)] = words
	}
	for _, v := range f.vars {
		if w, ok := given[v.name]; ok {
			s.vars = append(s.vars, entry{v.name, w})
		} else if v.value == nil {
			c.flow.addVar(variable{name: v.name, description: v.description})
		}
	}
	s.gives = f.gives
}

// each makes a step for each entry of a list.
func (c *conductor) each(x *place, s *step) {
	src := get(x.n, "source")
	expr, ok := c.value(str(src), x)
	n := get(x.n, "agent")
	if !ok || c.listed || expr == "tasks" {
		c.leave(src, "a workflow of ours has one list, made of an answer: a person does this one")
		c.flow.byHand(s, "conductor does a step for each entry of "+str(src)+" here. Do it by hand.")
		return
	}
	c.listed = true
	s.tasks = entry{layout.RunsDir + "/${{run}}/files/" + s.id + ".json",
		`map(` + expr + ` ?? [], ({"id": "i" + string(#index + 1), "title": string(#), "item": #}))`}
	if n := get(x.n, "max_concurrent"); whole(n, 2, math.MaxInt32) > 0 {
		c.near(n, "one after another, as they work in one folder")
	}
	inner := &place{n: n, name: x.name, kind: "agent", inGroup: true, leave: s}
	if get(n, "workflow") != nil {
		c.child(inner, n, s)
	} else {
		as := str(get(x.n, "as"))
		if as != "" && as != "item" {
			n = renamed(n, as)
		}
		c.agent(inner, n, s)
	}
	c.account(get(x.n, "agent"), "for_each[].agent", x.name, &s.notes)
}

// renamed calls the loop's variable item in the prompts of an agent.
func renamed(n *yaml.Node, as string) *yaml.Node {
	out := shallow(n)
	re := regexp.MustCompile(`(\{\{-?\s*)` + regexp.QuoteMeta(as) + `\b`)
	for i := 1; i < len(out.Content); i += 2 {
		if v := resolve(out.Content[i]); v.Kind == yaml.ScalarNode {
			w := *v
			w.Value = re.ReplaceAllString(v.Value, "${1}item")
			out.Content[i] = &w
		}
	}
	return out
}
