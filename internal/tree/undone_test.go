//go:build unix

package tree

import (
	"strings"
	"testing"
)

// TestLandingUndoesNothing: a run's commits that name the branch's newest commit as a parent, but
// drop its content, would remove that from the branch: no judge has seen it go.
func TestLandingUndoesNothing(t *testing.T) {
	for _, how := range []string{Squash, Merge, FF} {
		t.Run(how, func(t *testing.T) {
			p, w, l := worked(t)
			p.write("b", "main's own\n")
			p.git("commit", "-qam", "main's own")
			w.git("merge", "-q", "-s", "ours", "-m", "up to date", "main")
			l.Tip, l.How = w.git("rev-parse", "HEAD"), how
			repo, work := p.landing(w, l.Base)
			work.Passed = []Passed{{Gate: "G", Content: l.Tip}}
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

// TestLandingOfAResolution: a merge that keeps the lines of both sides lands, although git would have
// the same conflict again. One that drops, changes or brings back a line does not.
func TestLandingOfAResolution(t *testing.T) {
	const before = "1\nold\n3\n"
	for name, c := range map[string]struct {
		before, theirs, ours, merged string
		mode                         string
		refused                      bool
	}{
		"theirs first":     {before, "1\nold\ntheirs\n3\n", "1\nold\nours\n3\n", "1\nold\ntheirs\nours\n3\n", "", false},
		"ours first":       {before, "1\nold\ntheirs\n3\n", "1\nold\nours\n3\n", "1\nold\nours\ntheirs\n3\n", "", false},
		"ours between":     {before, "1\nold\nt1\nt2\n3\n", "1\nold\nours\n3\n", "1\nold\nt1\nours\nt2\n3\n", "", false},
		"ours removed one": {before, "1\nold\ntheirs\n3\n", "ours\nold\n3\n", "ours\nold\ntheirs\n3\n", "", false},
		"both new":         {"", "theirs\n", "ours\n", "theirs\nours\n", "", false},
		"in place of both": {before, "1\ntheirs\n3\n", "1\nours\n3\n", "1\ntheirs\nours\n3\n", "", false},
		"one end less":     {before, "1\nold\n3\ntheirs", "1\nold\n3\nours", "1\nold\n3\ntheirs\nours", "", true},
		"theirs dropped":   {before, "1\nold\ntheirs\n3\n", "1\nold\nours\n3\n", "1\nold\nours\n3\n", "", true},
		"theirs changed":   {before, "1\nold\ntheirs\n3\n", "1\nold\nours\n3\n", "1\nold\nTHEIRS\nours\n3\n", "", true},
		"one of two":       {before, "1\nold\nt1\nt2\n3\n", "1\nold\nours\n3\n", "1\nold\nt1\nours\n3\n", "", true},
		"moved":            {before, "1\nold\nt1\nt2\n3\n", "1\nold\nours\n3\n", "1\nold\nt2\nt1\nours\n3\n", "", true},
		"the old is back":  {before, "1\n3\n", "1\nold\nours\n3\n", "1\nold\nours\n3\n", "", true},
		"the old is gone":  {before, "1\n3\n", "1\nold\nours\n3\n", "1\nours\n3\n", "", false},
		"new, and dropped": {"", "theirs\n", "ours\n", "ours\n", "", true},
		"no program":       {before, "1\nold\ntheirs\n3\n", "1\nold\nours\n3\n", "1\nold\ntheirs\nours\n3\n", "+x", true},
		"a NUL":            {"\x00\n1\n", "\x00\n1\ntheirs\n", "\x00\n1\nours\n", "\x00\n1\nours\n", "", true},
		"removed":          {before, "1\nold\ntheirs\n3\n", "1\nold\nours\n3\n", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			put := func(q *person, content string) {
				if q.write("list", content); content == "" {
					q.git("rm", "-q", "--cached", "--ignore-unmatch", "list")
				} else {
					q.git("add", "list")
				}
				q.git("commit", "-q", "--allow-empty", "-m", "list")
			}
			put(p, c.before)
			base := p.git("rev-parse", "HEAD")
			p.git("worktree", "add", "-q", "-b", "sluice/x-1", p.dir+"-x-1")
			w := p.in(p.dir + "-x-1")
			put(w, c.ours)
			put(p, c.theirs)
			if c.mode != "" {
				p.git("update-index", "--chmod="+c.mode, "list")
				p.git("commit", "-qm", "mode")
			}
			w.git("merge", "-q", "-s", "ours", "-m", "merged", "main")
			put(w, c.merged)
			repo, work := p.landing(w, base)
			_, err := work.Landing(t.Context(), repo, "refs/heads/main", Squash, "")
			if refused := err != nil && strings.Contains(err.Error(), "undoes or changes again what that brought: list"); refused != c.refused || err != nil && !refused {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestLandingUndoesNoOtherBranch: a run's commits whose history has others' commits from another
// branch, but not their content, would make a later merge of that branch bring nothing: git
// considers it merged.
func TestLandingUndoesNoOtherBranch(t *testing.T) {
	ours := func(w *person, ref string) { w.git("merge", "-q", "-s", "ours", "-m", "up to date", ref) }
	for name, c := range map[string]struct {
		do  func(p, w *person)
		how string // "" = each way that keeps the run's commits
		of  string // the branch in the message; "" = it lands
	}{
		"a branch":   {func(_, w *person) { ours(w, "other") }, "", "other"},
		"a remote's": {func(_, w *person) { ours(w, "origin/main") }, "", "origin/main"},
		"the first parent": {func(_, w *person) {
			tip := w.git("rev-parse", "HEAD^{tree}")
			w.git("reset", "-q", "--hard", w.git("commit-tree", "-m", "x", "-p", "other", "-p", "HEAD", tip))
		}, "", "other"},
		"with no merge": {func(_, w *person) {
			tip := w.git("rev-parse", "HEAD^{tree}")
			w.git("reset", "-q", "--hard", w.git("commit-tree", "-m", "x", "-p", "other", tip))
		}, "", "other"},
		"a part of a branch": {func(p, w *person) {
			ours(w, "other")
			p.git("checkout", "-q", "other")
			p.write("c", "more\n")
			p.git("commit", "-qam", "more")
			p.git("checkout", "-q", "main")
		}, "", "another branch"},
		"of a run that has undone it": {func(p, w *person) {
			p.git("update-ref", "refs/sluice/base/x-2", "main")
			p.git("worktree", "add", "-q", "-b", "sluice/x-2", p.dir+"-x-2")
			ours(p.in(p.dir+"-x-2"), "other")
			w.git("merge", "-q", "-m", "x-2", "sluice/x-2")
		}, "", "other"},
		"a run's": {func(p, w *person) {
			p.git("update-ref", "refs/sluice/base/x-2", "main")
			p.git("tag", "-d", "v1")
			p.git("branch", "-m", "other", "sluice/x-2")
			ours(w, "sluice/x-2")
		}, "", "sluice/x-2"},
		"seen by a person": {func(p, w *person) {
			ours(w, "other")
			p.git("branch", "look", "sluice/x-1")
			p.git("checkout", "-q", "look")
			p.git("commit", "-q", "--allow-empty", "-m", "on top")
			p.git("checkout", "-q", "main")
		}, "", "other"},
		"as one commit": {func(_, w *person) { ours(w, "other") }, Squash, ""},
		"merged": {func(_, w *person) {
			w.git("merge", "-q", "-m", "other", "v1")
			w.git("merge", "-q", "-m", "other", "other")
		}, "", ""},
		"its own": {func(p, w *person) {
			p.git("update-ref", "refs/remotes/origin/sluice/x-1", "sluice/x-1")
			w.write("a", "work again\n")
			w.git("commit", "-qam", "three")
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, w, l := worked(t)
			p.git("checkout", "-q", "-b", "other")
			p.write("b", "a person's\n")
			p.git("commit", "-qam", "a person's")
			p.write("b", "a person's own\n") // and the same place again
			p.git("commit", "-qam", "again")
			p.git("tag", "-a", "-m", "v1", "v1", "other~")
			p.git("update-ref", "refs/remotes/origin/main", "other")
			p.git("checkout", "-q", "main")
			gone := "refs/remotes/origin/main"
			if name == "a remote's" {
				gone = "refs/heads/other"
			}
			p.git("update-ref", "-d", gone)
			c.do(p, w)
			repo, work := p.landing(w, l.Base)
			for _, how := range []string{FF, Merge, PR, Squash} {
				if c.how != how && (c.how != "" || how == Squash) {
					continue
				}
				work.Unjudged = false
				_, err := work.Landing(t.Context(), repo, "refs/heads/main", how, "")
				if c.of == "" && err != nil || c.of != "" && (err == nil || !strings.Contains(err.Error(), " of "+c.of+", and undoes or changes again what that brought: b")) {
					t.Errorf("%s: %v", how, err)
				}
				if c.of != "" && err != nil && !strings.Contains(err.Error(), "or `sluice land x-1` for one commit") {
					t.Errorf("%s: it says %v", how, err)
				}
				work.Unjudged = true
				if _, err := work.Landing(t.Context(), repo, "refs/heads/main", how, ""); err != nil {
					t.Errorf("%s, with --unjudged: %v", how, err)
				}
			}
		})
	}
}

// TestLandingAfterAReset: if a person has reset the branch to before passed work, landing asks, and
// lands neither by itself.
func TestLandingAfterAReset(t *testing.T) {
	p, w, l := worked(t)
	repo, work := p.landing(w, l.Base)
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
		work.Passed, work.Judged, work.Unjudged = c.passed, true, false
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

// TestLandingOfWorkThatIsOnNoBranch: where the branch could not be moved to the newest passed work,
// landing names that work, and does not offer the earlier one as if it were all.
func TestLandingOfWorkThatIsOnNoBranch(t *testing.T) {
	p, w, l := worked(t)
	repo, work := p.landing(w, l.Base)
	passed := w.git("commit-tree", "-p", l.Base, "-m", "again", l.Base+"^{tree}")
	work.Passed, work.Judged = []Passed{{Content: passed, Own: true}, {Content: strings.Repeat("1", len(passed))}}, true
	_, err := work.Landing(t.Context(), repo, "refs/heads/main", Squash, "")
	if err == nil || !strings.Contains(err.Error(), "it was not moved to "+passed[:12]) || !strings.Contains(err.Error(), "merge "+passed[:12]) {
		t.Errorf("%v", err)
	}
}
