package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkDecide plays a run of ten steps, each sent back once, to its end, like the loop: one
// Decide per event, then the next moment, whether a scan is needed, and what changed runs owe. It
// runs alone, or beside runs that are ended or wait for a person. An op is one event.
func BenchmarkDecide(b *testing.B) {
	for _, x := range []struct{ ended, waiting int }{{0, 0}, {KeepEnded, 0}, {KeepEnded, 20}, {KeepEnded, 200}, {KeepEnded, MaxPending - 1}} {
		b.Run(fmt.Sprintf("ended=%d/waiting=%d", x.ended, x.waiting), func(b *testing.B) { benchDecide(b, x.ended, x.waiting) })
	}
}

func benchDecide(b *testing.B, ended, waiting int) {
	s := benchWorld(b, ended, waiting)
	for range ended { // as many ended runs as are kept
		s.lap()
	}
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for n < b.N {
		n += s.lap()
		if ended+waiting == 0 { // alone: the next one, too
			s.st = NewState()
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}

// bench is the benchmark's world.
type bench struct {
	st    *State
	specs map[string]*Spec
	now   time.Time
	n     int
	owed  []Effect // owed and not carried out

	done   Sentinel // what every agent says
	check  CheckResult
	pass   Judgement
	refuse Judgement
}

func benchWorld(b *testing.B, ended, waiting int) *bench {
	parts, asks := []any{}, flow("wait", aStep("a"), aGate("a", to(EndDone), level(LevelHuman)))
	for i := range 10 {
		next := to(EndDone)
		if i < 9 {
			next = to(fmt.Sprint("s", i+1))
		}
		parts = append(parts, aStep(fmt.Sprint("s", i), tree("w")), aGate(fmt.Sprint("s", i), next))
	}
	s := &bench{st: NewState(), specs: map[string]*Spec{}, now: time.Unix(simEpoch, 0).UTC(),
		check: CheckResult{OK: true, Digest: "tree"}, pass: Judgement{Outcome: OutcomePass}, refuse: Judgement{Outcome: OutcomeFail, Feedback: "again"}}
	for _, w := range []*Spec{flow("run", parts...), asks, flow("old", aStep("a"), aGate("a", to(EndDone)))} {
		if f := w.Link(); f != nil {
			b.Fatal(f)
		}
		w.Digest = "d-" + w.ID
		s.specs[w.Digest] = w
	}
	for range ended {
		s.do(RunRequested{Workflow: "old", Digest: "d-old"})
		s.do(AbortRequested{Run: s.st.Order[len(s.st.Order)-1]})
	}
	for range waiting {
		s.do(RunRequested{Workflow: "wait", Digest: "d-wait", Parallel: true})
		s.drain()
	}
	return s
}

// do decides one event and updates what is owed.
func (s *bench) do(ev Event) {
	s.n++
	s.now = s.now.Add(time.Second)
	Decide(s.st, s.spec, ev, s.now)
	s.st.Wake(s.now)
	s.st.NeedsScan(s.now)
	for _, who := range s.st.Changed(s.spec) {
		s.owed = slices.DeleteFunc(s.owed, func(e Effect) bool { return e.Debtor() == who })
		s.owed = s.st.OwedBy(s.owed, who, s.spec)
	}
}

func (s *bench) spec(d string) *Spec { return s.specs[d] }

// lap plays one run to its end and returns the number of events.
func (s *bench) lap() int {
	s.n = 0
	s.do(RunRequested{Workflow: "run", Digest: "d-run"})
	s.drain()
	return s.n
}

// drain carries out what is owed until nothing is left.
func (s *bench) drain() {
	for {
		if len(s.owed) == 0 {
			return
		}
		e := s.owed[0]
		switch e.Kind {
		case DoWrite:
			s.do(FileWritten{Run: e.Run, ID: e.Key})
		case DoNotify:
			s.do(Noticed{Run: e.Run, ID: e.Key})
		case DoMove:
			s.do(FileMoved{ID: e.Key})
		case DoStop:
			s.do(ProcessEnded{Run: e.Run, Key: e.Key, Exit: Exit{Stopped: true}})
		default:
			s.run(e)
		}
	}
}

func (s *bench) run(e Effect) {
	ev := ProcessEnded{Run: e.Run, Key: e.Key}
	switch e.Proc.Kind {
	case ProcStep:
		s.do(FileSeen{Name: e.Step + "-done.json", Dir: e.Run, ID: e.Key, Written: s.now, Sentinel: &s.done})
	case ProcCheck:
		ev.Check = &s.check
	case ProcReview:
		ev.Verdict = &s.pass
		if e.N == 1 {
			ev.Verdict = &s.refuse
		}
	}
	s.do(ev)
}
