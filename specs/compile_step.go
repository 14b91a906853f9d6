package specs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/layout"
)

// step compiles one step. Without an id, it is checked as far as possible.
func (c *stepRows) step(d *stepDoc) {
	what := "step " + d.ID.value
	if !d.ID.set() {
		what = "a step"
	}
	s := &engine.Step{ID: d.ID.value, Name: orID(d.Name, d.ID)}
	c.doer(d, s, what)
	s.Env = c.env(d.Env, what)
	s.Inputs = c.paths(d.Inputs, inStep, what+": inputs")
	s.Outputs = c.outputs(d.Outputs, inDone, what+": outputs")
	for _, cr := range d.Criteria.items {
		s.Criteria = append(s.Criteria, c.criterion(cr, what+": success_criterion"))
	}
	s.Setup = c.setup(d.Setup, what+": setup")
	if !d.Workflow.set() { // beside workflow it is no schema
		s.Answer = c.schema(d.Answer, what+": answer")
	}
	s.Timeout = c.positiveSpan(d.Timeout, what+": timeout")
	s.IdleTimeout = c.positiveSpan(d.IdleTimeout, what+": idle_timeout")
	s.Restarts = c.restarts(d.Restarts, what+": restarts")
	s.When = c.condition(d.When.scalar, inStep, what+": when")
	c.needs(d, s, what)
	c.next(d, s, what)
	s.Signal = c.signal(d, s, what)
	s.On = workersOf(&c.values, d, s, what+": on")
	c.children(d, s, what)
	if d.ID.set() && c.steps[d.ID.value] == d {
		c.spec.Steps = append(c.spec.Steps, s)
	}
}

// doer checks who does the step: exactly one of agent, run, workflow; but agent may accompany run.
func (c *stepRows) doer(d *stepDoc, s *engine.Step, what string) {
	agent, run, child := d.has("agent"), d.has("run"), d.has("workflow")
	switch {
	case !agent && !run && !child && d.isWaypoint():
		s.Run = &engine.Command{Argv: []engine.Text{{Source: "true"}}}
		c.notes.at(d.Node, "%s has no work: it only says where the run goes on (give it agent, run or workflow if it is "+
			"to do something)", what)
		return
	case !agent && !run && !child:
		c.at(d.Node, "%s does nothing: give it one of agent, run, workflow", what)
	case d.has("vars") && !child:
		c.at(d.key("vars"), "%s: vars are what a child run is given: they go with workflow", what)
	case child && (agent || run):
		c.at(d.key("workflow"), "%s: workflow stands alone: remove agent and run, or workflow", what)
	}
	s.Run = c.command(d.Run, inStep, what+": run")
	if d.Agent == nil {
		return
	}
	a := d.Agent
	s.Agent = &engine.Agent{
		Type: a.Type.value, Launch: engine.LaunchHeadless,
		Worktree: c.path(a.Worktree, inStep, what+": worktree", badPath),
		Branch:   c.text(a.Branch, inStep, what+": branch", badBranch),
		Context:  c.fixedPaths(a.Context, what+": context"),
		Prompt:   c.text(c.whole(a.Prompt, what+": prompt"), inStep, what+": prompt", nil),
		Session:  c.session(a.Session, inStep, what+": session"),
	}
	if a.Branch.set() && !strings.Contains(a.Branch.value, "${{") {
		if bad := badBranch(a.Branch.value); bad != "" {
			c.at(a.Branch.node, "%s: branch %s %s", what, quote(a.Branch.value), bad)
		}
	}
	if w := c.doc.Workflow; w != nil && w.Workspace.value == engine.WorkspaceRun && a.Branch.set() && !a.Worktree.set() {
		c.at(a.Branch.node, "%s: branch %s: the run's worktree has a branch of its own: remove the branch, or name a "+
			"worktree for it", what, quote(a.Branch.value))
	}
	if a.Launch.value != "" {
		s.Agent.Launch = a.Launch.value
	}
	if a.Type.set() {
		if bad := ids.Fault(a.Type.value); bad != "" {
			c.at(a.Type.node, "%s: agent type %s %s", what, quote(a.Type.value), bad)
		}
	}
	if s.Agent.Reads = c.yes(a.Reads, what+": agent: reads"); s.Agent.Reads {
		c.reads(d, s, what)
	}
	if !run {
		return
	}
	for key, t := range map[string]scalar{"prompt": a.Prompt, "session": a.Session, "launch": a.Launch} {
		if t.set() && t.value != engine.LaunchHeadless {
			c.at(t.node, "%s: agent.%s has no meaning beside run: there the agent gives worktree, branch and the role only",
				what, key)
		}
	}
}

