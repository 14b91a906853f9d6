package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// TestFollower: a machine that follows answers from the state that it has, reads what came since, and
// reads everything again once the journal was cut. It stops at a record that it cannot read.
func TestFollower(t *testing.T) {
	state := t.TempDir()
	c, _, err := openCore(state, journal.Options{}, twoGates)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(n int) {
		t.Helper()
		for range n {
			c.take(engine.RunRequested{Workflow: "two", Digest: "d-two", Source: "two"}, time.Now())
		}
		if _, err := c.commit(); err != nil {
			t.Fatal(err)
		}
	}
	f := &follower{opt: RepoOptions{State: state, Compile: twoGates}}
	defer f.close()
	shows := func(what string, runs int) {
		t.Helper()
		if err := f.use(func(r *Reader) error {
			if got := len(r.Status("", false).Runs); got != runs {
				t.Errorf("%s: it shows %d runs, not %d", what, got, runs)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	shows("at first", 0)
	shows("and again", 0)
	begin(2)
	shows("two runs later", 2)

	name := filepath.Join(state, journal.FileName)
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("X"), 0); err != nil { // nobody reads that again
		t.Fatal(err)
	}
	begin(1)
	shows("a run later", 3)
	if _, err := file.WriteAt([]byte("{"), 0); err != nil {
		t.Fatal(err)
	}

	last, _ := c.log.Last()
	if err := c.log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Repair(state, last-1, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	if c, _, err = openCore(state, journal.Options{}, twoGates); err != nil {
		t.Fatal(err)
	}
	defer c.log.Close()
	shows("after a repair", 2)

	begin(2)
	newer := journal.Entry{At: time.Now(), Event: json.RawMessage(`{"kind":"newer"}`), Facts: []json.RawMessage{json.RawMessage(`{"kind":"of_a_newer_release"}`)}}
	if _, _, err := c.log.Append(newer); err != nil {
		t.Fatal(err)
	}
	shows("a newer release has written", 4)
	begin(2)
	shows("and goes on", 4)
}
