package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sluice/tools/conform"
	"sluice/tools/oracle"
)

// firings is a random history of triggers: sources that report anything any number of times, a clock
// that goes back and forth, crashes before and after a decision is journaled, snapshots, runs that end
// and are forgotten, people who arm and disarm.
type firings struct {
	*script
	rnd     *rand.Rand
	on      *On
	keys    []string      // that sources know
	forward time.Duration // by how much the clock was moved on
	owes    map[Debtor]string
	fates   fates
	fired   int
}

func newFirings(t *testing.T, seed uint64) *firings {
	rnd := rand.New(rand.NewPCG(seed, 1))
	overlaps := []string{OverlapParallel, OverlapParallel, OverlapQueue, OverlapSkip, OverlapReplace}
	on := On{Triggers: []*Trigger{every("schedule", time.Hour, []string{CatchOne, CatchAll, CatchNone}[rnd.IntN(3)]),
		kind(OnFiles), kind(OnPush), kind(OnWebhook)}, Overlap: overlaps[rnd.IntN(len(overlaps))], MaxPerDay: 1 + rnd.IntN(20)}
	f := &firings{script: armed(t, on), rnd: rnd, on: &on, owes: map[Debtor]string{}, fates: fates{oracle.Keys{}}}
	f.count(f.log)
	return f
}

// take decides on an event; a crash may lose the decision, or come after it.
func (f *firings) take(ev Event) {
	f.t.Helper()
	before := len(f.log)
	facts := f.do(ev)
	if f.rnd.IntN(20) == 0 { // nothing of it was journaled
		f.log, f.stamp = f.log[:before], f.stamp[:before]
		f.crash()
		return
	}
	f.count(facts)
	if fired, ok := ev.(Fired); ok && len(facts) == 0 {
		f.answered(fired)
	}
	if f.rnd.IntN(20) == 0 {
		f.crash()
	}
	if why := f.st.Fault(f.spec); why != "" {
		f.t.Fatalf("after %+v: %v", ev, why)
	}
	f.changed()
}

// crash reads the journal back, or a snapshot.
func (f *firings) crash() {
	st := NewState()
	for i, fact := range f.log {
		st.Apply(f.stamp[i], fact)
	}
	if f.rnd.IntN(2) == 0 {
		raw, err := json.Marshal(st)
		st = NewState()
		if err == nil {
			err = json.Unmarshal(raw, st)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	f.st = st
	f.owes = map[Debtor]string{}
}

// count holds what became of keys against what is remembered, and the firings against max_per_day.
func (f *firings) count(facts []Fact) {
	f.t.Helper()
	if why := cmp.Or(f.fates.take(facts), f.fates.kept(f.st)); why != "" {
		f.t.Fatal(why)
	}
	for _, fact := range facts {
		if _, ok := fact.(TriggerFired); ok {
			f.fired++
		}
	}
	days := int(f.forward/day) + 1
	if f.fired > days*f.on.MaxPerDay {
		f.t.Fatalf("%d fired within %s, and max_per_day is %d", f.fired, f.forward, f.on.MaxPerDay)
	}
}

// answered holds that nothing follows from a firing only where its key is known, its day is full, or
// its triggers are not armed.
func (f *firings) answered(ev Fired) {
	f.t.Helper()
	if a := f.st.Armed["x"]; !f.fates.Decided("x "+ev.Trigger+" "+ev.Key) && a.On && a.Full == "" {
		f.t.Fatalf("%s %s is new, and nothing follows from it", ev.Trigger, ev.Key)
	}
}

// changed holds Changed to Owed: who asks only those that it names knows all that is owed.
func (f *firings) changed() {
	f.t.Helper()
	for _, who := range f.st.Changed(f.spec) {
		f.owes[who] = fmt.Sprint(f.st.OwedBy(nil, who, f.spec))
	}
	for _, who := range f.st.debtors() {
		if owed := fmt.Sprint(f.st.OwedBy(nil, who, f.spec)); who.Kind == DoListen && f.owes[who] != owed {
			f.t.Fatalf("%v owes %s, and Changed knows of %s", who, owed, f.owes[who])
		}
	}
}

// step makes one thing happen.
func (f *firings) step() {
	f.t.Helper()
	switch f.rnd.IntN(12) {
	case 0, 1, 2, 3:
		if len(f.keys) == 0 || f.rnd.IntN(3) == 0 {
			f.keys = append(f.keys, fmt.Sprintf("k%d@%d", f.rnd.IntN(50), len(f.keys)))
		}
		ev := Fired{Workflow: "x", Trigger: []string{OnFiles, OnPush, OnWebhook}[f.rnd.IntN(3)], Key: f.keys[f.rnd.IntN(len(f.keys))]}
		if f.rnd.IntN(10) == 0 {
			ev.Skip = "nothing after all"
		}
		f.take(ev)
	case 4, 5, 6:
		f.serve()
	case 7:
		d := time.Duration(f.rnd.Int64N(int64(5 * time.Hour)))
		f.now, f.forward = f.now.Add(d), f.forward+d
		f.take(Ticked{})
	case 8:
		f.now = f.now.Add(-time.Duration(f.rnd.Int64N(int64(40 * time.Hour))))
		f.take(Ticked{})
	case 9:
		if live := f.st.LiveRuns(); len(live) > 0 {
			f.take(AbortRequested{Run: live[f.rnd.IntN(len(live))].ID})
		}
	case 10:
		if wake := f.st.Wake(f.now); !wake.IsZero() && wake.Sub(f.now) < 48*time.Hour {
			f.forward += wake.Sub(f.now)
			f.now = wake
			f.take(Ticked{})
		}
	case 11:
		switch f.rnd.IntN(4) {
		case 0:
			f.take(DisarmRequested{Workflow: "x"})
		default:
			f.take(ArmRequested{Workflow: "x", Source: "text", Digest: "d-x"})
		}
	}
}

// serve carries out what is owed, some of it twice.
func (f *firings) serve() {
	f.t.Helper()
	for _, e := range f.owed(DoFire) {
		ev := FiringRead{Workflow: e.Armed, Trigger: e.Trigger, Key: e.Firing.Key, Armed: "d-x", Run: RunRequested{Digest: "d-x", Source: "text"}}
		f.take(ev)
		if f.rnd.IntN(3) == 0 {
			f.take(ev)
		}
	}
	for _, e := range f.owed(DoStop) {
		f.take(ProcessEnded{Run: e.Run, Key: e.Key, Exit: Exit{Stopped: true}})
	}
}

// TestFiringHistories: each key one run, and max_per_day holds, whatever happens.
func TestFiringHistories(t *testing.T) {
	conform.Rule(t, "12-triggers simulation", "each key one run, whatever happens")
	conform.Rule(t, "12-triggers end", "each key is decided on once")
	for seed := range seeds(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFirings(t, seed)
			for range 250 {
				f.step()
			}
			if f.on.Overlap == OverlapParallel {
				f.calm()
			}
		})
	}
}

