package world

import (
	"context"
	"path/filepath"
	"time"

	"sluice/agents"
	"sluice/agents/launch"
	"sluice/agents/sandbox"
	"sluice/daemon"
	"sluice/engine"
	"sluice/gates"
	"sluice/gates/judge"
	"sluice/internal/collect"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/pulls"
	"sluice/internal/settings"
	"sluice/internal/tree"
	"sluice/internal/work"
	"sluice/notify"
	"sluice/notify/people"
	"sluice/watcher"
	"sluice/watcher/inbox"
	"sluice/watcher/refs"
	"sluice/watcher/triggers"
)

// Options are what a World needs. Git, Slots, PutDown, Spending, Sandbox, Afar and Hidden are optional.
type Options struct {
	Root  string // the repo's root, a real path: the folder that contains .workflow/
	State string // this repo's state folder, outside the repo
	// Git is nil if git is not installed. For a root that is no checkout, it is a store of
	// sluice's.
	Git      *git.Repo
	Runner   *agents.Runner          // starts processes
	Watcher  *watcher.Watcher        // shared by all repos: see Hint
	Notifier func() *notify.Notifier // called for each notice; nil = no notices
	// Terminal opens a terminal in dir with a sluice command.
	Terminal func(ctx context.Context, dir string, args []string) error
	Settings func() settings.Settings // called at each launch
	Fresh    func(context.Context)    // reads the settings again if they have changed, before each launch
	Self     string                   // sluice's own binary, which plays stubs; "" = none
	Environ  []string                 // the daemon's; agents get what is allowed of it
	Logf     func(string, ...any)     // errors that did not stop the work
	Slots    *launch.Slots            // shared by all repos: the agents' slots; nil = no limit
	PutDown  func() time.Time         // last stop of the service or machine on purpose; nil = never
	Spending *launch.Spending         // shared by all repos: usage of the day; nil = no budget
	Now      func() time.Time
	// Sandbox returns the sandbox of launches, or why there is none, at each launch. nil: launches
	// are not held.
	Sandbox func() (*sandbox.Box, error)
	Unheld  *launch.Unheld // shared by all repos
	Afar    launch.Afar    // the workers; nil = there are none
	Repo    string         // repo-id: an answer signed for another repo does not count
	Journal func() string  // the journal's id, which answers are signed for too; may return ""
	Hidden  []string       // sluice's own folders beside State, hidden from held launches
	// Read reads a workflow for the run of a firing: see triggers.Options.
	Read func(ctx context.Context, workflow string, vars map[string]any) (engine.RunRequested, string, error)
}

// World carries out the effects of one repo's runs, and reads its inboxes. It is a daemon.World,
// safe for concurrent use, without goroutines of its own except the Cage's.
type World struct {
	opt Options
	layout.Layout
	health.Notes
	*people.People
	*folders.Folders
	*launch.Launches
	*collect.Collector
	*judge.Judges
	*inbox.Inbox
	*work.Work
	*pulls.Pulls
	*triggers.Triggers
	refs *refs.Refs
}

var _ daemon.World = (*World)(nil)

// New returns a World that watches the repo's inbox. The caller closes it.
func New(o Options) (*World, error) {
	e := &World{opt: o, Layout: layout.Layout{Root: o.Root, State: o.State}, Notes: health.Notes{Log: o.Logf}}
	if o.Afar != nil {
		e.Given = o.Afar.Token
	}
	if o.Git.Checkout() {
		e.Top = o.Git.Top()
	}
	if err := e.Layout.Open(); err != nil {
		return nil, err
	}
	if err := e.tie(); err != nil {
		return nil, err
	}
	return e, nil
}

// tie creates the rooms, from the bottom up. A room reaches one above it through a function or a
// small interface.
func (e *World) tie() (err error) {
	o := e.opt
	poll := func() time.Duration { return time.Duration(o.Settings().PRPoll) }
	e.Folders, err = folders.New(folders.Options{Layout: e.Layout, Notes: &e.Notes, Git: o.Git, Settings: o.Settings,
		Hidden: o.Hidden,
		Request: func(ctx context.Context, j job.Job, w tree.Work, l tree.Landing) error {
			return e.Pulls.Land(ctx, j, w, l)
		},
		Held: func() bool { box, _ := e.Box(); return box != nil }, Path: func() string { return e.Variable("PATH") },
		Pulls: func(ctx context.Context) (map[string]string, error) { return e.refs.Pulls(ctx) }})
	if err != nil {
		return err
	}
	e.Launches, err = launch.New(launch.Options{Runner: o.Runner, Slots: o.Slots, Spending: o.Spending,
		PutDown: o.PutDown, Afar: o.Afar, Now: o.Now,
		CageOptions: launch.CageOptions{Layout: e.Layout, Notes: &e.Notes, Git: o.Git, Settings: o.Settings,
			Sandbox: o.Sandbox, Unheld: o.Unheld, Environ: o.Environ, Hidden: o.Hidden, Self: o.Self, Inboxes: e,
			Vacate: func(pidFile string) { e.Vacate(pidFile) }}})
	if err != nil {
		return err
	}
	e.Inbox, err = inbox.New(inbox.Options{Layout: e.Layout, Notes: &e.Notes, Watcher: o.Watcher, Judge: e.Folders,
		Launches: e.Launches, Repo: o.Repo, Journal: o.Journal, Tracked: (&tree.Tracking{Repo: o.Git}).Has,
		Corrections: gates.MaxCorrections,
		Settle:      func() time.Duration { return time.Duration(o.Settings().Settle) }, Now: o.Now})
	if err != nil {
		e.Launches.Close()
		return err
	}
	e.refs = refs.New(refs.Options{Layout: e.Layout, Notes: &e.Notes, Git: o.Git, Watcher: o.Watcher, Poll: poll,
		Own: e.OwnGitOf, Inside: e.GitInside, Now: o.Now})
	e.Pulls = pulls.New(pulls.Options{State: e.State, Git: o.Git, Env: o.Environ, Notes: &e.Notes, Remote: e.refs.Remote,
		Onto: e.Onto, Digest: e.DigestNow, Poll: poll, Now: o.Now})
	e.Triggers = triggers.New(triggers.Options{Root: e.Root, Notes: &e.Notes, Git: o.Git, Watcher: o.Watcher,
		Matches: gates.Matches, Address: e.refs.Remote, Read: o.Read, Trees: e.Trees,
		Forge: func(ctx context.Context) (triggers.Forge, error) {
			hub, _, err := e.Pulls.Forge(ctx)
			return hub, err
		},
		Poll: poll, Every: func() time.Duration { return time.Duration(o.Settings().Rescan) }, Now: o.Now})
	e.Collector = collect.New(collect.Options{Launches: e.Launches, Folders: e.Folders, Git: o.Git,
		Settings: o.Settings})
	e.Judges = judge.New(judge.Options{Collector: e.Collector, Launches: e.Launches, Folders: e.Folders,
		Runner: o.Runner, Git: o.Git, Now: o.Now})
	e.Work = work.New(work.Options{Judges: e.Judges, Collector: e.Collector, Launches: e.Launches, Folders: e.Folders,
		Inbox: e.Inbox, Git: o.Git, Now: o.Now})
	e.People = people.New(people.Options{Root: e.Root, Notifier: o.Notifier, Terminal: o.Terminal,
		Page:          func() string { return o.Settings().Web.Pages(filepath.Base(e.State)) },
		EscalateAfter: func() int { return o.Settings().Notify.Escalate.After }, Level: e.Level, Files: e.FilesOf,
		Notes: &e.Notes, Now: o.Now})
	return nil
}

