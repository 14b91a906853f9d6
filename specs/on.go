package specs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/cron"
	"sluice/internal/layout"
)

// Limits of `on:`.
const (
	maxSchedules = 50
	maxNames     = 50 // globs, branches, labels
	maxPerDay    = 10_000
)

// firingNames are the names that `on: with` reads.
func firingNames() []string { return []string{"event", "file", "push", "issue", "time"} }

// givenBy returns the name of what a kind of trigger gives.
func givenBy(kind string) string {
	switch kind {
	case engine.OnSchedule:
		return "time"
	case engine.OnFiles:
		return "file"
	case engine.OnWebhook:
		return "event"
	}
	return kind
}

// onCompiler compiles `on:`.
type onCompiler struct{ *compiler }

// compile compiles what starts runs. It comes before all else that reads vars: what comes from outside
// counts like what agents say.
func (c onCompiler) compile() {
	d := c.doc.On
	if d == nil {
		return
	}
	on := &engine.On{Overlap: engine.OverlapQueue, MaxPerDay: engine.DefaultPerDay}
	if d.Overlap.set() {
		on.Overlap = d.Overlap.value
	}
	c.count(d.MaxPerDay, 1, maxPerDay, "on: max_per_day", &on.MaxPerDay)
	if d.Confirm.set() {
		on.Confirm = new(c.yes(d.Confirm, "on: confirm"))
	}
	on.Triggers = c.triggers(d)
	if len(on.Triggers)+len(d.Schedule) == 0 {
		c.at(d.Node, "on: it names nothing that could happen: give it schedule, files, push, issue or webhook")
	}
	said := map[string]bool{}
	maps.Copy(said, c.world.said)
	on.With = c.with(d, on, said)
	c.supplied(d, on, said)
	c.world.said = said
	c.spec.On = on
}

func (c onCompiler) triggers(d *onDoc) (out []*engine.Trigger) {
	if len(d.Schedule) > maxSchedules {
		c.at(d.key("schedule"), "on: schedule has more than %d times", maxSchedules)
		return nil
	}
	for i, s := range d.Schedule {
		t := c.schedule(s, i)
		if t != nil && slices.ContainsFunc(out, func(o *engine.Trigger) bool { return o.ID == t.ID }) {
			c.at(s.Node, "on: schedule: %s is there twice: remove one", quote(t.Cron))
		} else if t != nil {
			out = append(out, t)
		}
	}
	if d.Files.node != nil {
		out = append(out, &engine.Trigger{Name: engine.OnFiles, Kind: engine.OnFiles, ID: engine.OnFiles,
			Globs: c.globs(d.Files, "on: files")})
	}
	if p := d.Push; p != nil {
		out = append(out, &engine.Trigger{Name: engine.OnPush, Kind: engine.OnPush, ID: engine.OnPush,
			Branches: c.branches(p.Branches), Paths: c.globs(p.Paths, "on: push: paths")})
	}
	if i := d.Issue; i != nil {
		t := &engine.Trigger{Name: engine.OnIssue, Kind: engine.OnIssue, ID: engine.OnIssue, Assignee: i.Assignee.value}
		for _, l := range i.Labels.items {
			t.Labels = append(t.Labels, l.value)
		}
		if len(t.Labels) == 0 && t.Assignee == "" {
			c.at(i.Node, "on: issue: any issue would start a run: give it labels or assignee")
		}
		out = append(out, t)
	}
	if d.Webhook != nil {
		out = append(out, &engine.Trigger{Name: engine.OnWebhook, Kind: engine.OnWebhook, ID: engine.OnWebhook})
	}
	return out
}

