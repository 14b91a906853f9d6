package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// Tracking says which files of inboxes git tracks: a commit has brought them, whoever wrote it. It is safe
// for concurrent use.
type Tracking struct {
	Repo *git.Repo

	mu   sync.Mutex
	free map[string]untracked // by inbox
}

// untracked is a checkout that had nothing of an inbox, by its index and its HEAD.
type untracked struct {
	gitDir string
	index  atomicfile.Stat
}

const (
	// indexAtRest is how old an index must be for a time in whole seconds to show its next change.
	indexAtRest = 3 * time.Second
	// maxFree limits how many inboxes are remembered.
	maxFree = 10_000
)

// Has reports whether git tracks a file of an inbox of the checkout at top, or a link or a submodule on
// the way to it: the index has it, or the commit that is checked out. No held launch can write these. Git
// writes its files first and the index last: as long as it is at work, the error is ErrBusy.
//
// Only that an inbox is free of tracked files is remembered, while the index is the same file: what git
// has written since would be in another one.
func (t *Tracking) Has(ctx context.Context, top, file string) (bool, error) {
	rel, err := filepath.Rel(top, file)
	if err != nil {
		return false, err
	}
	rel = filepath.ToSlash(rel)
	inbox := rel
	for !strings.HasSuffix("/"+inbox, "/"+layout.SignalsDir) {
		if inbox = path.Dir(inbox); inbox == "." || !filepath.IsLocal(inbox) {
			return false, fmt.Errorf("%s is in no inbox of %s", file, top)
		}
	}
	key := filepath.Join(top, filepath.FromSlash(inbox))
	t.mu.Lock()
	was, known := t.free[key]
	t.mu.Unlock()
	if known {
		if now, err := indexIn(was.gitDir); err != nil || now.Untouched(was.index) {
			return false, err
		}
	}
	list, now, err := t.list(ctx, top, inbox)
	if err != nil {
		return false, err
	}
	if len(list) == 0 && now.lasts() {
		t.mu.Lock()
		if t.free == nil || len(t.free) == maxFree {
			t.free = map[string]untracked{}
		}
		t.free[key] = now
		t.mu.Unlock()
	}
	return slices.ContainsFunc(list, func(f string) bool { return onWay(f, rel) }), nil
}

// lasts reports whether the next index will be seen to be another one.
func (u untracked) lasts() bool {
	at := u.index.ModTime
	return !at.IsZero() && (at.Nanosecond() != 0 || time.Since(at) > indexAtRest)
}

// list returns what git tracks of an inbox and on the way to it, and the index that says so.
func (t *Tracking) list(ctx context.Context, top, inbox string) (list []string, now untracked, err error) {
	now.gitDir, err = t.Repo.GitDir(top)
	if errors.Is(err, git.ErrNotWorktree) {
		return nil, now, nil // of another repo, or of none: no commit of this one is checked out there
	}
	if err == nil {
		now.index, err = indexIn(now.gitDir)
	}
	if err != nil {
		return nil, now, err
	}
	head, err := t.Repo.Head(ctx, top)
	if err == nil {
		list, err = t.Repo.Tracked(ctx, top, head, path.Dir(inbox))
	}
	return slices.DeleteFunc(list, func(f string) bool { return !onWay(f, inbox) && !onWay(inbox, f) }), now, err
}

// onWay reports whether p is a path or one of its folders, to a file system that ignores case.
func onWay(p, of string) bool {
	n, parts := strings.Count(p, "/")+1, strings.Split(of, "/")
	return n <= len(parts) && strings.EqualFold(p, strings.Join(parts[:n], "/"))
}

// indexIn returns the state of the index in a git folder; zero if there is none.
func indexIn(gitDir string) (atomicfile.Stat, error) {
	lock := filepath.Join(gitDir, "index.lock")
	if _, err := os.Lstat(lock); err == nil {
		return atomicfile.Stat{}, fmt.Errorf("%w: wait for it, or remove %s if no git is running", ErrBusy, lock)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return atomicfile.Stat{}, err
	}
	st, err := atomicfile.Lstat(gitDir, "index") // after the lock: a git that is done has put it there
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return st, err
}

// planted returns a file that the commits of tip without those of the bases bring into an inbox or another
// of layout.Uncommitted, or "": to check out any of these commits would put it there.
func planted(ctx context.Context, repo *git.Repo, tip string, bases ...string) (string, error) {
	list, err := repo.Added(ctx, ":(icase,glob)**/"+layout.WorkflowDir+"/**", tip, bases...)
	if i := slices.IndexFunc(list, layout.IsUncommitted); i >= 0 {
		return text.Clip(list[i], ShownPath), err
	}
	return "", err
}

// refusedPlanted is the error for work with a file of planted; nil for "".
func refusedPlanted(where, file string) error {
	if file == "" {
		return nil
	}
	return &Refused{fmt.Sprintf("the work cannot be taken: %s %q, where only sluice and its people write: leave it out, "+
		"of every commit", where, file)}
}
