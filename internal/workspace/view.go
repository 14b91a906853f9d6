package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/text"
	"sluice/journal"
	"sluice/specs"
)

// Viewer reports the state of a repo: the process that serves it, or its journal.
type Viewer interface {
	Status(ctx context.Context, run string) (daemon.Status, error)
	// Recent is a status with all live runs and only the newest ended ones: see daemon.Client.
	Recent(ctx context.Context, since time.Time, most int) (daemon.Status, error)
	Run(ctx context.Context, run string) (daemon.RunStatus, error)
	Spec(ctx context.Context, run string) (string, error)
	Facts(ctx context.Context, run string, from int64, follow bool, fn func(daemon.Line) error) error
	Offers(ctx context.Context) ([]daemon.Offer, error)
	Close()
}

// Service is a process that serves a repo.
type Service interface {
	Viewer
	Ping(ctx context.Context) (daemon.Ping, error)
	Do(ctx context.Context, ev engine.Event, via string) (daemon.Done, error)
	Drain(ctx context.Context, worker string, drain bool) error
	Reload(ctx context.Context) error
}

// Client returns a client of the process that serves the repo.
func (p *Workspace) Client() Service { return telling{daemon.NewClient(p.State), p.State} }

// pingIn is how long a process may take to confirm that it serves.
const pingIn = 3 * time.Second

// Serving returns the process that serves the repo; nil = none.
func (p *Workspace) Serving(ctx context.Context) (Service, error) {
	c := daemon.NewClient(p.State)
	within, cancel := context.WithTimeout(ctx, pingIn)
	defer cancel()
	_, err := c.Ping(within)
	if err == nil {
		return telling{c, p.State}, nil
	}
	c.Close()
	if errors.Is(err, daemon.ErrNotServed) || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("nothing came in %s", text.Span(pingIn))
	}
	return nil, &fault.Error{Cause: fmt.Sprintf("the process that serves this repo does not answer: %s", err),
		Code: fault.ExitServed, Err: err,
		Advice: "look at it (" + p.holderOf() + "); end it and start the daemon again: runs continue where they were"}
}

// holderOf names the process that holds the repo's lock, by its own record.
func (p *Workspace) holderOf() string {
	b, err := os.ReadFile(filepath.Join(p.State, "holder"))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return "pid " + text.Line(pid)
	}
	return "`sluice doctor` names it"
}

// NeedServing returns the process that serves the repo, or an error that says how to start one.
func (p *Workspace) NeedServing(ctx context.Context) (Service, error) {
	s, err := p.Serving(ctx)
	if err == nil && s == nil {
		err = p.notServed()
	}
	return s, err
}

// Do sends an event to the process that serves the repo. via names how it came, for the record.
func (p *Workspace) Do(ctx context.Context, ev engine.Event, via string) (done daemon.Done, err error) {
	s, err := p.NeedServing(ctx)
	if err != nil {
		return done, err
	}
	defer s.Close()
	return Do(ctx, s, ev, via)
}

// Do sends an event to a process that serves a repo. Before a resume that process reads the settings
// again, in which what paused the run may be fixed.
func Do(ctx context.Context, s Service, ev engine.Event, via string) (done daemon.Done, err error) {
	if _, ok := ev.(engine.ResumeRequested); ok {
		err = s.Reload(ctx)
	}
	if err != nil {
		return done, err
	}
	return s.Do(ctx, ev, via)
}

func (p *Workspace) notServed() error {
	return fault.Failed("run `sluice run RUN` here and this command in another terminal, or serve the repo with "+
		"`sluice watch add` and `sluice daemon`; `sluice abort RUN` works without either",
		"no sluice process serves %s now", p.Root)
}

