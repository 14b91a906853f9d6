package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/land"
	"sluice/internal/render"
	"sluice/internal/serve"
	"sluice/internal/text"
	"sluice/internal/tui"
	"sluice/internal/tui/host"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
)

func runCommand(a *app) *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use:   "run [WORKFLOW|RUN]",
		Short: "run a workflow in the foreground and answer its gates",
		Long: `Starts a run and shows its steps, gates, times and what it waits for. A repo's only workflow need
not be named. In a terminal it asks for required vars, and at human gates: a key counts after the
gate has been on screen for a second, and a pass needs Enter. Without a terminal it prints a line
for each important event. With a run's id, or "last", it continues that run. Where no daemon serves
the repo, this process does until the run has ended; other terminals can decide and look
meanwhile. Ctrl-C pauses the run and prints how to continue.
--yes answers the questions of this command, never a gate.`,
		Example: "sluice run\nsluice run gated-pipeline --var task=\"an index\"\nsluice run phase-4 --var goal=\"faster " +
			"search\" --set veto_window=5s",
		Args: console.Between(0, 1),
		RunE: inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, args []string) error {
			if err := o.name(p, args); err != nil {
				return err
			}
			return runHere(ctx, a, p, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringArrayVar(&o.set, "set", nil,
		"a setting that overrides every layer: `KEY=VALUE` (if no daemon serves the repo)")
	return cmd
}

// runHere runs a workflow in the foreground, from start to end.
func runHere(ctx context.Context, a *app, p *workspace.Workspace, o order) error {
	start, id, err := runWanted(ctx, a, p, o)
	if err != nil {
		return err
	}
	o.workflow = id
	return inFront(ctx, a, p, o.set,
		func(s workspace.Service) (string, int64, error) { return beginRun(ctx, &a.Console, s, o, start) })
}

// beginning starts a run or resumes it. It returns its id and the first record to show; 0 = it was
// under way.
type beginning func(s workspace.Service) (id string, from int64, err error)

// inFront begins and follows a run to its end, with the process that serves the repo; if there is
// none, this one serves it meanwhile.
func inFront(ctx context.Context, a *app, p *workspace.Workspace, set []string, begin beginning) error {
	s, err := p.Serving(ctx)
	if err != nil {
		return err
	}
	var h *serve.Host
	if s == nil {
		if h, err = serve.InFront(ctx, a.serving(set), p, false); err != nil {
			return err
		}
		s = p.Client()
	}
	defer s.Close()
	code := followed(ctx, a, p, s, set, begin, h != nil)
	if h != nil {
		if !errors.Is(code, fault.Exit(fault.ExitInterrupted)) {
			h.Settle(s)
		}
		if err := h.Stop(); err != nil && code == nil {
			return err
		}
	}
	return code
}

func followed(ctx context.Context, a *app, p *workspace.Workspace, s workspace.Service, set []string,
	begin beginning, ours bool) error {
	id, from, err := begin(s)
	if err != nil {
		return err
	}
	r, err := tui.Follow(ctx, &a.Console, host.Of(s, &a.Console, p), id, from, ours)
	switch {
	case errors.Is(err, tui.ErrLeft) && !ours:
		a.Print("%s continues in the background: `sluice status %s`, `sluice run %s`", id, id, id)
		return nil
	case errors.Is(err, tui.ErrLeft), errors.Is(err, tui.ErrInterrupt), ctx.Err() != nil:
		return pauseAndLeave(a, s, id, set, ours)
	case err != nil:
		return err
	}
	if a.ended != nil {
		return a.ended(r)
	}
	return printSummary(ctx, a, p, r)
}

// runWanted reads what to start before anything is started, and returns its workflow's id. If the
// argument names a run ("last" is the newest), it returns that run's id and nothing to start.
func runWanted(ctx context.Context, a *app, p *workspace.Workspace,
	o order) (start *engine.RunRequested, id string, err error) {
	file, specErr := workflows.File(p, o.workflow)
	if specErr != nil {
		r, err := p.StatusOf(context.Background(), o.workflow)
		if err == nil && (r.ID == o.workflow || o.workflow == workspace.LastRun) {
			return nil, r.ID, o.ofNewRuns(r.ID)
		}
		var f *fault.Error
		if err != nil && (o.workflow == workspace.LastRun || errors.As(err, &f) && f.Code == fault.ExitServed) {
			return nil, "", err // it hardly means a workflow of this name; or whether it is a run cannot be known
		}
		return nil, "", specErr
	}
	spec, err := workflows.Load(&a.Console, file)
	if err != nil {
		return nil, "", err
	}
	cfg, err := workspace.Settings(&a.Console, p.Root, o.set)
	if err != nil {
		return nil, "", allFaults(&a.Console, err)
	}
	if err := workflows.Ready(&a.Console, p, spec, cfg.Settings, o.stub != ""); err != nil {
		return nil, "", err
	}
	missing := workflows.Missing(spec, o.vars)
	if a.Asks() && (o.parallel || !isLive(ctx, p, spec.ID)) {
		said, err := prepared(ctx, a, p, spec, missing)
		if err != nil {
			return nil, "", err
		}
		o.vars = append(o.vars, said...)
	}
	ev, err := requestOf(ctx, a, p, o)
	return &ev, o.workflow, err
}

// prepared tells a person what happens to what they have not committed, and asks for the vars that
// are missing.
func prepared(ctx context.Context, a *app, p *workspace.Workspace, spec *engine.Spec,
	missing []engine.Var) (vars []string, err error) {
	if err := workflows.Begins(ctx, p, spec); err != nil {
		return nil, err // before anybody types
	}
	if words := workflows.Uncommitted(ctx, p, spec); words != "" {
		a.Note("%s", words)
	}
	return workflows.AskVars(&a.Console, spec.ID, missing)
}

// isLive reports whether a run of the workflow is live, as far as is known.
func isLive(ctx context.Context, p *workspace.Workspace, workflow string) bool {
	st, err := p.Status(ctx)
	return err == nil && slices.ContainsFunc(st.Runs, func(r daemon.RunStatus) bool {
		return r.Workflow == workflow && r.Child == nil && r.Live()
	})
}

// beginRun starts the run, or continues the live one that is meant. from is the record of its
// start; 0 = it was under way.
func beginRun(ctx context.Context, con *console.Console, s workspace.Service, o order,
	start *engine.RunRequested) (id string, from int64, err error) {
	st, err := s.Status(ctx, "")
	if err != nil {
		return "", 0, err
	}
	for _, r := range st.Runs {
		named := r.ID == o.workflow
		if start == nil && !named || start != nil && (r.Workflow != start.Workflow || !r.Live() || start.Parallel) {
			continue
		}
		if start != nil {
			if err := sameKind(r, start); err != nil {
				return "", 0, err
			}
			if err := goOnWith(con, r); err != nil {
				return "", 0, err
			}
		}
		return r.ID, 0, resumed(ctx, s, r)
	}
	if start == nil {
		return "", 0, fault.Failed("`sluice ls` names them", "no run %q in this repo", clean(o.workflow))
	}
	if o.before != nil {
		if err := o.before(ctx); err != nil {
			return "", 0, err
		}
	}
	return launchRun(ctx, s, *start)
}

// sameKind refuses to continue a live run of the other kind: a run with stand-ins never passes for
// real work, nor a real run for one with stand-ins.
func sameKind(r daemon.RunStatus, start *engine.RunRequested) error {
	if r.Stubbed == (len(start.Stubs) > 0) {
		return nil
	}
	is, wanted := "a real run", "one with stubs"
	if r.Stubbed {
		is, wanted = "played by stubs (--stub)", "a real run"
	}
	return fault.Failed(fmt.Sprintf("`sluice abort %s` ends it, --parallel starts one beside it, `sluice run %s` "+
		"continues it", r.ID, r.ID), "%s of this workflow is live and is %s; you asked for %s", r.ID, is, wanted)
}

// goOnWith asks whether the live run of the workflow is meant.
func goOnWith(con *console.Console, r daemon.RunStatus) error {
	if con.Yes {
		return nil
	}
	if con.Interactive() {
		if yes, err := con.Ask(fmt.Sprintf("%s is %s. Go on with it?", r.ID, render.RunState(r))); err != nil || yes {
			return err
		}
	}
	return fault.Failed(fmt.Sprintf("`sluice run %s` continues it, `sluice abort %s` ends it, --parallel starts "+
		"one beside it", r.ID, r.ID), "%s of this workflow is %s", r.ID, render.RunState(r))
}

// resumed makes a run continue.
func resumed(ctx context.Context, s workspace.Service, r daemon.RunStatus) error {
	if !r.Live() {
		again := r.ID
		if r.Phase == engine.RunCompleted {
			again += " STEP"
		}
		return fault.Failed("`sluice retry "+again+"` continues it", "%s is over: %s", r.ID, r.Phase)
	}
	if r.Paused == "" {
		return nil
	}
	if err := s.Reload(ctx); err != nil { // the settings may have been fixed
		return err
	}
	done, err := s.Do(ctx, engine.ResumeRequested{Run: r.ID}, "command")
	if err == nil && done.Ignored != "" {
		if now, err := s.Run(ctx, r.ID); err == nil && !now.Live() {
			return nil // an answer in the inbox has ended it meanwhile
		}
		err = fault.Failed("`sluice status "+r.ID+"` shows its state", "%s cannot be resumed: %s", r.ID, done.Ignored)
	}
	return err
}

func pauseAndLeave(a *app, s workspace.Service, id string, set []string, ours bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), pauseIn)
	defer cancel()
	if _, err := s.Do(ctx, engine.PauseRequested{Run: id}, "terminal"); err != nil {
		return err
	}
	if a.throwAway {
		a.Note("The demo ends here, and its repo is removed.")
		return fault.Exit(fault.ExitInterrupted)
	}
	a.Note("%s is paused. Running agents finish; nothing new is started.", id)
	if !ours {
		a.Note("Go on:  sluice resume %s   (or sluice run %s)", id, id)
		return fault.Exit(fault.ExitInterrupted)
	}
	line := "Go on:  sluice run " + id
	for _, kv := range set { // they are this process's, not the run's
		line += " --set " + shellWord(kv)
	}
	a.Note("%s", line)
	return fault.Exit(fault.ExitInterrupted)
}

