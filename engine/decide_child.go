package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// advanceChildren advances attempts whose work is done by child runs, and reports whether it
// decided anything.
func (d *listing) advanceChildren(r *Run, w *Spec) bool {
	if len(r.Writes) > 0 {
		return false
	}
	for _, a := range w.inOrder(r.alive) {
		if !a.Children || a.State != Running {
			continue
		}
		st := w.Step(a.step)
		if st.ForEach == nil {
			if a.Child == "" && !r.Paused {
				d.startChild(r, w, st, ChildOf{N: a.N})
				return true
			}
			continue
		}
		before := len(d.out)
		d.list(r, w, st, a)
		return len(d.out) > before
	}
	return false
}

// startChild starts a child run of the step.
func (d *listing) startChild(r *Run, w *Spec, st *Step, c ChildOf) {
	name, n := st.ID, c.N
	if c.Task != "" {
		name, n = c.Task, r.List.Task(c.Task).Runs+1
	}
	part := inRunID(w, name, c.Task, r.Child != nil || w.nests())
	id := fmt.Sprintf("%s.%s.%d", r.ID, part, n)
	for i := 2; d.s.Runs[id] != nil; i++ { // an older release named it
		id = fmt.Sprintf("%s.%s-%d.%d", r.ID, part, i, n)
	}
	dir := r.ID
	if r.Child != nil {
		dir = r.Child.Dir
	}
	c.Parent, c.Step, c.Dir = r.ID, st.ID, fmt.Sprintf("%s/%s.%d/%s.%d", dir, st.ID, c.N, name, n)
	k := st.Child
	vars, err := d.childVars(r, w, st, c)
	d.put(RunStarted{of: Of(id), Workflow: k.ID, N: n, Digest: r.Digest + "/" + st.ID, Vars: vars, Trees: r.Trees,
		Workspace: r.Workspace, Parallel: true, MaxSteps: k.Limits.MaxSteps, TimeLimit: k.Limits.MaxDuration,
		UsageLimit: Usage{Tokens: k.Limits.MaxTokens, CostUSD: k.Limits.MaxCostUSD},
		RoleLimits: k.Limits.Roles, By: r.By, Child: &c})
	if err != nil { // before anything is launched
		d.end(d.s.Runs[id], RunEnded{Phase: RunFailed, Why: clip(err.Error(), MaxFeedback)})
	}
}

// inRunID returns a name's part of a child run's id, which no other run ever had. If child runs have child runs
// (deep), a number alone is a run's, or ends a name.
func inRunID(w *Spec, name, task string, deep bool) string {
	parts := strings.Split(name, ".")
	for i, p := range parts[:len(parts)-1] {
		if deep && strings.Trim(strings.TrimLeft(p, "_"), "0123456789") == "" {
			parts[i] = "_" + p
		}
	}
	if task != "" && w.Step(task) != nil {
		parts[0] = "_" + parts[0]
	}
	return strings.Join(parts, ".")
}

// nests reports whether child runs of the workflow may have child runs.
func (s *Spec) nests() bool {
	return slices.ContainsFunc(s.Steps, func(st *Step) bool {
		return st.Child != nil && slices.ContainsFunc(st.Child.Steps, func(k *Step) bool { return k.Child != nil })
	})
}

// Causes of an end that matter to the parent.
const (
	CausePerson  = "person"
	causeLimit   = "limit"
	causeParent  = "parent"
	causeBlocked = "blocked"
)

// advanceChild reconciles a child run with its parent, and reports whether it decided anything.
func (d *listing) advanceChild(r *Run) bool {
	c := r.Child
	o := d.s.Runs[c.Parent]
	if o == nil {
		return false
	}
	a := o.Current(c.Step)
	wanted := o.wants(c)
	if r.Live() {
		if !wanted {
			d.end(r, RunEnded{Phase: RunAborted, Why: "its parent " + o.ID + " no longer needs it", Cause: causeParent})
			return true
		}
		return false
	}
	w := d.spec(o)
	if !wanted || w == nil {
		return false
	}
	t := o.List.Task(c.Task)
	if c.Task != "" && (t == nil || t.Child != r.ID) || c.Task == "" && a.Child != r.ID {
		return false
	}
	if r.Phase == RunAborted && r.EndCause == "" { // its own gate aborted it: the whole run ends
		d.end(o, RunEnded{Phase: RunAborted, Step: c.Step, Why: r.ID + ": " + r.EndWhy})
		return true
	}
	if len(r.Procs) > 0 || len(r.kids) > 0 {
		return false // its work is still under way
	}
	switch {
	case t != nil && t.Over && !r.Hooked:
		return false // its result is not in the file yet
	case t != nil && t.Over:
		d.put(TaskLeft{of: Of(o.ID), Step: c.Step, Task: t.ID})
	case t != nil:
		d.taskEnded(o, w.Step(c.Step), r, t)
	default:
		d.childEnded(o, w, r, a)
	}
	return true
}

// wants reports whether the attempt that a child run belongs to is still running.
func (r *Run) wants(c *ChildOf) bool {
	a := r.Current(c.Step)
	return r.Phase == RunRunning && a != nil && a.N == c.N && a.State == Running
}

