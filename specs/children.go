package specs

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/layout"
)

// Limits of task lists and child runs.
const (
	maxListParallel = 32
	maxAttempts     = 100
	maxTries        = 1_000_000
	maxTaskDepth    = 10
	maxFlowDepth    = 4 // of nested child workflows

	defaultAttempts = 3
	defaultDepth    = 3
)

// flowReader returns the text of a workflow that a step runs as a child, and its file name in
// faults.
type flowReader func(step, id string) (src []byte, file string, err error)

// below returns the sources in the repo at root.
func below(root string) sources {
	return sources{schemas: schemasBelow(root), flows: func(_, id string) ([]byte, string, error) {
		file := filepath.Join(root, filepath.FromSlash(layout.SpecsDir), id+".yaml")
		src, err := readBounded(file)
		return src, file, err
	}}
}

// pinned is what the child runs of a step use.
type pinned struct {
	step string
	file string
	src  []byte
	handed
}

// children compiles for_each and workflow: work for each task, or in a child run.
func (c *childFlows) children(d *stepDoc, s *engine.Step, what string) {
	if d.ForEach == nil && !d.Workflow.set() {
		return
	}
	if d.ForEach != nil {
		s.ForEach = c.forEach(d, what)
	}
	if d.Workflow.set() {
		c.ownOnly(d, what)
		s.Child = c.flow(d, s, what)
	} else {
		s.Child = c.inline(s)
	}
	// The child defines who does the work, and how.
	s.Agent, s.Run, s.Env, s.On, s.Inputs, s.Criteria, s.Answer, s.Restarts = nil, nil, nil, nil, nil, nil, nil, nil
	s.Timeout, s.IdleTimeout, s.Signal = 0, 0, engine.Signal{Type: engine.SignalExit}
}

// ownOnly refuses keys that mean nothing beside workflow, where the child's steps have them.
func (c *childFlows) ownOnly(d *stepDoc, what string) {
	for _, key := range []string{"env", "on", "inputs", "success_criterion", "setup", "timeout", "idle_timeout",
		"restarts", "signal"} {
		if d.has(key) {
			c.at(d.key(key), "%s: %s has no meaning beside workflow: its steps say it", what, key)
		}
	}
}

func (c *childFlows) forEach(d *stepDoc, what string) *engine.List {
	e, l := d.ForEach, &engine.List{MaxParallel: 1, Attempts: defaultAttempts, MaxDepth: defaultDepth}
	if c.list != "" && c.list != d.ID.value {
		c.at(d.key("for_each"), "%s: step %s has a for_each: a workflow has at most one list", what, c.list)
	}
	c.list = d.ID.value
	what += ": for_each"
	l.Tasks = c.path(e.Tasks.path, inStep, what+": tasks", badOutput)
	l.From = c.listFrom(e.Tasks, what+": tasks")
	c.count(e.MaxParallel, 1, maxListParallel, what+": max_parallel", &l.MaxParallel)
	c.count(e.Attempts, 1, maxAttempts, what+": attempts", &l.Attempts)
	c.count(e.MaxTries, 1, maxTries, what+": max_tries", &l.MaxTries)
	c.count(e.MaxDepth, 0, maxTaskDepth, what+": max_depth", &l.MaxDepth)
	side := func(t scalar, key string) string {
		if !t.set() {
			return ""
		}
		id := t.value
		switch o := c.steps[id]; {
		case o == nil:
			c.unknown(t.node, what+": "+key, id, "step", c.world.steps)
			return ""
		case id == d.ID.value:
			c.at(t.node, "%s: %s: a list does not go to itself", what, key)
			return ""
		case o.Needs.node != nil:
			c.at(t.node, "%s: %s: step %s has needs: it is the list that leads to it", what, key, id)
			return ""
		case o.ForEach != nil:
			return "" // reported elsewhere
		}
		return id
	}
	l.OnExhausted, l.OnMissing, l.OnInvalid = side(e.OnExhausted, "on_exhausted"), side(e.OnMissing, "on_missing"),
		side(e.OnInvalid, "on_invalid")
	if l.MaxParallel > 1 && d.Agent != nil && d.Agent.Reads.value != "true" &&
		!strings.Contains(d.Agent.Worktree.value, "task.id") {
		c.at(d.key("for_each"),
			"%s: max_parallel %d: tasks that are done at a time need worktrees of their own: give the agent a worktree with "+
				"${{task.id}} in it, or, where it only looks, reads: true", what, l.MaxParallel)
	}
	return l
}

