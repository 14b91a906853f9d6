//go:build linux || darwin

package world

import (
	"context"
	"os"
	"slices"
	"strings"
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

// elsewhere is a worker whose launches began on another machine's commit.
type elsewhere struct{ launch.Afar }

func (elsewhere) Knows(string) bool   { return true }
func (elsewhere) Token(string) string { return "" }
func (elsewhere) Launch(context.Context, string, []string, func() (launch.Sent, error), launch.Watch) (launch.Back, error) {
	other := strings.Repeat("1", 40)
	return launch.Back{Commit: other, Tip: other, Head: other, Start: other}, nil
}

// TestWorkFromElsewhereIsSaidToBe: the launch is made again, and its end says why.
func TestWorkFromElsewhereIsSaidToBe(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"exit 0"`, 1))
	b.e = b.executor(func(o *Options) { o.Afar = elsewhere{} })
	j := b.stepJob("A", 1, 1)
	b.begin(j)
	ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.ProcessEnded)
	if !ok || !ev.Exit.Lost || ev.Exit.Class != engine.ClassInfrastructure || !strings.Contains(ev.Exit.Why, "it began from 1111") {
		t.Errorf("%+v", ev)
	}
}
