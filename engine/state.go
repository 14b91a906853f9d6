package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Phases of a run. All but pending, running and paused are ends; only a retry opens an ended run again.
const (
	RunPending   = "pending"   // entered by start beside a live run of the workflow, or with unmet needs; left to running, aborted
	RunRunning   = "running"   // entered from pending or by start; left by an end. A paused run is running with Paused set
	RunCompleted = "completed" // entered when nothing is active and no process is left
	RunFailed    = "failed"    // entered by FAILED, or when a step was led to whose needs can no longer be met
	RunAborted   = "aborted"   // entered by ABORTED, a limit or a person
)

// pausedSpec is the PausedWhy of a run whose spec this release cannot read.
const pausedSpec = "spec"

// States of a step's attempt.
const (
	Ready      = "ready"      // entered when the step starts or is relaunched; left by its launch
	Running    = "running"    // entered by the launch (or the offer); left by the signal, or by the end of the process
	Signalled  = "signalled"  // entered by the signal; left when the process is gone, outputs and criterion are checked
	Gating     = "gating"     // entered when its first round opens; left by the outcome
	Passed     = "passed"     // all gates of its row passed; left only by going back
	Routed     = "routed"     // its gate sent the work elsewhere; settled, but not passed
	Skipped    = "skipped"    // its `when` was false; leads where a pass leads
	Superseded = "superseded" // undone; final
)

// States of a gate's round.
const (
	OnReview = "reviewing"  // entered when the round opens with a reviewer; left by the verdict
	OnNotice = "notice"     // the reviewer agreed at level notify and the notice is owed; left when it was attempted
	OnWindow = "window"     // the veto window is open; left by its end or a veto
	OnHuman  = "human"      // a person is asked; left by the answer
	Approved = "passed"     // final, unless vetoed late
	Refused  = "failed"     // final
	ByRoute  = "routed"     // final: the work went by a route's name, which is no failure
	Undone   = "superseded" // final: its attempt was undone, or what it was over has changed
)

// State is all that one repo's engine knows. It is written by Apply alone and is plain data: a snapshot is its JSON.
type State struct {
	Config  Config             `json:"config"`
	Numbers map[string]int     `json:"numbers"` // workflow -> the number of its newest run
	Runs    map[string]*Run    `json:"runs"`
	Order   []string           `json:"order"`             // runs in the order they were started
	Moves   map[string]*Move   `json:"moves,omitempty"`   // files taken in that still lie in an inbox, by their identity
	Notices map[string]*Notice `json:"notices,omitempty"` // notices owed, by id
	Today   Day                `json:"today,omitzero"`    // what this repo has used of the newest day
	Spent   map[string]Spent   `json:"spent,omitempty"`   // signed answers that were used, by nonce
	Clock   int64              `json:"clock"`             // counts facts: the order in which things became so

	index index // follows from the above; not part of a snapshot
	hold  bool  // see Hold
}

// Hold has no decision on this state launch a step, a review, a check or a step's hook. It is for who takes the repo up only
// to end a run, and no part of what is recorded: whoever reads the record next launches what is ready.
func (s *State) Hold() { s.hold = true }

// NewState returns the state of a repo nothing ever happened in.
func NewState() *State {
	s := &State{Config: DefaultConfig(), Numbers: map[string]int{}, Runs: map[string]*Run{}, Moves: map[string]*Move{}, Notices: map[string]*Notice{}, Spent: map[string]Spent{}}
	s.rebuild()
	return s
}

// UnmarshalJSON reads a snapshot. What is empty in it is left out there, but is written to by Apply.
func (s *State) UnmarshalJSON(raw []byte) error {
	type plain State
	p := plain(*NewState())
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	*s = State(p)
	make0(&s.Numbers)
	make0(&s.Runs)
	make0(&s.Moves)
	make0(&s.Notices)
	make0(&s.Spent)
	for id, r := range s.Runs {
		if r == nil {
			return fmt.Errorf("snapshot: run %s is null", id)
		}
		if err := r.whole(); err != nil {
			return fmt.Errorf("snapshot: run %s: %w", id, err)
		}
		make0(&r.Attempts)
		make0(&r.Rounds)
		r.upgrade()
	}
	s.rebuild()
	return nil
}

