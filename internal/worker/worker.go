// Package worker makes the launches that another machine has sent, in this machine's clone of the
// repo, with the code that a daemon launches with.
//
// Promises: a launch begins from the commits of its order, in a worktree of its own. Commits that this
// clone lacks come as a pack, which the other machine stores when this worker asks. A repeated call
// finds the launch or its end, as package launch has it. What comes back is its output, its signals
// and one commit with its files, each stored before the result names it. The clone's own branches and
// checkout stay as they are.
//
// Any goroutine may call a Worker. It implements workers.Maker.
package worker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/strictjson"
	"sluice/internal/tree"
)

// Packs stores bytes under their digest, and returns them.
type Packs interface {
	PutFrom(ctx context.Context, write func(io.Writer) error) (digest string, err error)
	Get(ctx context.Context, digest string) (io.ReadCloser, error)
}

// Tokens are those that the orders of this worker's launches have. The zero value is ready.
type Tokens struct {
	mu sync.Mutex
	of map[string]string
}

// Given is a layout.Layout's.
func (t *Tokens) Given(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[key]
}

func (t *Tokens) set(key, token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]string{}
	}
	if t.of[key] = token; token == "" {
		delete(t.of, key)
	}
}

// Options are what a Worker needs.
type Options struct {
	Layout   layout.Layout // with Tokens
	Notes    *health.Notes
	Tokens   *Tokens
	Launches *launch.Launches
	Git      *git.Repo
	Packs    Packs
	Commands bool // it takes commands, not only agents of its own settings
}

// Worker makes the launches of one repo.
type Worker struct {
	layout.Layout
	*health.Notes
	opt Options

	mu   sync.Mutex
	ends map[string]bool // the launches that are asked to end
}

// New returns a Worker.
func New(o Options) *Worker {
	return &Worker{Layout: o.Layout, Notes: o.Notes, opt: o, ends: map[string]bool{}}
}

// newestMost is how many refs an order's pack may build on; with the HEAD an answer has room for their commits.
const newestMost = 60

// Lacks reports whether an order's commits have to come as a pack: see workers.Maker.
func (w *Worker) Lacks(ctx context.Context, s launch.Sent) (have []string, lacks bool, err error) {
	has, err := w.opt.Git.HasCommit(ctx, s.Start)
	if err != nil || has {
		return nil, false, err
	}
	head, err := w.opt.Git.Head(ctx, w.opt.Git.Top())
	if err != nil {
		return nil, false, err
	}
	// Those of earlier launches are newer than what the clone was made or fetched with.
	newest, err := w.opt.Git.Newest(ctx, newestMost)
	if err != nil && ctx.Err() == nil {
		w.Logf("what %s can build on: %v", s.Key, err) // the pack is larger
	}
	return append([]string{head}, newest...), true, ctx.Err()
}

// Make makes a launch: see workers.Maker.
func (w *Worker) Make(ctx context.Context, s launch.Sent, since time.Time) (launch.Back, error) {
	w.opt.Tokens.set(s.Key, s.Token)
	ls := w.opt.Launches
	end, err := ls.Ensure(ctx, launch.Order{Key: s.Key, Dir: s.Dir, Idle: s.Idle, Agent: len(s.Argv) == 0, Since: since},
		func() (launch.Process, error) { return w.prepare(ctx, s) })
	if err != nil {
		return launch.Back{}, err
	}
	if w.gone(s) {
		return launch.Back{Exit: engine.Exit{Code: -1, Lost: true, Class: engine.ClassInfrastructure, // it is launched again
			Why: "its worktree on the worker is gone, and its work with it"}}, nil
	}
	back := launch.Back{Exit: end.Exit, Signals: w.signals(s, true)}
	if level, why := ls.Level(s.Run); level == engine.TrustFile {
		back.Open = why
	}
	if end.Dir == "" {
		return back, nil
	}
	back.Program, _ = launch.ReadProgram(end.Dir)
	err = w.giveBack(ctx, s.Key, &back, func() (err error) {
		back.Output, err = w.opt.Packs.PutFrom(ctx, func(to io.Writer) error {
			return launch.PackOutput(w.Layout, s.Dir, to)
		})
		if err != nil {
			return err
		}
		if s.Works {
			return w.take(ctx, s, &back)
		}
		return nil
	})
	return back, err
}

// gone reports whether a launch that began has lost its worktree: the clone was removed and made again.
func (w *Worker) gone(s launch.Sent) bool {
	return s.Works && layout.IsFile(w.placeFile(s.Key)) && !layout.IsDir(w.dir(s.Key)) && w.There() == nil
}

// giveBack tries until the result is stored. The sender of the order waits as long as this worker lives, and reads the
// reason in its heartbeat; a launch that is asked to end ends without its work.
func (w *Worker) giveBack(ctx context.Context, key string, back *launch.Back, try func() error) error {
	if !w.Retry(ctx, "the result of "+key, func() error {
		err := try()
		if err != nil && ctx.Err() == nil && w.end(key, false) {
			back.Commit, back.Tip, back.Refused = "", "", "its worker could not store its work: "+err.Error()
			return nil
		}
		return err
	}) {
		return ctx.Err()
	}
	return nil
}

// end reports whether a launch is asked to end, now or before.
func (w *Worker) end(key string, now bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now {
		w.ends[key] = true
	}
	return w.ends[key]
}

