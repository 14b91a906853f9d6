package engine

import (
	"bufio"
	"compress/gzip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/conform"
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
