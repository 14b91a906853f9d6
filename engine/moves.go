package engine

import (
	"cmp"
	"strconv"
	"strings"
)

// The table of transitions of runs, attempts, rounds and tasks. Only the methods `to` below write a
// state, and only by a row of the table: a fact that finds its object in another state contradicts
// earlier decisions, so `to` panics. DESIGN.md and docs/semantics.md are printed from the table
// (moves_test.go), and a test makes every move.

// move is a row of the table: the fact takes the object from any of the states in From to To.
type move struct {
	Fact string // its kind
	From string // one or more states, separated by spaces
	To   string
}

// Entries of the table beside states.
const (
	absent = "absent" // From: the fact creates the object. To: it removes it
	stays  = "stays"  // To: the state does not change, but the fact is valid only in From
)

// Groups of states.
const (
	ended   = RunCompleted + " " + RunFailed + " " + RunAborted
	atWork  = Ready + " " + Running + " " + Signalled + " " + Gating
	open    = OnReview + " " + OnNotice + " " + OnWindow + " " + OnHuman
	settled = TaskDone + " " + TaskBlocked + " " + TaskFailed + " " + TaskSpent
)

// runMove returns row i of the run table; after the last, an empty row. The array is only read, so it
// costs no allocation. Frequent moves come first, as each fact searches its row.
func runMove(i int) move {
	return [...]move{
		{"step_started", RunRunning, stays},
		{"step_skipped", RunRunning, stays},
		{"run_started", absent, RunPending},
		{"run_began", RunPending, RunRunning},
		{"run_paused", RunPending + " " + RunRunning, stays},
		{"run_resumed", RunPending + " " + RunRunning, stays},
		{"run_ended", RunRunning, RunCompleted},
		{"run_ended", RunPending + " " + RunRunning, RunFailed}, // pending: a child with a var that has no value
		{"run_ended", RunPending + " " + RunRunning, RunAborted},
		{"run_reopened", ended, RunRunning},
		{"run_forgotten", ended, absent},
		{},
	}[i]
}

// attemptMove is runMove for attempts.
func attemptMove(i int) move {
	return [...]move{
		{"step_started", absent, Ready},
		{"step_started", absent, Running}, // child runs do its work: nothing is launched
		{"step_launched", Ready, Running},
		{"step_signalled", Running, Signalled},
		{"check_started", Signalled, stays},
		{"checked", Signalled, stays},
		{"round_opened", Signalled + " " + Gating, Gating},
		{"step_passed", Gating, Passed},
		{"step_superseded", atWork + " " + Passed + " " + Routed + " " + Skipped, Superseded},
		{"step_skipped", absent, Skipped},
		{"step_claimed", Running, stays},
		{"grace_began", Running, stays},
		{"deadline_moved", Running, stays},
		{"step_relaunched", Running, Ready},
		{"work_lost", Signalled, Ready},
		{"step_held", Ready + " " + Running, stays},
		{"step_handed_back", Ready, stays},
		{"hook_started", Signalled, stays},
		{"round_voided", Gating, Signalled}, // what was judged has changed: check again
		{"advance_owed", Passed, stays},
		// a late veto routes what has passed, or was routed by a later gate
		{"step_routed", Gating + " " + Passed + " " + Routed, Routed},
		{"run_ended", atWork, Superseded},
		{},
	}[i]
}

// roundMove is runMove for rounds.
func roundMove(i int) move {
	return [...]move{
		{"round_opened", absent, OnReview},
		{"review_started", OnReview, stays},
		{"judged", OnReview, stays},
		{"round_passed", OnReview + " " + OnWindow + " " + OnHuman, Approved},
		{"gate_failed", open + " " + Approved, stays},
		{"round_failed", open + " " + Approved, Refused}, // passed: a late veto
		{"retry_context_owed", Refused, stays},
		{"step_superseded", open + " " + Approved + " " + Refused + " " + ByRoute, Undone},
		{"inconclusive", OnReview, stays},
		{"agreed", OnReview, OnNotice},
		{"window_opened", OnNotice, OnWindow},
		{"human_asked", open, OnHuman},
		{"deadline_moved", OnReview + " " + OnWindow + " " + OnHuman, stays},
		{"reminded", OnHuman, stays},
		{"route_counted", OnReview + " " + OnHuman, stays},
		{"outputs_owed", OnReview + " " + OnHuman, stays},
		{"round_routed", OnReview + " " + OnHuman, ByRoute},
		{"round_voided", OnHuman + " " + Approved, Undone}, // passed: at an earlier gate, over the same content
		{"step_routed", open, Undone},                      // a later gate's round, after a late veto
		{"run_ended", open + " " + Approved + " " + Refused + " " + ByRoute, Undone},
		{},
	}[i]
}

