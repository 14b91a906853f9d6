package stats

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sluice/engine"
)

// played is a journal in the making: each fact a minute after the one before.
type played struct {
	t  *testing.T
	c  *Counter
	at time.Time
}

func play(t *testing.T, c *Counter) *played {
	return &played{t, c, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
}

// fact adds a fact of a run, written as its fields.
func (p *played) fact(kind, run, fields string) {
	p.t.Helper()
	raw := fmt.Sprintf(`{"kind":%q,"run":%q%s}`, kind, run, fields)
	if err := p.c.Add(p.at, []byte(raw)); err != nil {
		p.t.Fatalf("%s: %v", raw, err)
	}
	p.at = p.at.Add(time.Minute)
}

// run plays a run of w: one attempt, reviewed with the verdict, then decided by end.
func (p *played) run(id, verdict string, end func(gate string)) {
	p.fact("run_started", id, `,"workflow":"w","by":{"who":"ann"}`)
	p.fact("run_began", id, ``)
	p.fact("step_started", id, `,"step":"A","n":1`)
	p.fact("step_launched", id, `,"step":"A","n":1,"k":1,"key":"A.1.1","role":"coder"`)
	p.fact("usage_counted", id, `,"key":"A.1.1","usage":{"tokens":10,"cost_usd":0.25},"day":"2026-11-20"`)
	p.fact("process_gone", id, `,"key":"A.1.1","exit":{"code":0,"usage":{"tokens":100,"cost_usd":0.5}},"day":"2026-11-20"`)
	p.fact("round_opened", id, `,"gate":"G","n":1,"step":"A","attempt":1`)
	p.fact("review_started", id, `,"gate":"G","n":1,"k":1,"key":"G.1.1","role":"critic"`)
	p.fact("process_gone", id, `,"key":"G.1.1","exit":{"code":0,"usage":{"tokens":20,"cost_usd":0.1}},"day":"2026-11-21"`)
	p.fact("judged", id, `,"gate":"G","n":1,"outcome":"`+verdict+`"`)
	if verdict != "pass" {
		p.fact("gate_failed", id, `,"gate":"G","n":1,"count":1,"outcome":"fail"`)
	}
	end(`,"gate":"G","n":1`)
	p.fact("step_passed", id, `,"step":"A","n":1`)
	p.fact("run_ended", id, `,"phase":"completed"`)
}

// TestCounter: times, decisions and use of two runs, one of which a person let pass.
func TestCounter(t *testing.T) {
	c := &Counter{}
	p := play(t, c)
	p.run("w-1", "pass", func(g string) { p.fact("round_passed", "w-1", g+`,"by_kind":"reviewer"`) })
	p.run("w-2", "fail", func(g string) {
		p.fact("human_asked", "w-2", g+`,"why":"exhausted"`)
		p.at = p.at.Add(9 * time.Minute)
		p.fact("round_passed", "w-2", g+`,"by_kind":"human"`)
	})
	p.fact("run_started", "w-3", `,"workflow":"w","by":{"who":"ann"}`)
	p.fact("run_started", "v-1", `,"workflow":"v","by":{"who":"ann"},"child":{"parent":"w-3"}`)
	p.fact("step_started", "v-1", `,"step":"X","n":1`)
	s := c.Stats()
	if s.Runs.Completed != 2 || s.Runs.Live != 1 || s.Runs.Times.Count != 2 || s.Runs.Times.Most != engine.Duration(23*time.Minute) {
		t.Errorf("runs: %+v", s.Runs)
	}
	if len(s.Gates) != 1 || s.Gates[0].Rounds != 2 || s.Gates[0].Passed != 2 || s.Gates[0].Refused != 1 || s.Gates[0].Overridden != 1 || s.Gates[0].Quiet != 0 ||
		s.Gates[0].Reviews.Tokens != 40 || s.Gates[0].Time != engine.Duration(2*time.Minute) || s.Gates[0].People.Median != engine.Duration(10*time.Minute) {
		t.Errorf("gates: %+v", s.Gates)
	}
	if s.People.Count != 1 || s.People.Sum != engine.Duration(10*time.Minute) {
		t.Errorf("people: %+v", s.People)
	}
	if len(s.Steps) != 2 || s.Steps[0].Workflow != "v" || s.Steps[1].Attempts != 2 || s.Steps[1].Passed != 2 || s.Steps[1].Times.Median != engine.Duration(14*time.Minute+30*time.Second) {
		t.Errorf("steps: %+v", s.Steps)
	}
	if len(s.Roles) != 2 || s.Roles[0].Name != "coder" || s.Roles[0].CostUSD != 1 || s.Roles[0].Launches != 2 || s.Roles[0].Time != engine.Duration(4*time.Minute) {
		t.Errorf("roles: %+v", s.Roles)
	}
	if len(s.Days) != 2 || s.Days[0].Name != "2026-11-20" || s.Days[0].Tokens != 200 || s.Days[1].Tokens != 40 {
		t.Errorf("days: %+v", s.Days)
	}
}

// TestClocksThatWereSet: no time is below zero where the clock was set back, and a sleep of the machine is no
// time at work.
func TestClocksThatWereSet(t *testing.T) {
	c := &Counter{}
	p := play(t, c)
	p.run("w-1", "pass", func(g string) {
		p.fact("human_asked", "w-1", g+`,"why":"level"`)
		p.at = p.at.Add(-time.Hour)
		p.fact("round_passed", "w-1", g+`,"by_kind":"human"`)
	})
	p.fact("run_started", "w-2", `,"workflow":"w","by":{"who":"ann"}`)
	p.fact("step_launched", "w-2", `,"step":"A","n":1,"k":1,"key":"A.1.1","role":"coder"`)
	p.at = p.at.Add(3 * time.Hour)
	p.fact("time_lost", "w-2", `,"by":"3h0m0s"`)
	p.fact("process_gone", "w-2", `,"key":"A.1.1","exit":{"code":0},"day":"2026-11-21"`)
	p.fact("step_launched", "w-2", `,"step":"A","n":1,"k":2,"key":"A.1.2","role":"coder"`)
	p.at = p.at.Add(-time.Hour)
	p.fact("process_gone", "w-2", `,"key":"A.1.2","exit":{"code":0},"day":"2026-11-21"`)
	s := c.Stats()
	if got, want := fmt.Sprint(s.Runs.Times.Sum, s.Steps[0].Times.Sum, s.People.Sum, s.Roles[0].Time), "0s 0s 0s 4m0s"; got != want {
		t.Errorf("the run, its step, people and the coder: %s, want %s", got, want)
	}
}

// TestCounterCounts: only runs of the workflow and the time, children with their parent; a name that
// never ran is not known.
func TestCounterCounts(t *testing.T) {
	pass := func(p *played, run string) func(string) {
		return func(g string) { p.fact("round_passed", run, g+`,"by_kind":"reviewer"`) }
	}
	for want, c := range map[int]*Counter{2: {}, 0: {Workflow: "v"}, 1: {Since: time.Date(2026, 11, 20, 8, 5, 0, 0, time.UTC)}} {
		p := play(t, c)
		p.run("w-1", "pass", pass(p, "w-1"))
		p.run("w-2", "pass", pass(p, "w-2"))
		if s := c.Stats(); s.Runs.Completed != want || want == 0 && !s.From.IsZero() || fmt.Sprint(c.Known()) != "map[w:true]" {
			t.Errorf("%+v, want %d: %v %v", s.Runs, want, s.From, c.Known())
		}
	}
}

// TestAdvice: a gate that never fails anything, and one that is always overridden, are named; vetoes
// and routes are decisions that count.
func TestAdvice(t *testing.T) {
	c := &Counter{}
	p := play(t, c)
	for i := range quietRounds {
		run := fmt.Sprint("w-", i)
		p.run(run, "pass", func(g string) { p.fact("round_passed", run, g+`,"by_kind":"reviewer"`) })
		if got := len(c.Stats().Advice); (got == 1) != (i == quietRounds-1) {
			t.Fatalf("after %d rounds: %+v", i+1, c.Stats().Advice)
		}
	}
	p.fact("round_failed", "w-0", `,"gate":"G","n":1,"outcome":"fail","by_kind":"human","to":"A"`) // a late veto
	if s := c.Stats(); len(s.Advice) != 0 || s.Gates[0].Vetoes != 1 || s.Gates[0].Passed != quietRounds-1 || s.Gates[0].Rounds != quietRounds {
		t.Errorf("after a late veto: %+v", s)
	}
	c = &Counter{}
	p = play(t, c)
	for i := range overriddenMin {
		run := fmt.Sprint("w-", i)
		p.run(run, "fail", func(g string) {
			p.fact("human_asked", run, g+`,"why":"exhausted"`)
			p.fact("round_passed", run, g+`,"by_kind":"human"`)
		})
	}
	if s := c.Stats(); len(s.Advice) != 1 || s.Advice[0].Text != "had 3 failures, and a person overrode them all" {
		t.Errorf("%+v", s.Advice)
	}
	p.run("w-9", "fail", func(g string) {
		p.fact("round_routed", "w-9", g+`,"outcome":"<replan>","by_kind":"reviewer","to":"A"`)
	})
	if s := c.Stats(); len(s.Advice) != 0 || s.Gates[0].Routed != 1 {
		t.Errorf("%+v", s)
	}
}

// TestWhatDoesNotCount: stubs, a step's own missing gate, what nobody judged, and a program that could
// not be started; the tasks of a list are not its step; a wait that ended with its run counts.
func TestWhatDoesNotCount(t *testing.T) {
	c := &Counter{}
	p := play(t, c)
	p.fact("run_started", "s-1", `,"workflow":"s","stubs":{},"by":{"who":"ann"}`)
	p.fact("step_started", "s-1", `,"step":"A","n":1`)
	p.fact("run_started", "w-1", `,"workflow":"w","by":{"who":"ann"}`)
	p.fact("step_started", "w-1", `,"step":"A","n":1`)
	p.fact("round_opened", "w-1", `,"gate":"A","n":1,"step":"A","attempt":1`)
	p.fact("round_passed", "w-1", `,"gate":"A","n":1,"by_kind":"step"`)
	p.fact("round_opened", "w-1", `,"gate":"G","n":1,"step":"A","attempt":1`)
	p.fact("round_passed", "w-1", `,"gate":"G","n":1,"by_kind":"when"`)
	p.fact("run_started", "w-1.T1", `,"workflow":"w","by":{"who":"ann"},"child":{"parent":"w-1","step":"A"}`)
	p.fact("step_started", "w-1.T1", `,"step":"A","n":1`)
	p.fact("step_launched", "w-1", `,"step":"A","n":1,"k":1,"key":"A.1.1"`)
	p.fact("process_gone", "w-1", `,"key":"A.1.1","exit":{"code":-1,"not_started":"no such program"}`)
	p.fact("round_opened", "w-1", `,"gate":"H","n":1,"step":"A","attempt":1`)
	p.fact("human_asked", "w-1", `,"gate":"H","n":1,"why":"level"`)
	p.fact("run_ended", "w-1", `,"phase":"aborted"`)
	p.at = p.at.Add(24 * time.Hour)
	p.fact("run_reopened", "w-1", ``)
	p.fact("run_ended", "w-1", `,"phase":"failed"`)
	s := c.Stats()
	if s.Stubbed != 1 || s.Runs.Failed != 1 || s.Runs.Aborted != 0 || s.Runs.Times.Most != engine.Duration(13*time.Minute) {
		t.Errorf("%d stubbed, runs: %+v", s.Stubbed, s.Runs)
	}
	if len(s.Gates) != 2 || s.Gates[0].Gate != "G" || s.Gates[0].Rounds != 0 || s.Gates[1].People.Sum != engine.Duration(time.Minute) {
		t.Errorf("gates: %+v", s.Gates)
	}
	if len(s.Steps) != 2 || s.Steps[0].Attempts != 1 || s.Steps[1].Workflow != "w (task)" || len(s.Roles) != 0 {
		t.Errorf("steps: %+v, roles: %+v", s.Steps, s.Roles)
	}
}

// TestSVG: the picture is XML whatever the names are, and nothing is drawn for nothing.
func TestSVG(t *testing.T) {
	for _, s := range []Stats{{}, {
		Gates: []Gate{{Workflow: "w<&>", Gate: strings.Repeat("long", 20), Rounds: 7, Passed: 5, Failed: 1, Routed: 1}, {Workflow: "w", Gate: "none"}},
		Days:  []Used{{Name: "2026-11-20", Usage: engine.Usage{CostUSD: 1.5}}, {Name: "2026-11-21"}},
	}} {
		svg := SVG(s)
		for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v:\n%s", err, svg)
			}
		}
		if n, want := strings.Count(string(svg), "<rect"), len(s.Gates)/2*3+len(s.Days)/2; n != want {
			t.Errorf("%d bars, want %d:\n%s", n, want, svg)
		}
	}
}