// Hear passes on what people say by buttons, and by comments at the forge: see daemon.RepoOptions.
func (e *World) Hear(ctx context.Context, do func(context.Context, daemon.Do) (daemon.Done, error),
	take func(context.Context, engine.Event) (daemon.Done, error)) (end func()) {
	e.Pulls.Hear(func(ev engine.Event) (why string, err error) {
		done, err := take(ctx, ev) // the end of a watch does not end it: what is taken in is decided
		if done.Void() {
			return "what was reviewed has changed since; it will be checked and asked again", err
		}
		return done.Ignored, err
	})
	return e.People.Hear(ctx, do)
}

// Close stops watching the repo's folders, and waits for background work.
func (e *World) Close() error {
	e.Unwatch()
	e.Launches.Close()
	return nil
}

// Hint passes on a name from the shared watcher's Hints; another repo's name changes nothing.
func (e *World) Hint(name string) {
	e.refs.Hint(name)
	e.Triggers.Hint(name)
	e.Inbox.Hint(name)
}

// Health returns what is wrong; empty = all well.
func (e *World) Health() []string {
	out := append(e.Notes.All(), e.Degraded()...)
	return append(out, e.opt.Settings().Warnings()...)
}

// Carry carries out an effect: see daemon.World.
func (e *World) Carry(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	defer e.Forget(j.Key)
	if !e.PlaceChild(ctx, j) {
		return nil
	}
	switch j.Kind {
	case engine.DoRun:
		if ev := e.run(ctx, j, emit); ev != nil {
			ev.Run, ev.Key, ev.Day = j.Run, j.Key, launch.DayOf(e.opt.Now())
			return *ev
		}
	case engine.DoStop:
		return e.Stop(ctx, j)
	case engine.DoWatch:
		return e.refs.Look(ctx, j, emit)
	case engine.DoOffer:
		e.opt.Fresh(ctx)
		return e.Offer(ctx, j, emit)
	case engine.DoNotify:
		if j.Notice.Kind == engine.NoticeEnded {
			defer e.Ended(ctx, j)
		}
		return e.Tell(ctx, j)
	case engine.DoForge:
		e.Pulls.Watch(ctx, j, emit)
	case engine.DoWrite:
		return e.Write(ctx, j)
	case engine.DoMove:
		return e.Move(ctx, j)
	case engine.DoLook:
		return e.Look(ctx, j)
	case engine.DoTasks:
		return e.LookAtTasks(ctx, j)
	case engine.DoSave:
		return e.SaveTasks(ctx, j)
	case engine.DoListen:
		return e.Listen(ctx, j, emit)
	case engine.DoFire:
		return e.Fire(ctx, j, emit)
	default:
		e.Note("effect "+j.Kind, "this release does not know it")
	}
	<-ctx.Done()
	return nil
}

// run runs a process of its kind; nil = ctx ended first, or nothing can be started.
func (e *World) run(ctx context.Context, j job.Job, emit func(engine.Event)) *engine.ProcessEnded {
	p := j.Proc
	if p == nil || j.Spec == nil || p.Step != "" && (j.Attempt == nil || j.Spec.Step(p.Step) == nil) ||
		p.Gate != "" && (j.Round == nil || j.Spec.Gate(p.Gate) == nil) {
		e.Note(j.Key, "its run's spec, attempt or round is not known: nothing can be started")
		return nil
	}
	e.opt.Fresh(ctx)
	switch p.Kind {
	case engine.ProcStep:
		defer e.refs.Ended(j.Run, p.Step, j.Attempt.N)
		return e.Step(ctx, j, emit)
	case engine.ProcCheck:
		return e.Check(ctx, j)
	case engine.ProcReview:
		if p.Forge {
			return e.Judge(ctx, j)
		}
		return e.Review(ctx, j, emit)
	case engine.ProcHook:
		return e.Hook(ctx, j)
	}
	return nil
}
