package settings

import (
	"strings"
	"testing"
)

// TestUntoldBudgets: a budget that cannot limit an agent is reported.
func TestUntoldBudgets(t *testing.T) {
	s := Default()
	s.Agents["mine"] = Agent{Command: []string{"./mine"}}
	s.Roles = map[string]Role{"a": {Agent: []string{"codex"}, MaxCostUSD: 1}, "b": {Agent: []string{"mine"}, MaxTokens: 1}, "c": {Agent: []string{"claude"}, MaxCostUSD: 1}, "d": {Agent: []string{"codex"}, MaxCostUSD: 1, MaxTokens: 1}}
	got := strings.Join(s.Warnings(), "\n")
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "roles.a: agent codex reports tokens, but no cost") || !strings.Contains(got, "roles.b: agent mine is of the format text") {
		t.Errorf("%s", got)
	}
}
