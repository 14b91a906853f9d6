package workers

import (
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
			old.launches(testKey, launch.Watch{})
			until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
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
