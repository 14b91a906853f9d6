package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
)

// newOne is the screen of the run w-1.
func newOne(t *testing.T, width, height int, ours bool) *sit {
	s := newSit(t, width, height)
	s.one = &one{id: "w-1", ours: ours}
	return s
}

// oneRun is a run that waits for a person at G, with an earlier step.
func (s *sit) oneRun(gate daemon.GateStatus) daemon.RunStatus {
	r := s.run("w-1", gate)
	r.Trust = engine.TrustSandbox
	r.Steps = append([]daemon.StepStatus{{ID: "plan", Name: "plan", State: engine.Passed, Attempt: 2, Since: s.at, Role: "writer", Summary: strings.Repeat("long ", 50)}}, r.Steps...)
	return r
}

func fact(n int) daemon.Line {
	raw, _ := json.Marshal(map[string]any{"kind": "round_failed", "run": "w-1", "gate": "G", "n": n, "outcome": "fail", "feedback": strings.Repeat("日本 ", 40)})
	return daemon.Line{Seq: int64(n), Fact: raw}
}

// TestOneRunFits: whatever the terminal's size, no line is wider and none too many, and the keys that
// decide and leave are there.
func TestOneRunFits(t *testing.T) {
	for _, size := range [][2]int{{200, 60}, {140, 40}, {80, 24}, {60, 14}, {40, 10}, {20, 6}} {
		s := newOne(t, size[0], size[1], true)
		var facts factsSeen
		for i := range 60 {
			facts = append(facts, fact(i+1))
		}
		s.repo1(true, s.oneRun(human(1)))
		s.tell(facts, graphSeen(func(daemon.RunStatus) string { return strings.Repeat(strings.Repeat("graph ", 40)+"\n", 80) }))
		s.fits()
		if s.sees(`p pass`); size[0] >= 80 {
			s.sees(`q pause and leave`, `▸ w-1 running · 1/2 steps · 2m0.s`, `trust sandbox`, `^› \? G review asks you`, `failed by the engine.*日本`)
		}
		if wide := strings.Contains(s.shows(), "graph graph"); wide != (size[0] >= graphFrom) {
			t.Errorf("%v: the graph is drawn: %v", size, wide)
		}
	}
}

// fits checks that the screen has no more lines than the terminal, and none is wider.
func (s *sit) fits() {
	s.t.Helper()
	lines := s.screen()
	if len(lines) > s.height {
		s.t.Errorf("%d lines of %d", len(lines), s.height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > s.width {
			s.t.Errorf("%d columns of %d: %q", w, s.width, l)
		}
	}
}

// TestOneRunDecides: the keys of `sluice top` decide at the run's gates and at those of its tasks.
func TestOneRunDecides(t *testing.T) {
	s := newOne(t, 100, 30, false)
	s.repo1(true, s.oneRun(human(1)), s.run("other-1", human(1)))
	s.misses("other-1")
	s.decides("p<enter>")
	if !s.did(answered("w-1", 1, "pass", "")) {
		t.Errorf("p: %+v", s.last())
	}
	s.decides("n")
	s.types("keep it small")
	s.decides("<enter>")
	if !s.did(engine.NoteGiven{Run: "w-1", Step: "A", Text: "keep it small"}) {
		t.Errorf("n: %+v", s.last())
	}
	kid := s.run("w-1.T1.1", human(4))
	kid.Child = &engine.ChildOf{Parent: "w-1", Step: "plan", Task: "T1", Try: 1}
	over := s.run("w-1.T0.1", human(1))
	over.Child, over.Phase = &engine.ChildOf{Parent: "w-1", Step: "plan", Task: "T0", Try: 1}, engine.RunCompleted
	r := s.oneRun(daemon.GateStatus{ID: "G"})
	r.Steps[0].List = &daemon.ListStatus{Tally: engine.Tally{Total: 40, Done: 12, Failed: 1}}
	s.repo1(true, r, kid, over)
	s.sees(`^› \? G review of w-1\.T1\.1 asks you`, `T1`, `▰▰▱▱▱▱▱▱ 12/40 tasks, 1 failed`, `^runs of its tasks`)
	s.misses("T0")
	s.decides("f")
	s.types("bad")
	s.decides("<enter>")
	if !s.did(answered("w-1.T1.1", 4, "fail", "bad")) {
		t.Errorf("f: %+v", s.last())
	}
}

// TestOneRunLeaves: q leaves, Ctrl-C also asks the run to stop, the end of the run ends the screen.
func TestOneRunLeaves(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		do         func(s *sit)
		want       error
	}{
		{"q", "q", nil, ErrLeft},
		{"Ctrl-D", "<ctrl+d>", nil, ErrLeft},
		{"Ctrl-C", "<ctrl+c>", nil, ErrInterrupt},
		{"Ctrl-C while words are typed", "fno<ctrl+c><ctrl+c>", nil, ErrInterrupt},
		{"the end", "", func(s *sit) {
			r := s.oneRun(human(1))
			r.Phase = engine.RunCompleted
			s.repo1(false, r)
		}, nil},
		{"no process any more", "", func(s *sit) { s.tell(repoLost{"/x/app", "gone"}) }, nil},
	} {
		s := newOne(t, 80, 24, false)
		s.repo1(true, s.oneRun(human(1)))
		s.at = s.at.Add(time.Minute)
		s.types(c.keys)
		if c.do != nil {
			c.do(s)
		}
		if !errors.Is(s.one.left, c.want) || !s.leaving {
			t.Errorf("%s: %v, leaving %v", c.name, s.one.left, s.leaving)
		}
	}
}

