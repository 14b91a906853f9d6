package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
)

// unfinished is a file that git keeps during a person's unfinished operation, and how to finish it.
type unfinished struct{ file, what, end string }

// underway lists operations of a checkout whose HEAD is the branch.
func underway() []unfinished {
	return []unfinished{
		{"MERGE_HEAD", "merge", "git merge --continue or --abort there"},
		{"CHERRY_PICK_HEAD", "cherry-pick", "git cherry-pick --continue or --abort there"},
		{"REVERT_HEAD", "revert", "git revert --continue or --abort there"},
	}
}

// detours lists operations with HEAD elsewhere, in which git records the branch to return to.
func detours() []unfinished {
	return []unfinished{
		{"rebase-merge/head-name", "rebased", "git rebase --continue or --abort"},
		{"rebase-apply/head-name", "rebased", "git rebase --continue or --abort"},
		{"BISECT_START", "bisected", "git bisect reset"},
	}
}

// maxBranchFile limits a file with a branch's name.
const maxBranchFile = 8 << 10

// isHere reports whether a branch is checked out at top, and why it must not be moved, here or elsewhere.
func isHere(ctx context.Context, repo *git.Repo, branch, top string) (here bool, why string, err error) {
	for range lists {
		here, why, err = look(ctx, repo, branch, top)
		if !errors.Is(err, git.ErrNotWorktree) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return here, why, err
}

// lists is how often the worktrees are listed: one that is being made, of another run, is moved to its
// place after it was listed.
const lists = 20

// look is isHere by one list.
func look(ctx context.Context, repo *git.Repo, branch, top string) (here bool, why string, err error) {
	trees, err := repo.Worktrees(ctx)
	if err != nil {
		return false, "", err
	}
	real, err := filepath.EvalSymlinks(top)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, "", err
	}
	for _, t := range trees {
		if t.Bare || t.Prunable != "" {
			continue
		}
		path, err := filepath.EvalSymlinks(t.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, "", err
		}
		out := t.Branch == branch
		if branch == git.Detached {
			if out = path == real; !out {
				continue
			}
		}
		why, err := inTheMiddle(repo, path, branch, out)
		if err != nil || why != "" {
			return false, why, err
		}
		switch {
		case !out:
		case path == real:
			here = true
		default:
			return false, fmt.Sprintf("branch %s is checked out in %s, not in %s: switch that checkout to another branch, "+
				"or run git merge there",
				git.ShortBranch(branch), path, real), nil
		}
	}
	return here, "", nil
}

// Unfinished names an operation on the branch, by its full name, that somebody has begun in its
// worktree at top and not finished; "" = none, or the worktree is gone.
func Unfinished(repo *git.Repo, top, branch string) (why string, err error) {
	on, ok := repo.BranchOf(top)
	if why, err = inTheMiddle(repo, top, branch, ok && on == branch); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return why, err
}

// inTheMiddle names an operation on the branch that a person has begun in a checkout and not
// finished.
func inTheMiddle(repo *git.Repo, top, branch string, out bool) (string, error) {
	dir, err := repo.GitDir(top)
	if err != nil {
		return "", err
	}
	if out {
		for _, u := range underway() {
			if _, err := os.Lstat(filepath.Join(dir, u.file)); err == nil {
				return fmt.Sprintf("%s is in the middle of a %s: run %s", top, u.what, u.end), nil
			}
		}
	}
	for _, d := range detours() {
		file := filepath.Join(dir, filepath.FromSlash(d.file))
		data, err := atomicfile.Read(file, maxBranchFile)
		if err != nil {
			continue // there is none
		}
		if name := strings.TrimSpace(string(data)); name == branch || git.BranchRefs+name == branch ||
			branch == git.Detached {
			return fmt.Sprintf("branch %s is being %s in %s: run %s", git.ShortBranch(branch), d.what, top, d.end), nil
		}
	}
	return "", nil
}
