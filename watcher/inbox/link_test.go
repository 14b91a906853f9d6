//go:build linux || darwin

package inbox

import (
	"testing"

	"sluice/engine"
	"sluice/internal/job"
)

// TestNoInboxBehindALink: what an agent left in the checkout, a link in the place of a step's .workflow, leads to no
// inbox: nothing outside is read, and nothing is moved away from there.
func TestNoInboxBehindALink(t *testing.T) {
	b := newBench(t)
	outside := realPath(t, t.TempDir())
	b.sh("mkdir -p " + outside + "/signals/w-1 sub && ln -s " + outside + " sub/.workflow")
	b.sh("mkdir tree && ln -s " + outside + " tree/.workflow")
	b.sh("cd " + outside + "/signals && echo mine >models.py && cp models.py w-1 && touch -d 2020-01-01 models.py w-1/models.py")
	b.x.Expect(job.Job{Effect: engine.Effect{Run: run1}, Attempt: &engine.Attempt{Worktree: "sub", Tree: "."}})
	in := job.Inboxes{Runs: []string{run1}, Trees: []string{b.path("tree"), "."}}
	for _, only := range [][]job.Place{nil, {{Dir: b.path("sub/.workflow/signals")}}, {{Dir: b.path("tree/.workflow/signals/w-1")}}} {
		in.Only = only
		b.put(".workflow/signals/A-done.json", "{}")
		evs, _, err := b.x.Scan(b.ctx(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range evs {
			if f := ev.(engine.FileSeen); f.Place != "" {
				t.Errorf("%+v was read", f)
			}
		}
	}
	if dirs := append(b.x.treeInboxes("."), b.x.treeInboxes(b.path("tree"))...); len(dirs) != 0 {
		t.Errorf("inboxes: %v", dirs)
	}
}

// TestNoMoveFromBehindALink: a file that was taken in is not moved away from behind a link that an agent has put in the
// place of the folder since.
func TestNoMoveFromBehindALink(t *testing.T) {
	b := newBench(t)
	outside := realPath(t, t.TempDir())
	b.sh("mkdir -p " + outside + "/signals .workflow/signals tree && echo mine >" + outside + "/signals/x && ln " + outside +
		"/signals/x .workflow/signals/x")
	m := b.taken(".workflow/signals/x")
	m.Place, m.Why = b.path("tree"), "nothing waits for it"
	b.sh("ln -s " + outside + " tree/.workflow")
	if ev := b.move(m); ev.To != "" {
		t.Errorf("moved to %s", ev.To)
	}
	if b.get("tree/.workflow/signals/x") != "mine\n" {
		t.Error("it was moved")
	}
}
