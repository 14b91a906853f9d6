package workers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// A worker that drains finishes what it has, a correction of an answer included, and is given nothing
// new. It drains after its restart, and for whoever decides next, until it is resumed.
func TestDrain(t *testing.T) {
	conform.Rule(t, "13-workers drain", "it finishes what it has, and takes nothing new, after its restart and a takeover too")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m, state := newBench(t, s, 1), newMaker(), t.TempDir()
	p, _, stop := hire(t, s, state, m, 3)
	first := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	drained := func(b *bench) func() bool {
		return func() bool { w := b.Workers(); return len(w) == 1 && w[0].Draining }
	}
	if err := b.Drain(t.Context(), p.ID(), true); err != nil {
		t.Fatal(err)
	}
	until(t, "it says so", drained(b))
	said := make(chan string, 10)
	_ = b.launches("far-2/A#1.1", launch.Watch{Waits: func(why string) { said <- why }})
	if why := <-said; !strings.Contains(why, "are draining: `sluice workers resume ID`") {
		t.Error(why)
	}
	correction := b.launches(testKey+"+1", launch.Watch{})
	until(t, "it is corrected", func() bool { return m.begun(testKey+"+1") == 1 })

	// whatever a heartbeat in its name says
	b.full(p, "far-3/A#1.1")

	stop()
	p, _, _ = hire(t, s, state, m, 3)
	until(t, "it drains after its restart", drained(b))
	close(m.ends)
	if x := within(t, first).Exit; x.Code != 7 {
		t.Errorf("%+v", x)
	}
	within(t, correction)
	if n := m.begun("far-2/A#1.1"); n != 0 {
		t.Errorf("it was given %d launches more", n)
	}

	next := newBench(t, s, 2)
	until(t, "whoever decides next sees it", drained(next))
	if err := next.Drain(t.Context(), p.ID(), false); err != nil {
		t.Fatal(err)
	}
	within(t, next.launches("far-4/A#1.1", launch.Watch{}))
	if err := b.Drain(t.Context(), "0000000000000000", true); err == nil || !strings.Contains(err.Error(), "no worker 0000000000000000 is there") {
		t.Errorf("%v", err)
	}
}

// To drain and to resume count once each, however often and late they are repeated.
func TestDrainCountsOnce(t *testing.T) {
	t.Parallel()
	at := time.Now()
	c := func(do string, epoch int64, after time.Duration) call {
		return call{Do: do, Journal: testJournal, Epoch: epoch, At: at.Add(after)}
	}
	state := t.TempDir()
	post := func() *Post {
		p, err := NewPost(PostOptions{State: state, Journal: testJournal, Logf: t.Logf, Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i, x := range []struct {
		call
		is     string
		drains bool
	}{
		{c(doDrain, 1, 0), isDone, true},
		{c(doResume, 1, 1), isDone, false},
		{c(doDrain, 1, 0), isRefused, false},
		{c(doDrain, 1, 1), isRefused, false},
		{c(doDrain, 2, -time.Minute), isDone, true}, // another machine, another clock
		{c(doResume, 1, 2), isRefused, true},
		{c(doResume, 2, -2*time.Minute), isRefused, true},
		{c(doResume, 2, goodFor+1), isRefused, true},
		{c(doResume, 2, 0), isDone, false},
	} {
		p := post()
		a, err := p.do(t.Context(), x.call)
		if err != nil || a.Is != x.is || post().drains.Drains != x.drains {
			t.Errorf("%d. %s: %+v, %v; it drains: %v", i+1, x.Do, a, err, p.drains)
		}
	}
}

// A request that is older than a key is kept, by the worker's clock, is refused: it would make a launch
// again.
func TestOldRequestIsRefused(t *testing.T) {
	t.Parallel()
	at, sent := time.Now(), sentFor(testKey)
	p, err := NewPost(PostOptions{State: t.TempDir(), Journal: testJournal, Logf: t.Logf, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []time.Duration{-goodFor - 1, goodFor + 1} {
		a, err := p.do(t.Context(), call{Do: doLaunch, Journal: testJournal, Epoch: 1, At: at.Add(off), Key: testKey, Sent: &sent})
		if err != nil || a.Is != isRefused || !strings.Contains(a.Why, "set the clocks") {
			t.Errorf("%v: %+v, %v", off, a, err)
		}
	}
	if a, err := p.do(t.Context(), call{Do: doAsk, Journal: testJournal, Epoch: 1, At: at.Add(-goodFor), Key: testKey}); err != nil || a.Is != isUnknown {
		t.Errorf("%+v, %v", a, err)
	}
}

// A worker does only what is for its labels, whatever somebody's heartbeat has said of it.
func TestOrderNeedsLabels(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	p, _, _ := hire(t, s, t.TempDir(), m, 1)
	sent := sentFor(testKey)
	c := call{Do: doLaunch, Key: testKey, On: []string{"linux", "gpu"}, Sent: &sent}
	if a, err := b.ask(t.Context(), p.ID(), c); err != nil || a.Is != isRefused || !strings.Contains(a.Why, "linux, gpu") {
		t.Errorf("%+v, %v", a, err)
	}
	if m.begun(testKey) != 0 {
		t.Error("it is made")
	}
}

// A worker that is asked to end takes nothing new, finishes what it has, hands it over and returns; one
// that has nothing does so at once.
func TestLeave(t *testing.T) {
	conform.Rule(t, "13-workers drain", "Ctrl-C drains the worker, and it ends with what it has")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	leave, told := make(chan struct{}), make(chan int, 1)
	o := PostOptions{Conn: connect(t, s), State: t.TempDir(), Slots: 2, Maker: m, Logf: t.Logf, Leaves: func(n int) { told <- n }}
	p, stop := hireAs(t, o, leave)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	close(leave)
	if n := <-told; n != 1 {
		t.Errorf("it says that it has %d launches", n)
	}
	until(t, "it drains", func() bool { return b.Workers()[0].Draining })
	b.full(p, "far-3/A#1.1")
	if err := b.Drain(t.Context(), p.ID(), false); err == nil || !strings.Contains(err.Error(), "the worker is ending") {
		t.Errorf("it is resumed: %v", err)
	}
	close(m.ends)
	if x := within(t, back).Exit; x.Code != 7 {
		t.Errorf("%+v", x)
	}
	until(t, "it has returned", func() bool {
		_, err := b.ask(t.Context(), p.ID(), call{Do: doAsk, Key: testKey})
		return err != nil && strings.Contains(err.Error(), "no responders")
	})
	stop()
	if m.mu.Lock(); !slices.Equal(m.cleared, []string{testKey}) {
		t.Errorf("cleared: %v", m.cleared)
	}
	m.mu.Unlock()

	o.Conn = connect(t, s) // the next start serves again
	p, _ = hireAs(t, o, nil)
	if p.drains.Drains || p.leaves {
		t.Error("it drains after its restart")
	}
}