// listFrom compiles the source of a list's file. Its path must name the run, so that no two runs
// share it.
func (c *naming) listFrom(d tasksDoc, what string) engine.Value {
	if !d.value.set() {
		return engine.Value{}
	}
	if !slices.ContainsFunc(c.compiled(d.path, inStep), func(p part) bool {
		return p.code != nil && slices.ContainsFunc(p.code.reads, func(r reading) bool { return r.root == "run" })
	}) {
		c.at(d.path.node, "%s: %s: the list is written there for each run: name the run in the path, as "+
			".workflow/backlog/${{run}}.json", what, quote(d.path.value))
	}
	if strings.TrimSpace(d.value.value) == "" {
		c.at(d.value.node, "%s: %s: the expression is empty", what, quote(d.path.value))
		return engine.Value{}
	}
	return c.placed(c.value(d.value, inStep, what), d.value.node)
}

// inline returns the workflow of a task done by an agent or a command: one step, whose failure is
// the run's.
func (c *childFlows) inline(s *engine.Step) *engine.Spec {
	one := *s
	one.ForEach, one.Outputs, one.Gates, one.Needs, one.HasNeeds, one.ExtNeeds, one.When = nil, nil, []string{s.ID},
		nil, false, nil, engine.Cond{}
	return &engine.Spec{ID: c.spec.ID, Name: s.Name, Description: c.spec.Description, Inline: true, Outer: c.spec,
		Vars:         c.spec.Vars,
		ContextFiles: c.spec.ContextFiles, Protect: c.spec.Protect, Setup: c.spec.Setup, AfterStep: c.spec.AfterStep,
		AfterRun: c.afterTask(s), Limits: engine.Limits{MaxSameFailure: engine.DefaultMaxSameFailure},
		Steps: []*engine.Step{&one},
		Gates: []*engine.Gate{implicitGate(s, []string{engine.EndDone})}}
}

// afterTask returns the hook of the runs of the step's tasks.
func (c *childFlows) afterTask(s *engine.Step) *engine.Command {
	if s.ForEach == nil {
		return nil
	}
	return c.spec.AfterTask
}

