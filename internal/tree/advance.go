package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sluice/internal/git"
)

// indexWait is how long a person's git may hold the index before Advance reports it.
const indexWait = 10 * time.Second

// ErrBusy means that another git holds the index, or the branch: try again later.
var ErrBusy = git.ErrIndexHeld

// Advance is a branch's move.
type Advance struct {
	Branch string // full name; git.Detached = HEAD of the checkout itself; "" = HEAD was detached, so nothing moves
	From   string // its current commit; "" = it does not exist yet
	To     string // its next commit
	Top    string // the checkout in which the work was done
	// Write also writes the files that are as in From: the work was done in another folder.
	Write bool
}

// Do moves the branch and, if it is checked out at Top, the index there: entries as in From become
// as in To. What a person has staged or changed stays. The order is: index.lock, a copy of the
// index, the files (Write), the ref with its old value, the rename, unlock. A call after a kill
// completes the move or repeats it; one after the move finds it done.
//
// moved is false if a person must decide: why says what blocks the move and what to do, and nothing
// was changed. An error comes from the system or git: the same call may succeed later.
func (a Advance) Do(ctx context.Context, repo *git.Repo) (moved bool, why string, err error) {
	return a.do(ctx, repo, indexWait, func(string) {})
}

// do is Do with a hook after each step.
func (a Advance) do(ctx context.Context, repo *git.Repo, wait time.Duration,
	at func(step string)) (moved bool, why string, err error) {
	moved, why, err = a.move(ctx, repo, wait, at)
	if errors.Is(err, git.ErrIndex) {
		return false, fmt.Sprintf("%v: remove that file and run git reset in %s: the files stay as they are",
			err, a.Top), nil
	}
	if err != nil {
		err = fmt.Errorf("move %s to %.12s: %w", git.ShortBranch(a.Branch), a.To, err)
	}
	return moved, why, err
}

func (a Advance) move(ctx context.Context, repo *git.Repo, wait time.Duration, at func(string)) (bool, string, error) {
	if a.Branch == "" {
		return false, fmt.Sprintf("HEAD of %s is detached: no branch was moved: run git switch -c NAME %.12s to have the "+
			"work on one",
			a.Top, a.To), nil
	}
	here, why, err := isHere(ctx, repo, a.Branch, a.Top)
	if err != nil || why != "" {
		return false, why, err
	}
	at("looked")
	if !here {
		done, why, err := a.ready(ctx, repo)
		if err != nil || why != "" || done {
			return done, why, err
		}
		return a.moveRef(ctx, repo, at)
	}
	h, err := repo.HoldIndex(ctx, a.Top, wait)
	if err != nil {
		return false, "", err
	}
	at("locked")
	moved, why, err := a.held(h.Guard(ctx), repo, h, at)
	if err != nil && moved { // the ref has moved but the index has not: the next call completes it
		return false, "", errors.Join(err, h.Leave())
	}
	if err == nil {
		at("swapped")
	}
	return moved, why, errors.Join(err, h.Release())
}

// held is move while we hold the index. moved with an error means that only the index is left to
// do.
func (a Advance) held(ctx context.Context, repo *git.Repo, h *git.HeldIndex,
	at func(string)) (moved bool, why string, err error) {
	if moved, err = complete(ctx, repo, h, at); err != nil {
		return moved, "", err
	}
	done, why, err := a.ready(ctx, repo)
	if err != nil || why != "" || done {
		return done, why, err
	}
	changes, err := repo.ChangesBetween(ctx, a.From, a.To)
	if err != nil {
		return false, "", err
	}
	staged, err := h.Staged(ctx, a.From)
	if err != nil {
		return false, "", err
	}
	if why := a.inTheWay(changes, staged); why != "" {
		return false, why, nil
	}
	if err := repo.AwaitRef(ctx, a.Top, a.Branch); err != nil { // before any file is written
		return false, "", err
	}
	purpose, err := json.Marshal(a)
	if err != nil {
		return false, "", err
	}
	if err := h.Begin(string(purpose)); err != nil {
		return false, "", err
	}
	at("recorded")
	if err := h.Patch(ctx, unstaged(changes, staged)); err != nil {
		return false, "", err
	}
	at("patched")
	if a.Write {
		if why, err := a.write(ctx, repo, changes); err != nil || why != "" {
			return false, why, err
		}
		at("written")
	}
	if moved, why, err = a.moveRef(ctx, repo, at); !moved {
		return false, why, err
	}
	return true, "", swap(h)
}

