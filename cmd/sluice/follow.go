package main

import (
	"context"
	"errors"

	"sluice/daemon"
	"sluice/engine"
)

// errEnded ends the reading of facts: the run is over.
var errEnded = errors.New("ended")

// follow shows a run until it ends, and gives how it stands then. errLeft: the person left before.
func (a *app) follow(ctx context.Context, p *place, s service, id string, ours bool) (daemon.RunStatus, error) {
	if a.interactive() && !a.plain && a.getenv("TERM") != "dumb" {
		return a.watchLive(ctx, p, s, id, ours)
	}
	return a.followLines(ctx, s, id)
}

// followLines prints a line for each fact that matters.
func (a *app) followLines(ctx context.Context, s service, id string) (daemon.RunStatus, error) {
	r, err := s.Run(ctx, id)
	if err != nil || !live(r) {
		return r, err
	}
	a.print("%s %s", a.paint(bold, id), a.paint(dim, "(log: sluice log "+id+")"))
	err = s.Facts(ctx, id, 0, true, func(l daemon.Line) error {
		f := say(l.Fact)
		if f.key {
			a.print("%s", a.line(l, f, false))
		}
		if isEnd(l) {
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
	if r, rerr := s.Run(ctx, id); rerr == nil && !live(r) {
		return r, nil
	}
	if err == nil {
		err = errors.New("the stream of facts ended")
	}
	return daemon.RunStatus{}, &fault{cause: "the process that served " + id + " has gone: " + err.Error(), mend: "nothing is lost: `sluice run " + id + "` goes on", code: exitFailed, err: err}
}

// isEnd says that the line tells a run's end.
func isEnd(l daemon.Line) bool {
	f, err := engine.DecodeFact(l.Fact)
	if err != nil {
		return false
	}
	_, ok := f.(engine.RunEnded)
	return ok
}