// View returns the process that serves the repo or, without one, its journal. It waits a little for a
// process that just begins or ends to serve, and for another reader.
func (p *Workspace) View(ctx context.Context) (v Viewer, served bool, err error) {
	for try := 0; ; try++ {
		if s, err := p.Serving(ctx); s != nil || err != nil {
			return s, s != nil, err
		}
		v, err = p.readJournal()
		var held *daemon.Held
		if !errors.As(err, &held) {
			return v, false, err
		}
		if try == lockTries || !health.Wait(ctx, lockPause) {
			return nil, false, &fault.Error{Cause: err.Error(),
				Advice: "it is just starting or ending: try again; if that does not help, end that process",
				Code:   fault.ExitServed, Err: err}
		}
	}
}

// How often to try again, and with which pause.
const (
	lockTries = 60
	lockPause = 50 * time.Millisecond
)

// readJournal returns the journal of a repo that nobody serves.
func (p *Workspace) readJournal() (Viewer, error) {
	is, err := journal.Exists(p.State)
	if err != nil {
		return nil, err
	}
	if !is {
		return nothing{p.Root}, nil // reading creates no state
	}
	r, err := daemon.OpenReader(p.Root, p.State, Compile)
	if err != nil {
		return nil, err
	}
	return &unserved{r, p.State}, nil
}

// Compile returns the engine's spec of a run's source.
func Compile(source string) (*engine.Spec, error) {
	spec, faults := specs.Load("", []byte(source))
	if len(faults) == 0 {
		return spec, nil
	}
	return nil, faults[0]
}

// SpecOf returns the spec of a run, from its source; for a child run the part that its digest
// names.
func SpecOf(ctx context.Context, v Viewer, r daemon.RunStatus) (*engine.Spec, error) {
	source, err := v.Spec(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	spec, err := Compile(source)
	if err != nil {
		return nil, err
	}
	if spec = engine.Specs(func(string) *engine.Spec { return spec }).Of(r.Digest); spec == nil {
		return nil, fmt.Errorf("%s: the spec of its parent does not have its workflow", r.ID)
	}
	return spec, nil
}

// unserved is the journal of a repo that nobody serves.
type unserved struct {
	r     *daemon.Reader
	state string
}

func (u *unserved) Status(_ context.Context, run string) (daemon.Status, error) {
	return exposures(u.state, u.r.Status(run, false)), nil
}

func (u *unserved) Recent(_ context.Context, since time.Time, most int) (daemon.Status, error) {
	return exposures(u.state, u.r.Recent(since, most)), nil
}

func (u *unserved) Run(_ context.Context, run string) (daemon.RunStatus, error) {
	s := exposures(u.state, u.r.Status(run, true))
	if len(s.Runs) != 1 {
		return daemon.RunStatus{}, fault.New("sluice ls names them", "no run %s is known here", run)
	}
	return s.Runs[0], nil
}

func (u *unserved) Spec(_ context.Context, run string) (string, error) { return u.r.Spec(run), nil }

func (u *unserved) Facts(_ context.Context, run string, from int64, follow bool, fn func(daemon.Line) error) error {
	if from < 0 {
		return nil
	}
	return u.r.Facts(run, from, fn)
}

func (u *unserved) Offers(context.Context) ([]daemon.Offer, error) { return u.r.Offers(), nil }

func (u *unserved) Close() { _ = u.r.Close() } // it was only read

// nothing is a repo without any run.
type nothing struct{ root string }

func (n nothing) Status(context.Context, string) (daemon.Status, error) {
	return daemon.Status{Root: n.root, Runs: []daemon.RunStatus{}}, nil
}

func (n nothing) Recent(context.Context, time.Time, int) (daemon.Status, error) {
	return n.Status(context.Background(), "")
}

func (n nothing) Run(_ context.Context, run string) (daemon.RunStatus, error) {
	return daemon.RunStatus{},
		fault.Failed("`sluice run WORKFLOW` starts one", "no run %s: this repo has no run yet", text.Line(run))
}

func (n nothing) Spec(context.Context, string) (string, error) { return "", nil }

func (n nothing) Facts(context.Context, string, int64, bool, func(daemon.Line) error) error {
	return nil
}

func (n nothing) Offers(context.Context) ([]daemon.Offer, error) { return []daemon.Offer{}, nil }

func (n nothing) Close() {}
