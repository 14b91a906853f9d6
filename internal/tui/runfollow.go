package tui

import (
	"context"
	"errors"
	"time"

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
func Follow(ctx context.Context, c *console.Console, host RunHost, id string, from int64,
	ours bool) (daemon.RunStatus, error) {
	if c.Interactive() && !c.Plain && c.Getenv("TERM") != "dumb" {
		return followOn(ctx, c, host, &one{id: id, from: from, ours: ours})
	}
	return printLines(ctx, c, host, id, from)
}

// followOn shows the run on a screen until it ends or the person leaves, and then prints its state.
func followOn(ctx context.Context, c *console.Console, host RunHost, o *one) (daemon.RunStatus, error) {
	r, err := host.Run(ctx, o.id)
	if err != nil || !r.Live() {
		return r, err
	}
	if err := run(ctx, host, o, Options{In: c.In, Out: c.Out, Env: c.Env, Now: c.Now}); err != nil {
		return r, err
	}
	if o.said != "" {
		c.Print("%s", o.said)
	}
	inner, stop := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer stop()
	r, err = gone(inner, host, o.id, nil)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case o.left != nil && r.Live():
		err = o.left
	}
	if r.ID != "" {
		c.PrintLines(render.RunLines(c, r, c.Now()))
	}
	return r, err
}

// lastLook is how long reading the run's state may take after the screen.
const lastLook = 5 * time.Second

// printLines prints a line for each important fact.
func printLines(ctx context.Context, c *console.Console, s RunHost, id string, from int64) (daemon.RunStatus, error) {
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
		c.PrintLines(render.RunLines(c, r, c.Now())[1:])
		from = st.Seq + 1
	}
	err = s.Facts(ctx, id, from, true, func(l daemon.Line) error {
		f := render.Fact(l.Fact)
		if f.Key {
			c.Print("%s", render.Line(c, l, f, l.Run() != id))
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
	return gone(ctx, s, id, err)
}

// gone returns the state of the run, or the error, when the stream of facts stops before the run
// has ended.
func gone(ctx context.Context, host RunHost, id string, err error) (daemon.RunStatus, error) {
	r, rerr := host.Run(ctx, id)
	switch {
	case rerr == nil && !r.Live():
		return r, nil
	case rerr == nil:
		return r, fault.Failed("`sluice audit verify` checks the journal; `sluice run "+id+"` follows the run again",
			"%s continues, but its progress cannot be read from the journal", id)
	}
	return r, &fault.Error{Cause: "the process that served " + id + " has gone: " + rerr.Error(),
		Advice: "nothing is lost: `sluice run " + id + "` continues it", Code: fault.ExitFailed, Err: errors.Join(rerr, err)}
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
