// Package job has what the loop hands to those who carry its effects out: values, which share nothing with its state.
package job

import (
	"encoding/json"
	"time"

	"sluice/engine"
)

// Job is an effect with all that is needed to carry it out; nothing in it is shared with the state.
type Job struct {
	engine.Effect
	Spec    *engine.Spec
	Config  engine.Config
	Vars    map[string]any
	Attempt *engine.Attempt // the step's attempt the effect is about (for a gate: the one judged), else nil
	Round   *engine.Round   // the round the effect is about, else nil
	Env     *engine.Env     // what expressions see, nil where no step or gate is concerned
	RunInfo RunInfo
	History []RetryFile   // the retry-context files of this run so far, oldest first
	Sent    []Sent        // rounds of this run that took a route, oldest first: the newest of them
	Notes   []engine.Note // a person's words for the step, oldest first; none for a gate
	Earlier []string      // summaries of the step's earlier attempts, "attempt 1: failed at XG-1-2"
	Works   []Work        // in a run with a worktree of its own: the last attempts of all steps of it and of the runs it is made of
	Live    []string      // of a sweep: the runs whose retry context stays
	Known   []string      // of a sweep: all runs of the state; what is kept for one that it has forgotten may go
	Tasks   *TaskFile     // of an effect about a task file
	Made    *Made         // of a landing
	Nth     int           // which launch of the role in this run, from 0
	Turn    int           // whose turn it is, from 0: attempts and rounds of the role in this run, and the tasks' runs before a task's. A relaunch has its attempt's
}

// Offers reports whether the job's step is on offer: no process of ours carries it out.
func (j *Job) Offers(st *engine.Step) bool { return st.Offered() && len(j.RunInfo.Stubs) == 0 }

// Checks reports whether the step's work is checked, and so taken.
func (j *Job) Checks(st *engine.Step) bool { return j.Spec.Checks(st, j.RunInfo.Workspace != "") }

// Work is what became of a step's last attempt, as far as others go on from what it left.
type Work struct {
	Run, Step    string
	N            int
	Tree         string   // key of the worktree
	Live, Passed bool     // neither: it has failed, was sent elsewhere or was undone
	To           []string // where its outcome led
	Upstream     bool     // it comes before the job's step
}

// Made is what a run with a worktree of its own has made, for those who land it.
type Made struct {
	Run, Title, Workspace, Branch string
	Rounds                        []MadeRound // by step and gate, also those of child runs
}

// MadeRound is a round over the work of a step.
type MadeRound struct {
	engine.Round
	Gate     string
	Worktree string // of the step
	All      bool   // all gates of the step have passed what it was over
	Said     bool   // it is the newest of a gate that the spec names
}

// RunInfo is what a job may want to know of its run.
type RunInfo struct {
	ID, Workflow, Phase string
	Started, Ended      time.Time
	EndWhy              string
	Usage, Limit        engine.Usage    // what it has cost, and may
	Role, RoleLimit     engine.Usage    // so for the role that works in the job
	RetryDir            string          // see engine.InRetryDir
	File                string          // hex SHA-256 of the spec's file as it was read for the run; "" where that is not known
	Workspace           string          // the run's own worktree, below the root; "" = it has none
	Stubs               []byte          // what stand-ins do in place of its agents, as JSON; nil: it is a real run
	Child               *engine.ChildOf // of a child run
	Tasks               []TaskName      // those that it is done for, innermost first
	Lists               []string        // the task files of its list and of those that it is done for
	Tried               []string        // of a task's run: how its earlier tries failed
	TaskStatus          string          // of a task's run: what the task file says of the task
	FileWhy             string          // of a step that a list went to for its file: what is wrong with that
	Unpassed            int             // told at its end, by the notice and after_run: how many rounds, also of its tasks, went on without a pass
}

// TaskName is a task that a run is done for, by the name under which the run and its child runs know it.
type TaskName struct {
	ID  string
	Try int
	Own bool // the run itself is the task's
}

// TaskFile is what an effect about a task file needs.
type TaskFile struct {
	Path    string          // below the root
	Seen    string          // the stamp of the file as it was taken in last
	Make    json.RawMessage // what the file is to be written from, anew
	From    string          // the expression that gave it
	Own     bool            // the run has written the file that may be there
	Changes []TaskChange
}

// TaskChange is what is to be written of a task.
type TaskChange struct {
	ID, Status, Summary string
	Body                json.RawMessage // of one that is not in the file yet
	For                 string          // the task it stands for
	Stubbed             bool            // a run of stand-ins says so
	Blockers            []string        // that an answer named
}

// RetryFile is one retry-context file a run has written.
type RetryFile struct {
	Gate string
	N    int
	Path string // below the repo's root
	Step string // whose work was judged
	To   string // where it was sent
}

// Sent is a round that sent the work on by the name of a route, at Gate.
type Sent struct {
	Gate string
	engine.Round
}

// Place is a folder that may have changed.
type Place struct {
	Dir string // as the World knows it
	Run string // the run whose files alone can lie there; "" = any run's can
}

// Inboxes says where signals may lie: what the loop knows and a scan needs.
type Inboxes struct {
	Only   []Place           // the folders to read; nil = all. What follows is then of the runs concerned
	Runs   []string          // live runs: signals/<run>/ is read for each
	Trees  []string          // worktrees (keys) of live attempts that wait for a sentinel
	Tokens map[string]string // launch key -> "" for every launch that lives: tokens are matched against these
	Asked  []Reviewed        // rounds a person may pass now

	Refused map[string]int    // launch key -> files of its own inbox that were refused so far
	Words   map[string]string // launch key -> the name of the file that is its signal, where it waits for one
}

// Reviewed names what a round is over.
type Reviewed struct {
	Run, Gate, Step string
	Attempt         int
	Tree            string // key of the worktree
	Worktree        string // as in the spec, "" = the root
	Digest          string
}

// AskedRound is a round at which a person may say something that decides: one that asks a person, or whose veto window is
// open or about to open.
type AskedRound struct {
	Gate   string
	N      int
	State  string // engine.OnNotice, OnWindow or OnHuman
	Signed bool   // only a signed answer counts
	Asks   bool   // a pass has to give an answer that is more than a word
	Owed   bool   // a notice of it is on its way
	Job    Job    // of a reminder of it, where none is on its way
}
