package collect

import (
	"sluice/engine"
)

// JudgedBy describes who judged a round.
func JudgedBy(g *engine.Gate, q *engine.Round) string {
	switch {
	case q.By != nil && q.By.Who != "":
		return q.By.Who + " (a person)"
	case q.ByKind == engine.Human:
		return "a person"
	case q.ByKind == "criterion":
		return byMachine
	case q.ByKind == "step":
		return "the step itself"
	case len(g.Reviewer.Forge) > 0:
		return reviewerOf(g)
	case g.Reviewer.Run == nil && g.Reviewer.AgentType == "":
		return q.ByKind
	}
	return reviewerOf(g)
}

// SaidBy describes who judged an attempt before a person did.
func SaidBy(g *engine.Gate, a *engine.Attempt) string {
	switch {
	case a != nil && a.Failure != "":
		return byMachine
	case g.Reviewer.FromStep:
		return "the step itself"
	}
	return reviewerOf(g)
}

func reviewerOf(g *engine.Gate) string {
	if g.Reviewer.Run != nil {
		return "the gate's command"
	}
	if len(g.Reviewer.Forge) > 0 {
		return "the forge: checks and reviews of the pull request"
	}
	return "the reviewer (" + g.Reviewer.AgentType + ")"
}

const byMachine = "the machine: the signal, the outputs and the criterion, before any review"
