package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/decide"
)

func passCommand(a *app) *cobra.Command {
	return decisionCommand(a, "pass GATE", engine.OutcomePass, "pass a gate: its work goes on",
		`The work at the gate goes on. The pass counts for the files as they are now: if they have changed
since the gate asked, the work is checked again and the gate asks again. It counts for the round
that you looked at: show prints the command, with --round from the second round on. If the gate asks
for an answer, give it with -a; without -a you are asked for each property.`,
		"sluice pass approve\nsluice pass approve --round 2 -m \"good; mind the log level\"\nsluice pass approve "+
			"-a replicas=2 -a name=web")
}

func failCommand(a *app) *cobra.Command {
	return decisionCommand(a, "fail GATE", engine.OutcomeFail, "fail a gate: its work goes back, with your reason",
		`The next attempt reads your words, so write what is wrong and what would be right.
"-m -" reads them from standard input. --review opens the changes of the round in your editor, as
git chooses it: write comments under the lines that they are about. The next attempt is given each
with its file and line.`,
		"sluice fail approve -m \"search() must not return duplicates\"\nsluice fail approve -m - < review.md\n"+
			"sluice fail approve --review\nsluice fail approve --comment \"search.py:12:an empty query returns everything\"")
}

func vetoCommand(a *app) *cobra.Command {
	return decisionCommand(a, "veto GATE", engine.OutcomeVeto, "overrule a reviewer's pass, even after the veto window",
		`At a gate of level notify, the work goes on when the veto window closes. A veto before that fails
the gate. A later veto stops and undoes what ran after the gate, and the work goes back.`,
		"sluice veto review -m \"the tests miss empty queries\"\nsluice veto review --run phase-4-2 -m \"wrong branch\"")
}

func decideCommand(a *app) *cobra.Command {
	return decisionCommand(a, "decide GATE OUTCOME", "", "decide a gate with any of its outcomes, such as a route",
		"Chooses an outcome by name where a gate has routes beside pass and fail. `sluice show GATE` lists them.",
		"sluice decide plan-review replan -m \"the plan misses the index\"\nsluice decide approve pass")
}

func decisionCommand(a *app, use, outcome, short, long, example string) *cobra.Command {
	var d decide.Decision
	n := len(strings.Fields(use)) - 1
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: console.Between(n, n),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.forPersons("decides a gate", "end the step with `sluice signal`, and leave the gate to a person")
			if err != nil {
				return err
			}
			d.Gate, d.Outcome = args[0], outcome
			if outcome == "" {
				d.Outcome = args[1]
			}
			if err := decide.AskWords(&a.Console, &d); err != nil {
				return err
			}
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			return decide.Give(cmd.Context(), &a.Console, p, d)
		},
	}
	decisionFlags(cmd, &d, outcome)
	return a.JSONFlag(cmd)
}

// decisionFlags adds the flags of a command that decides a gate; outcome is "" if it is an argument.
func decisionFlags(cmd *cobra.Command, d *decide.Decision, outcome string) {
	cmd.Flags().StringVarP(&d.Text, "message", "m", "", "the reason, in `WORDS`; - reads standard input")
	if outcome == engine.OutcomePass || outcome == "" {
		cmd.Flags().StringArrayVarP(&d.Answers, "answer", "a", nil,
			"the answer that the gate asks for: `NAME=VALUE` for each property, or the whole as JSON")
	}
	if engine.Refuses(outcome) {
		cmd.Flags().BoolVar(&d.Review, "review", false, "write comments under the lines of the changes, in your editor")
		cmd.Flags().StringArrayVar(&d.Comments, "comment", nil, "a comment on a line, as `FILE:LINE:TEXT`; may be repeated")
	}
	cmd.Flags().StringVar(&d.Run, "run", "", "the `RUN` of the gate, if several have it")
	cmd.Flags().IntVar(&d.Round, "round", 0, "the round `N` that you looked at, as show printed it (default: 1; of a "+
		"fail or veto, the open one)")
	cmd.Flags().StringVar(&d.Key, "key", "", "sign with the key in `FILE` (default: an approver's key on this machine)")
	cmd.Flags().StringVarP(&d.Out, "out", "o", "", "sign the decision and write it to `FILE`, without handing it in")
	cmd.Flags().BoolVar(&d.Unsigned, "unsigned", false, "with -o: write the decision unsigned, to be signed elsewhere")
	cmd.Flags().StringVar(&d.Signed, "signed", "", "hand in `FILE`, a decision that is signed already")
	cmd.Flags().DurationVar(&d.Life, "expires", 0, "the signature is valid for `TIME` (10m; 24h with -o)")
}
