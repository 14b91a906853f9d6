package daemon

import (
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

// TestWhoseTurn: an attempt and a round each are one turn of their role, however often they were
// launched; a task's run goes on where the list's runs before it left off. Stand-ins' scripts go by
// launches.
func TestWhoseTurn(t *testing.T) {
	conform.Rule(t, "001 turns", "what is launched anew in an iteration is its own agent's")
	agent := func(role string) *engine.Agent { return &engine.Agent{Type: role} }
	spec := &engine.Spec{ID: "w",
		Steps: []*engine.Step{{ID: "a", Agent: agent("iter")}, {ID: "b", Agent: agent("iter")}, {ID: "c", Agent: agent("other")}},
		Gates: []*engine.Gate{{ID: "g", Step: "a", Reviewer: engine.Reviewer{AgentType: "iter"}}}}
	launched := func(k ...int) (out []*engine.Attempt) {
		for i, n := range k {
			out = append(out, &engine.Attempt{N: i + 1, K: n})
		}
		return out
	}
	at := func(turn int, as []*engine.Attempt) []*engine.Attempt {
		as[0].Turn = turn
		return as
	}
	for _, c := range []struct {
		name           string
		attempts       map[string][]*engine.Attempt
		rounds         []*engine.Round
		child          *engine.ChildOf
		launches, turn int
	}{
		{"nothing was launched", nil, nil, nil, 0, 0},
		{"the first", map[string][]*engine.Attempt{"a": launched(1)}, nil, nil, 0, 0},
		{"the first, launched anew", map[string][]*engine.Attempt{"a": launched(3)}, nil, nil, 2, 0},
		{"the second, after that", map[string][]*engine.Attempt{"a": launched(3, 1)}, nil, nil, 3, 1},
		{"of another step of the role", map[string][]*engine.Attempt{"a": launched(1), "b": launched(1)}, nil, nil, 1, 1},
		{"another role's count for nothing", map[string][]*engine.Attempt{"a": launched(1), "c": launched(1, 1)}, nil, nil, 0, 0},
		{"one that was skipped is no turn", map[string][]*engine.Attempt{"a": launched(1, 0, 1)}, nil, nil, 1, 1},
		{"reviews count", map[string][]*engine.Attempt{"a": launched(1, 1)}, []*engine.Round{{N: 1, K: 2}}, nil, 3, 2},
		{"a task's run", map[string][]*engine.Attempt{"a": launched(1)}, nil, &engine.ChildOf{Task: "T3", Turn: 2}, 0, 2},
		{"a task's run, launched anew", map[string][]*engine.Attempt{"a": launched(2)}, nil, &engine.ChildOf{Task: "T3", Turn: 2}, 1, 2},
		{"beside a later one of another step", map[string][]*engine.Attempt{"a": at(1, launched(1)), "b": at(2, launched(1))}, nil, nil, 1, 0},
		{"launched anew beside a later one", map[string][]*engine.Attempt{"a": at(1, launched(2)), "b": at(2, launched(1))}, nil, nil, 2, 0},
		{"after an earlier one beside it", map[string][]*engine.Attempt{"a": at(2, launched(1)), "b": at(1, launched(3))}, nil, nil, 3, 1},
		{"after some of an older release", map[string][]*engine.Attempt{"a": at(1, launched(1)), "b": launched(1)}, nil, nil, 1, 1},
	} {
		run := &engine.Run{Attempts: c.attempts, Rounds: map[string][]*engine.Round{"g": c.rounds}, Child: c.child}
		if launches, turn := nth(run, spec, engine.Effect{Step: "a", N: max(len(c.attempts["a"]), 1)}); launches != c.launches || turn != c.turn {
			t.Errorf("%s: launch %d, turn %d; want %d and %d", c.name, launches, turn, c.launches, c.turn)
		}
	}
}