// whole says that no attempt and no round of the run is null.
func (r *Run) whole() error {
	for step, as := range r.Attempts {
		if slices.Contains(as, nil) {
			return fmt.Errorf("an attempt of %s is null", step)
		}
	}
	for gate, qs := range r.Rounds {
		if slices.Contains(qs, nil) {
			return fmt.Errorf("a round of %s is null", gate)
		}
	}
	return nil
}

// make0 makes the map where there is none.
func make0[V any](m *map[string]V) {
	if *m == nil {
		*m = map[string]V{}
	}
}

// set writes to a map that is made when it is needed: most runs need few of theirs.
func set[V any](m *map[string]V, key string, v V) {
	make0(m)
	(*m)[key] = v
}

// Run is one run of a workflow.
type Run struct {
	ID         string                    `json:"id"`
	Workflow   string                    `json:"workflow"`
	N          int                       `json:"n"`
	Phase      string                    `json:"phase"`
	Paused     bool                      `json:"paused,omitempty"`
	PausedWhy  string                    `json:"paused_why,omitempty"` // user, limit:<key>, fatal, spec
	PausedAt   time.Time                 `json:"paused_at,omitzero"`
	Parallel   bool                      `json:"parallel,omitempty"`
	Digest     string                    `json:"digest"`
	File       string                    `json:"file,omitempty"` // hex SHA-256 of the spec's file, "" of a run that an older release started
	Vars       map[string]any            `json:"vars,omitempty"`
	Trees      map[string]string         `json:"trees,omitempty"`
	Workspace  string                    `json:"workspace,omitempty"` // its own worktree, below the root; "" = it works in the checkout
	RetryDir   string                    `json:"retry_dir,omitempty"` // below .workflow/retry-context/: beside another run with the same gates
	Stubs      json.RawMessage           `json:"stubs,omitempty"`     // stand-ins play its agents, as this says; absent: it is a real run
	By         Actor                     `json:"by"`
	Requested  time.Time                 `json:"requested"`
	Started    time.Time                 `json:"started,omitzero"`
	Ended      time.Time                 `json:"ended,omitzero"`
	Attempts   map[string][]*Attempt     `json:"attempts"`
	Rounds     map[string][]*Round       `json:"rounds"`
	Procs      []*Proc                   `json:"procs,omitempty"`
	Fails      map[string]int            `json:"fails,omitempty"`     // gate -> its count of failures (8-semantics 14)
	Routes     map[string]map[string]int `json:"routes,omitempty"`    // gate -> route back -> its count
	Files      map[string]int            `json:"files,omitempty"`     // gate -> number of its newest retry-context file
	Forced     map[string]bool           `json:"forced,omitempty"`    // gates that are human for the rest of the run
	Exhausted  map[string]bool           `json:"exhausted,omitempty"` // gates whose on_exhausted step was used
	Renews     map[string]string         `json:"renews,omitempty"`    // gate -> that step, until it has passed: then the counts begin anew
	Refused    map[string]int            `json:"refused,omitempty"`   // launch -> files of its own inbox that were refused and kept
	Same       map[string]*Sameness      `json:"same,omitempty"`
	Sent       map[string]string         `json:"sent,omitempty"`     // fixing step -> the step whose gate sent the work there
	Landing    bool                      `json:"landing,omitempty"`  // what OnDone says is owed, or was done
	Unlanded   string                    `json:"unlanded,omitempty"` // why it could not be done
	Writes     []*Write                  `json:"writes,omitempty"`   // files owed before anything of the run is launched
	Met        map[string][]string       `json:"met,omitempty"`      // step -> what satisfied its needs of other workflows, until it starts
	Begun      int                       `json:"begun,omitempty"`    // step attempts started
	Turns      int                       `json:"turns,omitempty"`    // attempts and reviews launched, each once
	Allowance  int                       `json:"allowance,omitempty"`
	Spent      Duration                  `json:"spent,omitempty"` // time in which something was under way
	BusySince  time.Time                 `json:"busy_since,omitzero"`
	TimeLimit  Duration                  `json:"time_limit,omitempty"`
	Usage      Usage                     `json:"usage,omitzero"`
	UsageLimit Usage                     `json:"usage_limit,omitzero"`
	Roles      map[string]Spend          `json:"roles,omitempty"`       // what each role has used; the time of what has ended
	RoleLimits map[string]Spend          `json:"role_limits,omitempty"` // what it may
	Notes      []Note                    `json:"notes,omitempty"`       // what people had to say while it ran
	Near       map[string]string         `json:"near,omitempty"`        // budget -> the limit that it was told to have come near
	EndStep    string                    `json:"end_step,omitempty"`
	EndWhy     string                    `json:"end_why,omitempty"`
	Hooked     bool                      `json:"hooked,omitempty"` // after_run was started
	Told       map[string]bool           `json:"told,omitempty"`   // notices that are given once

	Child    *ChildOf  `json:"child,omitempty"` // it is a child run
	List     *TaskList `json:"list,omitempty"`  // its tasks, where its workflow has a list and that has begun
	EndCause string    `json:"end_cause,omitempty"`
	EndLimit string    `json:"end_limit,omitempty"` // the key of the limit that ended it

	runIndex // what the state's index keeps at it
}

