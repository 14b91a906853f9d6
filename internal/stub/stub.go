// Package stub says what scripted stand-ins do in place of a run's agents: `sluice run --stub`. A stand-in writes what it is
// told to, says it, answers, signals, takes its time and fails as its script has it, without a model or a key. The package is
// pure: who starts stand-ins, and who plays them, is elsewhere.
package stub

import (
	"encoding/json"
	"fmt"

	"sluice/engine"
)

// Ways to treat the commands of a spec in a run with stand-ins: its `run` steps, gates and criteria, and its hooks.
const (
	Pass = "pass" // none is run; each counts as one that exits 0
	Real = "real" // they are run as in any run
)

// AnyRole is the name under which a script says what every role does that it does not name.
const AnyRole = engine.AnyRole

// Ways to fail.
const (
	Crash   = "crash"   // is killed in the middle of its work
	Silence = "silence" // says nothing and does not end
	Limit   = "limit"   // its account's usage limit is reached (429)
)

// NoSignal says that a stand-in ends without a word.
const NoSignal = "none"

// Script is what stands in for the agents of a run. The zero value is one too: each role does the least that lets work go on.
type Script struct {
	From     string            `json:"from,omitempty"`     // the file it was read from; "" = there was none
	Commands string            `json:"commands,omitempty"` // Pass ("" too) or Real
	Roles    map[string][]Play `json:"roles,omitempty"`    // by the role's launches in the run
	Steps    map[string][]Play `json:"steps,omitempty"`    // by the step's attempts; TASK/STEP is the step of that task alone, in the runs of its child runs too
	Gates    map[string][]Play `json:"gates,omitempty"`    // by the gate's rounds
}

// Play is what a stand-in does once. What it leaves out is done as by one without a script.
type Play struct {
	Write    map[string]*string `json:"write,omitempty"`    // file -> its text; nil: it is not written, though the spec wants it
	Say      *string            `json:"say,omitempty"`      // all that it says, as its last words
	Answer   json.RawMessage    `json:"answer,omitempty"`   // its structured answer
	Verdict  string             `json:"verdict,omitempty"`  // of a reviewer, as is what follows
	Score    *float64           `json:"score,omitempty"`    //
	Scores   map[string]float64 `json:"scores,omitempty"`   //
	Feedback string             `json:"feedback,omitempty"` //
	Signal   string             `json:"signal,omitempty"`   // done, failed, blocked or NoSignal
	Summary  string             `json:"summary,omitempty"`  // with its signal
	Question string             `json:"question,omitempty"` // of one that is blocked
	Takes    engine.Duration    `json:"takes,omitempty"`    // how long it works
	Exit     int                `json:"exit,omitempty"`     // its exit code
	Fail     string             `json:"fail,omitempty"`     // Crash, Silence or Limit
	ResetIn  engine.Duration    `json:"reset_in,omitempty"` // of Limit: when it is over
	Then     []Play             `json:"then,omitempty"`     // when it is launched again for the same: asked again, or after a failure that is not the work's
}

// Read reads a script as a run's first fact has it.
func Read(data []byte) (*Script, error) {
	s := &Script{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("the run's stub script cannot be read: %w", err)
	}
	return s, nil
}

// Runs reports whether the spec's commands are run.
func (s *Script) Runs() bool { return s.Commands == Real }

// Turn is whose turn it is.
type Turn struct {
	Tasks            []Task // that it is done for, innermost first; those of which an inner list has one of the same name are left out
	Role, Step, Gate string // the role of a bare command is ""; Gate is that of a reviewer, and its step does not count
	N                int    // which attempt of the step, or round of the gate, from 1; earlier tries at the task count too
	Nth              int    // which launch of the role in the run, from 0
	Again            int    // how often it was launched for the same before
}

// Task is one that a turn is done for.
type Task struct {
	ID    string
	Tries int // earlier ones that Turn.N does not count
}

// Play returns what is scripted for the turn; false where nothing is.
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

// File is one that a stand-in writes.
type File struct {
	Path string `json:"path"` // absolute
	Text string `json:"text"`
	New  bool   `json:"new,omitempty"` // one that is there stays: nobody scripted its end
}

// Part is all that one launch of a stand-in does, in this order. It lies as PartFile beside the launch's output.
type Part struct {
	Takes   engine.Duration `json:"takes,omitempty"`
	Fail    string          `json:"fail,omitempty"`
	ResetIn engine.Duration `json:"reset_in,omitempty"`
	Write   []File          `json:"write,omitempty"`
	Say     string          `json:"say,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"` // said as a block of JSON
	Keep    bool            `json:"keep,omitempty"`   // the answer is written to SLUICE_ANSWER besides: no schema has it looked for in what was said
	Signal  string          `json:"signal,omitempty"` // to SLUICE_SIGNAL, where there is one
	Summary string          `json:"summary,omitempty"`
	Ask     string          `json:"question,omitempty"`
	Commit  string          `json:"commit,omitempty"` // the message of an empty commit
	Exit    int             `json:"exit,omitempty"`
}

// PartFile is the name of a launch's part.
const PartFile = "stub.json"
