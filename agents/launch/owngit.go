package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/agents/sandbox"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// asideFolder is a folder in layout.GitsDir with what all launches' mounts need. No run has its
// name.
const asideFolder = ".aside"

// spareFolder is the git folder of a coming launch. goneMark ends the name of one that is being
// removed.
const (
	spareFolder = ".spare"
	goneMark    = ".gone"
)

// OwnGit creates the git folder of a launch. An existing one is in use: a killed daemon started the
// launch, or it is asked again. work is the order of its commits; nil = they are discarded.
func (x *Cage) OwnGit(ctx context.Context, key, top string, work *tree.Order, inPlace bool) (tree.Private, error) {
	key = layout.LaunchOf(key)
	if g, ok := x.OwnGitOf(key); ok && g.Top == top && layout.IsDir(g.Dir) {
		return g, nil
	}
	now, err := x.opt.Git.NamedBy(ctx, top)
	if err != nil {
		return tree.Private{}, err
	}
	g := tree.Private{Dir: x.gitDirOf(key), Top: top, Keeps: work != nil}
	if work != nil {
		g.Order = *work
	}
	g.Branch, g.Base = now.Branch, cmp.Or(g.Base, now.Head)
	seen := func(i int, store string) string {
		if inPlace {
			return store
		}
		return sandbox.StoreAt(i)
	}
	if g, err = tree.MakePrivate(ctx, x.opt.Git, g, now, spareGit(x.State), seen); err != nil {
		return g, err
	}
	if err := x.pinBase(ctx, g); err != nil {
		return g, err
	}
	note, err := json.Marshal(g)
	if err != nil {
		return g, err
	}
	return g, x.ahead.file(x.PIDFile(key)+layout.GitMark, note)
}

func spareGit(state string) string { return filepath.Join(state, layout.GitsDir, spareFolder) }

// makeAhead creates what the next launch needs while this one works.
func (x *Cage) makeAhead() {
	x.behind(func() {
		err := x.ahead.fill()
		if x.opt.Git.Checkout() {
			err = errors.Join(x.opt.Git.MakeSpare(spareGit(x.State)), err)
		}
		x.leftovers.sweep()
		if err != nil {
			x.Logf("what the next launch needs: %v", err) // it is created on demand then
		}
	})
}

// behind runs do in the background. Only Close waits for it.
func (x *Cage) behind(do func()) {
	x.mu.Lock()
	closed := x.closed
	if !closed {
		x.chores.Go(func() {
			yieldToAll()
			do()
		})
	}
	x.mu.Unlock()
	if closed {
		do()
	}
}

func (x *Cage) gitDirOf(key string) string {
	run, rest, _ := strings.Cut(layout.LaunchOf(key), "/")
	return filepath.Join(x.State, layout.GitsDir, layout.PathElement(run), layout.PathElement(rest))
}

// OwnGitOf returns a launch's git folder, from memory or from an earlier daemon's note.
func (x *Cage) OwnGitOf(key string) (g tree.Private, ok bool) {
	x.mu.Lock()
	g, ok = x.held[layout.LaunchOf(key)]
	x.mu.Unlock()
	if ok {
		return g, true
	}
	err := layout.Load(x.PIDFile(layout.LaunchOf(key))+layout.GitMark, &g)
	return g, err == nil && g.Dir != ""
}

// gitVars returns the variables that say where a launch works: its git folder knows no other
// worktree. In place, .git cannot be another folder.
func (x *Cage) gitVars(key string, inPlace bool) []string {
	g, ok := x.OwnGitOf(key)
	if !ok && x.opt.Git != nil && x.opt.Git.Plain() {
		return []string{"SLUICE_ROOT=" + x.Root, "SLUICE_CHECKOUT=" + x.Root}
	}
	if !ok {
		return nil
	}
	vars := []string{"SLUICE_ROOT=" + x.Root, "SLUICE_CHECKOUT=" + g.Top}
	if inPlace {
		vars = append(vars, "GIT_DIR="+g.Dir, "GIT_WORK_TREE="+g.Top)
	}
	return vars
}

