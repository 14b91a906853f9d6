// Package refs finds the commits and pull requests with which attempts report that they are done.
package refs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/stub"
	"sluice/internal/text"
	"sluice/internal/tree"
	"sluice/signals"
	"sluice/watcher"
)

// Options configures Refs. All but Git are required.
type Options struct {
	Layout  layout.Layout
	Notes   *health.Notes
	Git     *git.Repo // nil, or plain: nothing to look at
	Watcher *watcher.Watcher
	Poll    func() time.Duration                  // how often the forge is asked
	Own     func(key string) (tree.Private, bool) // a launch's own git folder
	Inside  func(tree.Private) tree.Inside        // how git runs there
	Logf    func(string, ...any)
	Now     func() time.Time
}

// Refs finds signals in one repo.
type Refs struct {
	layout.Layout
	*health.Notes
	opt Options

	mu      sync.Mutex
	stirred chan struct{} // closed when a ref may have changed, then replaced
}

// New returns the Refs of a repo.
func New(o Options) *Refs {
	return &Refs{Layout: o.Layout, Notes: o.Notes, opt: o, stirred: make(chan struct{})}
}

// Hint takes a name from the shared watcher's Hints; it ignores other repos.
func (r *Refs) Hint(name string) {
	if !r.opt.Git.Checkout() || name != r.opt.Git.CommonDir() {
		return
	}
	r.mu.Lock()
	close(r.stirred)
	r.stirred = make(chan struct{})
	r.mu.Unlock()
}

// Intervals and limits of the search for commits and pull requests.
const (
	refsEvery  = 2 * time.Second // without hints
	beginEvery = 200 * time.Millisecond
	maxCommits = 10_000 // examined at once
	maxTwins   = 20_000 // commits before the attempt that may have copies
	maxSubject = 1000
	maxPart    = 1 << 20 // of a stand-in's record
)

// Look looks for an attempt's commit or pull request until ctx ends.
func (r *Refs) Look(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	w := lookout{r: r, job: j, st: j.Spec.Step(j.Step), emit: emit, told: map[string]bool{}}
	if w.st != nil && w.st.Signal.Type == engine.SignalPull && job.StandsIn(j, w.st) {
		w.standIn(ctx)
		return nil
	}
	if !r.opt.Git.Checkout() || w.st == nil || j.Attempt == nil {
		r.Note(j.Key, "there is no git here to see its signal in")
		<-ctx.Done()
		return nil
	}
	for { // it is recorded before anything is launched or offered
		err := layout.Load(r.AttemptFile(j.Run, w.st.ID, j.Attempt.N, "begin"), &w.b)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			r.Note(j.Key, err.Error())
		}
		if !health.Wait(ctx, beginEvery) {
			return nil
		}
	}
	if w.st.Signal.Type == engine.SignalPull {
		w.pulls(ctx)
	} else {
		w.commits(ctx)
	}
	r.Note(j.Key, "")
	return nil
}

// lookout looks for one attempt's signal in git.
type lookout struct {
	r    *Refs
	job  job.Job
	st   *engine.Step
	b    tree.Begin
	emit func(engine.Event)
	told map[string]bool // reported commits and pull requests

	print string          // of the launch's own git folder, at the last look
	old   map[string]bool // authors of marked commits from before the attempt; nil = not looked up yet
}

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

// pullFrom returns the branch that the spec wants the pull request from; "" = the step's.
func (w *lookout) pullFrom() string {
	if w.st.Signal.Type == engine.SignalPull {
		return w.st.Signal.Value
	}
	return ""
}