// TestOneRunSaysHowToLeave: the last key says what happens to the run.
func TestOneRunSaysHowToLeave(t *testing.T) {
	for _, c := range []struct {
		ours   bool
		paused string
		want   string
	}{
		{false, "", `q leave \(it goes on\)`}, {true, "", `q pause and leave`}, {true, "the daily budget is used up", `q leave$`},
	} {
		s := newOne(t, 80, 24, c.ours)
		r := s.oneRun(daemon.GateStatus{ID: "G"})
		r.Paused = c.paused
		s.repo1(true, r)
		s.sees(c.want)
		if c.paused != "" {
			s.sees(`^‖ paused: the daily budget is used up`, `P resume`)
			s.decides("P")
			if !s.did(engine.ResumeRequested{Run: "w-1"}) {
				t.Errorf("P: %+v", s.last())
			}
		}
	}
}

// TestOneRunSaysWhyItIsPaused: by whom, by what, and why as the log has it.
func TestOneRunSaysWhyItIsPaused(t *testing.T) {
	for _, c := range []struct{ paused, fact, want string }{
		{"user", "", `^‖ paused by a person$`},
		{"user", `{"kind": "run_paused", "run": "w-1", "why": "user", "by": {"who": "ann", "via": "terminal"}}`, `^‖ paused by ann \(terminal\)$`},
		{"limit:max_steps", "", `^‖ paused by the limit max_steps$`},
		{"parent", "", `^‖ paused with its parent run$`},
		{"fatal", `{"kind": "run_paused", "run": "w-1", "why": "fatal", "text": "claude: not found"}`, `^‖ paused by an error: claude: not found$`},
		{"fatal", `{"kind": "run_paused", "run": "w-2", "why": "fatal", "text": "of another run"}`, `^‖ paused by an error$`},
	} {
		s := newOne(t, 80, 24, true)
		r := s.oneRun(human(1))
		r.Paused = c.paused
		s.repo1(true, r)
		if c.fact != "" {
			s.tell(factsSeen{{Seq: 1, Fact: json.RawMessage(c.fact)}})
		}
		s.sees(c.want)
	}
}

// TestOneRunKeepsTheTrustInView: a run that no sandbox holds says so on every screen.
func TestOneRunKeepsTheTrustInView(t *testing.T) {
	s := newOne(t, 80, 24, true)
	r := s.oneRun(human(1))
	r.Trust, r.Exposed = engine.TrustFile, "no bubblewrap here"
	s.repo1(true, r)
	s.desk.page = Page{Lines: []string{"task"}, Gate: "G", Round: 1}
	s.sees(`no bubblewrap here`)
	s.types("<enter>")
	s.sees(`^task`, `no bubblewrap here`)
}