// pinBase keeps a base from git's gc. One ref per run is enough: its work is built on it.
func (x *Cage) pinBase(ctx context.Context, g tree.Private) error {
	if !g.Keeps || g.Base == "" {
		return nil
	}
	what := g.Run + " " + g.Base
	if _, known := x.based.Get(what); known {
		return nil
	}
	if err := g.Pin(ctx, x.opt.Git); err != nil {
		return err
	}
	x.based.Put(what, true)
	return nil
}

func (x *Cage) checkoutOf(g tree.Private, main string, inPlace bool) (c sandbox.Checkout, err error) {
	c = sandbox.Checkout{Top: g.Top, Common: x.opt.Git.CommonDir(), Main: main, Own: g.Dir, Stores: g.Stores,
		Aside: filepath.Join(x.State, layout.GitsDir, asideFolder), InPlace: inPlace}
	for _, dir := range g.Linked {
		if !sandbox.Inside(filepath.Join(x.Root, layout.WorkflowDir), dir) { // nobody can write there
			c.Linked = append(c.Linked, dir)
		}
	}
	for _, s := range g.Submodules {
		c.Submodules = append(c.Submodules, sandbox.Submodule(s))
	}
	c.GitDir, err = x.opt.Git.GitDir(g.Top)
	return c, err
}

// dropGit removes the git folder of a launch that was never started, or whose commits are
// discarded.
func (x *Cage) dropGit(key string, started bool) {
	g, ok := x.OwnGitOf(key)
	if ok && key == layout.LaunchOf(key) && (!started || !g.Keeps) {
		x.removeGit(key)
	}
}

// removeGit removes the git folder of a launch, its note first: nobody uses half a folder. What a
// crash leaves goes with the run.
func (x *Cage) removeGit(key string) {
	if err := os.Remove(x.PIDFile(key) + layout.GitMark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.Logf("%s: the note of its git folder: %v", key, err)
	}
	dir := x.gitDirOf(key)
	gone := dir + goneMark
	if os.Rename(dir, gone) == nil {
		x.leftovers.add(gone, func() { x.behind(x.leftovers.sweep) })
	} else if err := tree.Remove(dir); err != nil { // an earlier one is still there
		x.Logf("%s: its git folder: %v", key, err)
	}
}

// Receive takes the commits of an ended launch. Those that cannot be taken stay in its folder and
// are reported. In a run's own worktree the branch moves only when the gate has passed.
func (x *Cage) Receive(ctx context.Context, j job.Job) {
	key := j.Key
	g, ok := x.OwnGitOf(key)
	if !ok || !g.Keeps || x.opt.Git == nil {
		return
	}
	var r tree.Received
	moved := true
	err := x.Persist(ctx, key+"/commits", func() (err error) {
		var no *tree.Refused
		switch err = g.CarryLFS(ctx); {
		case errors.As(err, &no):
			r = tree.Received{Tip: g.Base, Refused: no.Why}
		case err != nil:
			return err
		default:
			if r, err = tree.Receive(ctx, x.opt.Git, g, x.GitInside(g)); err != nil {
				return err
			}
		}
		if r.Refused != "" {
			r.Refused += fmt.Sprintf(" (the commits are in %s, the files are kept: sluice attempt diff %s %s.%d)", g.Dir,
				g.Run, g.Step, g.N)
		}
		if j.RunInfo.Workspace == "" {
			moved, err = x.advanceNow(ctx, g, r.Tip)
		}
		return errors.Join(err, tree.KeepReceived(x.Layout, key, g, r))
	})
	switch {
	case err != nil:
		x.Logf("%s: its commits could not be taken: %v: they are in %s", key, err, g.Dir)
	case r.Refused != "":
		x.Logf("%s: its commits are not taken: %s", key, r.Refused)
	case r.Aside != "":
		x.Logf("%s: its commits are not taken: %s: its files stay as they are, and the commits in %s", key, r.Aside,
			g.Dir)
	case moved:
		refs, err := g.Beside(ctx, x.opt.Git)
		if err == nil && len(refs) == 0 {
			x.removeGit(key)
			return
		}
		why := text.Line(text.JoinMost(refs)) + " is not its HEAD"
		if err != nil {
			why = "whether there are some beside its HEAD is not known: " + err.Error()
		}
		x.Logf("%s: its commits are not taken: %s: they stay in %s", key, why, g.Dir)
	}
}