// reads checks a step that only looks: nothing it leaves in its folder is taken.
func (c *stepRows) reads(d *stepDoc, s *engine.Step, what string) {
	const why = "it only looks (agent.reads), and nothing that it leaves in its folder is taken"
	a := d.Agent
	if s.Agent.Launch != engine.LaunchHeadless {
		c.at(a.Launch.node, "%s: launch: %s: %s: whoever takes an offered step works in the folder itself: remove "+
			"launch or reads", what, quote(a.Launch.value), why)
	}
	if a.Branch.set() {
		c.at(a.Branch.node, "%s: branch %s: %s: name the worktree whose work it looks at, without a branch", what,
			quote(a.Branch.value), why)
	}
	if sig := d.Signal; sig != nil && (sig.Type.value == engine.SignalCommit || sig.Type.value == engine.SignalPull) {
		c.at(sig.Type.node, "%s: signal: %s: %s, so no commit of its own can say that it is done: take stdout_exit or "+
			"sentinel_file", what, sig.Type.value, why)
	}
	for _, o := range d.Outputs.items {
		if d.ForEach != nil {
			break // those of the list
		}
		switch below, _, _ := strings.Cut(path.Clean(o.path.value), "/"); {
		case !o.value.set():
			c.at(o.path.node, "%s: outputs: %s: %s: give it an answer, and have sluice write the file: "+
				"{.workflow/runs/${{run}}/files/%s: answer}", what, quote(o.path.value), why, path.Base(o.path.value))
		case below != layout.WorkflowDir:
			c.at(o.path.node, "%s: outputs: %s: %s: have sluice write it below .workflow/, as in "+
				".workflow/runs/${{run}}/files/%s", what, quote(o.path.value), why, path.Base(o.path.value))
		}
	}
	for _, cr := range d.Criteria.items {
		if cr.folder {
			c.at(d.key("success_criterion"),
				"%s: success_criterion: folder: true: %s: it has no folder of its own: remove folder", what, why)
			break
		}
	}
}

// workersOf returns the labels of the workers that may do the step, if a worker can.
func workersOf(c *values, d *stepDoc, s *engine.Step, what string) (out []string) {
	if d.On.node == nil || d.Workflow.set() { // beside workflow it means nothing: see ownOnly
		return nil
	}
	why := ""
	switch w := c.doc.Workflow; {
	case s.Offered():
		why = fmt.Sprintf("who takes an offered step (launch: %s) does it where they are: remove launch", s.Agent.Launch)
	case s.Signal.Type == engine.SignalCommit || s.Signal.Type == engine.SignalPull:
		why = fmt.Sprintf("nothing on a worker can signal by %s: take stdout_exit or sentinel_file", s.Signal.Type)
	case s.Reads():
	case d.Agent != nil && d.Agent.Worktree.set():
		why = "a worker has the run's own worktree and no other: remove worktree"
	case w != nil && w.Workspace.value != engine.WorkspaceRun && len(c.from.above) == 0:
		why = "only the work of a run with its own worktree can travel: add workspace: run to the workflow"
	}
	if why != "" {
		c.at(d.On.node, "%s: %s, or remove on", what, why)
	}
	for _, t := range d.On.items {
		out = append(out, t.value)
	}
	return out
}

// waypointKeys are the keys of a step without work.
func waypointKeys() []string {
	return []string{"id", "name", "gate", "next_step", "on_fail", "needs", "when"}
}

// isWaypoint reports whether the step only directs the run: a fork, a join, or a gate by itself.
func (d *stepDoc) isWaypoint() bool {
	for key := range d.Keys {
		if !slices.Contains(waypointKeys(), key) {
			return false
		}
	}
	return d.has("gate") || d.has("next_step") || d.has("needs")
}

// session compiles the name of a conversation within its run. Agents cannot influence it: one that
// could name its reviewer's conversation would speak in it and write to its home.
func (c *gateRows) session(t scalar, s scope, what string) engine.Text {
	if bad := badSession(t.value); t.set() && !strings.Contains(t.value, "${{") && bad != "" {
		c.at(t.node, "%s: %s %s", what, quote(t.value), bad)
	}
	for _, p := range c.compiled(t, s) {
		if p.code != nil && p.code.said() {
			c.at(t.node, "%s: ${{%s}} reads what an agent says: which conversation it speaks in is not for it to say", what,
				p.source)
		}
	}
	return c.text(t, s, what, badSession)
}

// maxSession bounds the name of a conversation, because a file is named after it.
const maxSession = 160

func badSession(v string) string {
	switch {
	case strings.TrimSpace(v) == "":
		return "is empty"
	case len(v) > maxSession:
		return fmt.Sprintf("is longer than %d bytes", maxSession)
	case strings.ContainsFunc(v, unicode.IsControl):
		return "has a control character"
	}
	return ""
}

func (c *stepRows) env(d envDoc, what string) (out []engine.EnvVar) {
	for _, e := range d.items {
		out = append(out, engine.EnvVar{Name: e.name, Value: c.text(e.text, inStep, what+": env: "+e.name, nil)})
	}
	return out
}

func (c *gateRows) outputs(d outputsDoc, s scope, what string) (out []engine.Output) {
	for _, o := range d.items {
		check := badPath
		if o.value.set() {
			check = badOutput
		}
		path := c.path(o.path, s, what, check)
		if strings.TrimSpace(o.value.value) == "" && o.value.set() {
			c.at(o.value.node, "%s: %s: the expression is empty", what, quote(o.path.value))
			continue
		}
		out = append(out, engine.Output{Path: path, Value: c.value(o.value, s, what+": "+quote(o.path.value))})
	}
	return out
}

