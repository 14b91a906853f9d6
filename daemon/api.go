package daemon

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"sluice/engine"
)

// The API is HTTP on a unix socket, JSON both ways. Paths begin with /v1. An error has a status of
// 4xx (the client's fault) or 5xx (ours) and the body {"error": "what: why: what to do", "advice":
// "what to do"}.
//
//	GET  /v1/ping            -> Ping
//	POST /v1/do              Do -> Done          a person's or agent's event; returns once it is journaled
//	GET  /v1/status[?run=]   -> Status            with ended_most= (and ended_since=) fewer ended runs
//	GET  /v1/run?run=        -> RunStatus         with all attempts and rounds
//	GET  /v1/facts?from=&run=&follow=1 -> a line of Line each; from = 0: from the first record, -1: from now on
//	GET  /v1/spec?run=       -> {"source"}            the spec the run was started with
//	GET  /v1/offers          -> []Offer
//	POST /v1/workers         DrainWorker              has a worker drain, or take orders again
//	POST /v1/reload          reads the settings again; on the daemon's own socket, the list of repos
//	POST /v1/web             -> {"url"}               the page, with a code that logs a browser in once (the daemon's
//	                                                  own socket only)
//	GET  /v1/repos, POST /v1/repos {dir}, DELETE /v1/repos?dir=   (the daemon's own socket only)

// Ping is how a server identifies itself.
type Ping struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Root    string    `json:"root,omitempty"`  // of a repo's socket
	Repos   []string  `json:"repos,omitempty"` // of the daemon's socket
	Started time.Time `json:"started"`
}

// Do submits one event. Kind is one of run_requested, answered, claimed, file_seen (a sentinel
// through the socket), pause_requested, resume_requested, abort_requested, retry_requested,
// note_given, takeover_requested, handback_requested, arm_requested, disarm_requested, fired. The
// server sets its Actor and times.
type Do struct {
	Kind  string          `json:"kind"`
	Event json.RawMessage `json:"event"`
	Via   string          `json:"via,omitempty"` // command, terminal, desktop, page
}

// DrainWorker has a worker drain, or take orders again.
type DrainWorker struct {
	Worker string `json:"worker"` // its id
	Drain  bool   `json:"drain"`
}

// Done is what was decided. Ignored, if not empty, is why the event had no effect.
type Done struct {
	Seq     int64             `json:"seq,omitempty"`
	Facts   []json.RawMessage `json:"facts,omitempty"`
	Ignored string            `json:"ignored,omitempty"`
	Run     string            `json:"run,omitempty"` // the run started or concerned
}

// Void reports whether an answer did not count, because what it was about has changed since.
func (d Done) Void() bool {
	return slices.ContainsFunc(d.Facts, func(raw json.RawMessage) bool {
		f, err := engine.DecodeFact(raw)
		_, void := f.(engine.RoundVoided)
		return err == nil && void
	})
}

// Line is one fact of the journal.
type Line struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Fact json.RawMessage `json:"fact"`
}

// Kind is the kind of its fact.
func (l Line) Kind() string { return headOf(l.Fact).Kind }

// Run is the run that its fact is about; "" = it names none.
func (l Line) Run() string { return headOf(l.Fact).Run }

// Status is a repo's status.
type Status struct {
	Root string `json:"root"`
	// file: nothing separates agents from gates; sandbox: a sandbox does; "": not served
	Trust   string      `json:"trust"`
	Exposed string      `json:"exposed,omitempty"` // of file: why
	Health  []string    `json:"health,omitempty"`
	Stalled string      `json:"stalled,omitempty"` // why the journal cannot be written
	Seq     int64       `json:"seq"`
	Runs    []RunStatus `json:"runs"`
	Left    int         `json:"left,omitempty"`    // with ended_most: ended runs that are left out
	Notices int         `json:"notices,omitempty"` // owed
	Today   Today       `json:"today,omitzero"`

	Cluster  *Cluster   `json:"cluster,omitempty"`  // of a journal that several machines keep
	Triggers []Triggers `json:"triggers,omitempty"` // of workflows that were ever armed, by id
}

// Today is the day's use, from 00:00 in the daemon's time zone.
type Today struct {
	Day    string       `json:"day"`
	Here   engine.Spend `json:"here,omitzero"`   // by this repo
	All    engine.Spend `json:"all,omitzero"`    // by all repos of the daemon
	Budget engine.Spend `json:"budget,omitzero"` // for all repos; 0 = no limit
}