// advanceNow moves the branch to a launch's commits at once. This is for a person's checkout, where
// steps may commit without a gate.
func (x *Cage) advanceNow(ctx context.Context, g tree.Private, tip string) (moved bool, err error) {
	if tip == g.Base {
		return true, nil
	}
	branch := cmp.Or(g.Branch, git.Detached)
	moved, why, err := tree.Advance{Branch: branch, From: g.Base, To: tip, Top: g.Top}.Do(ctx, x.opt.Git)
	if errors.Is(err, tree.ErrBusy) {
		why, err = err.Error(), nil
	}
	if why != "" {
		x.Logf("%s: %s: the commits are kept as %s", g.Step, why, g.Ref())
	}
	return moved, err
}

const (
	maxComplaint = 4 << 10
	boxEndWait   = 2 * time.Second
)

// GitInside runs git on a launch's own git folder, in a sandbox without network and write access.
func (x *Cage) GitInside(g tree.Private) tree.Inside {
	return func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
		box, err := x.Box()
		if err == nil && box == nil {
			err = errors.New("the sandbox that the launch had is not to be had now")
		}
		if err != nil {
			return err
		}
		program, err := exec.LookPath("git")
		if err != nil {
			return fmt.Errorf("%w: %w", git.ErrNoGit, err)
		}
		plan, dir, err := x.readingPlan(g, !box.Remaps())
		if err != nil {
			return err
		}
		env := []string{"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "LC_ALL=C", "HOME=/", "GIT_DIR=" + dir,
			"GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
			"GIT_ALLOW_PROTOCOL=none", "GIT_OPTIONAL_LOCKS=0"}
		start, err := box.Wrap(plan, append([]string{program}, args...), env)
		if err != nil {
			return err
		}
		return runGit(ctx, start, stdin, stdout)
	}
}

// readingPlan shows a launch's git folder and the repo's objects, read-only, and nothing else of
// the person's.
func (x *Cage) readingPlan(g tree.Private, inPlace bool) (plan sandbox.Plan, gitDir string, err error) {
	hidden := x.hidden()
	plan = sandbox.Plan{Hide: hidden, Cwd: "/", Network: sandbox.NetNone, InPlace: inPlace}
	if home := x.home(); home != "" && home != "/" {
		plan.Home, plan.Hide = home, append(slices.Clip(hidden), home)
	}
	plan.Tools = x.tools(plan, hidden, false)
	if inPlace {
		plan.Shown = append(plan.Shown, sandbox.Mount{Path: g.Dir})
		return plan, g.Dir, nil
	}
	c, err := x.checkoutOf(g, "", false)
	if err != nil {
		return plan, "", err
	}
	plan.Shown = append(plan.Shown, sandbox.Mount{Path: g.Dir, At: sandbox.GitAt})
	plan.Shown = append(plan.Shown, c.Objects()...)
	return plan, sandbox.GitAt, nil
}

// runGit starts a wrapped git. A failed start of the sandbox is not an error of git.
func runGit(ctx context.Context, start *sandbox.Start, stdin io.Reader, stdout io.Writer) error {
	cmd, err := start.Command(ctx)
	if err != nil {
		return err
	}
	defer start.Handed(cmd)
	bad := &git.First{Most: maxComplaint}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay, cmd.Dir = stdin, stdout, bad, boxEndWait, "/"
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		return err
	}
	said := strings.TrimSpace(bad.String())
	if strings.HasPrefix(said, "bwrap:") || strings.HasPrefix(said, "sandbox-exec:") {
		return fmt.Errorf("a sandbox for git: %s", said)
	}
	return &git.CommandError{Command: "in a sandbox", Code: exit.ExitCode(), Stderr: git.OneLine(said)}
}

// workedIn records the git folder of a held launch.
func (x *Cage) workedIn(key string, own tree.Private) {
	x.mu.Lock()
	x.held[key] = own
	x.mu.Unlock()
}
