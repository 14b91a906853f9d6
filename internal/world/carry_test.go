//go:build linux || darwin

package world

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/tools/conform"
)

const carrySpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, worktree: wt-a}, outputs: [dist/report.txt], signal: {type: sentinel_file}, gate: G}
  - {id: B, agent: {type: writer, worktree: wt-b}, inputs: [dist/report.txt], signal: {type: sentinel_file}, gate: H}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: B}}
  - {id: H, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// TestIgnoredOutputIsCarried: an output that git ignores comes to the step that needs it in another checkout, as it was
// bound; what somebody else put in its place stays.
func TestIgnoredOutputIsCarried(t *testing.T) {
	conform.Rule(t, "9-one-tree beside", "an ignored output is carried to the step that needs it, as it was bound")
	b := newBench(t, carrySpec)
	b.put(".gitignore", "dist/\nwt-a/\nwt-b/\n")
	b.sh("git add -A; git commit -q -m before")
	made := func(n int, text string) {
		j := b.checkJob("A", n)
		b.begin(j)
		b.put("wt-a/dist/report.txt", text)
		if c := b.carry(j).Check; !c.OK {
			t.Fatalf("%+v", c)
		}
	}
	step := b.spec.Step("B")
	state := engine.Gating
	need := func(n, of int) (string, error) {
		j := b.stepJob("B", n, 1)
		j.Env.Steps["A"] = engine.StepEnv{Attempt: of, Status: state}
		at, err := b.e.Begun(b.ctx(), j, step, n)
		if err != nil {
			t.Fatal(err)
		}
		found, err := b.e.Needed(b.ctx(), j, step, at)
		return strings.Join(found, " "), err
	}
	made(1, "one")
	for i, s := range []string{engine.Gating, engine.Superseded} { // no gate has let it through
		state = s
		if found, err := need(10+i, 1); err == nil || b.has("wt-b/dist/report.txt") {
			t.Errorf("work that is %s is carried: %q", s, found)
		}
	}
	state = engine.Passed
	if found, err := need(1, 1); err != nil || found != "dist/report.txt" || b.get("wt-b/dist/report.txt") != "one" {
		t.Fatalf("%q, %v", found, err)
	}
	if st := b.sh("git -C wt-b status --porcelain"); st != "" {
		t.Errorf("it is the step's work: %s", st)
	}
	made(2, "two")
	if _, err := need(2, 2); err != nil || b.get("wt-b/dist/report.txt") != "two" {
		t.Errorf("what was carried before stays: %q, %v", b.get("wt-b/dist/report.txt"), err)
	}
	b.put("wt-b/dist/report.txt", "a person's")
	made(3, "three")
	if _, err := need(3, 3); err != nil || b.get("wt-b/dist/report.txt") != "a person's" {
		t.Errorf("another's file was replaced: %q, %v", b.get("wt-b/dist/report.txt"), err)
	}
	b.sh("rm -r wt-b/dist")
	b.put("wt-a/dist/report.txt", "after the answer")
	if _, err := need(4, 3); err == nil || !strings.Contains(err.Error(), "has changed in wt-a since the work of A was judged") || b.has("wt-b/dist/report.txt") {
		t.Errorf("what nobody judged is carried: %v", err)
	}

	// Ended at the moment when a file is in place: it is the one that was judged.
	j := b.stepJob("B", 5, 1)
	j.Env.Steps["A"] = engine.StepEnv{Attempt: 3, Status: state}
	at, err := b.e.Begun(b.ctx(), j, step, 5)
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(b.root, "wt-b/dist/report.txt")
	if _, err := b.e.Needed(untilThere{b.ctx(), there}, j, step, at); err == nil || b.has("wt-b/dist/report.txt") {
		t.Errorf("killed, and what nobody judged stays: %v", err)
	}
	// Or before it is noted whose the file is: what comes later is carried over it still.
	b.put("wt-a/dist/report.txt", "three")
	record := b.recordFile(j, "carried", at.Top)
	b.sh("rm -f " + record + "; mkdir " + record + " " + record + "/full")
	if _, err := b.e.Needed(b.ctx(), j, step, at); err == nil {
		t.Error("the record was written")
	}
	b.sh("rm -r " + record)
	made(4, "four")
	if _, err := need(6, 4); err != nil || b.get("wt-b/dist/report.txt") != "four" {
		t.Errorf("%q, %v", b.get("wt-b/dist/report.txt"), err)
	}
	b.sh("rm -r wt-b/dist")
	if _, err := need(7, 4); err != nil || b.get("wt-b/dist/report.txt") != "four" {
		t.Errorf("what somebody has removed is not carried again: %v", err)
	}
}

// TestCarriedIsNotedBefore: killed after the file is in place and before that is noted, the next one knows it for its own.
func TestCarriedIsNotedBefore(t *testing.T) {
	b := newBench(t, carrySpec)
	b.put(".gitignore", "dist/\nwt-a/\nwt-b/\n")
	b.sh("git add -A; git commit -q -m before")
	step := b.spec.Step("B")
	noted := map[string]string{}
	for n, text := range []string{"one", "two", "three"} {
		j := b.checkJob("A", n+1)
		b.begin(j)
		b.put("wt-a/dist/report.txt", text)
		if c := b.carry(j).Check; !c.OK {
			t.Fatalf("%+v", c)
		}
		j = b.stepJob("B", n+1, 1)
		j.Env.Steps["A"] = engine.StepEnv{Attempt: n + 1, Status: engine.Passed}
		at, err := b.e.Begun(b.ctx(), j, step, n+1)
		if err != nil {
			t.Fatal(err)
		}
		record := b.recordFile(j, "carried", at.Top)
		if _, err := b.e.Needed(b.ctx(), j, step, at); err != nil || b.get("wt-b/dist/report.txt") != text {
			t.Fatalf("%q, %v", b.get("wt-b/dist/report.txt"), err)
		}
		if n == 1 { // as the kill leaves it
			var now map[string]string
			if err := layout.Load(record, &now); err != nil {
				t.Fatal(err)
			}
			noted["dist/report.txt"] += " " + now["dist/report.txt"]
			if err := layout.Save(record, noted); err != nil {
				t.Fatal(err)
			}
		} else if err := layout.Load(record, &noted); err != nil {
			t.Fatal(err)
		}
	}
}

// untilThere is done once there is a file.
type untilThere struct {
	context.Context
	file string
}

func (c untilThere) Err() error {
	if _, err := os.Lstat(c.file); err == nil {
		return context.Canceled
	}
	return c.Context.Err()
}

// recordFile is where a record about a folder is.
func (b *bench) recordFile(j job.Job, what, top string) string {
	return filepath.Join(b.state, layout.AttemptsDir, j.Run, what+"-"+layout.HexSum([]byte(top))[:16])
}
