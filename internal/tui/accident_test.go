package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"sluice/daemon"
	"sluice/engine"
)

// apart types keys one by one, so far apart.
func (s *sit) apart(keys string, d time.Duration) *sit {
	s.t.Helper()
	for _, k := range keys {
		s.waits(d)
		name := string(k)
		if k == '\r' {
			s.tell(keyOf("enter", "<enter>"))
			continue
		}
		s.tell(keyOf(name, name))
	}
	return s
}

// waits lets time pass, with something drawn before and after.
func (s *sit) waits(d time.Duration) *sit {
	s.tell(tea.FocusMsg{})
	s.at = s.at.Add(d)
	s.tell(tea.FocusMsg{})
	return s
}

// TestNoKeyDecidesByAccident: what was typed ahead, pasted, held down or typed for something else decides nothing.
func TestNoKeyDecidesByAccident(t *testing.T) {
	const typing, repeat = 120 * time.Millisecond, 33 * time.Millisecond
	open := func(s *sit) *sit { s.repo1(true, s.run("w-1", human(1))); return s.waits(time.Minute) }
	page := func(s *sit) *sit {
		open(s).desk.page = Page{Lines: []string{"task"}, Gate: "G", Round: 1}
		return s.apart("\r", time.Second).waits(time.Minute)
	}
	before := func(s *sit) *sit { s.repo1(true, s.run("w-1", daemon.GateStatus{ID: "G"})); return s }
	opens := func(s *sit) *sit { s.repo1(false, s.run("w-1", human(1))); return s }
	next := func(s *sit) *sit { s.repo1(false, s.run("w-1", human(2))); return s }
	for name, do := range map[string]func(s *sit){
		"a rejection typed at the page": func(s *sit) { page(s).apart("this is poor, stop\r", typing) },
		"a rejection typed at the list": func(s *sit) { open(s).apart("please stop\r", typing) },
		"p alone":                       func(s *sit) { open(s).apart("p", 0).waits(time.Hour) },
		"p at the page alone":           func(s *sit) { page(s).apart("p", 0).waits(time.Hour) },
		"p held down":                   func(s *sit) { open(s).apart(strings.Repeat("p", 200), repeat) },
		"p and Enter at once":           func(s *sit) { open(s).apart("p\r", 0) },
		"p and Enter within a second":   func(s *sit) { open(s).apart("p\r\r", 700*time.Millisecond) },
		"a paste that the terminal sends as it is": func(s *sit) {
			open(s).apart("ok\rp\rp\rfno\rp\r", time.Millisecond).waits(time.Hour)
		},
		"the same, slowly": func(s *sit) {
			open(s).apart("ok\rp\rp\rfno\rp\r", 20*time.Millisecond).waits(time.Hour)
		},
		"a paste that begins with f": func(s *sit) {
			open(s).apart("foo bar\r", time.Millisecond).apart("\r", time.Minute)
		},
		"a paste into the words, as it is": func(s *sit) {
			open(s).apart("f", 0).apart("b", time.Minute).apart("ad\rp\r", time.Millisecond)
		},
		"a bracketed paste": func(s *sit) { open(s).tell(tea.PasteMsg{Content: "p\n"}) },
		"a bracketed paste at the question": func(s *sit) {
			open(s).apart("p", 0).waits(time.Minute).tell(tea.PasteMsg{Content: "p\n"})
		},
		"Enter in one go with a paste": func(s *sit) {
			open(s).apart("f", 0).waits(time.Minute).tell(tea.PasteMsg{Content: "p\n"})
			s.apart("\r", 0)
		},
		"typed before the gate opens": func(s *sit) { opens(before(s).apart("p\rfno\r", typing)).waits(time.Hour) },
		"typed as the gate opens": func(s *sit) {
			opens(before(s)).apart("p", 500*time.Millisecond).apart("\r", 2*time.Second)
		},
		"held down from before": func(s *sit) {
			opens(before(s).apart("ppppppppp", repeat)).apart(strings.Repeat("p", 300), repeat).apart("\r", time.Minute)
		},
		"held down from before, slowly": func(s *sit) {
			opens(before(s).apart("ppp", 600*time.Millisecond)).apart("pppppp", 600*time.Millisecond).apart("\r", time.Minute)
		},
		"twice, as the row says that it is new": func(s *sit) { opens(before(s)).apart("pp", 0) },
		"f held down from before": func(s *sit) {
			opens(before(s).apart("ffffffff", repeat)).apart(strings.Repeat("f", 300), repeat).apart("\r", time.Minute)
		},
		"another gate comes under the cursor": func(s *sit) {
			open(s)
			s.repo1(true, s.run("w-2", human(1)))
			s.apart("p", 500*time.Millisecond).apart("\r", time.Minute)
		},
		"other work comes while it is asked": func(s *sit) {
			open(s).apart("p", 0)
			r := s.run("w-1", human(1))
			r.Steps[0].Gates[0].Reviewed = "fedcba9876543210"
			s.repo1(false, r)
			s.apart("\r", time.Minute)
		},
		"another round at the page":   func(s *sit) { next(page(s)).waits(time.Minute).apart("p\r", time.Minute) },
		"any key but Enter":           func(s *sit) { open(s).apart("pyY\r", 2*time.Second) },
		"the end of a run, in one go": func(s *sit) { open(s).apart("ay", 0) },
		"the screen was away in between": func(s *sit) {
			open(s).tell(tea.ResumeMsg{})
			s.apart("p", 500*time.Millisecond).apart("\r", time.Minute)
		},
		"a pass by d is asked once more": func(s *sit) { open(s).apart("d", 0).apart("pass it\r", 2*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSit(t, 80, 24)
			if do(s); !s.did(nil) {
				t.Errorf("%+v", s.last())
			}
		})
	}
}

