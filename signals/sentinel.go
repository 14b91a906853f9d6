package signals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sluice/internal/ids"
	"sluice/internal/strictjson"
)

// Limits of what is read. The file's limit bounds its texts.
const (
	MaxBytes   = 64 << 10  // of a signal file
	maxCounter = 1_000_000 // of attempts, launches, rounds
	maxOptions = 64
	maxToken   = 256
	maxBy      = 256
)

// State is whether bytes are a signal yet.
type State = strictjson.State

// The states of bytes.
const (
	Whole   = strictjson.Whole   // a signal
	Partial = strictjson.Partial // may become one as it grows
	Bad     = strictjson.Bad     // never will, whatever follows
)

// The statuses of a step.
const (
	Done    = "done"
	Failed  = "failed"
	Blocked = "blocked"
)

// Status returns the status that a word means, in any case; agents use many synonyms. ok is false
// if the word means none. docs/signals.md lists the words.
func Status(word string) (status string, ok bool) {
	switch strings.ToLower(word) {
	case Done, "complete", "completed", "finished", "success", "successful", "succeeded", "ok":
		return Done, true
	case Failed, "fail", "failure", "error":
		return Failed, true
	case Blocked, "needs_input", "waiting":
		return Blocked, true
	}
	return "", false
}

// Sentinel is what a step says in its file: that it is done, has failed or is blocked. Missing
// fields are empty; Status never is.
type Sentinel struct {
	Step    string // the step's id
	Status  string // Done (also if missing), Failed or Blocked
	Summary string

	Question string   // what a blocked step wants to know
	Options  []string // possible answers

	Run     string
	Attempt int // from 1; 0 = not given
	Launch  int // from 1; 0 = not given
	Token   string

	Answer json.RawMessage // the structured answer, nil if none
	Raw    json.RawMessage // the whole file, with unknown keys; nil if it was empty
}

// ParseSentinel reads a sentinel. An empty file is whole and means done, with Raw nil; but it may
// be a file that is just being written, so the caller gives it time to grow. The error is why the
// state is not Whole.
func ParseSentinel(data []byte) (Sentinel, State, error) {
	if len(data) <= MaxBytes && blank(data) {
		return Sentinel{Status: Done}, Whole, nil
	}
	f, state, err := strictjson.Read(data, MaxBytes)
	if err != nil {
		return Sentinel{}, state, fmt.Errorf("sentinel: %w", err)
	}
	f.Exactly("step", "status", "summary", "question", "options", "run", "attempt", "launch", "token", "answer")
	s := Sentinel{
		Step:     id(f, "step", ids.Valid, ids.Max),
		Status:   f.Text("status", MaxBytes),
		Summary:  f.Text("summary", MaxBytes),
		Question: f.Text("question", MaxBytes),
		Options:  f.Texts("options", maxOptions),
		Run:      id(f, "run", ids.ValidRun, ids.MaxRun),
		Attempt:  f.Int("attempt", 1, maxCounter),
		Launch:   f.Int("launch", 1, maxCounter),
		Token:    f.Text("token", maxToken),
		Answer:   f.Raw("answer"),
		Raw:      bytes.Clone(data),
	}
	switch status, ok := Status(s.Status); {
	case ok:
		s.Status = status
	case s.Status != "":
		f.Fault("status", "want done, failed or blocked, found %.40q", s.Status)
	default:
		if f.Has("status") && f.Err() == nil {
			f.Fault("status", "want done, failed or blocked, found an empty text")
		}
		s.Status = Done
	}
	if err := f.Err(); err != nil {
		return Sentinel{}, Bad, fmt.Errorf("sentinel: %w", oneLine(err))
	}
	return s, Whole, nil
}

// blank reports whether data is only JSON white space: any other byte could begin something bad.
func blank(data []byte) bool { return len(bytes.Trim(data, " \t\r\n")) == 0 }

// id reads a member that is an id, of at most `most` bytes: a child run's id is longer.
func id(f *strictjson.Fields, key string, valid func(string) bool, most int) string {
	s := f.Text(key, MaxBytes)
	if s != "" && !valid(s) {
		f.Fault(key, "want an id (letters, digits, '.', '_', '-'; at most %d), found %.80q", most, s)
		return ""
	}
	return s
}

// oneLine joins a file's faults with semicolons, because reasons are kept on one line.
func oneLine(err error) error {
	return errors.New(string(bytes.ReplaceAll([]byte(err.Error()), []byte("\n"), []byte("; "))))
}