// RunStatus is a run's status, step by step.
type RunStatus struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Name     string `json:"name,omitempty"`
	Phase    string `json:"phase"`
	Trust    string `json:"trust,omitempty"`   // of a live run: as of the repo
	Exposed  string `json:"exposed,omitempty"` // of file: why
	Paused   string `json:"paused,omitempty"`  // why
	// of a run that a person did not pause: why, in words
	PausedText string       `json:"paused_text,omitempty"`
	Started    time.Time    `json:"started,omitzero"`
	Ended      time.Time    `json:"ended,omitzero"`
	EndWhy     string       `json:"end_why,omitempty"`
	Stubbed    bool         `json:"stubbed,omitempty"` // stubs play its agents: no real work
	By         engine.Actor `json:"by"`
	Usage      engine.Usage `json:"usage,omitzero"`  // so far, running work included
	Budget     engine.Usage `json:"budget,omitzero"` // limits; 0 = none

	// use per role; time only of what has ended
	Roles       map[string]engine.Spend `json:"roles,omitempty"`
	RoleBudgets map[string]engine.Spend `json:"role_budgets,omitempty"` // limits per role

	Near      []string       `json:"near,omitempty"`  // budgets almost used up: "max_tokens 900 of 1000"
	Notes     []engine.Note  `json:"notes,omitempty"` // a person's notes to its agents
	Vars      map[string]any `json:"vars,omitempty"`
	Digest    string         `json:"digest"`
	SpecDrift bool           `json:"spec_drift,omitempty"` // the file has changed since the run started
	file      string         // hex SHA-256 of the spec's file then
	Steps     []StepStatus   `json:"steps"`
	// with /v1/run: judged steps of child runs, the newest MaxChildSteps
	Children []StepStatus `json:"child_steps,omitempty"`
	// what went on without a pass, oldest first: the newest MaxUnpassed
	Unpassed  []LetThrough    `json:"let_through,omitempty"`
	More      int             `json:"let_through_more,omitempty"` // older ones
	Waits     []Wait          `json:"waits,omitempty"`            // oldest first
	Child     *engine.ChildOf `json:"child,omitempty"`            // of a child run: its parent and task
	Dir       string          `json:"dir,omitempty"`              // its folder, below .workflow/runs/
	Workspace string          `json:"workspace,omitempty"`        // its own worktree, below the root
	Branch    string          `json:"branch,omitempty"`           // that worktree's branch
}

// Live reports whether the run has not ended.
func (r RunStatus) Live() bool {
	return r.Phase == engine.RunRunning || r.Phase == engine.RunPending
}

// Gates are those of all steps.
func (r RunStatus) Gates() []GateStatus {
	var out []GateStatus
	for _, s := range r.Steps {
		out = append(out, s.Gates...)
	}
	return out
}

// Step returns the step with the id, nil if the run has none.
func (r RunStatus) Step(id string) *StepStatus {
	for i := range r.Steps {
		if r.Steps[i].ID == id {
			return &r.Steps[i]
		}
	}
	return nil
}

// Gate returns the gate with the id and its step, nil if the run has none.
func (r RunStatus) Gate(id string) (*StepStatus, *GateStatus) {
	for i := range r.Steps {
		s := &r.Steps[i]
		for j := range s.Gates {
			if s.Gates[j].ID == id {
				return s, &s.Gates[j]
			}
		}
	}
	return nil, nil
}

// Listed reports whether a gate has a row of its own: one that the spec does not name only while it asks a person.
func (g GateStatus) Listed() bool { return !g.Implicit || g.State == engine.OnHuman }

// Each returns runs one by one, for Below.
func Each(runs []RunStatus) iter.Seq[*RunStatus] {
	return func(yield func(*RunStatus) bool) {
		for i := range runs {
			if !yield(&runs[i]) {
				return
			}
		}
	}
}

// Below returns the descendants of a run. In runs, each parent comes before its children.
func Below(runs iter.Seq[*RunStatus], id string) iter.Seq[*RunStatus] {
	return func(yield func(*RunStatus) bool) {
		of := map[string]bool{id: true}
		for r := range runs {
			if r.Child == nil || !of[r.Child.Parent] {
				continue
			}
			of[r.ID] = true
			if !yield(r) {
				return
			}
		}
	}
}

// States returns the state of each step and gate by id; gates that the spec does not name are left
// out.
func (r RunStatus) States() map[string]string {
	states := map[string]string{}
	for _, st := range r.Steps {
		states[st.ID] = st.State
		for _, g := range st.Gates {
			if !g.Implicit {
				states[g.ID] = g.State
			}
		}
	}
	return states
}

