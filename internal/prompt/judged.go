package prompt

import (
	"slices"
	"strings"

	"sluice/engine"
)

// Unjudged returns why nobody judges the texts among a step's criteria: none of its gates asks a person or an agent.
// "" = somebody does.
func Unjudged(spec *engine.Spec, st *engine.Step) string {
	if spec.Inline && spec.Outer != nil { // the list's gates are those of its tasks
		spec, st = spec.Outer, spec.Outer.Step(st.ID)
	}
	var gates []string
	for _, id := range st.Gates {
		g := spec.Gate(id)
		switch r := g.Reviewer; {
		case r.Level == engine.LevelHuman, r.AgentType != "", slices.Contains(r.Forge, engine.ForgeReviews):
			return ""
		case g.Implicit:
		case r.Run != nil:
			gates = append(gates, "gate "+id+" is a command")
		case len(r.Forge) > 0:
			gates = append(gates, "gate "+id+" asks for the forge's checks")
		default:
			gates = append(gates, "gate "+id+" takes the step's own report")
		}
	}
	if len(gates) == 0 {
		return "the step has no gate"
	}
	return strings.Join(gates, ", ")
}
