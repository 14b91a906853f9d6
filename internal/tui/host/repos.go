package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/tui"
	"sluice/internal/workspace"
	"sluice/specs/graph"
)

// Repos is the host of the screen of many repos.
type Repos struct {
	con  *console.Console
	here bool // only the repo around the current folder

	mu     sync.Mutex           // guards what follows
	own    *workspace.Workspace // the repo around the current folder; nil if none
	places map[string]*workspace.Workspace
	// folders of child runs, by root and id; the folder of any other run has the run's id.
	folders map[string]string
	heard   map[string]heard
}

// heard is the last line of an agent's output, and the file's state when it was read.
type heard struct {
	file string
	stat atomicfile.Stat
	line string
}

// New returns the host of all known repos, or with here of the repo around dir alone.
func New(ctx context.Context, con *console.Console, dir string, here bool) (*Repos, error) {
	h := empty(con, here)
	return h, h.begin(ctx, dir)
}

// At returns the host of one repo.
func At(con *console.Console, p *workspace.Workspace) *Repos {
	h := empty(con, true)
	h.own = p
	return h
}

func empty(con *console.Console, here bool) *Repos {
	return &Repos{con: con, here: here, places: map[string]*workspace.Workspace{}, folders: map[string]string{},
		heard: map[string]heard{}}
}

