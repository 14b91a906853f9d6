//go:build unix

package tree

import (
	"strings"
	"testing"

	"sluice/internal/git"
)

// TestLandingUndoesNothing: commits of a run that name the branch's newest commit as a parent, and leave out what it has
// brought, would take that off the branch: no judge has seen it go.
func TestLandingUndoesNothing(t *testing.T) {
	for _, how := range []string{Squash, Merge, FF} {
		t.Run(how, func(t *testing.T) {
			p, w, l := worked(t)
			p.write("b", "main's own\n")
			p.git("commit", "-qam", "main's own")
			w.git("merge", "-q", "-s", "ours", "-m", "up to date", "main")
			l.Tip, l.How = w.git("rev-parse", "HEAD"), how
			repo := p.open()
			if err := repo.Keep(t.Context(), git.Own("base", "x-1"), l.Base); err != nil {
				t.Fatal(err)
			}
			work := Work{Run: "x-1", Title: "x", Dir: w.dir, Shown: w.dir, Branch: "sluice/x-1", Passed: []Passed{{Gate: "G", Content: l.Tip}}}
			to, err := work.Landing(t.Context(), repo, "refs/heads/main", how, "")
			if err == nil {
				_, err = work.Land(t.Context(), repo, to)
			}
			if got := p.git("show", "main:b"); got != "main's own" {
				t.Errorf("main has %q", got)
			}
			if err == nil || !strings.Contains(err.Error(), "undo") || !strings.Contains(err.Error(), "b") {
				t.Errorf("%v", err)
			}
		})
	}
}
