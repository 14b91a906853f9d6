package evidence

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/journal"
	"sluice/tools/conform"
)

// journalOf is a state folder whose journal has the facts, a record each; its sums are right.
func journalOf(t *testing.T, facts ...engine.Fact) string {
	t.Helper()
	dir := t.TempDir()
	log, _, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, f := range facts {
		raw, err := engine.EncodeFact(f)
		if err != nil {
			t.Fatal(err)
		}
		e := journal.Entry{At: at.Add(time.Duration(i) * time.Second), Event: json.RawMessage(`{"kind":"x"}`), Facts: []json.RawMessage{raw}}
		if _, _, err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func started(run string) engine.Fact {
	f := engine.RunStarted{Workflow: "work", N: 1, Digest: "d", Source: "s"}
	return withRun(f, run)
}

// withRun is a fact of the run.
func withRun[F engine.Fact](f F, run string) engine.Fact {
	raw, err := engine.EncodeFact(f)
	if err != nil {
		panic(err)
	}
	out, err := engine.DecodeFact([]byte(strings.Replace(string(raw), `"run":""`, `"run":"`+run+`"`, 1)))
	if err != nil {
		panic(err)
	}
	return out
}

// TestRecord: of a journal one run is read, as it ended, also if it was forgotten since.
func TestRecord(t *testing.T) {
	conform.Rule(t, "12-evidence no more", `no more than the journal holds`)
	ended := withRun(engine.RunEnded{Phase: engine.RunFailed, Why: "no"}, "work-1")
	dir := journalOf(t, started("work-1"), withRun(engine.RunBegan{}, "work-1"), started("other-1"), ended, withRun(engine.RunForgotten{}, "work-1"))
	r, err := readRecord(dir, "work-1", approval.List{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := r.about(dir)
	if len(r.state.Runs) != 1 || got.Phase != engine.RunFailed || got.Why != "no" || r.journal.Records != 5 {
		t.Errorf("%+v, %d runs", got, len(r.state.Runs))
	}
	if got.Held || !strings.Contains(got.Unheld, "does not know any more") {
		t.Errorf("a run without a folder in the state: %+v", got)
	}
	mark := filepath.Join(dir, "attempts", "work-1")
	if err := os.MkdirAll(mark, 0o700); err != nil {
		t.Fatal(err)
	}
	if held, why := r.held(dir); !held {
		t.Errorf("a run with a folder and no mark: %s", why)
	}
	if err := os.WriteFile(filepath.Join(mark, "exposed"), []byte("{cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	if held, why := r.held(dir); held || why != "one of its launches ran outside the sandbox" {
		t.Errorf("a mark that cannot be read: %v %s", held, why)
	}
}

// TestRecordRefused: what a journal says that cannot be, is not attested, and ends no process.
func TestRecordRefused(t *testing.T) {
	conform.Rule(t, "12-evidence no more", `no more than the journal holds`)
	used := engine.SignatureUsed{Gate: "g", N: 1, Outcome: "pass", Nonce: "n", Proof: "forged", By: engine.Actor{Who: "ann", Trust: "signed"}}
	for _, c := range []struct {
		name  string
		facts []engine.Fact
		says  string
	}{
		{"another run", []engine.Fact{started("other-1")}, "the journal has no run work-1"},
		{"a run twice", []engine.Fact{started("work-1"), started("work-1")}, "record 2 of the journal contradicts those before it"},
		{"a round that never opened", []engine.Fact{started("work-1"), withRun(engine.RoundPassed{Gate: "g", N: 1}, "work-1")}, "record 2 of the journal contradicts"},
		{"a signed answer without its signature", []engine.Fact{started("work-1"), withRun(used, "work-1")}, "a signed answer on record does not hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := readRecord(journalOf(t, c.facts...), "work-1", approval.List{}, nil); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
		})
	}
	dir := journalOf(t, started("work-1"), withRun(engine.RunBegan{}, "work-1"))
	if _, err := readRecord(dir, "work-1", approval.List{}, []journal.Checkpoint{{Seq: 3, Sum: strings.Repeat("a", 64)}}); err == nil || !strings.Contains(err.Error(), "records were lost") {
		t.Error(err)
	}
	file := filepath.Join(dir, journal.FileName)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), `"workflow":"work"`, `"workflow":"lax!"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(dir, "work-1", approval.List{}, nil); err == nil || !strings.Contains(err.Error(), "the sum does not match") {
		t.Errorf("a changed journal: %v", err)
	}
}

// TestRewrittenJournal: an earlier statement of the daemon's names another record of the same number.
func TestRewrittenJournal(t *testing.T) {
	conform.Rule(t, "12-evidence cut", `"a cut journal"`)
	s := newSite(t)
	state := journalOf(t, started("work-1"), withRun(engine.RunBegan{}, "work-1"))
	own, err := approval.Store{State: state}.OwnKey()
	if err != nil {
		t.Fatal(err)
	}
	from := Source{Root: s.dir, State: state, ID: "r-1", Repo: s.repo, Tool: "t", Now: time.Unix(1e9, 0)}
	for _, c := range []struct {
		repo string
		n    int64
		says string
	}{
		{"r-1", 2, "is not the one of the checkpoint: the journal was replaced or rewritten"},
		{"r-1", 3, "records were lost"},
		{"r-2", 2, "made no commit"}, // of another repo
	} {
		st := s.statement(s.commit)
		st.Predicate.Journal = Journal{Repo: c.repo, Records: c.n, Sum: strings.Repeat("c", 64)}
		s.note(s.commit, sealed(t, st, own))
		if _, err := from.Attest(t.Context(), "work-1", nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("record %d of %s: %v, want %s", c.n, c.repo, err, c.says)
		}
	}
	st := s.statement(s.commit)
	st.Predicate.Journal = Journal{Repo: "r-1", Records: 2, Sum: strings.Repeat("c", 64)}
	s.note(s.commit, sealed(t, st, own))
	st.Predicate.Journal.Sum = strings.Repeat("d", 64)
	s.note(s.first, sealed(t, st, own))
	if _, err := from.Attest(t.Context(), "work-1", nil); err == nil || !strings.Contains(err.Error(), "the journal was cut or rewritten in between") {
		t.Error(err)
	}
}
