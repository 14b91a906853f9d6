package cluster

import (
	"errors"
	"testing"
	"time"

	"sluice/journal"
	"sluice/tools/conform"
	"sluice/tools/natstest"
	"sluice/tools/twoclocks"
)

// ahead returns what the leads in the journal say of their machines' clocks.
func (m *machine) ahead() (out []time.Duration) {
	m.t.Helper()
	log, _, err := journal.OpenRead(m.state, journal.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	if err := log.Replay(1, func(r journal.Record) error {
		if l, ok := r.Lead(); ok {
			out = append(out, time.Duration(l.Ahead)*time.Millisecond)
		}
		return nil
	}); err != nil {
		m.t.Fatal(err)
	}
	return out
}

// A machine that takes over records how far its clock is ahead of that of the one before, and counts
// the time in which nobody led by its own clock.
func TestClocks(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "13-cluster clocks", "renewals carry the time; the new leader shifts deadlines by its offset, in a fact")
	servers := natstest.Start(t, 1)
	a, b, c := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL()), newMachine(t, "c", servers.URL())
	b.skew = time.Hour
	id := a.begin(1)
	takesOver := func(from *decider, to *machine) *decider {
		t.Helper()
		took := make(chan *decider)
		go func() { took <- to.mustLead(id, true) }()
		time.Sleep(testLease) // it follows, and hears renewals
		from.die()
		return <-took
	}
	near := func(d, want time.Duration) bool { return (d - want).Abs() < clockSlack }
	d := takesOver(a.mustLead(id, false), b)
	if at := d.member.Report().Renewed; time.Since(at.Add(-b.skew)).Abs() > 2*testLease {
		t.Errorf("the last renewal was at %s by b's clock, and is now %s", at, time.Now().Add(b.skew))
	}
	e := takesOver(takesOver(d, c), a) // c's clock and a's are the same
	if got := a.ahead(); len(got) != 5 || got[0] != 0 || got[1] != 0 || !near(got[2], time.Hour) || !near(got[3], -time.Hour) || got[4] != 0 {
		t.Errorf("the clocks are ahead by %s", got)
	}
	e.end()
	// who has heard no renewal but the last cannot know
	d, err := b.lead(id, true, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.ahead(); got[len(got)-1] != 0 {
		t.Errorf("it says that its clock is ahead by %s", got[len(got)-1])
	}
	d.end()
}

// A renewal that was read late shows nothing of the clock: nor does one without a time.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	now, hour := time.Now(), time.Hour
	at := func(d time.Duration) renewal { return renewal{At: now.Add(d - hour)} } // an hour behind
	saw := func(reads ...any) time.Duration {
		var q silence
		for i := 0; i < len(reads); i += 2 {
			d := reads[i].(time.Duration)
			switch r := reads[i+1].(type) {
			case renewal:
				q.saw(r, uint64(i+1), nil, now.Add(d), now.Add(d))
			case uint64: // nothing new
				q.saw(q.last, q.rev, nil, now.Add(d), now.Add(d))
			case error:
				q.saw(renewal{}, 0, r, now.Add(d), now.Add(d))
			}
		}
		return q.ahead
	}
	const second = time.Second
	for name, c := range map[string]struct{ got, want time.Duration }{
		"one":          {saw(second, at(0)), 0},
		"two":          {saw(second, at(0), 2*second, at(2*second)), hour},
		"after a gap":  {saw(second, at(0), 60*second, at(2*second)), 0},
		"after errors": {saw(second, at(0), 2*second, errors.New("x"), 60*second, at(2*second)), 0},
		"seen between": {saw(second, at(0), 59*second, uint64(0), 60*second, at(60*second)), hour},
		"no time":      {saw(second, at(0), 2*second, renewal{}), 0},
		"nearly one":   {saw(second, at(0), 2*second, renewal{At: now.Add(second)}), 0},
		"absurd":       {saw(second, at(0), 2*second, renewal{At: now.Add(-2 * journal.MaxAhead)}), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: ahead by %s, want %s", name, c.got, c.want)
		}
	}
}

// TestALeaseEndsInASleep: another machine may have led for an hour when a machine that slept wakes up. Its
// steady clock stood still meanwhile.
func TestALeaseEndsInASleep(t *testing.T) {
	wall, steady := time.Now(), time.Hour
	m := &Member{packs: &Packs{}, opt: Options{Now: func() time.Time { return twoclocks.Time(wall, steady) }}}
	m.report.Leads, m.until = true, twoclocks.Time(wall.Add(testLease), steady+testLease)
	holds := func(what string, want bool) {
		t.Helper()
		if m.Holds() != want || m.Report().Holds != want {
			t.Errorf("%s: it holds %t, and reports %t", what, m.Holds(), m.Report().Holds)
		}
	}
	holds("just renewed", true)
	wall = wall.Add(time.Hour)
	holds("after a sleep", false)
	wall, steady = wall.Add(-2*time.Hour), steady+testLease
	holds("a lease later, and the clock was set back", false)
}
