package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/engine"
)

// TestSocketRemoved: a repo whose state folder, or the socket in it, is removed while the daemon serves it is taken up
// again, and a daemon whose own folder is removed ends: no command would reach them, and what they record is lost.
func TestSocketRemoved(t *testing.T) {
	const look = time.Millisecond
	s := newListed(t, func(string) RepoOptions { return RepoOptions{Config: engine.DefaultConfig, Look: look} })
	s.opt.Look = look
	s.add("repo", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	<-ready
	state := filepath.Join(s.roots[0], "state")
	for _, gone := range []string{filepath.Join(state, SocketName), state} {
		if err := os.Rename(gone, filepath.Join(t.TempDir(), "away")); err != nil {
			t.Fatal(err)
		}
		c := NewClient(state)
		for {
			if _, err := c.Ping(ctx); err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("nothing answers after %s was removed", filepath.Base(gone))
			}
			time.Sleep(look)
		}
		c.Close()
	}
	if err := os.Rename(s.opt.Home, filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, errUnreachable) {
		t.Errorf("the daemon ended with %v", err)
	}
}

// TestSocketReplaced: a process that ends leaves the socket of the one that has taken its place.
func TestSocketReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	old, err := listen(path, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	stop := serve(old, nil, nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stop()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}
