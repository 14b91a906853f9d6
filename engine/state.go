package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Phases of a run. Completed, failed and aborted are ends; only a retry reopens an ended run.
const (
	RunPending   = "pending"   // entered by a start beside a live run or with unmet needs; left to running, aborted
	RunRunning   = "running"   // entered by a start or from pending; left by an end; a pause only sets Paused
	RunCompleted = "completed" // entered when nothing is active and no process is left
	RunFailed    = "failed"    // entered by FAILED, or when a step was led to whose needs can no longer be met
	RunAborted   = "aborted"   // entered by ABORTED, a limit or a person
)

// pausedSpec is the PausedWhy of a run whose spec this release cannot read, and PausedWork that of one
// whose work is not on this machine.
const pausedSpec, PausedWork = "spec", "work"

// States of a step's attempt.
const (
	Ready      = "ready"      // entered when the step starts or is relaunched; left by its launch
	Running    = "running"    // entered by the launch (or the offer); left by the signal, or by the end of the process
	Signalled  = "signalled"  // entered by the signal; left when the process is gone, outputs and criterion are checked
	Gating     = "gating"     // entered when its first round opens; left by the outcome
	Passed     = "passed"     // all its gates passed; left only by going back
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
	ByRoute  = "routed"     // final: the work took a named route, which is no failure
	Undone   = "superseded" // final: its attempt was undone, or the reviewed content has changed
)

// State is all that one repo's engine knows. Only Decide and Apply write it. It is not safe for
// concurrent use. It is plain data: a snapshot is its JSON.
type State struct {
	Config  Config             `json:"config"`
	Numbers map[string]int     `json:"numbers"` // workflow -> the number of its newest run
	Runs    map[string]*Run    `json:"runs"`
	Order   []string           `json:"order"`             // runs in order of start
	Moves   map[string]*Move   `json:"moves,omitempty"`   // accepted files still in an inbox, by identity
	Notices map[string]*Notice `json:"notices,omitempty"` // notices owed, by id
	Today   Day                `json:"today,omitzero"`    // this repo's use on the latest day
	Spent   map[string]Spent   `json:"spent,omitempty"`   // used signed answers, by nonce
	Armed   map[string]*Armed  `json:"armed,omitempty"`   // triggers that a person ever armed, by workflow
	Left    map[string][]Left  `json:"left,omitempty"`    // changes of the law, by the key of the worktree
	Clock   int64              `json:"clock"`             // counts facts: the order of events

	index index // derived; not part of a snapshot
	hold  bool  // see Hold
}

// Hold prevents decisions on this state from launching a step, a review, a check or a step's hook.
// It serves to end a run, and is not recorded: the next reader launches what is ready.
func (s *State) Hold() { s.hold = true }

// NewState returns the state of a new repo.
func NewState() *State {
	s := &State{Config: DefaultConfig(), Numbers: map[string]int{}, Runs: map[string]*Run{}, Moves: map[string]*Move{},
		Notices: map[string]*Notice{}, Spent: map[string]Spent{}}
	s.rebuild()
	return s
}

// UnmarshalJSON reads a snapshot. It creates the empty maps that a snapshot omits.
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
	for id, a := range s.Armed {
		if a == nil || slices.Contains(a.Firings, nil) {
			return fmt.Errorf("snapshot: the triggers of %s are null", id)
		}
	}
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

// whole returns an error if an attempt or a round of the run is null.
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

// make0 creates the map if it is nil.
func make0[V any](m *map[string]V) {
	if *m == nil {
		*m = map[string]V{}
	}
}

// set writes to a map, creating it on demand: most runs need few of theirs.
func set[V any](m *map[string]V, key string, v V) {
	make0(m)
	(*m)[key] = v
}

