package main

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
	"sluice/internal/layout"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/journal"
	"sluice/specs"
)

// viewer shows how a repo stands: whoever serves it, or its journal.
type viewer interface {
	Status(ctx context.Context, run string) (daemon.Status, error)
	Run(ctx context.Context, run string) (daemon.RunStatus, error)
	Spec(ctx context.Context, run string) (string, error)
	Facts(ctx context.Context, run string, from int64, follow bool, fn func(daemon.Line) error) error
	Offers(ctx context.Context) ([]daemon.Offer, error)
	Close()
}

// service is a process that serves a repo.
type service interface {
	viewer
	Ping(ctx context.Context) (daemon.Ping, error)
	Do(ctx context.Context, ev engine.Event, via string) (daemon.Done, error)
	Reload(ctx context.Context) error
}

// pingIn is how long a process may take to say that it serves.
const pingIn = 3 * time.Second

// serving returns the process that serves the repo; nil where there is none.
func serving(ctx context.Context, p *workspace.Workspace) (service, error) {
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
	return nil, &fault.Error{Cause: fmt.Sprintf("the process that serves this repo does not answer: %s", err), Code: fault.ExitServed, Err: err,
		Advice: "see what it does (" + holderOf(p) + "); end it and start the daemon again: runs go on where they were"}
}

// holderOf names the process that holds the repo's lock, as it said itself.
func holderOf(p *workspace.Workspace) string {
	b, err := os.ReadFile(filepath.Join(p.State, "holder"))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return "pid " + clean(pid)
	}
	return "`sluice doctor` tells more"
}

// needed returns the process that serves the repo, or says how to have one.
func needed(ctx context.Context, p *workspace.Workspace) (service, error) {
	s, err := serving(ctx, p)
	if err == nil && s == nil {
		err = notServed(p)
	}
	return s, err
}

func notServed(p *workspace.Workspace) error {
	return fault.Failed("`sluice run RUN` goes on with a live run in the foreground, and this command reaches it from another terminal, `sluice abort RUN` ends it; `sluice watch add` and `sluice daemon` serve it all the time", "no sluice process serves %s now", p.Root)
}

// viewOf returns whoever serves the repo, or its journal where nobody does.
func viewOf(ctx context.Context, p *workspace.Workspace) (v viewer, served bool, err error) {
	s, err := serving(ctx, p)
	if err != nil {
		return nil, false, err
	}
	if s != nil {
		return s, true, nil
	}
	v, err = readJournal(p)
	return v, false, err
}

// readJournal shows a repo that nobody serves.
func readJournal(p *workspace.Workspace) (viewer, error) {
	if !layout.IsFile(filepath.Join(p.State, journal.FileName)) {
		return nothing{p.Root}, nil // no state is made by looking
	}
	r, err := openReader(p)
	var held *daemon.Held
	if errors.As(err, &held) {
		return nil, &fault.Error{Cause: err.Error(), Advice: "it starts or ends just now: try again; if it stays, end that process", Code: fault.ExitServed, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return reading{&unserved{r}, p.State}, nil
}

// openReader reads the journal; it waits a little for another reader to be done.
func openReader(p *workspace.Workspace) (*daemon.Reader, error) {
	var held *daemon.Held
	for try := 0; ; try++ {
		r, err := daemon.OpenReader(p.Root, p.State, compileSpec)
		if !errors.As(err, &held) || try == lockTries {
			return r, err
		}
		time.Sleep(lockPause)
	}
}

// How often and how long one waits for who only looks at the journal.
const (
	lockTries = 20
	lockPause = 50 * time.Millisecond
)

// compileSpec makes the engine's spec of the source that a run was started with.
func compileSpec(source string) (*engine.Spec, error) {
	spec, faults := specs.Load("", []byte(source))
	if len(faults) == 0 {
		return spec, nil
	}
	return nil, faults[0]
}

// goesBy is what a run goes by, of the source that viewers give: of a child run the part that its digest names.
func goesBy(ctx context.Context, v viewer, r daemon.RunStatus) (*engine.Spec, error) {
	source, err := v.Spec(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	spec, err := compileSpec(source)
	if err != nil {
		return nil, err
	}
	if spec = engine.Specs(func(string) *engine.Spec { return spec }).Of(r.Digest); spec == nil {
		return nil, fmt.Errorf("%s: what it goes by is not in the spec of its parent", r.ID)
	}
	return spec, nil
}

// unserved is the journal of a repo that nobody serves.
type unserved struct{ r *daemon.Reader }

func (u *unserved) Status(_ context.Context, run string) (daemon.Status, error) {
	return u.r.Status(run, false), nil
}

func (u *unserved) Run(_ context.Context, run string) (daemon.RunStatus, error) {
	s := u.r.Status(run, true)
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

// nothing is a repo in which nothing ever ran.
type nothing struct{ root string }

func (n nothing) Status(context.Context, string) (daemon.Status, error) {
	return daemon.Status{Root: n.root, Runs: []daemon.RunStatus{}}, nil
}

func (n nothing) Run(_ context.Context, run string) (daemon.RunStatus, error) {
	return daemon.RunStatus{}, fault.Failed("`sluice run WORKFLOW` starts one", "no run %s: nothing ever ran in this repo", clean(run))
}

func (n nothing) Spec(context.Context, string) (string, error) { return "", nil }

func (n nothing) Facts(context.Context, string, int64, bool, func(daemon.Line) error) error {
	return nil
}

func (n nothing) Offers(context.Context) ([]daemon.Offer, error) { return []daemon.Offer{}, nil }
func (n nothing) Close()                                         {}

// statusOfRun tells all of one run.
func statusOfRun(ctx context.Context, p *workspace.Workspace, run string) (*daemon.RunStatus, error) {
	v, _, err := viewOf(ctx, p)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	id, err := runNamed(ctx, v, run)
	if err != nil {
		return nil, err
	}
	r, err := v.Run(ctx, id)
	return &r, err
}

// lastRun is the name of the newest run of a repo.
const lastRun = "last"

// runNamed finds the run that is meant: by its id, by "last", or by the workflow whose newest run it is.
func runNamed(ctx context.Context, v viewer, name string) (string, error) {
	st, err := v.Status(ctx, "")
	if err != nil {
		return "", err
	}
	return named(st.Runs, name)
}

// named is runNamed among runs that are known.
func named(runs []daemon.RunStatus, name string) (string, error) {
	if len(runs) == 0 {
		return "", fault.Failed("`sluice run WORKFLOW` starts one", "no run %q: nothing ever ran in this repo", clean(name))
	}
	var known []string
	newest := ""
	for _, r := range runs {
		if r.ID == name {
			return r.ID, nil
		}
		if r.Child != nil { // meant by its id alone
			known = append(known, r.ID)
			continue
		}
		if r.Workflow == name || name == lastRun || name == "" {
			newest = r.ID
		}
		known = append(known, r.ID)
	}
	if newest != "" {
		return newest, nil
	}
	advice := "`sluice ls` names them"
	if near := text.Meant(name, known); near != "" {
		advice = "did you mean " + near + "?"
	}
	return "", fault.Failed(advice, "no run %q in this repo", clean(name))
}

// gatherShown puts together what there is about a gate or a step.
func gatherShown(ctx context.Context, p *workspace.Workspace, v viewer, r daemon.RunStatus, id string) (*show.Shown, error) {
	spec, err := goesBy(ctx, v, r)
	if err != nil {
		return nil, err
	}
	return show.Gather(ctx, show.Source{Root: p.Root, State: p.State, Repo: p.Open}, spec, r, id), nil
}
