package engine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// every returns a schedule that comes after each span.
func every(name string, span time.Duration, catch string) *Trigger {
	return &Trigger{Name: name, Kind: OnSchedule, ID: name + " " + span.String(), CatchUp: catch,
		Next: func(t time.Time) time.Time { return t.Truncate(span).Add(span) }}
}

func kind(k string) *Trigger { return &Trigger{Name: k, Kind: k, ID: k} }

// armed returns a script with a workflow x whose triggers are armed.
func armed(t *testing.T, on On, more ...func(*Spec)) *script {
	w := one()
	if on.Overlap == "" {
		on.Overlap = OverlapParallel
	}
	if on.MaxPerDay == 0 {
		on.MaxPerDay = DefaultPerDay
	}
	w.On = &on
	for _, m := range more {
		m(w)
	}
	s := &script{world: newWorld(t, w)}
	s.arm()
	return s
}

func (s *script) arm(known ...Was) {
	s.do(ArmRequested{Workflow: "x", Source: "text", Digest: "d-x", Known: known})
}

func (s *script) fire(trigger, key string) []Fact {
	return s.do(Fired{Workflow: "x", Trigger: trigger, Key: key})
}

// read carries out all that firings owe.
func (s *script) read() {
	s.t.Helper()
	for owed := s.owed(DoFire); len(owed) > 0; owed = s.owed(DoFire) {
		e := owed[0]
		s.do(FiringRead{Workflow: e.Armed, Trigger: e.Trigger, Key: e.Firing.Key, Armed: "d-x", Run: RunRequested{Digest: "d-x", Source: "text"}})
	}
}

// keys returns the keys of the runs that triggers started, in order.
func (s *script) keys() string {
	var out []string
	for _, f := range s.log {
		if f, ok := f.(RunStarted); ok && f.Fired != nil {
			out = append(out, f.Fired.Key)
		}
	}
	return strings.Join(out, " ")
}

// skips returns why keys started no run, in order.
func (s *script) skips() string {
	var out []string
	for _, f := range s.log {
		if f, ok := f.(TriggerSkipped); ok {
			out = append(out, strings.TrimSpace(f.Key+" "+f.Why))
		}
	}
	return strings.Join(out, "; ")
}

// back sets the clock back.
func (s *script) back(d time.Duration) {
	s.now = s.now.Add(-d)
	s.do(Ticked{})
}

// TestAKeyStartsOneRun: whatever is reported, how often, in which order, after which restarts, with
// a clock that goes back or after the run was forgotten.
func TestAKeyStartsOneRun(t *testing.T) {
	conform.Rule(t, "12-triggers once", "one run per key, ever")
	conform.Rule(t, "12-triggers nothing changes", "reported again, read twice, armed anew, a clock set back, the run forgotten")
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles), kind(OnWebhook)}})
	s.fire(OnFiles, "a@1")
	s.fire(OnFiles, "a@1")
	s.want(fmt.Sprint(len(s.owed(DoFire))), "1")
	s.read()
	s.read()
	s.do(FiringRead{Workflow: "x", Trigger: OnFiles, Key: "a@1", Armed: "d-x", Run: RunRequested{Digest: "d-x"}}) // read twice
	s.fire(OnFiles, "a@1")
	s.fire(OnWebhook, "a@1") // another trigger's
	s.fire(OnFiles, "a@2")
	s.read()
	s.want(s.keys(), "a@1 a@1 a@2")
	s.do(AbortRequested{Run: "x-1"})
	s.do(DisarmRequested{Workflow: "x"})
	s.fire(OnFiles, "b@1") // nobody looks
	s.arm()
	s.now = s.now.Add(-1000 * time.Hour)
	s.fire(OnFiles, "a@1")
	s.fire(OnFiles, "b@1")
	s.read()
	s.want(s.keys(), "a@1 a@1 a@2 b@1")
	for range 2 * KeepEnded { // all these runs are forgotten
		s.fire(OnFiles, fmt.Sprintf("c@%d", s.st.Clock))
		s.read()
		s.later(25 * time.Hour)
		for _, r := range s.st.Order {
			s.do(AbortRequested{Run: r})
			s.stopped()
		}
	}
	before := s.keys()
	s.fire(OnFiles, "a@2")
	s.read()
	s.want(s.keys(), before, fmt.Sprint(s.st.Runs["x-3"] == nil), "true")
	s.replayed()
}

