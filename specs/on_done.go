package specs

import "sluice/engine"

func (c *compiler) onDone(w *workflowDoc) (out engine.OnDone) {
	d := w.OnDone
	if d == nil {
		return out
	}
	if w.Workspace.value != engine.WorkspaceRun {
		c.at(d.Node, "workflow: on_done: the run works in your checkout, so there is nothing to land: add workspace: run, or remove it")
	}
	if d.Land.value != "keep" {
		out.Land = d.Land.value
	}
	out.Close = c.yes(d.CloseWorktree, "workflow: on_done: close_worktree")
	return out
}
