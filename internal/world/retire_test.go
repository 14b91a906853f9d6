//go:build linux || darwin

package world

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// TestSweepForgets: what is kept for runs that the state has forgotten goes with the next run's beginning; of those that
// it knows, that live, or that are younger than all it knew, nothing does.
func TestSweepForgets(t *testing.T) {
	b := newBench(t, "workflow: {id: w}\nsteps:\n  - {id: A, run: \"true\", next_step: DONE}\n")
	runs := []string{"w-1", "w-2", "w-3", "w-4", "w-5", "other-1"}
	for _, run := range runs {
		if err := layout.Save(b.e.AttemptFile(run, "A", 1, "begin"), tree.Begin{}); err != nil {
			t.Fatal(err)
		}
		if err := layout.Save(b.e.PIDFile(run+"/A#1.1"), tree.Begin{}); err != nil {
			t.Fatal(err)
		}
		b.put(".workflow/signals/"+run+"/.keep", "")
		if err := os.Remove(b.path(".workflow/signals/" + run + "/.keep")); err != nil {
			t.Fatal(err)
		}
		folder := "box-" + run
		b.put(folder+"/.keep", "")
		b.e.Expect(job.Job{Effect: engine.Effect{Run: run}, Attempt: &engine.Attempt{Worktree: folder, Tree: "."}})
		b.e.Expect(job.Job{Effect: engine.Effect{Run: run}, Attempt: &engine.Attempt{Worktree: "shared", Tree: "."}})
	}
	for _, folder := range []string{"box-w-1", "box-w-2", "box-w-3", "box-w-4", "box-w-5", "box-other-1", "shared"} {
		b.put(folder+"/.workflow/signals/"+folder+"-done.json", "{}")
	}
	b.put(".workflow/signals/w-2/B-done.json", "{}") // nobody's, and not ours to remove
	j := job.Job{Effect: engine.Effect{Kind: engine.DoWrite, Key: "w-4/sweep", Run: "w-4", Write: &engine.Write{ID: "w-4/sweep", Sweep: true}},
		Live: []string{"w-4"}, Known: []string{"w-3", "w-4"}} // w-5 began since
	if ev, ok := b.e.Carry(t.Context(), j, nil).(engine.FileWritten); !ok || ev.Why != "" {
		t.Fatalf("%+v", ev)
	}
	names := func(dir string) (out []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	for dir, want := range map[string][]string{
		filepath.Join(b.state, layout.AttemptsDir): {"other-1", "w-3", "w-4", "w-5"},
		filepath.Join(b.state, layout.LaunchesDir): {"other-1", "w-3", "w-4", "w-5"},
		b.e.Signals(): {"other-1", "w-2", "w-4", "w-5"},
	} {
		if got := names(dir); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	var places []string
	for _, ev := range b.scanned(job.Inboxes{Trees: []string{"."}}, 5) {
		if folder, ok := strings.CutSuffix(ev.Name, "-done.json"); ok && ev.Place == "." {
			places = append(places, folder)
		}
	}
	slices.Sort(places)
	if want := []string{"box-other-1", "box-w-4", "box-w-5", "shared"}; !slices.Equal(places, want) {
		t.Errorf("places %q, want %q", places, want)
	}
}

// TestTroubleEndsWithItsRun: what was wrong with the inbox of a run is no trouble any more when the run is over.
func TestTroubleEndsWithItsRun(t *testing.T) {
	b := newBench(t, "workflow: {id: w}\nsteps:\n  - {id: A, run: \"true\", next_step: DONE}\n")
	for _, what := range []string{"inbox .workflow/signals/w-1", "inbox .workflow/signals/w-1/G-pass", "inbox of w-1", "inbox .workflow/signals/w-2", "git in ."} {
		b.e.Note(what, "it cannot be read")
	}
	if _, _, err := b.e.Scan(t.Context(), job.Inboxes{Runs: []string{"w-1"}}); err != nil {
		t.Fatal(err)
	}
	if got := len(b.e.Notes.All()); got != 1 { // the folder of w-1 is there and was read, and its file is not there
		t.Errorf("%q", b.e.Notes.All())
	}
	for until := time.Now().Add(waitFor); len(b.e.Notes.All()) > 1; time.Sleep(10 * time.Millisecond) {
		if _, _, err := b.e.Scan(t.Context(), job.Inboxes{}); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(until) { // a test file of the watch may be in the folder for a moment
			t.Fatalf("%q", b.e.Notes.All())
		}
	}
	if !slices.Contains(b.e.Notes.All(), "git in .: it cannot be read") {
		t.Errorf("%q", b.e.Notes.All())
	}
}

// TestRetryPathOfARunTakenUpAgain: what was moved to the run's folder while it was over is found there.
func TestRetryPathOfARunTakenUpAgain(t *testing.T) {
	b := newBench(t, gateSpec)
	b.e.Carry(b.ctx(), b.writeJob(1), nil)
	if got := b.e.RetryPath(run1, ".workflow/retry-context/G-attempt-1.md"); got != ".workflow/retry-context/G-attempt-1.md" {
		t.Errorf("before: %s", got)
	}
	sweep := b.job(engine.Effect{Kind: engine.DoWrite, Key: "w-2/sweep", Write: &engine.Write{ID: "w-2/sweep", Sweep: true}})
	sweep.Live = []string{"w-2"}
	b.e.Carry(b.ctx(), sweep, nil)
	j := b.stepJob("A", 2, 1)
	j.History = []job.RetryFile{{Gate: "G", Path: ".workflow/retry-context/w-1/G-attempt-1.md", Step: "A", To: "A"}}
	files := b.e.RetryFiles(j, "A", b.root)
	if len(files) != 1 || files[0].Path != ".workflow/runs/w-1/retry-context/G-attempt-1.md" || files[0].Why != "" {
		t.Errorf("%+v", files)
	}
}
