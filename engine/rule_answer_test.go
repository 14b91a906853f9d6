package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

// answers is a person's file at a gate of the script's run.
func (s *script) answers(name string, say *HumanSay, more ...func(*FileSeen)) []Fact {
	s.ids++
	s.now = s.now.Add(time.Second)
	ev := FileSeen{Name: name, ID: fmt.Sprint("h", s.ids), Written: s.now, Human: say, By: Actor{Who: "ann", Via: "file", Trust: TrustFile}}
	if r := s.r(); r != nil && r.CurrentRound("ga") != nil {
		ev.DigestNow = r.CurrentRound("ga").Digest
	}
	for _, m := range more {
		m(&ev)
	}
	return s.do(ev)
}

func TestRule22NameAndContent(t *testing.T) {
	conform.Rule(t, "2-files decision content", "a file whose name and content disagree decides nothing, and is refused with what to do")
	for _, c := range []struct {
		name string
		say  HumanSay
		why  string // "" = it counts
	}{
		{"ga-pass.json", HumanSay{Outcome: "fail"}, "its name says pass, its content fail: it decides nothing: write one of the two, or use `sluice pass ga` or `sluice fail ga`"},
		{"ga-pass.json", HumanSay{Outcome: "veto"}, "its name says pass, its content veto"},
		{"ga-pass.json", HumanSay{Outcome: "approved"}, `its name says pass, its content "approved", which is not an outcome of the gate (pass, fail, veto, again)`},
		{"ga-pass", HumanSay{Text: "Fail"}, "its name says pass, its content fail"},
		{"ga-fail.txt", HumanSay{Text: "pass."}, "its name says fail, its content pass"},
		{"ga-again", HumanSay{Outcome: "pass"}, "its name says again, its content pass"},
		{"ga-pass.json", HumanSay{Gate: "gb"}, "its name says gate ga, its content gate gb"},
		{"ga-pass.json", HumanSay{Outcome: "PASS", Gate: "ga"}, ""},
		{"ga-pass.json", HumanSay{}, ""},
		{"ga-pass", HumanSay{Text: "fail early"}, ""}, // words
		{"ga-fail.json", HumanSay{Outcome: "veto"}, ""},
		{"ga-veto.json", HumanSay{Outcome: "fail"}, ""},
		{"ga-veto", HumanSay{Text: "no"}, ""},
		{"ga-again", HumanSay{Outcome: "again"}, ""},
	} {
		s := begin(t, "", "", one(level(LevelHuman), route("again", "a")))
		s.done("a")
		say := c.say
		facts := s.answers(c.name, &say)
		if c.why == "" {
			s.want(c.name+" "+ignored(facts), c.name+" ", fmt.Sprint(s.gate("ga") == "1 human"), "false")
			continue
		}
		s.has(ignored(facts), c.why)
		s.want(s.gate("ga"), "1 human", fmt.Sprint(s.owes(DoMove, "")), "true")
		for _, e := range s.owed(DoMove) {
			if e.Move.Name == c.name {
				s.has(e.Move.Why, c.why)
			}
		}
	}
}

func TestRule20UnreadableHoldsTheWindow(t *testing.T) {
	conform.Rule(t, "2-files decision content", "in a veto window, a person's file that cannot be taken in has the round ask: the window does not close over it")
	for name, say := range map[string]*HumanSay{"ga-veto.json": nil, "ga-pass.json": {Outcome: "fail"}, "ga-fail.json": nil} {
		s := window(t, "", "")
		why := s.answers(name, say, func(f *FileSeen) { f.HumanBad = "it is no answer: \"reason\": unknown key" })
		s.has(ignored(why), "sluice")
		s.want(s.gate("ga"), "1 human", s.step("b"), "-")
		s.has(s.r().CurrentRound("ga").Why, "an answer could not be accepted", name)
		s.want(fmt.Sprint(s.r().CurrentRound("ga").WindowEnds.IsZero()), "true")
		s.replayed()
		s.later(time.Hour)
		s.scan()
		s.want(s.gate("ga"), "1 human")
		s.want(s.says("ga", OutcomePass), "", s.step("b"), "1 running")
	}
	for name, asks := range map[string]bool{"ga-veto": true, "ga-fail.txt": true, "ga-pass": false} { // of a file server whose clock is behind
		s := window(t, "", "")
		s.has(ignored(s.answers(name, &HumanSay{Text: "the tests miss a case"}, func(f *FileSeen) { f.Written = s.now.Add(-time.Hour) })), "written before round 1")
		s.want(name+" "+s.gate("ga"), name+" "+map[bool]string{true: "1 human", false: "1 window"}[asks])
	}
	s := begin(t, "", "", one()) // a round that an agent still judges goes on
	s.done("a")
	s.answers("ga-veto.json", nil, func(f *FileSeen) { f.HumanBad = "no" })
	s.want(s.gate("ga"), "1 reviewing")
	s = window(t, "", "")
	s.answers("ga-veto", nil, func(f *FileSeen) { f.HumanBad, f.Of = "no", "x-1/a#1.1" }) // an agent, from within its sandbox, asks nobody
	s.want(s.gate("ga"), "1 window")
}

func TestRule27FloodOfRefusedFiles(t *testing.T) {
	s := begin(t, "2-files refused", "of a launch's own inbox a few refused files are told, so many are kept, and the rest is one line", one())
	for i := range 2 * KeepRefused {
		s.answers(fmt.Sprint("junk-", i), nil, func(f *FileSeen) { f.Of = "x-1/a#1.1" })
	}
	s.want(fmt.Sprint(s.r().Refused), fmt.Sprintf("map[x-1/a#1.1:%d]", 2*KeepRefused))
	notices, told := 0, 0
	for _, f := range s.log {
		switch f := f.(type) {
		case NoticeOwed:
			notices++
		case Ignored:
			if f.What == "files from within x-1/a#1.1" {
				told++
			}
		}
	}
	s.want(fmt.Sprint(notices, told), fmt.Sprint(tellRejected, 1))
	s.has(ignored(s.do(FilesDropped{Of: "x-1/a#1.1", N: 2900})), "50 of its files were refused before: these were counted and not kept")
	s.do(FilesDropped{Of: "gone-1/a#1.1", N: 1}) // of a run that nobody knows
	s.sentinel("a", StatusDone, func(f *FileSeen) { f.Of, f.TokenOf = "x-1/a#1.1", "x-1/a#1.1" })
	s.want(s.step("a"), "1 signalled")
	s.replayed()
}