// swap puts the copy in place. There is none if an index does not exist and did not change.
func swap(h *git.HeldIndex) error {
	if !h.Prepared() {
		return nil
	}
	return h.Swap()
}

// complete finishes a move that a killed process began, if its ref has moved. It patches the index
// again, because a person may have removed the lock and changed it.
func complete(ctx context.Context, repo *git.Repo, h *git.HeldIndex, at func(string)) (moved bool, err error) {
	var e Advance
	if h.Earlier() == "" || json.Unmarshal([]byte(h.Earlier()), &e) != nil || !h.Prepared() {
		return false, nil
	}
	tip, err := repo.TipIn(ctx, e.Top, e.Branch)
	if err != nil {
		return true, err // it may have moved
	}
	if tip.SHA != e.To {
		return false, nil
	}
	changes, err := repo.ChangesBetween(ctx, e.From, e.To)
	if err != nil {
		return true, err
	}
	staged, err := h.Staged(ctx, e.From)
	if err != nil {
		return true, err
	}
	if err := h.Patch(ctx, unstaged(changes, staged)); err != nil {
		return true, err
	}
	at("patched again")
	return true, swap(h)
}

// check reports whether the branch already has the commit, or why it cannot get it.
func (a Advance) check(ctx context.Context, repo *git.Repo) (done bool, why string, err error) {
	tip, err := repo.TipIn(ctx, a.Top, a.Branch)
	if err != nil {
		return false, "", err
	}
	name, kept := git.ShortBranch(a.Branch), fmt.Sprintf("the work is kept as commit %.12s", a.To)
	switch {
	case tip.Symbolic != "" && a.Branch == git.Detached:
		return false, fmt.Sprintf("%s is on branch %s by now: %s: run git merge %.12s", a.Top,
			git.ShortBranch(tip.Symbolic), kept, a.To), nil
	case tip.Symbolic != "":
		return false, fmt.Sprintf("branch %s stands for %s: %s: remove the symbolic ref, or run git merge %.12s",
			name, tip.Symbolic, kept, a.To), nil
	case tip.SHA == a.To:
		return true, "", nil
	case tip.SHA == a.From:
		return false, "", nil
	case tip.SHA == "":
		return false, fmt.Sprintf("branch %s is gone: %s: run git branch %s %.12s", name, kept, name, a.To), nil
	case a.From == "":
		return false, fmt.Sprintf("branch %s has a first commit by now: %s: run git merge --allow-unrelated-histories %.12s",
			name, kept, a.To), nil
	}
	forward, err := repo.Descends(ctx, a.To, a.From)
	if err != nil {
		return false, "", err
	}
	if forward {
		if has, err := repo.Descends(ctx, tip.SHA, a.To); err != nil || has {
			return has, "", err
		}
	}
	stands, err := repo.Descends(ctx, tip.SHA, a.From)
	if err != nil {
		return false, "", err
	}
	if !stands {
		return false, fmt.Sprintf("branch %s was rebased or reset: it is at %.12s, which is not built on %.12s: %s: run "+
			"git rebase --onto %s %.12s %.12s",
			name, tip.SHA, a.From, kept, name, a.From, a.To), nil
	}
	return false, fmt.Sprintf("branch %s has moved from %.12s to %.12s: %s: run git merge %.12s", name, a.From,
		tip.SHA, kept, a.To), nil
}

// ready is check, and refuses a commit that lacks objects: the branch would get half of the work.
func (a Advance) ready(ctx context.Context, repo *git.Repo) (done bool, why string, err error) {
	done, why, err = a.check(ctx, repo)
	if err == nil && why == "" && !done {
		why, err = lacks(repo.Connected(ctx, a.To, a.From))
	}
	return done, why, err
}

