// Package health keeps notes of lasting faults for those who show them, and retries what may work
// later.
package health

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxNotes limits the notes. As many further faults are only logged: without a note none is known to be new.
const maxNotes = 100

// Notes are the present faults, each under the name of what it concerns. The zero value is ready.
// It is safe for concurrent use.
type Notes struct {
	Log func(string, ...any) // gets each new note, and what Logf is given; nil = nobody does

	mu     sync.Mutex
	whys   map[string]string
	beyond int // faults without room for a note, since half of the notes were over
}

// Note records why something is at fault; why "" ends its note.
func (n *Notes) Note(what, why string) {
	n.mu.Lock()
	before := n.whys[what]
	logs, last := why != "" && why != before, false
	switch {
	case why == "":
		delete(n.whys, what)
	case len(n.whys) < maxNotes || before != "":
		if n.whys == nil {
			n.whys = map[string]string{}
		}
		n.whys[what] = why
	default:
		n.beyond++
		logs, last = n.beyond <= maxNotes, n.beyond == maxNotes
	}
	if len(n.whys) <= maxNotes/2 {
		n.beyond = 0
	}
	n.mu.Unlock()
	if logs {
		n.Logf("%s: %s", what, why)
	}
	if last {
		n.Logf("more than %d faults at once: more are not logged until half of those noted are over", 2*maxNotes-1)
	}
}

// NoteError records an error; nil ends its note.
func (n *Notes) NoteError(what string, err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	n.Note(what, why)
}

// Logf logs an error that stops nothing.
func (n *Notes) Logf(format string, args ...any) {
	if n.Log != nil {
		n.Log(format, args...)
	}
}

// All returns the notes as "what: why", sorted.
func (n *Notes) All() (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(n.whys)) {
		out = append(out, what+": "+n.whys[what])
	}
	return out
}

// Drop ends the notes whose name gone accepts.
func (n *Notes) Drop(gone func(what string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.whys, func(what, _ string) bool { return gone(what) })
}

// Forget ends the notes of an effect that is no longer under way, and of its parts (key+…, key/…).
func (n *Notes) Forget(key string) {
	n.Drop(func(what string) bool {
		rest, ok := strings.CutPrefix(what, key)
		return ok && (rest == "" || rest[0] == '+' || rest[0] == '/')
	})
}

// Pauses between tries: doubled from AgainFirst up to AgainMost.
const (
	AgainFirst = 100 * time.Millisecond
	AgainMost  = 2 * time.Second
)

// Persist calls try until it succeeds or returns an error that is not Passing, which it returns. If
// ctx ends first, the error is ctx's.
func (n *Notes) Persist(ctx context.Context, what string, try func() error) (err error) {
	if !n.Retry(ctx, what, func() error {
		if err = try(); err != nil && !Passing(err) {
			return nil
		}
		return err
	}) {
		return ctx.Err()
	}
	return err
}

// Retry calls try until it succeeds, whatever its errors are. It reports false if ctx ended first.
func (n *Notes) Retry(ctx context.Context, what string, try func() error) bool {
	for pause := AgainFirst; ; pause = min(2*pause, AgainMost) {
		err := try()
		if err == nil {
			n.Note(what, "")
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		n.Note(what, err.Error())
		if !Wait(ctx, pause) {
			return false
		}
	}
}

// Wait waits for d. It reports false if ctx ended first.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Passing reports whether the error may be gone at the next try, such as a full disk or a lack of
// descriptors or memory.
func Passing(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.EAGAIN, syscall.EINTR, syscall.EIO, syscall.EROFS, syscall.EBUSY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// PassingOr returns err if it is Passing, otherwise what is to be said of it.
func PassingOr(err, otherwise error) error {
	if Passing(err) {
		return err
	}
	return otherwise
}
