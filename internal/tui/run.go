package tui

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// fps limits how often a changed screen is drawn: enough for fingers, little over a slow line.
const fps = 20

// Options are the terminal and the clock of the screen.
type Options struct {
	In  io.Reader // a terminal
	Out io.Writer // a terminal
	Env []string  // NO_COLOR and TERM say what the terminal can do
	Now func() time.Time
}

// Run shows the screen until the person leaves it or ctx ends. It then restores the terminal and
// leaves nothing running.
func Run(ctx context.Context, host Host, opt Options) error { return run(ctx, host, nil, opt) }

// Show shows the page of a gate that waits for a person, until they decide or leave. It returns the
// result of the decision, "" if none was made, and whether it counts.
func Show(ctx context.Context, host Host, runID, gate string, opt Options) (said string, counts bool, err error) {
	o := &one{id: runID, page: gate}
	err = run(ctx, host, o, opt)
	return o.said, !o.void, err
}

// run shows all runs, or one.
func run(ctx context.Context, host Host, o *one, opt Options) error {
	inner, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var p *tea.Program
	send := func(msg any) { p.Send(msg) }
	m := newModel(inner, host, opt.Now, send)
	m.one = o
	p = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(opt.In), tea.WithOutput(opt.Out),
		tea.WithEnvironment(opt.Env), tea.WithFPS(fps), tea.WithoutSignalHandler())
	f := &follower{host: host, one: o, send: send}
	wg.Go(func() { f.run(inner) })
	_, err := p.Run()
	if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}
