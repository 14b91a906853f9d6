package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/audit"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/tree"
	"sluice/journal"
)

// NotesName is the ref below refs/notes/ that statements are kept under.
const NotesName = "sluice-gates"

// FileName is the statement's file in the folder of a run.
const FileName = "evidence.intoto.jsonl"

// Source is a repo whose runs are attested.
type Source struct {
	Root, State, ID string
	Repo            *git.Repo
	Tool            string // name and version of who attests
	Now             time.Time
}

// Attest makes the statement about a run: what the journal holds of it, and the commits that have
// its work. named are further commits that a person says have it. An earlier statement or checkpoint
// of this repo that the journal contradicts is an error, as is a signed answer that does not hold.
func (s Source) Attest(ctx context.Context, run string, named []string) (*Statement, error) {
	list, err := approval.Store{State: s.State}.Load()
	if err != nil {
		return nil, err
	}
	points, err := s.points(ctx, list)
	if err != nil {
		return nil, err
	}
	r, err := readRecord(s.State, run, list, points)
	if err != nil {
		return nil, err
	}
	state := r.state.Runs[run]
	switch {
	case state.Child != nil:
		return nil, fault.Failed("sluice attest "+state.Child.Parent, "%s is a part of %s", run, state.Child.Parent)
	case state.Stubbed():
		return nil, fault.Failed("`sluice run "+state.Workflow+"`", "%s is a run with stubs: nothing in it was judged", run)
	case s.Repo.Plain():
		return nil, fault.Failed("make it a git repository", "%s: there is no commit to attest", s.Root)
	}
	m, err := workOf(ctx, s.Repo, r)
	if err != nil {
		return nil, err
	}
	if err := m.find(ctx, named); err != nil {
		return nil, err
	}
	out := &Statement{Type: StatementType, PredicateType: PredicateType, Subject: m.subjects}
	p := &out.Predicate
	p.Run, p.Work = r.about(s.State), m.work
	if p.Gates, err = r.gates(judgedIn(ctx, s.Repo)); err != nil {
		return nil, err
	}
	p.Journal = Journal{Repo: s.ID, ID: journal.IDIn(s.State), Records: r.journal.Records, Sum: r.journal.LastSum}
	p.Made = Made{At: s.Now.UTC(), Tool: s.Tool}
	return out, out.check()
}

// about is the run as the journal has it.
func (r *record) about(state string) Run {
	run := r.state.Runs[r.run]
	out := Run{ID: run.ID, Workflow: run.Workflow, Spec: run.Digest, File: run.File, Phase: run.Phase,
		Why: text.Message(run.EndWhy), Started: run.Requested, Ended: run.Ended}
	out.Held, out.Unheld = r.held(state)
	return out
}

// judgedIn returns what reads the commit in a round's digest, with its tree. A commit that is gone
// has no tree, and so proves nothing of another.
func judgedIn(ctx context.Context, repo *git.Repo) func(digest string) Digest {
	return func(digest string) Digest {
		d := Digest{Commit: tree.CommitIn(digest)}
		if d.Commit != "" {
			d.Tree, _ = repo.TreeOf(ctx, d.Commit)
		}
		return d
	}
}

// points are the records that earlier statements and checkpoints name.
func (s Source) points(ctx context.Context, list approval.List) ([]journal.Checkpoint, error) {
	known := audit.Repo{Root: s.Root, State: s.State, ID: s.ID,
		Notes: func() (map[string][]byte, error) { return s.Repo.Notes(ctx, audit.NotesName) }}
	points, err := known.Points()
	if err != nil {
		return nil, err
	}
	own, err := approval.Store{State: s.State}.OwnKey()
	if err != nil {
		return nil, err
	}
	own.Names = []string{"daemon"}
	list.Signers = append(list.Signers, own.Signer)
	sums := map[int64]string{}
	for _, p := range points {
		sums[p.Seq] = p.Sum
	}
	all := func(string) bool { return true }
	err = git.ReadNotes(ctx, s.Repo, NotesName, all, func(_ string, note []byte, tooLong error) error {
		envelopes, err := split(note)
		if err != nil || tooLong != nil {
			return nil // not ours: verify reports it
		}
		for _, e := range envelopes {
			st, _, err := e.open(list)
			if err != nil || st.Predicate.Journal.Repo != s.ID {
				continue
			}
			j := st.Predicate.Journal
			if sum, there := sums[j.Records]; there && sum != j.Sum {
				return fault.Failed("sluice audit verify --checkpoint note", "an earlier statement or checkpoint has another "+
					"record %d than one of the same number: the journal was cut or rewritten in between", j.Records)
			} else if !there {
				sums[j.Records] = j.Sum
				points = append(points, journal.Checkpoint{Seq: j.Records, Sum: j.Sum})
			}
		}
		return nil
	})
	return points, err
}

// Keep writes the envelope as a note on each commit of the statement, in place of an earlier one
// about the same run, and into the run's folder. It returns the file.
func (s Source) Keep(ctx context.Context, st *Statement, envelope []byte) (file string, err error) {
	var commits []string
	for _, sub := range st.Subject {
		commits = append(commits, sub.Digest.Commit)
	}
	edit := func(before []byte) ([]byte, error) { return replaced(before, envelope, st) }
	if err := git.EditNotes(ctx, s.Repo, NotesName, "evidence of "+st.Predicate.Run.ID+"\n", commits, edit); err != nil {
		return "", fmt.Errorf("notes in refs/notes/%s: %w", NotesName, err)
	}
	dir := filepath.Join(s.Root, filepath.FromSlash(layout.RunsDir), st.Predicate.Run.ID)
	file = filepath.Join(dir, FileName)
	if err := atomicfile.MkdirBelow(s.Root, dir, 0o755); err != nil {
		return "", err
	}
	return file, atomicfile.Write(file, envelope, 0o644)
}

// replaced returns a note with the envelope in place of an earlier one about the same run.
func replaced(before, envelope []byte, st *Statement) ([]byte, error) {
	foreign := func(err error) ([]byte, error) {
		return nil, fault.Failed("look at it, then remove it: git notes --ref "+NotesName+" remove COMMIT",
			"the commit has a note that is none of ours: %v", err)
	}
	old, err := split(before)
	if err != nil {
		return foreign(err)
	}
	var out []byte
	for _, e := range old {
		was, err := ParseStatement(e.Payload)
		if err != nil {
			return foreign(err)
		}
		line, err := json.Marshal(e) // as split has found it
		if err != nil {
			return nil, err
		}
		a, b := was.Predicate, st.Predicate
		if a.Run.ID != b.Run.ID || a.Journal.Repo != b.Journal.Repo {
			out = append(append(out, line...), '\n')
		}
	}
	if len(old) >= maxInNote {
		return nil, errors.New("the commit has too many statements in its note")
	}
	return append(out, envelope...), nil
}

// Finished reports whether the run has completed, the only end that a policy takes by itself.
func (r Run) Finished() bool { return r.Phase == engine.RunCompleted }
