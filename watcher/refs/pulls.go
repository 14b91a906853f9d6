package refs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/stub"
	"sluice/internal/text"
)

// pulls asks the forge every pr_poll, and at once when the process has ended.
func (w *lookout) pulls(ctx context.Context) {
	end, forget := w.r.endOf(layout.AttemptName(w.job.Run, w.st.ID, w.job.N))
	defer forget()
	for {
		began := w.r.opt.Now()
		err := w.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		w.looked(began, err)
		t := time.NewTimer(w.r.opt.Poll())
		select {
		case <-ctx.Done():
		case <-end:
		case <-t.C:
		}
		t.Stop()
	}
}

// Ended takes the end of an attempt's process: its pull request is looked for at once.
func (r *Refs) Ended(run, step string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := r.ends[layout.AttemptName(run, step, n)]; end != nil {
		select {
		case end <- struct{}{}:
		default: // it is known
		}
	}
}

// endOf returns a channel with what Ended takes of an attempt, until forget.
func (r *Refs) endOf(attempt string) (end chan struct{}, forget func()) {
	end = make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[attempt] = end
	return end, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ends[attempt] == end { // not that of a later launch
			delete(r.ends, attempt)
		}
	}
}

// standIn counts a stand-in's success as a pull request, without asking a forge.
func (w *lookout) standIn(ctx context.Context) {
	var end struct{ Code int }
	var part stub.Part
	dir := w.r.Path(w.r.LaunchDir(w.job.Run, w.st.ID, w.job.N, w.job.K))
	for !layout.Ended(dir) {
		if !health.Wait(ctx, beginEvery) {
			return
		}
	}
	for name, to := range map[string]any{layout.ExitName: &end, stub.PartFile: &part} {
		data, _, err := atomicfile.OpenRegular(dir, name, maxPart)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			w.r.Note(w.job.Key, fmt.Sprintf("its stub's pull request: %v", err))
			end.Code = -1
		}
	}
	if end.Code == 0 && part.Signal == engine.StatusDone {
		w.emit(engine.PullSeen{Run: w.job.Run, Step: w.st.ID, N: w.job.N, K: w.job.K,
			Ref: "the pull request of a " + job.StandIn})
	}
	<-ctx.Done()
	w.r.Note(w.job.Key, "")
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

// Pulls asks the forge for its pull requests, at the recorded address: an agent cannot turn the look away.
func (r *Refs) Pulls(ctx context.Context) (map[string]string, error) {
	known, err := r.recorded()
	if err == nil && known == "" {
		known, err = r.Remote(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r.opt.Git.LsRemotePulls(ctx, known)
}

// recorded returns the address that was recorded, "" = none.
func (r *Refs) recorded() (string, error) {
	data, _, err := atomicfile.OpenRegular(r.State, remoteFile, maxRemote)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(data), err
}

// Remote returns the forge's address. It records it at the first call, so that an agent cannot
// redirect it by changing the repo's configuration: after a change, a person says which counts.
func (r *Refs) Remote(ctx context.Context) (string, error) {
	file := filepath.Join(r.State, remoteFile)
	known, err := r.recorded()
	if err != nil {
		return "", err
	}
	url, err := r.opt.Git.RemoteURL(ctx, remoteNamed)
	switch {
	case known != "" && (err != nil || url == "" || url == known):
		return known, nil
	case known != "":
		return "", fault.New(fmt.Sprintf("if you changed it: rm %s; else git remote set-url %s %s", text.Typed(file),
			remoteNamed, git.ShownURL(known)), "the remote %s is %s now, and the runs here work with %s", remoteNamed,
			git.ShownURL(url), git.ShownURL(known))
	case err != nil:
		return "", err
	case url == "":
		return "", fault.New(fmt.Sprintf("git remote add %s ADDRESS", remoteNamed), "the repo has no remote named %s",
			remoteNamed)
	}
	if err := atomicfile.WriteNew(file, []byte(url), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return url, nil
}
