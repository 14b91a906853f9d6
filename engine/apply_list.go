package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// list returns the run's task list.
func (s *State) list(run string) *TaskList {
	l := s.at(run).List
	if l == nil {
		wrong("%s: a fact about tasks, and it has no list", run)
	}
	return l
}

func (f ListBegan) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	l := r.List
	if l == nil {
		l = &TaskList{Deepest: -1, Ratio: f.Ratio, Made: true}
		r.List = l
	}
	l.Step, l.N, l.Path, l.Seen = f.Step, f.N, f.Path, "" // read it again, whatever its stamp
	l.Made = l.Made || f.Made
	if t := l.Task(l.For); t != nil { // either other tasks replace it, or it has failed
		state := TaskFailed
		if len(f.Added) > 0 {
			state = TaskBlocked
		}
		t.to(f.Run, f.FactKind(), state)
		t.Body, l.Dirty = nil, true
	}
	for _, t := range l.Tasks { // leftovers of an earlier attempt
		if t.Over {
			t.Child, t.Over = "", false
		}
	}
	l.Result = 0
	if l.Source = f.Source; len(f.Make) > 0 { // a different list: nothing known of the old one applies
		l.renew(s, f.Run, f.Make)
	}
	l.add(f.Run, f.FactKind(), f.Added)
	if !f.Keep {
		l.again(f.Run, l.Back == "")
	}
	l.To, l.For, l.UsedUp = "", "", f.Out && !f.Keep
	l.unlook(s)
}

// renew discards the tasks and orders a new file.
func (l *TaskList) renew(s *State, run string, from json.RawMessage) {
	for _, t := range l.Tasks {
		t.may(run, ListBegan{}.FactKind(), absent)
		l.gone(t.ID)
	}
	l.Tasks, l.Answers, l.by, l.Dirty, l.Made, l.File, l.Why = nil, nil, nil, false, true, "", ""
	l.Make, l.Writing = from, s.Clock
}

// made records that the file was written, or why it cannot be.
func (l *TaskList) made(s *State, why string) {
	if l.Make, l.Writing = nil, 0; why != "" {
		l.Source = ""
	} else {
		l.Own = l.Path
	}
	l.unlook(s)
}

// again resets the tries of unfinished tasks. All become todo; when a gate sends the list back,
// blocked tasks stay blocked, so they come after the others.
func (l *TaskList) again(run string, all bool) {
	for _, t := range l.Tasks {
		if l.Done(t) || l.StoodFor(t) {
			continue
		}
		state := TaskTodo
		if !all && l.Status(t) == TaskBlocked {
			state = TaskBlocked
		}
		if t.State != state {
			t.to(run, ListBegan{}.FactKind(), state)
		}
		t.Tries, t.Held, t.Child, t.Begun = 0, false, "", false
		l.Dirty = true
	}
}

// add appends tasks.
func (l *TaskList) add(run, fact string, more []Task) {
	for i := range more {
		t := more[i]
		t.made(run, fact)
		t.Runs = l.Had[t.ID]
		l.Tasks = append(l.Tasks, &t)
		l.Dirty, l.by = true, nil
	}
}

// gone remembers how many runs a removed task has had. Run numbers are never reused, because the
// folders of the old runs still exist.
func (l *TaskList) gone(id string) {
	t := l.Task(id)
	delete(l.Answers, id)
	if t == nil || t.Runs == 0 {
		return
	}
	set(&l.Had, id, t.Runs)
}

// unlook forces a look at the file before the next selection.
func (l *TaskList) unlook(s *State) { l.Looked, l.Since = false, s.Clock }

func (f TasksLooked) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	l.Looked = true
	l.Taint, l.Deepest = l.changers()
}

// changers reports whether runs alive now may change the file, and how deep their tasks are; -1: there are none.
func (l *TaskList) changers() (taint bool, deepest int) {
	deepest = -1
	for _, t := range l.Tasks {
		if t.Child != "" {
			taint, deepest = true, max(deepest, t.Depth)
		}
	}
	return taint, deepest
}

func (f TasksRead) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	l.Seen, l.File, l.Why, l.Looked, l.Made, l.Writing = f.Stamp, f.File, f.Why, true, false, 0
	l.Taint, l.Deepest = f.Taint, f.Deepest
	if f.File != FileOK {
		l.Result = 0 // the file can contain no result
		return
	}
	var fresh []Task
	for _, t := range f.Set {
		old := l.Task(t.ID)
		if old == nil {
			fresh = append(fresh, t)
			continue
		}
		if old.State != t.State {
			old.to(f.Run, f.FactKind(), t.State)
		}
		*old = t
	}
	l.add(f.Run, f.FactKind(), fresh)
	if len(f.Gone) > 0 {
		gone := map[string]bool{}
		for _, id := range f.Gone {
			gone[id] = true
			if t := l.Task(id); t != nil {
				t.may(f.Run, f.FactKind(), absent)
			}
			l.gone(id)
		}
		l.Tasks = slices.DeleteFunc(l.Tasks, func(t *Task) bool { return gone[t.ID] })
	}
	l.Dirty, l.by = f.Dirty, nil
}

func (f TasksWriteOwed) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	l.Writing, l.Dirty = s.Clock, false
	l.unlook(s) // no selection while the file is written
	for _, t := range l.Tasks {
		t.Writing = l.Status(t)
	}
}

