package daemon

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/engine"
)

// TestUnpassedIsBounded: what thousands of tasks let through makes no status of thousands of lines;
// the newest is named.
func TestUnpassedIsBounded(t *testing.T) {
	spec := &engine.Spec{ID: "w", Steps: []*engine.Step{{ID: "a", Gates: []string{"g"}}}, Gates: []*engine.Gate{{ID: "g", Step: "a", OnPass: []string{"DONE"}}}}
	c := &core{state: engine.NewState(), specs: map[string]*engine.Spec{"d": spec}}
	c.state.Runs["w-1"] = &engine.Run{ID: "w-1", Digest: "d"}
	c.state.Order = []string{"w-1"}
	began := time.Now()
	for i := range MaxUnpassed + 50 {
		id := fmt.Sprintf("w-1.T%d.1", i)
		c.state.Order = append(c.state.Order, id)
		c.state.Runs[id] = &engine.Run{ID: id, Digest: "d", Child: &engine.ChildOf{Parent: "w-1"},
			Rounds: map[string][]*engine.Round{"g": {{N: 1, LetThrough: 1, Ended: began.Add(time.Duration(i) * time.Second)}}}}
	}
	s := Status{Runs: []RunStatus{{ID: "w-1"}, {ID: "w-1.T7.1"}}}
	s.unpassed(c)
	u := s.Runs[0].Unpassed
	if len(u) != MaxUnpassed || s.Runs[0].More != 50 || u[len(u)-1].Run != fmt.Sprintf("w-1.T%d.1", MaxUnpassed+49) {
		t.Errorf("%d, and %d more", len(u), s.Runs[0].More)
	}
	if own := s.Runs[1]; len(own.Unpassed) != 1 || own.More != 0 {
		t.Errorf("its own: %+v", own)
	}
	for kind, want := range map[string]int{engine.NoticeEnded: MaxUnpassed + 50, engine.NoticePaused: 0} {
		j := (&orders{core: c}).job(engine.Effect{Run: "w-1", Notice: &engine.Notice{Kind: kind, Run: "w-1"}})
		if j.RunInfo.Unpassed != want {
			t.Errorf("a notice that it is %s knows of %d, want %d", kind, j.RunInfo.Unpassed, want)
		}
	}
}

// TestNearNamesWhatIsUsed: a warning names what is used of its budget, and is gone when the budget was raised.
func TestNearNamesWhatIsUsed(t *testing.T) {
	role := func(tokens int64, launches int, time engine.Duration) map[string]engine.Spend {
		return map[string]engine.Spend{"r.x": {Usage: engine.Usage{Tokens: tokens}, Launches: launches, Time: time}}
	}
	r := &engine.Run{Usage: engine.Usage{Tokens: 900, CostUSD: 1.75}, UsageLimit: engine.Usage{Tokens: 1000, CostUSD: 2},
		Begun: 8, Allowance: 20, TimeLimit: engine.Duration(time.Hour),
		Near: map[string]string{"max_tokens": "1000", "max_cost_usd": "2", "max_steps": "10", "max_duration": "1h0m0s",
			"roles.r.x.max_tokens": "100", "roles.r.x.max_launches": "5", "roles.r.x.max_duration": "1m0s"}}
	r.Roles, r.RoleLimits = role(85, 4, 0), role(100, 5, engine.Duration(time.Minute))
	want := []string{"max_cost_usd 1.75 of 2", "max_duration over four fifths of 1h0m0s", "max_tokens 900 of 1000",
		"roles.r.x.max_duration over four fifths of 1m0s", "roles.r.x.max_launches 4 of 5", "roles.r.x.max_tokens 85 of 100"}
	if got := near(r); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestBoundsOfAChild: a launch in a child run may cost what the limits of the runs above leave, too.
func TestBoundsOfAChild(t *testing.T) {
	c := &core{state: engine.NewState(), specs: map[string]*engine.Spec{"d": {ID: "w"}}}
	r := &engine.Run{ID: "w-1", Digest: "d", UsageLimit: engine.Usage{CostUSD: 5}, Usage: engine.Usage{CostUSD: 4}}
	r.Roles, r.RoleLimits = map[string]engine.Spend{"r": {Usage: engine.Usage{Tokens: 70}}}, map[string]engine.Spend{"r": {Usage: engine.Usage{Tokens: 100}}}
	c.state.Runs["w-1"], c.state.Runs["w-1.c.1"] = r, &engine.Run{ID: "w-1.c.1", Digest: "d", Child: &engine.ChildOf{Parent: "w-1"}}
	j := (&orders{core: c}).job(engine.Effect{Run: "w-1.c.1", Proc: &engine.Proc{Role: "r"}})
	if left := j.Config.Left("r", engine.Usage{}, j.RunInfo.Bounds...); left != (engine.Usage{Tokens: 30, CostUSD: 1}) {
		t.Errorf("%+v", left)
	}
}
