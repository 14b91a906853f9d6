package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/signals"
)

// decision is what a person says at a gate.
type decision struct {
	gate, outcome, text, run string
	round                    int

	key, out, signed string        // files: to sign with, to write to, that was signed
	unsigned         bool          // write what is to be signed
	life             time.Duration // of the signature; 0 = the default
	at               *daemon.GateStatus
	proof            string // the signed text

	answers []string        // NAME=VALUE, or the whole answer as JSON
	answer  json.RawMessage // what is given beside the words
}

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
	var d decision
	n := len(strings.Fields(use)) - 1
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: console.Between(n, n),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := a.Getenv("SLUICE_TOKEN"); at != "" {
				return fault.Failed("end the step with `sluice signal`, and leave the gate to a person", "a gate is decided by a person, and this is the environment of an attempt (%s)", clean(a.Getenv("SLUICE_RUN")))
			}
			d.gate, d.outcome = args[0], outcome
			if outcome == "" {
				d.outcome = args[1]
			}
			if err := askWords(&a.Console, &d, d.signed != "" || cmd.Flags().Changed("message")); err != nil {
				return err
			}
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			return giveDecision(cmd.Context(), &a.Console, p, d)
		},
	}
	cmd.Flags().StringVarP(&d.text, "message", "m", "", "the reason, in `WORDS`; - reads standard input")
	if outcome == engine.OutcomePass || outcome == "" {
		cmd.Flags().StringArrayVarP(&d.answers, "answer", "a", nil, "the answer that the gate asks for: `NAME=VALUE` of each property, or the whole as JSON")
	}
	cmd.Flags().StringVar(&d.run, "run", "", "the `RUN` that is meant, where several wait at one gate")
	cmd.Flags().IntVar(&d.round, "round", 0, "only if it is the gate's round `N` (as show said)")
	cmd.Flags().StringVar(&d.key, "key", "", "sign with the key in `FILE`; else one of the approvers' that is at hand")
	cmd.Flags().StringVarP(&d.out, "out", "o", "", "sign, and write it to `FILE` instead of handing it in")
	cmd.Flags().BoolVar(&d.unsigned, "unsigned", false, "with -o: write what is to be signed, to be signed elsewhere")
	cmd.Flags().StringVar(&d.signed, "signed", "", "hand in `FILE`, which was signed before")
	cmd.Flags().DurationVar(&d.life, "expires", 0, "how long the signature is good for (10m; 24h with -o)")
	return a.JSONFlag(cmd)
}

// askWords sees to it that a fail or a veto says why.
func askWords(con *console.Console, d *decision, given bool) error {
	if d.text == "-" {
		b, err := io.ReadAll(io.LimitReader(con.In, engine.MaxFeedback+1))
		if err != nil {
			return err
		}
		d.text = string(b)
	}
	if len(d.text) > engine.MaxFeedback {
		return fault.Misused("put it into a file of the repo and name that", "the message has more than %d bytes", engine.MaxFeedback)
	}
	if given || d.outcome != engine.OutcomeFail && d.outcome != engine.OutcomeVeto {
		return nil
	}
	if !con.Interactive() {
		return fault.Misused("say it with -m: your words are what the next attempt goes by", "%s %s: no reason given", d.outcome, clean(d.gate))
	}
	var err error
	d.text, err = askWhy(con)
	return err
}

// askWhy asks for the reason of a fail or a veto.
func askWhy(con *console.Console) (string, error) {
	fmt.Fprint(con.Out, "What is wrong? (one line; the next attempt reads it) ")
	line, err := con.ReadLine()
	if line = strings.TrimSpace(line); err != nil || line == "" {
		return "", fault.Misused("say why with -m", "nothing was decided: no reason given")
	}
	return line, nil
}

// inAttempt is an error in the environment of an attempt: what is decided is a person's.
func inAttempt(con *console.Console) error {
	if con.Getenv("SLUICE_TOKEN") == "" {
		return nil
	}
	return errors.New("this is the environment of an attempt: what is decided is a person's, so leave it to one")
}

// giveDecision has a decision taken in: by the process that serves the repo, else by a file for the one that will.
func giveDecision(ctx context.Context, con *console.Console, p *workspace.Workspace, d decision) error {
	v, served, err := workspace.View(ctx, p)
	if err != nil {
		return err
	}
	st, err := v.Status(ctx, "")
	if err == nil {
		err = knownGate(st, &d)
	}
	if err != nil {
		v.Close()
		return err
	}
	s, ok := v.(workspace.Service)
	if !served || !ok {
		v.Close() // the lock goes with it
	} else {
		defer s.Close()
	}
	if err := answerOf(ctx, con, &d); err != nil {
		return err
	}
	if err := proofOf(ctx, con, p, &d); err != nil || d.out != "" {
		return err
	}
	if !served || !ok {
		return leaveDecision(con, p, d)
	}
	done, err := s.Do(ctx, engine.Answered{Gate: d.gate, Run: d.run, Round: d.round, Outcome: d.outcome, Text: d.text, Answer: d.answer, Proven: engine.Proven{Proof: d.proof}}, "command")
	if err != nil {
		return err
	}
	return tellDone(con, done, d)
}