// Attempt is one execution of a step: (run, step, N). A relaunch after an infrastructure failure is the same attempt with K+1.
type Attempt struct {
	N           int             `json:"n"`
	K           int             `json:"k,omitempty"`
	State       string          `json:"state"`
	Status      string          `json:"status,omitempty"` // what its signal said: done, failed, blocked
	Worktree    string          `json:"worktree,omitempty"`
	Tree        string          `json:"tree"` // key of the checkout it holds
	Since       int64           `json:"since"`
	To          []string        `json:"to,omitempty"` // where its outcome led
	Key         string          `json:"key,omitempty"`
	Offered     bool            `json:"offered,omitempty"`
	LimitWait   bool            `json:"limit_wait,omitempty"`  // NotBefore is the reset of a usage limit
	BudgetWait  string          `json:"budget_wait,omitempty"` // the day whose budget is used up: NotBefore is its end
	Usage       Usage           `json:"usage,omitzero"`        // of all its launches
	Reopened    bool            `json:"reopened,omitempty"`    // its deadline was opened again after a gap
	Checked     bool            `json:"checked,omitempty"`
	Hooked      bool            `json:"hooked,omitempty"`
	ClaimedBy   string          `json:"claimed_by,omitempty"`
	Held        *Actor          `json:"held,omitempty"`  // who has taken it over
	Doers       []string        `json:"doers,omitempty"` // people who had a hand in it: accounts, and names and addresses of commits
	Started     time.Time       `json:"started,omitzero"`
	Launched    time.Time       `json:"launched,omitzero"`
	Deadline    time.Time       `json:"deadline,omitzero"`
	GraceUntil  time.Time       `json:"grace_until,omitzero"`  // the process ended with 0, its signal may still come
	LingerUntil time.Time       `json:"linger_until,omitzero"` // the signal came, the process may still end by itself
	NotBefore   time.Time       `json:"not_before,omitzero"`   // backoff before the next launch
	Restarts    int             `json:"restarts,omitempty"`    // infrastructure failures so far
	Waits       int             `json:"waits,omitempty"`       // usage-limit waits so far
	SignalType  string          `json:"signal_type,omitempty"`
	SignalValue string          `json:"signal_value,omitempty"`
	Via         string          `json:"via,omitempty"` // what the signal was: a file's name, a commit, a ref, exit
	Author      string          `json:"author,omitempty"`
	Summary     string          `json:"summary,omitempty"`
	Question    string          `json:"question,omitempty"`
	Options     []string        `json:"options,omitempty"`
	Answer      json.RawMessage `json:"answer,omitempty"`
	Output      string          `json:"output,omitempty"`
	Exit        *Exit           `json:"exit,omitempty"`
	Failure     string          `json:"failure,omitempty"` // why it failed before any review: the feedback
	Broken      string          `json:"broken,omitempty"`  // why there is no result: infrastructure gave out
	Digest      string          `json:"digest,omitempty"`
	Content     string          `json:"content,omitempty"` // see CheckResult
	Protected   []string        `json:"protected,omitempty"`
	ProtectedAs []string        `json:"protected_as,omitempty"` // see CheckResult
	ToReview    []string        `json:"to_review,omitempty"`
	Unshipped   int             `json:"unshipped,omitempty"` // files in no commit with which a criterion was judged
	Pins        []string        `json:"pins,omitempty"`
	Ended       time.Time       `json:"ended,omitzero"`
	Children    bool            `json:"children,omitempty"` // its work is that of child runs
	List        bool            `json:"list,omitempty"`     // they are those of a list
	Reads       bool            `json:"reads,omitempty"`    // it only looks at its worktree: at what was taken there last
	Apart       bool            `json:"apart,omitempty"`    // its work was taken whole: who reviews it needs nothing of its worktree
	Turn        int             `json:"turn,omitempty"`     // which of the run's attempts and reviews was launched with it, from 1; 0 = none yet, or by an older release
	Child       string          `json:"child,omitempty"`    // the child run of a step that is no list

	step string // the one it is of
}

