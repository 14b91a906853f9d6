package engine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// indexFault compares the index with a walk over the whole state; "" if they agree.
func (s *State) indexFault(specs Specs) string {
	x := &s.index
	want := map[string]list{}
	kin := map[string]list{}
	put := func(name string, r *Run, in bool) {
		if in {
			want[name] = append(want[name], r)
		}
	}
	for i, id := range s.Order {
		r := s.Runs[id]
		if i > 0 && s.Runs[s.Order[i-1]].seq >= r.seq {
			return id + " is out of order"
		}
		if why := r.indexFault(specs(r.Digest)); why != "" {
			return id + ": " + why
		}
		if why := s.scheduleFault(r, specs); why != "" {
			return id + ": " + why
		}
		put("live", r, r.Live())
		put("pending", r, r.Phase == RunPending)
		put("afoot", r, r.Live() || len(r.Procs) > 0)
		put("closing", r, r.Phase == RunRunning && r.closes())
		put("live of "+r.flowKey(), r, r.Live())
		put("ended of "+r.flowKey(), r, !r.Live())
		if r.Live() {
			kin[r.Digest] = append(kin[r.Digest], r)
		}
	}
	got := map[string]list{"live": x.live, "pending": x.pending, "afoot": x.afoot, "closing": x.closing}
	for id, f := range x.workflows {
		got["live of "+id], got["ended of "+id] = f.live, f.ended
	}
	for name, l := range got {
		if !slices.Equal(l, want[name]) {
			return fmt.Sprintf("%s: kept %v, found %v", name, l.ids(), want[name].ids())
		}
	}
	for digest, l := range kin {
		if x.kin[digest] == nil || !slices.Equal(*x.kin[digest], l) {
			return fmt.Sprintf("kin of %s: found %v", digest, l.ids())
		}
	}
	if len(x.kin) != len(kin) {
		return fmt.Sprintf("kin: kept of %d specs, found of %d", len(x.kin), len(kin))
	}
	return ""
}

// scheduleFault reports a run that schedule would miss although it has something to launch or holds
// a worktree.
func (s *State) scheduleFault(r *Run, specs Specs) string {
	d := &decider{}
	d.draft = draft{s: s, specs: specs, at: time.Unix(1<<40, 0)}
	if w := specs(r.Digest); w != nil && r.Phase == RunRunning {
		if c := d.collect(r, w, nil); len(c) > 0 && !r.in.wanting {
			return fmt.Sprintf("it wants to launch a %s and is not among those who want", c[0].kind)
		}
		o := nothingTaken()
		for _, a := range r.alive {
			if o.hold(r, a); (len(o.holds) > 0 || len(o.next) > 0 || a.keeps(w.Step(a.step), r.Rounds)) && !r.in.holding {
				return fmt.Sprintf("%s.%d holds %s and the run is not among those who hold", a.step, a.N, a.Tree)
			}
		}
	}
	if r.in.holding != slices.Contains(s.index.holding, r) || r.in.wanting != slices.Contains(s.index.wanting, r) || len(r.Procs) > 0 && !r.in.holding {
		return "it is not where it says it is"
	}
	return ""
}

func (l list) ids() (out []string) {
	for _, r := range l {
		out = append(out, r.ID)
	}
	return out
}

// closes reports, by a walk, whether a full scan closes something in the run.
func (r *Run) closes() bool {
	for step := range r.Attempts {
		if a := r.Current(step); a != nil && a.inGrace() {
			return true
		}
	}
	for gate := range r.Rounds {
		if q := r.CurrentRound(gate); q != nil && q.State == OnWindow {
			return true
		}
	}
	return false
}

// indexFault compares a run's part of the index.
func (r *Run) indexFault(w *Spec) string {
	alive, open := 0, 0
	for step, as := range r.Attempts {
		for _, a := range as {
			if a.Live() != slices.Contains(r.alive, a) || a.step != step {
				return fmt.Sprintf("attempt %s.%d (of %s) is %s", step, a.N, a.step, a.State)
			}
			if a.Live() {
				alive++
			}
		}
	}
	for gate, qs := range r.Rounds {
		for _, q := range qs {
			if q.Open() != slices.Contains(r.open, q) || q.gate != gate {
				return fmt.Sprintf("round %s#%d (of %s) is %s", gate, q.N, q.gate, q.State)
			}
			if q.Open() {
				open++
			}
		}
	}
	if alive != len(r.alive) || open != len(r.open) {
		return fmt.Sprintf("%d attempts and %d rounds are kept, %d and %d found", len(r.alive), len(r.open), alive, open)
	}
	if w != nil && r.drawn && !reflect.DeepEqual(&r.joins, r.look(w)) {
		return fmt.Sprintf("kept view %+v, drawn %+v", r.joins, r.look(w))
	}
	return ""
}

// wakeByWalk is Wake by a walk over all runs.
func (s *State) wakeByWalk(after time.Time) time.Time {
	m := soonest{after: after}
	for _, a := range s.Armed {
		a.moment(&m)
	}
	for _, r := range s.Runs {
		for _, p := range r.Procs {
			if p.Stop == "" && r.wanted(p) {
				m.see(p.Deadline)
			}
		}
		if r.Phase != RunRunning {
			continue
		}
		if l := r.List; l != nil && l.Dirty && l.Writing == 0 && l.File == FileOK {
			m.see(l.Wrote.Add(time.Duration(WriteEvery)))
		}
		for step := range r.Attempts {
			if a := r.Current(step); a != nil {
				a.moments(&m, r.Procs.Of(a.Key), r.Paused)
			}
		}
		for gate := range r.Rounds {
			if q := r.CurrentRound(gate); q.Open() {
				q.moments(&m, r.Procs.Of(q.Key), r.Paused)
			}
		}
		if r.TimeLimit > 0 && !r.BusySince.IsZero() {
			m.see(r.BusySince.Add(time.Duration(r.TimeLimit - r.Spent)))
			if r.Near["max_duration"] != r.TimeLimit.String() {
				m.see(r.BusySince.Add(nearMoment(r.TimeLimit) - time.Duration(r.Spent)))
			}
		}
	}
	return m.at
}

