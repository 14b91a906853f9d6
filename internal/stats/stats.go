package stats

import (
	"time"

	"sluice/engine"
)

// Stats is what Counter has counted.
type Stats struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	Runs Runs      `json:"runs"`
	// runs with stubs, which are not counted
	Stubbed int    `json:"stubbed"`
	Steps   []Step `json:"steps"` // by workflow, then in the order they were first started
	Gates   []Gate `json:"gates"` // likewise
	// how long rounds waited for a person
	People Times  `json:"people"`
	Roles  []Used `json:"roles"` // by cost, then tokens, then time
	Days   []Used `json:"days"`  // oldest first; a process counts on the day it ended
	// gates that may not earn their cost
	Advice []Advice `json:"advice,omitempty"`
}

// Runs counts runs; a child run counts with its parent.
type Runs struct {
	Completed int   `json:"completed"`
	Failed    int   `json:"failed"`
	Aborted   int   `json:"aborted"`
	Live      int   `json:"live"`
	Times     Times `json:"times"` // from start to end
}

// Times sums up durations.
type Times struct {
	Count  int             `json:"count"`
	Sum    engine.Duration `json:"sum"`
	Median engine.Duration `json:"median"`
	Most   engine.Duration `json:"most"`
}

// Step is a step of a workflow.
type Step struct {
	Workflow string `json:"workflow"`
	Step     string `json:"step"`
	Attempts int    `json:"attempts"`
	Passed   int    `json:"passed"`
	Times    Times  `json:"times"` // of passed attempts, from ready to passed, gates included
}

// Gate is a gate of a workflow.
type Gate struct {
	Workflow string `json:"workflow"`
	Gate     string `json:"gate"`
	Rounds   int    `json:"rounds"` // decided ones
	Passed   int    `json:"passed"`
	Failed   int    `json:"failed"`
	Routed   int    `json:"routed"` // by a named route
	Voided   int    `json:"voided"` // the content changed meanwhile
	Vetoes   int    `json:"vetoes"` // of the failed ones
	// reviews without a verdict
	Inconclusive int `json:"inconclusive"`
	// failures by a reviewer, a command or a criterion, and those after which a person passed the
	// round
	Refused    int `json:"refused"`
	Overridden int `json:"overridden"`
	// passed rounds in a row at the end without a failure
	Quiet   int             `json:"quiet"`
	People  Times           `json:"people"`  // waiting for a person
	Reviews engine.Usage    `json:"reviews"` // use of its reviewers
	Time    engine.Duration `json:"time"`    // running time of its reviewers
}

// Used is use by a role, or on a day (YYYY-MM-DD).
type Used struct {
	Name     string          `json:"name"`
	Launches int             `json:"launches"`
	Time     engine.Duration `json:"time"`
	engine.Usage
}

// Advice names a gate and why it may not earn its cost.
type Advice struct {
	Workflow string `json:"workflow"`
	Gate     string `json:"gate"`
	Text     string `json:"text"`
}
