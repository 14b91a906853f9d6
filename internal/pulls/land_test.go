package pulls_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/pulls"
	"sluice/internal/tree"
	"sluice/tools/conform"
	"sluice/tools/forgestub"
)

// TestLand: a landing waits for a forge that is away, and what a person has to do about any other
// trouble is said with the way to land again.
func TestLand(t *testing.T) {
	conform.Rule(t, "12-forge land", "a landing waits for a forge that is away; where it fails, it says why and what to do")
	spoil := func(status, times int) func(*rig) {
		return func(r *rig) { r.f.Spoil(forgestub.Fault{Path: "pulls", Status: status, Times: times}) }
	}
	hook := func(r *rig) {
		file := filepath.Join(r.f.Bare, "hooks", "pre-receive")
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho 'protected branch hook declined' >&2\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	again := "then this can be done again: sluice land x-1 --pr"
	for name, c := range map[string]struct {
		before  func(*rig)
		why, do string // nothing: it lands
		unasked bool   // there is no pull request
		gone    bool   // there is no branch
	}{
		"away for a while": {before: spoil(503, 3)},
		"away":             {before: spoil(503, 0), why: "is away (HTTP 503)", do: again, unasked: true},
		"limited":          {before: spoil(429, 0), why: "has had enough requests", do: again, unasked: true},
		"not logged in":    {before: spoil(401, 0), why: "does not accept gh's login", do: "gh auth login --hostname", unasked: true},
		"forbidden":        {before: spoil(403, 0), why: "forbids", do: "gh auth refresh", unasked: true},
		"missing":          {before: spoil(404, 0), why: "knows no", do: "git remote get-url origin", unasked: true},
		"protected": {before: hook, why: "protected branch hook declined",
			do: "check that you may push there, then `sluice land x-1 --pr` again", unasked: true, gone: true},
		"pushed over": {before: func(r *rig) { r.theirs() }, why: "which sluice did not push", do: "put the run's commit back",
			unasked: true},
		"closed by somebody": {before: func(r *rig) { r.landed(t); r.f.Reject(1, "carl") }, why: "pull request #1 is closed",
			do: "open it again there"},
		"merged by somebody": {before: func(r *rig) {
			r.landed(t)
			r.f.Merge(1, "bob")
			r.git("push", "-q", r.f.Bare, ":refs/heads/"+branch) // as forges do after a merge
		}, gone: true},
		"landed before": {before: func(r *rig) { r.landed(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.open(func(o *pulls.Options) {
				o.Wait = func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil }
			})
			r.commit("work")
			c.before(r)
			err := r.land(t)
			var s *tree.Stuck
			switch {
			case c.why == "" && err != nil:
				t.Error(err)
			case c.why != "" && (!errors.As(err, &s) || !strings.Contains(s.Why, c.why) || !strings.Contains(s.Do, c.do)):
				t.Errorf("%v", err)
			}
			if has := r.git("ls-remote", r.f.Bare, "refs/heads/"+branch) != ""; has == c.gone {
				t.Errorf("the branch is there: %t", has)
			}
			if n := len(r.f.Pulls()); n > 1 || (n == 0) != c.unasked {
				t.Errorf("%d pull requests", n)
			}
		})
	}
}

func (r *rig) land(t *testing.T) error {
	j := r.job("GB", r.git("rev-parse", "HEAD"), 1)
	return r.p.Land(t.Context(), j, tree.Work{Run: "x-1", Branch: branch},
		tree.Landing{Run: "x-1", Tip: r.git("rev-parse", "HEAD"), Onto: "refs/heads/main", Message: "Dates"})
}

func (r *rig) landed(t *testing.T) {
	if err := r.land(t); err != nil {
		t.Fatal(err)
	}
}

// theirs has somebody else push a commit to the run's branch.
func (r *rig) theirs() string {
	mine := r.dir
	r.dir = r.t.TempDir() // in a clone of somebody else's
	defer func() { r.dir = mine }()
	r.git("clone", "-q", r.f.Bare, ".")
	commit := r.commit("theirs")
	r.git("push", "-q", "-f", "origin", "HEAD:refs/heads/"+branch)
	return commit
}