// scanByWalk is NeedsScan by a walk over all runs.
func (s *State) scanByWalk(at time.Time) bool {
	for _, r := range s.Runs {
		if r.Phase != RunRunning || r.PausedWhy == pausedSpec {
			continue
		}
		for step := range r.Attempts {
			if a := r.Current(step); a != nil && a.inGrace() && !a.inGit() && passed(a.GraceUntil, at) {
				return true
			}
		}
		for gate := range r.Rounds {
			if q := r.CurrentRound(gate); q.Open() && q.State == OnWindow && !r.Paused && passed(q.WindowEnds, at) {
				return true
			}
		}
	}
	return false
}

// known is the debts of an observer that only looks at changed runs.
type known struct {
	st *State
	by map[Debtor][]string
}

// checkIndex checks every cache against a walk over the whole state.
func (w *sim) checkIndex() {
	if why := w.st.indexFault(w.seen); why != "" {
		w.fail("the index is not what it should be: %s", why)
	}
	for i, after := range []time.Time{w.ticked, w.now, w.now.Add(-time.Duration(w.events%100) * time.Second)} {
		if i > 0 && w.events%5 > 0 {
			break
		}
		if got, want := w.st.Wake(after), w.st.wakeByWalk(after); !got.Equal(want) {
			w.fail("wake after %s: kept %s, found %s", after, got, want)
		}
	}
	for _, at := range []time.Time{w.now, w.now.Add(20 * time.Second)} {
		if got, want := w.st.NeedsScan(at), w.st.scanByWalk(at); got != want {
			w.fail("needs a scan: kept %v, found %v", got, want)
		}
	}
	if w.knows.st != w.st {
		w.knows = known{st: w.st, by: map[Debtor][]string{}}
	}
	for _, who := range w.st.Changed(w.seen) {
		w.knows.by[who] = names(w.st.OwedBy(nil, who, w.seen))
		if len(w.knows.by[who]) == 0 {
			delete(w.knows.by, who)
		}
	}
	full := map[Debtor][]string{}
	for _, e := range w.st.Owed(w.seen) {
		full[e.Debtor()] = append(full[e.Debtor()], e.Name())
	}
	if !reflect.DeepEqual(full, w.knows.by) {
		w.fail("owed %v; who looks only at what changed believes %v", full, w.knows.by)
	}
}

// reread returns the state as read back from a snapshot.
func (w *sim) reread(st *State) *State {
	raw, err := json.Marshal(st)
	back := new(State)
	if err == nil {
		err = json.Unmarshal(raw, back)
	}
	if err != nil {
		w.fail("snapshot: %v", err)
	}
	return back
}

// TestWakesHeap: first returns the earliest run after any series of set, move and drop.
func TestWakesHeap(t *testing.T) {
	var h wakes
	runs := make([]*Run, 40)
	for i := range runs {
		runs[i] = &Run{}
	}
	for n := range 20_000 {
		r := runs[n*7919%len(runs)]
		next := time.Time{}
		if n%5 > 0 {
			next = time.Unix(int64(n*104729%997), 0)
		}
		if h.set(r, next); n%11 == 0 {
			h.drop(r)
			r.next = time.Time{}
		}
		var first *Run
		for _, o := range runs {
			if !o.next.IsZero() && (first == nil || o.next.Before(first.next)) {
				first = o
			}
			if o.slot > 0 && h[o.slot-1] != o || o.slot == 0 && !o.next.IsZero() {
				t.Fatalf("step %d: a run does not lie where it says", n)
			}
		}
		if n%3 > 0 {
			continue // nobody asks
		}
		if got := h.first(); (got == nil) != (first == nil) || got != nil && !got.next.Equal(first.next) {
			t.Fatalf("step %d: first %v, want %v", n, got, first)
		}
	}
}

// TestForgottenInTheMiddle: runs leave the state while a decision visits all of them.
func TestForgottenInTheMiddle(t *testing.T) {
	w := one()
	w.Limits.MaxDuration = Duration(time.Hour)
	s := &script{world: newWorld(t, w)}
	for range KeepEnded {
		s.start("x")
		s.do(AbortRequested{Run: s.run})
	}
	for range 3 {
		s.do(RunRequested{Workflow: "x", Digest: "d-x", Parallel: true})
		s.run = s.st.Order[len(s.st.Order)-1]
		s.writes()
	}
	s.later(2 * time.Hour)
	if n := len(s.st.Order); n != KeepEnded+1 { // one still has a process
		t.Errorf("%d runs are kept", n)
	}
	for _, id := range s.st.Order {
		if r := s.st.Runs[id]; r.Live() {
			t.Errorf("%s is %s", id, r.Phase)
		}
	}
	s.replayed()
}

func TestNumbersAfterFilesOfEarlierRuns(t *testing.T) {
	s := begin(t, "", "", one())
	for _, c := range []struct {
		after int
		want  string
	}{{7, "x-8"}, {7, "x-9"}, {3, "x-10"}} {
		s.do(RunRequested{Workflow: "x", Digest: "d-x", Parallel: true, After: c.after})
		if s.st.Runs[c.want] == nil {
			t.Errorf("no run %s", c.want)
		}
	}
}