// tips returns the refs on which the attempt's commits count: its worktree's HEAD and its branch,
// or all refs if it has neither of its own.
func (w *lookout) tips(refs map[string]string) map[string]string {
	out := map[string]string{}
	if from := w.pullFrom(); from != "" {
		if sha := refs["refs/heads/"+from]; sha != "" {
			out["refs/heads/"+from] = sha
		}
		return out
	}
	if !w.b.Own {
		return refs
	}
	for name, sha := range refs {
		if name == "refs/heads/"+w.b.Branch && w.b.Branch != "" || w.b.Top != "" && name == git.HeadPrefix+w.b.Top {
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
		branch = "refs/heads/" + name
	}
	list, cut, err := g.Commits(ctx, w.r.opt.Inside(g), branch, !w.b.Own && w.pullFrom() == "", slices.Collect(maps.Values(w.b.Refs)), maxCommits)
	slices.Reverse(list)
	return list, cut, err
}

// tell reports the marked ones of new commits.
func (w *lookout) tell(ctx context.Context, commits []git.Commit, cut bool) error {
	if cut {
		w.r.opt.Logf("%s: more than %d new commits: only the newest are looked at", w.job.Key, maxCommits)
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
			w.r.opt.Logf("%s: commit %.10s does not count: it is a double of one from before the attempt", w.job.Key, c.SHA)
			continue
		}
		subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
		w.emit(engine.CommitSeen{Run: w.job.Run, Step: w.st.ID, N: w.job.N, K: w.job.K, SHA: c.SHA, Author: author(c), Subject: text.Cut(subject, maxSubject, ""),
			Makers: makers(c)})
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

// pulls asks the forge every pr_poll, and at once when the process has ended.
func (w *lookout) pulls(ctx context.Context) {
	exited := false
	for {
		began := w.r.opt.Now()
		err := w.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		w.looked(began, err)
		next := w.r.opt.Now().Add(w.r.opt.Poll())
		for w.r.opt.Now().Before(next) {
			if !health.Wait(ctx, min(time.Second, max(time.Until(next), time.Millisecond))) {
				return
			}
			if !exited && w.gone() {
				exited = true
				break
			}
		}
	}
}

// standIn counts a stand-in's success as a pull request, without asking a forge.
func (w *lookout) standIn(ctx context.Context) {
	for !w.gone() {
		if !health.Wait(ctx, beginEvery) {
			return
		}
	}
	var end struct{ Code int }
	var part stub.Part
	dir := filepath.Join(w.r.Root, filepath.FromSlash(w.r.LaunchDir(w.job.Run, w.st.ID, w.job.N, w.job.K)))
	for name, to := range map[string]any{layout.ExitName: &end, stub.PartFile: &part} {
		data, _, err := atomicfile.OpenRegular(dir, name, maxPart)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			w.r.Note(w.job.Key, fmt.Sprintf("what its stand-in did: %v", err))
			end.Code = -1
		}
	}
	if end.Code == 0 && part.Signal == engine.StatusDone {
		w.emit(engine.PullSeen{Run: w.job.Run, Step: w.st.ID, N: w.job.N, K: w.job.K, Ref: "the pull request of a " + job.StandIn})
	}
	<-ctx.Done()
	w.r.Note(w.job.Key, "")
}

func (w *lookout) gone() bool {
	rel := w.r.LaunchDir(w.job.Run, w.st.ID, w.job.N, w.job.K)
	_, err := os.Lstat(filepath.Join(w.r.Root, filepath.FromSlash(rel), layout.ExitName))
	return err == nil
}

// ask looks for a pull request whose head is on the step's branch.
func (w *lookout) ask(ctx context.Context) error {
	pulls, err := w.r.Pulls(ctx)
	if err != nil {
		return err
	}
	refs, err := w.r.opt.Git.Refs(ctx)
	if err != nil {
		return err
	}
	heads := map[string]bool{}
	tips := w.tips(refs)
	commits, _, err := w.r.opt.Git.NewCommits(ctx, tips, slices.Collect(maps.Values(w.b.Refs)), maxCommits)
	if err != nil {
		return err
	}
	// it may have been pushed from inside
	if g, ok := w.r.opt.Own(w.job.Attempt.Key); ok && g.Keeps && layout.IsDir(g.Dir) {
		own, _, err := w.fresh(ctx, g)
		if err != nil {
			return err
		}
		commits = append(commits, own...)
	}
	for _, c := range commits {
		heads[c.SHA] = true
	}
	if w.b.Asked { // commits that are not new count if the pull request is
		for _, sha := range tips {
			heads[sha] = true
		}
		heads[w.b.Head] = w.pullFrom() == "" // of a held launch that may not be on a branch yet
	}
	for _, ref := range slices.Sorted(maps.Keys(pulls)) {
		sha := pulls[ref]
		if !heads[sha] || w.b.Pulls[ref] == sha || w.told[ref+sha] {
			continue
		}
		w.told[ref+sha] = true
		w.emit(engine.PullSeen{Run: w.job.Run, Step: w.st.ID, N: w.job.N, K: w.job.K, Ref: ref, SHA: sha})
	}
	return nil
}

const (
	remoteFile  = "remote"
	maxRemote   = 8 << 10
	remoteNamed = "origin"
)

// Pulls asks the forge for its pull requests. It records the forge's address at the first call, so
// that an agent cannot redirect it by changing the repo's configuration.
func (r *Refs) Pulls(ctx context.Context) (map[string]string, error) {
	url := ""
	data, _, err := atomicfile.OpenRegular(r.State, remoteFile, maxRemote)
	switch {
	case err == nil:
		url = string(data)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		if url, err = r.opt.Git.RemoteURL(ctx, remoteNamed); err != nil {
			return nil, err
		}
		if url == "" {
			return nil, fmt.Errorf("the repo has no remote %s to ask for pull requests: git remote add %s URL", remoteNamed, remoteNamed)
		}
		if err := atomicfile.WriteNew(filepath.Join(r.State, remoteFile), []byte(url), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return r.opt.Git.LsRemotePulls(ctx, url)
}