func tellDone(con *console.Console, done daemon.Done, d decision) error {
	if done.Ignored != "" {
		mend := "`sluice show " + clean(d.gate) + "` tells how it stands"
		if d.run == "" {
			mend = "`sluice inbox --here` names the runs in which a gate waits"
		}
		return fault.Failed(mend, "nothing came of it: %s", done.Ignored)
	}
	if con.JSON {
		return con.Document(done)
	}
	for _, raw := range done.Facts {
		if s := render.Fact(raw); s.Key {
			con.Print("%s  %s", con.Paint(console.Dim, console.Pad(s.Subject, render.SubjectWidth)), con.Paint(s.Style, s.Text))
		}
	}
	return nil
}

// knownGate checks the gate's name against those of live runs, and which run is meant.
func knownGate(st daemon.Status, d *decision) error {
	var known, at []string
	for _, r := range st.Runs {
		if !r.Live() || d.run != "" && r.ID != d.run {
			continue
		}
		for _, g := range r.Gates() {
			known = append(known, g.ID)
			if g.ID == d.gate {
				at, d.at = append(at, r.ID), &g
				if !okOutcome(g, d.outcome) {
					return fault.Failed("it takes: "+strings.Join(g.Outcomes, ", "), "gate %s has no outcome %q", d.gate, clean(d.outcome))
				}
			}
		}
	}
	if len(at) == 1 && d.run == "" {
		d.run = at[0]
	}
	if len(at) > 0 {
		return nil
	}
	mend := "`sluice inbox` lists what waits for you"
	if near := text.Meant(d.gate, known); near != "" {
		mend = "did you mean " + near + "?"
	}
	if d.run != "" {
		return fault.Failed(mend, "no gate %q in a live run %q", clean(d.gate), clean(d.run))
	}
	return fault.Failed(mend, "no gate %q in a live run", clean(d.gate))
}

// okOutcome checks an outcome where the gate says which it takes.
func okOutcome(g daemon.GateStatus, outcome string) bool {
	return len(g.Outcomes) == 0 || slices.Contains(g.Outcomes, outcome)
}

// leaveDecision writes the decision as a file: whoever serves the repo next takes it in.
func leaveDecision(con *console.Console, p *workspace.Workspace, d decision) error {
	if !ids.Valid(d.outcome) || !ids.Valid(d.gate) {
		return fault.Misused("ids are letters, digits, '.', '_' and '-'", "%q at %q is no outcome of a gate", clean(d.outcome), clean(d.gate))
	}
	name := d.gate + "-" + d.outcome + ".json"
	raw, err := d.file()
	if err != nil {
		return err
	}
	if d.proof != "" {
		name, raw = d.gate+"-"+d.outcome, []byte(d.proof)
	}
	if _, state, err := signals.ParseHuman(name, raw); err != nil || state != signals.Whole {
		return fault.Misused("write it in plain words", "the message cannot be written down: %v", err)
	}
	file, err := putSignal(p, d.run, name, raw)
	if err != nil {
		return err
	}
	if con.JSON {
		return con.Document(map[string]string{"file": file})
	}
	con.Print("written: %s", layout.ShortPath(file))
	con.Note("no sluice process serves this repo now: it is taken in once one does, and counts if the gate can take it then (`sluice run %s`, or `sluice watch add` and `sluice daemon`)", cmp.Or(d.run, "RUN"))
	return nil
}

// file is the decision as a file says it.
func (d decision) file() ([]byte, error) {
	say := map[string]any{}
	if d.text != "" {
		say["feedback"] = d.text
	}
	if d.round > 0 {
		say["round"] = d.round
	}
	if d.run != "" {
		say["run"] = d.run
	}
	if len(d.answer) > 0 {
		say["answer"] = d.answer
	}
	return json.Marshal(say)
}

// putSignal writes a file into the inbox whole, and never over one that waits there.
func putSignal(p *workspace.Workspace, run, name string, data []byte) (string, error) {
	dir := filepath.Join(p.Root, filepath.FromSlash(layout.SignalsDir))
	if run != "" && ids.ValidRun(run) {
		dir = filepath.Join(dir, run)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	err := atomicfile.WriteNew(file, data, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", fault.Failed("it has not been taken in yet; remove it if you have changed your mind", "%s is there already", layout.ShortPath(file))
	}
	return file, err
}
