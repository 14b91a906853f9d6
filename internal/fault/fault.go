// Package fault is the error for people: what does not work and why, what to do about it, where, and the exit code of
// the command that fails by it. The advice is a field of its own, so nobody has to find it in a sentence.
//
// Packages below make one with New. A command uses Failed and Misused, whose exit code is final. It is pure.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Exit codes, as the documents have them.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitAborted     = 3
	ExitWaiting     = 4
	ExitNoEvidence  = 10
	ExitUnsatisfied = 11
	ExitForged      = 12
	ExitServed      = 75
	ExitDamaged     = 78
	ExitInterrupted = 130
)

// ExitCode is an exit code and what it says.
type ExitCode struct {
	Code  int
	Means string // in brief, for the help
	More  string // for the documents; "" = nothing
}

// ExitCodes returns all exit codes of sluice.
func ExitCodes() []ExitCode {
	return []ExitCode{
		{ExitOK, "done", "the run completed; the command did its work"},
		{ExitFailed, "not done (a run failed, a spec is invalid)", "also: a check failed, an answer did not count"},
		{ExitUsage, "wrong usage", ""},
		{ExitAborted, "the run was aborted", ""},
		{ExitWaiting, "--timeout ran out", "of `start --wait`"},
		{ExitNoEvidence, "a commit has no evidence", "of `verify`, with the next two"},
		{ExitUnsatisfied, "its evidence is not what the policy requires", ""},
		{ExitForged, "its evidence is forged, or of an unknown key", ""},
		{ExitServed, "another process serves the repo", "perhaps of another user, or with another `XDG_STATE_HOME`"},
		{ExitDamaged, "its journal is damaged", ""},
		{ExitInterrupted, "interrupted", "`run` leaves the run paused and says how to continue"},
	}
}

// Error is an error for a person. It reads "file:line:col: cause: advice".
type Error struct {
	Cause  string // what does not work, and why
	Advice string // what to do; "" = none is known
	File   string // where, if it is about a place in a file
	Line   int    // 0 = not known
	Col    int    // 0 = not known
	Code   int    // the exit code; 0 = the package that reports it does not know
	Err    error  // what it came from, or nil
}

func (e *Error) Error() string {
	if e.Advice == "" {
		return e.What()
	}
	return e.What() + ": " + e.Advice
}

func (e *Error) Unwrap() error { return e.Err }

// What is the error without its advice: the place and the cause.
func (e *Error) What() string {
	switch {
	case e.File == "":
		return e.Cause
	case e.Line == 0:
		return e.File + ": " + e.Cause
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Cause)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Cause)
}

// New returns an error whose cause is formatted as fmt.Errorf does it, %w included.
func New(advice, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Cause: err.Error(), Advice: advice, Err: err}
}

// At returns an error about a place in a file.
func At(file string, line, col int, format string, args ...any) *Error {
	e := New("", format, args...)
	e.File, e.Line, e.Col = file, line, col
	return e
}

// Failed returns the error of a command that did not do its work: exit code 1.
func Failed(advice, format string, args ...any) error {
	return coded(ExitFailed, advice, format, args...)
}

// Misused returns the error of a wrong command line: exit code 2.
func Misused(advice, format string, args ...any) error {
	return coded(ExitUsage, advice, format, args...)
}

func coded(code int, advice, format string, args ...any) error {
	e := New(advice, format, args...)
	e.Code = code
	return e
}

// Split returns what err says without the advice of the Error in it, and that advice. The advice is
// taken off only where the sentence ends in it: what was added behind it belongs to the whole.
func Split(err error) (what, advice string) {
	what = err.Error()
	var e *Error
	if !errors.As(err, &e) || e.Advice == "" {
		return what, ""
	}
	if before, ok := strings.CutSuffix(what, ": "+e.Advice); ok {
		return before, e.Advice
	}
	return what, ""
}

// WithoutPath returns the cause of an error about a file, without the path: for a message that names the file itself.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Exit is an exit code alone, of a command that has said everything.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
