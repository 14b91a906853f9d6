package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/agents"
	"sluice/agents/launch"
	"sluice/agents/sandbox"
	"sluice/daemon"
	"sluice/deploy"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/cluster"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/internal/world"
	"sluice/journal"
	"sluice/notify"
	"sluice/watcher"
)

// Timing replaces the machine's clock, for a soak test; zero: it does not.
type Timing struct {
	Pace func(time.Duration) time.Duration // see daemon.RepoOptions
	Look watcher.Options
}

// Options are how this process serves repos.
type Options struct {
	Console *console.Console
	Set     []string // settings over all layers, KEY=VALUE
	Version string   // of sluice
	Timing  Timing
	Cluster *Cluster // nil: this machine alone
	// Self is the binary that launches go through; "": this one, which keeps some launch hosts
	// warm.
	Self string
}

// Parts are what all repos of a process share. The caller closes them after the last repo.
type Parts struct {
	Options
	log    zerolog.Logger
	watch  *watcher.Watcher
	runner *agents.Runner
	conn   *cluster.Conn // nil: this machine alone
	// workers is the connection to workers: conn, or one to an account of their own.
	workers *cluster.Conn
	slots   *launch.Slots
	gits    git.Turns
	spent   *launch.Spending
	dog     *watchdog
	unheld  *launch.Unheld
	desk    *notify.Desk
	box     func() (*sandbox.Box, error) // tested at the first launch

	personal personal

	mu     sync.Mutex
	worlds map[*world.World]bool
	live   map[*liveSettings]bool
	faults map[*liveSettings]string // of settings that could not be read again
	poked  chan struct{}            // some settings are hinted at
	ctx    context.Context
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// warmShims is how many hosts of ended launches wait for the next one.
const warmShims = 2

// trialRest is the time between two trials of the sandbox, while none can be made.
const trialRest = 10 * time.Second

// loopsRescan keeps the watcher from rescanning folders with events: each repo's loop reads all its
// inboxes every few seconds.
const loopsRescan = time.Hour

// restEvery is the time between two rescans of a repo in which nothing is under way.
const restEvery = 5 * time.Minute

// restOf returns the same for a repo that is read every rescan: none if that is sooner than the
// watcher finds what no event reported.
func restOf(rescan time.Duration) time.Duration {
	if rescan < watcher.DefaultCheck {
		return 0
	}
	return restEvery
}

// New returns what a process needs to serve repos.
func New(o Options, log zerolog.Logger) (*Parts, error) {
	warm := 0
	if o.Self == "" {
		var err error
		if o.Self, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("this binary cannot be found: %w: agents are launched through it", err)
		}
		warm = warmShims
	}
	conn, toWorkers, err := o.Cluster.connect((&Parts{log: log}).logf("cluster"))
	if err != nil {
		return nil, err
	}
	look := o.Timing.Look
	look.Rescan = cmp.Or(look.Rescan, loopsRescan)
	ctx, stop := context.WithCancel(context.Background())
	w := &Parts{Options: o, log: log, conn: conn, workers: toWorkers, slots: &launch.Slots{}, gits: git.NewTurns(),
		unheld: &launch.Unheld{}, spent: &launch.Spending{}, dog: &watchdog{beats: map[string]time.Time{}},
		watch: watcher.New(look), worlds: map[*world.World]bool{}, live: map[*liveSettings]bool{},
		faults: map[*liveSettings]string{},
		poked:  make(chan struct{}, 1), ctx: ctx, stop: stop}
	w.desk = notify.NewDesk([]string{o.Self, NotifyHelper}, nil)
	w.runner = agents.New(agents.Options{Shim: []string{o.Self, shimCommand}, Warm: warm, Logf: w.logf("agents")})
	w.box = sandbox.Trial(trialRest, func() (*sandbox.Box, error) {
		return sandbox.Find(context.Background(), o.Self, "")
	})
	w.done.Go(func() { w.spread(ctx) })
	w.done.Go(func() { w.keepSettings(ctx) })
	return w, nil
}

// Close closes what the repos shared.
func (w *Parts) Close() error {
	w.stop()
	w.done.Wait()
	if w.conn != nil {
		w.conn.Close()
		w.workers.Close()
	}
	return errors.Join(w.runner.Close(), w.watch.Close(), w.desk.Close())
}

// Server returns the daemon of all watched repos.
func (w *Parts) Server(home string, page func(context.Context) (string, error)) *daemon.Server {
	return daemon.NewServer(daemon.ServerOptions{
		Home: home, Web: page, Version: w.Version, Log: w.log, Open: w.open, ReposFile: workspace.ReposFile(home),
		StateOf: func(ctx context.Context, root string) (string, error) {
			if !workspace.IsDir(root) {
				return "", fault.New(fmt.Sprintf("move it back, or run `sluice watch rm %s`, and `sluice watch add` in "+
					"its new place", text.Typed(root)), "repo: %w", atomicfile.ErrGone)
			}
			p, err := workspace.At(ctx, w.Console, root)
			if err != nil {
				return "", err
			}
			if p.Root != root { // a folder above is a repo, or another checkout is the root
				return "", fault.Failed("put its own git folder back if it had one, or run `sluice watch rm "+text.Typed(root)+"`",
					"repo: it belongs to the repo in %s", p.Root)
			}
			return p.State, nil
		},
	})
}

