package workers

import (
	"context"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/tools/natstest"
)

// A worker that was started anew after its clock was set back keeps its launches: its heartbeats are older than those
// before, which proves nothing, but it answers.
func TestClockSetBackBetweenTwoStarts(t *testing.T) {
	t.Parallel()
	s, m, state := natstest.Start(t, 1), newMaker(), t.TempDir()
	b := newBench(t, s, 1)
	start := func(ahead time.Duration) (stop func()) {
		t.Helper()
		p, err := NewPost(PostOptions{Conn: connect(t, s), State: state, Journal: testJournal, Name: "w", Labels: []string{"linux"},
			Slots: 1, Maker: m, Logf: t.Logf, Now: func() time.Time { return time.Now().Add(ahead) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, nil) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := start(3 * time.Hour)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	<-time.After(beatEvery + beatEvery/2) // a heartbeat has shown it
	stop()
	defer start(0)()
	select {
	case got := <-back:
		t.Errorf("it is given up: %+v", got.Exit)
	case <-time.After(b.silence() + b.silence()/2):
		close(m.ends)
		if got := within(t, back); got.Exit.Code != 7 {
			t.Errorf("%+v", got.Exit)
		}
	}
}

// The clock of who decides was a year ahead when it asked something, and is right since: workers take what
// it asks now.
func TestDeciderWhoseClockWasAhead(t *testing.T) {
	t.Parallel()
	s, m := natstest.Start(t, 1), newMaker()
	close(m.ends)
	b := newBench(t, s, 1)
	b.mu.Lock()
	b.asked = time.Now().AddDate(1, 0, 0)
	b.mu.Unlock()
	hire(t, s, t.TempDir(), m, 1)
	if got := within(t, b.launches(testKey, launch.Watch{})); got.Exit.Code != 7 {
		t.Errorf("%+v", got.Exit)
	}
}
