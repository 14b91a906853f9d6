package workspace

import (
	"context"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/layout"
)

// telling is a process that serves a repo. It adds to each run that a launch was not held: for ended
// runs only the state folder knows.
type telling struct {
	Service
	state string
}

func (t telling) Status(ctx context.Context, run string) (daemon.Status, error) {
	st, err := t.Service.Status(ctx, run)
	return exposures(t.state, st), err
}

func (t telling) Recent(ctx context.Context, since time.Time, most int) (daemon.Status, error) {
	st, err := t.Service.Recent(ctx, since, most)
	return exposures(t.state, st), err
}

func (t telling) Run(ctx context.Context, run string) (daemon.RunStatus, error) {
	r, err := t.Service.Run(ctx, run)
	exposure(t.state, &r)
	return r, err
}

func exposures(state string, st daemon.Status) daemon.Status {
	for i := range st.Runs {
		exposure(state, &st.Runs[i])
	}
	return st
}

func exposure(state string, r *daemon.RunStatus) {
	if r.Trust != "" || r.ID == "" {
		return
	}
	if why, exposed := (layout.Layout{State: state}).Exposed(r.ID); exposed {
		r.Trust, r.Exposed = engine.TrustFile, why
	}
}
