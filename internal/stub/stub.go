// Package stub defines what scripted stand-ins do in place of a run's agents (`sluice run --stub`).
// A stand-in writes files, talks, answers, signals, waits and fails as its script says, without a
// model or a key. The package is pure: agents/launch starts stand-ins, internal/stub/play is their
// process.
package stub

import (
	"encoding/json"
	"fmt"

	"sluice/engine"
)

// Treatments of a spec's commands in a run with stand-ins: its `run` steps, gates, criteria and
// hooks.
const (
	Pass = "pass" // none is run; each counts as one that exits 0
	Real = "real" // they are run as in any run
)

// AnyRole is the key of a script for all roles that it does not name.
const AnyRole = engine.AnyRole

// Ways to fail.
const (
	Crash   = "crash"   // it is killed during its work
	Silence = "silence" // it prints nothing and does not end
	Limit   = "limit"   // its account's usage limit is reached (429)
)

// NoSignal is the Signal of a stand-in that ends without one.
const NoSignal = "none"

// Script says what stands in for a run's agents. With the zero value each role does the least that
// lets the work continue.
type Script struct {
	From     string            `json:"from,omitempty"`     // the file it was read from; "" = there was none
	Commands string            `json:"commands,omitempty"` // Pass ("" too) or Real
	Roles    map[string][]Play `json:"roles,omitempty"`    // by the role's launches in the run
	// By the step's attempts. TASK/STEP is the step in the runs of that task alone, and of their
	// children.
	Steps map[string][]Play `json:"steps,omitempty"`
	Gates map[string][]Play `json:"gates,omitempty"` // by the gate's rounds
}

// Play is what a stand-in does once. What it leaves out is done as without a script.
type Play struct {
	// File -> its text; nil = it is not written, although the spec declares it.
	Write    map[string]*string `json:"write,omitempty"`
	Say      *string            `json:"say,omitempty"`      // all its output
	Answer   json.RawMessage    `json:"answer,omitempty"`   // its structured answer
	Verdict  string             `json:"verdict,omitempty"`  // of a reviewer, as the next three
	Score    *float64           `json:"score,omitempty"`    //
	Scores   map[string]float64 `json:"scores,omitempty"`   //
	Feedback string             `json:"feedback,omitempty"` //
	Signal   string             `json:"signal,omitempty"`   // done, failed, blocked or NoSignal
	Summary  string             `json:"summary,omitempty"`  // in its signal
	Question string             `json:"question,omitempty"` // if it is blocked
	Takes    engine.Duration    `json:"takes,omitempty"`    // how long it works
	Exit     int                `json:"exit,omitempty"`     // its exit code
	Fail     string             `json:"fail,omitempty"`     // Crash, Silence or Limit
	ResetIn  engine.Duration    `json:"reset_in,omitempty"` // with Limit: how long until it is over
	// Further launches for the same attempt or round: corrections of the answer, and relaunches
	// after a failure that is not the work's.
	Then []Play `json:"then,omitempty"`
}

// Read reads the script in a run's first fact.
func Read(data []byte) (*Script, error) {
	s := &Script{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("the run's stub script cannot be read: %w", err)
	}
	return s, nil
}

// Runs reports whether the spec's commands are run.
func (s *Script) Runs() bool { return s.Commands == Real }

// Turn is a place in a script: whose launch it is, and which one.
type Turn struct {
	// The tasks it works on, innermost first, without those whose name an inner list has too.
	Tasks            []Task
	Role, Step, Gate string // Role "" = a bare command; Gate "" = not a reviewer, else Step does not count
	N                int    // number of the step's attempt or the gate's round, from 1, over all tries of the task
	Nth              int    // number of earlier launches of the role in the run
	Again            int    // number of earlier launches for the same attempt or round
}

// Task is a task that a turn works on.
type Task struct {
	ID    string
	Tries int // earlier tries that Turn.N does not count
}

// Play returns what the script says for the turn; false if it says nothing.
func (s *Script) Play(t Turn) (Play, bool) {
	all, id, at := s.Steps, t.Step, t.N-1
	if t.Gate != "" {
		all, id = s.Gates, t.Gate
	}
	plays := all[id]
	for _, task := range t.Tasks {
		if own := all[task.ID+"/"+id]; len(own) > 0 {
			plays, at = own, at+task.Tries
			break
		}
	}
	if len(plays) == 0 && t.Role != "" {
		if plays, at = s.Roles[t.Role], t.Nth; len(plays) == 0 {
			plays = s.Roles[AnyRole]
		}
	}
	if len(plays) == 0 {
		return Play{}, false
	}
	p := plays[min(max(at, 0), len(plays)-1)]
	if t.Again > 0 && len(p.Then) > 0 {
		return p.Then[min(t.Again, len(p.Then))-1], true
	}
	return p, true
}

// File is a file that a stand-in writes.
type File struct {
	Path string `json:"path"` // absolute
	Text string `json:"text"`
	New  bool   `json:"new,omitempty"` // an existing file stays: no script replaces it
}

// Part is all that one launch of a stand-in does, in this order. It is the file PartFile beside the
// launch's output.
type Part struct {
	Takes   engine.Duration `json:"takes,omitempty"`
	Fail    string          `json:"fail,omitempty"`
	ResetIn engine.Duration `json:"reset_in,omitempty"`
	Write   []File          `json:"write,omitempty"`
	Say     string          `json:"say,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"` // said as a block of JSON
	// The answer is also written to SLUICE_ANSWER: without a schema nobody looks for it in the
	// output.
	Keep    bool   `json:"keep,omitempty"`
	Signal  string `json:"signal,omitempty"` // to SLUICE_SIGNAL, if that is set
	Summary string `json:"summary,omitempty"`
	Ask     string `json:"question,omitempty"`
	Commit  string `json:"commit,omitempty"` // the message of an empty commit
	Exit    int    `json:"exit,omitempty"`
}

// PartFile is the name of a launch's part.
const PartFile = "stub.json"