// Holds returns the worktree that the attempt's process, its check and its hook hold; "" = none, as it only looks.
func (a *Attempt) Holds() string {
	if a.Reads {
		return ""
	}
	return a.Tree
}

// HeldInReview returns the worktree that a review of the attempt holds; "" = none, as it sees what was taken.
func (a *Attempt) HeldInReview() string {
	if a.Apart {
		return ""
	}
	return a.Holds()
}

// Round is one judging of one attempt at a gate: (run, gate, N).
type Round struct {
	N          int                `json:"n"`
	Step       string             `json:"step"`
	Attempt    int                `json:"attempt"`
	State      string             `json:"state"`
	Level      string             `json:"level"` // after escalation
	Opened     time.Time          `json:"opened"`
	Seq        int64              `json:"seq"`
	K          int                `json:"k,omitempty"`
	Key        string             `json:"key,omitempty"`
	NotBefore  time.Time          `json:"not_before,omitzero"`
	LimitWait  bool               `json:"limit_wait,omitempty"`
	BudgetWait string             `json:"budget_wait,omitempty"` // see Attempt
	Usage      Usage              `json:"usage,omitzero"`        // of all its reviewer's launches
	Reopened   bool               `json:"reopened,omitempty"`
	Counted    bool               `json:"counted,omitempty"`
	Route      string             `json:"route,omitempty"`   // the name of the route that it took, or was counted under: it is no failure
	Times      int                `json:"times,omitempty"`   // its count by then, of one that leads back
	Deadline   time.Time          `json:"deadline,omitzero"` // of the review's process
	Waits      int                `json:"waits,omitempty"`   // usage-limit waits of its reviewer
	Misses     int                `json:"misses,omitempty"`  // inconclusive reviews
	MissWhy    string             `json:"miss_why,omitempty"`
	Outcome    string             `json:"outcome,omitempty"`
	Score      *float64           `json:"score,omitempty"`
	Scores     map[string]float64 `json:"scores,omitempty"`
	Feedback   string             `json:"feedback,omitempty"`
	Said       string             `json:"said,omitempty"` // what was said of a failure before a person's words became the feedback
	Findings   json.RawMessage    `json:"findings,omitempty"`
	Answer     json.RawMessage    `json:"answer,omitempty"`
	Read       string             `json:"read,omitempty"` // where its reviewer's verdict stood, in words
	VetoWindow Duration           `json:"veto_window,omitempty"`
	Trust      string             `json:"trust,omitempty"`
	Digest     string             `json:"digest,omitempty"`
	WindowEnds time.Time          `json:"window_ends,omitzero"`
	Remains    Duration           `json:"remains,omitempty"`  // of the window, while the run is paused
	Why        string             `json:"why,omitempty"`      // why a person is asked: level, forced, blocked, …
	Protect    bool               `json:"protect,omitempty"`  // a person is asked because the step changed protected files
	Asked      time.Time          `json:"asked,omitzero"`     // since when a person is asked
	Due        time.Time          `json:"due,omitzero"`       // a person's deadline; it does not run in a pause
	RemindAt   time.Time          `json:"remind_at,omitzero"` // next reminder
	Reminders  int                `json:"reminders,omitempty"`
	Noticed    []string           `json:"noticed,omitempty"` // what came of its last notice
	By         *Actor             `json:"by,omitempty"`
	ByKind     string             `json:"by_kind,omitempty"`     // reviewer, criterion, window, human, exhausted, when, limit
	File       int                `json:"file,omitempty"`        // the retry-context file it wrote
	Turn       int                `json:"turn,omitempty"`        // of its review: see Attempt
	LetThrough int                `json:"let_through,omitempty"` // the work went on though it did not pass: after so many failures
	To         string             `json:"to,omitempty"`          // where the work went, of a round that failed
	Ended      time.Time          `json:"ended,omitzero"`

	gate string // the one it is at
}

