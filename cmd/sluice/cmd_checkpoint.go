package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/journal"
)

// notesName is the ref below refs/notes/ that checkpoints are kept under.
const notesName = "sluice"

// byNote is what --checkpoint takes for the git notes.
const byNote = "note"

// maxCheckpoints bounds a file of them.
const maxCheckpoints = 1 << 20

func (a *app) checkpointCommand() *cobra.Command {
	var key, out string
	cmd := a.JSONFlag(&cobra.Command{
		Use:   "checkpoint",
		Short: "sign how far the journal has come, and keep that elsewhere",
		Long: `Signs the number, sum and time of the journal's last record with your key, and puts it into a git
note on the newest commit (refs/notes/sluice), or with --out into a file. Keep it where no agent
writes: push the notes (git push origin refs/notes/sluice), or name a file on another disk. A journal
that is cut or written anew later does not hold it: sluice audit verify --checkpoint.`,
		Example: "sluice audit checkpoint && git push origin refs/notes/sluice\nsluice audit checkpoint --out /mnt/safe/app.checkpoint",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.keysPlace(cmd.Context())
			if err != nil {
				return err
			}
			return a.checkpoint(cmd.Context(), p, key, out)
		},
	})
	cmd.Flags().StringVar(&key, "key", "", "sign with the key in `FILE`; else one of the list's that is at hand")
	cmd.Flags().StringVarP(&out, "out", "o", "", "write it to `FILE`, and no note")
	return cmd
}

func (a *app) checkpoint(ctx context.Context, p *place, keyFile, out string) error {
	if !layout.IsFile(filepath.Join(p.state, journal.FileName)) {
		return fault.Failed("`sluice run WORKFLOW` starts a first run", "%s: nothing ever ran here, so there is nothing to sign", p.root)
	}
	rep, err := journal.Verify(p.state, journal.Options{})
	if err != nil {
		return err // nobody signs what is broken
	}
	if rep.Records == 0 {
		return fault.Failed("`sluice run WORKFLOW` starts a first run", "%s: the journal is empty, so there is nothing to sign", p.root)
	}
	key, err := a.keyring().Find(ctx, approval.Store{State: p.state}, keyFile, nil)
	if err != nil {
		return err
	}
	text := approval.Checkpoint{Repo: p.id, Seq: rep.Records, Sum: rep.LastSum, At: a.Now()}.Text()
	a.Note("signing with %s: record %d of the journal", key.Says, rep.Records)
	whole, err := a.keyring().Sign(ctx, key, text, approval.AuditNamespace)
	if err != nil {
		return err
	}
	if out != "" && a.JSON {
		if err := a.writeSigned(out, whole, "keep it where no agent writes"); err != nil || out == "-" {
			return err
		}
		return a.Document(map[string]any{"record": rep.Records, "sum": rep.LastSum, "file": out})
	}
	if out != "" {
		return a.writeSigned(out, whole, "keep it where no agent writes; `sluice audit verify --checkpoint "+clean(out)+"` holds the journal to it")
	}
	repo, err := p.repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	commit, err := repo.AddNote(ctx, notesName, whole)
	if errors.Is(err, git.ErrNoCommit) {
		return fault.Failed("make a first commit, or write it to a file: --out FILE", "there is no commit to put the note on")
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Document(map[string]any{"record": rep.Records, "sum": rep.LastSum, "commit": commit, "ref": "refs/notes/" + notesName})
	}
	a.Print("record %d is signed, in a note on %.10s", rep.Records, commit)
	a.Note("an agent in this repo can take the note away, though not forge one: git push origin refs/notes/%s", notesName)
	return nil
}

// checkpoints reads those that the journal is to be held to. One whose signature does not hold is told as broken: who could
// write the journal anew could have written it too.
func (a *app) checkpoints(ctx context.Context, p *place, against []string, signers string) (points []journal.Checkpoint, told []audited, err error) {
	if len(against) == 0 {
		return nil, nil, nil
	}
	list, err := approval.Store{State: p.state}.Load()
	if signers != "" {
		list = approval.List{}
		var data []byte
		if data, err = readAll(signers); err == nil {
			list.Signers, err = approval.ParseList(data)
		}
	}
	if err != nil {
		return nil, nil, fault.Failed("name a file in the form of OpenSSH's allowed_signers: --approvers FILE", "whose signature counts cannot be read: %v", err)
	}
	sums := map[int64]string{}
	for _, from := range against {
		texts, err := a.checkpointTexts(ctx, p, from)
		if err != nil {
			return nil, nil, err
		}
		for _, text := range texts {
			c, one := held(p, list, from, text)
			if other, twice := sums[c.Seq]; one.OK && twice && other != c.Sum {
				one.OK, one.Why = false, "another checkpoint of that record has another sum: the journal was written anew between the two"
			}
			if one.OK && sums[c.Seq] == "" {
				sums[c.Seq] = c.Sum
				points = append(points, journal.Checkpoint{Seq: c.Seq, Sum: c.Sum})
			}
			told = append(told, one)
		}
	}
	return points, told, nil
}

// held is a checkpoint whose signature holds, or why it does not.
func held(p *place, list approval.List, from string, signed []byte) (approval.Checkpoint, audited) {
	what := "checkpoint " + from
	text, by, err := list.Verify(signed, approval.AuditNamespace)
	if err != nil {
		return approval.Checkpoint{}, audited{What: what, Why: err.Error()}
	}
	c, err := approval.ParseCheckpoint(text)
	if err == nil && c.Repo != p.id {
		err = fmt.Errorf("it is of another repo (%s; this is %s)", c.Repo, p.id)
	}
	return c, audited{What: what, OK: err == nil, Why: errText(err), Point: c.Seq, Signed: "signed by " + by.Names[0] + " on " + c.At.Format(time.DateTime) + "Z"}
}

// checkpointTexts are the signed texts of a file, or of all notes.
func (a *app) checkpointTexts(ctx context.Context, p *place, from string) ([][]byte, error) {
	var all [][]byte
	if from == byNote {
		repo, err := p.repo(ctx)
		if err != nil {
			return nil, err
		}
		defer repo.Close()
		notes, err := repo.Notes(ctx, notesName)
		if err != nil {
			return nil, err
		}
		for _, commit := range slices.Sorted(maps.Keys(notes)) {
			all = append(all, approval.SplitAll(notes[commit])...)
		}
	} else {
		data, err := readAll(from)
		if err != nil {
			return nil, err
		}
		all = approval.SplitAll(data)
	}
	if len(all) == 0 { // a lost checkpoint must not look like a good one
		return nil, fault.Failed("`sluice audit checkpoint` makes one; fetch those of elsewhere: git fetch origin refs/notes/sluice:refs/notes/sluice", "no checkpoint in %s", clean(from))
	}
	return all, nil
}

// readAll reads a file of checkpoints or of keys.
func readAll(file string) ([]byte, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	data, _, err := atomicfile.OpenRegular(filepath.Dir(abs), filepath.Base(abs), maxCheckpoints)
	return data, err
}
