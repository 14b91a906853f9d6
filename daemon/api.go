package daemon

import (
	"encoding/json"
	"time"

	"sluice/engine"
)

// The API is HTTP on a unix socket, JSON both ways. Paths begin with /v1. An error is {"error": "what: why: what to do",
// "advice": "what to do"}
// with a status of 4xx (the asker's) or 5xx (ours).
//
//	GET  /v1/ping            -> Ping
//	POST /v1/do              Do -> Done          a person's or agent's event; comes back when it is journaled
//	GET  /v1/status[?run=]   -> Status
//	GET  /v1/run?run=        -> RunStatus         with all attempts and rounds
//	GET  /v1/facts?from=&run=&follow=1 -> a line of Line each; from = 0: from the beginning of the journal, -1: from now on
//	GET  /v1/spec?run=       -> {"source"}            the spec the run was started with
//	GET  /v1/offers          -> []Offer
//	POST /v1/reload          the settings are read again
//	GET  /v1/repos, POST /v1/repos {dir}, DELETE /v1/repos?dir=   (the daemon's own socket only)

// Ping is how a server names itself.
type Ping struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Root    string    `json:"root,omitempty"`  // of a repo's socket
	Repos   []string  `json:"repos,omitempty"` // of the daemon's socket
	Started time.Time `json:"started"`
}

// Do asks for one event to be taken in. Kind is one of run_requested, answered, claimed, file_seen (a sentinel through
// the socket), pause_requested, resume_requested, abort_requested, retry_requested, note_given, takeover_requested, handback_requested. Its Actor and times are the server's.
type Do struct {
	Kind  string          `json:"kind"`
	Event json.RawMessage `json:"event"`
	Via   string          `json:"via,omitempty"` // command, terminal, desktop, page
}

// Done is what was decided. Ignored, where not empty, says why nothing came of it.
type Done struct {
	Seq     int64             `json:"seq,omitempty"`
	Facts   []json.RawMessage `json:"facts,omitempty"`
	Ignored string            `json:"ignored,omitempty"`
	Run     string            `json:"run,omitempty"` // the run that was started, or is concerned
}

// Line is one fact of the journal, for people and programs that follow it.
type Line struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Fact json.RawMessage `json:"fact"`
}

// Status is how a repo stands.
type Status struct {
	Root    string      `json:"root"`
	Trust   string      `json:"trust"`             // file: nothing stands between an agent and a gate; sandbox: one does; "" = nothing serves the repo
	Exposed string      `json:"exposed,omitempty"` // of file: why
	Health  []string    `json:"health,omitempty"`
	Stalled string      `json:"stalled,omitempty"` // why the journal cannot be written
	Seq     int64       `json:"seq"`
	Runs    []RunStatus `json:"runs"`
	Notices int         `json:"notices,omitempty"` // owed
	Today   Today       `json:"today,omitzero"`
}

// Today is what was used of the day, from 00:00 where the daemon is.
type Today struct {
	Day    string       `json:"day"`
	Here   engine.Spend `json:"here,omitzero"`   // by this repo
	All    engine.Spend `json:"all,omitzero"`    // by all repos of the daemon
	Budget engine.Spend `json:"budget,omitzero"` // what all may use; 0 = no bound
}