// TestRandomKeysDecideNothingUnasked: whatever is typed, a pass needs its question to have been on the screen.
func TestRandomKeysDecideNothingUnasked(t *testing.T) {
	keys := []string{"p", "f", "v", "d", "n", "t", "s", "?", "a", "P", "q", "y", "<enter>", "<esc>", "<up>", "<down>", "<tab>", "<space>", "x", "/"}
	for seed := range 50 / thin {
		for _, screen := range []*sit{newSit(t, 80, 24), newOne(t, 80, 24, true)} {
			s := screen
			s.repo1(true, s.oneRun(human(1)))
			pick := uint32(seed*2654435761 + 1)
			shown := ""
			for range 60 {
				pick = pick*1664525 + 1013904223
				k := keys[int(pick>>16)%len(keys)]
				asked := len(s.desk.asked)
				shown = s.shows()
				s.types(k) // 50 ms apart: nobody reads that fast
				for _, ev := range s.desk.asked[asked:] {
					switch ev := ev.(type) {
					case engine.Answered:
						t.Fatalf("seed %d: %+v after\n%s", seed, ev, shown)
					case engine.AbortRequested:
						if !strings.Contains(shown, "End w-1 for good?") {
							t.Fatalf("seed %d: %+v after\n%s", seed, ev, shown)
						}
					case engine.NoteGiven:
						if !strings.Contains(shown, "note to the agents of w-1") {
							t.Fatalf("seed %d: %+v after\n%s", seed, ev, shown)
						}
					case engine.PauseRequested, engine.ResumeRequested:
					default:
						t.Fatalf("seed %d: %s", seed, fmt.Sprintf("%+v", ev))
					}
				}
				s.fits()
			}
			s.tell(tea.FocusMsg{})
		}
	}
}

// TestOneRunSeesCalledWorkflows: a gate in the run of a step's own workflow asks on the screen of the run above it.
func TestOneRunSeesCalledWorkflows(t *testing.T) {
	s := newOne(t, 118, 24, true)
	r := s.oneRun(daemon.GateStatus{ID: "G"})
	r.Waits = []daemon.Wait{{Kind: "tasks", Step: "plan", Text: "for its run"}}
	kid := s.run("w-1.plan.1", human(2))
	kid.Child, kid.Trust, kid.Exposed = &engine.ChildOf{Parent: "w-1", Step: "plan"}, engine.TrustFile, "no bubblewrap here"
	s.repo1(true, r, kid)
	s.sees(`^› \? G review of w-1\.plan\.1 asks you .*not held`, `trust sandbox`)
	s.decides("p") // the head is that of the run in question
	s.sees(`Pass G review, round 2 of w-1\.plan\.1`, `no bubblewrap here`)
	s.misses(`trust sandbox`)
}

// TestOneRunSaysWhatItWaitsFor: waits that no person answers, budgets, passes that were none and a long reason of a pause.
func TestOneRunSaysWhatItWaitsFor(t *testing.T) {
	s := newOne(t, 80, 24, true)
	r := s.oneRun(daemon.GateStatus{ID: "G"})
	r.Waits = []daemon.Wait{{Kind: "limit", Step: "A", Text: "for claude's usage limit", Since: s.at, Until: s.at.Add(time.Hour)}}
	r.Near, r.More, r.SpecDrift = []string{"cost"}, 2, true
	s.repo1(true, r)
	s.sees(`for claude's usage limit \(1h00m left\)`, `! near its budget: cost`, `! 2 not passed, and went on`, `! the spec's file has changed`)
	r.Paused = strings.Repeat("because ", 100)
	s.repo1(false, r)
	s.sees(`^‖ paused: because`, ` …$`)
	s.fits()
}

