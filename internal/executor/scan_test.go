//go:build linux || darwin

package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/watcher"
)

// TestALookReadsWhatTheHintsAreAbout: nothing else is read, and a run's new inbox is watched from then on.
func TestALookReadsWhatTheHintsAreAbout(t *testing.T) {
	b := newBench(t, treeSpec)
	root := filepath.Join(b.e.Root, ".workflow", "signals")
	in := job.Inboxes{Runs: []string{run1}, Trees: []string{b.path("tree")}}
	b.put("tree/.workflow/signals/w-1/T-done.json", "{}")
	b.put(".workflow/signals/A-done.json", "{}")
	b.put(".workflow/signals/w-1/B-done.json", "{}")
	for _, c := range []struct{ dir, want string }{
		{root, "A-done.json"}, {filepath.Join(root, run1), "B-done.json"}, {b.path("tree/.workflow/signals/w-1"), "T-done.json"},
		{b.path("tree/.workflow/signals"), ""}, {b.path("nowhere"), ""},
	} {
		in.Only = []job.Place{{Dir: c.dir}}
		if c.dir == root { // the run's inbox is read the first time only, as it was not watched yet
			if evs, _, err := b.e.Scan(b.ctx(), in); err != nil || len(evs) != 2 || !b.e.watches(filepath.Join(root, run1)) {
				t.Errorf("at first: %+v %v", evs, err)
			}
		}
		evs, _, err := b.e.Scan(b.ctx(), in)
		if err != nil || len(evs) > 1 || (c.want != "") != (len(evs) == 1) {
			t.Fatalf("%s: %+v %v", c.dir, evs, err)
		}
		if c.want != "" && evs[0].(engine.FileSeen).Name != c.want {
			t.Errorf("%s: %+v", c.dir, evs[0])
		}
	}
}

// TestHintsNameTheFolder: what a hint was about is given once, with the run whose inbox it is.
func TestHintsNameTheFolder(t *testing.T) {
	b := newBench(t, gateSpec)
	if _, _, err := b.e.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}}); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(b.e.Root, ".workflow", "signals", run1)
	saw := func() (found bool) {
		for _, p := range b.e.Hinted() {
			if p.Dir == own && p.Run != run1 || p.Dir == b.e.Signals() && p.Run != "" {
				t.Errorf("%+v", p)
			}
			found = found || p.Dir == own
		}
		return found
	}
	eventually(t, "the hint at a new folder", saw)
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	eventually(t, "the hint at its file", saw)
	b.e.lookAt("/x")
	if got := b.e.Hinted(); len(got) == 0 {
		t.Error("no hint")
	}
	b.e.Hint("/not/ours")
	for _, p := range b.e.Hinted() {
		if p.Dir == "/not/ours" || p.Dir == "/x" {
			t.Errorf("%+v", p)
		}
	}
}

// TestMoreThanAScanReads: what was left over is told, so that the scan closes nothing, and the next one goes on there.
func TestMoreThanAScanReads(t *testing.T) {
	b := newBench(t, gateSpec)
	const files = maxPasses*watcher.MaxScanFiles + 10
	for i := range files {
		if err := os.WriteFile(b.path(fmt.Sprintf(".workflow/signals/x%05d.json", i)), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for scan := range 2 {
		evs, more, err := b.e.Scan(b.ctx(), job.Inboxes{})
		if err != nil || more != (scan == 0) {
			t.Fatalf("scan %d: %d files, more: %v, %v", scan, len(evs), more, err)
		}
		for _, ev := range evs {
			seen[ev.(engine.FileSeen).Name] = true
		}
	}
	if len(seen) != files {
		t.Errorf("%d files of %d", len(seen), files)
	}
}

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
	if err := layout.Save(b.e.AttemptFile(run1, "A", 1, "files"), covered{Dir: b.e.Root}); err != nil {
		t.Fatal(err)
	}
	if evs, _, err = b.e.Scan(b.ctx(), in); err != nil || len(evs) != 2 || evs[1].(engine.FileSeen).DigestNow == "" {
		t.Errorf("%+v %v", evs, err)
	}
}

// TestStraysAreLookedForWhereSomethingChanged: the folder of a run that is over, in which something lies, is found though
// the inbox was seen without one before.
func TestStraysAreLookedForWhereSomethingChanged(t *testing.T) {
	b := newBench(t, gateSpec)
	inbox := b.path(".workflow/signals")
	old := time.Now().Add(-time.Hour)
	see := func(live ...string) int {
		t.Helper()
		evs, _, err := b.e.Scan(b.ctx(), job.Inboxes{Runs: live})
		if err != nil {
			t.Fatal(err)
		}
		return len(evs)
	}
	see(run1)
	if err := os.Chtimes(inbox, old, old); err != nil {
		t.Fatal(err)
	}
	see(run1)
	if b.e.noStrays.Ino == 0 {
		t.Fatal("an inbox at rest is looked through each time")
	}
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	if n := see(run1); n != 1 {
		t.Errorf("%d files while the run lives", n)
	}
	if n := see(); n != 1 {
		t.Errorf("%d files of the run that is over", n)
	}
	b.put(".workflow/signals/w-7/A-done.json", "{}")
	if n := see(run1); n != 2 {
		t.Errorf("%d files after another folder came", n)
	}
}
