package render

import (
	"io"
	"slices"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
)

// TestEndLines: the last steps and gates, and what was used; foreign words are clean, quoted and fit.
func TestEndLines(t *testing.T) {
	var r daemon.RunStatus
	for _, id := range []string{"plan", "tests", "code", "docs"} {
		r.Steps = append(r.Steps, daemon.StepStatus{ID: id, State: engine.Passed, Summary: "did " + id + "\x1b[2J\nand more",
			Gates: []daemon.GateStatus{{ID: "G-" + id, Outcome: engine.OutcomePass, ByKind: "human", Round: 2, By: &engine.Actor{Who: "ann", Via: "terminal"}}, {ID: "own", Implicit: true, Outcome: engine.OutcomePass, ByKind: "step"}}})
	}
	r.Steps = append(r.Steps, daemon.StepStatus{ID: "left", State: engine.RunFailed, Summary: "gave up"}, daemon.StepStatus{ID: "long", State: engine.Passed, Summary: strings.Repeat("words ", 100)})
	r.Usage = engine.Usage{Tokens: 84_000, CostUSD: 0.42}
	got := EndLines(console.New(nil, nil, io.Discard, io.Discard), r)
	for _, l := range got {
		if strings.ContainsAny(l, "\x1b\n") {
			t.Errorf("%q", l)
		}
	}
	got[2] = strings.TrimRight(got[2][:19], " ")
	want := []string{"  code     “did code and more”", "  docs     “did docs and more”", "  long     “words",
		"  G-tests  passed in round 2 by ann (terminal)", "  G-code   passed in round 2 by ann (terminal)", "  G-docs   passed in round 2 by ann (terminal)", "  used     0.42 USD, 84k tokens"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestVetoIsNamed: a status and the end of a run name a veto, which is no fail of the reviewer's.
func TestVetoIsNamed(t *testing.T) {
	g := daemon.GateStatus{ID: "G", Level: "notify", State: engine.Refused, Outcome: engine.OutcomeFail, ByKind: "human", Round: 1, By: &engine.Actor{Who: "ann"}}
	c := console.New(nil, nil, io.Discard, io.Discard)
	for _, veto := range []bool{true, false} {
		g.Rounds = []engine.Round{{N: 1, Veto: veto}}
		words := map[bool]string{true: "vetoed", false: "failed"}[veto]
		if got := strings.Join(GateLines(c, g, c.Now()), ""); !strings.Contains(got, " G") || !strings.Contains(got, " "+words+" ") {
			t.Errorf("%q, want %s", got, words)
		}
		if got := EndLines(c, daemon.RunStatus{Steps: []daemon.StepStatus{{Gates: []daemon.GateStatus{g}}}}); len(got) != 1 || got[0] != "  G  "+words+" by ann" {
			t.Errorf("%q, want %s", got, words)
		}
	}
}