// TestKnownDoesNotFire: what was there when the triggers were armed.
func TestKnownDoesNotFire(t *testing.T) {
	conform.Rule(t, "12-triggers there", "files and commits that are there when it is armed")
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles), kind(OnPush)}})
	s.arm(Was{OnFiles, "a@1"}, Was{OnPush, "main@c1"})
	s.fire(OnFiles, "a@1")
	s.fire(OnPush, "main@c1")
	s.do(Fired{Workflow: "x", Trigger: OnPush, Key: "main@c2", Skip: "no path"})
	s.fire(OnPush, "main@c2")
	s.fire(OnPush, "main@c3")
	s.do(Fired{Workflow: "x", Trigger: OnFiles, Armed: 1, Key: "late@1"}) // by who looks for an earlier arming
	s.read()
	s.want(s.keys(), "main@c3", s.skips(), "main@c2 no path", s.st.Armed["x"].Tips["main"], "c3")
	s.replayed()
}

// TestSchedule: a minute fires once, over restarts and with a clock that is set back and forth.
func TestSchedule(t *testing.T) {
	conform.Rule(t, "12-triggers nothing changes", "a minute fires once, over restarts and clocks set back")
	s := armed(t, On{Triggers: []*Trigger{every("schedule", time.Hour, CatchOne)}})
	s.later(59 * time.Minute)
	s.read()
	s.want(s.keys(), "", s.st.Wake(s.now).Format(time.TimeOnly), "01:00:00")
	s.later(time.Minute)
	s.read()
	s.back(30 * time.Minute)
	s.later(45 * time.Minute)
	s.read()
	s.want(s.keys(), "2026-01-01T01:00Z")
	s.arm() // armed anew: 01:00 is decided on
	s.back(10 * time.Hour)
	s.arm()
	s.later(10*time.Hour + 40*time.Minute)
	s.read()
	s.want(s.keys(), "2026-01-01T01:00Z")
	s.later(30 * time.Minute)
	s.read()
	s.want(s.keys(), "2026-01-01T01:00Z 2026-01-01T02:00Z")
	s.replayed()
}

// TestCatchUp: what passed while nobody was there.
func TestCatchUp(t *testing.T) {
	conform.Rule(t, "12-triggers missed", "one, all and none of what passed while nobody was there")
	for _, c := range []struct{ catch, fired, skipped string }{
		{CatchOne, "05:00Z", "4 missed while nobody was there, and catch_up is one"},
		{CatchAll, "01:00Z 02:00Z 03:00Z 04:00Z 05:00Z", ""},
		{CatchNone, "", "05:00Z 5 missed while nobody was there, and catch_up is none"},
	} {
		s := armed(t, On{Triggers: []*Trigger{every("schedule", time.Hour, c.catch)}})
		s.restart(5*time.Hour + 10*time.Minute)
		s.do(Ticked{})
		s.read()
		short := strings.NewReplacer("2026-01-01T", "")
		s.want(short.Replace(s.keys()), c.fired, short.Replace(s.skips()), c.skipped)
		s.later(50 * time.Minute)
		s.read()
		s.want(short.Replace(s.keys()), strings.TrimSpace(c.fired+" 06:00Z"))
		s.replayed()
	}
	s := armed(t, On{Triggers: []*Trigger{every("schedule", time.Minute, CatchAll)}, MaxPerDay: 1000})
	s.restart(100 * 24 * time.Hour)
	s.do(Ticked{})
	s.read()
	s.want(fmt.Sprint(len(strings.Fields(s.keys()))), fmt.Sprint(MaxCaughtUp))
}

// TestOverlap: what a firing does beside a live run.
func TestOverlap(t *testing.T) {
	conform.Rule(t, "12-triggers overlap", "queue, parallel, skip, replace")
	for _, c := range []struct{ overlap, phases, skipped string }{
		{OverlapQueue, "running pending", ""},
		{OverlapParallel, "running running", ""},
		{OverlapSkip, "running", "b overlap: skip, and x-1 is live"},
		{OverlapReplace, "aborted running", ""},
	} {
		s := armed(t, On{Triggers: []*Trigger{kind(OnFiles)}, Overlap: c.overlap})
		for _, key := range []string{"a", "b"} {
			s.fire(OnFiles, key)
			s.read()
		}
		var phases []string
		for _, id := range s.st.Order {
			phases = append(phases, s.st.Runs[id].Phase)
		}
		s.want(strings.Join(phases, " "), c.phases, s.skips(), c.skipped)
	}
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles)}, Overlap: OverlapReplace})
	s.run = s.start("x")
	s.fire(OnFiles, "a") // no run of a person's is aborted for it
	s.fire(OnFiles, "b")
	s.read()
	s.want(s.r().Phase, RunRunning, s.keys(), "b", s.skips(), "a overlap: replace, and files fired again: b")
}

