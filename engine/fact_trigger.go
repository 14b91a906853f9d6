package engine

import "time"

// The facts of triggers. They are about the repo, not about a run.
type (
	// TriggersArmed: the workflow's triggers fire from now on, as this spec has them.
	TriggersArmed struct {
		Workflow string            `json:"workflow"`
		Digest   string            `json:"digest"`
		Source   string            `json:"source"`
		Next     map[string]Turn   `json:"next,omitempty"`  // of the schedules, by Trigger.ID
		Known    Keys              `json:"known,omitempty"` // what was there does not fire
		Tips     map[string]string `json:"tips,omitempty"`  // branch -> commit
		By       Actor             `json:"by"`
	}
	// TriggersDisarmed: they fire no more.
	TriggersDisarmed struct {
		Workflow string `json:"workflow"`
		By       Actor  `json:"by"`
	}
	// TriggerFired: the key starts one run, which is owed until RunStarted names it.
	TriggerFired struct {
		Workflow string `json:"workflow"`
		Firing   Firing `json:"firing"`
		Turn     *Turn  `json:"turn,omitempty"` // of a schedule, from now on
	}
	// TriggerSkipped: the key starts no run.
	TriggerSkipped struct {
		Workflow string `json:"workflow"`
		Trigger  string `json:"trigger"`
		ID       string `json:"id"`
		Key      string `json:"key"`
		Why      string `json:"why"`
		Turn     *Turn  `json:"turn,omitempty"`
	}
	// TriggersFull: no more is taken in for now. Why is FullDay, FullQueue or FullMemory.
	TriggersFull struct {
		Workflow string `json:"workflow"`
		Why      string `json:"why"`
	}
	// TriggersOpened: it is taken in again.
	TriggersOpened struct {
		Workflow string `json:"workflow"`
	}
	// TriggersHeld: firings start no run for now; Why is the reason in words.
	TriggersHeld struct {
		Workflow string `json:"workflow"`
		Why      string `json:"why"`
	}
)

// Turn is where a schedule is.
type Turn struct {
	Through time.Time `json:"through"`       // minutes up to this one are decided on
	Next    time.Time `json:"next,omitzero"` // zero = never
}

// FiredBy is what started a run.
type FiredBy struct {
	Trigger string `json:"trigger"` // its name
	Key     string `json:"key"`
}

// These facts are about the repo.
func (TriggersArmed) RunID() string    { return "" }
func (TriggersDisarmed) RunID() string { return "" }
func (TriggerFired) RunID() string     { return "" }
func (TriggerSkipped) RunID() string   { return "" }
func (TriggersFull) RunID() string     { return "" }
func (TriggersOpened) RunID() string   { return "" }
func (TriggersHeld) RunID() string     { return "" }
