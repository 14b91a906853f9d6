package refs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/tree"
	"sluice/signals"
)

// stir returns a channel that is closed when a ref may have changed.
func (r *Refs) stir() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stirred
}

func (w *lookout) commits(ctx context.Context) {
	refs := w.r.opt.Watcher.WatchRefs(w.r.opt.Git)
	defer refs.Close()
	again := false // the last look failed
	for {
		stirred, began := w.r.stir(), w.r.opt.Now()
		now, changed, err := refs.Poll(ctx)
		if err == nil && (changed || again) {
			err = w.look(ctx, now)
			again = err != nil
		}
		if err == nil {
			err = w.lookInside(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		w.looked(began, err)
		t := time.NewTimer(refsEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-stirred:
		case <-t.C:
		}
		t.Stop()
	}
}

// looked records the end of a look, or its error.
func (w *lookout) looked(began time.Time, err error) {
	if err != nil {
		w.r.Note(w.job.Key, err.Error())
		return
	}
	w.r.Note(w.job.Key, "")
	w.emit(engine.Polled{Run: w.job.Run, Step: w.job.Step, N: w.job.N, K: w.job.K, Began: began})
}

// tips returns the refs on which the attempt's commits count: its worktree's HEAD and its branch,
// or all refs if it has neither of its own.
func (w *lookout) tips(refs map[string]string) map[string]string {
	out := map[string]string{}
	if from := w.pullFrom(); from != "" {
		if sha := refs[git.BranchRefs+from]; sha != "" {
			out[git.BranchRefs+from] = sha
		}
		return out
	}
	if !w.b.Own {
		return refs
	}
	for name, sha := range refs {
		if name == git.BranchRefs+w.b.Branch && w.b.Branch != "" || w.b.Top != "" && name == git.HeadPrefix+w.b.Top {
			out[name] = sha
		}
	}
	return out
}

// look examines the commits that are new since the attempt began.
func (w *lookout) look(ctx context.Context, refs map[string]string) error {
	before := slices.Collect(maps.Values(w.b.Refs))
	commits, cut, err := w.r.opt.Git.NewCommits(ctx, w.tips(refs), before, maxCommits)
	if err != nil {
		return err
	}
	return w.tell(ctx, commits, cut)
}

// lookInside does the same in the launch's own git folder: until the launch ends, its commits are
// in no other.
func (w *lookout) lookInside(ctx context.Context) error {
	g, ok := w.r.opt.Own(w.job.Attempt.Key)
	if !ok || !g.Keeps || !layout.IsDir(g.Dir) {
		return nil
	}
	now := g.Print()
	if now == w.print && now != "" {
		return nil
	}
	commits, cut, err := w.fresh(ctx, g)
	if err == nil {
		err = w.tell(ctx, commits, cut)
	}
	if err == nil {
		w.print = now
	}
	return err
}

// fresh lists the commits in a launch's own git folder that may be its signal.
func (w *lookout) fresh(ctx context.Context, g tree.Private) ([]git.Commit, bool, error) {
	branch, name := "", cmp.Or(w.pullFrom(), w.b.Branch)
	if name != "" {
		branch = git.BranchRefs + name
	}
	list, cut, err := g.Commits(ctx, w.r.opt.Inside(g), branch, !w.b.Own && w.pullFrom() == "",
		slices.Collect(maps.Values(w.b.Refs)), maxCommits)
	slices.Reverse(list)
	return list, cut, err
}

// tell reports the marked ones of new commits.
func (w *lookout) tell(ctx context.Context, commits []git.Commit, cut bool) error {
	if cut {
		w.r.Logf("%s: more than %d new commits: only the newest are looked at", w.job.Key, maxCommits)
	}
	for _, c := range commits {
		if w.told[c.SHA] || !signals.Marker(c.Message, w.st.Signal.Value) {
			continue
		}
		double, err := w.double(ctx, c)
		if err != nil {
			return err
		}
		w.told[c.SHA] = true
		if double {
			w.r.Logf("%s: commit %.10s does not count: it is a double of one from before the attempt", w.job.Key, c.SHA)
			continue
		}
		subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
		w.emit(engine.CommitSeen{Run: w.job.Run, Step: w.st.ID, N: w.job.N, K: w.job.K, SHA: c.SHA, Author: author(c),
			Subject: text.Cut(subject, maxSubject, ""),
			Makers:  makers(c)})
	}
	return nil
}

// author returns what a cherry-picked or amended copy shares with its original.
func author(c git.Commit) string {
	return fmt.Sprintf("%s|%s|%d", text.Cut(c.AuthorName, 200, ""), text.Cut(c.AuthorEmail, 200, ""), c.AuthorDate.Unix())
}

// makers returns the names in a commit of those who made it.
func makers(c git.Commit) []string {
	var out []string
	for _, n := range []string{c.AuthorName, c.AuthorEmail, c.CommitterName, c.CommitterEmail} {
		if n = text.Cut(n, 200, ""); n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// double reports whether the commit is a copy of a marked one from before the attempt.
func (w *lookout) double(ctx context.Context, c git.Commit) (bool, error) {
	if w.old == nil {
		commits, _, err := w.r.opt.Git.NewCommits(ctx, w.b.Refs, nil, maxTwins)
		if err != nil {
			return false, err
		}
		w.old = map[string]bool{}
		for _, o := range commits {
			if signals.Marker(o.Message, w.st.Signal.Value) {
				w.old[author(o)] = true
			}
		}
	}
	return w.old[author(c)], nil
}

// pullFrom returns the branch that the spec wants the pull request from; "" = the step's.
func (w *lookout) pullFrom() string {
	if w.st.Signal.Type == engine.SignalPull {
		return w.st.Signal.Value
	}
	return ""
}
