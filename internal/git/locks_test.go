package git

import (
	"context"
	"testing"
	"time"
)

// TestLocks: a key is in the hands of one at a time; who waits can be called off, and nothing is left of it.
func TestLocks(t *testing.T) {
	var l Locks
	first, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := l.Lock(t.Context(), "b"); err != nil {
		t.Fatal(err)
	} else {
		other()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Lock(ctx, "a"); err == nil {
		t.Error("two hold one key")
	}
	got := make(chan func())
	go func() {
		second, err := l.Lock(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		got <- second
	}()
	for wanted := 0; wanted < 2; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		wanted = l.of["a"].wanted
		l.mu.Unlock()
	}
	select {
	case <-got:
		t.Fatal("two hold one key")
	default:
	}
	first()
	(<-got)()
	if len(l.of) > 0 {
		t.Errorf("left: %v", l.of)
	}
}
