package health

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestNotes(t *testing.T) {
	var said []string
	n := Notes{Log: func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }}
	for _, x := range [][2]string{{"b", "gone"}, {"a", "full"}, {"a", "full"}, {"a/x", "mute"}, {"ab", "late"}, {"b", ""}} {
		n.Note(x[0], x[1])
	}
	if want := []string{"a: full", "a/x: mute", "ab: late"}; !slices.Equal(n.All(), want) {
		t.Errorf("%q, want %q", n.All(), want)
	}
	if len(said) != 4 { // what is said again is not logged again
		t.Errorf("logged: %q", said)
	}
	n.Forget("a")
	if want := []string{"ab: late"}; !slices.Equal(n.All(), want) {
		t.Errorf("%q, want %q", n.All(), want)
	}
	for range 3 { // what has no note is not logged at each try
		for i := range 5 * maxNotes {
			n.Note(fmt.Sprint("n", i), "bad")
		}
	}
	if len(n.All()) != maxNotes || len(said) > 4+2*maxNotes {
		t.Errorf("%d notes, %d lines", len(n.All()), len(said))
	}
	for i := range maxNotes {
		n.Note(fmt.Sprint("n", i), "")
	}
	said = nil
	for i := range 5 * maxNotes {
		n.Note(fmt.Sprint("n", i), "bad")
	}
	if len(said) < maxNotes {
		t.Errorf("%d lines, once the faults were over", len(said))
	}
}

func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Notes
		full, began := 3, time.Now()
		err := n.Persist(t.Context(), "disk", func() error {
			if full--; full >= 0 {
				return fmt.Errorf("write: %w", syscall.ENOSPC)
			}
			return nil
		})
		if took := time.Since(began); err != nil || took != 7*AgainFirst || len(n.All()) != 0 {
			t.Errorf("%v after %s, notes %q", err, took, n.All())
		}
		if err := n.Persist(t.Context(), "file", func() error { return fs.ErrPermission }); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v: this does not pass", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := n.Persist(ctx, "disk", func() error { return syscall.ENOSPC }); !errors.Is(err, context.DeadlineExceeded) || len(n.All()) != 1 {
			t.Errorf("%v, notes %q", err, n.All())
		}
	})
}
