package engine

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// TestOldFactsReplay replays journals that earlier versions of the engine wrote
// (testdata/old-facts.jsonl.gz: histories of three commits from before the table of moves, one fact
// per line): old decisions are still no contradiction.
func TestOldFactsReplay(t *testing.T) {
	conform.Rule(t, "3-engine folded", "journals of earlier versions are read to their states")
	file, err := os.Open("testdata/old-facts.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	st, from, facts, journals := NewState(), "", 0, 0
	defer func() {
		if said := recover(); said != nil {
			t.Errorf("%s, fact %d: %v", from, facts, said)
		}
	}()
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, begins := strings.CutPrefix(lines.Text(), "# "); begins {
			st, from = NewState(), name
			journals++
			continue
		}
		stamp, raw, _ := strings.Cut(lines.Text(), " ")
		at, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		f, err := DecodeFact([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		st.Apply(time.Unix(0, at).UTC(), f)
		facts++
	}
	if err := lines.Err(); err != nil || journals < 10 || facts < 2000 {
		t.Errorf("%d facts of %d journals were read: %v", facts, journals, err)
	}
}

// TestOldWords: what older releases recorded in words alone is read as this one records it, from a fact and from a snapshot.
func TestOldWords(t *testing.T) {
	conform.Rule(t, "3-engine folded", "journals of earlier versions are read to their states")
	for raw, want := range map[string]Fact{
		`{"kind":"run_ended","run":"x-1","phase":"aborted","why":"limit:max_steps the limit max_steps is hit"}`: RunEnded{of: Of("x-1"), Phase: RunAborted,
			Why: "limit:max_steps the limit max_steps is hit", Limit: "max_steps"},
		`{"kind":"run_ended","run":"x-1","phase":"failed","why":"ga: limit:max_steps"}`: RunEnded{of: Of("x-1"), Phase: RunFailed, Why: "ga: limit:max_steps"},
		`{"kind":"human_asked","run":"x-1","gate":"ga","n":1,"why":"protect: the step changed go.mod"}`: HumanAsked{of: Of("x-1"), Gate: "ga", N: 1,
			Why: "protect: the step changed go.mod", Protect: true},
		`{"kind":"human_asked","run":"x-1","gate":"ga","n":1,"why":"level"}`: HumanAsked{of: Of("x-1"), Gate: "ga", N: 1, Why: "level"},
	} {
		if got, err := DecodeFact([]byte(raw)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis %+v, %v\nwant %+v", raw, got, err, want)
		}
	}
	var st State
	if err := json.Unmarshal([]byte(`{"runs":{"x-1":{"id":"x-1","phase":"aborted","end_why":"limit:roles.dev.max_tokens the limit is hit",
		"rounds":{"ga":[{"n":1,"why":"protect: the step changed go.mod"},{"n":2,"why":"level"}]}}}}`), &st); err != nil {
		t.Fatal(err)
	}
	r := st.Runs["x-1"]
	if qs := r.Rounds["ga"]; r.EndLimit != "roles.dev.max_tokens" || !qs[0].Protect || qs[1].Protect {
		t.Errorf("a snapshot of an older release: %q %v %v", r.EndLimit, qs[0].Protect, qs[1].Protect)
	}
}
