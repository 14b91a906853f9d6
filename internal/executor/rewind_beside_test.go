//go:build linux

package executor

import (
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
)

// TestWorkOnVetoedWorkIsLeftToAPerson: what was built on work that a veto has taken off the branch does not bring it back.
func TestWorkOnVetoedWorkIsLeftToAPerson(t *testing.T) {
	b := advancing(t, true, "workspace: run", "true", "")
	top := filepath.Join(b.root, space1)
	vetoed := strings.TrimSpace(b.sh("git rev-parse sluice/w-1"))
	base := strings.TrimSpace(b.sh("git rev-parse refs/sluice/base/w-1"))
	job := inSpace(b.job(engine.Effect{Kind: engine.DoWrite, Key: "w-1/B#1.advance", Run: run1, Step: "B", N: 1,
		Write: &engine.Write{ID: "w-1/B#1.advance", Kind: engine.WriteAdvance, Step: "B", N: 1}}), space1)
	if err := b.e.noteFolder(b.ctx(), job, top, func(r *folderRecord) { r.Back, r.Moves = []string{vetoed}, nil }); err != nil {
		t.Fatal(err)
	}
	b.sh("git update-ref refs/heads/sluice/w-1 " + base)
	if why := b.e.advance(b.ctx(), job); !strings.Contains(why, "which was vetoed") {
		t.Errorf("it says %q", why)
	}
	if at := strings.TrimSpace(b.sh("git rev-parse sluice/w-1")); at != base {
		t.Errorf("the branch has %s", b.sh("git log --oneline sluice/w-1"))
	}
	b.sh("git update-ref refs/heads/sluice/w-1 " + vetoed) // a later attempt has passed on top of it
	if why := b.e.advance(b.ctx(), job); why != "" {
		t.Errorf("it says %q", why)
	}
}
