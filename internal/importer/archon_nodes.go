package importer

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// node makes the step of a node, and its gate.
func (a *archon) node(x *archonNode) {
	s := &step{id: x.id, name: str(get(x.n, "description")), needs: x.deps, wantsNeeds: len(x.deps) == 0 &&
		len(a.flow.steps) > 0}
	x.step = s
	a.flow.steps = append(a.flow.steps, s)
	s.when = a.whenOf(x)
	switch x.kind {
	case "prompt", "command", "include":
		a.agent(x, s)
	case "loop":
		a.agent(x, s)
		a.loop(x, s)
	case "bash":
		a.shell(x, s)
	case "script":
		a.script(x, s)
	case "approval":
		a.approval(x, s)
	case "cancel":
		s.next = []string{"ABORTED"}
		s.notes = append(s.notes, "why it ends: "+str(get(x.n, "cancel")))
	case "workflow":
		a.child(x, s)
	case "loop_group":
		a.flow.byHand(s, "Archon repeats a group of nodes here. Do it by hand, or make steps of it.")
	}
	a.unconditional(x, s)
	a.timing(x, s)
	a.context(x, s)
	a.joins(x)
	a.account(x.n, "nodes[]", x.of, &s.notes)
}

// agent makes a step that an agent does.
func (a *archon) agent(x *archonNode, s *step) {
	s.role = a.role(x)
	body, command := str(get(x.n, "prompt")), str(get(x.n, "command"))
	if l := get(x.n, "loop"); l != nil {
		body, command = str(get(l, "prompt")), str(get(l, "command"))
	}
	switch {
	case command != "":
		s.prompt = a.command(x, s, command)
	case body != "":
		s.prompt = a.words(body, x)
	default:
		s.prompt = "This stood for the workflow " + literal(str(get(x.n, "include"))) + ", which was not found at the import."
	}
	if sys := str(get(x.n, "systemPrompt")); sys != "" {
		s.prompt = a.words(sys, x) + "\n\n" + s.prompt
	}
	if format := get(x.n, "output_format"); isMap(format) {
		s.answer = clone(format)
	} else if x.read {
		s.answer = objectSchema(field{"output", textSchema("what those who come next read as the output of this step")})
	}
	a.tools(x, s)
}

// role is who does a node: the model and provider that it names, so that the settings can tell.
func (a *archon) role(x *archonNode) string {
	of := func(key string) string { return cmp.Or(str(get(x.n, key)), str(get(a.doc.root, key))) }
	return roleOf(of("provider"), of("model"))
}

// tools reads lists of tools: an agent without any that writes only reads.
func (a *archon) tools(x *archonNode, s *step) {
	writes := func(tool string) bool {
		tool, _, _ = strings.Cut(tool, "(")
		return slices.Contains([]string{"Write", "Edit", "MultiEdit", "NotebookEdit", "Bash"}, tool)
	}
	allowed, denied := get(x.n, "allowed_tools"), get(x.n, "denied_tools")
	if isList(allowed) && !slices.ContainsFunc(texts(allowed), writes) {
		s.reads = true
		a.near(allowed, "`reads: true`: the agent has its tools, and what it writes does not count")
	}
	all := texts(denied)
	if slices.Contains(all, "Write") && slices.Contains(all, "Edit") && slices.Contains(all, "Bash") {
		s.reads = true
		a.near(denied, "`reads: true`: the agent has its tools, and what it writes does not count")
	}
}

// commandFile is where a command's text is; "" = nowhere in the tree.
func (a *archon) commandFile(name string) string {
	for _, f := range a.src.find(path.Base(name) + ".md") {
		if slices.Contains(strings.Split(f, "/"), "commands") {
			return f
		}
	}
	return ""
}

// command writes a command's file as a prompt file and returns the step's prompt.
func (a *archon) command(x *archonNode, s *step, name string) string {
	n := cmp.Or(get(x.n, "command"), at(x.n, "loop", "command"))
	file := a.commandFile(name)
	if file == "" {
		a.leave(n, "no file %s.md was found in a folder commands of this tree: write the prompt", path.Base(name))
		return "Do the command " + literal(name) + " of Archon, whose text was not found at the import."
	}
	words, err := a.src.text(file)
	if err != nil {
		a.fail(n, "command %q: %s: %v", name, a.src.name(file), err)
		return ""
	}
	to := a.prompt(a.flow, path.Base(name), words)
	s.context = append(s.context, to)
	return "Do what `" + to + "` says.\n" + glossary(words, regexp.MustCompile(archonAll),
		func(m []string) (string, bool) { return a.reference(m, x) })
}

// outsideNames are the variables of a script whose values come from outside.
func outsideNames() []string {
	return []string{"ARGUMENTS", "USER_MESSAGE", "BASE_BRANCH", "DOCS_DIR", "CONTEXT", "EXTERNAL_CONTEXT", "ISSUE_CONTEXT",
		"LOOP_USER_INPUT", "LOOP_PREV_OUTPUT", "REJECTION_REASON"}
}

