package workspace

import (
	"context"
	"path/filepath"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/layout"
)

// telling (a process that serves a repo) and reading (its journal) add to each run that a launch
// was not held. For ended runs, and for a repo that nobody serves, only the state folder knows.
type (
	telling struct {
		Service
		state string
	}
	reading struct {
		Viewer
		state string
	}
)

func (t telling) Status(ctx context.Context, run string) (daemon.Status, error) {
	st, err := t.Service.Status(ctx, run)
	return exposures(t.state, st), err
}

func (t telling) Run(ctx context.Context, run string) (daemon.RunStatus, error) {
	r, err := t.Service.Run(ctx, run)
	exposure(t.state, &r)
	return r, err
}

func (r reading) Status(ctx context.Context, run string) (daemon.Status, error) {
	st, err := r.Viewer.Status(ctx, run)
	return exposures(r.state, st), err
}

func (r reading) Run(ctx context.Context, run string) (daemon.RunStatus, error) {
	st, err := r.Viewer.Run(ctx, run)
	exposure(r.state, &st)
	return st, err
}

func exposures(state string, st daemon.Status) daemon.Status {
	for i := range st.Runs {
		exposure(state, &st.Runs[i])
	}
	return st
}

func exposure(state string, r *daemon.RunStatus) {
	var why string
	if r.Trust == "" && r.ID != "" && layout.Load(filepath.Join(state, "attempts", r.ID, "exposed"), &why) == nil {
		r.Trust, r.Exposed = engine.TrustFile, why
	}
}
