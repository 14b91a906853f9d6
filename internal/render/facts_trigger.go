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
		return FactLine{Text: Because(f.Trigger+" of "+f.Workflow+" started no run for "+f.Key, f.Why), Style: console.Yellow,
			Key: true}
	case engine.TriggersFull:
		return FactLine{Text: "the triggers of " + f.Workflow + " take nothing in for now: " + f.Why, Style: console.Yellow,
			Key: true}
	case engine.TriggersOpened:
		return FactLine{Text: "the triggers of " + f.Workflow + " take firings in again", Style: console.Dim}
	case engine.TriggersHeld:
		return FactLine{Text: Because("the triggers of "+f.Workflow+" start no run", f.Why), Style: console.Yellow, Key: true}
	}
	return FactLine{}
}