// TestAPassIsAskedOnceMore: p asks, on lines that say what is passed, and Enter passes it, in the list and at a page.
func TestAPassIsAskedOnceMore(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 10}} {
		for _, page := range []bool{false, true} {
			s := newSit(t, size[0], size[1])
			r := s.run("w-1", human(2))
			r.Steps[0].Gates[0].Reviewed = "0123456789abcdef"
			s.repo1(true, r)
			if page {
				s.desk.page = Page{Lines: []string{"task"}, Gate: "G", Round: 2, Content: "0123456789abcdef"}
				s.apart("\r", time.Second)
			}
			s.apart("p", 2*time.Second)
			asked := strings.Join(strings.Fields(s.shows()), " ")
			const want = "Pass G review, round 2 of w-1: step A write it, content 0123456789ab? read it"
			if !strings.Contains(asked, want) {
				t.Errorf("%v: %s", size, asked)
			}
			s.waits(time.Second).sees(`^Enter passes it · any other key goes`)
			if s.apart("\r", 0); !s.did(answered("w-1", 2, "pass", "")) {
				t.Errorf("%v: %+v", size, s.last())
			}
		}
	}
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.apart("d", 2*time.Second).apart("pass good enough\r\r", 2*time.Second)
	if !s.did(answered("w-1", 1, "pass", "good enough")) {
		t.Errorf("d: %+v", s.last())
	}
}

// TestATinyTerminalPassesNothing: where the question does not fit, Enter passes nothing, and one is told.
func TestATinyTerminalPassesNothing(t *testing.T) {
	s := newSit(t, 30, 5)
	s.repo1(true, s.run("w-1", human(1)))
	s.apart("p", 2*time.Second).sees(`too small to`)
	if s.apart("\r", 2*time.Second); !s.did(nil) {
		t.Errorf("%+v", s.last())
	}
	s.tell(tea.WindowSizeMsg{Width: 80, Height: 24})
	if s.apart("p\r", 2*time.Second); !s.did((engine.Answered{Gate: "G", Run: "w-1", Round: 1, Outcome: "pass"})) {
		t.Errorf("%+v", s.last())
	}
}

// TestRunsOfALongName: the rows and the question before a pass distinguish two runs of a workflow with a long name.
func TestRunsOfALongName(t *testing.T) {
	s := newSit(t, 80, 24)
	long := strings.Repeat("payments-", 7) + "v"
	s.repo1(true, s.run(long+"-1", human(1)), s.run(long+"-2", human(1)))
	for _, n := range []string{"1", "2"} {
		s.sees(`\? G review of payments-pay…ayments-v-`+n+` asks you`, `▸ payments-pay…ayments-v-`+n+` running`)
	}
	s.decides("jp")
	if shows := strings.Join(strings.Fields(s.shows()), ""); !strings.Contains(shows, "PassGreview,round1of"+long+"-2:stepA") {
		t.Errorf("the question does not name the run:\n%s", s.shows())
	}
}