// RunStatus is how a run stands, step by step.
type RunStatus struct {
	ID       string       `json:"id"`
	Workflow string       `json:"workflow"`
	Name     string       `json:"name,omitempty"`
	Phase    string       `json:"phase"`
	Trust    string       `json:"trust,omitempty"`   // of a live run: as of the repo
	Exposed  string       `json:"exposed,omitempty"` // of file: why
	Paused   string       `json:"paused,omitempty"`  // why
	Started  time.Time    `json:"started,omitzero"`
	Ended    time.Time    `json:"ended,omitzero"`
	EndWhy   string       `json:"end_why,omitempty"`
	Stubbed  bool         `json:"stubbed,omitempty"` // stand-ins play its agents: nothing in it is real work
	By       engine.Actor `json:"by"`
	Usage    engine.Usage `json:"usage,omitzero"`  // so far, of what runs too
	Budget   engine.Usage `json:"budget,omitzero"` // what it may use; 0 = no bound

	Roles       map[string]engine.Spend `json:"roles,omitempty"`        // what each role has used, the time of what has ended
	RoleBudgets map[string]engine.Spend `json:"role_budgets,omitempty"` // what it may

	Near      []string        `json:"near,omitempty"`  // budgets that come to their end
	Notes     []engine.Note   `json:"notes,omitempty"` // a person's words for its agents
	Vars      map[string]any  `json:"vars,omitempty"`
	Digest    string          `json:"digest"`
	SpecDrift bool            `json:"spec_drift,omitempty"` // the file has changed since the run started
	file      string          // hex SHA-256 of the spec's file then
	Steps     []StepStatus    `json:"steps"`
	Children  []StepStatus    `json:"child_steps,omitempty"`      // with /v1/run: the judged steps of its child runs, the newest MaxChildSteps
	Unpassed  []LetThrough    `json:"let_through,omitempty"`      // what went on without a pass, oldest first: the newest MaxUnpassed
	More      int             `json:"let_through_more,omitempty"` // older ones
	Waits     []Wait          `json:"waits,omitempty"`            // what it waits for, oldest first
	Child     *engine.ChildOf `json:"child,omitempty"`            // it is a child run: of whom, and for which task
	Dir       string          `json:"dir,omitempty"`              // its folder, below .workflow/runs/
	Workspace string          `json:"workspace,omitempty"`        // its own worktree, below the root
	Branch    string          `json:"branch,omitempty"`           // and the branch of that
}

// Live reports whether the run has not ended.
func (r RunStatus) Live() bool {
	return r.Phase == engine.RunRunning || r.Phase == engine.RunPending
}

// Below returns the runs below a run: its children, theirs, and so on. Each parent comes before its children in runs.
func Below(runs []RunStatus, id string) (out []RunStatus) {
	of := map[string]bool{id: true}
	for _, r := range runs {
		if r.Child != nil && of[r.Child.Parent] {
			of[r.ID] = true
			out = append(out, r)
		}
	}
	return out
}

// StepStatus is a step of a run, with the gates that judge it.
type StepStatus struct {
	ID       string           `json:"id"`
	Name     string           `json:"name,omitempty"`
	State    string           `json:"state"` // of the current attempt; "waiting": none yet
	Attempt  int              `json:"attempt,omitempty"`
	Since    time.Time        `json:"since,omitzero"`
	Role     string           `json:"role,omitempty"`
	Held     *engine.Actor    `json:"held,omitempty"` // who has taken it over
	Worktree string           `json:"worktree,omitempty"`
	Summary  string           `json:"summary,omitempty"`
	Failure  string           `json:"failure,omitempty"`
	Gates    []GateStatus     `json:"gates,omitempty"`
	Attempts []engine.Attempt `json:"attempts,omitempty"` // with /v1/run
	List     *ListStatus      `json:"list,omitempty"`     // its tasks
}

// GateStatus is a gate of a run.
type GateStatus struct {
	ID       string         `json:"id"`
	Name     string         `json:"name,omitempty"`
	Level    string         `json:"level"`
	Implicit bool           `json:"implicit,omitempty"`
	Forced   bool           `json:"forced,omitempty"`
	State    string         `json:"state,omitempty"` // of the current round; "" = none
	Due      bool           `json:"due,omitempty"`   // of state reviewing: no reviewer is at work yet
	Round    int            `json:"round,omitempty"`
	Why      string         `json:"why,omitempty"` // a person is asked
	Outcome  string         `json:"outcome,omitempty"`
	Score    *float64       `json:"score,omitempty"`
	Feedback string         `json:"feedback,omitempty"`
	Until    time.Time      `json:"until,omitzero"` // the veto window's end
	By       *engine.Actor  `json:"by,omitempty"`
	ByKind   string         `json:"by_kind,omitempty"`
	Count    int            `json:"count"`            // its failures
	Routes   map[string]int `json:"routes,omitempty"` // how often it took each route back
	Max      int            `json:"max"`
	Outcomes []string       `json:"outcomes,omitempty"` // what a person may say

	AnswerSchema   json.RawMessage `json:"answer_schema,omitempty"`   // of the answer that a person's pass may give now
	AnswerRequired bool            `json:"answer_required,omitempty"` // a pass without one does not count
	Answer         json.RawMessage `json:"answer,omitempty"`          // of a round that a person passed

	Trust     string         `json:"trust,omitempty"`     // the least level of an answer to the current round
	Approvers []string       `json:"approvers,omitempty"` // whose signature it takes; none = anybody's
	Reviewed  string         `json:"reviewed,omitempty"`  // digest of what the round is over
	Rounds    []engine.Round `json:"rounds,omitempty"`    // with /v1/run
}

