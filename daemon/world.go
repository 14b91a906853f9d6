package daemon

import (
	"context"
	"encoding/json"
	"time"

	"sluice/engine"
)

// World carries effects out and reads the inboxes of one repo.
//
// Carry works until the effect is done, and gives the event that came of it. It gives nil only when ctx ended first:
// ctx ends when the effect is not owed any more, or the daemon goes; processes go on then. Carrying the same effect out
// again has to be harmless (the same Name): a launch is adopted, or its recorded end is given. Carry never gives up by
// itself on a full disk or the like: it tries again until ctx ends. It may hand over events on the way by emit.
//
// Scan reads the inboxes once (with Only: those) and gives what lies in them as FileSeen events, in the order they count:
// sentinels by name, then a person's veto, fail, pass and the rest by name. Files that are not whole yet are left for the
// next scan. With more, some folder holds more than was read: the next scan goes on there.
type World interface {
	Carry(ctx context.Context, job Job, emit func(engine.Event)) engine.Event
	Scan(ctx context.Context, in Inboxes) (seen []engine.Event, more bool, err error)
	// DigestNow gives the digest of what a round was opened over, as it is now.
	DigestNow(ctx context.Context, q Reviewed) (string, error)
	// Proven checks an answer that came as a signed text (with proof "" there is none, and it gives the zero value). What
	// the text says, or why it does not count, is in what it gives; words are those that were signed.
	Proven(proof string) (p engine.Proven, words string)
	// Trees gives for each worktree a spec names the key of the checkout it lies in, where that exists already.
	Trees(ctx context.Context, spec *engine.Spec) map[string]string
	// Hints tells that an inbox may have changed: Hinted has something.
	Hints() <-chan struct{}
	// Hinted gives the folders that may have changed, each once, and forgets them.
	Hinted() []Place
	// Health says what of the world is not as it should be; empty = all well.
	Health() []string
	// Level says what stands between the agents of a run and its gates (engine.TrustFile, engine.TrustSandbox), and, where
	// that is nothing, why. The empty run is for what is to come.
	Level(run string) (level, why string)
}

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

// Offers says that the job's step is on offer: no process of ours carries it out.
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
