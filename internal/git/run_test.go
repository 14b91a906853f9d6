package git

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGitsTakeTurns: a burst runs at most gitsMost gits at once, all of them in the end, and one that
// waits for its turn can be cancelled.
func TestGitsTakeTurns(t *testing.T) {
	s := newSandbox(t)
	tip := s.git("rev-parse", "HEAD")
	r, err := OpenWith(ctx(t), s.dir, Options{Turns: NewTurns()})
	check(t, err)
	defer r.Close()
	var running, ended atomic.Int64
	full, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range gitsMost + 20 {
		all.Go(func() {
			err := StreamPatch(ctx(t), r, "", tip, Look{}, func(io.Reader) error {
				switch n := running.Add(1); {
				case n == gitsMost:
					close(full)
				case n > gitsMost && ended.Load() == 0:
					t.Errorf("%d gits run at once, more than %d", n, gitsMost)
				}
				<-release
				ended.Add(1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	time.Sleep(100 * time.Millisecond) // more would begin meanwhile
	short, cancel := context.WithTimeout(ctx(t), 10*time.Millisecond)
	defer cancel()
	none := func(io.Reader) error { return nil }
	if err := StreamPatch(short, r, "", tip, Look{}, none); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a git whose time is up while it waits: %v", err)
	}
	close(release)
	all.Wait()
	if n := ended.Load(); n != gitsMost+20 {
		t.Errorf("%d gits ended, want %d", n, gitsMost+20)
	}
}
