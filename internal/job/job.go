// Package job has the values that the loop hands to those who carry out its effects. A room may
// keep one and use it in any goroutine: nobody writes what it shares with the loop's state (a run's
// vars, a compiled spec, lists).
package job

import (
	"encoding/json"
	"slices"

	"sluice/engine"
)

// Job is an effect with all that is needed to carry it out. It is a copy, made when the effect was
// taken up, and is not updated.
type Job struct {
	engine.Effect
	Spec    *engine.Spec
	Config  engine.Config
	Vars    map[string]any
	Attempt *engine.Attempt   // the step's attempt the effect is about (for a gate: the one judged), else nil
	Round   *engine.Round     // the round the effect is about, else nil
	Armed   string            // of listen and fire: the digest of the spec that was armed, which is Spec
	Tips    map[string]string // of listen: branch -> the commit that was decided on last
	Env     *engine.Env       // what expressions see, nil where no step or gate is concerned
	RunInfo RunInfo
	History []RetryFile   // the retry-context files of this run so far, oldest first
	Sent    []Sent        // the newest rounds of this run that took a route, oldest first
	Notes   []engine.Note // a person's notes for the step, oldest first; none for a gate
	Earlier []string      // summaries of the step's earlier attempts, "attempt 1: failed at XG-1-2"
	// In a run with its own worktree: the last attempt of each step, also of its child runs.
	Works []Work
	// Where a step's judges have a setup: the attempts that have passed, RUN/STEP.N, of the run and
	// of the runs above and below it.
	Passed []string
	// In a check of work in a checkout: changes of the law there that nobody has passed, and those that people have
	// passed in the runs that Left has without a name.
	Left, LeftPassed []engine.Left

	Live  []string  // in a sweep: runs whose retry context is kept
	Known []string  // in a sweep: all runs of the state; files of other runs may be removed
	Tasks *TaskFile // in an effect about a task file
	Made  *Made     // in a landing
	Nth   int       // number of earlier launches of the role in this run
	Found bool      // the launch was on the record when this process began to serve the repo
	// Selects among a role's agents, in turns: the number of the role's earlier attempts and rounds
	// in this run, and in the runs of a list's earlier tasks. A relaunch keeps its attempt's.
	Turn int
}

// Offers reports whether the job's step is offered to others: no process of ours carries it out.
func (j *Job) Offers(st *engine.Step) bool { return st.Offered() && len(j.RunInfo.Stubs) == 0 }

// Checks reports whether the step's work is checked, and so taken.
func (j *Job) Checks(st *engine.Step) bool { return j.Spec.Checks(st, j.RunInfo.Workspace != "") }

// ChecksAny reports whether any step's work may be checked: of the run, or of one above a child run.
func (j *Job) ChecksAny() bool {
	return j.RunInfo.Child != nil || slices.ContainsFunc(j.Spec.Steps, j.Checks)
}

// Work is the state of a step's last attempt, for those who continue from the tree it left.
type Work struct {
	Run, Step    string
	N            int      // of the attempt
	Tree         string   // key of the worktree
	Live, Passed bool     // neither: it failed, was sent elsewhere or was undone
	To           []string // the steps its outcome led to
	Upstream     bool     // its step comes before the job's
}

// Made is the work of a run with its own worktree, for those who land it.
type Made struct {
	Run, Title, Workspace, Branch string
	Rounds                        []MadeRound // by step and gate, also those of child runs

	Asked  string         // what the workflow says of itself
	Vars   map[string]any // of the run
	Did    []Did          // what the steps say that they did
	Stands []string       // of a live run: what it waits for
}

// Did is what a step says of its work.
type Did struct{ Step, Summary string }

// MadeRound is a round over the work of a step.
type MadeRound struct {
	engine.Round
	Gate     string
	Worktree string // of the step
	All      bool   // all gates of the step have passed what it was over
	Said     bool   // it is the newest of a gate that the spec names
	Own      bool   // of the run itself, not of a child run
}

