package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

func TestRule22TheFileNamesAnotherRun(t *testing.T) {
	s := begin(t, "8-semantics 22", "an answer that names a run counts for no other", flow("x", aStep("a"), aGate("a", to(EndDone), level(LevelHuman))))
	s.done("a")
	first := s.run
	s.do(AbortRequested{Run: first})
	s.start("x")
	s.writes()
	for _, e := range s.owed(DoStop) {
		s.do(ProcessEnded{Run: e.Run, Key: e.Key})
	}
	s.done("a")
	s.want(s.gate("ga"), "1 human")
	s.now = s.now.Add(time.Second)
	file := FileSeen{Name: "ga-pass.json", ID: "late", Written: s.now, DigestNow: s.r().CurrentRound("ga").Digest,
		By: Actor{Who: "ann", Trust: TrustFile}, Human: &HumanSay{Run: first}}
	s.has(ignored(s.do(file)), "it belongs to run x-1")
	s.want(s.gate("ga"), "1 human", s.r().Phase, RunRunning)
	file.ID, file.Human = "now", &HumanSay{Run: s.run}
	s.want(ignored(s.do(file)), "", s.r().Phase, RunCompleted)
}

func TestRule23WhatFailedStaysFailed(t *testing.T) {
	s := begin(t, "8-semantics 23", "a voided pass does not make a step that said it failed one that is judged", flow("x", aStep("a"), aGate("a", to(EndDone), most(9))))
	for n := 1; n <= DefaultMaxSameFailure; n++ {
		s.writes()
		s.sentinel("a", StatusFailed, func(f *FileSeen) { f.Sentinel.Summary = "no" })
		s.exit("a", Exit{})
		for _, e := range s.owed(DoRun) {
			if e.Proc.Kind == ProcCheck {
				s.do(ProcessEnded{Run: e.Run, Key: e.Key, Check: &CheckResult{OK: true, Digest: "same"}})
			}
		}
	}
	s.want(s.gate("ga"), "3 human") // no progress: a person is asked, and the gate is not forced
	s.want(s.says("ga", OutcomePass, func(a *Answered) { a.DigestNow = "another" }), "", s.step("a"), "3 signalled")
	s.checked()
	s.want(fmt.Sprint(count[ReviewStarted](s.log)), "0")
	s.has(s.step("a"), "4 ") // it failed: back, and no reviewer was asked
}

func TestChecksAndHooksEndInTime(t *testing.T) {
	conform.Rule(t, "1-language timeout", "a check or hook that hangs is ended after the step's timeout, be it shorter or longer than that of the settings")
	for _, limit := range []time.Duration{time.Minute, 5 * time.Hour} {
		s := begin(t, "", "", flow("x", aStep("a", func(st *Step) { st.Timeout = Duration(limit) }), aGate("a", to(EndDone)),
			func(w *Spec) { w.AfterRun = &Command{Shell: "sleep 1d"} }))
		s.sentinel("a", StatusDone)
		s.exit("a", Exit{})
		s.later(limit - time.Second)
		s.want(fmt.Sprint(s.owes(DoRun, "x-1/a#1.check")), "true")
		s.later(2 * time.Second)
		s.want(fmt.Sprint(s.owes(DoStop, "x-1/a#1.check")), "true")
		s.do(AbortRequested{Run: "x-1"})
		s.do(ProcessEnded{Run: "x-1", Key: s.r().Procs[0].Key})
		s.want(fmt.Sprint(s.owes(DoRun, "x-1/after_run")), "true")
		s.later(time.Duration(DefaultConfig().Timeout) + time.Second)
		s.want(fmt.Sprint(s.owes(DoStop, "x-1/after_run")), "true")
		s.replayed()
	}
}

func TestRule36ACheckIsGivenTheGap(t *testing.T) {
	s := begin(t, "8-semantics 36", "the time-out of a check that passed while nobody was there is opened again, once", flow("x", aStep("a"), aGate("a", to(EndDone))))
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	s.restart(3 * time.Hour)
	s.want(fmt.Sprint(s.owes(DoRun, "x-1/a#1.check")), "true")
	s.restart(3 * time.Hour)
	s.want(fmt.Sprint(s.owes(DoStop, "x-1/a#1.check")), "true")
}

func TestNoScanIsAskedForAnUnreadSpec(t *testing.T) {
	s := begin(t, "8-semantics 37", "a run whose spec cannot be read asks for no scan", flow("x", aStep("a"), aGate("a", to(EndDone))))
	s.exit("a", Exit{})
	s.now = s.now.Add(time.Minute)
	s.want(fmt.Sprint(s.st.NeedsScan(s.now)), "true")
	s.specs = nil
	s.do(SpecUnread{Run: s.run, Why: "new"})
	s.scan()
	s.want(fmt.Sprint(s.st.NeedsScan(s.now)), "false")
}

func TestANoticeWithoutResultsOpensTheWindowAfterAPause(t *testing.T) {
	s := begin(t, "8-semantics 29", "the window of a notice given in a pause opens with the run, whatever came of it", flow("x", aStep("a"), aGate("a", to(EndDone), level(LevelNotify))))
	s.done("a")
	s.judged("ga", OutcomePass)
	s.do(PauseRequested{Run: s.run})
	for _, e := range s.owed(DoNotify) {
		s.do(Noticed{Run: e.Run, ID: e.Key})
	}
	s.do(ResumeRequested{Run: s.run})
	s.want(s.gate("ga"), "1 window")
}

func TestAFloodDrownsNoNotice(t *testing.T) {
	s := begin(t, "2-files signal 5", "files refused are all moved and recorded; of very many at once people are told of the first", flow("x", aStep("a"), aGate("a", to(EndDone))))
	for n := range 500 {
		s.has(ignored(s.do(FileSeen{Name: fmt.Sprint("junk", n), ID: fmt.Sprint("j", n), Written: s.now, Human: &HumanSay{}})), "nothing waits")
	}
	s.want(fmt.Sprint(len(s.owed(DoMove))), "500", fmt.Sprint(len(s.owed(DoNotify))), fmt.Sprint(tellRejected))
	s.tell()
	s.do(FileSeen{Name: "more", ID: "m", Written: s.now, Human: &HumanSay{}})
	s.want(fmt.Sprint(len(s.owed(DoNotify))), "1")
}