// TestAStallKeepsTheRun: a process that can neither write nor read its journal reports no runs. The screen stays, and says so.
func TestAStallKeepsTheRun(t *testing.T) {
	s := newOne(t, 80, 24, true)
	s.repo1(true, s.oneRun(human(1)))
	s.tell(repoSeen{root: "/x/app", served: true, whole: true, status: daemon.Status{Root: "/x/app", Stalled: "no space"}})
	if s.leaving {
		t.Error("the screen ended")
	}
	s.sees(`! app: the journal cannot be written, so nothing is started or decided: no space`, `^› \? G`)
}

// newPage is the screen of the page of w-1's gate, as `sluice show` opens it.
func newPage(t *testing.T) *sit {
	s := newOne(t, 80, 24, false)
	s.one.page = "G"
	s.desk.page = Page{Lines: []string{"the task"}, Gate: "G", Round: 1}
	s.repo1(true, s.oneRun(human(1)))
	s.sees(`^the task`, `^p pass · f fail`, `esc leave`)
	return s
}

// TestAPageAlone: a page stays until the person decides or leaves, whatever happens to the run; how a decision ended is
// known after the screen.
func TestAPageAlone(t *testing.T) {
	void, _ := json.Marshal(map[string]any{"kind": "round_voided", "run": "w-1", "gate": "G", "n": 1})
	for _, c := range []struct {
		name string
		do   func(s *sit)
		left bool
		said string
		void bool
	}{
		{"a pass", func(s *sit) { s.decides("p<enter>") }, true, "pass of G: taken in", false},
		{"Esc", func(s *sit) { s.types("<esc>") }, true, "", false},
		{"what was reviewed has changed", func(s *sit) {
			s.desk.done = daemon.Done{Facts: []json.RawMessage{void}}
			s.decides("p<enter>")
			s.sees(`did not count: what was reviewed has changed`)
			s.types("q")
		}, true, "", false},
		{"a note", func(s *sit) { s.decides("n"); s.types("look"); s.decides("<enter>") }, false, "", false},
		{"the end of the run", func(s *sit) {
			s.decides("f")
			r := s.oneRun(human(1))
			r.Phase = engine.RunCompleted
			s.repo1(false, r)
		}, false, "", false},
		{"a daemon that stops", func(s *sit) {
			s.tell(repoLost{"/x/app", "gone"})
			s.sees(`! app: no answer`)
			s.misses(`p pass`)
		}, false, "", false},
		{"output, and back", func(s *sit) { s.types("t<esc>"); s.sees(`^the task`) }, false, "", false},
		{"help, and back", func(s *sit) { s.types("?"); s.sees(`^Move`); s.types("<esc>"); s.sees(`^the task`) }, false, "", false},
	} {
		s := newPage(t)
		s.soon()
		c.do(s)
		if s.leaving != c.left || s.one.said != c.said || s.one.void != c.void {
			t.Errorf("%s: left %v, said %q, void %v", c.name, s.leaving, s.one.said, s.one.void)
		}
	}
}

// TestADecisionOnItsWay: one that is refused after the person left the screen is still reported.
func TestADecisionOnItsWay(t *testing.T) {
	s := newPage(t)
	s.soon()
	s.decides("p")
	s.soon()
	_, cmd := s.Update(keyOf("enter", "<enter>"))
	s.soon()
	s.types("q")
	s.tell(decided{what: "pass of G", done: daemon.Done{Ignored: "it is at round 2"}, answer: true})
	if _ = cmd; !s.leaving || !s.one.void || s.one.said != "pass of G did not count: it is at round 2" {
		t.Errorf("left %v, void %v: %q", s.leaving, s.one.void, s.one.said)
	}
}

