package specs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sluice/engine"
)

// Notes on specs that load but are probably not as intended.

// machineForm returns the form in which a machine would check a sentence; "" if it is for a reviewer.
func machineForm(sentence string) string {
	const ends = `(?:should |must |will |has to )?(?:exits?|returns?|ends?|finishes) (?:with )?(?:an? )?(?:exit ` +
		`)?(?:code |status )?(?:of )?(?:0|zero)`
	for _, form := range []struct{ like, want string }{
		{`(?i)^(?:command |the command |running )?(.+?) ` + ends + `\.?$`, "%s exits 0"},
		{`^((?:make \S+|go (?:test|vet|build)(?: \S+)*?|(?:npm|yarn|pnpm) (?:test|run \S+)|cargo ` +
			`(?:test|build|clippy)|pytest(?: \S+)*?|\./\S+(?: \S+)*?)) (?:passes|succeeds|is green|runs ` +
			`clean(?:ly)?|works)\.?$`, "%s exits 0"},
		{`^(make \S+|go (?:test|vet|build)(?: [-./]\S*)*|(?:npm|yarn|pnpm) (?:test|run \S+)|cargo (?:test|build|` +
			`clippy)|pytest(?: [-./]\S*)*|\./\S+(?: -\S+)*|\S.* (?:&&|\|\|?) .*\S)$`, "%s exits 0"},
		{`(?i)^(?:the )?(?:file )?(\S*[./]\S*) (?:should |must )?(?:exists?|is (?:there|present))(?: and is (?:not ` +
			`|non-?)empty)?\.?$`, "file %s exists"},
	} {
		if m := regexp.MustCompile(form.like).FindStringSubmatch(sentence); m != nil {
			want := fmt.Sprintf(form.want, strings.Trim(m[1], "`'\""))
			if strings.Contains(sentence, "empty") && strings.HasPrefix(want, "file ") {
				want += " and is non-empty"
			}
			return quote(want)
		}
	}
	return ""
}

// whole notes a plain text that YAML ends within its line, at " #12". It returns the text.
func (c *values) whole(t scalar, what string) scalar {
	if t.set() && t.node.Style == 0 && regexp.MustCompile(`^#[\pL\pN]`).MatchString(t.node.LineComment) {
		c.notes.at(t.node, "%s: YAML takes %s for a comment: put the text in quotes", what, quote(t.node.LineComment))
	}
	return t
}

// beside reports steps that are ready at the same time and share a folder: one waits for the other,
// and continues on its result.
func (c *compiler) beside() {
	type two struct{ a, b string }
	told := map[two]bool{}
	for _, fork := range c.forks() {
		for i, x := range fork {
			for _, y := range fork[i+1:] {
				for _, a := range c.reached(x, y) {
					for _, b := range c.reached(y, x) {
						if c.spec.LeadsTo(a.ID, b.ID) || c.spec.LeadsTo(b.ID, a.ID) {
							continue
						}
						folder, same := c.folderOf(a), c.folderOf(b)
						if folder == "" || folder != same || told[two{a.ID, b.ID}] || told[two{b.ID, a.ID}] {
							continue
						}
						told[two{a.ID, b.ID}] = true
						c.notes.at(c.steps[b.ID].ID.node,
							"steps %s and %s can be ready together and share %s, so one waits for the other. To run both at once: "+
								"agent.worktree for each, or reads: true for one that only looks", a.ID, b.ID, folder)
					}
				}
			}
		}
	}
}

// forks returns the steps that begin together: those that start a run, and those that one pass leads to.
func (c *compiler) forks() [][]string {
	all := [][]string{c.spec.Starts()}
	for _, s := range c.spec.Steps {
		next := slices.DeleteFunc(slices.Clone(c.spec.LastGate(s).OnPass), engine.IsEnd)
		for _, o := range c.spec.Steps {
			if slices.Contains(o.Needs, s.ID) && !slices.Contains(next, o.ID) {
				next = append(next, o.ID)
			}
		}
		all = append(all, next)
	}
	return all
}

// reached returns the steps on one branch of a fork that are not on the other. A branch with a
// condition is taken for an alternative.
func (c *compiler) reached(from, other string) (out []*engine.Step) {
	if c.steps[from].When.set() || c.steps[other].When.set() {
		return nil
	}
	for _, s := range c.spec.Steps {
		if (s.ID == from || c.spec.LeadsTo(from, s.ID)) && s.ID != other && !c.spec.LeadsTo(other, s.ID) {
			out = append(out, s)
		}
	}
	return out
}

// folderOf returns the folder that a step works in; "" if it has its own or needs none.
func (c *compiler) folderOf(s *engine.Step) string {
	d := c.steps[s.ID]
	switch {
	case d.ForEach != nil || d.Workflow.set() || s.Reads():
		return ""
	case d.Agent != nil && d.Agent.Worktree.set():
		tree := d.Agent.Worktree.value
		if regexp.MustCompile(`\$\{\{[^}]*\b(step|attempt)\b`).MatchString(tree) {
			return ""
		}
		return tree
	case c.spec.Workspace == engine.WorkspaceRun:
		return "the worktree of the run"
	}
	return "your checkout"
}