// schedule compiles one time; nil if it is faulty.
func (c onCompiler) schedule(d *scheduleDoc, i int) *engine.Trigger {
	name := engine.OnSchedule
	if i > 0 {
		name = fmt.Sprintf("%s-%d", engine.OnSchedule, i+1)
	}
	t := &engine.Trigger{Name: name, Kind: engine.OnSchedule, Cron: d.Cron.value, Zone: d.Timezone.value,
		CatchUp: engine.CatchOne}
	if d.CatchUp.set() {
		t.CatchUp = d.CatchUp.value
	}
	if !d.Cron.set() {
		return nil
	}
	zone, err := cron.Zone(t.Zone)
	if err != nil {
		c.at(d.Timezone.node, "on: schedule: timezone %s: %v", quote(t.Zone), err)
		return nil
	}
	line, err := cron.Parse(t.Cron, zone)
	if err != nil {
		c.at(d.Cron.node, "on: schedule: cron %s: %v", quote(t.Cron), err)
		return nil
	}
	t.ID = fmt.Sprintf("%s %s %s", engine.OnSchedule, t.Cron, zone)
	t.Next = line.Next
	return t
}

// tooMany reports a list that has more than maxNames entries, or none.
func (c onCompiler) tooMany(l textList, what string) bool {
	n := len(l.items)
	bad := n > maxNames || n == 0 && l.node != nil
	if bad {
		c.at(l.node, "%s: %d entries: want 1 to %d, or remove it", what, n, maxNames)
	}
	return bad
}

func (c onCompiler) globs(l pathList, what string) []string {
	if c.tooMany(l.textList, what) {
		return nil
	}
	out := c.fixedPaths(l, what)
	for i, g := range out {
		if g == layout.WorkflowDir || strings.HasPrefix(g, layout.WorkflowDir+"/") {
			c.at(l.items[i].node, "%s: %s: .workflow/ is not looked at: runs write there", what, quote(g))
		}
	}
	return out
}

func (c onCompiler) branches(l textList) (out []string) {
	if c.tooMany(l, "on: push: branches") {
		return nil
	}
	for _, t := range l.items {
		if _, err := path.Match(t.value, ""); err != nil {
			c.at(t.node, "on: push: branches: %s: a broken glob: close its [", quote(t.value))
			continue
		}
		out = append(out, t.value)
	}
	return out
}

// with compiles the values of vars, and marks in said those that come from outside.
func (c onCompiler) with(d *onDoc, on *engine.On, said map[string]bool) (out []engine.ChildVar) {
	for _, it := range d.With.items {
		what := "on: with: " + it.name
		v := c.variable(it.name)
		if v == nil {
			c.at(it.key, "%s: the workflow declares no var of this name%s", what, c.near(it.name, varNames(c.world.vars)))
			continue
		}
		given := c.varValue(*v, it.text, inFiring, what, c.spec.ID)
		c.gives(it.text, on, what)
		out = append(out, engine.ChildVar{Name: v.Name, Value: given})
		if strings.Contains(it.text.value, "${{") {
			said[v.Name] = true
		} else if _, err := given.Eval(nil); err != nil {
			c.at(it.text.node, "%v", err)
		}
	}
	return out
}

// gives reports names of triggers that the workflow does not have.
func (c onCompiler) gives(t scalar, on *engine.On, what string) {
	for _, p := range c.compiled(t, inFiring) {
		if p.code == nil {
			continue
		}
		for _, r := range p.code.reads {
			if !slices.ContainsFunc(on.Triggers, func(o *engine.Trigger) bool { return givenBy(o.Kind) == r.root }) {
				c.at(t.node, "%s: nothing under `on` gives %s", what, r.root)
			}
		}
	}
}

// supplied checks that each trigger gives every required var, and marks in said those that have
// their value from outside.
func (c onCompiler) supplied(d *onDoc, on *engine.On, said map[string]bool) {
	for _, v := range c.world.vars {
		with := slices.ContainsFunc(on.With, func(g engine.ChildVar) bool { return g.Name == v.Name })
		for _, t := range on.Triggers {
			switch {
			case with:
			case givenBy(t.Kind) == v.Name:
				said[v.Name] = said[v.Name] || t.Kind != engine.OnSchedule
				if _, text := v.Default.(string); t.Kind != engine.OnSchedule && t.Kind != engine.OnFiles && v.Default != nil ||
					v.Default != nil && !text {
					c.at(v.key, "workflow: vars: %s has the value of `on: %s`: declare it as {required: true}", v.Name, t.Kind)
				}
			case v.Required:
				c.at(d.Node, "on: the trigger %s gives no value for the var %s, which is required: give it one in `with`",
					t.Name, v.Name)
			}
		}
	}
}