// Run is one run of a workflow.
type Run struct {
	ID         string    `json:"id"`
	Workflow   string    `json:"workflow"`
	N          int       `json:"n"`
	Phase      string    `json:"phase"`
	Paused     bool      `json:"paused,omitempty"`
	PausedWhy  string    `json:"paused_why,omitempty"`  // user, limit:<key>, fatal, spec, work
	PausedText string    `json:"paused_text,omitempty"` // of the fact
	PausedAt   time.Time `json:"paused_at,omitzero"`
	Parallel   bool      `json:"parallel,omitempty"`
	Digest     string    `json:"digest"`
	// hex SHA-256 of the spec's file, "" for a run started by an older release
	File  string            `json:"file,omitempty"`
	Vars  map[string]any    `json:"vars,omitempty"`
	Trees map[string]string `json:"trees,omitempty"`
	// its own worktree, below the root; "" = it works in the checkout
	Workspace string `json:"workspace,omitempty"`
	// below .workflow/retry-context/: beside another run with the same gates
	RetryDir string `json:"retry_dir,omitempty"`
	// what stand-ins do in place of its agents; absent for a real run
	Stubs     json.RawMessage       `json:"stubs,omitempty"`
	By        Actor                 `json:"by"`
	Fired     *FiredBy              `json:"fired,omitempty"` // the trigger that started it
	Requested time.Time             `json:"requested"`
	Started   time.Time             `json:"started,omitzero"`
	Ended     time.Time             `json:"ended,omitzero"`
	Attempts  map[string][]*Attempt `json:"attempts"`
	Rounds    map[string][]*Round   `json:"rounds"`
	Procs     Procs                 `json:"procs,omitempty"`
	counts
	Files map[string]int `json:"files,omitempty"` // gate -> number of its newest retry-context file
	// gates that need a person for the rest of the run
	Forced    map[string]bool `json:"forced,omitempty"`
	Exhausted map[string]bool `json:"exhausted,omitempty"` // gates whose on_exhausted step was used
	// launch -> files of its own inbox that were refused and kept
	Refused map[string]int `json:"refused,omitempty"`
	// fixing step -> the step whose gate sent the work there
	Sent     map[string]string `json:"sent,omitempty"`
	Landing  bool              `json:"landing,omitempty"`  // the landing is owed or done
	Unlanded string            `json:"unlanded,omitempty"` // why landing failed
	// files owed before anything of the run is launched
	Writes []*Write `json:"writes,omitempty"`
	Moved  []string `json:"moved,omitempty"` // IDs of the writes that moved its branches, or gave that up
	// step -> what satisfied its needs from other workflows, until it starts
	Met        map[string][]string `json:"met,omitempty"`
	Begun      int                 `json:"begun,omitempty"` // step attempts started
	Turns      int                 `json:"turns,omitempty"` // attempts and reviews launched, each once
	Allowance  int                 `json:"allowance,omitempty"`
	Spent      Duration            `json:"spent,omitempty"` // time in which something was under way
	BusySince  time.Time           `json:"busy_since,omitzero"`
	TimeLimit  Duration            `json:"time_limit,omitempty"`
	Usage      Usage               `json:"usage,omitzero"`
	UsageLimit Usage               `json:"usage_limit,omitzero"`
	roles
	Notes []Note `json:"notes,omitempty"` // people's notes
	// budget -> the limit whose approach was notified
	Near    map[string]string `json:"near,omitempty"`
	EndStep string            `json:"end_step,omitempty"`
	EndWhy  string            `json:"end_why,omitempty"`
	Hooked  bool              `json:"hooked,omitempty"` // after_run was started
	Told    map[string]bool   `json:"told,omitempty"`   // notices that are sent only once

	Child    *ChildOf  `json:"child,omitempty"` // set for a child run
	List     *TaskList `json:"list,omitempty"`  // its tasks, if its workflow has a list that has begun
	EndCause string    `json:"end_cause,omitempty"`
	EndLimit string    `json:"end_limit,omitempty"` // the key of the limit that ended it

	runIndex // the index's part
}

// counts are how often the gates of a run failed or took a route back, which max_retries limits.
type counts struct {
	Fails  map[string]int            `json:"fails,omitempty"`  // gate -> its count of failures (8-semantics 14)
	Routes map[string]map[string]int `json:"routes,omitempty"` // gate -> route back -> its count
	// gate -> its on_exhausted step, until that has passed: then the counts restart
	Renews map[string]string    `json:"renews,omitempty"`
	Same   map[string]*Sameness `json:"same,omitempty"`
}

// roles are what the roles of a run have used, and what they may use.
type roles struct {
	// what each has used; of the time, that of ended processes
	Roles      map[string]Spend `json:"roles,omitempty"`
	RoleLimits map[string]Spend `json:"role_limits,omitempty"` // what each may use
}

