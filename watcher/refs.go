package watcher

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/git"
)

// maxRefDirs bounds how many folders of a git folder are watched per repo.
const maxRefDirs = 256

// RefWatch follows the refs of one repo, including the HEADs of its worktrees. The truth is what
// git lists when Poll asks; the git folder's folders are watched, as far as possible, only to ask
// sooner. Packed and other kinds of refs therefore need no code here. Use it from one goroutine at
// a time.
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

// Key returns the name with which Hints suggests a Poll: the repo's common git folder.
func (r *RefWatch) Key() string { return r.key }

// Poll asks git for the refs. changed is true the first time and when they differ from the previous
// Poll. refs is always complete and must not be modified.
func (r *RefWatch) Poll(ctx context.Context) (refs map[string]string, changed bool, err error) {
	// Watch first, then look, so that one of them sees any write in between. Folders come and go
	// with branches: one with a slash has its own folder, which a pack-refs removes.
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

// arm watches the folders in which a commit leaves a trace. It ignores errors: Poll is what counts.
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
		// Adding it again is harmless, and restores a watch that went with its folder.
		_ = r.w.source.Add(dir)
	}
	r.dirs = wanted
}

func (w *Watcher) dropRefDir(dir string, r *RefWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refDirs[dir] = slices.DeleteFunc(w.refDirs[dir], func(other *RefWatch) bool { return other == r })
	if len(w.refDirs[dir]) == 0 {
		delete(w.refDirs, dir)
	}
}

// refDirs returns the folders of a git folder that a commit, a new branch or a new worktree writes
// to.
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
	entries, _ := os.ReadDir(trees) // there may be none
	for _, e := range entries {
		add(filepath.Join(trees, e.Name()))
		add(filepath.Join(trees, e.Name(), "logs"))
	}
	_ = filepath.WalkDir(filepath.Join(common, "refs"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(dirs) >= maxRefDirs:
			return fs.SkipAll
		case d.IsDir():
			dirs[path] = true
		}
		return nil
	})
	return dirs
}

// isGitNoise reports whether a file of a git folder changes without a ref having changed.
func isGitNoise(base string) bool {
	switch base {
	case "index", "COMMIT_EDITMSG", "FETCH_HEAD", "gc.pid", "description", "config":
		return true
	}
	return strings.HasSuffix(base, ".lock")
}
