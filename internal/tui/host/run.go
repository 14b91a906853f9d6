package host

import (
	"context"
	"fmt"
	"strings"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/tui"
	"sluice/internal/workspace"
)

// Run is the host of the screen of one run, on the process that serves its repo.
type Run struct {
	*repos
	tui.View
	service workspace.Service
}

type repos = Repos // the field's name leaves room for the method's

// Of returns the host of one run's screen.
func Of(s workspace.Service, con *console.Console, p *workspace.Workspace) Run {
	return Run{At(con, p), kept{s}, s}
}

// kept is a view that whoever opened it closes.
type kept struct{ workspace.Service }

func (kept) Close() {}

// Run returns the state of a run.
func (h Run) Run(ctx context.Context, run string) (daemon.RunStatus, error) {
	return h.service.Run(ctx, run)
}

// Open returns the view that the screen was begun with.
func (h Run) Open(context.Context, string) (tui.View, bool, error) { return h.View, true, nil }

// Served reports that a process serves the repo: the screen ends with it.
func (h Run) Served(context.Context, string) bool { return true }

// showPage returns the lines of `sluice show --diff` or `--since`.
func showPage(ctx context.Context, con *console.Console, p *workspace.Workspace, v workspace.Viewer, r daemon.RunStatus,
	what string, since bool) (page tui.Page, err error) {
	sh, err := show.Gather(ctx, p, v, r, what)
	if err != nil {
		return page, err
	}
	var b strings.Builder
	inner := *con
	inner.Out = &b
	show.Print(&inner, sh)
	if len(sh.Changed) > 0 {
		page.Since = since && sh.Attempt != nil && sh.Attempt.N > 1
		if err := show.PrintDiff(ctx, &inner, p, sh, show.Diff{Since: page.Since}); err != nil {
			fmt.Fprintln(&b, "\nthe changes cannot be read: "+text.Message(err.Error()))
		}
	}
	page.Lines = strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if g := sh.Gate; g != nil {
		page.Gate, page.Round, page.Content = g.ID, g.Round, g.Reviewed
	}
	return page, nil
}