// criterion parses the sentences that a machine can check; any other text is for the reviewer.
func (c *stepRows) criterion(d criterionDoc, what string) engine.Criterion {
	if d.command.set() {
		return engine.Criterion{Command: c.judge(d.command, inStep, what), Folder: d.folder}
	}
	if d.file.set() {
		return engine.Criterion{File: c.fixedPath(d.file, what), NonEmpty: d.nonEmpty, Folder: d.folder}
	}
	sentence := strings.TrimSpace(d.sentence.value)
	if cmd, ok := strings.CutSuffix(sentence, " exits 0"); ok && strings.TrimSpace(cmd) != "" {
		if strings.Contains(cmd, "${{") {
			c.at(d.sentence.node,
				"%s: ${{ }} has no place in a shell command, where a value could become a command: use {run: [list of "+
					"arguments]}", what)
		}
		return engine.Criterion{Command: &engine.Command{Shell: strings.TrimSpace(cmd)}}
	}
	if m := regexp.MustCompile(`^file (\S.*?) exists( and is non-empty)?$`).FindStringSubmatch(sentence); m != nil {
		file := c.fixedPath(scalar{m[1], d.sentence.node}, what)
		if _, ok := c.fixed[d.sentence.node]; ok {
			c.fixed[d.sentence.node] = "file " + file + " exists" + m[2]
		}
		return engine.Criterion{File: file, NonEmpty: m[2] != ""}
	}
	if strings.Contains(sentence, "${{") {
		c.at(d.sentence.node, "%s: ${{ }} has no place in a sentence for the reviewer", what)
	}
	if form := machineForm(sentence); form != "" {
		c.notes.at(d.sentence.node, "%s: %s is for the reviewer to judge: for a machine to check it write %s", what,
			quote(sentence), form)
	}
	return engine.Criterion{Text: strings.TrimSpace(c.whole(d.sentence, what).value)}
}

// schema returns an answer's schema, with its file's content if files are read.
func (c *gateRows) schema(d answerDoc, what string) *engine.Schema {
	if d.node == nil {
		return nil
	}
	if !d.path.set() {
		return &engine.Schema{Source: d.inline}
	}
	file := c.fixedPath(d.path, what)
	s := &engine.Schema{Path: file}
	if c.from.schemas == nil || badPath(file) != "" || strings.Contains(file, "${{") {
		return s
	}
	b, err := c.from.schemas(file)
	switch {
	case err != nil:
		c.at(d.node, "%s: the schema %s %s", what, quote(file), reason(err))
	default:
		if s.Source, err = schemaText(b); err != nil {
			c.at(d.node, "%s: the schema %s: %v", what, quote(file), err)
		}
	}
	return s
}

func (c *naming) needs(d *stepDoc, s *engine.Step, what string) {
	s.HasNeeds = d.Needs.node != nil
	seen := map[string]bool{}
	for _, t := range d.Needs.items {
		n, ok := c.need(t, what+": needs")
		if !ok {
			continue
		}
		if seen[t.value] {
			c.at(t.node, "%s: needs: %s is in the list twice", what, t.value)
			continue
		}
		seen[t.value] = true
		switch {
		case n.Workflow != "":
			s.ExtNeeds = append(s.ExtNeeds, n)
		case c.steps[n.Step] == nil:
			c.unknown(t.node, what+": needs", n.Step, "step", c.world.steps)
		case n.Step == d.ID.value:
			c.at(t.node, "%s needs itself", what)
		default:
			s.Needs = append(s.Needs, n.Step)
		}
	}
}

// next checks the step's successor: a gate or next_step. Neither is valid only if a step needs this
// one.
func (c *stepRows) next(d *stepDoc, s *engine.Step, what string) {
	if d.has("gate") && d.has("next_step") {
		c.at(d.key("next_step"), "%s has a gate and a next_step: the gate says what comes next: remove one of them", what)
	}
	if d.has("gate") && d.has("on_fail") {
		c.at(d.key("on_fail"), "%s has a gate and an on_fail: write it under the gate's on_fail", what)
	}
	if !d.has("gate") {
		c.targets(d.NextStep, what+": next_step")
		s.Gates = []string{s.ID}
		return
	}
	s.Gates = c.row[d]
}

// followed reports the steps that nothing follows.
func (c *stepRows) followed() {
	needed := map[string]bool{}
	for _, d := range c.doc.Steps {
		for _, n := range d.Needs.items {
			needed[n.value] = true
		}
	}
	for _, d := range c.doc.Steps {
		if d.ID.set() && !d.has("gate") && !d.has("next_step") && !needed[d.ID.value] {
			c.at(d.Node, "step %s: nothing follows it: give it a gate or a next_step (DONE ends the branch)", d.ID.value)
		}
	}
}