// TestMaxPerDay: the day's firings are counted, and what is over keeps its key.
func TestMaxPerDay(t *testing.T) {
	conform.Rule(t, "12-triggers full", "the day is counted, and what is over keeps its key")
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles)}, MaxPerDay: 3})
	offer := func() {
		for i := range 10 {
			s.fire(OnFiles, fmt.Sprint(i))
		}
		s.read()
	}
	s.want(fmt.Sprint(len(s.owed(DoListen))), "1")
	offer()
	s.want(s.keys(), "0 1 2", fmt.Sprint(len(s.owed(DoListen))), "0", fmt.Sprint(len(s.st.Notices)), "1")
	s.arm() // no way round it
	seq := s.owed(DoListen)[0].Key
	offer()
	s.want(s.keys(), "0 1 2")
	s.back(300 * time.Hour)
	offer()
	s.want(s.keys(), "0 1 2")
	at := s.st.Wake(s.now)
	s.want(at.Sub(s.now).String(), "24h0m0s")
	s.later(24 * time.Hour)
	s.want(fmt.Sprint(len(s.owed(DoListen))), "1", fmt.Sprint(s.owed(DoListen)[0].Key == seq), "false")
	offer()
	s.want(s.keys(), "0 1 2 3 4 5")
	s.replayed()
}

// TestConfirm: a run whose cause is from outside waits for a person, and is in no other run's way.
func TestConfirm(t *testing.T) {
	conform.Rule(t, "12-triggers confirm", "the default for issues and webhooks, and what a spec says")
	s := armed(t, On{Triggers: []*Trigger{kind(OnIssue), kind(OnFiles)}, Overlap: OverlapQueue})
	s.fire(OnIssue, "7")
	s.read()
	s.run = "x-1"
	s.want(s.r().Phase+" "+s.r().PausedWhy, "pending confirm", fmt.Sprint(len(s.st.Notices)), "1")
	s.do(Fired{Workflow: "x", Trigger: OnIssue, Key: "8", Trusted: true})
	s.fire(OnFiles, "f")
	s.read()
	s.want(s.st.Runs["x-2"].Phase, RunRunning, s.st.Runs["x-3"].Phase, RunPending)
	s.do(ResumeRequested{Run: "x-1"})
	s.want(s.r().Phase, RunPending) // x-2 is at work
	s.do(AbortRequested{Run: "x-2"})
	s.want(s.r().Phase, RunRunning, s.st.Runs["x-3"].Phase, RunPending)
	s = armed(t, On{Triggers: []*Trigger{kind(OnIssue)}, Overlap: OverlapReplace}) // an outsider aborts nobody's work
	s.do(Fired{Workflow: "x", Trigger: OnIssue, Key: "7", Trusted: true})
	s.read()
	s.fire(OnIssue, "8")
	s.read()
	s.want(s.st.Runs["x-1"].Phase, RunRunning, s.st.Runs["x-2"].PausedWhy, PausedConfirm)
	for asks, want := range map[bool]string{true: PausedConfirm, false: ""} {
		s := armed(t, On{Triggers: []*Trigger{kind(OnWebhook), kind(OnFiles)}, Confirm: &asks})
		s.fire(OnWebhook, "a")
		s.fire(OnFiles, "a")
		s.read()
		s.want(s.st.Runs["x-1"].PausedWhy, want, s.st.Runs["x-2"].PausedWhy, want)
	}
}

