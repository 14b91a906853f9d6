package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

// ErrNoCommit is returned if the repo has no commit yet to make a worktree of.
var ErrNoCommit = errors.New("no commit yet")

// AddWorktree ensures that there is a checkout at path. An existing folder is used as it is,
// whatever its content: made is false. Otherwise a linked worktree of branch is created. A missing
// branch starts at the HEAD of the checkout the repo was opened in. Nothing is pruned, forced or
// taken from another worktree: an obstacle is an error.
//
// Files are written without filters. What Git LFS or another filter keeps outside the repo is the
// committed pointer; whoever may run `git lfs pull` in the worktree fills it in. Submodules stay
// empty.
func (r *Repo) AddWorktree(ctx context.Context, path, branch string) (made bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("add worktree %s: %w", path, err)
		}
	}()
	if !filepath.IsAbs(path) {
		return false, errors.New("not an absolute path")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, nil
	case err == nil:
		return false, fault.New("move it away", "a file has this name")
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	ref := BranchRefs + branch
	if strings.HasPrefix(branch, "-") {
		return false, fmt.Errorf("%.80q is not a valid name for a branch", branch)
	}
	if err := checkRef(ref); err != nil {
		return false, fmt.Errorf("branch: %w", err)
	}
	if err := r.keepOut(ctx, path); err != nil {
		return false, err
	}
	stage, err := r.stage(path)
	if err != nil {
		return false, err
	}
	if stage == nil {
		return r.addAt(ctx, path, branch, ref)
	}
	defer stage.close()
	if _, err := r.addAt(ctx, stage.path, branch, ref); err != nil {
		return false, err
	}
	err = stage.move(path)
	if errors.Is(err, syscall.EXDEV) {
		stage.close()
		return r.addAt(ctx, path, branch, ref)
	}
	return err == nil, err
}

// keepOut adds a worktree inside the person's checkout to the repo's own ignore list: otherwise
// `git add -A` would add it as a nested repository. It leaves a list alone that is not a plain
// file.
func (r *Repo) keepOut(ctx context.Context, path string) error {
	rel, err := filepath.Rel(r.top, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return nil
	}
	inside := filepath.ToSlash(rel) + "/x"
	ignored, err := r.Ignored(ctx, r.top, []string{inside})
	if err != nil || ignored[inside] {
		return err
	}
	r.trees.Lock()
	defer r.trees.Unlock()
	dir := filepath.Join(r.common, "info")
	data, _, err := atomicfile.OpenRegular(dir, "exclude", maxExclude)
	if ignoreGone(err) != nil {
		return nil
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	data = append(data, IgnoreFolder(filepath.ToSlash(rel))+"\n"...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, "exclude"), data, 0o644)
}

// addAt creates the worktree at path and writes its files.
func (r *Repo) addAt(ctx context.Context, path, branch, ref string) (made bool, err error) {
	args, err := r.addArgs(ctx, path, branch, ref)
	if err != nil {
		return false, err
	}
	gitDir, _, err := r.gitDirOf(r.top)
	if err != nil {
		return false, err
	}
	r.trees.Lock()
	_, err = r.inRepo(ctx, gitDir, r.top, call{args: args, dir: r.top})
	r.trees.Unlock()
	if err != nil {
		return false, addError(err)
	}
	if err := r.checkout(ctx, path); err != nil {
		return true, fmt.Errorf("write the files: %w", err)
	}
	for _, dir := range []string{r.common, path} {
		if err := settle(dir); err != nil {
			return true, fmt.Errorf("sync: %w", err)
		}
	}
	return true, nil
}

// FillWorktree rewrites all files of the linked worktree at path: for one that a killed AddWorktree
// left.
func (r *Repo) FillWorktree(ctx context.Context, path string) error {
	if _, own, err := r.gitDirOf(path); err != nil || own != path {
		return fmt.Errorf("fill worktree %s: it is not a worktree: %w", path, errors.Join(err, fs.ErrInvalid))
	}
	if err := r.checkout(ctx, path); err != nil {
		return fmt.Errorf("fill worktree %s: write the files: %w", path, err)
	}
	return nil
}

// addArgs returns the command line, depending on what the worktree starts from.
func (r *Repo) addArgs(ctx context.Context, path, branch, ref string) ([]string, error) {
	args := []string{"worktree", "add", "--quiet", "--no-checkout", "--no-track"}
	tip, err := r.TipOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	if tip.SHA != "" {
		return append(args[:len(args)-1], "--", path, branch), nil
	}
	head, err := r.Head(ctx, r.top)
	if err != nil {
		return nil, err
	}
	if head == "" {
		return nil, fault.New("make a first one with git commit", "%w", ErrNoCommit)
	}
	return append(args, "-b", branch, "--", path, head), nil
}

// addError adds what to do about common refusals.
func addError(err error) error {
	hint := ""
	if cmd, ok := errors.AsType[*CommandError](err); ok {
		switch {
		case strings.Contains(cmd.Stderr, "missing but already registered"):
			hint = ": if its folder was deleted, run git worktree prune"
		case strings.Contains(cmd.Stderr, "already checked out"),
			strings.Contains(cmd.Stderr, "already used by worktree"):
			hint = ": name another branch, or remove that worktree"
		case strings.Contains(cmd.Stderr, "cannot lock ref"):
			hint = ": a branch of that name, or of a part of it, is in the way"
		}
	}
	return fmt.Errorf("%w%s", err, hint)
}

// checkout writes the files of the new worktree's HEAD and its index. It runs in the shadow, where
// no filter is defined.
func (r *Repo) checkout(ctx context.Context, path string) error {
	gitDir, top, err := r.gitDirOf(path)
	if err != nil {
		return err
	}
	head, err := r.headOf(ctx, gitDir, top)
	if err != nil {
		return err
	}
	env := []string{"GIT_WORK_TREE=" + top, "GIT_INDEX_FILE=" + filepath.Join(gitDir, indexFile)}
	for _, args := range [][]string{{"read-tree", head}, {"checkout-index", "--all", "--force", "--index", "--quiet"}} {
		if _, err := r.shadow(ctx, call{args: args, env: env, dir: top, timeout: treeTime}); err != nil {
			return err
		}
	}
	return nil
}

// CloseWorktree removes a linked worktree: all its files, and git's entry. Its branch stays.
func (r *Repo) CloseWorktree(ctx context.Context, path string) error {
	fail := func(err error) error { return fmt.Errorf("close worktree %s: %w", path, err) }
	admin, top, err := r.gitDirOf(path)
	switch {
	case err != nil:
		return fail(err)
	case admin == r.common:
		return fail(errors.New("it is the main checkout"))
	}
	if _, err := os.Lstat(filepath.Join(admin, "locked")); err == nil {
		return fail(fault.New("run git worktree unlock", "it is locked"))
	}
	r.trees.Lock()
	defer r.trees.Unlock()
	// Files first: a kill in between leaves a worktree that git calls prunable.
	if err := errors.Join(os.RemoveAll(top), os.RemoveAll(admin)); err != nil {
		return fail(err)
	}
	return ctx.Err()
}
