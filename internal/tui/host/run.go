package host

import (
	"context"

	"sluice/internal/console"
	"sluice/internal/tui"
	"sluice/internal/workspace"
)

// Run is the host of the screen of one run, on the process that serves its repo.
type Run struct {
	*repos
	kept
}

type repos = Repos // the field's name leaves room for the method's

// Of returns the host of one run's screen.
func Of(s workspace.Service, con *console.Console, p *workspace.Workspace) Run {
	return Run{At(con, p), kept{s}}
}

// kept is a view that whoever opened it closes.
type kept struct{ workspace.Service }

func (kept) Close() {}

// Open returns the view that the screen was begun with.
func (h Run) Open(context.Context, string) (tui.View, bool, error) { return h.kept, true, nil }

// Served reports that a process serves the repo: the screen ends with it.
func (h Run) Served(context.Context, string) bool { return true }
