// Package health keeps what is not as it should be, for those who ask, and tries again what may pass.
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

// maxNotes is how many are kept.
const maxNotes = 100

// Notes are what is not as it should be, by what it is about. The zero value has none.
type Notes struct {
	Logf func(string, ...any) // also gets each new note; may be nil

	mu   sync.Mutex
	whys map[string]string
}

// Note records what is wrong with something; "" that it is well again.
func (n *Notes) Note(what, why string) {
	n.mu.Lock()
	before := n.whys[what]
	switch {
	case why == "":
		delete(n.whys, what)
	case len(n.whys) < maxNotes || before != "":
		if n.whys == nil {
			n.whys = map[string]string{}
		}
		n.whys[what] = why
	}
	n.mu.Unlock()
	if why != "" && why != before && n.Logf != nil {
		n.Logf("%s: %s", what, why)
	}
}

// All returns the notes in order, each as "what: why".
func (n *Notes) All() (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(n.whys)) {
		out = append(out, what+": "+n.whys[what])
	}
	return out
}

// Drop ends the notes on what gone accepts.
func (n *Notes) Drop(gone func(what string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.whys, func(what, _ string) bool { return gone(what) })
}

// Forget ends the notes on an effect that is under way no more.
func (n *Notes) Forget(key string) {
	n.Drop(func(what string) bool {
		rest, ok := strings.CutPrefix(what, key)
		return ok && (rest == "" || rest[0] == '+' || rest[0] == '/')
	})
}

// Pace of trying again.
const (
	AgainFirst = 100 * time.Millisecond
	AgainMost  = 2 * time.Second
)

// Persist tries until it works, an error says that it never will, or ctx ends: then the error is ctx's.
func (n *Notes) Persist(ctx context.Context, what string, try func() error) error {
	for pause := AgainFirst; ; pause = min(2*pause, AgainMost) {
		err := try()
		if err == nil || !Passing(err) {
			n.Note(what, "")
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n.Note(what, err.Error())
		if !Wait(ctx, pause) {
			return ctx.Err()
		}
	}
}

// Wait waits; false where ctx ended first.
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

// Passing reports whether an error may be gone at the next try: the disk is full, the system is short of something.
func Passing(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR, syscall.EIO, syscall.EROFS, syscall.EBUSY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
