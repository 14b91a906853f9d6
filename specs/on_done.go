package specs

import (
	"strings"
	"unicode"

	"sluice/engine"
)

func (c *compiler) onDone(w *workflowDoc) (out engine.OnDone) {
	d := w.OnDone
	if d == nil {
		return out
	}
	if w.Workspace.value != engine.WorkspaceRun {
		c.at(d.Node, "workflow: on_done: the run works in your checkout, so there is nothing to land: add workspace: run, "+
			"or remove it")
	}
	if d.Land.value != "keep" {
		out.Land = d.Land.value
	}
	out.Close = c.yes(d.CloseWorktree, "workflow: on_done: close_worktree")
	if d.Pull != nil {
		out.Pull = c.pull(d.Pull)
	}
	return out
}

// maxPullNames limits the labels and reviewers of a pull request, and maxPullName each name.
const (
	maxPullNames = 20
	maxPullName  = 100
)

func (c *compiler) pull(d *pullDoc) *engine.PullAs {
	const what = "workflow: on_done: pr: "
	names := func(list textList, key string, odd func(string) bool) []string {
		if len(list.items) > maxPullNames {
			c.at(d.key(key), what+"%s: more than %d", key, maxPullNames)
			return nil
		}
		return c.distinct(list, what+key, func(s string) string {
			if len(s) > maxPullName || odd(s) {
				return "is no name"
			}
			return ""
		})
	}
	return &engine.PullAs{Draft: c.yes(d.Draft, what+"draft"),
		Labels: names(d.Labels, "labels", func(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }),
		Reviewers: names(d.Reviewers, "reviewers", func(s string) bool {
			org, team, has := strings.Cut(s, "/")
			return !login(org) || has && !login(team)
		})}
}

// login reports whether a text can be an account at a forge.
func login(s string) bool {
	return s != "" && len(s) <= maxLogin && s[0] != '-' && strings.Trim(s, idBytes) == ""
}

// maxLogin is the longest login.
const maxLogin = 60

// forge checks what depends on the whole workflow: that the work of gates judged at the forge can
// be pushed, and that a pull request with settings is ever opened.
func (c *compiler) forge(w *workflowDoc) {
	ever := c.spec.OnDone.Land == engine.LandPR
	for _, g := range c.spec.Gates {
		if len(g.Reviewer.Forge) == 0 && !g.Reviewer.AtForge() {
			continue
		}
		ever = true
		d := c.gates[g.ID]
		switch {
		case d == nil:
		case len(c.from.above) > 0:
			c.at(d.Reviewer.Node, "gate %s: the forge judges only gates of the run that a person starts, and this workflow "+
				"is a child run's", g.ID)
		case w.Workspace.value != engine.WorkspaceRun:
			c.at(d.Reviewer.Node, "gate %s: the forge sees the branch of a run with its own worktree: add workspace: run to "+
				"the workflow", g.ID)
		}
	}
	if d := w.OnDone; d != nil && d.Pull != nil && !ever {
		c.at(d.Pull.Node, "workflow: on_done: pr has no meaning: no pull request is opened: add land: pr, or remove it")
	}
}
