package workers

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/tools/natstest"
)

// many is a maker whose launches leave so many files that their removal takes until the test says so.
type many struct {
	*maker
	goes chan struct{}
}

func (m *many) Clear(ctx context.Context, s launch.Sent) error {
	<-m.goes
	return m.maker.Clear(ctx, s)
}

func (m *many) Forget(folder string, runs []string) error {
	<-m.goes
	return m.maker.Forget(folder, runs)
}

// A worker that removes what launches have left is there meanwhile, and its other launches go on.
func TestThereWhileItRemoves(t *testing.T) {
	t.Parallel()
	s, state := natstest.Start(t, 1), t.TempDir()
	m := &many{newMaker(), make(chan struct{})}
	goes := sync.OnceFunc(func() { close(m.goes) })
	old, err := NewPost(PostOptions{State: state, Journal: testJournal, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	const oldKey, oldDir = "far-0/A#1.1", ".workflow/runs/far-0/A.1"
	if err := old.keep(&made{Sent: launch.Sent{Key: oldKey, Run: "far-0", Dir: oldDir}, Over: true,
		Since: time.Now().Add(-keptFor - time.Hour)}); err != nil {
		t.Fatal(err)
	}
	b, ask := newBench(t, s, 1), connect(t, s)
	beats := make(chan *nats.Msg, 1000)
	if _, err := ask.Listen(prefix+old.ID()+beatEnd, beats); err != nil {
		t.Fatal(err)
	}
	p, _, _ := hire(t, s, state, m, 2)
	t.Cleanup(goes)
	first := b.launches("far-1/A#1.1", launch.Watch{})
	until(t, "it is made", func() bool { return m.begun("far-1/A#1.1") == 1 })
	m.Stop(t.Context(), sentFor("far-1/A#1.1"))
	within(t, first)
	second := b.launches("far-2/A#1.1", launch.Watch{})
	until(t, "the other is made", func() bool { return m.begun("far-2/A#1.1") == 1 })
	until(t, "it is asked to forget the first", func() bool {
		a, err := b.ask(t.Context(), p.ID(), call{Do: doDrop, Key: "far-1/A#1.1"})
		return err == nil && a.Is == isOver
	})
	for len(beats) > 0 {
		<-beats
	}
	until(t, "two more heartbeats come", func() bool { return len(beats) > 1 })
	sent := sentFor("far-0/A#2.1") // in the folder that is being removed
	if a, err := b.ask(t.Context(), p.ID(), call{Do: doLaunch, Key: sent.Key, Sent: &sent}); err != nil || a.Is != isFull {
		t.Errorf("%+v, %v", a, err)
	}
	goes()
	until(t, "all is removed", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.cleared) == 1 && len(m.forgot) == 1
	})
	until(t, "its folder is free again", func() bool {
		a, err := b.ask(t.Context(), p.ID(), call{Do: doLaunch, Key: sent.Key, Sent: &sent})
		return err == nil && a.Is == isRunning
	})
	close(m.ends)
	if got := within(t, second); got.Exit.Code != 7 {
		t.Errorf("%+v", got.Exit)
	}
}
