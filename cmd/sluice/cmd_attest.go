package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"sluice/internal/approval"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/evidence"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/workspace"
)

// attestOptions are the options of `sluice attest`.
type attestOptions struct {
	key     string
	person  bool
	commits []string
}

func attestCommand(a *app) *cobra.Command {
	var o attestOptions
	cmd := a.JSONFlag(&cobra.Command{
		Use:   "attest RUN",
		Short: "sign what the gates of a run decided, for those who have only its commits",
		Long: `Writes an in-toto statement about the run, signed as DSSE: its spec, its gates with all rounds, who
decided at which trust, and the commits that have its work. It becomes a git note on these commits
(refs/notes/sluice-gates) and a file in the run's folder. It says no more than the journal holds, and
is refused if the journal is damaged or shorter than an earlier statement says. The daemon's key signs
(sluice keys daemon), or yours with --person or --key. sluice verify reads the notes.`,
		Example: "sluice attest last && git push origin refs/notes/sluice-gates\n" +
			"sluice attest work-3 --commit main --person",
		Args: console.Between(1, 1),
		RunE: inRepo(a.keysPlace, func(ctx context.Context, p *workspace.Workspace, args []string) error {
			return attest(ctx, &a.Console, p, args[0], o)
		}),
	})
	cmd.Flags().StringVar(&o.key, "key", "", "sign with the key in `FILE`")
	cmd.Flags().BoolVar(&o.person, "person", false, "sign with a key of the list (sluice keys ls) on this machine")
	cmd.Flags().StringArrayVar(&o.commits, "commit", nil,
		"attest this `COMMIT` too, if it has the run's work and nothing else; repeatable")
	return cmd
}

func attest(ctx context.Context, con *console.Console, p *workspace.Workspace, name string, o attestOptions) error {
	v, _, err := p.View(ctx)
	if err != nil {
		return err
	}
	run, err := workspace.RunNamed(ctx, v, name)
	v.Close()
	if err != nil {
		return err
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	var named []string
	for _, rev := range o.commits {
		commit, err := git.Resolve(ctx, repo, rev)
		if err != nil {
			return err
		}
		named = append(named, commit)
	}
	from := evidence.Source{Root: p.Root, State: p.State, ID: p.ID, Repo: repo, Tool: "sluice " + version,
		Now: con.Now()}
	st, err := from.Attest(ctx, run, named)
	if err != nil {
		return err
	}
	key := ""
	line, err := evidence.Seal(st, func(message []byte) (sig []byte, by string, err error) {
		sig, key, err = attestSignature(ctx, con, p, o, message)
		return sig, key, err
	})
	if err != nil {
		return err
	}
	file, err := from.Keep(ctx, st, line)
	if err != nil {
		return err
	}
	return tellAttested(con, st, key, layout.ShortPath(file))
}

// attestSignature signs with the daemon's key, or with a person's.
func attestSignature(ctx context.Context, con *console.Console, p *workspace.Workspace, o attestOptions,
	message []byte) (sig []byte, by string, err error) {
	store := approval.Store{State: p.State}
	if !o.person && o.key == "" {
		own, err := store.OwnKey()
		if err != nil {
			return nil, "", err
		}
		return own.SignBare(message), own.Key, nil
	}
	ring := decide.Keyring(con)
	key, err := ring.Find(ctx, store, o.key, nil)
	if err != nil {
		return nil, "", err
	}
	con.Note("signing with %s", key.Says)
	return ring.SignDetached(ctx, key, message, approval.EvidenceNamespace)
}

func tellAttested(con *console.Console, st *evidence.Statement, key, file string) error {
	if con.JSON {
		return con.Document(map[string]any{"statement": st, "key": key, "file": file,
			"ref": "refs/notes/" + evidence.NotesName})
	}
	run := st.Predicate.Run
	con.Print("%s is attested, signed by %s", run.ID, key)
	for _, s := range st.Subject {
		con.Print("  %.12s %s", s.Digest.Commit, s.Annotations.How)
	}
	con.Print("  %s", clean(filepath.ToSlash(file)))
	if !run.Finished() {
		con.Note("%s", con.PaintErr(console.Yellow, fmt.Sprintf("%s has not completed: the statement says that it is %s",
			run.ID, clean(run.Phase))))
	}
	if !run.Held {
		con.Note("%s", con.PaintErr(console.Yellow, "not held, as the statement says: "+oneLine(run.Unheld)))
	}
	con.Note("git push origin refs/notes/%s", evidence.NotesName)
	return nil
}
