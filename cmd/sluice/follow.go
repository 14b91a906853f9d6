package main

import (
	"context"
	"errors"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
)

// errEnded ends the reading of facts: the run is over.
var errEnded = errors.New("ended")

// follow shows a run until it ends, and gives how it stands then. errLeft: the person left before.
// from is the journal's record from which on it is followed: that of its start, 0 where that is not known.
func (a *app) follow(ctx context.Context, p *place, s service, id string, from int64, ours bool) (daemon.RunStatus, error) {
	if a.Interactive() && !a.Plain && a.Getenv("TERM") != "dumb" {
		return a.watchLive(ctx, p, s, id, from, ours)
	}
	return a.followLines(ctx, s, id, from)
}

// followLines prints a line for each fact that matters.
func (a *app) followLines(ctx context.Context, s service, id string, from int64) (daemon.RunStatus, error) {
	st, err := s.Status(ctx, "")
	if err != nil {
		return daemon.RunStatus{}, err
	}
	r, err := s.Run(ctx, id)
	if err != nil || !r.Live() {
		return r, err
	}
	a.Print("%s %s", a.Paint(console.Bold, id), a.Paint(console.Dim, "(log: sluice log "+id+")"))
	if words := render.Unheld(r); words != "" && from != 0 {
		a.Print("%s", a.Paint(console.Yellow, words))
	}
	if from == 0 { // it was under way before: how it stands, then what comes
		for _, l := range render.RunLines(&a.Console, r, a.Now())[1:] {
			a.Print("%s", l)
		}
		from = st.Seq + 1
	}
	err = s.Facts(ctx, id, from, true, func(l daemon.Line) error {
		f := render.Fact(l.Fact)
		if f.Key {
			a.Print("%s", render.Line(&a.Console, l, f, render.FactRun(l) != id))
		}
		if isEnd(l, id) {
			return errEnded
		}
		return nil
	})
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if errors.Is(err, errEnded) {
		return s.Run(ctx, id)
	}
	return a.gone(ctx, s, id, err)
}

// gone is what there is to say when the stream of facts stops before the run has ended.
func (a *app) gone(ctx context.Context, s service, id string, err error) (daemon.RunStatus, error) {
	r, rerr := s.Run(ctx, id)
	switch {
	case rerr == nil && !r.Live():
		return r, nil
	case rerr == nil:
		return r, fault.Failed("`sluice audit verify` checks the journal; `sluice run "+id+"` follows the run again", "%s goes on, but what happens in it cannot be read from the journal", id)
	}
	return r, &fault.Error{Cause: "the process that served " + id + " has gone: " + rerr.Error(), Advice: "nothing is lost: `sluice run " + id + "` goes on", Code: fault.ExitFailed, Err: errors.Join(rerr, err)}
}

// isEnd says that the line tells the run's end, and not that of a child of it.
func isEnd(l daemon.Line, id string) bool {
	f, err := engine.DecodeFact(l.Fact)
	if err != nil {
		return false
	}
	end, ok := f.(engine.RunEnded)
	return ok && end.Run == id
}
