package evidence

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/audit"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/journal"
)

// record is what the journal holds of a run and the runs of its tasks.
type record struct {
	run     string
	state   *engine.State
	journal journal.Report
	proofs  map[answerAt]string // of signed answers that counted
	look    func(engine.Fact) string
	why     string // of the first signed answer that does not hold
}

// answerAt is the round that an answer was for.
type answerAt struct {
	run, gate string
	n         int
}

// readRecord reads the whole journal, compares it with the points, and folds the facts of one run.
// A damaged journal is an error: nobody signs what is broken.
func readRecord(state, run string, list approval.List, points []journal.Checkpoint) (*record, error) {
	rep, err := journal.Verify(state, journal.Options{}, points...)
	if err != nil {
		return nil, err
	}
	r := &record{run: run, state: engine.NewState(), journal: rep, proofs: map[answerAt]string{},
		look: audit.SignedAnswers(list)}
	var broken error
	keep := func(rec journal.Record, n int) bool {
		if broken == nil && rec.Seq <= rep.Records {
			broken = r.see(rec, n)
		}
		return false
	}
	if err := journal.WriteLines(io.Discard, state, keep, journal.Options{}); err != nil {
		return nil, err
	}
	if broken != nil {
		return nil, broken
	}
	if r.state.Runs[run] == nil {
		return nil, fault.Failed("`sluice ls` names the runs", "the journal has no run %s", text.Line(run))
	}
	if r.why != "" {
		return nil, fault.Failed("look at it: sluice audit verify", "a signed answer on record does not hold: %s",
			text.Message(r.why))
	}
	return r, nil
}

// see folds a fact of the run, of a task's run of it, or about settings. The fold panics on facts
// that contradict the state; in a journal whose sums are right they were put there.
func (r *record) see(rec journal.Record, n int) (err error) {
	raw := rec.Facts[n]
	if !bytes.Contains(raw, []byte(r.run)) && !bytes.Contains(raw, []byte("settings_taken")) {
		return nil
	}
	f, err := engine.DecodeFact(raw)
	if err != nil {
		return fault.Failed("sluice audit verify", "record %d of the journal cannot be read: %v", rec.Seq, err)
	}
	if !r.wants(f) {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fault.Failed("sluice audit verify", "record %d of the journal contradicts those before it: %v", rec.Seq, p)
		}
	}()
	if why := r.look(f); why != "" && r.why == "" {
		r.why = why
	}
	if s, ok := f.(engine.SignatureUsed); ok {
		r.proofs[answerAt{s.RunID(), s.Gate, s.N}] = s.Proof
	}
	r.state.Apply(rec.At, f)
	return nil
}

// wants reports whether a fact takes part in what the run is. An ended run that was forgotten counts
// as it was.
func (r *record) wants(f engine.Fact) bool {
	switch f := f.(type) {
	case engine.SettingsTaken:
		return true
	case engine.RunForgotten:
		return false
	case engine.RunStarted:
		return f.RunID() == r.run || f.Child != nil && r.state.Runs[f.Child.Parent] != nil
	}
	return f.RunID() != "" && r.state.Runs[f.RunID()] != nil
}

// newest is a round with the gate it is of.
type newest struct {
	run, gate string
	*engine.Round
}

// rounds returns the newest round of each gate, by when it was opened.
func (r *record) rounds() (out []newest) {
	for id, run := range r.state.Runs {
		for gate, qs := range run.Rounds {
			if len(qs) > 0 {
				out = append(out, newest{id, gate, qs[len(qs)-1]})
			}
		}
	}
	slices.SortFunc(out, func(a, b newest) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// held reports whether a sandbox held every launch of the run and of its tasks' runs. Each has a
// folder in the state, with a mark if one was not held; without the folder it is not known.
func (r *record) held(state string) (held bool, why string) {
	for id := range r.state.Runs {
		l := layout.Layout{State: state}
		if _, err := os.Stat(filepath.Dir(l.ExposedFile(id))); err != nil {
			return false, "the state folder does not know any more how its launches were held"
		}
		if why, exposed := l.Exposed(id); exposed {
			return false, text.Message(why)
		}
	}
	return true, ""
}

// gates are all rounds of the run, a gate at a time, by when each was first opened.
func (r *record) gates(judged func(digest string) Digest) ([]Gate, error) {
	type opened struct {
		seq int64
		Gate
	}
	var all []opened
	for id, run := range r.state.Runs {
		for gate, qs := range run.Rounds {
			if len(qs) == 0 {
				continue
			}
			g := opened{qs[0].Seq, Gate{ID: gate, Step: qs[0].Step, Older: max(len(qs)-maxRounds, 0)}}
			if id != r.run {
				g.Run = id
			}
			for _, q := range qs[g.Older:] {
				g.Rounds = append(g.Rounds, roundOf(q, judged))
			}
			last := &g.Rounds[len(g.Rounds)-1]
			last.Proof = r.proofs[answerAt{id, gate, last.N}]
			all = append(all, g)
		}
	}
	if len(all) > maxGates {
		return nil, fmt.Errorf("%s has %d gates with its tasks, and a statement takes %d", r.run, len(all), maxGates)
	}
	slices.SortFunc(all, func(a, b opened) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]Gate, len(all))
	for i, g := range all {
		out[i] = g.Gate
	}
	return out, nil
}

func roundOf(q *engine.Round, judged func(digest string) Digest) Round {
	out := Round{N: q.N, State: q.State, Outcome: q.Outcome, Level: q.Level, By: q.ByKind, At: q.Ended,
		LetThrough: q.LetThrough, Reviewed: q.Digest, Judged: judged(q.Digest)}
	if q.By != nil {
		out.Who, out.Trust, out.Key = text.Line(q.By.Who), cmp.Or(q.By.Trust, engine.TrustFile), q.By.Key
	}
	return out
}
