package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

// lead lets another machine decide from now on, whose clock is ahead of that of the one before. Away
// is how long nobody decided.
func (s *script) lead(epoch int64, ahead, away time.Duration) {
	s.t.Helper()
	s.replayed()
	from := s.now.Add(ahead)
	s.now = from.Add(away)
	s.do(Woken{From: from, To: s.now, Epoch: epoch, Offset: Duration(ahead)})
	s.do(Ticked{})
}

func TestEpochOpensWindows(t *testing.T) {
	conform.Rule(t, "13-cluster windows", "a new epoch opens each open veto window again for min(veto_window, 30 s)")
	minutes := func(n int) func(*Gate) {
		return func(g *Gate) { d := Duration(time.Duration(n) * time.Minute); g.VetoWindow = &d }
	}
	left := func(s *script) string { return s.r().CurrentRound("ga").WindowEnds.Sub(s.now).String() }
	s := window(t, "", "", minutes(10))
	s.later(10*time.Minute - 2*time.Second)
	for epoch := range int64(3) { // each time
		s.lead(epoch+2, 0, time.Second)
		s.want(left(s), "30s", fmt.Sprint(len(s.owed(DoNotify))), "1")
		s.has(s.owed(DoNotify)[0].Notice.Text, "open again", fmt.Sprintf("epoch %d", epoch+2))
		s.tell()
		s.later(29 * time.Second)
		s.scan()
		s.want(s.gate("ga"), "1 window")
	}
	s.later(time.Second)
	s.scan()
	s.want(s.gate("ga"), "1 passed")

	s = window(t, "", "", minutes(10)) // one that lasts longer stays as it is
	s.later(time.Minute)
	s.lead(2, 0, 7*time.Second)
	s.want(left(s), "8m53s", fmt.Sprint(count[DeadlineMoved](s.log)), "0")

	s = window(t, "", "", func(g *Gate) { d := Duration(5 * time.Second); g.VetoWindow = &d }) // a short one in full
	s.later(4 * time.Second)
	s.lead(2, 0, time.Hour)
	s.want(left(s), "5s")

	s = window(t, "", "", minutes(10)) // a pause keeps it
	s.later(time.Minute)
	s.do(PauseRequested{Run: s.run, By: ann})
	s.lead(2, time.Hour, time.Hour)
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(left(s), "9m0s")
}

func TestEpochShiftsTimes(t *testing.T) {
	conform.Rule(t, "13-cluster clocks", "the new leader shifts deadlines by its offset, in a fact")
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		s := begin(t, "", "", one(level(LevelHuman), func(g *Gate) { g.Timeout, g.OnTimeout = Duration(time.Hour), EndFailed }))
		left := s.r().Current("a").Deadline.Sub(s.now)
		s.lead(2, ahead, 0)
		s.want(s.r().Current("a").Deadline.Sub(s.now).String(), left.String(), fmt.Sprint(len(s.owed(DoStop))), "0",
			s.now.Sub(s.r().Procs[0].since()).String(), "0s")
		s.done("a")
		s.lead(3, ahead, 0)
		s.want(s.r().CurrentRound("ga").Due.Sub(s.now).String(), "1h0m0s", s.r().Phase, RunRunning)
		s.replayed() // the fact alone brings it about
		s.want(s.r().CurrentRound("ga").Due.Sub(s.now).String(), "1h0m0s", fmt.Sprint(count[ClockShifted](s.log)), "2")
		s.do(Answered{Run: s.run, Gate: "ga", Outcome: OutcomePass, By: ann, Written: s.now, DigestNow: s.r().CurrentRound("ga").Digest})
		s.want(s.gate("ga"), "1 passed")

		s = window(t, "", "", func(g *Gate) { d := Duration(10 * time.Minute); g.VetoWindow = &d })
		s.later(10*time.Minute - 2*time.Second)
		s.lead(2, ahead, time.Second)
		s.scan()
		s.want(s.gate("ga"), "1 window", s.r().CurrentRound("ga").WindowEnds.Sub(s.now).String(), "30s")
	}
}
