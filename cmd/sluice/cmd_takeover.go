package main

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

func noteCommand(a *app) *cobra.Command {
	step := ""
	cmd := a.JSONFlag(&cobra.Command{
		Use: "note RUN TEXT...", Short: "leave a note for the next attempts of a run",
		Long: `The note is added, as yours, to the prompts of all steps launched from now on. Running agents do not
get it, and no reviewer reads it. RUN is a run's id, a workflow or "last".`,
		Example: "sluice note last \"keep the old file format\"\nsluice note phase-4-1 --step code \"the fixture is " +
			"in test/big\"", Args: console.Between(2, -1),
		RunE: steer(a, func(run string, args []string) engine.Event {
			return engine.NoteGiven{Run: run, Step: step, Text: strings.Join(args[1:], " ")}
		}),
	})
	cmd.Flags().StringVar(&step, "step", "", "only for attempts of `STEP`")
	return cmd
}

// Limits of waiting for an agent's end: longer than any sensible kill_after.
const (
	takeoverMost = 2 * time.Minute
	takeoverPace = 100 * time.Millisecond
)

func takeoverCommand(a *app) *cobra.Command {
	run := ""
	cmd := a.JSONFlag(&cobra.Command{
		Use: "takeover STEP", Short: "continue a step yourself, in the agent's own conversation",
		Long: `Ends the step's agent with every process it started. Its worktree stays as it is, and its files are
kept on its salvage ref. Prints the command that opens the agent's conversation in your terminal.
Nothing of the step is launched, and its time does not count for the run, until ` + "`sluice handback STEP`" + `.`,
		Example: "sluice takeover tests\nsluice takeover tests --run phase-4-1", Args: console.Between(1, 1),
		RunE: onStep(a, &run, func(ctx context.Context, p *workspace.Workspace, s workspace.Service, run, step string) error {
			if _, err := ask(ctx, s, run, engine.TakeoverRequested{Run: run, Step: step}); err != nil {
				return err
			}
			return tellTakeover(ctx, &a.Console, p, s, run, step)
		}),
	})
	cmd.Flags().StringVar(&run, "run", "", "the `RUN` of the step (default: the only live run)")
	return cmd
}

func handbackCommand(a *app) *cobra.Command {
	run, words, isDone := "", "", false
	cmd := a.JSONFlag(&cobra.Command{
		Use: "handback STEP", Short: "return a step you took over to an agent, or report it done",
		Long: `Launches the step's agent again, in the same worktree, with your message in its prompt. With --done
the step counts as done: it is checked and judged at its gate as always.`,
		Example: "sluice handback tests -m \"the parser is fixed, now the tests\"\nsluice handback tests --done",
		Args:    console.Between(1, 1),
		RunE: onStep(a, &run, func(ctx context.Context, _ *workspace.Workspace, s workspace.Service, run, step string) error {
			done, err := ask(ctx, s, run, engine.HandbackRequested{Run: run, Step: step, Done: isDone, Text: words})
			return tellSteered(&a.Console, done, err)
		}),
	})
	cmd.Flags().StringVar(&run, "run", "", "the `RUN` of the step (default: the only live run)")
	cmd.Flags().StringVarP(&words, "message", "m", "", "a message for the agent, in `WORDS`; with --done, a summary")
	cmd.Flags().BoolVar(&isDone, "done", false, "report the step done")
	return cmd
}

// onStep returns the RunE of a command about a step of --run's run, or of the only live one.
func onStep(a *app, run *string,
	do func(ctx context.Context, p *workspace.Workspace, s workspace.Service, run,
		step string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		var named []string
		if *run != "" {
			named = []string{*run}
		}
		return onRun(cmd.Context(), a, named,
			func(ctx context.Context, p *workspace.Workspace, s workspace.Service, run string) error {
				return do(ctx, p, s, run, args[0])
			})
	}
}

type takenOver struct {
	Run     string `json:"run"`
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	launch.Conversation
	Command string `json:"command,omitempty"` // for a shell
}

// tellTakeover waits until the step's agent is gone, and prints how to continue its conversation.
func tellTakeover(ctx context.Context, con *console.Console, p *workspace.Workspace, v workspace.Viewer, run,
	step string) error {
	at, err := heldAttempt(ctx, v, run, step)
	if err != nil {
		return err
	}
	out := takenOver{Run: run, Step: step, Attempt: at.N}
	if out.Conversation, err = launch.FindConversation(p.Root, p.State, run, step, at.N, at.K); err != nil {
		return err
	}
	if err := out.Import(con.Getenv); err != nil {
		con.Warn("%s", clean(err.Error()))
	}
	if set, err := workspace.Settings(con, p.Root, nil); err == nil && out.Argv != nil {
		out.Argv = ownCommand(out.Argv, set.Settings.Agents[out.Agent].Command)
	}
	if out.Argv != nil {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(out.Env)) {
			words = append(words, name+"="+shellWord(out.Env[name]))
		}
		for _, word := range out.Argv {
			words = append(words, shellWord(word))
		}
		out.Command = "cd " + shellWord(out.Dir) + " && " + strings.Join(words, " ")
	}
	if con.JSON {
		return con.Document(out)
	}
	con.Print("%s is yours: its agent has ended, and sluice launches nothing of it until you hand it back",
		render.Attempt(step, at.N))
	con.Print("")
	if out.Command != "" {
		con.Print("  %s", clean(out.Command))
	} else {
		con.Print("  cd %s", clean(shellWord(out.Dir)))
		con.Note("its agent (%s) has no conversation to open: work in its folder", cmp.Or(clean(out.Agent), "?"))
	}
	con.Print("")
	con.Print("sluice handback %s --run %s -m \"…\"   an agent continues, with your message", step, run)
	con.Print("sluice handback %s --run %s --done    the step is done: it is checked and judged as always", step, run)
	return nil
}

// heldAttempt waits until nothing of the taken-over step is running.
func heldAttempt(ctx context.Context, v workspace.Viewer, run, step string) (*engine.Attempt, error) {
	for until := time.Now().Add(takeoverMost); ; {
		r, err := v.Run(ctx, run)
		if err != nil {
			return nil, err
		}
		st := r.Step(step)
		if st == nil || len(st.Attempts) == 0 {
			return nil, fault.Failed("`sluice status "+run+"` shows its state", "step %s of %s is no longer at work", step, run)
		}
		at := st.Attempts[len(st.Attempts)-1]
		switch {
		case at.Held == nil:
			return nil, fault.Failed("`sluice status "+run+"` shows its state",
				"%s of %s had ended before it could be stopped (%s)", render.Attempt(step, at.N), run, at.State)
		case at.State == engine.Ready:
			return &at, nil
		case time.Now().After(until):
			return nil, fault.Failed("`sluice status "+run+"` shows its state; the step stays taken over",
				"the agent of %s has not ended within %s", render.Attempt(step, at.N), takeoverMost)
		}
		if !health.Wait(ctx, takeoverPace) {
			return nil, context.Canceled
		}
	}
}

// ownCommand returns the command of a conversation with the words that precede the program in the
// settings: they start it.
func ownCommand(argv, set []string) []string {
	for i, word := range set {
		if filepath.Base(word) == argv[0] {
			return append(slices.Clone(set[:i+1]), argv[1:]...)
		}
	}
	return argv
}

func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
