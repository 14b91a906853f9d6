package host

import (
	"context"
	"fmt"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/tui"
	"sluice/internal/workspace"
)

// Run is the host of the screen of one run, on the process that serves its repo.
type Run struct {
	workspace.Service
	con *console.Console
	p   *workspace.Workspace
}

// Of returns the host of one run's screen.
func Of(s workspace.Service, con *console.Console, p *workspace.Workspace) Run { return Run{s, con, p} }

// Do submits a person's event.
func (h Run) Do(ctx context.Context, ev engine.Event) (daemon.Done, error) {
	if _, ok := ev.(engine.Answered); ok {
		if err := decide.InAttempt(h.con); err != nil {
			return daemon.Done{}, err
		}
	}
	return h.Service.Do(ctx, ev, "terminal")
}

// Show returns the text of `sluice show --diff`.
func (h Run) Show(ctx context.Context, run daemon.RunStatus, what string) (tui.Page, error) {
	return showPage(ctx, h.con, h.p, h.Service, run, what)
}

// showPage returns the lines of `sluice show --diff`.
func showPage(ctx context.Context, con *console.Console, p *workspace.Workspace, v workspace.Viewer, r daemon.RunStatus, what string) (page tui.Page, err error) {
	sh, err := show.Gather(ctx, p, v, r, what)
	if err != nil {
		return page, err
	}
	var b strings.Builder
	inner := *con
	inner.Out = &b
	show.Print(&inner, sh)
	if len(sh.Changed) > 0 {
		if err := show.PrintDiff(ctx, &inner, p, sh); err != nil {
			fmt.Fprintln(&b, "\nthe changes cannot be read: "+text.Message(err.Error()))
		}
	}
	page.Lines = strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if g := sh.Gate; g != nil {
		page.Gate, page.Round, page.Content = g.ID, g.Round, g.Reviewed
	}
	return page, nil
}