// begin finds the repo around dir. It fails if there is none and no daemon runs.
func (h *Repos) begin(ctx context.Context, dir string) error {
	p, err := workspace.Find(ctx, h.con, dir)
	if err == nil {
		h.own = p
		return nil
	}
	if h.here {
		return err
	}
	home, herr := workspace.Home(h.con)
	if herr != nil {
		return herr
	}
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	if _, derr := c.Repos(ctx); derr == nil {
		return nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code != 0 {
		return fault.Failed("`sluice daemon` serves the repos on the list of `sluice watch`; or go to a repo",
			"no daemon runs now, and %s", f.Cause)
	}
	return err
}

// Repos returns the daemon's repos and the one around the current folder.
func (h *Repos) Repos(ctx context.Context) (roots []string, note string, err error) {
	if h.own != nil {
		roots = append(roots, h.own.Root)
	}
	if h.here {
		return roots, "", nil
	}
	home, err := workspace.Home(h.con)
	if err != nil {
		return nil, "", err
	}
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	states, err := c.Repos(ctx)
	if err != nil { // without a daemon its repos are shown as they are known: their list is a file
		known, lerr := daemon.LoadRepos(workspace.ReposFile(home))
		if lerr != nil {
			return nil, "", lerr
		}
		for _, root := range known {
			states = append(states, daemon.RepoState{Root: root, Served: true})
		}
		note = "no daemon answers: `sluice daemon` starts one"
		if !errors.Is(err, daemon.ErrNotServed) {
			note = "the daemon does not answer: " + err.Error()
		}
	}
	for _, s := range states {
		if h.own == nil || s.Root != h.own.Root {
			roots = append(roots, s.Root)
		}
		if !s.Served && s.Why != "" {
			note = "the daemon does not serve " + filepath.Base(s.Root) + ": " + s.Why
		}
	}
	return roots, note, nil
}

// at returns the workspace of a root.
func (h *Repos) at(ctx context.Context, root string) (*workspace.Workspace, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own != nil && h.own.Root == root {
		return h.own, nil
	}
	if p := h.places[root]; p != nil {
		return p, nil
	}
	p, err := workspace.At(ctx, h.con, root)
	if err == nil {
		h.places[root] = p
	}
	return p, err
}

// Open returns a client of the process that serves the repo, or a reader of its journal.
func (h *Repos) Open(ctx context.Context, root string) (tui.View, bool, error) {
	p, err := h.at(ctx, root)
	if err != nil {
		return nil, false, err
	}
	return p.View(ctx)
}

// Served reports whether a process serves the repo.
func (h *Repos) Served(ctx context.Context, root string) bool {
	p, err := h.at(ctx, root)
	if err != nil {
		return false
	}
	s, err := p.Serving(ctx)
	if s != nil {
		s.Close()
	}
	return err == nil && s != nil
}

// Do submits a person's event, as `sluice pass` does.
func (h *Repos) Do(ctx context.Context, root string, ev engine.Event) (daemon.Done, error) {
	if err := decide.InAttempt(h.con); err != nil {
		return daemon.Done{}, err
	}
	p, err := h.at(ctx, root)
	if err != nil {
		return daemon.Done{}, err
	}
	return p.Do(ctx, ev, "terminal")
}

// Sign signs an answer, as `sluice pass` does at a gate that requires it.
func (h *Repos) Sign(ctx context.Context, root string, g daemon.GateStatus, ev engine.Answered) (string, error) {
	p, err := h.at(ctx, root)
	if err != nil {
		return "", err
	}
	return decide.Sign(ctx, h.con, p, g, ev)
}

// look calls fn with the state of a run, and closes the view afterwards.
func (h *Repos) look(ctx context.Context, root, run string,
	fn func(p *workspace.Workspace, v workspace.Viewer, r daemon.RunStatus) error) error {
	p, err := h.at(ctx, root)
	if err != nil {
		return err
	}
	v, _, err := p.View(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	r, err := v.Run(ctx, run)
	if err != nil {
		return err
	}
	return fn(p, v, r)
}

// gather returns what is known of a step or a gate of a run. The view is closed then: an editor or a
// pager may be open for hours.
func (h *Repos) gather(ctx context.Context, root, run, what string) (at *workspace.Workspace, sh *show.Shown,
	err error) {
	err = h.look(ctx, root, run, func(p *workspace.Workspace, v workspace.Viewer, r daemon.RunStatus) (err error) {
		at = p
		sh, err = show.Gather(ctx, p, v, r, what)
		return err
	})
	return at, sh, err
}

// Comment has the person comment on the changes in their editor, as `sluice fail --review` does.
func (h *Repos) Comment(ctx context.Context, root, run, gate, outcome string) (c tui.Comments, err error) {
	if err := decide.InAttempt(h.con); err != nil {
		return c, err
	}
	p, sh, err := h.gather(ctx, root, run, gate)
	if err == nil && sh.Gate == nil {
		err = fmt.Errorf("%s is no gate of %s", gate, run)
	}
	if err != nil {
		return c, err
	}
	w, err := decide.Review(ctx, h.con, p, sh, outcome)
	if err != nil {
		return c, err
	}
	return tui.Comments{Round: sh.Gate.Round, Content: sh.Gate.Reviewed, Text: w.Text, Findings: w.Findings,
		Given: func() { decide.Discard(w.Draft) }}, nil
}

// Show returns the text of `sluice show --diff`, or of `sluice show --since`.
func (h *Repos) Show(ctx context.Context, root, run, what string, since bool) (page tui.Page, err error) {
	p, sh, err := h.gather(ctx, root, run, what)
	if err != nil {
		return page, err
	}
	return pageOf(ctx, h.con, p, sh, since), nil
}

// Pager shows the changes in the person's pager.
func (h *Repos) Pager(ctx context.Context, root, run, what string, since bool) error {
	p, sh, err := h.gather(ctx, root, run, what)
	if err != nil {
		return err
	}
	how := show.Diff{Since: since && sh.Again(), Most: show.MaxPatch, Stay: true}
	return show.PrintDiff(ctx, h.con, p, sh, how)
}

func pageOf(ctx context.Context, con *console.Console, p *workspace.Workspace, sh *show.Shown,
	since bool) (page tui.Page) {
	var b strings.Builder
	inner := *con
	inner.Out, inner.Err = &b, &b
	show.Print(&inner, sh)
	page.Text = strings.Count(b.String(), "\n")
	if len(sh.Changed) > 0 {
		page.Since = since && sh.Again()
		if err := show.PrintDiff(ctx, &inner, p, sh, show.Diff{Since: page.Since, Words: con.Colour}); err != nil {
			fmt.Fprintln(&b, "\nthe changes cannot be read: "+text.Message(err.Error()))
		}
	}
	page.Lines = strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if g := sh.Gate; g != nil {
		page.Gate, page.Round, page.Content = g.ID, g.Round, g.Reviewed
	}
	return page
}

// Graph returns a function that draws the run's workflow.
func (h *Repos) Graph(ctx context.Context, root, run string) (draw func(daemon.RunStatus) string, err error) {
	err = h.look(ctx, root, run, func(_ *workspace.Workspace, v workspace.Viewer, r daemon.RunStatus) error {
		spec, err := workspace.SpecOf(ctx, v, r)
		draw = func(r daemon.RunStatus) string { return graph.Outline(spec, r.States()) }
		return err
	})
	return draw, err
}

// lastMost is how many bytes at the end of an agent's output are searched for its last line.
const lastMost = 32 << 10

// newestOutput returns the folder of the run's most recently written launch.
func (h *Repos) newestOutput(ctx context.Context, p *workspace.Workspace, run, what string) (string, error) {
	key := p.Root + "\x00" + run
	h.mu.Lock()
	folder := h.folders[key]
	h.mu.Unlock()
	if folder == "" {
		folder = run
		if strings.Contains(run, ".") { // a task's: its folder lies in its parent's
			r, err := p.StatusOf(ctx, run)
			if err != nil {
				return "", err
			}
			folder = cmp.Or(r.Dir, r.ID)
		}
		h.mu.Lock()
		h.folders[key] = folder
		h.mu.Unlock()
	}
	return show.NewestOutput(p.Root, []string{folder}, what, nil)
}

// Words returns the last line of an agent's output. It reads the file only if it has changed.
func (h *Repos) Words(ctx context.Context, root, run, what string) string {
	p, err := h.at(ctx, root)
	if err != nil {
		return ""
	}
	dir, err := h.newestOutput(ctx, p, run, what)
	if err != nil {
		return ""
	}
	file := show.NewestPart(filepath.Join(dir, "stdout"))
	f, st, err := atomicfile.Open(filepath.Dir(file), filepath.Base(file))
	if err != nil {
		return ""
	}
	defer f.Close()
	key := root + "\x00" + run + "\x00" + what
	h.mu.Lock()
	was := h.heard[key]
	h.mu.Unlock()
	if was.file == file && was.stat.Same(st) {
		return was.line
	}
	end := make([]byte, min(st.Size, lastMost))
	n, err := f.ReadAt(end, st.Size-int64(len(end)))
	if err != nil && err != io.EOF {
		return ""
	}
	now := heard{file, st, lastLine(h.con, dir, string(end[:n]), was.line)}
	h.mu.Lock()
	h.heard[key] = now
	h.mu.Unlock()
	return now.line
}

// tailShown is how many earlier lines Tail shows first.
const tailShown = 200

// Tail follows what an agent says, as `sluice tail -f` does.
func (h *Repos) Tail(ctx context.Context, root, run, what string, say func(string)) error {
	p, err := h.at(ctx, root)
	if err != nil {
		return err
	}
	dir, err := h.newestOutput(ctx, p, run, what)
	if err != nil {
		return err
	}
	inner := *h.con
	inner.Out = &lineWriter{say: say}
	return show.Tail(ctx, &inner, filepath.Join(dir, "stdout"), tailShown, true, show.Sayer(&inner, dir), nil)
}

// lineWriter passes what is written to it on, line by line.
type lineWriter struct {
	say  func(string)
	part string
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.part += string(b)
	for {
		line, rest, ok := strings.Cut(w.part, "\n")
		if !ok {
			return len(b), nil
		}
		w.say(line)
		w.part = rest
	}
}
