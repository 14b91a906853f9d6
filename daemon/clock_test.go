package daemon

import (
	"testing"
	"time"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/twoclocks"
)

// TestDeadlinesAreTheWalls: what is due is said by the clock on the wall, as after a start, and not
// by the one that stands still while the machine sleeps.
func TestDeadlinesAreTheWalls(t *testing.T) {
	conform.Rule(t, "8-semantics 36", "a deadline is kept by the clock on the wall while the machine sleeps")
	for _, long := range []time.Duration{time.Minute, 50 * time.Hour} { // it ends after the sleep; it passed in it
		b := handled(t)
		b.now = twoclocks.Time(b.now, 0)
		b.turn()
		b.now = twoclocks.Time(b.now.Add(long), 2*time.Second)
		b.turn()
		left := b.run().Current("A").Deadline.Sub(b.now)
		b.now = twoclocks.Time(b.now.Add(left), left)
		b.turn()
		if p := b.run().Procs[0]; p.Stop != "timeout" {
			t.Errorf("a sleep of %s: its time is over, and it goes on: %+v", long, p)
		}
	}
}

// TestAClockSetBack: what comes due after the clock was set back is seen, though the clock has been
// there before.
func TestAClockSetBack(t *testing.T) {
	conform.Rule(t, "8-semantics 36", "a clock set back delays no time-out that is set after it")
	b := handled(t)
	wall, steady := b.now, b.now.Sub(twoclocks.Time(b.now, 0))
	until := func(due time.Time) { // all clocks go on
		steady += due.Sub(wall.Round(0))
		wall = due
		b.now = twoclocks.Time(wall, steady)
		b.turn()
	}
	a := b.run().Current("A")
	until(a.Deadline)
	if p := b.run().Procs[0]; p.Stop != "timeout" {
		t.Fatalf("%+v", p)
	}
	wall = wall.Add(-24 * time.Hour)
	b.now = twoclocks.Time(wall, steady)
	b.turn(engine.ProcessEnded{Run: "two-1", Key: a.Key, Exit: engine.Exit{Stopped: true, Code: -1}})
	a = b.run().Current("A")
	if a.State != engine.Ready || !a.NotBefore.After(b.now) {
		t.Fatalf("it does not rest before it is launched again: %+v", a)
	}
	until(a.NotBefore)
	if a = b.run().Current("A"); a.State != engine.Running {
		t.Fatalf("it rests until the clock is where it was: %+v", a)
	}
	until(a.Deadline)
	if p := b.run().Procs.Of(a.Key); p.Stop != "timeout" {
		t.Errorf("its time is over, and it goes on: %+v", p)
	}
}

// TestTheTimeAwayIsTheWalls: a window that is open again at a start ends by the clock on the wall. By the
// steady one it would have ended where the clock is set back meanwhile, and the loop would never rest.
func TestTheTimeAwayIsTheWalls(t *testing.T) {
	conform.Rule(t, "8-semantics 36", "how long nobody was there is told by the clock on the wall alone")
	b := handled(t)
	b.now = twoclocks.Time(b.now, time.Hour)
	if w := b.start(t.Context())[0].event.(engine.Woken); w.To != w.To.Round(0) {
		t.Errorf("%s", w.To)
	}
}

// TestAWordAfterAClockSetBack: a person's word by the socket is about the round that is there, also
// where that was opened at a time that has yet to come.
func TestAWordAfterAClockSetBack(t *testing.T) {
	conform.Rule(t, "8-semantics 22", "a word by a command is about the newest round, whatever the clock was set to since that opened")
	for _, run := range []string{"", "two-1"} {
		b := handled(t)
		b.window()
		b.now = twoclocks.Time(b.now.Add(-24*time.Hour), time.Hour)
		asked := make(chan error, 1)
		var ev engine.Event
		go func() {
			var err error
			ev, err = b.intake.event(t.Context(), Do{Kind: "answered", Event: []byte(`{"gate":"GA","run":"` + run + `","outcome":"veto","text":"no"}`)}, engine.Actor{})
			asked <- err
		}()
		for waiting := true; waiting; {
			select {
			case it := <-b.queue.items:
				if err := b.Repo.turn(t.Context(), []item{*it}); err != nil {
					t.Fatal(err)
				}
			case err := <-asked:
				if waiting = false; err != nil {
					t.Fatal(err)
				}
			}
		}
		b.turn(ev)
		if q := b.run().Rounds["GA"][0]; q.Outcome != engine.OutcomeFail {
			t.Errorf("run %q: the veto does not count: %+v", run, q)
		}
	}
}

// TestSinceWhenNobodyServes: marks and records of before the clock was set back do not hide for how
// long nobody was there.
func TestSinceWhenNobodyServes(t *testing.T) {
	conform.Rule(t, "8-semantics 36", "how long nobody served a repo is told also where the clock was set back before")
	now := time.Now().Round(0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	b := handled(t)
	for name, x := range map[string]struct{ mark, last, want time.Time }{
		"nothing tells":           {want: now},
		"the mark":                {mark: ago(time.Hour), last: ago(2 * time.Hour), want: ago(time.Hour)},
		"a record a little later": {mark: ago(time.Hour), last: ago(time.Hour - aliveEvery), want: ago(time.Hour - aliveEvery)},
		"no mark":                 {last: ago(time.Hour), want: ago(time.Hour)},
		"the record is of before it was set back":         {mark: ago(26 * time.Hour), last: ago(2 * time.Hour), want: ago(26 * time.Hour)},
		"the record is later than now":                    {mark: ago(time.Hour), last: ago(-2 * time.Hour), want: ago(time.Hour)},
		"the mark is later than now":                      {mark: ago(-2 * time.Hour), last: ago(time.Hour), want: ago(time.Hour)},
		"both are later than now: it was set back before": {mark: ago(-2 * time.Hour), last: ago(-time.Hour), want: now},
	} {
		b.served, b.core.lastAt = func() time.Time { return x.mark }, x.last
		if got := b.left(now); !got.Equal(x.want) {
			t.Errorf("%s: %s ago, want %s", name, now.Sub(got), now.Sub(x.want))
		}
	}
	var marks []time.Time
	b.serve = func(at time.Time) { marks = append(marks, at.Round(0)) }
	b.now = twoclocks.Time(b.now, 0)
	b.turn()
	b.now = twoclocks.Time(b.now.Add(-24*time.Hour), 0)
	if b.turn(); len(marks) != 1 || !marks[0].Equal(b.now) {
		t.Errorf("the mark of being there is of before the clock was set back: %s", marks)
	}
}
