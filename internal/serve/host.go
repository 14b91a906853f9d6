package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"sluice/daemon"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/workspace"
	"sluice/journal"
)

// Host is this process serving a repo while a run lasts.
type Host struct {
	repo  *daemon.Repo
	parts *Parts
	log   io.Closer
	end   context.CancelFunc
	done  chan error
}

// How long a mere reader may hold the journal, and how long notices may take after a run's end.
const (
	hostTries = 40
	hostPause = 100 * time.Millisecond
	settleIn  = 8 * time.Second
)

// logFile is the log of a foreground process, in the state folder.
const logFile = "run.log"

// asFits is a log that drops what its disk has no room for: zerolog would say so on the person's screen.
type asFits struct{ io.Writer }

func (w asFits) Write(p []byte) (int, error) {
	_, _ = w.Writer.Write(p)
	return len(p), nil
}

// InFront serves the repo from this process until Stop; with hold it launches nothing.
func InFront(ctx context.Context, o Options, p *workspace.Workspace, hold bool) (*Host, error) {
	if err := workspace.MakeState(p.State); err != nil {
		return nil, err
	}
	if err := workspace.Writable(filepath.Join(p.Root, filepath.FromSlash(layout.RunsDir))); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(p.State, logFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	w, err := New(o, zerolog.New(asFits{f}).With().Timestamp().Logger())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	open := w.open
	if hold {
		open = w.openHeld
	}
	for try := 0; ; try++ {
		inner, end := context.WithCancel(context.WithoutCancel(ctx))
		h := &Host{parts: w, log: f, end: end, done: make(chan error, 1)}
		ready := make(chan struct{})
		go func() {
			h.done <- daemon.Serve(inner, p.Root, p.State, open, func(repo *daemon.Repo, _ journal.Recovery) {
				h.repo = repo
				close(ready)
			})
		}()
		select {
		case <-ready:
			return h, nil
		case err = <-h.done:
		}
		end()
		var held *daemon.Held
		if !errors.As(err, &held) {
			return nil, errors.Join(err, w.Close(), f.Close())
		}
		if try == hostTries || ctx.Err() != nil {
			_ = errors.Join(w.Close(), f.Close()) // the other process is what matters
			return nil, err
		}
		time.Sleep(hostPause)
	}
}

// Settle waits until people got their notices, at most settleIn.
func (h *Host) Settle(s workspace.Service) {
	ctx, cancel := context.WithTimeout(context.Background(), settleIn)
	defer cancel()
	for {
		st, err := s.Status(ctx, "")
		if err != nil || st.Notices == 0 || !health.Wait(ctx, hostPause) {
			return
		}
	}
}

// Stop stops serving; running agents continue.
func (h *Host) Stop() error {
	h.end()
	err := <-h.done
	return errors.Join(err, h.parts.Close(), h.log.Close())
}

// How long an aborted run's processes may take to end, and how often to check. The limit is longer
// than any sensible kill_after and after_run.
const (
	abortMost = 10 * time.Minute
	abortPace = 50 * time.Millisecond
)

// Quiet waits until nothing of an ended run is running.
func (h *Host) Quiet(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, abortMost, fmt.Errorf("not within %s", abortMost))
	defer cancel()
	for {
		quiet, err := h.repo.Quiet(ctx, run)
		if err == nil && quiet {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if !health.Wait(ctx, abortPace) {
			return fault.Failed("the next process that serves the repo (`sluice run`, `sluice daemon`) ends the rest",
				"%s is aborted, but not all of it has ended: %s", run, context.Cause(ctx))
		}
	}
}
