package git

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// listed is our index in the shadow with only a few paths of a checkout. It is not among those of
// worktrees, where Forget would remove it.
type listed struct {
	r     *shadowGit
	top   string
	file  string
	paths int
}

// list creates an index of the old or the new side of changes, without submodules.
func (r *shadowGit) list(ctx context.Context, top string, changes []Change, old bool) (listed, error) {
	if err := r.keepShadow(ctx); err != nil {
		return listed{}, err
	}
	l := listed{r: r, top: top, file: filepath.Join(r.scratch, listMark+rand.Text())}
	var in strings.Builder
	for _, c := range changes {
		mode, sha := c.New, c.NewID
		if old {
			mode, sha = c.Old, c.OldID
		}
		if mode != modeNone && mode != ModeSubmodule {
			in.WriteString(indexLine(mode, sha, c.Path))
			l.paths++
		}
	}
	_, err := l.git(ctx, in.String(), "update-index", "-z", "--index-info")
	return l, err
}

// git runs a call on the index. git takes one that is gone for an empty one, and does nothing.
func (l listed) git(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	out, err := l.r.run(ctx, call{args: args, env: l.r.inShadowTree(l.top, l.file), dir: l.top,
		stdin: strings.NewReader(stdin),
		limit: listOutput, timeout: treeTime, codes: codesOf(args[0])})
	if err == nil && l.paths > 0 {
		_, err = os.Lstat(l.file)
	}
	return out, err
}

func (l listed) remove() error { return ignoreGone(os.Remove(l.file)) }

// Standing is the state of a checkout's files at paths where two commits differ.
type Standing struct {
	Old   []Change // equal to the old side
	Other []string // equal to neither side
}

// Stand compares the files at top with both sides. It skips submodules. No filter runs.
func (r *shadowGit) Stand(ctx context.Context, top string, changes []Change) (s Standing, err error) {
	_, top, err = r.gitDirOf(top)
	if err != nil {
		return s, err
	}
	notOld, err := r.differ(ctx, top, changes, true)
	if err != nil {
		return s, err
	}
	notNew, err := r.differ(ctx, top, changes, false)
	if err != nil {
		return s, err
	}
	for _, c := range changes {
		switch {
		case c.Submodule(), !notNew[c.Path]:
		case !notOld[c.Path]:
			s.Old = append(s.Old, c)
		default:
			s.Other = append(s.Other, c.Path)
		}
	}
	return s, nil
}

// differ returns the paths whose file differs from one side. A path that this side lacks must not
// exist.
func (r *shadowGit) differ(ctx context.Context, top string, changes []Change, old bool) (map[string]bool, error) {
	l, err := r.list(ctx, top, changes, old)
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	_, err = l.git(ctx, "", "update-index", "-q", "--refresh")
	var out []byte
	if err == nil {
		out, err = l.git(ctx, "", "diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
	}
	if err := errors.Join(err, l.remove()); err != nil {
		return nil, err
	}
	differs := setOf(names(out))
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	has := map[string]bool{}
	for _, c := range changes {
		has[c.Path] = old && !c.Added() || !old && !c.Deleted()
	}
	for _, c := range changes {
		if has[c.Path] {
			continue
		}
		there, err := occupied(root, c, has)
		if err != nil {
			return nil, err
		}
		differs[c.Path] = there
	}
	return differs, nil
}

// occupied reports whether something is in the place of a path that this side lacks: a file, a
// folder with files, or a file or link in place of one of its folders. What this side itself has
// there does not count.
func occupied(root *os.Root, c Change, has map[string]bool) (bool, error) {
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		info, err := root.Lstat(filepath.FromSlash(dir))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil && !notDir(err):
			return false, err
		case err == nil && !info.IsDir():
			return !has[dir], nil
		}
	}
	info, err := root.Lstat(filepath.FromSlash(c.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist) || notDir(err):
		return false, nil
	case err != nil:
		return false, err
	case info.IsDir():
		return foreign(root, c.Path, has)
	}
	return true, nil
}

// foreign reports whether a folder has a file that this side lacks.
func foreign(root *os.Root, dir string, has map[string]bool) (found bool, err error) {
	err = fs.WalkDir(root.FS(), dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !has[p] {
			found, err = true, fs.SkipAll
		}
		return err
	})
	return found, err
}

// WriteFiles writes the new side of changes into a checkout. Deletions come first, with folders
// that become empty. It overwrites existing files: call Stand before. No filter runs.
func (r *shadowGit) WriteFiles(ctx context.Context, top string, changes []Change) error {
	_, top, err := r.gitDirOf(top)
	if err != nil {
		return err
	}
	if err := removeFiles(top, changes); err != nil {
		return err
	}
	l, err := r.list(ctx, top, changes, false)
	if err == nil {
		_, err = l.git(ctx, "", "checkout-index", "--all", "--force", "--quiet")
	}
	return errors.Join(err, l.remove(), settle(top))
}

func removeFiles(top string, changes []Change) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, c := range changes {
		if !c.Deleted() || c.Submodule() {
			continue
		}
		if err := ignoreGone(root.Remove(filepath.FromSlash(c.Path))); err != nil && !notDir(err) {
			return err
		}
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			if root.Remove(filepath.FromSlash(dir)) != nil {
				break // it is not empty
			}
		}
	}
	return nil
}

// notDir reports whether a folder in a path is a file.
func notDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