// lacks turns an error about missing objects into a reason.
func lacks(err error) (why string, _ error) {
	if errors.Is(err, git.ErrMissing) {
		return err.Error(), nil
	}
	return "", err
}

// moveRef moves the ref; a last-moment change by others is left to a person.
func (a Advance) moveRef(ctx context.Context, repo *git.Repo, at func(string)) (bool, string, error) {
	top := a.Top
	if _, err := os.Stat(top); err != nil {
		top = repo.Top() // the folder is gone, so the branch is not checked out in it
	}
	err := repo.MoveRef(ctx, top, a.Branch, a.From, a.To, "sluice: the gate has passed")
	if err != nil {
		if done, why, again := a.check(ctx, repo); again == nil && (done || why != "") {
			return done, why, nil
		}
		return false, "", err
	}
	at("moved")
	return true, "", nil
}

// inTheWay returns a reason that names staged changes which the move would destroy or hide.
func (a Advance) inTheWay(changes []git.Change, staged git.Staged) string {
	if len(staged.Unmerged) > 0 {
		return fmt.Sprintf("%s has conflicts in %s: resolve them and commit, or undo the merge", a.Top,
			some(staged.Unmerged))
	}
	isStaged := map[string]bool{}
	for _, p := range staged.Paths {
		isStaged[p] = true
	}
	ours := map[string]bool{}
	var both []string
	for _, c := range changes {
		ours[c.Path] = true
		if isStaged[c.Path] && a.Write || above(c.Path, isStaged) != "" {
			both = append(both, c.Path)
		}
	}
	for _, p := range staged.Paths {
		if above(p, ours) != "" {
			both = append(both, p)
		}
	}
	if len(both) == 0 {
		return ""
	}
	slices.Sort(both)
	return fmt.Sprintf("%s has staged changes in the way: %s: commit or unstage them (git restore --staged)",
		a.Top, some(slices.Compact(both)))
}

// above returns a path's parent folder that is among the paths, or "".
func above(path string, paths map[string]bool) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' && paths[path[:i]] {
			return path[:i]
		}
	}
	return ""
}

// unstaged removes changes at, above or below paths that a person has staged.
func unstaged(changes []git.Change, staged git.Staged) []git.Change {
	skip, under := map[string]bool{}, map[string]bool{}
	for _, p := range staged.Paths {
		skip[p] = true
		for i := range len(p) {
			if p[i] == '/' {
				under[p[:i]] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c git.Change) bool {
		return skip[c.Path] || under[c.Path] || above(c.Path, skip) != ""
	})
}

// write writes the files that are as in From. If some are neither as in From nor as in To, it
// writes none and names them.
func (a Advance) write(ctx context.Context, repo *git.Repo, changes []git.Change) (why string, err error) {
	s, err := repo.Stand(ctx, a.Top, changes)
	if err != nil {
		return "", err
	}
	if len(s.Other) > 0 {
		return fmt.Sprintf("%s has changes of yours in files that would be written: %s: commit or stash them",
			a.Top, some(s.Other)), nil
	}
	if err := repo.WriteFiles(ctx, a.Top, s.Old); err != nil {
		return "", errors.Join(err, a.putBack(context.WithoutCancel(ctx), repo, s.Old))
	}
	return "", nil
}

// putBack restores files as in From after a failed write: the next call would take half-written
// ones for a person's.
func (a Advance) putBack(ctx context.Context, repo *git.Repo, changes []git.Change) error {
	s, err := repo.Stand(ctx, a.Top, changes)
	if err != nil {
		return err
	}
	begun := slices.DeleteFunc(slices.Clone(changes), func(c git.Change) bool { return slices.Contains(s.Old, c) })
	if err := repo.WriteFiles(ctx, a.Top, turned(begun)); err != nil {
		return fmt.Errorf("files in %s are half written: %s: run git restore on those that the branch has, remove the "+
			"others, and try again: %w",
			a.Top, some(s.Other), err)
	}
	return nil
}

// someMost is how many files an error names.
const someMost = 5

// some names the first files of a list.
func some(files []string) string {
	if more := len(files) - someMost; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(files[:someMost], ", "), more)
	}
	return strings.Join(files, ", ")
}
