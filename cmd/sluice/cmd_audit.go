package main

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/audit"
	"sluice/internal/cluster"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/retention"
	"sluice/internal/workspace"
	"sluice/journal"
)

func auditCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "check the record of all decisions",
		Long: `The journal chains each line to the line before it. .workflow/audit/<workflow>.log is a JSON
extract to commit, one line per launch, signal, verdict, decision and end. Verify reads both files
completely.`,
		Example: "sluice audit verify\nsluice audit verify phase-4-search-index",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	cmd.AddCommand(verifyCommand(a), checkpointCommand(a))
	return cmd
}

func verifyCommand(a *app) *cobra.Command {
	var against []string
	var list string
	var servers cluster.Servers
	cmd := a.JSONFlag(&cobra.Command{
		Use:   "verify [WORKFLOW]",
		Short: "check the chain, the audit files and checkpoints",
		Long: `Exits 1 and prints the first bad line if a line was changed, lost, duplicated or inserted. It can run
beside the daemon. Only a signed checkpoint reveals that the end was cut off or the journal
rewritten: --checkpoint note reads the git notes (refs/notes/sluice), or name a file.
--cluster reads the whole stream that keeps the journal too and prints the first record that differs.
It also lists work that went on without a gate's pass: by a route, on_fail or on_exhausted.`,
		Example: "sluice audit verify\nsluice audit verify --checkpoint note\nsluice audit verify --checkpoint " +
			"/mnt/safe/app.checkpoint --approvers /mnt/safe/allowed_signers",
		Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return auditVerify(cmd.Context(), a, args, against, list, servers)
		},
	})
	cmd.Flags().StringArrayVar(&against, "checkpoint", nil,
		"compare the journal with a checkpoint, `FILE|note`; repeatable")
	cmd.Flags().StringVar(&list, "approvers", "", "`FILE` of the keys that count, in place of the repo's own list")
	cmd.Flags().StringVar(&servers.URLs, "cluster", "", "compare the journal with its stream on the servers: `URL,URL,…`")
	serverFlags(cmd.Flags(), &servers)
	return cmd
}

func auditVerify(ctx context.Context, a *app, args, against []string, signers string, servers cluster.Servers) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	if err := recorded(p, "verify"); err != nil {
		return err
	}
	notes := func() (map[string][]byte, error) {
		repo, err := p.Open(ctx)
		if err != nil {
			return nil, err
		}
		defer repo.Close()
		return repo.Notes(ctx, audit.NotesName)
	}
	list, ok, err := audit.Repo{Root: p.Root, State: p.State, ID: p.ID, Notes: notes}.Verify(args, against, signers)
	if err == nil && ok && servers.URLs != "" { // a broken file is compared with nothing
		var got cluster.Compared
		got, err = servers.Compare(ctx, p.State)
		ok = got.Differs == 0
		list = append(list, audit.Checked{What: "stream " + got.Stream, OK: ok, Lines: got.Records, Why: got.Why,
			Differs: got.Differs})
	}
	if err != nil {
		return err
	}
	return audit.Print(&a.Console, list, !ok)
}

func journalCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "journal", Short: "export the whole record, or repair a damaged one",
		Long: `The journal has every fact. The audit files have one line for each launch, signal, verdict, decision
and end. A last line that a crash tore is repaired automatically. No process serves a repo with any
other damage until a person repairs it.`,
		Example: "sluice journal export phase-4-search-index\nsluice journal repair --to 17",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	var to int64
	repair := a.JSONFlag(&cobra.Command{
		Use: "repair --to N", Short: "cut the journal back to its line N",
		Long: `Moves everything after line N into a file beside the journal. The decisions in those lines no longer
count, so read them first. Asks before it changes anything. Runs that began in those lines lose
their agents, their files are put aside, and their numbers are used again.`,
		Example: "sluice journal repair --to 17\nsluice journal repair --to 17 --yes",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("to") {
				return fault.Misused("`sluice audit verify` names the last valid line", "sluice journal repair: --to N is missing")
			}
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			return retention.Repair(cmd.Context(), &a.Console, p, to)
		},
	})
	repair.Flags().Int64Var(&to, "to", 0, "the last line to keep: `N` (0: none)")
	export := &cobra.Command{
		Use: "export [WORKFLOW]", Short: "print every fact of a workflow's runs, or of all",
		Long: `Prints one JSON object per line, in the form of the audit files: seq and n (the record's number and
the fact's place in it), at, fact, sum (of the record). It can run beside the daemon.`,
		Example: "sluice journal export > all.jsonl\nsluice journal export phase-4-search-index",
		Args:    console.Between(0, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return exportJournal(cmd.Context(), a, args) },
	}
	cmd.AddCommand(export, repair)
	return cmd
}

// recorded returns an error if a repo has no journal, with what could be done to it.
func recorded(p *workspace.Workspace, what string) error {
	is, err := journal.Exists(p.State)
	if err == nil && !is {
		err = fault.Failed("`sluice run WORKFLOW` starts a first run", "%s: no run yet, so there is nothing to %s",
			p.Root, what)
	}
	return err
}

func exportJournal(ctx context.Context, a *app, args []string) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	if err := recorded(p, "export"); err != nil {
		return err
	}
	keep := func(journal.Record, int) bool { return true }
	if len(args) > 0 {
		keep = daemon.KeepWorkflow(args[0])
	}
	out := bufio.NewWriter(a.Out)
	return errors.Join(journal.WriteLines(out, p.State, keep, journal.Options{}), out.Flush())
}
