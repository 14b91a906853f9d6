package engine

import (
	"encoding/json"
)

// Levels of a gate.
const (
	LevelAuto   = "auto"   // the reviewer's verdict decides
	LevelNotify = "notify" // like auto, but a person is notified and may veto
	LevelHuman  = "human"  // a person decides
)

// Human is the target or outcome that leaves a gate's round to a person.
const Human = "human"

// Outcomes that every gate knows without naming them.
const (
	OutcomePass    = "pass"
	OutcomeFail    = "fail"
	OutcomeVeto    = "veto"
	OutcomeBlocked = "blocked"
	OutcomeLost    = "lost" // no result after all restarts
)

// Refuses reports whether a person's answer says no: by a fail or a veto.
func Refuses(outcome string) bool { return outcome == OutcomeFail || outcome == OutcomeVeto }

// DefaultMaxRetries is the default of max_failures (or max_retries, the same).
const DefaultMaxRetries = 3

// DefaultMaxSameFailure is how often the same failure over an unchanged tree may occur before a
// person is asked.
const DefaultMaxSameFailure = 3

// Reviewer is who evaluates a gate.
type Reviewer struct {
	Level     string
	AgentType string   // a role
	Run       *Command // exit 0 = pass
	FromStep  bool     // the step's own report
	Forge     []string // what the forge judges by: ForgeChecks, ForgeReviews
	Prompt    Text
	Session   Text
	Rubric    []string
	Approvers []string // principals of signatures, and accounts at the forge: ForgePrefix and the login
	Trust     string   // the lowest trust level of an answer; "" = the settings'
}

// Rule is one line of `verdict:`: an outcome and its condition.
type Rule struct {
	Outcome string
	When    Cond
}

// Verdict computes a round's outcome from the reviewer's answer. Empty = the reviewer's own.
type Verdict struct {
	Rules []Rule
	Name  *Text // one expression for the name, instead of Rules
}

// Gate is a verification procedure between steps.
type Gate struct {
	ID, Name     string
	Step         string // the step it judges
	Implicit     bool   // created for a step that names no gate
	When         Cond
	Reviewer     Reviewer
	Restarts     *int
	Answer       *Schema // of the reviewer's answer; at level human, of the answer that a person's pass needs
	Outputs      []Output
	Verdict      Verdict
	VetoWindow   *Duration
	Timeout      Duration // for a human's decision; 0 = none
	OnTimeout    string   // remind (default), fail, or an end
	OnPass       []string // steps, or one end; only on a step's last gate
	NextGate     string
	OnFail       string // a step or an end
	RetryContext string // path with {n}
	Routes       []Route
	MaxRetries   int    // max_failures, or max_retries: at least 1
	OnExhausted  string // human, pass, a step or an end

	// ReadAnswer completes a person's answer with Answer's defaults and validates it. The error
	// says what is missing or wrong, and how to correct it. nil if Answer is.
	ReadAnswer func(answer json.RawMessage) (json.RawMessage, error) `json:"-"`
}

// AsksAnswer reports whether a person's pass needs an answer.
func (g *Gate) AsksAnswer() bool { return g.Answer != nil && g.Reviewer.Level == LevelHuman }

// Route is one outcome and its target: a step, an end or "human".
type Route struct{ Outcome, To string }

// Route returns the outcome's target in `routes:`.
func (g *Gate) Route(outcome string) (string, bool) {
	for _, r := range g.Routes {
		if r.Outcome == outcome {
			return r.To, true
		}
	}
	return "", false
}

// Gate returns the gate with the id, or nil.
func (s *Spec) Gate(id string) *Gate {
	if s.graph != nil {
		return s.graph.gates[id]
	}
	return find(s.Gates, func(g *Gate) bool { return g.ID == id })
}

// LastGate returns the gate whose pass moves the step's work on.
func (s *Spec) LastGate(step *Step) *Gate { return s.Gate(step.Gates[len(step.Gates)-1]) }
