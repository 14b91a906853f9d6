package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/journal"
	"sluice/specs"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "check the record of what was decided",
		Long: `The journal chains each line to the one before it. .workflow/audit/<workflow>.log is a readable
part of it for committing: a line for each launch, word, verdict, decision and end. Verify reads
both from the first line to the last.`,
		Example: "sluice audit verify\nsluice audit verify phase-4-search-index",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	cmd.AddCommand(a.verifyCommand(), a.checkpointCommand())
	return cmd
}

func (a *app) verifyCommand() *cobra.Command {
	var against []string
	var list string
	cmd := a.JSONFlag(&cobra.Command{
		Use:   "verify [WORKFLOW]",
		Short: "check the chain, the exports against it, and checkpoints",
		Long: `Exit 1 and the line that breaks it, if anything was changed, lost, doubled or put in. It may run
beside the daemon. A lost end, or a journal written anew, can only be found against a signed
checkpoint: --checkpoint note takes those of the git notes (refs/notes/sluice), or name a file.
Names too what went on though a gate had not passed it: by a route, on_fail or on_exhausted.`,
		Example: "sluice audit verify\nsluice audit verify --checkpoint note\nsluice audit verify --checkpoint /mnt/safe/app.checkpoint --approvers /mnt/safe/allowed_signers",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.auditVerify(cmd.Context(), args, against, list)
		},
	})
	cmd.Flags().StringArrayVar(&against, "checkpoint", nil, "hold the journal to a checkpoint: `FILE|note`; may be given again")
	cmd.Flags().StringVar(&list, "approvers", "", "whose signature counts: `FILE`, kept elsewhere, in place of the repo's own list")
	return cmd
}

// audited is one thing that was checked.
type audited struct {
	What  string `json:"what"`
	OK    bool   `json:"ok"`
	Lines int64  `json:"lines"`
	Why   string `json:"why,omitempty"`
	Sum   string `json:"sum,omitempty"`

	Point  int64  `json:"record,omitempty"` // of a checkpoint
	Signed string `json:"signed,omitempty"` // by whom, and when

	Answers int `json:"signed_answers,omitempty"` // whose signatures were looked at

	Unpassed     []unpassed `json:"let_through,omitempty"`      // what the record says went on without a pass
	MoreUnpassed int        `json:"let_through_more,omitempty"` // older ones that are left out
}

// unpassed is a round that let work go on without a pass, as the record has it.
type unpassed struct {
	Run      string        `json:"run"`
	Gate     string        `json:"gate"`
	Round    int           `json:"round"`
	Outcome  string        `json:"outcome"`
	Failures int           `json:"failures"`
	Route    string        `json:"route,omitempty"` // it took, or used up, the route of this name
	Times    int           `json:"times,omitempty"` // how often by then, of one that leads back
	To       string        `json:"to,omitempty"`    // absent: where a pass leads
	By       *engine.Actor `json:"by,omitempty"`
}

// seesUnpassed is keep, and it notes what of that which is kept went on without a pass.
func (l *audited) seesUnpassed(keep journal.Keep) journal.Keep {
	return func(rec journal.Record, n int) bool {
		if !keep(rec, n) {
			return false
		}
		if !bytes.Contains(rec.Facts[n], []byte(`"let_through"`)) {
			return true
		}
		f, err := engine.DecodeFact(rec.Facts[n])
		if err != nil {
			return true
		}
		var u unpassed
		switch f := f.(type) {
		case engine.RoundFailed:
			u = unpassed{Run: f.RunID(), Gate: f.Gate, Round: f.N, Outcome: f.Outcome, Failures: f.LetThrough, To: f.To, By: f.By}
		case engine.RoundRouted:
			u = unpassed{Run: f.RunID(), Gate: f.Gate, Round: f.N, Outcome: f.Outcome, Route: f.Outcome, Times: f.Times, Failures: f.LetThrough - 1, To: f.To, By: f.By}
		case engine.RoundPassed:
			u = unpassed{Run: f.RunID(), Gate: f.Gate, Round: f.N, Outcome: "on_exhausted", Failures: f.LetThrough}
			if f.Route != "" {
				u.Route, u.Times, u.Failures = f.Route, f.LetThrough, 0
			}
		}
		if u.Failures > 0 || u.Route != "" {
			l.Unpassed = append(l.Unpassed, u)
		}
		if over := len(l.Unpassed) - render.UnpassedShown; over > 0 {
			l.Unpassed, l.MoreUnpassed = l.Unpassed[over:], l.MoreUnpassed+over
		}
		return true
	}
}