func (c *childFlows) flow(d *stepDoc, s *engine.Step, what string) *engine.Spec {
	id, at := d.Workflow.value, d.Workflow.node
	none := &engine.Spec{ID: id, Name: id}
	if bad := ids.Fault(id); bad != "" {
		c.at(at, "%s: workflow %s %s", what, quote(id), bad)
		return none
	}
	above := append(slices.Clone(c.from.above), c.spec.ID)
	switch {
	case slices.Contains(above, id):
		c.at(at, "%s: workflow %s would run itself: %s", what, id, strings.Join(append(above, id), " -> "))
		return none
	case len(above) >= maxFlowDepth:
		c.at(at, "%s: workflow %s: child runs are at most %d deep", what, id, maxFlowDepth)
		return none
	case c.from.flows == nil:
		return none
	}
	src, file, err := c.from.flows(s.ID, id)
	if err != nil {
		c.at(at, "%s: workflow %s %s", what, quote(id), reason(err))
		return none
	}
	h := c.hand(d, s, declaredVars(file, src), what)
	kc, faults := load(file, src, sources{handed: h, schemas: c.from.schemas, flows: under(c.from.flows, s.ID),
		above: above})
	if len(faults) > 0 {
		c.at(at, "%s: workflow %s does not load: %s%s", what, id, faults[0].Error(), andMore(len(faults)-1))
		return none
	}
	k := kc.spec
	for _, v := range k.Vars {
		given := slices.ContainsFunc(d.Vars.items, func(it named) bool { return it.name == v.Name })
		if v.Required && !given && c.variable(v.Name) == nil {
			c.at(at, "%s: workflow %s requires the var %s: give it under vars beside workflow, or declare it under "+
				"workflow.vars here", what, id, v.Name)
		}
	}
	s.ChildAnswer = c.childAnswer(d, kc, what+": answer")
	k.ReadsTasks = kc.world.tasks
	if l := s.ForEach; l != nil && l.MaxParallel > 1 {
		for _, st := range k.Steps {
			if st.Child == nil && !st.Reads() && (st.Agent == nil || !strings.Contains(st.Agent.Worktree.Source, "task.id")) {
				c.at(at, "%s: for_each: max_parallel %d: tasks that are done at a time need worktrees of their own: give step "+
					"%s of %s a worktree with ${{task.id}} in it", what, l.MaxParallel, st.ID, id)
				break
			}
		}
	}
	if hook := c.afterTask(s); hook != nil && k.AfterRun != nil {
		c.at(at, "%s: hooks: after_task: workflow %s has a hook for this itself, its after_run: leave one of them out",
			what, id)
	} else if hook != nil {
		k.AfterRun = hook
	}
	c.kids = append(c.kids, pinned{step: s.ID, file: file, src: src, handed: h})
	return k
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// varsOf returns the known values of vars: those given, or else the defaults.
func (c *naming) varsOf() map[string]any {
	out := map[string]any{}
	for _, v := range c.world.vars {
		if c.from.late[v.Name] {
			continue
		}
		if x, ok := c.from.given[v.Name]; ok {
			out[v.Name] = x
		} else if !v.Required {
			out[v.Name] = v.Default
		}
	}
	return out
}

// linkChildren derives the graphs of inline children, and checks that a list's targets lead back to
// it.
func (c *childFlows) linkChildren() {
	for _, s := range c.spec.Steps {
		if s.Child != nil && (s.Child.Inline || len(s.Child.Steps) == 0) {
			s.Child.Link()
		}
		if l := s.ForEach; l != nil && len(c.faults) == 0 {
			e := c.steps[s.ID].ForEach
			for key, t := range map[string]scalar{"on_missing": e.OnMissing, "on_invalid": e.OnInvalid,
				"on_exhausted": e.OnExhausted} {
				if t.set() && !c.spec.LeadsTo(t.value, s.ID) {
					c.at(t.node, "step %s: for_each: %s: step %s does not lead back to the list: give it next_step: %s", s.ID, key,
						t.value, s.ID)
				}
			}
		}
	}
}

// childMark begins a child's workflow in a pinned text; the path of steps to it follows.
const childMark = "--- # child: "

// pinChildren adds the workflows of child runs to a pinned text.
func (c *childFlows) pinChildren(out []byte) ([]byte, []Fault) {
	for _, k := range c.kids {
		text, faults := pin(k.file, k.src, sources{handed: k.handed, schemas: c.from.schemas, flows: c.from.flows,
			above: append(slices.Clone(c.from.above), c.spec.ID)})
		if faults != nil {
			return nil, faults
		}
		text = bytes.ReplaceAll(text, []byte("\n"+childMark), []byte("\n"+childMark+k.step+"/"))
		out = append(bytes.TrimRight(out, "\n"), []byte("\n"+childMark+k.step+"\n")...)
		out = append(out, text...)
	}
	return out, nil
}

// unpinned maps the steps that lead to a child run to its workflow in a pinned text.
type unpinned map[string][]byte

func unpin(src []byte) ([]byte, unpinned) {
	parts := bytes.Split(src, []byte("\n"+childMark))
	rest := unpinned{}
	for _, p := range parts[1:] {
		step, text, _ := bytes.Cut(p, []byte("\n"))
		rest[string(step)] = text
	}
	return parts[0], rest
}

func (u unpinned) read(step, _ string) ([]byte, string, error) {
	src, ok := u[step]
	if !ok {
		return nil, "", fmt.Errorf("it is not in the text that the run was started with")
	}
	return src, "", nil
}

// under returns a reader of the workflows below a step's.
func under(flows flowReader, step string) flowReader {
	return func(inner, id string) ([]byte, string, error) { return flows(step+"/"+inner, id) }
}
