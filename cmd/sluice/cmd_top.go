package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/tui"
	"sluice/internal/workspace"
)

func topCommand(a *app) *cobra.Command {
	var here bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch all runs live, look at what waits for you, and decide",
		Long: `A live screen of every repo that the daemon serves, and of the one you stand in: runs, steps,
gates, what agents say last, what was spent. What waits for you is on top. Keys show what there
is to decide, pass, fail and veto with words, pause, abort, and follow an agent: ? lists them. A key
decides what has been on the screen for a second, and a pass waits for Enter.
Leaving it stops nothing.`,
		Example: "sluice top\nsluice top --here",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.Interactive() || a.Getenv("TERM") == "dumb" {
				return fault.Misused("`sluice status` and `sluice inbox` print the same once", "sluice top needs a terminal that it can draw in")
			}
			h := &topHost{a: a, here: here, places: map[string]*workspace.Workspace{}, folders: map[string]string{}, heard: map[string]heard{}}
			if err := h.begin(cmd.Context()); err != nil {
				return err
			}
			return tui.Run(cmd.Context(), h, tui.Options{In: a.In, Out: a.Out, Env: a.Env, Now: a.Now})
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "only this repo")
	return cmd
}

// topHost is what the live screen reads from, and what carries out what a person wants there.
type topHost struct {
	a    *app
	here bool // only the repo we stand in

	mu     sync.Mutex           // guards what follows
	own    *workspace.Workspace // the repo we stand in; nil where we stand in none
	places map[string]*workspace.Workspace
	// folders of child runs, by root and id: those of other runs bear the run's id.
	folders map[string]string
	heard   map[string]heard
}

// heard is what an agent said last, and of which file as it was then.
type heard struct {
	file string
	stat atomicfile.Stat
	line string
}

// begin finds the repo we stand in. Where we stand in none and no daemon runs, there is nothing to show.
func (h *topHost) begin(ctx context.Context) error {
	p, err := h.a.place(ctx)
	if err == nil {
		h.own = p
		return nil
	}
	if h.here {
		return err
	}
	home, herr := workspace.Home(&h.a.Console)
	if herr != nil {
		return herr
	}
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	if _, derr := c.Repos(ctx); derr == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(err, &f) && f.Code != 0 {
		return fault.Failed("`sluice daemon` serves the repos that you have added with `sluice watch add`; or go to a repo", "no daemon runs now, and %s", f.Cause)
	}
	return err
}