// shell makes a step of a shell text, which becomes a file; values come by the environment.
func (a *archon) shell(x *archonNode, s *step) {
	n := get(x.n, "bash")
	ref := regexp.MustCompile(`^` + archonRef)
	values := map[string]string{}
	got := fit(str(n), outsideNames(), func(t string) (string, int) {
		m := ref.FindStringSubmatch(t)
		if m == nil {
			return "", 0
		}
		e, ok := a.output(m[1], m[2], x.scope)
		if !ok {
			return "", 0
		}
		name := strings.ToUpper(varName(m[1] + "_output" + strings.ReplaceAll(m[2], ".", "_")))
		values[name] = embed(e)
		return name, len(m[0])
	})
	if got.why != "" {
		file := a.unrun(a.flow, x.id+".sh", str(n))
		a.leave(n, "the script is not run (%s): a person is asked instead; it is in %s", got.held(), file)
		a.flow.byHand(s, "Archon runs a script here that sluice does not ("+got.held()+"). It is in "+file+
			": look at it, do by hand what it does, or make it a `run` of this step.")
		return
	}
	for _, name := range got.reads {
		value, known := values[name]
		if !known {
			value = a.variable(name, x)
		}
		s.env = append(s.env, entry{name, value})
	}
	head := "# Imported: what Archon puts into this text comes by the environment.\n" +
		": \"${ARTIFACTS_DIR:=$SLUICE_FILES}\"\n" +
		"WORKFLOW_ID=$SLUICE_RUN\nexport ARTIFACTS_DIR WORKFLOW_ID\n"
	s.shell = a.runs(a.flow, x.id+".sh", "bash", head+got.text)
}

// script makes a step of code for bun or uv, inline or in a file of the tree.
func (a *archon) script(x *archonNode, s *step) {
	n, runtime := get(x.n, "script"), str(get(x.n, "runtime"))
	text, with, ext := str(n), "bun run", ".ts"
	if runtime == "uv" {
		with, ext = "uv run", ".py"
	}
	if !strings.ContainsAny(text, "\n;( ") {
		found := a.src.find(text+".ts", text+".js", text+".py")
		if len(found) == 0 {
			a.leave(n, "no script %q was found in this tree", text)
			a.flow.byHand(s, "Archon runs the script "+text+" here, which was not found at the import.")
			return
		}
		b, err := a.src.text(found[0])
		if err != nil {
			a.fail(n, "script %q: %v", text, err)
			return
		}
		text, ext = b, path.Ext(found[0])
	} else if regexp.MustCompile(archonRef).MatchString(text) {
		a.leave(n, "a value of another node is put into its code: the script is not run, a person is asked instead")
		a.flow.byHand(s, "Archon puts values of other nodes into the code of a script here. Do by hand what it does.")
		return
	}
	s.shell = `export ARTIFACTS_DIR="$SLUICE_FILES" WORKFLOW_ID="$SLUICE_RUN"; ` + a.runs(a.flow, x.id+ext, with, text)
	for _, p := range pairs(get(x.n, "with")) {
		s.env = append(s.env, entry{"INPUTS_" + strings.ToUpper(varName(p.key.Value)), a.words(str(p.value), x)})
	}
	if strings.Contains(text, "ARGUMENTS") {
		s.env = append(s.env, entry{"ARGUMENTS", a.variable("ARGUMENTS", x)})
	}
}

// timing reads time-outs, in milliseconds there, and launches.
func (a *archon) timing(x *archonNode, s *step) {
	ms := func(key string) string {
		n := get(x.n, key)
		v, err := strconv.ParseFloat(str(n), 64)
		if n == nil || err != nil || v <= 0 || v > 30*24*3600*1000 || s.workflow != "" || s.role == "" && s.shell == "" {
			if n != nil {
				a.leave(n, "it has no meaning here")
			}
			return ""
		}
		return duration(v / 1000)
	}
	s.timeout, s.idle = ms("timeout"), ms("idle_timeout")
	if s.workflow == "" {
		s.restarts = whole(at(x.n, "retry", "max_attempts"), 1, 100)
	}
}

// context reads whether a node goes on with another's conversation.
func (a *archon) context(x *archonNode, s *step) {
	c := get(x.n, "context")
	switch {
	case c == nil || str(c) == "fresh":
	case str(c) == "shared":
		s.session = "shared"
		a.near(c, "one conversation, named shared, of the steps that say so")
	default:
		if y := a.named(str(get(c, "resume")), x.scope); y != nil && y.step != nil && s.role != "" {
			y.step.session, s.session = y.id, y.id
			a.take(c)
		}
	}
}
