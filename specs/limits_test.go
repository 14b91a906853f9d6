package specs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/tools/conform"
)

// TestRoleLimits: `limits: roles:` limits what the agents of a role may use in a run. An unused
// role, an unknown limit and a limit of 0 are reported at their place.
func TestRoleLimits(t *testing.T) {
	conform.Rule(t, "7-agents budgets", "limits.roles bounds a role over a run")
	const spec = `workflow: {id: w, vars: {n: 3}, limits: {max_tokens: 9, roles: %s}}
steps:
  - {id: a, agent: {type: dev}, gate: g}
  - {id: b, agent: {type: hand}, run: x, gate: h}
gates:
  - {id: g, reviewer: {level: auto, agent_type: judge}, on_pass: {next_step: b}}
  - {id: h, reviewer: {level: human}, on_pass: {next_step: DONE}}
`
	s, faults := Load("", fmt.Appendf(nil, spec, `{dev: {max_tokens: 100, max_cost_usd: {max: 1.5, on_hit: human}}, judge: {max_launches: "${{vars.n}}", max_duration: {max: 2h, on_hit: FAILED}}}`))
	if s == nil {
		t.Fatal(faults)
	}
	want := map[string]engine.Spend{"dev": {Usage: engine.Usage{Tokens: 100, CostUSD: 1.5}}, "judge": {Launches: 3, Time: engine.Duration(2 * time.Hour)}}
	if fmt.Sprint(s.Limits.Roles) != fmt.Sprint(want) || fmt.Sprint(s.Limits.OnHit) != "map[roles.dev.max_cost_usd:human roles.judge.max_duration:FAILED]" || s.Limits.MaxTokens != 9 {
		t.Errorf("%+v", s.Limits)
	}
	for roles, fault := range map[string]string{
		`{deb: {max_tokens: 1}}`:                          `1:65: workflow: limits: roles: no step or gate of this workflow has the role "deb": did you mean "dev"?`,
		`{hand: {max_tokens: 1}}`:                         `has the role "hand"`,
		`{dev: {max_token: 1}}`:                           `unknown key "max_token"`,
		`{dev: {max_tokens: 0}}`:                          `roles.dev.max_tokens is 0`,
		`{dev: {max_launches: 0}}`:                        `roles.dev.max_launches`,
		`{dev: {max_duration: soon}}`:                     `soon`,
		`{dev: {max_cost_usd: {max: 1, on_hit: remind}}}`: `unknown word "remind"`,
		`[dev]`:    `expected a mapping (role: {max_tokens: …})`,
		`{dev: 4}`: `expected a mapping`,
	} {
		if s, faults := Load("", fmt.Appendf(nil, spec, roles)); s != nil || !strings.Contains(fmt.Sprint(faults), fault) {
			t.Errorf("%s: want %s, got %v", roles, fault, faults)
		}
	}
}
