package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/fault"
)

func passCommand(a *app) *cobra.Command {
	return decisionCommand(a, "pass GATE", engine.OutcomePass, "let the work at a gate through",
		`Says that the work a gate holds may go on. It counts for what is there now: if the files have
changed since the gate asked, the work is checked and you are asked anew. Where the gate asks for an
answer, -a gives it; without -a you are asked for one property after the other.`,
		"sluice pass XG-2-end\nsluice pass XG-2-end -m \"good; mind the log level\"\nsluice pass XG-2-end -a replicas=2 -a name=web")
}

func failCommand(a *app) *cobra.Command {
	return decisionCommand(a, "fail GATE", engine.OutcomeFail, "send the work at a gate back, with the reason",
		`Your words become the context of the next attempt, so write what is wrong and what would be
right. "-m -" reads them from standard input.`,
		"sluice fail XG-2-end -m \"search() must not return duplicates\"\nsluice fail XG-2-end -m - < review.md")
}

func vetoCommand(a *app) *cobra.Command {
	return decisionCommand(a, "veto GATE", engine.OutcomeVeto, "overrule a reviewer's pass, also later",
		`At a gate of level notify the work goes on when the window closes. A veto before that fails
the gate; one that comes later stops what runs after the gate, undoes it and goes back.`,
		"sluice veto XG-1-2 -m \"the tests miss empty queries\"\nsluice veto XG-1-2 --run phase-4-2 -m \"wrong branch\"")
}

func decideCommand(a *app) *cobra.Command {
	return decisionCommand(a, "decide GATE OUTCOME", "", "give a gate any of its outcomes, as a route's name",
		"Where a gate has routes beside pass and fail, this takes one. `sluice show GATE` names them.",
		"sluice decide G-1 replan -m \"the plan misses the index\"\nsluice decide G-1 pass")
}

func decisionCommand(a *app, use, outcome, short, long, example string) *cobra.Command {
	var d decide.Decision
	n := len(strings.Fields(use)) - 1
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: console.Between(n, n),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := a.Getenv("SLUICE_TOKEN"); at != "" {
				return fault.Failed("end the step with `sluice signal`, and leave the gate to a person", "a gate is decided by a person, and this is the environment of an attempt (%s)", clean(a.Getenv("SLUICE_RUN")))
			}
			d.Gate, d.Outcome = args[0], outcome
			if outcome == "" {
				d.Outcome = args[1]
			}
			if err := decide.AskWords(&a.Console, &d, d.Signed != "" || cmd.Flags().Changed("message")); err != nil {
				return err
			}
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			return decide.Give(cmd.Context(), &a.Console, p, d)
		},
	}
	cmd.Flags().StringVarP(&d.Text, "message", "m", "", "the reason, in `WORDS`; - reads standard input")
	if outcome == engine.OutcomePass || outcome == "" {
		cmd.Flags().StringArrayVarP(&d.Answers, "answer", "a", nil, "the answer that the gate asks for: `NAME=VALUE` of each property, or the whole as JSON")
	}
	cmd.Flags().StringVar(&d.Run, "run", "", "the `RUN` that is meant, where several wait at one gate")
	cmd.Flags().IntVar(&d.Round, "round", 0, "only if it is the gate's round `N` (as show said)")
	cmd.Flags().StringVar(&d.Key, "key", "", "sign with the key in `FILE`; else one of the approvers' that is at hand")
	cmd.Flags().StringVarP(&d.Out, "out", "o", "", "sign, and write it to `FILE` instead of handing it in")
	cmd.Flags().BoolVar(&d.Unsigned, "unsigned", false, "with -o: write what is to be signed, to be signed elsewhere")
	cmd.Flags().StringVar(&d.Signed, "signed", "", "hand in `FILE`, which was signed before")
	cmd.Flags().DurationVar(&d.Life, "expires", 0, "how long the signature is good for (10m; 24h with -o)")
	return a.JSONFlag(cmd)
}
