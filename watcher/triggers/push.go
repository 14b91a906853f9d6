package triggers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/job"
)

// remoteEvery is between two looks at the remote.
const remoteEvery = time.Minute

// maxTold is how many reported commits are kept in mind.
const maxTold = 10_000

// ownBranches is what the branches of runs begin with.
const ownBranches = "sluice/"

// pushes reports commits that arrive on branches, here and at the remote.
func (t *Triggers) pushes(ctx context.Context, j job.Job, of *engine.Trigger, tell func(engine.Fired)) {
	if !t.opt.Git.Checkout() {
		t.Note(j.Key, "there is no git here to see pushes in")
		return
	}
	l := &tipLook{t: t, of: of, tell: tell, told: map[string]bool{}, tips: map[string]string{}}
	for branch, sha := range j.Tips {
		l.tips[branch], l.told[tip{branch, sha}.key()] = sha, true
	}
	var both sync.WaitGroup
	defer both.Wait()
	if len(of.Paths) == 0 { // what was not fetched cannot be compared
		both.Go(func() { l.remote(ctx, j.Key+"/remote") })
	}
	refs := t.opt.Watcher.WatchRefs(t.opt.Git)
	defer refs.Close()
	for {
		stirred := t.stir()
		now, changed, err := refs.Poll(ctx)
		if ctx.Err() != nil {
			return
		}
		t.NoteError(j.Key, err)
		if err == nil && changed {
			l.see(ctx, branchesOf(now))
		}
		if !wait(ctx, stirred, t.opt.Every()) {
			return
		}
	}
}

// presentTips returns the keys of the commits that branches have here.
func (t *Triggers) presentTips(ctx context.Context, of *engine.Trigger) (keys []string, err error) {
	if !t.opt.Git.Checkout() {
		return nil, nil
	}
	refs, err := t.opt.Git.Refs(ctx)
	if err != nil {
		return nil, err
	}
	tips := branchesOf(refs)
	if len(of.Paths) == 0 {
		there, err := t.remoteTips(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot ask the remote which commits are there already: %w", err)
		}
		tips = append(tips, there...)
	}
	for _, p := range tips {
		if t.fits(of, p.branch) {
			keys = append(keys, p.key())
		}
	}
	return keys, nil
}

// tip is a branch's commit.
type tip struct{ branch, sha string }

func (p tip) key() string { return p.branch + "@" + p.sha }

// sorted returns tips by branch, each once.
func sorted(tips []tip) []tip {
	slices.SortFunc(tips, func(a, b tip) int { return strings.Compare(a.key(), b.key()) })
	return slices.Compact(tips)
}

// branchesOf returns the branches of refs, those of remotes too, sorted.
func branchesOf(refs map[string]string) (out []tip) {
	for ref, sha := range refs {
		name, ok := strings.CutPrefix(ref, git.BranchRefs)
		if rest, remote := strings.CutPrefix(ref, "refs/remotes/"); remote {
			_, name, ok = strings.Cut(rest, "/")
			ok = ok && name != "HEAD"
		}
		if ok {
			out = append(out, tip{name, sha})
		}
	}
	return sorted(out)
}

// fits reports whether a branch is one of the trigger's. Those of runs are none.
func (t *Triggers) fits(of *engine.Trigger, branch string) bool {
	if strings.HasPrefix(branch, ownBranches) {
		return false
	}
	return len(of.Branches) == 0 ||
		slices.ContainsFunc(of.Branches, func(g string) bool { return t.opt.Matches(g, branch) })
}

// remoteTips asks the remote for its branches. A repo without one has none there.
func (t *Triggers) remoteTips(ctx context.Context) (out []tip, err error) {
	if url, err := t.opt.Git.RemoteURL(ctx, "origin"); err != nil || url == "" {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askMost)
	defer cancel()
	address, err := t.opt.Address(ctx)
	if err != nil {
		return nil, err
	}
	there, err := git.LsRemoteBranches(ctx, t.opt.Git, address)
	for branch, sha := range there {
		out = append(out, tip{branch, sha})
	}
	return sorted(out), err
}

// tipLook compares the commits of branches with those that were reported.
type tipLook struct {
	t    *Triggers
	of   *engine.Trigger
	tell func(engine.Fired)

	mu   sync.Mutex
	told map[string]bool   // by key
	tips map[string]string // branch -> the commit that was reported last
}

// remote looks at the remote until ctx ends.
func (l *tipLook) remote(ctx context.Context, what string) {
	for {
		tips, err := l.t.remoteTips(ctx)
		if ctx.Err() != nil {
			return
		}
		l.t.NoteError(what, err)
		l.see(ctx, tips)
		if !wait(ctx, nil, remoteEvery) {
			return
		}
	}
}

// see reports commits that are new on their branches.
func (l *tipLook) see(ctx context.Context, tips []tip) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range tips {
		if !l.t.fits(l.of, p.branch) || l.told[p.key()] {
			continue
		}
		skip := l.unchanged(ctx, p)
		if ctx.Err() != nil {
			return
		}
		if len(l.told) >= maxTold {
			clear(l.told)
		}
		l.told[p.key()], l.tips[p.branch] = true, p.sha
		l.tell(engine.Fired{Key: p.key(), Skip: skip,
			Values: map[string]any{"push": map[string]any{"branch": p.branch, "commit": p.sha}}})
	}
}

// unchanged returns why a commit does not count: it changes none of the trigger's paths. A branch
// that is new changes all.
func (l *tipLook) unchanged(ctx context.Context, p tip) string {
	before := l.tips[p.branch]
	if len(l.of.Paths) == 0 || before == "" || before == p.sha {
		return ""
	}
	changes, err := l.t.opt.Git.ChangesBetween(ctx, before, p.sha)
	if err != nil { // the commit before is gone
		l.t.Logf("trigger push: %s: %v", p.key(), err)
		return ""
	}
	for _, c := range changes {
		if slices.ContainsFunc(l.of.Paths, func(g string) bool { return l.t.opt.Matches(g, c.Path) }) {
			return ""
		}
	}
	return "it changes none of the paths since " + before
}
