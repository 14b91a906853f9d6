//go:build linux || darwin

package world

import (
	"path/filepath"
	"testing"
	"time"

	"sluice/internal/layout"
	"sluice/tools/conform"
)

// TestTheWordGoesBeforeTheEnd: an agent that said that it is done, and then failed on its way out, has said it.
func TestTheWordGoesBeforeTheEnd(t *testing.T) {
	conform.Rule(t, "8-semantics 14", "a code other than 0 is infrastructure only without the signal: one that lies in the inbox is taken in first")
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "echo '{}' >$SLUICE_SIGNAL; exit 3", signal: {type: sentinel_file}, next_step: DONE}
`)
	end := background(b.ctx(), b.e, b.stepJob("A", 1, 1), nil)
	eventually(t, "it ended", func() bool { return b.has(".workflow/runs/w-1/A.1/exit.json") })
	select {
	case ev := <-end:
		t.Fatalf("its end was told before its word was taken in: %+v", ev)
	case <-time.After(300 * time.Millisecond): // longer than a look takes
	}
	select {
	case <-b.e.Hints():
	default:
		t.Error("nobody was told to look")
	}
	b.sh("mv .workflow/signals/w-1/A-done.json .workflow/runs/w-1/A.1/signal.json")
	<-end
}

// TestAHalfMadeWorktree: the daemon was killed between git's making of the worktree and the writing of its files.
func TestAHalfMadeWorktree(t *testing.T) {
	conform.Rule(t, "1-language worktree", "one that was half made when the daemon was killed is completed before anybody works in it")
	b := newBench(t, treeSpec)
	b.sh("git worktree add -q --no-checkout -b work/a trees/a")
	dir := b.path("trees/a")
	if err := layout.Save(filepath.Join(b.state, "making", layout.HexSum([]byte(dir))[:32]), map[string]string{"dir": dir}); err != nil {
		t.Fatal(err)
	}
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Code != 0 || b.get("trees/a/README.md") != "hello\n" {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	if got := b.sh("git -C trees/a status --porcelain README.md .workflow"); got != "" {
		t.Errorf("git sees: %s", got)
	}
	b.put("trees/a/README.md", "changed\n")
	b.carry(b.stepJob("A", 2, 1))
	if b.get("trees/a/README.md") != "changed\n" {
		t.Error("work was written over")
	}
}
