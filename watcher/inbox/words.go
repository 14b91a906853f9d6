package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/signals"
)

// wordMost is how long the end of a process waits for its word, beyond the time a file has to settle.
const wordMost = 3 * time.Second

// TakenIn waits until a sentinel that lies in an inbox was taken in: what was said before the end counts, however it
// ended.
func (x *Inbox) TakenIn(ctx context.Context, j job.Job, st *engine.Step) {
	until := x.opt.Now().Add(x.opt.Settle() + wordMost)
	for x.opt.Now().Before(until) {
		dir := x.lies(j, st)
		if dir == "" {
			return
		}
		x.lookAt(dir)
		if !health.Wait(ctx, health.AgainFirst) {
			return
		}
	}
}

// unreadMost is how long the end of a process waits for an inbox that cannot be read.
const unreadMost = 10 * time.Minute

// Readable waits until all inboxes can be read in which the attempt's sentinel may lie: what nobody can look for is not
// missing.
func (x *Inbox) Readable(ctx context.Context, j job.Job, st *engine.Step) {
	own := x.SignalFile(j.Run, st)
	if own == "" {
		return
	}
	until := x.opt.Now().Add(unreadMost)
	for pause := health.AgainFirst; ; pause = min(2*pause, health.AgainMost) {
		err := x.unread(j)
		if err == nil || !x.opt.Now().Before(until) {
			x.Note(j.Key, "")
			return
		}
		x.Note(j.Key, fmt.Sprintf("the step has ended, and its inbox cannot be read (%v): mend it; after %s the step counts as one that said nothing", err, unreadMost))
		if !health.Wait(ctx, pause) {
			return
		}
	}
}

// unread says why an inbox of the attempt cannot be read. One that is not there holds nothing.
func (x *Inbox) unread(j job.Job) error {
	for _, in := range x.attemptInboxes(j) {
		info, err := os.Lstat(in)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() && in != x.Signals() {
			continue
		}
		f, err := atomicfile.OpenDir(in)
		if err == nil {
			_, err = f.Readdirnames(1)
			f.Close()
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// attemptInboxes are the folders in which a sentinel of the attempt may lie.
func (x *Inbox) attemptInboxes(j job.Job) []string {
	var dirs []string
	for _, dir := range append(x.treeInboxes(j.Attempt.Tree), x.Signals()) {
		dirs = append(dirs, dir, filepath.Join(dir, j.Run))
	}
	if own := x.privateOf(j.Attempt.Key, j.Run); own != nil {
		return own // it is held: nothing else is its to write
	}
	return dirs
}

// lies gives the inbox in which a sentinel of the attempt's name is; "" where there is none.
func (x *Inbox) lies(j job.Job, st *engine.Step) string {
	own := x.SignalFile(j.Run, st)
	if own == "" {
		return ""
	}
	for _, in := range x.attemptInboxes(j) {
		if _, err := os.Lstat(filepath.Join(in, filepath.Base(own))); err == nil {
			return in
		}
	}
	return ""
}

// Sentinel is the file by which the attempt said that it is done; nil where there is none.
func (x *Inbox) Sentinel(j job.Job, st *engine.Step) []byte {
	path := x.SignalFile(j.Run, st)
	if path == "" {
		return nil
	}
	taken := x.LaunchDir(j.Run, st.ID, j.Attempt.N, 1) + "/signal.json"
	for _, p := range []string{x.Shown(path), taken, x.Shown(filepath.Join(x.Signals(), filepath.Base(path)))} {
		data, _, err := atomicfile.OpenRegular(x.Root, filepath.FromSlash(p), signals.MaxBytes)
		if err == nil {
			return append([]byte{}, data...)
		}
	}
	for _, dir := range x.privateOf(j.Attempt.Key, j.Run) {
		if data, _, err := atomicfile.OpenRegular(dir, filepath.Base(path), signals.MaxBytes); err == nil {
			return append([]byte{}, data...)
		}
	}
	return nil
}