// calm lets days go by without faults: then each key that a source still offers has been decided on.
func (f *firings) calm() {
	f.t.Helper()
	do := func(ev Event) { f.count(f.do(ev)) }
	do(ArmRequested{Workflow: "x", Source: "text", Digest: "d-x"})
	f.on.MaxPerDay = len(f.keys) + MaxCaughtUp // what the schedule may need of it
	f.specs["d-x"].On.MaxPerDay = f.on.MaxPerDay
	for range 5 {
		for _, e := range f.owed(DoListen) {
			for _, key := range f.keys {
				do(Fired{Workflow: "x", Trigger: e.Trigger, Key: key})
			}
		}
		for len(f.owed(DoFire)) > 0 {
			e := f.owed(DoFire)[0]
			do(FiringRead{Workflow: "x", Trigger: e.Trigger, Key: e.Firing.Key, Armed: "d-x", Run: RunRequested{Digest: "d-x", Source: "text"}})
		}
		for _, r := range slices.Clone(f.st.LiveRuns()) {
			do(AbortRequested{Run: r.ID})
		}
		for _, e := range f.owed(DoStop) {
			do(ProcessEnded{Run: e.Run, Key: e.Key, Exit: Exit{Stopped: true}})
		}
		f.now, f.forward = f.now.Add(25*time.Hour), f.forward+25*time.Hour
		do(Ticked{})
	}
	for _, key := range f.keys {
		for _, id := range []string{OnFiles, OnPush} {
			if !f.st.Armed["x"].Known.Has(id, key) {
				f.t.Fatalf("%s %s was never decided on", id, key)
			}
		}
	}
}

// TestTenThousandKeys: many at once; max_per_day holds, and each has its run in the end.
func TestTenThousandKeys(t *testing.T) {
	conform.Rule(t, "12-triggers many", "max_per_day holds, and each has its run in the end")
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles)}, MaxPerDay: 2500})
	const many = 10_000
	mine := func(kind string) []Effect {
		return slices.DeleteFunc(s.st.OwedBy(nil, Debtor{DoListen, "x"}, s.spec), func(e Effect) bool { return e.Kind != kind })
	}
	days, runs := 0, 0
	for ; runs < many; days++ {
		if days > 20 {
			t.Fatal("it does not end")
		}
		for len(mine(DoListen)) > 0 {
			before := len(s.st.Armed["x"].Known)
			for i := range many {
				Decide(s.st, s.spec, Fired{Workflow: "x", Trigger: OnFiles, Key: fmt.Sprint(i)}, s.now)
			}
			for owed := mine(DoFire); len(owed) > 0; owed = mine(DoFire) {
				for _, f := range Decide(s.st, s.spec, FiringRead{Workflow: "x", Trigger: OnFiles, Key: owed[0].Firing.Key, Armed: "d-x",
					Run: RunRequested{Digest: "d-x", Source: "text"}}, s.now) {
					if r, ok := f.(RunStarted); ok {
						runs++
						Decide(s.st, s.spec, AbortRequested{Run: r.Run}, s.now)
						for _, p := range slices.Clone(s.st.Runs[r.Run].Procs) {
							Decide(s.st, s.spec, ProcessEnded{Run: r.Run, Key: p.Key, Exit: Exit{Stopped: true}}, s.now)
						}
					}
				}
			}
			if len(s.st.Armed["x"].Known) == before {
				break
			}
		}
		if runs > (days+1)*2500 {
			t.Fatalf("%d runs on day %d", runs, days+1)
		}
		s.now = s.now.Add(24 * time.Hour)
		Decide(s.st, s.spec, Ticked{}, s.now)
	}
	if runs != many || days < 4 {
		t.Errorf("%d runs of %d files in %d days", runs, many, days)
	}
	raw, err := json.Marshal(s.st.Armed)
	if err != nil || len(raw) > many*17+10_000 {
		t.Errorf("%d bytes of state: %v", len(raw), err)
	}
}