func (a *app) auditVerify(ctx context.Context, args, against []string, signers string) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	if !layout.IsFile(filepath.Join(p.state, journal.FileName)) {
		return fault.Failed("`sluice run WORKFLOW` starts a first run", "%s: nothing ever ran here, so there is nothing to verify", p.root)
	}
	points, list, err := a.checkpoints(ctx, p, against, signers)
	if err != nil {
		return err
	}
	known, err := approval.Store{State: p.state}.Load()
	if err != nil {
		return err
	}
	unsigned := slices.ContainsFunc(list, func(l audited) bool { return !l.OK })
	rep, err := journal.Verify(p.state, journal.Options{}, points...)
	list = append([]audited{{What: "journal", OK: err == nil, Lines: rep.Records, Sum: rep.LastSum, Why: errText(err)}}, list...)
	bad := err != nil
	flows := args
	if len(args) == 0 {
		files, err := specs.Find(p.root)
		if err != nil {
			return err
		}
		for _, f := range files {
			flows = append(flows, workflowOf(f))
		}
	}
	for _, w := range flows {
		if bad {
			break // the exports are compared with the journal
		}
		file := filepath.Join(p.root, filepath.FromSlash(daemon.ExportName(w)))
		if !layout.IsFile(file) {
			if len(args) > 0 {
				return fault.Failed("it is written when a run of it starts", "%s: no audit of this workflow", daemon.ExportName(clean(w)))
			}
			continue
		}
		l := audited{What: daemon.ExportName(w)}
		by := signatures{list: known, answer: map[string]string{}}
		x, err := journal.VerifyExport(file, p.state, by.sees(l.seesUnpassed(daemon.KeepAudit(w))), journal.Options{})
		var f *journal.Fault
		behind := errors.As(err, &f) && f.Kind == journal.FaultBehind
		l.OK, l.Lines, l.Why, l.Answers = err == nil || behind, x.Lines, errText(err), by.n
		if l.OK && by.why != "" {
			l.OK, l.Why, unsigned = false, by.why, true
		}
		list = append(list, l)
		bad = bad || err != nil && !behind
	}
	return a.printAudit(list, bad || unsigned)
}

