package engine

import (
	"encoding/json"
	"time"
)

// Actor is who did something, and how we know.
type Actor struct {
	Who   string `json:"who,omitempty"`   // the system's user name
	Via   string `json:"via,omitempty"`   // file, command, terminal, desktop, page, daemon
	Trust string `json:"trust,omitempty"` // file, sandbox or signed: what separates an agent from this statement
	Key   string `json:"key,omitempty"`   // signed: the key's fingerprint; Who is then its principal
}

// ViaMCP marks an orchestrating agent, which acts in its person's account but not as that person.
const ViaMCP = "mcp"

// Signed is signed content and its signer. The signature was verified before the event was made.
type Signed struct {
	Names   []string  `json:"names"` // the signer's principal, then other names of the same person
	Key     string    `json:"key"`   // fingerprint
	Run     string    `json:"run"`
	Gate    string    `json:"gate"`
	Round   int       `json:"round"`
	Outcome string    `json:"outcome"`
	Digest  string    `json:"digest,omitempty"` // of what was reviewed
	Nonce   string    `json:"nonce"`
	Expires time.Time `json:"expires"`

	Answer   json.RawMessage `json:"answer,omitempty"`
	Findings json.RawMessage `json:"findings,omitempty"`
}

// RunRequested: somebody starts a workflow.
type RunRequested struct {
	Workflow string         `json:"workflow"`
	Source   string         `json:"source"`         // the complete text of the spec
	Digest   string         `json:"digest"`         // hex SHA-256 of Source
	File     string         `json:"file,omitempty"` // hex SHA-256 of the spec's file, from which Source was made
	Vars     map[string]any `json:"vars,omitempty"`
	Parallel bool           `json:"parallel,omitempty"` // may run beside a live run of the workflow
	Paused   bool           `json:"paused,omitempty"`
	After    int            `json:"after,omitempty"` // the highest number that files of earlier runs have
	// worktree as written (cleaned) -> key: real path of its checkout's top level
	Trees map[string]string `json:"trees,omitempty"`
	// what stand-ins do in place of the run's agents; absent for a real run
	Stubs json.RawMessage `json:"stubs,omitempty"`
	By    Actor           `json:"by"`
	Fired *FiredBy        `json:"fired,omitempty"` // the trigger that starts it; nil = a person does
}

// HumanSay is the content of a person's file.
type HumanSay struct {
	Text  string `json:"text,omitempty"`
	Round int    `json:"round,omitempty"`
	Run   string `json:"run,omitempty"`
	By    string `json:"by,omitempty"`

	Gate    string `json:"gate,omitempty"`    // must match the file name
	Outcome string `json:"outcome,omitempty"` // must match the file name

	Answer   json.RawMessage `json:"answer,omitempty"`   // see Answered
	Findings json.RawMessage `json:"findings,omitempty"` // see Answered

	Proven
}

// Proven is the proof that comes with a signed answer.
type Proven struct {
	Signed   *Signed `json:"signed,omitempty"`
	Proof    string  `json:"proof,omitempty"`    // the text with its signature, as received
	Unproven string  `json:"unproven,omitempty"` // why the signature, and therefore the answer, does not count
}

// Claimed: somebody takes an offered step.
type Claimed struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	N    int    `json:"n"`
	By   Actor  `json:"by"`
}

// Answered: a person decides a gate by command, terminal or button. A file is FileSeen.
type Answered struct {
	Gate      string    `json:"gate"`
	Run       string    `json:"run,omitempty"`   // "" = the only run it can mean
	Round     int       `json:"round,omitempty"` // 0 = unspecified: counts if Written is not before the round's opening
	Outcome   string    `json:"outcome"`
	Text      string    `json:"text,omitempty"`
	Written   time.Time `json:"written"`
	DigestNow string    `json:"digest_now,omitempty"` // digest of what was reviewed, taken when the answer came
	By        Actor     `json:"by"`

	Answer   json.RawMessage `json:"answer,omitempty"`   // a pass's structured answer, as received
	Findings json.RawMessage `json:"findings,omitempty"` // a fail's or veto's comments, by file and line

	Proven
}

// PauseRequested, ResumeRequested, AbortRequested and RetryRequested: a person steers a run.
type (
	PauseRequested struct {
		Run string `json:"run"`
		By  Actor  `json:"by"`
	}
	ResumeRequested struct {
		Run string `json:"run"`
		By  Actor  `json:"by"`
	}
	AbortRequested struct {
		Run string `json:"run"`
		Why string `json:"why,omitempty"`
		By  Actor  `json:"by"`
	}
	RetryRequested struct {
		Run  string `json:"run"`
		Step string `json:"step,omitempty"`
		By   Actor  `json:"by"`
	}
)

// NoteGiven: a person leaves a note for the agents of a run, or of one step.
type NoteGiven struct {
	Run  string `json:"run"`
	Step string `json:"step,omitempty"`
	Text string `json:"text"`
	By   Actor  `json:"by"`
}

// TakeoverRequested: a person wants to continue a step in the agent's place.
type TakeoverRequested struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	By   Actor  `json:"by"`
}

// HandbackRequested: the person returns it: an agent continues, or (Done) the step is done.
type HandbackRequested struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	Done bool   `json:"done,omitempty"`
	Text string `json:"text,omitempty"`
	By   Actor  `json:"by"`
}

func (RunRequested) EventKind() string { return "run_requested" }

func (Claimed) EventKind() string { return "claimed" }

func (Answered) EventKind() string { return "answered" }

func (PauseRequested) EventKind() string { return "pause_requested" }

func (ResumeRequested) EventKind() string { return "resume_requested" }

func (AbortRequested) EventKind() string { return "abort_requested" }

func (RetryRequested) EventKind() string { return "retry_requested" }

func (NoteGiven) EventKind() string { return "note_given" }

func (TakeoverRequested) EventKind() string { return "takeover_requested" }

func (HandbackRequested) EventKind() string { return "handback_requested" }