// needed reports whether the run and all its ancestors are still wanted.
func (s *State) needed(r *Run) bool {
	for o := s.Parent(r); o != nil; r, o = o, s.Parent(o) {
		if !o.wants(r.Child) {
			return false
		}
	}
	return true
}

// owesResult reports whether the run is a task's whose result is not yet in the list's file.
func (s *State) owesResult(r *Run) bool {
	o := s.Parent(r)
	if o == nil || !o.wants(r.Child) {
		return false
	}
	t := o.List.Task(r.Child.Task)
	return t != nil && t.Child == r.ID && (!t.Over || o.List.Result != 0)
}

// childEnded handles the end of a step's child run.
func (d *listing) childEnded(o *Run, w *Spec, r *Run, a *Attempt) {
	f := StepSignalled{of: Of(o.ID), Step: r.Child.Step, N: a.N, Status: StatusDone, Via: viaTasks}
	f.Summary, f.Answer = d.lastWord(r)
	if r.Phase != RunCompleted {
		f.Status, f.Failure = StatusFailed, clip(d.whyEnded(r), MaxFeedback)
	} else if answer, err := d.childAnswer(w.Step(r.Child.Step), r, f.Answer); err != nil {
		f.Status, f.Failure, f.Answer = StatusFailed, clip(err.Error(), MaxFeedback), nil
	} else {
		f.Answer = answer
	}
	d.signalled(f)
}

// taskEnded handles the end of a task's run.
func (d *listing) taskEnded(o *Run, st *Step, r *Run, t *Task) {
	e, l := st.ForEach, o.List
	f := TaskEnded{of: Of(o.ID), Step: st.ID, Task: t.ID, State: TaskDone, Hook: st.Child.AfterRun != nil && !r.Hooked}
	var answer json.RawMessage
	f.Summary, answer = d.lastWord(r)
	f.Summary, f.Blockers = clip(f.Summary, maxTaskWords), blockers(answer)
	f.Unblocked = f.Blockers != nil && len(f.Blockers) == 0
	blocked := r.Phase == RunFailed && r.EndCause == causeBlocked
	bad := ""
	if r.Phase == RunCompleted || blocked {
		f.Added, bad = addable(l, answer, "", t.Depth+1)
		if len(f.Added) > 0 && t.Depth+1 > e.MaxDepth {
			f.Added = nil
			d.notice(Notice{ID: r.ID + ".deep", Kind: NoticeInfo, Run: o.ID, Step: st.ID,
				Text: fmt.Sprintf("the new tasks of %s were not added: they would be deeper than max_depth %d", t.ID, e.MaxDepth)})
		}
	}
	if r.Phase == RunCompleted && bad == "" {
		f.Answer, bad = d.taskAnswer(o, st, r, answer)
	}
	switch {
	case r.Phase == RunCompleted && bad == "":
		d.put(f)
		return
	case r.Phase == RunAborted && r.EndCause == CausePerson:
		f.State, f.Held, f.Why = TaskBlocked, true, clip(r.EndWhy, maxTaskWords)
		d.put(f)
		return
	case bad != "":
		f.Added, f.Why = nil, clip(bad, maxTaskWords)
	default:
		f.Why = clip(d.whyEnded(r), maxTaskWords)
	}
	f.Tried = true
	switch {
	case t.Tries+1 < e.Attempts && blocked:
		f.State = TaskBlocked
	case t.Tries+1 < e.Attempts:
		f.State = TaskTodo
	case e.OnExhausted != "" && t.Depth < e.MaxDepth:
		f.State, f.Body = TaskSpent, r.Child.Body
	default:
		f.State = TaskFailed
	}
	d.put(f)
}

// blockers returns the blockers that an answer names, or nil if it has no such list.
func blockers(answer json.RawMessage) []string {
	var keys struct{ Blockers json.RawMessage }
	var out []string
	if json.Unmarshal(answer, &keys) != nil || json.Unmarshal(keys.Blockers, &out) != nil {
		return nil // it names none
	}
	out = out[:min(len(out), maxBlockers)]
	for i := range out {
		out[i] = clip(out[i], maxBlocker)
	}
	return out
}

// lastWord returns the summary and the answer of the step that reported last.
func (d *draft) lastWord(r *Run) (string, json.RawMessage) {
	var last *Attempt
	for _, as := range r.Attempts {
		for _, a := range as {
			if a.Status != "" && (last == nil || a.Since > last.Since) {
				last = a
			}
		}
	}
	if last == nil {
		return "", nil
	}
	return last.Summary, last.Answer
}

// whyEnded returns why a run did not complete, with its latest feedback.
func (d *draft) whyEnded(r *Run) string {
	why := r.EndWhy
	var last *Round
	for _, qs := range r.Rounds {
		for _, q := range qs {
			if q.State != Approved && q.words() != "" && (last == nil || q.Seq > last.Seq) {
				last = q
			}
		}
	}
	if last != nil {
		why += ": " + last.words()
	}
	return why
}
