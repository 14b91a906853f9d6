package engine

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// TestOldFactsReplay replays journals that earlier versions of the engine wrote, one fact per line
// after its time: old decisions are still no contradiction. old-facts has histories of three commits
// from before the table of moves; trigger-facts has those of the first release with triggers, each with
// what was known of its triggers in the end.
func TestOldFactsReplay(t *testing.T) {
	conform.Rule(t, "3-engine folded", "journals of earlier versions are read to their states")
	conform.Rule(t, "12-triggers nothing changes", "the keys of an older release are remembered")
	for name, least := range map[string]int{"old-facts": 2000, "trigger-facts": 1000} {
		if facts, _ := replayOld(t, "testdata/"+name+".jsonl.gz"); facts < least {
			t.Errorf("%s: %d facts were read", name, facts)
		}
	}
}

// TestOldForgeFactsReplay: what a forge and people there decided is still known. The journals are the
// daemon's, of the tests of the forge.
func TestOldForgeFactsReplay(t *testing.T) {
	conform.Rule(t, "3-engine folded", "journals of earlier versions are read to their states")
	_, ends := replayOld(t, "testdata/forge-facts.jsonl.gz")
	var got strings.Builder
	for _, st := range ends {
		for _, id := range st.Order {
			r := st.Runs[id]
			fmt.Fprintln(&got, id, r.Phase, cmp.Or(r.EndCause, "-"), cmp.Or(r.EndWhy, "-"))
			for _, gate := range sortedKeys(r.Rounds) {
				for _, q := range r.Rounds[gate] {
					fmt.Fprint(&got, "  ", gate, q.N, " ", q.State, " ", cmp.Or(q.ByKind, "-"))
					if q.By != nil {
						fmt.Fprint(&got, " ", q.By.Who, " ", q.By.Trust, " ", q.By.Via)
					}
					fmt.Fprintln(&got)
				}
			}
		}
	}
	const want = `w-1 completed - -
  GB1 superseded forge
  GB2 superseded forge
  GB3 passed forge
  GC1 passed human ann forge comment 1014
w-1 completed merged pull request #1 was merged by bob as 056d88aa5d02, before GB had passed
  GB1 superseded -
w-2 aborted person pull request #2 was closed by carl
  GB1 superseded -
w-1 aborted person aborted by cai
  GB1 superseded -
aside-1 completed - -
  A1 passed step
w-2 running - -
  GB1 human -
w-1 aborted person aborted by cai
w-2 completed merged pull request #1 was merged by bob as 5eb8f7bde74e, before GB had passed
  A1 passed step
  GB1 superseded -
`
	if got.String() != want {
		t.Errorf("the runs are\n%snot\n%s", got.String(), want)
	}
}

// replayOld replays the journals of a file, and returns their ends: "# NAME" begins one, "= STATE" has
// its triggers at its end.
func replayOld(t *testing.T, name string) (facts int, ends []*State) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	st, from := NewState(), ""
	defer func() {
		if said := recover(); said != nil {
			t.Errorf("%s, %s, fact %d: %v", name, from, facts, said)
		}
	}()
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		head, rest, _ := strings.Cut(lines.Text(), " ")
		switch head {
		case "#":
			st, from = NewState(), rest
			ends = append(ends, st)
			continue
		case "=":
			want := map[string]*Armed{}
			if err := json.Unmarshal([]byte(rest), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(want, reread(t, st.Armed)) {
				t.Errorf("%s, %s: its triggers are not what they were", name, from)
			}
			continue
		}
		at, err := strconv.ParseInt(head, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		f, err := DecodeFact([]byte(rest))
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		st.Apply(time.Unix(0, at).UTC(), f)
		facts++
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	return facts, ends
}

// reread returns what a snapshot keeps of triggers.
func reread(t *testing.T, armed map[string]*Armed) map[string]*Armed {
	t.Helper()
	raw, err := json.Marshal(armed)
	out := map[string]*Armed{}
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
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
