package main

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
)

func triggersCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "triggers [WORKFLOW]",
		Short: "show what starts runs by itself: what fires next, what fired, what was skipped and why",
		Long: `A workflow's triggers are under on: in its spec. They fire once a person has armed them, and only
while the spec is the text that was armed.`,
		Example: "sluice triggers\nsluice triggers arm nightly\nsluice triggers --json",
		Args:    console.Between(0, 1),
		RunE: inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, args []string) error {
			all, err := show.Triggers(ctx, p, strings.Join(args, ""))
			if err != nil {
				return err
			}
			if a.JSON {
				return a.Document(all)
			}
			if len(all) == 0 {
				a.Print("no workflow here has triggers → add them under `on:` (docs/triggers.md)")
			}
			show.PrintTriggers(&a.Console, all)
			return nil
		}),
	}
	cmd.AddCommand(
		&cobra.Command{Use: "arm WORKFLOW", Short: "let the triggers of a workflow fire, with its spec as it is now",
			Long: `Look at the spec first: its runs start without you. What exists already (files, commits, issues)
does not fire. After a change of the spec, or of a workflow or schema that it names, nothing starts
until you arm it again.`,
			Example: "sluice validate nightly\nsluice triggers arm nightly", Args: console.Between(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error { return a.arm(cmd.Context(), args[0]) }},
		&cobra.Command{Use: "disarm WORKFLOW", Short: "stop the triggers of a workflow",
			Long:    "Its runs continue. Firings whose run has not started are dropped, and recorded as skipped.",
			Example: "sluice triggers\nsluice triggers disarm nightly", Args: console.Between(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error { return a.disarm(cmd.Context(), args[0]) }},
	)
	cmd.AddCommand(secretCommand(a))
	return a.JSONFlag(cmd)
}

func secretCommand(a *app) *cobra.Command {
	var another bool
	cmd := &cobra.Command{Use: "secret WORKFLOW",
		Short: "print the secret that signs webhooks, and create it if there is none",
		Long: `A webhook counts if X-Hub-Signature-256 has the HMAC of its body by this secret. It is kept in the
state folder, readable by you alone.`,
		Example: "sluice triggers secret deploy\nsluice triggers secret deploy --new", Args: console.Between(1, 1),
		RunE: inRepo(a.person, func(_ context.Context, p *workspace.Workspace, args []string) error {
			secret, err := workflows.MakeSecret(p, args[0], another)
			if err != nil {
				return err
			}
			a.Print("%s", secret)
			a.Note("POST /hook/%s/%s at the address of the page: `sluice web` prints it", filepath.Base(p.Root), args[0])
			return nil
		})}
	cmd.Flags().BoolVar(&another, "new", false, "create another secret; the old one no longer counts")
	return cmd
}

// person finds the repo for a person who decides what may start.
func (a *app) person(ctx context.Context) (*workspace.Workspace, error) {
	if err := a.forPersons("says what starts by itself", "leave this to a person"); err != nil {
		return nil, err
	}
	return a.place(ctx)
}

// armer is person, with the process that serves the repo.
func (a *app) armer(ctx context.Context) (*workspace.Workspace, workspace.Service, error) {
	p, err := a.person(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := p.NeedServing(ctx)
	return p, s, err
}

func (a *app) arm(ctx context.Context, workflow string) error {
	p, s, err := a.armer(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ev, _, err := workflows.Armable(p, workflow)
	if err != nil {
		return err
	}
	done, err := s.Do(ctx, ev, "command")
	if err != nil {
		return err
	}
	if done.Ignored != "" {
		return fault.Failed("docs/triggers.md describes triggers", "nothing was armed: %s", done.Ignored)
	}
	all, err := show.Triggers(ctx, p, workflow)
	show.PrintTriggers(&a.Console, all)
	return err
}

func (a *app) disarm(ctx context.Context, workflow string) error {
	_, s, err := a.armer(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	done, err := s.Do(ctx, engine.DisarmRequested{Workflow: workflow}, "command")
	if err == nil && done.Ignored != "" {
		err = fault.Failed("`sluice triggers` lists them", "%s", done.Ignored)
	}
	if err == nil {
		a.Print("the triggers of %s no longer fire", workflow)
	}
	return err
}

func triggerCommand(a *app) *cobra.Command {
	var dry bool
	var w workflows.ByHand
	var event string
	cmd := &cobra.Command{
		Use:   "trigger WORKFLOW NAME",
		Short: "fire a trigger by hand, or see with --dry-run which vars its run would get",
		Long: `NAME is schedule, files, push, issue or webhook; the second schedule is schedule-2. The trigger
need not be armed, and max_per_day and overlap do not apply: a person starts this run.`,
		Example: "sluice trigger nightly schedule\nsluice trigger inbox files --file inbox/a.md --dry-run\nsluice trigger " +
			"deploy webhook --event event.json",
		Args: console.Between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Workflow, w.Trigger = args[0], args[1]
			if event != "" {
				file := a.below(event)
				raw, err := atomicfile.Read(file, workflows.MaxEvent)
				if err != nil {
					return fault.Misused("name a file with JSON", "--event %s: %w", clean(event), err)
				}
				w.Event = raw
			}
			return a.trigger(cmd.Context(), w, dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "start nothing: print the vars")
	cmd.Flags().StringVar(&w.File, "file", "", "for files: the `FILE` that is new, relative to the repo's root")
	cmd.Flags().StringVar(&event, "event", "", "for push, issue and webhook: a `FILE` with the event as JSON")
	return a.JSONFlag(cmd)
}

func (a *app) trigger(ctx context.Context, w workflows.ByHand, dry bool) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	ev, err := workflows.FireByHand(&a.Console, p, w)
	if err != nil {
		return err
	}
	if dry {
		return a.printVars(ev.Vars)
	}
	s, err := p.NeedServing(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	run, _, err := launchRun(ctx, s, ev)
	if err != nil {
		return err
	}
	return a.answer(map[string]string{"run": run}, run)
}

func (a *app) printVars(vars map[string]any) error {
	if a.JSON {
		return a.Document(map[string]any{"vars": vars})
	}
	t := &console.Table{Columns: []console.Column{{}, {Fit: console.Wrapped}}}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value, ok := vars[name].(string)
		if !ok {
			raw, err := json.Marshal(vars[name])
			if err != nil {
				return err
			}
			value = string(raw)
		}
		t.Row(console.Styled(name, console.Bold), console.Styled(value, ""))
	}
	a.PrintTable(t)
	return nil
}
