package watcher

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/git"
)

// maxRefDirs bounds how many folders of a git folder are watched for one repo.
const maxRefDirs = 256

// RefWatch follows the refs of one repo, the HEADs of its worktrees included. The truth is what git lists
// when Poll asks it; the folders of the git folder are watched only to ask sooner, as far as they can be:
// packed and other kinds of refs need no code here. One goroutine at a time uses it.
type RefWatch struct {
	w    *Watcher
	repo *git.Repo
	key  string
	last map[string]string
	dirs map[string]bool
}

// WatchRefs follows the refs of repo. Close it when nothing waits for a commit any more.
func (w *Watcher) WatchRefs(repo *git.Repo) *RefWatch {
	r := &RefWatch{w: w, repo: repo, key: repo.CommonDir(), dirs: map[string]bool{}}
	r.arm()
	return r
}

// Key is the name under which Hints says that it is worth while to Poll: the repo's common git folder.
func (r *RefWatch) Key() string { return r.key }

// Poll asks git for the refs. changed is true at the first time and where they differ from those that Poll
// gave before; refs are all that there are, in any case, and must not be written to.
func (r *RefWatch) Poll(ctx context.Context) (refs map[string]string, changed bool, err error) {
	// First the watch, then the look: folders come and go with branches (a slashed one has its own, which
	// a pack-refs removes), and what is written between the two must be seen by one of them.
	r.arm()
	refs, err = r.repo.Refs(ctx)
	if err != nil {
		return nil, false, err
	}
	if r.last != nil && maps.Equal(refs, r.last) {
		return r.last, false, nil
	}
	r.last = refs
	return refs, true, nil
}

// Close ends the watch of the git folder.
func (r *RefWatch) Close() {
	r.w.arming.Lock()
	defer r.w.arming.Unlock()
	for dir := range r.dirs {
		r.w.dropRefDir(dir, r)
		r.w.release(dir)
	}
	r.dirs = map[string]bool{}
}

// arm watches the folders in which a commit leaves a trace. It fails silently: Poll is what counts.
func (r *RefWatch) arm() {
	r.w.arming.Lock()
	defer r.w.arming.Unlock()
	if r.w.source == nil {
		return
	}
	wanted := refDirs(r.key)
	for dir := range r.dirs {
		if !wanted[dir] {
			r.w.dropRefDir(dir, r)
			r.w.release(dir)
		}
	}
	for dir := range wanted {
		if !r.dirs[dir] {
			r.w.mu.Lock()
			r.w.refDirs[dir] = append(r.w.refDirs[dir], r)
			r.w.mu.Unlock()
		}
		// Adding what is watched already changes nothing, and mends a watch that went with its folder.
		if err := r.w.source.Add(dir); err != nil {
			continue
		}
	}
	r.dirs = wanted
}

func (w *Watcher) dropRefDir(dir string, r *RefWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rest []*RefWatch
	for _, other := range w.refDirs[dir] {
		if other != r {
			rest = append(rest, other)
		}
	}
	if len(rest) == 0 {
		delete(w.refDirs, dir)
		return
	}
	w.refDirs[dir] = rest
}

// refDirs are the folders of a git folder that a commit, a new branch or a new worktree writes to.
func refDirs(common string) map[string]bool {
	dirs := map[string]bool{common: true}
	add := func(dir string) {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && len(dirs) < maxRefDirs {
			dirs[dir] = true
		}
	}
	add(filepath.Join(common, "logs"))
	add(filepath.Join(common, "reftable"))
	trees := filepath.Join(common, "worktrees")
	add(trees)
	if entries, err := os.ReadDir(trees); err == nil {
		for _, e := range entries {
			add(filepath.Join(trees, e.Name()))
			add(filepath.Join(trees, e.Name(), "logs"))
		}
	}
	err := filepath.WalkDir(filepath.Join(common, "refs"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(dirs) >= maxRefDirs:
			return fs.SkipAll
		case d.IsDir():
			dirs[path] = true
		}
		return nil
	})
	if err != nil {
		return dirs
	}
	return dirs
}

// isGitNoise tells files that change in a git folder without a ref having changed.
func isGitNoise(base string) bool {
	switch base {
	case "index", "COMMIT_EDITMSG", "FETCH_HEAD", "gc.pid", "description", "config":
		return true
	}
	return strings.HasSuffix(base, ".lock")
}