// TestFiringVars: a firing's values become vars; values that do not fit start no run, and a person is notified.
func TestFiringVars(t *testing.T) {
	conform.Rule(t, "12-triggers end", "values that do not fit start no run, with the reason")
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles)}, With: []ChildVar{{Name: "goal",
		Value: Value{Eval: func(e *Env) (any, error) { return fmt.Sprint("read ", e.Event["file"]), nil }}}}},
		func(w *Spec) { w.Vars = []Var{{Name: "goal", Required: true}, {Name: "file", Default: ""}} })
	s.do(Fired{Workflow: "x", Trigger: OnFiles, Key: "a", Values: map[string]any{"file": "a.md"}})
	s.do(Fired{Workflow: "x", Trigger: OnFiles, Key: "b", Values: map[string]any{"file": strings.Repeat("b", MaxVars)}})
	s.want(fmt.Sprint(len(s.st.Armed["x"].Firings)), "1") // they are refused at once, and not kept
	s.read()
	vars, _ := json.Marshal(s.st.Runs["x-1"].Vars)
	s.want(string(vars), `{"file":"a.md","goal":"read a.md"}`, s.keys(), "a", fmt.Sprint(len(s.st.Notices)), "1")
	s.has(s.skips(), "take more than 64 KiB")
}

// TestFiringsBounded: a crowd waits at its source, not in the state.
func TestFiringsBounded(t *testing.T) {
	conform.Rule(t, "12-triggers room", "a crowd waits at its source")
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles)}, MaxPerDay: 10_000})
	for i := range MaxFirings + 10 {
		s.fire(OnFiles, fmt.Sprint(i))
	}
	s.want(fmt.Sprint(len(s.st.Armed["x"].Firings)), fmt.Sprint(MaxFirings), s.st.Armed["x"].Full, FullQueue,
		fmt.Sprint(len(s.owed(DoListen))), "0")
}

// TestHeld: a firing that cannot start is reported once, and starts later.
func TestHeld(t *testing.T) {
	conform.Rule(t, "12-triggers end", "what cannot start is held with its reason, and starts later")
	conform.Rule(t, "12-triggers armed", "what was read while another text was armed starts nothing")
	s := armed(t, On{Triggers: []*Trigger{kind(OnFiles)}})
	s.fire(OnFiles, "a")
	for range 3 {
		s.do(FiringHeld{Workflow: "x", Why: "its spec has changed"})
	}
	s.want(fmt.Sprint(len(s.st.Notices)), "1", s.st.Armed["x"].Held, "its spec has changed", s.keys(), "")
	s.do(FiringRead{Workflow: "x", Trigger: OnFiles, Key: "a", Armed: "d-older", Run: RunRequested{Digest: "d-x"}}) // by another text
	s.want(s.keys(), "", fmt.Sprint(len(s.owed(DoFire))), "1")
	before := s.owed(DoFire)[0].Key
	s.arm() // it is read again, for the spec that is armed now
	s.want(fmt.Sprint(s.owed(DoFire)[0].Key == before), "false")
	s.read()
	s.want(s.keys(), "a", s.st.Armed["x"].Held, "")
	s.fire(OnFiles, "b")
	s.do(DisarmRequested{Workflow: "x"})
	s.want(s.skips(), "b its triggers were disarmed", fmt.Sprint(len(s.owed(DoFire))), "0")
}

// triggerFacts has one fact of each kind about triggers.
func triggerFacts() []Fact {
	known := Keys{}
	known.add(OnFiles, "a@1")
	at := time.Unix(simEpoch, 0).UTC()
	turn := Turn{Through: at, Next: at.Add(time.Hour)}
	return []Fact{
		TriggersArmed{Workflow: "w", Digest: "d", Source: "s", Next: map[string]Turn{"schedule": turn}, Known: known,
			Tips: map[string]string{"main": "c1"}, By: Actor{Who: "ann"}},
		TriggersDisarmed{Workflow: "w", By: Actor{Who: "ann"}},
		TriggerFired{Workflow: "w", Firing: Firing{Trigger: OnFiles, ID: OnFiles, Key: "a@2", At: at,
			Vars: map[string]any{"file": "a"}, Confirm: "why"}, Turn: &turn},
		TriggerSkipped{Workflow: "w", Trigger: OnFiles, ID: OnFiles, Key: "a@3", Why: "why"},
		TriggersFull{Workflow: "w", Why: FullDay}, TriggersOpened{Workflow: "w"}, TriggersHeld{Workflow: "w", Why: "why"},
	}
}

// TestTriggerCodec: facts of triggers read back as they were.
func TestTriggerCodec(t *testing.T) {
	for _, f := range triggerFacts() {
		raw, err := EncodeFact(f)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeFact(raw); err != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("%s reads back as %+v: %v", raw, back, err)
		}
	}
	var k Keys
	for _, bad := range []string{"x", "AAAA", "!!!!"} {
		if err := k.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for keys", bad)
		}
	}
}