// TestAPageOutOfDate: a page whose round was decided, or whose work has changed, says so and takes no decision.
func TestAPageOutOfDate(t *testing.T) {
	other := human(1)
	other.Reviewed = "fedcba"
	passed := daemon.GateStatus{ID: "G", State: engine.Approved, Round: 1, ByKind: "human"}
	for want, g := range map[string]daemon.GateStatus{"has other work by now": other, "is passed by now, by a person": passed, "is at round 2 by now": human(2)} {
		s := newPage(t)
		s.repo1(false, s.oneRun(g))
		s.sees(`! G ` + want + `: r shows it`)
		s.misses(`p pass|v veto`)
		for _, k := range []string{"f", "p", "v", "d", "<enter>"} {
			s.decides(k)
		}
		if s.last() != nil {
			t.Errorf("%s: %+v", want, s.last())
		}
	}
	s := newPage(t) // it changes while the words are typed
	s.decides("f")
	s.types("no")
	s.repo1(false, s.oneRun(other))
	s.decides("<enter>")
	if s.sees("nothing was decided: the work has changed meanwhile"); s.last() != nil {
		t.Errorf("%+v", s.last())
	}
}

// TestANoteIsNoOutcome: a route called note decides.
func TestANoteIsNoOutcome(t *testing.T) {
	s := newSit(t, 80, 24)
	g := human(1)
	g.Outcomes = []string{"pass", "fail", "veto", "note"}
	s.repo1(true, s.run("w-1", g))
	s.decides("d")
	s.types("note the index is wrong")
	s.decides("<enter>")
	if !s.did(answered("w-1", 1, "note", "the index is wrong")) {
		t.Errorf("%+v", s.last())
	}
}

// TestAPasteIsNoCommand: keys that come at once neither pause nor leave.
func TestAPasteIsNoCommand(t *testing.T) {
	for _, paste := range []string{"xP", "an P", "xq", "now quickly\rq"} {
		s := newOne(t, 80, 24, true)
		s.repo1(true, s.oneRun(human(1)))
		s.soon()
		s.apart(paste, time.Millisecond)
		if s.last() != nil || s.leaving {
			t.Errorf("%q: %+v, left %v", paste, s.last(), s.leaving)
		}
	}
}

// TestComments: comments written in the editor fail the round that was on the screen, or veto its pass, and are discarded
// once they have counted.
func TestComments(t *testing.T) {
	given := 0
	wrote := Comments{Round: 1, Text: "two things", Findings: json.RawMessage(`[{"file":"a.go","line":3,"message":"no"}]`), Given: func() { given++ }}
	on := target{root: "/x/app", run: "w-1", gate: "G", round: 1}
	s := newPage(t)
	s.sees(`c comment`)
	s.soon()
	if _, cmd := s.Update(keyOf("c", "c")); cmd == nil {
		t.Error("c opens nothing")
	}
	s.tell(commented{on, "fail", wrote, nil})
	want := answered("w-1", 1, "fail", "two things")
	if want.Findings = wrote.Findings; !s.did(want) || given != 1 || !s.leaving {
		t.Errorf("%+v, given %d", s.last(), given)
	}
	for name, c := range map[string]commented{
		"nothing was written": {on, "fail", Comments{}, errors.New("nothing was decided: nothing was written")},
		"another round":       {on, "fail", Comments{Round: 2, Given: wrote.Given}, nil},
		"other work":          {on, "fail", Comments{Round: 1, Content: "fedcba", Given: wrote.Given}, nil},
	} {
		s := newPage(t)
		s.tell(c)
		if s.sees(`nothing was decided`); s.last() != nil || given != 1 {
			t.Errorf("%s: %+v, given %d", name, s.last(), given)
		}
	}
	s = newPage(t) // refused: what was written is kept
	s.desk.done.Ignored = "it is at round 2"
	s.tell(commented{on, "fail", wrote, nil})
	if given != 1 {
		t.Error("what was written is discarded")
	}
}

// TestTheGraphHasTheStates: beside the rows the graph shows each node's state by sign and word, cut at the window's edge.
func TestTheGraphHasTheStates(t *testing.T) {
	s := newOne(t, 140, 20, true)
	s.repo1(true, s.oneRun(human(1)))
	s.tell(graphSeen(func(r daemon.RunStatus) string {
		return "[A] write it\t" + r.States()["A"] + "\n └─ <G>\thuman\n" + strings.Repeat("x", 200) + strings.Repeat("\nmore", 40)
	}))
	s.sees(`│ \[A\] write it  ▸ gating$`, `│  └─ <G>  \? asks you$`, `│ x+…$`, `│ …$`)
	s.fits()
}