// Kinds of process.
const (
	ProcStep   = "step"
	ProcCheck  = "check"
	ProcHook   = "hook"
	ProcReview = "review"
)

// Proc is a process (or a chain of them under one key) that may be alive: from its launch until it is seen gone.
type Proc struct {
	Key   string    `json:"key"`
	Kind  string    `json:"kind"`
	Step  string    `json:"step,omitempty"`
	Gate  string    `json:"gate,omitempty"`
	N     int       `json:"n"`
	K     int       `json:"k,omitempty"`
	Tree  string    `json:"tree,omitempty"`
	Began time.Time `json:"began"`
	Role  string    `json:"role,omitempty"`  // of the agent in it; "" = a command
	From  time.Time `json:"from,omitzero"`   // when it got the slot that it had to wait for; zero = it did not wait
	Waits bool      `json:"waits,omitempty"` // for a slot, now
	Stop  string    `json:"stop,omitempty"`  // why it is being ended though it is still of use: timeout, linger, budget: …
	Usage Usage     `json:"usage,omitzero"`  // what of its cost is counted

	Deadline time.Time `json:"deadline,omitzero"` // of a check or hook; those of steps and reviews are the attempt's and the round's
	Reopened bool      `json:"reopened,omitempty"`
}

// Note is what a person has to say to the agents of a run.
type Note struct {
	N    int       `json:"n"`
	At   time.Time `json:"at"`
	Step string    `json:"step,omitempty"` // for its agents alone; "" = for all
	Text string    `json:"text"`
	By   Actor     `json:"by"`
}

// Day is what was used of a day, where the daemon is.
type Day struct {
	Day   string          `json:"day"` // 2026-01-31
	Usage Spend           `json:"usage,omitzero"`
	Told  map[string]bool `json:"told,omitempty"` // what a person was told of the day's budget
}

// Sameness counts how often a gate failed alike over an unchanged tree.
type Sameness struct {
	Failure string `json:"failure"`
	Digest  string `json:"digest"`
	Count   int    `json:"count"`
}

// Write is a file of the engine's own that is owed: a gate's retry context, or its outputs (File = 0).
type Write struct {
	ID    string   `json:"id"`
	Gate  string   `json:"gate"`
	Kind  string   `json:"kind,omitempty"` // not a file: what the branch is to do (WriteAdvance, ...)
	Step  string   `json:"step,omitempty"`
	N     int      `json:"n"`    // round; of a branch: attempt
	File  int      `json:"file"` // {n} of the path
	Path  string   `json:"path,omitempty"`
	With  []string `json:"with,omitempty"` // of WriteRewind, as Files: see RewindOwed
	Files bool     `json:"files,omitempty"`
	Sweep bool     `json:"sweep,omitempty"` // not a file: those of ended runs are to leave .workflow/retry-context/ first
}