// RunInfo describes the run of a job.
type RunInfo struct {
	ID, Workflow, Phase string
	EndWhy              string
	Bounds              []engine.Bound // of it and the runs above it, and there of the job's role
	RetryDir            string         // see engine.InRetryDir
	// The hex SHA-256 of the spec's file as read for the run; "" = unknown.
	File       string
	Workspace  string          // the run's own worktree, below the root; "" = none
	Stubs      []byte          // JSON: what stand-ins do in place of its agents; nil = a real run
	Child      *engine.ChildOf // nil = not a child run
	Tasks      []TaskName      // the tasks it works on, innermost first
	Lists      []string        // the task files of its own list and of the lists of its Tasks
	Tried      []string        // in a task's run: how its earlier tries failed
	SentBack   []RetryFile     // in a task's run: the files of the gates that sent its list back, oldest first
	TaskStatus string          // in a task's run: the task's status in the task file
	FileWhy    string          // in a step that a list went to for its task file: the file's fault
	// The number of its rounds, also of its tasks, that went on without a pass. Its end reports it,
	// by the notice and after_run.
	Unpassed int
}

// TaskName is a task that a run works on, under the name that the run and its child runs use.
type TaskName struct {
	ID  string
	Try int
	Own bool // the run itself was started for the task; else a run above it
}

// TaskFile is a task file to read or to write.
type TaskFile struct {
	Path    string          // below the root
	Seen    string          // stamp of the file as it was last read
	Make    json.RawMessage // the value to create the file from; nil = it is not created
	From    string          // the expression that has the value Make
	Own     bool            // the run itself wrote the existing file, if there is one
	Changes []TaskChange
}

// TaskChange is a change of one task in its file.
type TaskChange struct {
	ID, Status, Summary string
	Body                json.RawMessage // the whole task, if it is not in the file yet
	For                 string          // the task it stands for; "" = none
	Stubbed             bool            // by a run with stand-ins
	Tried               bool            // done after failed tries, by itself or by others: their summary is removed
	Blockers            []string        // named in the answer; nil = keep, empty = remove them
}

// RetryFile is a retry-context file that the run has written.
type RetryFile struct {
	Gate string
	Path string // below the repo's root
	Step string // whose work was judged
	To   string // the step that the work was sent to
}

// Sent is a round that sent the work along a named route, at Gate.
type Sent struct {
	Gate string
	engine.Round
}

// Place is a folder that may have changed.
type Place struct {
	Dir string // as the World knows it
	Run string // the only run whose files can be there; "" = any run
}

// Inboxes is what a scan for signals needs to know.
type Inboxes struct {
	Only   []Place           // the folders to read; nil = all. Else the rest covers only their runs
	Runs   []string          // live runs: signals/<run>/ is read for each
	Trees  []string          // keys of the worktrees of live attempts that wait for a sentinel
	Tokens map[string]string // launch key -> "", for each live launch; the scan looks up the tokens
	Asked  []Reviewed        // rounds that a person may pass now
	Procs  []string          // keys of all processes of the runs, also of those to be ended
	// Elsewhere: another machine checks the work that an answer decides on; this one may not have it.
	Elsewhere bool

	Refused map[string]int    // launch key -> number of files refused so far in its own inbox
	Words   map[string]string // launch key -> the name of the signal file that it waits for, if any
}

// Reviewed names the work that a round judges.
type Reviewed struct {
	Run, Gate, Step string
	Attempt         int
	Digest          string // of the work
}

// AskedRound is a round that a person can decide now: it asks a person, or its veto window is open
// or about to open.
type AskedRound struct {
	Gate   string
	N      int
	State  string // engine.OnNotice, OnWindow or OnHuman
	Signed bool   // only a signed answer counts
	Asks   bool   // a pass needs a structured answer
	Owed   bool   // a notice of it is owed
	Job    Job    // for a reminder; only if no notice is owed
}
