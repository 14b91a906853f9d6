package triggers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/watcher"
)

// Options configures Triggers. All but Git are required.
type Options struct {
	Root    string
	Notes   *health.Notes
	Git     *git.Repo // nil, or plain: there are no pushes
	Watcher *watcher.Watcher
	Matches func(glob, name string) bool              // whether a path matches a glob
	Address func(ctx context.Context) (string, error) // of the remote
	// Read reads a workflow for a run with vars. armed is the digest of its spec as a person would
	// arm it now.
	Read func(ctx context.Context, workflow string, vars map[string]any) (run engine.RunRequested, armed string,
		err error)
	// Trees returns the checkouts of a spec's worktrees: see daemon.World.
	Trees func(ctx context.Context, spec *engine.Spec) map[string]string
	Forge func(ctx context.Context) (Forge, error)
	Poll  func() time.Duration // between looks at the forge
	Every func() time.Duration // between looks at files and refs, whatever the hints
	Now   func() time.Time
}

// Triggers looks for what fires in one repo.
type Triggers struct {
	*health.Notes
	opt Options

	mu      sync.Mutex
	stirred chan struct{}  // closed when something may have changed, then replaced
	watched map[string]int // folders, by how many triggers look there
}

// New returns the Triggers of a repo.
func New(o Options) *Triggers {
	return &Triggers{Notes: o.Notes, opt: o, stirred: make(chan struct{}), watched: map[string]int{}}
}

// Hint takes a name from the shared watcher's Hints; it ignores other repos.
func (t *Triggers) Hint(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[name] == 0 && (!t.opt.Git.Checkout() || name != t.opt.Git.CommonDir()) {
		return
	}
	close(t.stirred)
	t.stirred = make(chan struct{})
}

// stir returns a channel that is closed at the next hint.
func (t *Triggers) stir() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stirred
}

// wait waits for a hint or for some time; false if ctx ended first.
func wait(ctx context.Context, stirred <-chan struct{}, most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-stirred:
	case <-t.C:
	}
	return true
}

// heldEvery is how often a firing that cannot start its run is tried again.
const heldEvery = 2 * time.Second

// Fire reads the spec for a firing: see engine.DoFire. A run starts only by the text that a person
// armed; until the file is that again, the firing is held.
func (t *Triggers) Fire(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	for said := ""; ; {
		run, armed, err := t.opt.Read(ctx, j.Effect.Armed, j.Firing.Vars)
		why := ""
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			why = err.Error()
		case armed != j.Armed:
			why = fmt.Sprintf("its spec has changed since it was armed: look at it, then sluice triggers arm %s", j.Effect.Armed)
		default:
			run.Trees = t.opt.Trees(ctx, j.Spec)
			return engine.FiringRead{Workflow: j.Effect.Armed, Trigger: j.Trigger, Key: j.Firing.Key, Armed: armed,
				Run: run}
		}
		t.Note(j.Key, why)
		if why != said {
			emit(engine.FiringHeld{Workflow: j.Effect.Armed, Why: why})
			said = why
		}
		if !health.Wait(ctx, heldEvery) {
			return nil
		}
	}
}

// Listen looks for what fires a trigger until ctx ends: see engine.DoListen.
func (t *Triggers) Listen(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	var of *engine.Trigger
	if j.Spec != nil {
		of = j.Spec.On.Trigger(j.Trigger)
	}
	if of != nil {
		tell := func(f engine.Fired) {
			f.Workflow, f.Trigger, f.Armed = j.Effect.Armed, of.Name, int64(j.N)
			emit(f)
		}
		switch of.Kind {
		case engine.OnFiles:
			t.files(ctx, j, of, tell)
		case engine.OnPush:
			t.pushes(ctx, j, of, tell)
		case engine.OnIssue:
			t.issues(ctx, j, of, tell)
		}
	}
	<-ctx.Done()
	return nil
}

// Present returns what the triggers of a spec would fire for and that is there already.
func (t *Triggers) Present(ctx context.Context, spec *engine.Spec) (out []engine.Was, err error) {
	if spec.On == nil {
		return nil, nil
	}
	for _, of := range spec.On.Triggers {
		var keys []string
		switch of.Kind {
		case engine.OnFiles:
			keys, err = t.presentFiles(ctx, of)
		case engine.OnPush:
			keys, err = t.presentTips(ctx, of)
		case engine.OnIssue:
			keys, err = t.presentIssues(ctx, of)
		}
		if err != nil {
			return nil, fmt.Errorf("trigger %s: %w", of.Name, err)
		}
		for _, k := range keys {
			out = append(out, engine.Was{Trigger: of.Name, Key: k})
		}
	}
	return out, nil
}
