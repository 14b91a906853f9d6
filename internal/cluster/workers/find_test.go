package workers

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// found has a machine that has just begun to decide look for a launch.
func (b *bench) found(key string) <-chan launch.Back {
	out := make(chan launch.Back, 1)
	go func() {
		back, err := b.Launch(b.t.Context(), key, []string{"linux"}, nil, launch.Watch{})
		if err == nil {
			out <- back
		}
	}()
	return out
}

// sends has launches begin, and the machine that sent them gone.
func (b *bench) sends(m *maker, keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.launches(key, launch.Watch{})
		until(b.t, "it is made", func() bool { return m.begun(key) == 1 })
	}
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// A machine that decides after another one goes on with what workers do, whether it has ended by then
// or not.
func TestTakeoverFindsALaunch(t *testing.T) {
	conform.Rule(t, "13-workers late", "a takeover finds what a worker does by its heartbeat, and its result counts")
	t.Parallel()
	for name, before := range map[string]bool{"it runs": false, "it has ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := natstest.Start(t, 1)
			old, m := newBench(t, s, 1), newMaker()
			_, _, _ = hire(t, s, t.TempDir(), m, 1)
			old.sends(m, testKey)
			end := func() { close(m.ends) }
			if before {
				end()
			}
			b := newBench(t, s, 2)
			back := b.found(testKey)
			until(t, "it is found", func() bool { return b.Knows(testKey) })
			if !before {
				end()
			}
			if x := within(t, back).Exit; x.Code != 7 || x.Lost {
				t.Errorf("%+v", x)
			}
			if n := m.begun(testKey); n != 1 || b.Token(testKey) != testToken(testKey) {
				t.Errorf("it was made %d times; the token is %q", n, b.Token(testKey))
			}
			until(t, "the worker forgets it", func() bool { return b.Workers()[0].Launches == nil })
		})
	}
}

// A launch that no worker shows to have is lost, and is sent to none: neither where a worker's heartbeat
// names it without its token, nor where nothing is said of it.
func TestTakeoverFindsNothing(t *testing.T) {
	conform.Rule(t, "13-workers keys", "after a takeover no key is sent a second time")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 2), newMaker()
	p, _, _ := hire(t, s, t.TempDir(), m, 1)
	other := sentFor(testKey)
	other.Token = strings.Repeat("ab", 16)
	if a, err := b.ask(t.Context(), p.ID(), call{Do: doLaunch, Key: testKey, Sent: &other}); err != nil || a.Is != isRunning {
		t.Fatalf("%+v, %v", a, err)
	}
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	until(t, "a heartbeat names it", func() bool { w := b.Workers(); return len(w) == 1 && len(w[0].Launches) == 1 })
	unknown := strings.TrimSuffix(testKey, "1") + "2"
	for _, back := range []<-chan launch.Back{b.found(testKey), b.found(unknown)} {
		if x := within(t, back).Exit; !x.Lost {
			t.Errorf("%+v", x)
		}
	}
	if m.begun(unknown) != 0 || !strings.Contains(b.log.String(), "no worker shows it") {
		t.Errorf("it was made %d times; the log:\n%s", m.begun(unknown), b.log)
	}
	until(t, "what nobody waits for is ended", func() bool { return b.Workers()[0].Launches == nil })
}

// What this machine has not asked for yet goes on for as long as the journal has it, however long the work
// takes to bring here. What the journal does not have is ended.
func TestTakeoverEndsOnlyWhatIsOver(t *testing.T) {
	conform.Rule(t, "13-workers late", "what a worker does goes on while the journal has it, also before it is asked for")
	t.Parallel()
	s := natstest.Start(t, 1)
	old, m := newBench(t, s, 1), newMaker()
	_, _, _ = hire(t, s, t.TempDir(), m, 3)
	const other, again = "far-2/A#1.1", testKey + "+1"
	old.sends(m, testKey, other, again)
	b := newBench(t, s, 2)
	has := func() (keys []string) {
		for _, w := range b.Workers() {
			for _, l := range w.Launches {
				keys = append(keys, l.Key)
			}
		}
		return keys
	}
	all := []string{testKey, again, other}
	for since := time.Now(); time.Since(since) < 3*b.silence(); rest(t) { // the journal is still being read
		if keys := has(); len(keys) > 0 && !slices.Equal(keys, all) {
			t.Fatalf("it has only %v", keys)
		}
	}
	b.Recorded([]string{testKey})
	until(t, "what is over is ended", func() bool { return slices.Equal(has(), []string{testKey, again}) })
	back := b.found(testKey)
	until(t, "it is found", func() bool { return b.Knows(testKey) })
	close(m.ends)
	if x := within(t, back).Exit; x.Code != 7 || x.Lost {
		t.Errorf("%+v", x)
	}
}

// A launch that this machine sent, and that another one has seen to since, is ended here too: nobody
// comes back for it.
func TestOneWhoLeadsAgainEndsWhatIsOver(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	_, _, _ = hire(t, s, t.TempDir(), m, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Launch(ctx, testKey, []string{"linux"}, func() (launch.Sent, error) { return sentFor(testKey), nil },
			launch.Watch{Waits: func(string) {}, Began: func() {}}) // it waits until the worker has answered
		ended <- err
	}()
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	until(t, "its worker says so", func() bool { w := b.Workers(); return len(w) > 0 && len(w[0].Launches) == 1 })
	cancel()
	<-ended
	b.Recorded(nil) // of a scan that began before it was decided
	b.epoch.Store(3)
	for since := time.Now(); time.Since(since) < 3*time.Second; rest(t) {
		if w := b.Workers(); len(w) > 0 && len(w[0].Launches) != 1 {
			t.Fatal("it is ended by what is known of an earlier epoch")
		}
	}
	b.Recorded(nil)
	until(t, "it is ended", func() bool { return b.Workers()[0].Launches == nil })
}

// A launch that another machine has sent, and that is to end, is ended on its worker.
func TestTakeoverStopsALaunch(t *testing.T) {
	conform.Rule(t, "13-workers late", "a launch of the machine before that is to end is looked for, and ended")
	t.Parallel()
	s := natstest.Start(t, 1)
	old, m := newBench(t, s, 1), newMaker()
	_, _, _ = hire(t, s, t.TempDir(), m, 1)
	old.sends(m, testKey)
	b := newBench(t, s, 2)
	if back, err := b.Stop(t.Context(), testKey); err != nil || back == nil || !back.Exit.Stopped {
		t.Fatalf("%+v, %v", back, err)
	}
	until(t, "the worker forgets it", func() bool { return b.Workers()[0].Launches == nil })
}

// While nothing may begin, the time in which a worker may show itself does not pass.
func TestTakeoverWaitsForTheServers(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b := newBench(t, s, 0)
	back := b.found(testKey)
	select {
	case x := <-back:
		t.Errorf("%+v", x)
	case <-time.After(b.silence() + time.Second):
	}
}