// spread passes the watcher's hints to all repos: each recognizes its own.
func (w *Parts) spread(ctx context.Context) {
	if err := git.SweepScratch("", time.Now()); err != nil {
		w.log.Warn().Err(err).Msg("files of killed processes in the temporary folder could not be removed")
	}
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-w.watch.Hints():
			w.mu.Lock()
			for x := range w.worlds {
				x.Hint(name)
			}
			w.hintSettings(name)
			w.mu.Unlock()
		}
	}
}

func (w *Parts) logf(who string) func(string, ...any) {
	return func(format string, args ...any) {
		w.log.Warn().Str("from", who).Msg(text.Message(fmt.Sprintf(format, args...)))
	}
}

// open creates what the loop of a repo needs. The caller holds the repo's lock.
func (w *Parts) open(ctx context.Context, root, state string) (daemon.RepoOptions, func(), error) {
	member, err := w.lead(root, state)
	if err = errors.Join(err, w.Cluster.unseen(root)); err != nil {
		return daemon.RepoOptions{}, nil, err
	}
	s, err := w.follow(root)
	if err != nil {
		return daemon.RepoOptions{}, nil, err
	}
	if err := workspace.LeaveRoot(root, state); err != nil {
		return daemon.RepoOptions{}, nil, err
	}
	p := &workspace.Workspace{Root: root, State: state,
		Plain: workspace.IsDir(filepath.Join(state, workspace.StoreFolder))}
	repo, err := openGit(ctx, p, w.gits)
	if err != nil {
		return daemon.RepoOptions{}, nil, err
	}
	c, err := w.inCluster(member, root, state, repo)
	if err != nil {
		return daemon.RepoOptions{}, nil, errors.Join(err, repo.Close())
	}
	world, err := world.New(world.Options{
		Root: root, State: state, Git: repo, Runner: w.runner, Watcher: w.watch, Slots: w.slots, Spending: w.spent,
		PutDown: w.putDown, Notifier: s.tell, Terminal: s.terminal, Settings: s.now, Fresh: s.fresh, Self: w.Self,
		Afar: c.afar, Environ: w.Console.Env, Logf: w.logf(root), Now: w.Console.Now,
		Read: func(_ context.Context, workflow string, vars map[string]any) (engine.RunRequested, string, error) {
			return workflows.Fired(p, workflow, vars)
		},
		Repo: filepath.Base(state), Journal: func() string { return journal.IDIn(state) },
		Sandbox: w.box, Hidden: w.hidden(), Unheld: w.unheld})
	if err != nil {
		return daemon.RepoOptions{}, nil, errors.Join(err, c.leave(), repo.Close())
	}
	s.world.Store(world)
	s.watchFiles()
	w.mu.Lock()
	w.worlds[world], w.live[s] = true, true
	w.mu.Unlock()
	s.poke() // is it one whose files send no events?
	closeAll := func() {
		w.mu.Lock()
		delete(w.worlds, world)
		delete(w.live, s)
		delete(w.faults, s)
		w.mu.Unlock()
		s.closeWatches()
		w.dog.forget(root)
		if err := errors.Join(world.Close(), c.leave(), repo.Close(), s.Close()); err != nil {
			w.log.Warn().Err(err).Str("repo", root).Msg("not all could be closed")
		}
	}
	rescan := time.Duration(s.now().Rescan)
	return traveling(c, world, repo, daemon.RepoOptions{
		World: world, Compile: workspace.Compile, Config: s.engine, Reread: s.reload, Changed: s.changed, Rescan: rescan,
		Rest: restOf(rescan), Log: w.log, Version: w.Version, Beat: func() { w.dog.beat(root) }, Alarm: s.alarm,
		Now: w.Console.Now, Pace: w.Timing.Pace, Spent: world.Spent, Today: world.Today, Asked: world.Asked,
		Hear: world.Hear, Present: world.Present}), closeAll, nil
}

// openGit opens the git of a repo for a process that works in it.
func openGit(ctx context.Context, p *workspace.Workspace, turns git.Turns) (*git.Repo, error) {
	return p.OpenWith(ctx, git.Options{Turns: turns, Scratch: filepath.Join(p.State, "git"),
		Staging: filepath.Join(p.Root, layout.RunsDir, ".worktrees")})
}

// openHeld is open for ending a run: nothing is launched.
func (w *Parts) openHeld(ctx context.Context, root, state string) (daemon.RepoOptions, func(), error) {
	opt, closeAll, err := w.open(ctx, root, state)
	opt.Hold = true
	return opt, closeAll, err
}

// hidden returns sluice's own folders over all repos, which no launch sees.
func (w *Parts) hidden() []string {
	var out []string
	if home, err := workspace.Home(w.Console); err == nil {
		out = append(out, home)
	}
	if file, err := workspace.ConfigFile(w.Console); err == nil {
		out = append(out, filepath.Dir(file))
	}
	return out
}

// putDown returns when the service or the machine was last stopped on purpose; zero: never, or it
// cannot be read.
func (w *Parts) putDown() time.Time {
	home, err := workspace.Home(w.Console)
	if err != nil {
		return time.Time{}
	}
	return deploy.PutDown(home)
}
