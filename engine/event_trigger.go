package engine

// ArmRequested: a person lets the triggers of a workflow fire, by its spec as it is now.
type ArmRequested struct {
	Workflow string `json:"workflow"`
	Source   string `json:"source"` // its text with all that it names, no var given
	Digest   string `json:"digest"` // hex SHA-256 of Source
	Known    []Was  `json:"known,omitempty"`
	By       Actor  `json:"by"`
}

// Was is what a trigger would fire for and that was there when it was armed.
type Was struct {
	Trigger string `json:"trigger"` // its name
	Key     string `json:"key"`
}

// DisarmRequested: a person stops them.
type DisarmRequested struct {
	Workflow string `json:"workflow"`
	By       Actor  `json:"by"`
}

// Fired: what a trigger waits for has happened. It may be reported any number of times: a key
// counts once, ever.
type Fired struct {
	Workflow string `json:"workflow"`
	Trigger  string `json:"trigger"`         // its name
	Armed    int64  `json:"armed,omitempty"` // the arming that the source looked for (Effect.N); 0 = any
	Key      string `json:"key"`
	// what expressions and vars see of it, by name: file, push, issue or event
	Values  map[string]any `json:"values,omitempty"`
	Skip    string         `json:"skip,omitempty"`    // why it is none after all: it is only remembered
	Trusted bool           `json:"trusted,omitempty"` // by somebody who may write to the repo
	By      Actor          `json:"by,omitzero"`
}

// FiringRead: the spec was read for a firing; this is the run to start.
type FiringRead struct {
	Workflow string       `json:"workflow"`
	Trigger  string       `json:"trigger"`
	Key      string       `json:"key"`
	Armed    string       `json:"armed"` // the digest of the text that was armed when it was read
	Run      RunRequested `json:"run"`
}

// FiringHeld: a firing cannot start a run now. It is tried again.
type FiringHeld struct {
	Workflow string `json:"workflow"`
	Why      string `json:"why"`
}

func (ArmRequested) EventKind() string    { return "arm_requested" }
func (DisarmRequested) EventKind() string { return "disarm_requested" }
func (Fired) EventKind() string           { return "fired" }
func (FiringRead) EventKind() string      { return "firing_read" }
func (FiringHeld) EventKind() string      { return "firing_held" }
