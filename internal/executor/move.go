package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/signals"
)

// idOf tells one state of a file from every other.
func idOf(st atomicfile.Stat) string {
	return fmt.Sprintf("%d-%d-%d-%d", st.Dev, st.Ino, st.Size, st.ModTime.UnixNano())
}

// move takes a file that was taken in out of its inbox.
func (e *Executor) move(ctx context.Context, job daemon.Job) engine.Event {
	m := job.Move
	ev := engine.FileMoved{ID: m.ID}
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		to, err := e.moved(m)
		if err == nil || errors.Is(err, errGone) {
			e.note(job.Key, "")
			if to != "" {
				ev.To = e.shown(to)
			}
			return ev
		}
		e.note(job.Key, err.Error())
		if !wait(ctx, pause) {
			return nil
		}
	}
}

// moved moves the file, if it is still the one that was taken in.
func (e *Executor) moved(m *engine.Move) (string, error) {
	if !plainName(m.Name) || m.Dir != "" && !signals.ValidID(m.Dir) {
		return "", errGone
	}
	dir, to := e.inbox, filepath.Join(e.inbox, rejected, m.Name)
	if m.Place != "" {
		dir = e.inboxOf(m)
	}
	dir = filepath.Join(dir, m.Dir)
	if m.Run != "" {
		as := m.As
		if !plainName(as) {
			as = "signal.json"
		}
		if !signals.ValidID(m.Run) || !plainName(m.To) {
			return "", errGone
		}
		to = filepath.Join(e.root, filepath.FromSlash(runDir(m.Run)), m.To, as)
	}
	rel, err := filepath.Rel(e.root, to)
	if err != nil {
		return "", err
	}
	if _, err := e.below(filepath.ToSlash(rel)); err != nil {
		return "", err
	}
	st, err := atomicfile.Lstat(dir, m.Name)
	if err != nil || idOf(st) != m.ID {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			// Moved by one who was ended before it could say why.
			if at, err := atomicfile.Lstat(filepath.Dir(to), filepath.Base(to)); err == nil && idOf(at) == m.ID {
				return to, e.sayWhy(m, to)
			}
			return "", errGone
		}
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	// Not synced: a file that a power cut puts back is seen again, and is older than whatever waits by then.
	if to, err = atomicfile.MoveUnsynced(filepath.Join(dir, m.Name), to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", errGone
		}
		return "", err
	}
	return to, e.sayWhy(m, to)
}

// sayWhy writes the reason beside a rejected file.
func (e *Executor) sayWhy(m *engine.Move, at string) error {
	if m.Run != "" || m.Why == "" {
		return nil
	}
	err := atomicfile.WriteNew(at+".why", []byte(m.Why+"\n"), 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) && passing(err) {
		return err
	}
	return nil
}

// plainName says that a name is one path element.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && filepath.IsLocal(name)
}

// inboxOf is the inbox below a worktree that a file lay in.
func (e *Executor) inboxOf(m *engine.Move) string {
	for _, dir := range e.treeInboxes(m.Place) {
		if st, err := atomicfile.Lstat(filepath.Join(dir, m.Dir), m.Name); err == nil && idOf(st) == m.ID {
			return dir
		}
	}
	return filepath.Join(e.treeDir(m.Place), ".workflow", "signals")
}
