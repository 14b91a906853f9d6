package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sluice/agents"
	"sluice/agents/launch"
	cage "sluice/agents/sandbox"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/internal/world"
	"sluice/notify"
	"sluice/watcher"
)

// timing is for who has another clock than the machine's, a soak above all; zero = nobody.
type timing struct {
	pace func(time.Duration) time.Duration // see daemon.RepoOptions
	look watcher.Options
}

// parts are what all repos of a process share. Close it when the last is not served any more.
type parts struct {
	a      *app
	set    []string // --set
	self   string   // this binary
	log    zerolog.Logger
	watch  *watcher.Watcher
	runner *agents.Runner
	slots  *launch.Slots
	spent  *launch.Spending
	dog    *watchdog
	unheld *launch.Unheld
	desk   *notify.Desk
	box    func() (*cage.Box, error) // tried out at the first launch

	mu     sync.Mutex
	worlds map[*world.World]bool
	live   map[*liveSettings]bool
	faults map[*liveSettings]string // of settings that could not be read again
	poked  chan struct{}            // a file of settings may have changed
	ctx    context.Context
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// warmShims is how many hosts of ended launches wait for the next one.
const warmShims = 2

// loopsRescan has the watcher hint at folders with events only when something happens: each repo's loop reads all its
// inboxes every few seconds by itself.
const loopsRescan = time.Hour

// newParts makes what a process needs to serve repos.
func newParts(a *app, log zerolog.Logger, set []string) (*parts, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this binary cannot be found: %w: agents are launched through it", err)
	}
	look := a.timing.look
	look.Rescan = cmp.Or(look.Rescan, loopsRescan)
	ctx, stop := context.WithCancel(context.Background())
	w := &parts{a: a, set: set, self: self, log: log, slots: &launch.Slots{}, unheld: &launch.Unheld{}, spent: &launch.Spending{}, dog: &watchdog{beats: map[string]time.Time{}},
		watch: watcher.New(look), worlds: map[*world.World]bool{}, live: map[*liveSettings]bool{}, faults: map[*liveSettings]string{},
		poked: make(chan struct{}, 1), ctx: ctx, stop: stop}
	w.desk = notify.NewDesk([]string{self, notifyHelper}, nil)
	w.runner = agents.New(agents.Options{Shim: []string{self, shimCommand}, Warm: warmShims, Logf: w.logf("agents")})
	w.box = sync.OnceValues(func() (*cage.Box, error) { return cage.Find(context.Background(), self, "") })
	w.done.Go(func() { w.spread(ctx) })
	w.done.Go(func() { w.keepSettings(ctx) })
	return w, nil
}

// Close ends what the repos shared.
func (w *parts) Close() error {
	w.stop()
	w.done.Wait()
	return errors.Join(w.runner.Close(), w.watch.Close(), w.desk.Close())
}

// server is the daemon of all watched repos.
func (w *parts) server(home string) *daemon.Server {
	return daemon.NewServer(daemon.ServerOptions{
		Home: home, Version: version, Log: w.log, Open: w.open, ReposFile: workspace.ReposFile(home),
		StateOf: func(ctx context.Context, root string) (string, error) {
			if !workspace.IsDir(root) {
				return "", fault.New(fmt.Sprintf("move it back, or run `sluice watch rm %s`, and `sluice watch add` where it is now", root), "repo: %w", atomicfile.ErrGone)
			}
			p, err := workspace.At(ctx, &w.a.Console, root)
			if err != nil {
				return "", err
			}
			if p.Root != root { // a folder above is a repo
				return "", fault.Failed("put it back, or run `sluice watch rm "+root+"`", "repo: no git repository there, but in %s", p.Root)
			}
			return p.State, nil
		},
	})
}

