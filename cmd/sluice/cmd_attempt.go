package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/agents/launch"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

func attemptCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "attempt",
		Short: "look at one attempt of an agent again",
		Long: `What an attempt leaves in its checkout, committed or not, is kept on a ref of sluice's own:
refs/sluice/salvage/RUN/STEP.N. It stays until sluice clean removes it.`,
		Example: "sluice attempt show last tests.2\nsluice attempt diff last tests.2",
		Args:    console.Between(0, 0),
	}
	sub := func(use, short, long, example string,
		run func(context.Context, *workspace.Workspace, *attemptShown, []string) error, most int) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: console.Between(2, most),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, _ bool) error {
					t, err := findAttempt(cmd.Context(), v, args[0], args[1])
					if err != nil {
						return err
					}
					return run(cmd.Context(), p, t, args)
				})
			}}
	}
	cmd.AddCommand(
		a.JSONFlag(sub("show RUN STEP.N", "show how an attempt went, what it cost and where its files are",
			"Shows how and when the attempt ended (after its gates), its summary, its cost, the folder of its\noutput and "+
				"the commit of the files it left.",
			"sluice attempt show last tests.2\nsluice attempt show phase-4-1 tests.1 --json", a.attemptShow, 2)),
		sub("diff RUN STEP.N", "show what an attempt changed",
			"Compares the commit that the attempt began with and the files it left, committed or not.",
			"sluice attempt diff last tests.2 | less -R\nsluice attempt diff phase-4-1 tests.1 | git apply -R --stat",
			a.attemptDiff, 2),
		sub("checkout RUN STEP.N [DIR]", "create a worktree with the files an attempt left",
			"Creates a linked worktree with the files as the attempt left them, to run or read beside your own. It\nis on no "+
				"branch; remove it with git worktree remove.",
			"sluice attempt checkout last tests.2 ../as-it-was\nsluice attempt checkout phase-4-1 tests.1",
			a.attemptCheckout, 3),
	)
	return cmd
}

// attemptShown is one attempt of a run's step.
type attemptShown struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	*engine.Attempt
	Program launch.Program `json:"program"`
	Folder  string         `json:"folder"`
	Kept    string         `json:"kept,omitempty"` // the commit of its end state
	name    string
	runDir  string // below .workflow/runs/
}

// findAttempt returns the attempt that a person names, STEP.N.
func findAttempt(ctx context.Context, v workspace.Viewer, run, name string) (*attemptShown, error) {
	step, number, ok := text.CutLast(name, '.')
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || !ids.Valid(step) {
		return nil, fault.Misused("as tests.2: the second attempt of tests", "%q is not the name of an attempt", clean(name))
	}
	r, err := workspace.RunOf(ctx, v, run)
	if err != nil {
		return nil, err
	}
	st := r.Step(step)
	if st == nil {
		return nil, fault.Failed("`sluice status "+r.ID+"` names them", "%s has no step %s", r.ID, clean(step))
	}
	for i := range st.Attempts {
		if st.Attempts[i].N == n {
			return &attemptShown{Run: r.ID, Step: step, Attempt: &st.Attempts[i], runDir: r.Dir,
				name: fmt.Sprintf("%s/%s.%d", r.ID, step, n)}, nil
		}
	}
	return nil, fault.Failed("`sluice status "+r.ID+"` shows its attempts", "%s has no attempt %d of %s", r.ID, n, step)
}

func (a *app) attemptShow(ctx context.Context, p *workspace.Workspace, t *attemptShown, _ []string) error {
	dir := daemon.AttemptDir(p.Root, t.runDir, t.Step, t.N, t.K)
	t.Program, _ = launch.ReadProgram(dir)
	t.Folder, _ = layout.Rel(p.Root, dir)
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	t.Kept, _, err = repo.Kept(ctx, t.name)
	if err != nil && !errors.Is(err, git.ErrNotKept) {
		return err
	}
	if a.JSON {
		return a.Document(t)
	}
	a.Title("%s", t.name)
	line := func(what, text string) {
		if text != "" {
			a.Field(what, clean(text))
		}
	}
	line("state", t.State)
	line("agent", strings.TrimSpace(t.Program.Agent+" "+t.Program.Model))
	if !t.Launched.IsZero() {
		line("launched", t.Launched.Local().Format(time.DateTime))
	}
	if !t.Ended.IsZero() {
		line("ended", t.Ended.Local().Format(time.DateTime)+" (after its gates)")
	}
	if t.K > 1 {
		line("launches", strconv.Itoa(t.K))
	}
	line("cost", render.UsageWords(show.AttemptUsage(*t.Attempt)))
	line("said", t.Summary)
	line("failure", t.Failure)
	line("no result", t.Broken)
	line("files in", t.Folder)
	if t.Kept != "" {
		line("left", fmt.Sprintf("%s  (sluice attempt diff %s %s.%d)", t.Kept[:12], t.Run, t.Step, t.N))
	}
	return nil
}

func (a *app) attemptDiff(ctx context.Context, p *workspace.Workspace, t *attemptShown, _ []string) error {
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	sha, base, err := repo.Kept(ctx, t.name)
	if err != nil {
		return show.NotKept(t.name, err)
	}
	patch, cut, err := repo.Between(ctx, base, sha, attemptDiffMost, git.Look{})
	if err != nil {
		return err
	}
	show.PrintPatch(&a.Console, patch, false)
	if cut {
		a.Note("there is more: sluice attempt checkout %s %s.%d", t.Run, t.Step, t.N)
	}
	return nil
}

// attemptDiffMost is how many bytes of a patch are printed.
const attemptDiffMost = 4 << 20

func (a *app) attemptCheckout(ctx context.Context, p *workspace.Workspace, t *attemptShown, args []string) error {
	dir := filepath.Join(filepath.Dir(p.Root), filepath.Base(p.Root)+"-"+strings.ReplaceAll(t.name, "/", "-"))
	if len(args) > 2 {
		var err error
		if dir, err = filepath.Abs(args[2]); err != nil {
			return err
		}
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	sha, _, err := repo.Kept(ctx, t.name)
	if err != nil {
		return show.NotKept(t.name, err)
	}
	if err := repo.CheckoutAt(ctx, dir, sha); err != nil {
		return err
	}
	a.Print("%s", dir)
	return nil
}
