package alarm

import (
	"context"
	"os"
	"testing"
	"time"
)

// TestWait: an alarm waits for the given time, again and again, until it is closed.
func TestWait(t *testing.T) {
	a := New()
	for _, d := range []time.Duration{0, -time.Second, time.Millisecond, 30 * time.Millisecond} {
		began := time.Now()
		if !a.Wait(d) {
			t.Fatalf("%s: ended", d)
		}
		if took := time.Since(began); took < d {
			t.Errorf("%s: after %s", d, took)
		}
	}
	ended := make(chan bool)
	go func() { ended <- a.Wait(time.Hour) }()
	a.Close()
	select {
	case waited := <-ended:
		if waited {
			t.Error("it waited for an hour")
		}
	case <-time.After(time.Minute):
		t.Fatal("a closed alarm waits on")
	}
	if a.Wait(time.Millisecond) {
		t.Error("a closed alarm waits")
	}
}

// TestWaitWithoutTheKernel: where the runtime cannot wait for the kernel's timer, an alarm waits all the
// same, and does not end.
func TestWaitWithoutTheKernel(t *testing.T) {
	file, err := os.Open(os.Args[0]) // epoll refuses a regular file
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*Alarm{of(nil), of(file)} {
		for range 2 {
			if began := time.Now(); !a.Wait(10*time.Millisecond) || time.Since(began) < 10*time.Millisecond {
				t.Errorf("it waited for %s", time.Since(began))
			}
		}
		if a.Close(); a.Wait(time.Hour) {
			t.Error("a closed alarm waits")
		}
	}
}

// TestEvery: it calls again and again, until its context ends.
func TestEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	Every(ctx, 20*time.Millisecond, func() {
		if calls++; calls == 3 {
			cancel()
		}
	})
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
}
