package render

import (
	"sluice/engine"
	"sluice/internal/console"
)

// sayTrigger returns the words for facts of triggers.
func sayTrigger(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.TriggersArmed:
		return FactLine{Text: "the triggers of " + f.Workflow + " are armed" + Who(&f.By), Style: console.Bold, Key: true}
	case engine.TriggersDisarmed:
		return FactLine{Text: "the triggers of " + f.Workflow + " are disarmed" + Who(&f.By), Style: console.Bold, Key: true}
	case engine.TriggerFired:
		return FactLine{Text: f.Firing.Trigger + " of " + f.Workflow + " fired: " + f.Firing.Key, Style: console.Bold,
			Key: true}
	case engine.TriggerSkipped:
		return warns(Because(f.Trigger+" of "+f.Workflow+" started no run for "+f.Key, f.Why))
	case engine.TriggersFull:
		return warns("the triggers of " + f.Workflow + " take nothing in for now: " + f.Why)
	case engine.TriggersOpened:
		return quiet("the triggers of " + f.Workflow + " take firings in again")
	case engine.TriggersHeld:
		return warns(Because("the triggers of "+f.Workflow+" start no run", f.Why))
	}
	return FactLine{}
}