// words say what went on without a pass.
func (u unpassed) words() string {
	return render.Unpassed{Where: u.Run + " " + render.Round(u.Gate, u.Round), Outcome: u.Outcome, Failures: u.Failures, Route: u.Route, Times: u.Times, To: u.To}.String() + render.Who(u.By)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (a *app) printAudit(list []audited, bad bool) error {
	if a.JSON {
		if err := a.Document(map[string]any{"ok": !bad, "checked": list}); err != nil {
			return err
		}
	} else {
		for _, l := range list {
			word, style := "ok", console.Green
			if !l.OK {
				word, style = "BROKEN", console.Red
			}
			s := fmt.Sprintf("%s  %s: %s", a.Paint(style, word), l.What, plural(int(l.Lines), "line"))
			if l.Signed != "" || l.Point > 0 {
				s = fmt.Sprintf("%s  %s: record %d, %s", a.Paint(style, word), clean(l.What), l.Point, l.Signed)
			}
			if l.Sum != "" {
				s += ", last sum " + l.Sum
			}
			a.Print("%s", s)
			if l.Why != "" {
				a.Print("    %s", oneLine(l.Why))
			}
			if l.MoreUnpassed > 0 {
				a.Print("    %s", text.GoneOnCount(l.MoreUnpassed)+" earlier")
			}
			for _, u := range l.Unpassed {
				a.Print("    %s", a.Paint(console.Yellow, clean(u.words())))
			}
		}
	}
	if bad {
		return fault.Exit(fault.ExitFailed)
	}
	return nil
}

func (a *app) journalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "journal", Short: "export the whole record, or repair a damaged one",
		Long:    "The journal has every fact, the audit files one line for each launch, word, verdict, decision and\nend. A journal whose last line was torn by a crash repairs itself. Anything else is left for a\nperson to look at: no process serves the repo until it is repaired.",
		Example: "sluice journal export phase-4-search-index\nsluice journal repair --to 17",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	var to int64
	repair := a.JSONFlag(&cobra.Command{
		Use: "repair --to N", Short: "cut the journal back to its line N",
		Long: `Takes off everything after line N and keeps it aside, beside the journal. What was decided in
those lines is forgotten: look at them first. Asks before it does it. Of runs that began in
those lines the agents are ended and the files put aside: their numbers are given again.`,
		Example: "sluice journal repair --to 17\nsluice journal repair --to 17 --yes",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("to") {
				return fault.Misused("`sluice audit verify` names the last good line", "sluice journal repair: --to N is missing")
			}
			return a.repair(cmd.Context(), to)
		},
	})
	repair.Flags().Int64Var(&to, "to", 0, "the last line that stays: `N` (0: none)")
	export := &cobra.Command{
		Use: "export [WORKFLOW]", Short: "print every fact of a workflow's runs, or of all",
		Long: `One JSON object a line, in the form of the audit files: seq and n (the record in the journal, and
which of its facts), at, fact, sum (of the record). It may run beside the daemon.`,
		Example: "sluice journal export > all.jsonl\nsluice journal export phase-4-search-index",
		Args:    console.Between(0, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.exportJournal(cmd.Context(), args) },
	}
	cmd.AddCommand(export, repair)
	return cmd
}

func (a *app) exportJournal(ctx context.Context, args []string) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	if !layout.IsFile(filepath.Join(p.state, journal.FileName)) {
		return fault.Failed("`sluice run WORKFLOW` starts a first run", "%s: nothing ever ran here, so there is nothing to export", p.root)
	}
	keep := func(journal.Record, int) bool { return true }
	if len(args) > 0 {
		keep = daemon.KeepWorkflow(args[0])
	}
	out := bufio.NewWriter(a.Out)
	return errors.Join(journal.WriteLines(out, p.state, keep, journal.Options{}), out.Flush())
}

func (a *app) repair(ctx context.Context, to int64) (err error) {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	if !layout.IsFile(filepath.Join(p.state, journal.FileName)) {
		return fault.Failed("`sluice ls` lists the runs", "%s: there is no journal", p.root)
	}
	lock, err := daemon.TakeLock(p.state)
	var held *daemon.Held
	if errors.As(err, &held) {
		return &fault.Error{Cause: err.Error(), Advice: "stop the process that serves the repo first", Code: fault.ExitServed, Err: err}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	rep, verr := journal.Verify(p.state, journal.Options{})
	a.Note("the journal has %s that are good", plural(int(rep.Records), "line"))
	if verr != nil {
		a.Note("%s", oneLine(verr.Error()))
	}
	if yes, err := a.Ask(fmt.Sprintf("Cut the journal of %s back to line %d?", p.root, to)); err != nil || !yes {
		return errors.Join(err, notDone(err))
	}
	done, err := journal.Repair(p.state, to, journal.Options{})
	if err != nil {
		return err
	}
	gone, err := a.forget(ctx, p)
	if err != nil {
		return fault.New("repair again", "the journal ends at line %d now; what was left of runs that it does not know any more could not be put aside: %w", done.Last, err)
	}
	if a.JSON {
		return a.Document(map[string]any{"last": done.Last, "cut_bytes": done.CutBytes, "kept_in": done.CutFile, "snapshots": orEmpty(done.Snapshots), "forgotten": orEmpty(gone)})
	}
	a.Print("the journal ends at line %d now; %d bytes were cut", done.Last, done.CutBytes)
	if done.CutFile != "" {
		a.Print("kept in %s", done.CutFile)
	}
	if len(gone) > 0 {
		a.Print("it does not know %s any more: their agents were ended, their files are in %s* beside the journal and in %s", strings.Join(gone, ", "), cutPrefix, runsDir)
	}
	return nil
}
