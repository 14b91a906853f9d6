package engine

import (
	"encoding/json"
	"time"
)

// Attempt is one execution of a step: (run, step, N). A relaunch after an infrastructure failure is
// the same attempt with K+1.
type Attempt struct {
	N           int             `json:"n"`
	K           int             `json:"k,omitempty"`
	State       string          `json:"state"`
	Status      string          `json:"status,omitempty"` // from its signal: done, failed, blocked
	Worktree    string          `json:"worktree,omitempty"`
	Tree        string          `json:"tree"` // key of the checkout it holds
	Since       int64           `json:"since"`
	To          []string        `json:"to,omitempty"` // where its outcome led
	Key         string          `json:"key,omitempty"`
	Offered     bool            `json:"offered,omitempty"`
	LimitWait   bool            `json:"limit_wait,omitempty"`  // NotBefore is the reset of a usage limit
	BudgetWait  string          `json:"budget_wait,omitempty"` // the day whose budget is used up: NotBefore is its end
	Usage       Usage           `json:"usage,omitzero"`        // of all its launches
	Reopened    bool            `json:"reopened,omitempty"`    // its deadline was extended after a gap
	Checked     bool            `json:"checked,omitempty"`
	Hooked      bool            `json:"hooked,omitempty"`
	ClaimedBy   string          `json:"claimed_by,omitempty"`
	Held        *Actor          `json:"held,omitempty"`  // who has taken it over
	Doers       []string        `json:"doers,omitempty"` // contributors: accounts, and names and addresses of commits
	Started     time.Time       `json:"started,omitzero"`
	Launched    time.Time       `json:"launched,omitzero"`
	Deadline    time.Time       `json:"deadline,omitzero"`
	GraceUntil  time.Time       `json:"grace_until,omitzero"`  // the process exited with 0, its signal may still come
	LingerUntil time.Time       `json:"linger_until,omitzero"` // the signal came, the process may still end by itself
	NotBefore   time.Time       `json:"not_before,omitzero"`   // backoff before the next launch
	Restarts    int             `json:"restarts,omitempty"`    // infrastructure failures so far
	Waits       int             `json:"waits,omitempty"`       // usage-limit waits so far
	SignalType  string          `json:"signal_type,omitempty"`
	SignalValue string          `json:"signal_value,omitempty"`
	Via         string          `json:"via,omitempty"` // the kind of signal: a file's name, a commit, a ref, exit
	Author      string          `json:"author,omitempty"`
	Summary     string          `json:"summary,omitempty"`
	Question    string          `json:"question,omitempty"`
	Options     []string        `json:"options,omitempty"`
	Answer      json.RawMessage `json:"answer,omitempty"`
	Output      string          `json:"output,omitempty"`
	Exit        *Exit           `json:"exit,omitempty"`
	Failure     string          `json:"failure,omitempty"` // why it failed before any review: the feedback
	Broken      string          `json:"broken,omitempty"`  // why there is no result: infrastructure failed
	Digest      string          `json:"digest,omitempty"`
	Content     string          `json:"content,omitempty"` // see CheckResult
	Protected   []string        `json:"protected,omitempty"`
	ProtectedAs []string        `json:"protected_as,omitempty"` // see CheckResult
	ProtectedBy []string        `json:"protected_by,omitempty"`
	ToReview    []string        `json:"to_review,omitempty"`
	// files in no commit that a criterion's judgement relied on
	Unshipped int       `json:"unshipped,omitempty"`
	Pins      []string  `json:"pins,omitempty"`
	Ended     time.Time `json:"ended,omitzero"`
	Children  bool      `json:"children,omitempty"` // child runs do its work
	List      bool      `json:"list,omitempty"`     // the child runs are a list's
	Reads     bool      `json:"reads,omitempty"`    // it only reads what was last taken in its worktree
	// its work was taken completely: a reviewer needs nothing from its worktree
	Apart bool `json:"apart,omitempty"`
	// its number among the run's launched attempts and reviews, from 1; 0 = none yet, or from an
	// older release
	Turn  int    `json:"turn,omitempty"`
	Child string `json:"child,omitempty"` // the child run of a step that is no list

	step string // its step
}

