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

// TestLandingAfterAReset: where a person has set the branch back below what has passed and stands, landing asks, and lands
// neither the one nor the other by itself.
func TestLandingAfterAReset(t *testing.T) {
	p, w, l := worked(t)
	repo := p.open()
	if err := repo.Keep(t.Context(), git.Own("base", "x-1"), l.Base); err != nil {
		t.Fatal(err)
	}
	one, two := w.git("rev-parse", "HEAD~1"), l.Tip
	w.git("reset", "-q", "--hard", one)
	same := w.git("commit-tree", "-p", one, "-m", "the same", one+"^{tree}")
	gone := strings.Repeat("1", len(one))
	for _, c := range []struct {
		name, tip string
		passed    []Passed
		asks      bool
	}{
		{"set back", one, []Passed{{Content: one, Own: true}, {Content: two, Own: true}}, true},
		{"above", two, []Passed{{Content: one, Own: true}, {Content: two, Own: true}}, false},
		{"in a worktree of its own", one, []Passed{{Content: one, Own: true}, {Content: two}}, false},
		{"the same files", one, []Passed{{Content: one, Own: true}, {Content: same, Own: true}}, false},
		{"no longer kept", one, []Passed{{Content: one, Own: true}, {Content: gone, Own: true}}, false},
	} {
		w.git("reset", "-q", "--hard", c.tip)
		work := Work{Run: "x-1", Title: "x", Dir: w.dir, Shown: w.dir, Branch: "sluice/x-1", Passed: c.passed, Judged: true}
		_, err := work.Landing(t.Context(), repo, "refs/heads/main", Squash, "")
		if asks := err != nil && strings.Contains(err.Error(), "was set back to "+one[:12]); asks != c.asks || err != nil && !asks {
			t.Errorf("%s: %v", c.name, err)
		}
		work.Unjudged = true
		if _, err := work.Landing(t.Context(), repo, "refs/heads/main", Squash, ""); err != nil {
			t.Errorf("%s: --unjudged: %v", c.name, err)
		}
	}
}