// pauseIn is how long pausing may take when the person wants to leave.
const pauseIn = 10 * time.Second

// printSummary prints how the run ended, its outcome last, and returns its exit code.
func printSummary(ctx context.Context, a *app, p *workspace.Workspace, r daemon.RunStatus) error {
	a.PrintLines(append(render.EndLines(&a.Console, r), render.UnpassedLines(&a.Console, r)...))
	if words := render.Unheld(r); words != "" {
		a.PrintWrapped(0, console.Styled(words, console.Yellow))
	}
	if take := land.ToTake(ctx, p.Root, p.State, r, true, &land.Last{}); take != "" {
		a.Print("%s", clean(take)) // one line: a person copies the command
	}
	if r.Stubbed && !a.throwAway {
		if r.Workspace != "" {
			a.Note("  the stubs' files are in %s; no other run begins from them", r.Workspace)
		} else {
			a.Note("  the stubs' files are where agents would have written them: `git status` lists them; a real run " +
				"begins from them")
		}
	}
	_, style := render.Mark(r.Phase)
	s := fmt.Sprintf("%s %s", r.ID, r.Phase) + render.StubMark(r.Stubbed)
	if !r.Started.IsZero() && !r.Ended.IsZero() {
		s += " in " + render.Ago(r.Ended.Sub(r.Started))
	}
	a.PrintWrapped(0, console.Styled(render.Because(s, endWords(r)), style))
	if r.Phase != engine.RunCompleted {
		a.Note("  → `sluice status %s` shows where, `sluice explain STEP` why, `sluice retry %s` tries again", r.ID, r.ID)
	}
	return endOf(r)
}

// endWords explains why a run ended: its record or, if that is only a gate's "review: fail", the
// gate's words.
func endWords(r daemon.RunStatus) string {
	why := clean(r.EndWhy)
	for _, s := range r.Steps {
		if s.State == engine.RunFailed && s.Failure != "" {
			return render.Because(why, clean(text.Brief(s.Failure)))
		}
		for _, g := range s.Gates {
			if r.Phase == engine.RunFailed && r.EndWhy == g.ID+": "+g.Outcome && g.Feedback != "" {
				return render.Because(why, clean(text.Brief(g.Feedback)))
			}
		}
	}
	return why
}