// Holds returns the worktree that the attempt's process, check and hook hold; "" if it only reads.
func (a *Attempt) Holds() string {
	if a.Reads {
		return ""
	}
	return a.Tree
}

// HeldInReview returns the worktree that a review of the attempt holds; "" if it sees the taken
// work.
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
	Route      string             `json:"route,omitempty"`   // the route that it took, or was counted under: no failure
	Times      int                `json:"times,omitempty"`   // that route's count by then, if it leads back
	Deadline   time.Time          `json:"deadline,omitzero"` // of the review's process
	Waits      int                `json:"waits,omitempty"`   // usage-limit waits of its reviewer
	Misses     int                `json:"misses,omitempty"`  // inconclusive reviews
	MissWhy    string             `json:"miss_why,omitempty"`
	Outcome    string             `json:"outcome,omitempty"`
	Score      *float64           `json:"score,omitempty"`
	Scores     map[string]float64 `json:"scores,omitempty"`
	Feedback   string             `json:"feedback,omitempty"`
	Said       string             `json:"said,omitempty"` // feedback of the failure before a person's words replaced it
	Findings   json.RawMessage    `json:"findings,omitempty"`
	Comments   json.RawMessage    `json:"comments,omitempty"` // a person's findings, beside the reviewer's
	Answer     json.RawMessage    `json:"answer,omitempty"`
	Read       string             `json:"read,omitempty"` // where the reviewer's verdict was found, in words
	VetoWindow Duration           `json:"veto_window,omitempty"`
	Trust      string             `json:"trust,omitempty"`
	Digest     string             `json:"digest,omitempty"`
	WindowEnds time.Time          `json:"window_ends,omitzero"`
	Remains    Duration           `json:"remains,omitempty"`  // of the window, while the run is paused
	Why        string             `json:"why,omitempty"`      // why a person is asked: level, forced, blocked, …
	Protect    bool               `json:"protect,omitempty"`  // a person is asked because the step changed protected files
	Asked      time.Time          `json:"asked,omitzero"`     // since when a person is asked
	Due        time.Time          `json:"due,omitzero"`       // a person's deadline; a pause stops its clock
	RemindAt   time.Time          `json:"remind_at,omitzero"` // next reminder
	Reminders  int                `json:"reminders,omitempty"`
	Noticed    []string           `json:"noticed,omitempty"` // result of its last notice
	By         *Actor             `json:"by,omitempty"`
	ByKind     string             `json:"by_kind,omitempty"` // reviewer, criterion, window, human, exhausted, when, limit
	Veto       bool               `json:"veto,omitempty"`    // a person's word that failed it
	File       int                `json:"file,omitempty"`    // its retry-context file
	Turn       int                `json:"turn,omitempty"`    // of its review: see Attempt
	// the work went on without a pass, after this many failures
	LetThrough int       `json:"let_through,omitempty"`
	To         string    `json:"to,omitempty"` // where the work of a failed round went
	Ended      time.Time `json:"ended,omitzero"`

	gate string // its gate
}

// Current returns the newest attempt of the step, or nil if there is none or it was superseded.
func (r *Run) Current(step string) *Attempt {
	as := r.Attempts[step]
	if len(as) == 0 || as[len(as)-1].State == Superseded {
		return nil
	}
	return as[len(as)-1]
}

// CurrentRound returns the newest round of the gate, or nil if there is none or it was superseded.
func (r *Run) CurrentRound(gate string) *Round {
	rs := r.Rounds[gate]
	if len(rs) == 0 || rs[len(rs)-1].State == Undone {
		return nil
	}
	return rs[len(rs)-1]
}

// Attempt returns attempt n of the step, or nil.
func (r *Run) Attempt(step string, n int) *Attempt {
	if as := r.Attempts[step]; n >= 1 && n <= len(as) {
		return as[n-1]
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

// openRound returns the open round over the step's current attempt, or nil.
func (r *Run) openRound(st *Step) (string, *Round) {
	for _, g := range st.Gates {
		if q := r.CurrentRound(g); q.Open() {
			return g, q
		}
	}
	return "", nil
}