// LetThrough is a round whose work went on, or whose branch ended well, though the gate did not pass it: by a route, by
// on_fail or by on_exhausted.
type LetThrough struct {
	Run      string        `json:"run,omitempty"` // the child run that it is of; "" = this one
	Gate     string        `json:"gate"`
	Round    int           `json:"round"`
	Outcome  string        `json:"outcome"`         // the route's name; pass: by on_exhausted
	Failures int           `json:"failures"`        // of the gate by then, this one too; a route is none
	Route    string        `json:"route,omitempty"` // it took, or used up, the route of this name
	Times    int           `json:"times,omitempty"` // how often by then, of one that leads back
	To       string        `json:"to"`              // steps, a gate or an end
	ByKind   string        `json:"by_kind,omitempty"`
	By       *engine.Actor `json:"by,omitempty"`
	At       time.Time     `json:"at"`
}

// Wait is one thing a run waits for.
type Wait struct {
	Kind  string    `json:"kind"` // human, window, review, agent, offer, worktree, slot, backoff, limit, budget, need, grace, held, tasks, paused, parent
	Step  string    `json:"step,omitempty"`
	Gate  string    `json:"gate,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Text  string    `json:"text"` // "for a person at XG-2-end: sluice pass XG-2-end"
}

// Offer is a step that waits for somebody to do it.
type Offer struct {
	Run      string    `json:"run"`
	Step     string    `json:"step"`
	Name     string    `json:"name,omitempty"`
	Attempt  int       `json:"attempt"`
	Launch   string    `json:"launch"` // interactive or subagent
	Role     string    `json:"role,omitempty"`
	Since    time.Time `json:"since"`
	Claimed  string    `json:"claimed,omitempty"`
	Worktree string    `json:"worktree"` // absolute
	Prompt   string    `json:"prompt"`   // file
	Signal   string    `json:"signal"`   // file to write when done; "" where it is a commit or a pull request

	SignalType string `json:"signal_type"`
	Marker     string `json:"marker,omitempty"` // git_commit: what the message has to have

	Child *engine.ChildOf `json:"child,omitempty"` // of a child run's: of whom, and for which task
}

// ListStatus tells how a list of tasks stands.
type ListStatus struct {
	engine.Tally
	File  string       `json:"file"`
	Fault string       `json:"fault,omitempty"` // why it cannot be gone by
	Tasks []TaskStatus `json:"tasks,omitempty"` // those at work; with full, all
}

// TaskStatus tells how a task stands.
type TaskStatus struct {
	ID        string `json:"id"`
	Title     string `json:"title,omitempty"`
	State     string `json:"state"`
	Tries     int    `json:"tries,omitempty"` // that have failed
	Depth     int    `json:"depth,omitempty"`
	StandsFor string `json:"stands_for,omitempty"`
	Run       string `json:"run,omitempty"` // the child run that does it
	Summary   string `json:"summary,omitempty"`
	Why       string `json:"why,omitempty"`  // how its last try failed
	Held      bool   `json:"held,omitempty"` // a person aborted its run

	Answer json.RawMessage `json:"answer,omitempty"` // of its last run that was completed, where an expression of the spec reads those; with full
}