// Repos are those of the daemon, and the one we stand in.
func (h *topHost) Repos(ctx context.Context) (roots []string, note string, err error) {
	if h.own != nil {
		roots = append(roots, h.own.Root)
	}
	if h.here {
		return roots, "", nil
	}
	home, err := workspace.Home(&h.a.Console)
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

// at is the place of a root.
func (h *topHost) at(ctx context.Context, root string) (*workspace.Workspace, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own != nil && h.own.Root == root {
		return h.own, nil
	}
	if p := h.places[root]; p != nil {
		return p, nil
	}
	p, err := workspace.At(ctx, &h.a.Console, root)
	if err == nil {
		h.places[root] = p
	}
	return p, err
}

// Open returns whoever serves the repo, or its journal.
func (h *topHost) Open(ctx context.Context, root string) (tui.View, bool, error) {
	p, err := h.at(ctx, root)
	if err != nil {
		return nil, false, err
	}
	return workspace.View(ctx, p)
}

// Served reports whether a process serves the repo.
func (h *topHost) Served(ctx context.Context, root string) bool {
	p, err := h.at(ctx, root)
	if err != nil {
		return false
	}
	c := daemon.NewClient(p.State)
	defer c.Close()
	within, cancel := context.WithTimeout(ctx, workspace.PingIn)
	defer cancel()
	_, err = c.Ping(within)
	return err == nil
}

// Do has a person's event taken in, by the path of `sluice pass`.
func (h *topHost) Do(ctx context.Context, root string, ev engine.Event) (daemon.Done, error) {
	if err := decide.InAttempt(&h.a.Console); err != nil {
		return daemon.Done{}, err
	}
	p, err := h.at(ctx, root)
	if err != nil {
		return daemon.Done{}, err
	}
	s, err := workspace.NeedServing(ctx, p)
	if err != nil {
		return daemon.Done{}, err
	}
	defer s.Close()
	if _, ok := ev.(engine.ResumeRequested); ok {
		if err := s.Reload(ctx); err != nil { // what paused it may be mended in the settings
			return daemon.Done{}, err
		}
	}
	return s.Do(ctx, ev, "terminal")
}

// Sign signs an answer, as `sluice pass` does at a gate that wants it.
func (h *topHost) Sign(ctx context.Context, root string, g daemon.GateStatus, ev engine.Answered) (string, error) {
	p, err := h.at(ctx, root)
	if err != nil {
		return "", err
	}
	return decide.Sign(ctx, &h.a.Console, p, g, ev)
}

// Show is what `sluice show --diff` prints.
func (h *topHost) Show(ctx context.Context, root, run, what string) (page tui.Page, err error) {
	p, err := h.at(ctx, root)
	if err != nil {
		return page, err
	}
	v, _, err := workspace.View(ctx, p)
	if err != nil {
		return page, err
	}
	defer v.Close()
	r, err := v.Run(ctx, run)
	if err != nil {
		return page, err
	}
	return showPage(ctx, h.a, p, v, r, what)
}

// runHost is what the screen of one run is run on: the process that serves its repo.
type runHost struct {
	workspace.Service
	a *app
	p *workspace.Workspace
}

// Do has a person's event taken in.
func (h runHost) Do(ctx context.Context, ev engine.Event) (daemon.Done, error) {
	if _, ok := ev.(engine.Answered); ok {
		if err := decide.InAttempt(&h.a.Console); err != nil {
			return daemon.Done{}, err
		}
	}
	return h.Service.Do(ctx, ev, "terminal")
}

// Show is what `sluice show --diff` prints.
func (h runHost) Show(ctx context.Context, run daemon.RunStatus, what string) (tui.Page, error) {
	return showPage(ctx, h.a, h.p, h.Service, run, what)
}

// lastMost is how much of the end of an agent's output is read for its last words.
const lastMost = 32 << 10

// newestOutput is the folder of the launch of a run that was written to last.
func (h *topHost) newestOutput(ctx context.Context, p *workspace.Workspace, run, what string) (string, error) {
	key := p.Root + "\x00" + run
	h.mu.Lock()
	folder := h.folders[key]
	h.mu.Unlock()
	if folder == "" {
		folder = run
		if strings.Contains(run, ".") { // a task's: its folder lies in its parent's
			found, err := foldersOf(ctx, p, run, false)
			if err != nil {
				return "", err
			}
			folder = found[0]
		}
		h.mu.Lock()
		h.folders[key] = folder
		h.mu.Unlock()
	}
	return show.NewestOutput(p.Root, []string{folder}, what)
}

// Words returns the last line of an agent's output, read anew only where the output has grown.
func (h *topHost) Words(ctx context.Context, root, run, what string) string {
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
	now := heard{file, st, lastLine(h.a, dir, string(end[:n]), was.line)}
	h.mu.Lock()
	h.heard[key] = now
	h.mu.Unlock()
	return now.line
}

// lastLine is the last line of an output that says something; was, where this part of it does not.
func lastLine(a *app, dir, end, was string) string {
	plainApp := *a
	plainApp.Colour = false
	say := sayer(&plainApp.Console, dir)
	last := was
	for line := range strings.Lines(end) {
		for _, s := range say(strings.TrimRight(line, "\n")) {
			if s = strings.TrimSpace(s); s != "" {
				last = s
			}
		}
	}
	return last
}

// sayer makes lines for a person of a launch's output.
func sayer(con *console.Console, dir string) func(string) []string {
	if prog, ok := launch.ReadProgram(dir); ok && program.Known(prog.Format) {
		return show.EventsOf(con, prog.Format)
	}
	return show.PlainLine
}

// tailShown is how many lines of what was said before are shown.
const tailShown = 200

// Tail follows what an agent says, as `sluice tail -f` does.
func (h *topHost) Tail(ctx context.Context, root, run, what string, say func(string)) error {
	p, err := h.at(ctx, root)
	if err != nil {
		return err
	}
	dir, err := h.newestOutput(ctx, p, run, what)
	if err != nil {
		return err
	}
	inner := *h.a
	inner.Out = &lineWriter{say: say}
	return show.Tail(ctx, &inner.Console, filepath.Join(dir, "stdout"), tailShown, true, sayer(&inner.Console, dir))
}

// lineWriter gives on what is written to it, line by line.
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

// showPage is what show prints, with the changes, in lines.
func showPage(ctx context.Context, a *app, p *workspace.Workspace, v workspace.Viewer, r daemon.RunStatus, what string) (page tui.Page, err error) {
	sh, err := show.Gather(ctx, p, v, r, what)
	if err != nil {
		return page, err
	}
	var b strings.Builder
	inner := *a
	inner.Out = &b
	show.Print(&inner.Console, sh)
	if len(sh.Changed) > 0 {
		if err := show.PrintDiff(ctx, &inner.Console, p, sh); err != nil {
			fmt.Fprintln(&b, "\nthe changes cannot be read: "+oneLine(err.Error()))
		}
	}
	page.Lines = strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if g := sh.Gate; g != nil {
		page.Gate, page.Round, page.Content = g.ID, g.Round, g.Reviewed
	}
	return page, nil
}