func (f TasksWritten) apply(s *State, at time.Time) {
	l := s.list(f.Run)
	if len(l.Make) > 0 {
		l.made(s, f.Why)
		return
	}
	writing := l.Writing
	l.Writing, l.Wrote = 0, at
	if f.Why == "" {
		l.Seen = f.Stamp
	}
	if writing >= l.Result {
		l.Result = 0
	}
	for _, t := range l.Tasks {
		if t.Writing == "" { // it was added after the write was owed
			continue
		}
		if t.Base, t.Writing = fileClass(t.Writing), ""; t.State != TaskSpent && t.ID != l.For {
			t.Body = nil
		}
	}
}

func (f TaskEnded) apply(s *State, at time.Time) {
	l := s.list(f.Run)
	t := l.Task(f.Task)
	if t == nil || t.Child == "" {
		wrong("%s: the end of task %s, which has no run", f.Run, f.Task)
	}
	t.to(f.Run, f.FactKind(), f.State)
	t.Held, t.Updated = f.Held, at
	t.Over = f.Hook
	switch {
	case !f.Hook:
		t.Child = ""
	case l.File == FileOK: // otherwise the file can contain no result
		l.Result = s.Clock
	}
	t.Summary, t.Why = f.Summary, f.Why
	if len(f.Answer) > 0 {
		set(&l.Answers, t.ID, f.Answer)
	}
	if f.Unblocked || len(f.Blockers) > 0 {
		t.Blockers, t.Unblocked = f.Blockers, f.Unblocked
	}
	if f.Tried {
		t.Tries++
		t.Tried = append(t.Tried, f.Why)
		t.Tried = t.Tried[max(0, len(t.Tried)-maxTaskTries):]
	}
	if len(f.Body) > 0 {
		t.Body = json.RawMessage(f.Body)
	}
	l.Dirty = true
	l.add(f.Run, f.FactKind(), f.Added)
	l.unlook(s)
}

func (f TaskLeft) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	t := l.Task(f.Task)
	if t == nil || !t.Over {
		wrong("%s: the hook of task %s, which has none", f.Run, f.Task)
	}
	t.may(f.Run, f.FactKind(), stays)
	t.Child, t.Over = "", false
	l.unlook(s)
}

func (f TasksAdded) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	l.add(f.Run, f.FactKind(), f.Added)
	l.unlook(s)
}

func (f ListSent) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	l.To, l.For = f.To, f.Task
	switch f.Why {
	case FileMissing:
		l.Missing++
	case FileInvalid:
		l.Invalid++
	default: // an agent that splits a task is trusted no more than one that does it
		l.Taint = true
		l.Deepest = max(l.Deepest, l.Task(f.Task).Depth)
	}
}

func (f ListUnsent) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	if f.Again {
		l.Missing, l.Invalid, l.Used = 0, 0, 0
	} else {
		l.To, l.For = "", ""
	}
}

func (f ListSentBack) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	l.Back, l.Words = f.Gate, cmp.Or(f.Words, f.Feedback)
	l.Backs++
}

func (f FeedbackTaken) apply(s *State, _ time.Time) {
	l := s.list(f.Run)
	l.add(f.Run, f.FactKind(), f.Added)
	l.Back, l.Words = "", ""
	l.unlook(s)
}

// began records at the parent that a child run exists.
func (c *ChildOf) began(s *State, run string, at time.Time) {
	r := s.at(c.Parent)
	if c.Task == "" {
		r.now(c.Step, c.N).Child = run
		return
	}
	l := s.list(c.Parent)
	t := l.Task(c.Task)
	if t == nil || t.Child != "" {
		wrong("%s: a run of task %s", c.Parent, c.Task)
	}
	t.Late = t.State == TaskBlocked
	t.to(c.Parent, RunStarted{}.FactKind(), TaskDoing)
	t.Child, t.Begun, t.Held, t.Updated = run, true, false, at
	t.Runs++
	delete(l.Answers, t.ID)
	l.Turns++
	l.Used++
	r.Begun++
	l.Dirty, l.Taint = true, true
	l.Deepest = max(l.Deepest, t.Depth)
	l.unlook(s)
}

// Parent returns the run's parent, or nil.
func (s *State) Parent(r *Run) *Run {
	if r == nil || r.Child == nil {
		return nil
	}
	return s.Runs[r.Child.Parent]
}

// busy reports whether the time limit counts now: a step, review, offer, window or limit wait is
// under way and the run is not paused (8-semantics 32).
func (r *Run) busy() bool {
	return r.TimeLimit > 0 && r.underway()
}

// underway is busy for any run, with or without a limit.
func (r *Run) underway() bool {
	if r.Phase != RunRunning || r.Paused {
		return false
	}
	if slices.ContainsFunc(r.kids, (*Run).underway) {
		return true
	}
	for _, a := range r.alive {
		if a.State != Gating && !r.heldUp(a) && !(a.Children && a.State == Running) {
			return true
		}
	}
	for _, q := range r.open {
		if p := r.Procs.Of(q.Key); p != nil && p.Forge {
			continue
		}
		if q.State != OnHuman {
			return true
		}
	}
	return slices.ContainsFunc(r.Procs, func(p *Proc) bool { return !p.Forge })
}