// taskMove is runMove for the tasks of lists.
func taskMove(i int) move {
	return [...]move{
		{"run_started", TaskTodo + " " + TaskBlocked, TaskDoing},
		{"task_ended", TaskDoing, TaskDone},
		{"task_ended", TaskDoing, TaskTodo}, // a try has failed
		{"task_ended", TaskDoing, TaskBlocked},
		{"task_ended", TaskDoing, TaskFailed},
		{"task_ended", TaskDoing, TaskSpent},
		{"task_ended", absent, TaskTodo}, // added by the answer, as below
		{"task_left", settled + " " + TaskTodo, stays},
		{"tasks_read", absent, TaskTodo},
		{"tasks_read", absent, TaskDone},
		{"tasks_read", absent, TaskBlocked},
		{"tasks_read", settled, TaskTodo}, // a person's edit, or its last stand-in is gone
		{"tasks_read", TaskTodo + " " + TaskBlocked + " " + TaskFailed + " " + TaskSpent, TaskDone},
		{"tasks_read", TaskTodo + " " + TaskDone, TaskBlocked}, // in the file, a failed task is blocked already
		{"tasks_read", settled + " " + TaskTodo, absent},
		{"list_began", absent, TaskTodo},
		{"list_began", TaskSpent, TaskFailed},
		{"list_began", TaskSpent + " " + TaskFailed, TaskBlocked},
		{"list_began", TaskDoing + " " + TaskBlocked + " " + TaskFailed + " " + TaskSpent, TaskTodo},
		{"list_began", settled + " " + TaskTodo + " " + TaskDoing, absent}, // another list replaces this one
		{"tasks_added", absent, TaskTodo},
		{"feedback_taken", absent, TaskTodo},
		{},
	}[i]
}

// allowed reports whether a table has the move.
func allowed(row func(i int) move, fact, from, to string) bool {
	from = cmp.Or(from, absent)
	for i := 0; ; i++ {
		switch m := row(i); {
		case m.Fact == "":
			return false
		case m.Fact == fact && m.To == to && m.has(from):
			return true
		}
	}
}

// has reports whether the row starts from the state.
func (m move) has(state string) bool {
	i := strings.Index(m.From, state) // no state's name is part of another's
	return i >= 0 && (i == 0 || m.From[i-1] == ' ') && (i+len(state) == len(m.From) || m.From[i+len(state)] == ' ')
}

// unlisted panics: a fact would make a move that is not in the table.
func unlisted(run, what, id, fact, from, to string) {
	from = cmp.Or(from, absent)
	wrong("%s: %s: %s%s is %s, and the table of moves has no way from there to %s", run, fact, what, id, from, to)
}

// to changes the run's phase.
func (r *Run) to(fact, phase string) {
	r.may(fact, phase)
	r.Phase = phase
}

// may checks a fact that changes the run's phase, keeps it (stays), or removes the run (absent).
func (r *Run) may(fact, to string) {
	if !allowed(runMove, fact, r.Phase, to) {
		unlisted(r.ID, "the run", "", fact, r.Phase, to)
	}
}

// to changes the attempt's state, or keeps it (stays).
func (a *Attempt) to(run, fact, state string) *Attempt {
	if !allowed(attemptMove, fact, a.State, state) {
		unlisted(run, "attempt ", a.step+"."+strconv.Itoa(a.N), fact, a.State, state)
	}
	if state != stays {
		a.State = state
	}
	return a
}

// may checks a fact that keeps the attempt's state.
func (a *Attempt) may(run, fact string) *Attempt { return a.to(run, fact, stays) }

// to changes the round's state, or keeps it (stays).
func (q *Round) to(run, fact, state string) *Round {
	if !allowed(roundMove, fact, q.State, state) {
		unlisted(run, "round ", q.gate+"#"+strconv.Itoa(q.N), fact, q.State, state)
	}
	if state != stays {
		q.State = state
	}
	return q
}

// may checks a fact that keeps the round's state.
func (q *Round) may(run, fact string) *Round { return q.to(run, fact, stays) }

// to changes the task's state.
func (t *Task) to(run, fact, state string) {
	t.may(run, fact, state)
	t.State = state
}

// may checks a fact that changes the task's state, keeps it (stays), or removes the task (absent).
func (t *Task) may(run, fact, to string) {
	if !allowed(taskMove, fact, t.State, to) {
		unlisted(run, "task ", t.ID, fact, t.State, to)
	}
}

// made checks a new task's state.
func (t *Task) made(run, fact string) {
	if !allowed(taskMove, fact, absent, t.State) {
		unlisted(run, "task ", t.ID, fact, absent, t.State)
	}
}
