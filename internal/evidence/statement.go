package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/internal/git"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// The types of a statement, by https://in-toto.io/Statement/v1.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "urn:sluice:gates:v1"
)

// Limits of a statement.
const (
	maxStatement = 512 << 10
	maxSubjects  = 1000
	maxGates     = 2000
	maxRounds    = 200 // of a gate: the newest
)

// How a commit has the work of a run.
const (
	HowWork    = "work"    // its tree is the run's work
	HowMerged  = "merged"  // git merged the run's work with what the branch had by then
	HowCarried = "carried" // it is an earlier commit of the run, which came along
)

// Statement says what the gates of a run decided about commits.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is a commit that has the run's work.
type Subject struct {
	Name        string      `json:"name"`
	Digest      Digest      `json:"digest"`
	Annotations Annotations `json:"annotations"`
}

// Digest names a commit and its tree, in hex.
type Digest struct {
	Commit string `json:"gitCommit"`
	Tree   string `json:"gitTree"`
}

// Annotations say how the commit has the work.
type Annotations struct {
	How string `json:"how"`
}

// Predicate is what the journal holds of the run.
type Predicate struct {
	Run     Run     `json:"run"`
	Work    Digest  `json:"work"` // the newest commit that the run made
	Gates   []Gate  `json:"gates"`
	Journal Journal `json:"journal"`
	Made    Made    `json:"made"`
}

// Run is the run that the statement is about.
type Run struct {
	ID       string    `json:"id"`
	Workflow string    `json:"workflow"`
	Spec     string    `json:"spec"`           // hex SHA-256 of the spec as it was compiled
	File     string    `json:"file,omitempty"` // of the spec's file
	Phase    string    `json:"phase"`          // completed, running, failed, …
	Why      string    `json:"why,omitempty"`  // of the end
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	// Held says that a sandbox held every launch. The state folder knows that, not the journal. Where
	// it is false, Unheld has the reason.
	Held   bool   `json:"held"`
	Unheld string `json:"unheld,omitempty"`
}

// Gate is a gate of a run, or of a run of one of its tasks.
type Gate struct {
	ID     string  `json:"id"`
	Run    string  `json:"run,omitempty"` // of the task; "" = the run itself
	Step   string  `json:"step"`
	Rounds []Round `json:"rounds"` // oldest first
	Older  int     `json:"older,omitempty"`
}

// Round is one judgement at a gate.
type Round struct {
	N       int       `json:"n"`
	State   string    `json:"state"` // passed, failed, routed, superseded, or one of an open round
	Outcome string    `json:"outcome,omitempty"`
	Level   string    `json:"level"`
	By      string    `json:"by,omitempty"` // reviewer, human, window, exhausted, when, …
	Who     string    `json:"who,omitempty"`
	Trust   string    `json:"trust,omitempty"` // of who decided: file, sandbox or signed; "" = nobody was asked
	Key     string    `json:"key,omitempty"`   // of a signed answer: the fingerprint
	At      time.Time `json:"at,omitzero"`
	// After this many failures, or by a route, the work went on without a pass.
	LetThrough int `json:"let_through,omitempty"`

	Reviewed string `json:"reviewed,omitempty"` // digest of what was judged, as a person signs it
	Judged   Digest `json:"judged,omitzero"`    // the commit in it
	// Proof is the text of a signed answer with its signature. Only the newest round has it.
	Proof string `json:"proof,omitempty"`
}

// Journal is the journal's end when the statement was made. A later one that lacks this record was
// cut or written anew.
type Journal struct {
	Repo    string `json:"repo"`         // the id of the repo on its machine
	ID      string `json:"id,omitempty"` // the journal's own, which signed answers name
	Records int64  `json:"records"`
	Sum     string `json:"sum"` // hex SHA-256 of the last record, which chains all before it
}

// Made says when and by what the statement was made.
type Made struct {
	At   time.Time `json:"at"`
	Tool string    `json:"tool"`
}

// ParseStatement reads the payload of an envelope. It takes only what is written as a statement of
// ours, each of its objects' keys once; unknown keys are passed over.
func ParseStatement(payload []byte) (*Statement, error) {
	if err := strictjson.Object(payload, maxStatement); err != nil {
		return nil, fmt.Errorf("the statement: %w", err)
	}
	var s Statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, fmt.Errorf("the statement: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("the statement: %w", err)
	}
	return &s, nil
}

func (s *Statement) check() error {
	switch {
	case s.Type != StatementType:
		return fmt.Errorf("its _type is %q, not %s", text.Clip(s.Type, 60), StatementType)
	case s.PredicateType != PredicateType:
		return fmt.Errorf("its predicateType is %q, not %s", text.Clip(s.PredicateType, 60), PredicateType)
	case len(s.Subject) == 0:
		return errors.New("it is about no commit")
	case len(s.Subject) > maxSubjects || len(s.Predicate.Gates) > maxGates:
		return errors.New("it has too many commits or gates")
	case !s.Predicate.Work.whole():
		return errors.New("it names no work")
	case s.Predicate.Run.ID == "" || s.Predicate.Journal.Repo == "":
		return errors.New("it names no run")
	}
	for _, sub := range s.Subject {
		if !sub.Digest.whole() {
			return errors.New("a subject of it is no commit with its tree")
		}
	}
	for _, g := range s.Predicate.Gates {
		if len(g.Rounds) > maxRounds {
			return fmt.Errorf("gate %s has more than %d rounds", text.Line(g.ID), maxRounds)
		}
	}
	return nil
}

func (d Digest) whole() bool { return git.IsName(d.Commit) && git.IsName(d.Tree) }

// about returns the first subject that is what is asked for; nil if there is none.
func (s *Statement) about(is func(Digest) bool) *Subject {
	if i := slices.IndexFunc(s.Subject, func(sub Subject) bool { return is(sub.Digest) }); i >= 0 {
		return &s.Subject[i]
	}
	return nil
}
