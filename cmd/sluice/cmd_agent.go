package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/serve"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/notify"
	"sluice/signals"
)

func signalCommand(a *app) *cobra.Command {
	var status, text, run, answer string
	cmd := &cobra.Command{
		Use:   "signal STEP",
		Short: "report that a step is done, failed or blocked",
		Long: `Writes the step's sentinel file whole, by rename, into the right folder. An agent that sluice
launched needs no flags: its environment names the run and the attempt.`,
		Example: "sluice signal tests -m \"wrote 14 tests\"\nsluice signal tests --status blocked -m \"which database?\"",
		Args:    console.Between(1, 1),
		RunE: inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, args []string) error {
			if a.Getenv("SLUICE_STEP") == "" { // an agent's signal is for the daemon to judge
				if err := p.Awaits(ctx, args[0], run); err != nil {
					return err
				}
			}
			return sendSignal(&a.Console, p, args[0], status, text, run, answer)
		}),
	}
	cmd.Flags().StringVar(&status, "status", signals.Done, "`STATUS`: done, failed or blocked")
	cmd.Flags().StringVarP(&text, "message", "m", "", "the summary, or the question, in `WORDS`")
	cmd.Flags().StringVar(&run, "run", "", "the `RUN` of the step (default: from the environment)")
	cmd.Flags().StringVar(&answer, "answer", "", "the structured answer: a `FILE` of JSON")
	return cmd
}

func sendSignal(con *console.Console, p *workspace.Workspace, step, status, words, run, answer string) error {
	known := []string{signals.Done, signals.Failed, signals.Blocked}
	if !slices.Contains(known, status) {
		advice := text.MeantOr("one of: "+strings.Join(known, ", "), "--status ", status, known)
		return fault.Misused(advice, "no status %q", clean(status))
	}
	if !ids.Valid(step) {
		return fault.Misused("`sluice status` names the steps", "%q is not the id of a step", clean(step))
	}
	say := map[string]any{"step": step, "status": status, "summary": words}
	if status == signals.Blocked {
		say["question"] = words
	}
	if con.Getenv("SLUICE_STEP") == step && (run == "" || run == con.Getenv("SLUICE_RUN")) {
		run = con.Getenv("SLUICE_RUN")
		if token := con.Getenv("SLUICE_TOKEN"); token != "" {
			say["token"] = token
		}
	}
	if run != "" {
		say["run"] = run
	}
	if answer != "" {
		raw, err := os.ReadFile(answer)
		if err != nil {
			return err
		}
		if !json.Valid(raw) {
			return fault.Failed("write one JSON value into it", "%s: not JSON", clean(answer))
		}
		say["answer"] = json.RawMessage(raw)
	}
	raw, err := json.Marshal(say)
	if err != nil {
		return err
	}
	if len(raw) > signals.MaxBytes {
		return fault.Failed("put the long part into a file of the repo and name it", "the signal has more than %d bytes",
			signals.MaxBytes)
	}
	name := step + "-done.json"
	if own := con.Getenv("SLUICE_SIGNAL"); own != "" && con.Getenv("SLUICE_STEP") == step {
		name = filepath.Base(own) // the spec may have given it another name
	}
	file, err := p.PutSignal(run, name, raw)
	if err != nil {
		return err
	}
	con.Print("written: %s", layout.ShortPath(file))
	return nil
}

func notifyCommand(a *app) *cobra.Command {
	var kind, body string
	cmd := &cobra.Command{
		Use:   "notify TEXT",
		Short: "send yourself a notice, as a run would",
		Long: `Uses the settings of run notices (notify.desktop, command, webhook), to test them or for your own
scripts. Prints the result for each channel. Inside the sandbox, hooks and agents see neither your
settings nor your desktop: for a notice at each step, write hooks: {notify: true} in the spec.`,
		Example: `sluice notify "deployed"
sluice notify "is this seen?" --body "with more words"`,
		Args: console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return tryNotice(cmd.Context(), a, notify.Notice{Kind: kind, Title: args[0], Body: body})
		},
	}
	cmd.Flags().StringVar(&body, "body", "", "more `WORDS`")
	cmd.Flags().StringVar(&kind, "kind", notify.KindInfo, "the `KIND` of notice that commands receive")
	return a.JSONFlag(cmd)
}

func tryNotice(ctx context.Context, a *app, n notify.Notice) (err error) {
	root := ""
	if p, err := a.bare(ctx); err == nil {
		root = p.Root
	}
	s, err := workspace.Settings(&a.Console, root, nil)
	if err != nil {
		return err
	}
	hook := s.Notify.Webhook.Hook()
	hook.Once = true // this process does not wait for a second try
	o := notify.Options{Command: s.Notify.Command, Webhook: hook}
	if s.Notify.Desktop {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o.Desktop = []string{self, serve.NotifyHelper}
	}
	sender := notify.New(o)
	defer func() { err = errors.Join(err, sender.Close()) }()
	results := sender.Send(ctx, n)
	if a.JSON {
		return a.Document(results)
	}
	t := &console.Table{Columns: []console.Column{{Least: console.LabelWidth}, {Fit: console.Wrapped}}}
	for _, r := range results {
		word, style := "sent", console.Green
		if !r.OK {
			word, style = "not sent: "+r.Why, console.Yellow
		}
		t.Row(console.Styled(r.Channel, console.Plain), console.Styled(word, style))
	}
	a.PrintTable(t)
	if !slices.ContainsFunc(results, func(r notify.Result) bool { return r.OK }) {
		return fault.Failed("set notify.command in your own settings, or see `sluice doctor`", "the notice reached nobody")
	}
	return nil
}
