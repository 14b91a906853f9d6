package graph

import "sluice/engine"

// waiting is the state of a step that has not begun.
const waiting = "waiting"

// condition groups states as people see them; it is also the class of a drawn node.
type condition string

const (
	condAhead   condition = "ahead" // not yet, or no run
	condWorking condition = "working"
	condPassed  condition = "passed"
	condAsking  condition = "asking" // waits for a person
	condFailed  condition = "failed"
	condSkipped condition = "skipped"
)

func conditionOf(state string) condition {
	switch state {
	case "running", "ready", "signalled", "gating", "reviewing":
		return condWorking
	case "passed", "completed", "routed":
		return condPassed
	case engine.OnHuman, "notice", engine.OnWindow, "paused":
		return condAsking
	case "failed", "aborted":
		return condFailed
	case "skipped", "superseded":
		return condSkipped
	}
	return condAhead
}

// Words returns the state of a step or gate in words.
func Words(state string) string {
	switch state {
	case engine.OnHuman:
		return "asks you"
	case engine.OnNotice:
		return "notifies you"
	case engine.OnWindow:
		return "open to a veto"
	}
	return state
}

// colour returns the fill and border of a state where a style cannot be attached.
func colour(state string) (fill, border string) {
	switch conditionOf(state) {
	case condWorking:
		return "#dbeafe", "#2563eb"
	case condPassed:
		return "#dcfce7", "#16a34a"
	case condAsking:
		return "#fef3c7", "#d97706"
	case condFailed:
		return "#fee2e2", "#dc2626"
	case condSkipped:
		return "#f3f4f6", "#9ca3af"
	}
	return "#ffffff", "#4b5563"
}
