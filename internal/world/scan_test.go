//go:build linux || darwin

package world

import (
	"os"
	"slices"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// TestAPassWaitsForWhatItAnswers: where the digest of what is there cannot be read, a pass is neither taken nor thrown
// out; a veto needs no digest.
func TestAPassWaitsForWhatItAnswers(t *testing.T) {
	b := newBench(t, gateSpec)
	b.settings.Settle = 1
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"G-pass", "G-veto"} {
		b.put(".workflow/signals/"+name, "yes")
		if err := os.Chtimes(b.path(".workflow/signals/"+name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	in := job.Inboxes{Runs: []string{run1}, Asked: []job.Reviewed{{Run: run1, Gate: "G", Step: "A", Attempt: 1, Digest: "x"}}}
	evs, _, err := b.e.Scan(b.ctx(), in)
	if err != nil || len(evs) != 1 || evs[0].(engine.FileSeen).Name != "G-veto" {
		t.Errorf("%+v %v", evs, err)
	}
	if len(b.e.Health()) == 0 {
		t.Error("it is not told that the pass waits")
	}
	if err := layout.Save(b.e.AttemptFile(run1, "A", 1, "files"), tree.Covered{Dir: b.e.Root}); err != nil {
		t.Fatal(err)
	}
	if evs, _, err = b.e.Scan(b.ctx(), in); err != nil || len(evs) != 2 || evs[1].(engine.FileSeen).DigestNow == "" {
		t.Errorf("%+v %v", evs, err)
	}
}

// desk is workers that hear which launches are on the record.
type desk struct {
	launch.Afar
	heard [][]string
}

func (d *desk) Recorded(keys []string) { d.heard = append(d.heard, keys) }

// TestWorkersHearOfTheRecord: of whole scans only, for another knows of some runs alone.
func TestWorkersHearOfTheRecord(t *testing.T) {
	b, d := newBench(t, gateSpec), &desk{}
	b.e = b.executor(func(o *Options) { o.Afar = d })
	for _, in := range []job.Inboxes{{Procs: []string{"w-1/A#1.1"}}, {Only: []job.Place{{Dir: "x", Run: run1}}}} {
		if _, _, err := b.e.Scan(b.ctx(), in); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.heard) != 1 || !slices.Equal(d.heard[0], []string{"w-1/A#1.1"}) {
		t.Errorf("heard: %v", d.heard)
	}
}