// Kinds of process.
const (
	ProcStep   = "step"
	ProcCheck  = "check"
	ProcHook   = "hook"
	ProcReview = "review"
)

// Proc is a process (or a chain of them under one key) that may be alive: from its launch until it
// is seen gone.
type Proc struct {
	Key   string    `json:"key"`
	Kind  string    `json:"kind"`
	Step  string    `json:"step,omitempty"`
	Gate  string    `json:"gate,omitempty"`
	N     int       `json:"n"`
	K     int       `json:"k,omitempty"`
	Tree  string    `json:"tree,omitempty"`
	Began time.Time `json:"began"`
	Role  string    `json:"role,omitempty"`  // of its agent; "" = a command
	From  time.Time `json:"from,omitzero"`   // when it got the slot that it waited for; zero = it did not wait
	Waits bool      `json:"waits,omitempty"` // for a slot, now
	Forge bool      `json:"forge,omitempty"` // it waits for the forge's verdict: no process, slot or worktree
	Stop  string    `json:"stop,omitempty"`  // why it is being stopped though still wanted: timeout, linger, budget: …
	Usage Usage     `json:"usage,omitzero"`  // the part of its cost already counted

	// of a check or hook; those of steps and reviews are the attempt's and the round's
	Deadline time.Time `json:"deadline,omitzero"`
	Reopened bool      `json:"reopened,omitempty"`
}

// Procs are the processes of a run, in the order of their start.
type Procs []*Proc

// Of returns the process with the key, or nil.
func (ps Procs) Of(key string) *Proc {
	return find(ps, func(p *Proc) bool { return p.Key == key })
}

// alive returns the process that a fact of the run is about, which must be there.
func (ps Procs) alive(run, key, fact string) *Proc {
	p := ps.Of(key)
	if p == nil {
		wrong("%s: %s of %s, which is not alive", run, fact, key)
	}
	return p
}

// atWork reports whether a process of the step, its check or its hook is alive.
func (ps Procs) atWork(step string) bool {
	return slices.ContainsFunc(ps, func(p *Proc) bool { return p.Step == step && p.Kind != ProcReview })
}

// inTree reports whether a process works in the worktree.
func (ps Procs) inTree(tree string) bool {
	return slices.ContainsFunc(ps, func(p *Proc) bool { return p.Tree == tree })
}

// Note is a person's message to the agents of a run.
type Note struct {
	N    int       `json:"n"`
	At   time.Time `json:"at"`
	Step string    `json:"step,omitempty"` // for its agents only; "" = for all
	Text string    `json:"text"`
	By   Actor     `json:"by"`
}

// Day is what was used on a day in the daemon's time zone.
type Day struct {
	Day   string          `json:"day"` // 2026-01-31
	Usage Spend           `json:"usage,omitzero"`
	Told  map[string]bool `json:"told,omitempty"` // warnings sent about the day's budget
}

// Sameness counts how often a gate failed alike over an unchanged tree.
type Sameness struct {
	Failure string `json:"failure"`
	Digest  string `json:"digest"`
	Count   int    `json:"count"`
}

// Write is something the engine owes: a gate's retry context, its outputs (File = 0), or an action
// on a branch (Kind).
type Write struct {
	ID    string   `json:"id"`
	Gate  string   `json:"gate"`
	Kind  string   `json:"kind,omitempty"` // not a file: WriteAdvance, ...
	Step  string   `json:"step,omitempty"`
	N     int      `json:"n"`    // round; of a branch: attempt
	File  int      `json:"file"` // {n} of the path
	Path  string   `json:"path,omitempty"`
	With  []string `json:"with,omitempty"` // of WriteRewind, as Files: see RewindOwed
	Files bool     `json:"files,omitempty"`
	Sweep bool     `json:"sweep,omitempty"` // not a file: first clear .workflow/retry-context/ of ended runs' files
}

// Move is an accepted file that must leave its inbox.
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

// Notice is a message to a person.
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

// Folder returns the run's folder, below .workflow/runs/.
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

// Offers reports whether the run offers the step to whoever takes it. With stand-ins it is launched
// instead: otherwise the run could wait forever.
func (r *Run) Offers(st *Step) bool { return st.Offered() && !r.Stubbed() }
