package tui

import (
	"context"
	"errors"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
)

// How a person stops following a run.
var (
	ErrLeft      = errors.New("left")        // stops looking
	ErrInterrupt = errors.New("interrupted") // wants the run to stop
)

// errEnded ends the reading of facts: the run is over.
var errEnded = errors.New("ended")

// Follow shows a run until it ends and returns its final state. The error is ErrLeft or
// ErrInterrupt if the person leaves before. from is the journal's record of the run's start; 0 =
// unknown. ours: this process serves the repo.
func Follow(ctx context.Context, c *console.Console, host RunHost, id string, from int64, ours bool) (daemon.RunStatus, error) {
	sc := &screen{c: c, host: host, id: id, from: from, ours: ours, rung: map[string]bool{}}
	if c.Interactive() && !c.Plain && c.Getenv("TERM") != "dumb" {
		return sc.watch(ctx)
	}
	return sc.printLines(ctx)
}

// printLines prints a line for each important fact.
func (sc *screen) printLines(ctx context.Context) (daemon.RunStatus, error) {
	c, s, id, from := sc.c, sc.host, sc.id, sc.from
	st, err := s.Status(ctx, "")
	if err != nil {
		return daemon.RunStatus{}, err
	}
	r, err := s.Run(ctx, id)
	if err != nil || !r.Live() {
		return r, err
	}
	c.Print("%s %s", c.Paint(console.Bold, id), c.Paint(console.Dim, "(log: sluice log "+id+")"))
	if words := render.Unheld(r); words != "" && from != 0 {
		c.Print("%s", c.Paint(console.Yellow, words))
	}
	if from == 0 { // it began before: print its state, then what follows
		for _, l := range render.RunLines(c, r, c.Now())[1:] {
			c.Print("%s", l)
		}
		from = st.Seq + 1
	}
	err = s.Facts(ctx, id, from, true, func(l daemon.Line) error {
		f := render.Fact(l.Fact)
		if f.Key {
			c.Print("%s", render.Line(c, l, f, render.FactRun(l) != id))
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
	return sc.gone(ctx, err)
}

// gone returns the state of the run, or the error, when the stream of facts stops before the run
// has ended.
func (sc *screen) gone(ctx context.Context, err error) (daemon.RunStatus, error) {
	id := sc.id
	r, rerr := sc.host.Run(ctx, id)
	switch {
	case rerr == nil && !r.Live():
		return r, nil
	case rerr == nil:
		return r, fault.Failed("`sluice audit verify` checks the journal; `sluice run "+id+"` follows the run again", "%s goes on, but what happens in it cannot be read from the journal", id)
	}
	return r, &fault.Error{Cause: "the process that served " + id + " has gone: " + rerr.Error(), Advice: "nothing is lost: `sluice run " + id + "` goes on", Code: fault.ExitFailed, Err: errors.Join(rerr, err)}
}

// isEnd reports whether the line is the end of the run itself, not of a child.
func isEnd(l daemon.Line, id string) bool {
	f, err := engine.DecodeFact(l.Fact)
	if err != nil {
		return false
	}
	end, ok := f.(engine.RunEnded)
	return ok && end.Run == id
}