// Move is a file taken in that is to leave its inbox.
type Move struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Dir   string `json:"dir,omitempty"`
	Place string `json:"place,omitempty"`
	Of    string `json:"of,omitempty"`
	Run   string `json:"run,omitempty"` // whose attempt's folder it goes to; "" = rejected/
	To    string `json:"to,omitempty"`  // "<step>.<n>"
	As    string `json:"as,omitempty"`  // the name there
	Why   string `json:"why,omitempty"` // of a rejection
}

// Notice is something a person is to be told.
type Notice struct {
	ID    string    `json:"id"`
	Kind  string    `json:"kind"` // gate, human, reminder, rejected, ended, paused, info
	Run   string    `json:"run,omitempty"`
	Step  string    `json:"step,omitempty"`
	Gate  string    `json:"gate,omitempty"`
	N     int       `json:"n,omitempty"`
	Text  string    `json:"text,omitempty"`
	Once  bool      `json:"once,omitempty"` // not again in this run
	Until time.Time `json:"until,omitzero"`
}

// Folder is the run's folder, below .workflow/runs/.
func (r *Run) Folder() string {
	if r.Child != nil {
		return r.Child.Dir
	}
	return r.ID
}

// Live reports whether the run is neither ended nor forgotten.
func (r *Run) Live() bool { return r != nil && (r.Phase == RunRunning || r.Phase == RunPending) }

// Stubbed reports whether stand-ins play the run's agents: nothing in it was made by a real one.
func (r *Run) Stubbed() bool { return r != nil && len(r.Stubs) > 0 }

// Offers says that the run offers the step to whoever takes it. Where stand-ins play the agents one of them does: nobody
// else may be there, and the run would wait for ever.
func (r *Run) Offers(st *Step) bool { return st.Offered() && !r.Stubbed() }

// Current returns the newest attempt of the step, unless it was superseded; nil where there is none.
func (r *Run) Current(step string) *Attempt {
	as := r.Attempts[step]
	if len(as) == 0 || as[len(as)-1].State == Superseded {
		return nil
	}
	return as[len(as)-1]
}

// CurrentRound returns the newest round of the gate, unless it was superseded; nil where there is none.
func (r *Run) CurrentRound(gate string) *Round {
	rs := r.Rounds[gate]
	if len(rs) == 0 || rs[len(rs)-1].State == Undone {
		return nil
	}
	return rs[len(rs)-1]
}

// Attempt returns attempt n of the step; nil where there is none.
func (r *Run) Attempt(step string, n int) *Attempt {
	if as := r.Attempts[step]; n >= 1 && n <= len(as) {
		return as[n-1]
	}
	return nil
}

// Proc returns the process with the key; nil where it is gone or never was.
func (r *Run) Proc(key string) *Proc {
	for _, p := range r.Procs {
		if p.Key == key {
			return p
		}
	}
	return nil
}

// Live reports whether the attempt is at work: ready, running, signalled or gating.
func (a *Attempt) Live() bool {
	return a != nil && (a.State == Ready || a.State == Running || a.State == Signalled || a.State == Gating)
}

// Done reports whether the attempt counts as passed: passed or skipped.
func (a *Attempt) Done() bool { return a != nil && (a.State == Passed || a.State == Skipped) }

// Open reports whether the round still waits for its outcome.
func (q *Round) Open() bool {
	return q != nil && (q.State == OnReview || q.State == OnNotice || q.State == OnWindow || q.State == OnHuman)
}

// openRound returns the open round over the step's current attempt; nil where there is none.
func (r *Run) openRound(st *Step) (string, *Round) {
	for _, g := range st.Gates {
		if q := r.CurrentRound(g); q.Open() {
			return g, q
		}
	}
	return "", nil
}