// spread hands the watcher's hints to all repos: each knows its own.
func (w *parts) spread(ctx context.Context) {
	if err := git.SweepScratch("", time.Now()); err != nil {
		w.log.Warn().Err(err).Msg("what killed processes left in the temporary folder could not be removed")
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

func (w *parts) logf(who string) func(string, ...any) {
	return func(format string, args ...any) {
		w.log.Warn().Str("from", who).Msg(text.Message(fmt.Sprintf(format, args...)))
	}
}

// open makes what the loop of a repo needs. It is called with the repo's lock held.
func (w *parts) open(ctx context.Context, root, state string) (daemon.RepoOptions, func(), error) {
	s := &liveSettings{parts: w, root: root, changed: make(chan engine.Config, 1)}
	s.files.Paths = w.settingsFiles(root)
	if err := s.read(); err != nil {
		return daemon.RepoOptions{}, nil, err
	}
	if err := workspace.LeaveRoot(root, state); err != nil {
		return daemon.RepoOptions{}, nil, err
	}
	p := &workspace.Workspace{Root: root, State: state, Plain: workspace.IsDir(filepath.Join(state, workspace.StoreFolder))}
	repo, err := p.OpenWith(ctx, git.Options{Scratch: filepath.Join(state, "git"), Staging: filepath.Join(root, layout.RunsDir, ".worktrees")})
	if err != nil {
		return daemon.RepoOptions{}, nil, err
	}
	world, err := world.New(world.Options{
		Root: root, State: state, Git: repo, Runner: w.runner, Watcher: w.watch, Slots: w.slots, Spending: w.spent, PutDown: w.a.putDown,
		Notifier: s.tell, Terminal: s.terminal, Settings: s.now, Self: w.self, Environ: w.a.Env, Logf: w.logf(root), Now: w.a.Now,
		Repo: filepath.Base(state), Sandbox: w.box, Hidden: w.hidden(), Unheld: w.unheld,
	})
	if err != nil {
		return daemon.RepoOptions{}, nil, errors.Join(err, repo.Close())
	}
	s.world.Store(world)
	s.watchFiles()
	w.mu.Lock()
	w.worlds[world], w.live[s] = true, true
	w.mu.Unlock()
	closeAll := func() {
		w.mu.Lock()
		delete(w.worlds, world)
		delete(w.live, s)
		delete(w.faults, s)
		w.mu.Unlock()
		closeWatches(s.watches)
		w.dog.forget(root)
		if err := errors.Join(world.Close(), repo.Close(), s.Close()); err != nil {
			w.log.Warn().Err(err).Str("repo", root).Msg("not all could be closed")
		}
	}
	return daemon.RepoOptions{
		World: world, Compile: workspace.Compile, Config: s.engine, Changed: s.changed, Rescan: time.Duration(s.now().Rescan),
		Log: w.log, Version: version, Beat: func() { w.dog.beat(root) }, Alarm: s.alarm,
		Now: w.a.Now, Pace: w.a.timing.pace, Spent: world.Spent, Today: world.Today,
		Asked: world.Asked, Hear: world.Hear,
	}, closeAll, nil
}

// openHeld is open for who only ends a run: nothing is launched.
func (w *parts) openHeld(ctx context.Context, root, state string) (daemon.RepoOptions, func(), error) {
	opt, closeAll, err := w.open(ctx, root, state)
	opt.Hold = true
	return opt, closeAll, err
}

// hidden are the folders of sluice's own, over all repos, that no launch sees.
func (w *parts) hidden() []string {
	var out []string
	if home, err := workspace.Home(&w.a.Console); err == nil {
		out = append(out, home)
	}
	if file, err := workspace.ConfigFile(&w.a.Console); err == nil {
		out = append(out, filepath.Dir(file))
	}
	return out
}

// liveSettings are a repo's settings as they were last read; a reload that fails leaves them as they are.
type liveSettings struct {
	parts *parts
	root  string
	world atomic.Pointer[world.World] // hears of buttons and late results; nil before there can be any

	mu       sync.Mutex
	last     settings.Settings
	notifier *notify.Notifier
	desktop  notify.Channel     // the same for all notifiers, so that what stands on the screen stays there; nil: none
	retired  []*notify.Notifier // closed to later notices; they have some under way
	ends     sync.WaitGroup     // of those

	files   settings.Files
	watches []*watcher.FileWatch
	changed chan engine.Config // to the loop, when a file has changed
}

// read reads the settings' layers again. Notices under way go on to their end, and later ones go by the new settings.
func (s *liveSettings) read() error {
	at := s.files.Now()
	next, err := workspace.Settings(&s.parts.a.Console, s.root, s.parts.set)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.WereRead(at)
	if err != nil {
		return err
	}
	before := s.last.Notify
	s.last = next.Settings
	if old := s.notifier; old != nil {
		if reflect.DeepEqual(before, next.Notify) {
			return nil
		}
		s.retired = append(s.retired, old)
		s.ends.Go(func() {
			old.Finish()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.retired = slices.DeleteFunc(s.retired, func(n *notify.Notifier) bool { return n == old })
		})
	}
	s.notifier = notify.New(s.channels(next.Notify)...)
	return nil
}

func (s *liveSettings) channels(n settings.Notify) []notify.Option {
	options := []notify.Option{notify.Command(n.Command), notify.Log(func(n notify.Notice, what string) {
		s.parts.log.Info().Str("repo", s.root).Str("run", n.Run).Str("gate", n.Gate).Str("kind", n.Kind).Str("title", n.Title).Msg(what)
	})}
	options = append(options, notify.Webhook(n.Webhook.Hook()), notify.Late(func(_ notify.Notice, r notify.Result) {
		if world := s.world.Load(); world != nil {
			world.Reached(r)
		}
	}))
	if n.Escalate.After > 0 {
		options = append(options, notify.Reserve(n.Escalate.To...))
	}
	if n.Desktop {
		if s.desktop == nil {
			s.desktop = s.parts.desk.Channel(func(p notify.Press) {
				if world := s.world.Load(); world != nil {
					world.Pressed(p)
				}
			})
		}
		options = append(options, notify.With(s.desktop))
	} else if s.desktop != nil {
		s.parts.desk.Forget(s.desktop)
		s.desktop = nil
	}
	return options
}

// now returns the settings.
func (s *liveSettings) now() settings.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// tell returns what notices are sent through.
func (s *liveSettings) tell() *notify.Notifier {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notifier
}

// alarm tells a person of what no run is about. Settings that are read again meanwhile end what is being told: it is told
// again then.
func (s *liveSettings) alarm(ctx context.Context, title, text string) {
	n := notify.Notice{Kind: notify.KindInfo, Title: title, Body: text, Urgency: notify.UrgencyCritical}
	for range alarmTries {
		failed := slices.ContainsFunc(s.tell().Send(ctx, n), func(r notify.Result) bool { return !r.OK })
		if !failed || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(alarmPause):
		}
	}
}

// How often, and after what time, an alarm that did not come through is given again.
const (
	alarmTries = 3
	alarmPause = 2 * time.Second
)

// engine reads the settings again and gives what the engine goes by. What cannot be read changes nothing.
func (s *liveSettings) engine() engine.Config {
	cfg, _ := s.again() // told
	return cfg
}

// Close ends what is told just now.
func (s *liveSettings) Close() error {
	s.mu.Lock()
	all, desktop := append(slices.Clone(s.retired), s.notifier), s.desktop
	s.mu.Unlock()
	if desktop != nil {
		defer s.parts.desk.Forget(desktop)
	}
	var err error
	for _, n := range all {
		err = errors.Join(err, n.Close())
	}
	if err == nil {
		s.ends.Wait()
	}
	return err
}
