//go:build linux

package world

import (
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/folders"
)

// TestWorkOnVetoedWorkIsLeftToAPerson: what was built on work that a veto has taken off the branch does not bring it back.
func TestWorkOnVetoedWorkIsLeftToAPerson(t *testing.T) {
	b := advancing(t, true, "workspace: run", "true", "")
	top := filepath.Join(b.root, space1)
	vetoed := strings.TrimSpace(b.sh("git rev-parse sluice/w-1"))
	base := strings.TrimSpace(b.sh("git rev-parse refs/sluice/base/w-1"))
	j := inSpace(b.job(engine.Effect{Kind: engine.DoWrite, Key: "w-1/B#1.advance", Run: run1, Step: "B", N: 1,
		Write: &engine.Write{ID: "w-1/B#1.advance", Kind: engine.WriteAdvance, Step: "B", N: 1}}), space1)
	if err := b.e.NoteFolder(b.ctx(), j, top, func(r *folders.Record) { r.Back, r.Moves = []string{vetoed}, nil }); err != nil {
		t.Fatal(err)
	}
	b.sh("git update-ref refs/heads/sluice/w-1 " + base)
	if why := b.e.Advance(b.ctx(), j); !strings.Contains(why, "which was vetoed") {
		t.Errorf("it says %q", why)
	}
	if at := strings.TrimSpace(b.sh("git rev-parse sluice/w-1")); at != base {
		t.Errorf("the branch has %s", b.sh("git log --oneline sluice/w-1"))
	}
	b.sh("git update-ref refs/heads/sluice/w-1 " + vetoed) // a later attempt has passed on top of it
	if why := b.e.Advance(b.ctx(), j); why != "" {
		t.Errorf("it says %q", why)
	}
}

// TestVetoOfAMoveThatDidNotHappen: a move that was recorded, and given up for a veto before the branch moved, does not keep the
// branch from being taken back.
func TestVetoOfAMoveThatDidNotHappen(t *testing.T) {
	b := advancing(t, true, "workspace: run", "true", "")
	top := filepath.Join(b.root, space1)
	base, passed, given := b.sh("git rev-parse refs/sluice/base/w-1"), b.sh("git rev-parse sluice/w-1"), b.sh("git rev-parse refs/sluice/taken/w-1/B.1")
	rewind := func(step string, with ...string) {
		t.Helper()
		j := inSpace(b.job(engine.Effect{Kind: engine.DoWrite, Key: "w-1/" + step + "#1.rewind", Run: run1, Step: step, N: 1,
			Write: &engine.Write{ID: "w-1/" + step + "#1.rewind", Kind: engine.WriteRewind, Step: step, N: 1, With: with, Files: true}}), space1)
		err := b.e.NoteFolder(b.ctx(), j, top, func(r *folders.Record) {
			r.Passed = given
			if step == "A" {
				r.Moves = append(r.Moves, folders.Move{Of: "w-1/B.1", From: passed, To: given})
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if why := b.e.Rewind(b.ctx(), j); why != "" {
			t.Errorf("%s: it says %q", step, why)
		}
		r, err := b.record(j, top)
		if at := b.sh("git rev-parse sluice/w-1"); err != nil || r.Passed != at {
			t.Errorf("%s: the branch is at %s, and what passed last at %s: %v", step, at, r.Passed, err)
		}
	}
	rewind("B") // of which not even that was recorded
	if at := b.sh("git rev-parse sluice/w-1"); at != passed {
		t.Errorf("the branch is at %s, not %s", at, passed)
	}
	rewind("A", "B.1")
	if at := b.sh("git rev-parse sluice/w-1"); at != base {
		t.Errorf("the branch is at %s, not %s", at, base)
	}
}
