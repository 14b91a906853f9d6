package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/health"
	"sluice/internal/ids"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/signals"
)

// idOf returns a file's identity, from what it is and what it contains. Times and permissions are
// left out: the writer may touch the file after it was taken in. digest is of the content; bad is
// why there is none.
func idOf(st atomicfile.Stat, digest string, bad error) string {
	content := fmt.Sprintf("%d-%.32s", st.Size, digest)
	switch {
	case errors.Is(bad, atomicfile.ErrTooLarge): // it may still grow
		content = "large"
	case bad != nil:
		content = "special"
	}
	id := fmt.Sprintf("%d-%d-%s", st.Dev, st.Ino, content)
	if st.Ino == 0 { // the system does not number files
		id += fmt.Sprintf("-%d", st.ModTime.UnixNano())
	}
	return id
}

// isFile reports whether the file has this identity. An unreadable file is compared without its
// content.
func isFile(dir, name, id string) (bool, error) {
	data, st, err := atomicfile.OpenRegular(dir, name, signals.MaxBytes)
	switch {
	case err == nil, errors.Is(err, atomicfile.ErrTooLarge), errors.Is(err, atomicfile.ErrNotRegular):
		return idOf(st, layout.HexSum(data), err) == id, nil
	case errors.Is(err, fs.ErrPermission):
		if st, err = atomicfile.Lstat(dir, name); err == nil && st.Ino != 0 {
			return strings.HasPrefix(id, fmt.Sprintf("%d-%d-%d-", st.Dev, st.Ino, st.Size)), nil
		}
	}
	return false, err
}

// moveAfter is how long a lone move waits. Meanwhile the launch that its file led to has the disk to
// itself: nothing depends on the move, and its record needs a sync.
const moveAfter = 5 * time.Millisecond

// Move moves a file that was taken in out of its inbox.
func (x *Inbox) Move(ctx context.Context, j job.Job) engine.Event {
	m := j.Move
	ev := engine.FileMoved{ID: m.ID}
	defer x.moving.Add(-1)
	if x.moving.Add(1) == 1 && !health.Wait(ctx, moveAfter) {
		return nil
	}
	if !x.Retry(ctx, j.Key, func() error {
		to, err := x.moved(m)
		if to != "" {
			ev.To = x.Shown(to)
		}
		if errors.Is(err, errGone) {
			return nil
		}
		return err
	}) {
		return nil
	}
	return ev
}

// moved moves the file, if it is still the one that was taken in.
func (x *Inbox) moved(m *engine.Move) (string, error) {
	if !plainName(m.Name) || m.Dir != "" && !ids.ValidRun(m.Dir) {
		return "", errGone
	}
	base, dir, to := x.Root, x.Signals(), filepath.Join(x.Signals(), rejected, m.Name)
	switch {
	case m.Of != "":
		base, dir = x.State, x.PIDFile(m.Of)+layout.InboxMark
	case m.Place != "":
		base, dir = x.TreeDir(m.Place), x.inboxOf(m)
	}
	dir = filepath.Join(dir, m.Dir)
	if m.Run != "" {
		as := m.As
		if !plainName(as) {
			as = "signal.json"
		}
		if !ids.ValidRun(m.Run) || !plainName(m.To) {
			return "", errGone
		}
		to = filepath.Join(x.Path(x.RunDir(m.Run)), m.To, as)
	}
	rel, err := filepath.Rel(x.Root, to)
	if err != nil {
		return "", err
	}
	made := atomicfile.PlainDir(filepath.Dir(to))
	if !made {
		if _, err := x.Below(filepath.ToSlash(rel)); err != nil {
			return "", err
		}
	}
	same, err := isFile(dir, m.Name, m.ID)
	if err != nil || !same {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			// Moved by a process that ended before it wrote the reason.
			if same, err := isFile(filepath.Dir(to), filepath.Base(to), m.ID); err == nil && same {
				return to, x.sayWhy(m, to)
			}
			return "", errGone
		}
		return "", err
	}
	if !made {
		if err := x.MakeDir(filepath.Dir(to), 0o700); err != nil {
			return "", err
		}
	}
	// Not synced: if a power cut restores the file, it is seen again and is too old for what waits
	// then.
	if to, err = atomicfile.MoveFrom(base, dir, m.Name, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", errGone
		}
		return "", err
	}
	return to, x.sayWhy(m, to)
}

func (x *Inbox) sayWhy(m *engine.Move, at string) error {
	if m.Run != "" || m.Why == "" {
		return nil
	}
	err := atomicfile.WriteNew(filepath.Join(filepath.Dir(at), whyName(filepath.Base(at))), []byte(m.Why+"\n"), 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) && health.Passing(err) {
		return err
	}
	return nil
}

// whyName returns the name of the note on a rejected file. A name with no room for the ending is
// cut and gets a checksum.
func whyName(name string) string {
	const ending = ".why"
	if atomicfile.CutName(name, len(ending)) == name {
		return name + ending
	}
	rest := "~" + layout.HexSum([]byte(name))[:8] + ending
	return atomicfile.CutName(name, len(rest)) + rest
}

// plainName reports whether a name is one path element.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && filepath.IsLocal(name)
}

func (x *Inbox) inboxOf(m *engine.Move) string {
	for _, dir := range x.treeInboxes(m.Place) {
		if same, err := isFile(filepath.Join(dir, m.Dir), m.Name, m.ID); err == nil && same {
			return dir
		}
	}
	return layout.InboxOf(x.TreeDir(m.Place))
}

// errGone reports that a file was moved or replaced.
var errGone = errors.New("the file has gone or is another one now")