// take takes the work of an ended launch as one commit, and stores it. Work that cannot be taken is no error.
func (w *Worker) take(ctx context.Context, s launch.Sent, back *launch.Back) error {
	err := w.taken(ctx, s, back)
	if no, ok := errors.AsType[*tree.Refused](err); ok {
		back.Commit, back.Tip, back.Refused = "", "", no.Why
		return nil
	}
	return err
}

func (w *Worker) taken(ctx context.Context, s launch.Sent, back *launch.Back) error {
	var at place
	if err := layout.Load(w.placeFile(s.Key), &at); err != nil {
		return err
	}
	w.opt.Launches.Receive(ctx, job.Job{Effect: engine.Effect{Run: s.Run, Key: s.Key},
		RunInfo: job.RunInfo{Workspace: engine.WorkspaceDir}})
	o := tree.Order{Run: s.Run, Step: s.Step, N: s.N, Base: s.Head, Found: at.Before.Found}
	tip, err := tree.TipOf(w.Layout, o)
	if errors.Is(err, fs.ErrNotExist) {
		tip, err = w.opt.Git.Head(ctx, at.Dir)
	}
	if err != nil {
		return err
	}
	t, err := w.folder(at.Dir).Take(ctx, o, tip, at.Before)
	if err != nil {
		return err
	}
	back.Commit, back.Tip, back.Head, back.Start = t.Commit, t.Tip, s.Head, s.Start
	back.Pack, err = w.opt.Packs.PutFrom(ctx, func(to io.Writer) error {
		return tree.Pack(ctx, w.opt.Git, to, t.Commit, s.Head)
	})
	return err
}

// folder is the worktree of a launch. What sluice and the signals leave there is no work.
func (w *Worker) folder(dir string) tree.Folder {
	f := tree.Folder{Repo: w.opt.Git, Top: dir}
	for _, name := range layout.OwnFolders() {
		f.Own = append(f.Own, path.Join(layout.WorkflowDir, name))
	}
	return f
}

// Signals returns what is in a running launch's inbox: see workers.Maker.
func (w *Worker) Signals(s launch.Sent) []launch.Signal { return w.signals(s, false) }

// signals returns the files in a launch's inboxes, its own signal first; of one at work only those that are whole.
func (w *Worker) signals(s launch.Sent, ended bool) (out []launch.Signal) {
	own := w.PIDFile(s.Key) + layout.InboxMark
	dirs := []string{filepath.Join(own, s.Run), own}
	if in, err := inboxIn(w.dir(s.Key), s.Run); err == nil {
		dirs = append(dirs, in, filepath.Dir(in))
	}
	add := func(dir, name string) {
		data, _, err := atomicfile.OpenRegular(dir, name, launch.MaxSignalBytes)
		if err != nil || len(out) == launch.MaxSignals || name[0] == '.' {
			return
		}
		if state, _ := strictjson.Check(data, launch.MaxSignalBytes); ended || state == strictjson.Whole {
			out = append(out, launch.Signal{Name: name, Data: data})
		}
	}
	for _, dir := range dirs {
		add(dir, s.Signal)
	}
	for _, dir := range dirs {
		f, err := atomicfile.OpenDir(dir)
		if err != nil {
			continue // there is none
		}
		names, _ := f.Readdirnames(4 * launch.MaxSignals) // a part is enough
		_ = f.Close()                                     // it was only read
		for _, name := range names {
			if name != s.Signal {
				add(dir, name)
			}
		}
	}
	return out
}

// Stop ends a launch: see workers.Maker.
func (w *Worker) Stop(ctx context.Context, s launch.Sent) {
	w.opt.Tokens.set(s.Key, s.Token)
	w.end(s.Key, true)
	w.Retry(ctx, "the end of "+s.Key, func() error {
		_, _, err := w.opt.Launches.StopAll(ctx, s.Key)
		return err
	})
}

// Clear removes the worktree of an ended launch: see workers.Maker.
func (w *Worker) Clear(ctx context.Context, s launch.Sent) error {
	w.opt.Tokens.set(s.Key, "")
	w.mu.Lock()
	delete(w.ends, s.Key)
	w.mu.Unlock()
	err := os.Remove(w.placeFile(s.Key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, w.remove(ctx, s.Key), w.drop(ctx, refOf(s.Key)))
}

// Forget removes what the launches of some runs have left: their files, in one folder of runs, their
// private homes and their records. See workers.Maker.
func (w *Worker) Forget(folder string, runs []string) error {
	dir, err := w.Below(folder)
	if err != nil {
		return err
	}
	all := []string{dir}
	for _, run := range runs {
		for _, kind := range []string{layout.HomesDir, layout.GitsDir, layout.LaunchesDir, layout.AttemptsDir} {
			all = append(all, filepath.Join(w.State, kind, layout.PathElement(run)))
		}
	}
	for _, dir := range all {
		err = errors.Join(err, tree.Remove(dir))
	}
	return err
}

// NoInboxes has nobody read the inboxes of launches but the Worker itself.
type NoInboxes struct{}

// OpenOwn is a launch.Inboxes'.
func (NoInboxes) OpenOwn(string) {}

// CloseOwn is a launch.Inboxes'.
func (NoInboxes) CloseOwn(string) {}
