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

// wordMost is how long the end of a process waits for its signal, beyond the settling time.
const wordMost = 3 * time.Second

// TakenIn waits until a sentinel in an inbox was taken in: a signal before the end counts, however
// the process ended.
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

// unreadMost is how long the end of a process waits for an unreadable inbox.
const unreadMost = 10 * time.Minute

// Readable waits until all inboxes that may contain the attempt's sentinel can be read: an
// unreadable inbox does not mean a missing signal.
func (x *Inbox) Readable(ctx context.Context, j job.Job, st *engine.Step) {
	own := x.SignalFile(j.Run, st)
	if own == "" {
		return
	}
	until := x.opt.Now().Add(unreadMost)
	x.Retry(ctx, j.Key, func() error {
		if err := x.unread(j); err != nil && x.opt.Now().Before(until) {
			return fmt.Errorf("the step has ended, and its inbox cannot be read (%w): fix it; after %s the step counts as one "+
				"that said nothing", err, unreadMost)
		}
		return nil
	})
}

// unread returns why an inbox of the attempt cannot be read. A missing inbox is empty.
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

// attemptInboxes returns the folders that may contain a sentinel of the attempt.
func (x *Inbox) attemptInboxes(j job.Job) []string {
	if own := x.privateOf(j.Attempt.Key, j.Run); own != nil {
		return own // it is held: it can write nowhere else
	}
	var dirs []string
	for _, dir := range append(x.treeInboxes(j.Attempt.Tree), x.Signals()) {
		dirs = append(dirs, dir, filepath.Join(dir, j.Run))
	}
	return dirs
}

// lies returns the inbox with a sentinel of the attempt's name; "" if there is none.
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

// Sentinel returns the file with which the attempt reported that it is done; nil if there is none.
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