// StepStatus is a step of a run, with its gates.
type StepStatus struct {
	ID       string           `json:"id"`
	Name     string           `json:"name,omitempty"`
	State    string           `json:"state"` // of the current attempt; "waiting": none yet
	Attempt  int              `json:"attempt,omitempty"`
	Since    time.Time        `json:"since,omitzero"`
	Role     string           `json:"role,omitempty"`
	Held     *engine.Actor    `json:"held,omitempty"` // who has taken it over
	Worktree string           `json:"worktree,omitempty"`
	Untaken  bool             `json:"untaken,omitempty"` // its work is in no commit: see Untaken
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
	Due      bool           `json:"due,omitempty"`   // reviewing, but no reviewer is running yet
	Round    int            `json:"round,omitempty"`
	Why      string         `json:"why,omitempty"` // why a person is asked
	Outcome  string         `json:"outcome,omitempty"`
	Score    *float64       `json:"score,omitempty"`
	Feedback string         `json:"feedback,omitempty"`
	Until    time.Time      `json:"until,omitzero"` // end of the veto window
	By       *engine.Actor  `json:"by,omitempty"`
	ByKind   string         `json:"by_kind,omitempty"`
	Count    int            `json:"count"`            // its failures
	Routes   map[string]int `json:"routes,omitempty"` // times each backward route was taken
	Max      int            `json:"max"`
	Outcomes []string       `json:"outcomes,omitempty"` // answers open to a person
	// how long its rounds waited for a person, without one that still does
	Waited engine.Duration `json:"waited,omitempty"`

	// of the answer a person may pass with now
	AnswerSchema   json.RawMessage `json:"answer_schema,omitempty"`
	AnswerRequired bool            `json:"answer_required,omitempty"` // a pass needs an answer
	Answer         json.RawMessage `json:"answer,omitempty"`          // from the person who passed the round

	Trust     string         `json:"trust,omitempty"`     // minimum trust of an answer to the current round
	Approvers []string       `json:"approvers,omitempty"` // required signers; none = anyone
	Reviewed  string         `json:"reviewed,omitempty"`  // digest of what the round is about
	Rounds    []engine.Round `json:"rounds,omitempty"`    // with /v1/run
}

// LetThrough is a round that let work go on, or its branch end well, without a pass: by a route, by
// on_fail or by on_exhausted.
type LetThrough struct {
	Run     string `json:"run,omitempty"` // the child run it belongs to; "" = this run
	Gate    string `json:"gate"`
	Round   int    `json:"round"`
	Outcome string `json:"outcome"` // the route's name; pass: by on_exhausted
	// of the gate so far, with this one; a route does not count
	Failures int           `json:"failures"`
	Route    string        `json:"route,omitempty"` // the route taken or used up
	Times    int           `json:"times,omitempty"` // of a backward route: times taken so far
	To       string        `json:"to"`              // steps, a gate or an end
	ByKind   string        `json:"by_kind,omitempty"`
	By       *engine.Actor `json:"by,omitempty"`
	At       time.Time     `json:"at"`
}

// Wait is one thing a run waits for.
type Wait struct {
	// human, window, review, agent, offer, worktree, slot, backoff, limit, budget, need, grace,
	// held, tasks, paused, parent
	Kind  string    `json:"kind"`
	Step  string    `json:"step,omitempty"`
	Gate  string    `json:"gate,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Text  string    `json:"text"` // "for a person at XG-2-end: sluice pass XG-2-end"
}

// Asks reports whether it waits for a person's answer at a gate, or for their veto.
func (w Wait) Asks() bool { return w.Kind == "human" || w.Kind == "window" }

// Offer is a step that someone may claim.
type Offer struct {
	Run      string    `json:"run"`
	Step     string    `json:"step"`
	Name     string    `json:"name,omitempty"`
	Attempt  int       `json:"attempt"`
	Launch   string    `json:"launch"` // interactive or subagent
	Role     string    `json:"role,omitempty"`
	Since    time.Time `json:"since"`
	Claimed  string    `json:"claimed,omitempty"`
	ByPerson bool      `json:"by_person,omitempty"` // a person claimed it, not an orchestrating agent
	Worktree string    `json:"worktree"`            // absolute
	Prompt   string    `json:"prompt"`              // file
	Signal   string    `json:"signal"`              // file to write when done; "" for a commit or a pull request

	SignalType string `json:"signal_type"`
	Marker     string `json:"marker,omitempty"` // git_commit: what the message must contain

	Child *engine.ChildOf `json:"child,omitempty"` // of a child run: its parent and task
}

// ListStatus is the status of a task list.
type ListStatus struct {
	engine.Tally
	File  string       `json:"file"`
	Fault string       `json:"fault,omitempty"` // why it cannot be used
	Tasks []TaskStatus `json:"tasks,omitempty"` // running ones; with full, all
}

// TaskStatus is the status of a task.
type TaskStatus struct {
	ID        string `json:"id"`
	Title     string `json:"title,omitempty"`
	State     string `json:"state"`
	Tries     int    `json:"tries,omitempty"` // failed ones
	Depth     int    `json:"depth,omitempty"`
	StandsFor string `json:"stands_for,omitempty"`
	Run       string `json:"run,omitempty"` // the child run that does it
	Summary   string `json:"summary,omitempty"`
	Why       string `json:"why,omitempty"`         // how its last try failed
	Held      bool   `json:"held,omitempty"`        // a person aborted its run
	Before    bool   `json:"done_before,omitempty"` // done, but by no run of this list: the file said so

	Asks []string `json:"asks,omitempty"` // the gates at which its run waits for a person

	// of its last completed run, if an expression of the spec reads it; with full
	Answer json.RawMessage `json:"answer,omitempty"`
}
