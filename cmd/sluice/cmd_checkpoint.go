package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sluice/internal/approval"
	"sluice/internal/audit"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/workspace"
	"sluice/journal"
)

func checkpointCommand(a *app) *cobra.Command {
	var key, out string
	cmd := a.JSONFlag(&cobra.Command{
		Use:   "checkpoint",
		Short: "sign the current end of the journal, to be kept elsewhere",
		Long: `Signs the number, sum and time of the journal's last record with your key. The checkpoint becomes a
git note on the newest commit (refs/notes/sluice), or a file with --out. Keep it where no agent
writes: push the notes (git push origin refs/notes/sluice), or name a file on another disk.
sluice audit verify --checkpoint then reports a journal that was cut or rewritten.`,
		Example: "sluice audit checkpoint && git push origin refs/notes/sluice\nsluice audit checkpoint --out " +
			"/mnt/safe/app.checkpoint",
		Args: console.Between(0, 0),
		RunE: inRepo(a.keysPlace, func(ctx context.Context, p *workspace.Workspace, _ []string) error {
			return signCheckpoint(ctx, &a.Console, p, key, out)
		}),
	})
	cmd.Flags().StringVar(&key, "key", "", "sign with the key in `FILE` (default: a key of the list on this machine)")
	cmd.Flags().StringVarP(&out, "out", "o", "", "write it to `FILE` instead of a note")
	return cmd
}

func signCheckpoint(ctx context.Context, con *console.Console, p *workspace.Workspace, keyFile, out string) error {
	if err := recorded(p, "sign"); err != nil {
		return err
	}
	rep, err := journal.Verify(p.State, journal.Options{})
	if err != nil {
		return err // nobody signs what is broken
	}
	if rep.Records == 0 {
		return fault.Failed("`sluice run WORKFLOW` starts a first run",
			"%s: the journal is empty, so there is nothing to sign", p.Root)
	}
	key, err := decide.Keyring(con).Find(ctx, approval.Store{State: p.State}, keyFile, nil)
	if err != nil {
		return err
	}
	text := approval.Checkpoint{Repo: p.ID, Seq: rep.Records, Sum: rep.LastSum, At: con.Now()}.Text()
	con.Note("signing with %s: record %d of the journal", key.Says, rep.Records)
	whole, err := decide.Keyring(con).Sign(ctx, key, text, approval.AuditNamespace)
	if err != nil {
		return err
	}
	if out != "" && con.JSON {
		if err := decide.WriteSigned(con, out, whole, "keep it where no agent writes"); err != nil || out == "-" {
			return err
		}
		return con.Document(map[string]any{"record": rep.Records, "sum": rep.LastSum, "file": out})
	}
	if out != "" {
		return decide.WriteSigned(con, out, whole,
			"keep it where no agent writes; `sluice audit verify --checkpoint "+clean(out)+"` compares the journal with it")
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	commit, err := repo.AddNote(ctx, audit.NotesName, whole)
	if errors.Is(err, git.ErrNoCommit) {
		return fault.Failed("make a first commit, or write it to a file: --out FILE", "there is no commit to put the note on")
	}
	if err != nil {
		return err
	}
	if con.JSON {
		return con.Document(map[string]any{"record": rep.Records, "sum": rep.LastSum, "commit": commit,
			"ref": "refs/notes/" + audit.NotesName})
	}
	con.Print("record %d is signed, in a note on %.10s", rep.Records, commit)
	con.Note("an agent in this repo can remove the note, but not forge one: git push origin refs/notes/%s",
		audit.NotesName)
	return nil
}
