package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/internal/text"
)

// list makes one move in the running attempt of a list.
func (d *listing) list(r *Run, w *Spec, st *Step, a *Attempt) {
	l := r.List
	if l == nil || l.N != a.N {
		d.beginList(r, w, st, a)
		return
	}
	seen := d.look
	if seen != nil && (seen.Run != r.ID || seen.Step != st.ID) {
		seen = nil
	}
	if seen != nil && seen.Stamp != l.Seen {
		d.readTasks(r, st.ForEach, seen)
		return
	}
	if d.writeDue(l) {
		d.put(TasksWriteOwed{of: Of(r.ID), Step: st.ID})
		return
	}
	if l.Result == 0 {
		d.letHooks(l)
	}
	if l.Result != 0 || l.Writing != 0 {
		d.look = nil
		return
	}
	if !l.Looked && seen == nil {
		return
	}
	if r.Paused { // take in the file, but start nothing
		if seen != nil && !l.Looked {
			d.put(TasksLooked{of: Of(r.ID), Step: st.ID})
		}
		d.look = nil
		return
	}
	d.workList(r, w, st, a, seen)
}

// workList starts, sends or ends a list whose file is taken in, as far as its tasks stand.
func (d *listing) workList(r *Run, w *Spec, st *Step, a *Attempt, seen *TasksSeen) {
	l := r.List
	s := l.survey(st.ForEach.Attempts)
	settled := !l.Dirty && l.Writing == 0
	switch {
	case l.Ratio > 0 && s.Total > 0 && float64(s.Failed) > l.Ratio*float64(s.Total):
		d.limit(r, w, maxFailedRatio, st.ID)
	case l.File != FileOK || s.spent != nil:
		if s.alive == 0 {
			d.sendList(r, w, st, a, s.spent, settled)
		}
	case l.Back != "":
		d.takeFeedback(r, l)
		return // the next move can use this look
	case s.next != nil && l.usedUp(st.ForEach) && l.UsedUp: // its gate has already seen this
		d.failList(r, st, a, viaTasks, fmt.Sprintf("max_tries %d is used up, and %s", st.ForEach.MaxTries, l.left()))
	case s.next != nil && l.usedUp(st.ForEach):
		if s.alive == 0 && settled {
			d.endList(r, st, a, s.Tally)
		}
	case s.next != nil && s.alive < st.ForEach.MaxParallel:
		if seen != nil {
			d.startTask(r, w, st, a, s.next, seen)
		}
	case s.next == nil && s.alive == 0 && settled:
		d.endList(r, st, a, s.Tally)
	}
	if seen != nil && l.N == a.N && r.Current(st.ID) == a && a.State == Running && !l.Looked && !l.startedNow(d) {
		d.put(TasksLooked{of: Of(r.ID), Step: st.ID})
	}
}

// letHooks lets runs go on whose results are in the file: their hooks are due.
func (d *listing) letHooks(l *TaskList) {
	for _, t := range l.Tasks {
		if t.Over {
			d.again.add(d.s.Runs[t.Child])
		}
	}
}

// usedUp reports whether max_tries forbids more tries.
func (l *TaskList) usedUp(e *List) bool { return l != nil && e.MaxTries > 0 && l.Used >= e.MaxTries }

// startedNow reports whether this look led to a start; the next start needs another look.
func (l *TaskList) startedNow(d *listing) bool {
	d.look = nil
	return slices.ContainsFunc(d.out,
		func(f Fact) bool { s, ok := f.(RunStarted); return ok && s.Child != nil && s.Child.Step == l.Step })
}

const maxFailedRatio = "max_failed_ratio"

// writeDue reports whether to write the file now: at most once a second unless a hook waits for it,
// and not while something else writes it.
func (d *listing) writeDue(l *TaskList) bool {
	return l.Dirty && l.Writing == 0 && l.File == FileOK && l.Seen != "" &&
		(l.Result != 0 || !d.at.Before(l.Wrote.Add(time.Duration(WriteEvery))))
}

// beginList starts or resumes the tasks in a new attempt.
func (d *listing) beginList(r *Run, w *Spec, st *Step, a *Attempt) {
	f := ListBegan{of: Of(r.ID), Step: st.ID, N: a.N, Ratio: w.Limits.MaxFailedRatio, Out: r.List.usedUp(st.ForEach)}
	var err error
	if f.Path, err = st.ForEach.Tasks.String(d.s.StepEnv(r, w, st.ID, a.N)); err == nil && f.Path == "" {
		err = fmt.Errorf("%s is empty", st.ForEach.Tasks.Source)
	}
	if err != nil {
		d.failList(r, st, a, viaSpec, "for_each: tasks: "+err.Error())
		return
	}
	f.Made = slices.ContainsFunc(w.Steps, func(o *Step) bool { // a step with the file as an output has passed since
		b := r.Current(o.ID)
		return b.Done() && r.makes(w, o, f.Path, d.s) && (r.List == nil || b.Since > r.List.Since)
	})
	f.Path = r.below(f.Path)
	if f.Make, f.Source, err = d.fromAnswer(r, w, st, a); err != nil {
		d.failList(r, st, a, viaSpec, err.Error())
		return
	}
	if l := r.List; l != nil && l.To != "" {
		f.Keep = true
		if by := r.Current(l.To); by.Done() {
			f.Added, f.Why = standIns(l, by.Answer)
		}
	}
	d.put(f)
	if f.Why != "" {
		d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.tasks", r.ID, st.ID, a.N), Kind: NoticeInfo, Run: r.ID, Step: st.ID,
			Text: f.Why})
	}
}

// makes reports whether the file is an output of the step.
func (r *Run) makes(w *Spec, st *Step, file string, s *State) bool {
	return slices.ContainsFunc(st.Outputs, func(o Output) bool {
		p, err := o.Path.String(s.StepEnv(r, w, st.ID, 1))
		return err == nil && p == file
	})
}

// standIns returns the new tasks from the step that the list visited. They replace the task that it
// went for, if any.
func standIns(l *TaskList, answer json.RawMessage) (more []Task, why string) {
	if t := l.Task(l.For); t != nil {
		more, why = addable(l, answer, t.ID, t.Depth+1)
	} else {
		more, why = addable(l, answer, "", 0)
	}
	if why != "" {
		why = "its new tasks were not added: " + why
	}
	return more, why
}

// addable returns an answer's new tasks, which stand for a task if it is not "", or why they cannot
// be added to the list.
func addable(l *TaskList, answer json.RawMessage, stand string, depth int) ([]Task, string) {
	more, why := newTasks(l, answer, cmp.Or(stand, "N"))
	for i := range more {
		more[i].Depth, more[i].For = depth, stand
	}
	if why == "" && len(more) > 0 {
		why = tasksFault(l.with(more))
	}
	if why != "" {
		return nil, why
	}
	return more, ""
}

// badTasks returns why the new tasks in a step's answer cannot be added to the run's list. That is
// a failure of the work, like an answer that violates its schema.
func badTasks(r *Run, step string, answer json.RawMessage) string {
	l := r.List
	if l == nil || l.To != step {
		return ""
	}
	_, why := standIns(l, answer)
	return why
}

// takeFeedback handles a gate that sent the list back. If all tasks were done and none was added,
// the feedback becomes a task.
func (d *listing) takeFeedback(r *Run, l *TaskList) {
	f := FeedbackTaken{of: Of(r.ID)}
	if n := l.Tally(); n.Done == n.Total {
		t := Task{ID: fmt.Sprintf("%s-%d", l.Back, l.Backs), State: TaskTodo,
			Title: clip("what "+l.Back+" found", maxTitle), Priority: NoPriority}
		for i := 1; l.Task(t.ID) != nil; i++ {
			t.ID = fmt.Sprintf("%s-%d.%d", l.Back, l.Backs, i)
		}
		t.Body, _ = json.Marshal(map[string]string{"id": t.ID, "title": t.Title, "description": l.Words})
		f.Added = []Task{t}
	}
	d.put(f)
}

// sendList sends the list to the configured step because its file is missing or invalid or a task
// has used its tries. Without such a step, or after two visits for the file, the list fails.
func (d *listing) sendList(r *Run, w *Spec, st *Step, a *Attempt, spent *Task, settled bool) {
	l, e := r.List, st.ForEach
	f := ListSent{of: Of(r.ID), Step: st.ID, N: a.N}
	switch {
	case l.File == FileMissing && e.OnMissing != "" && l.Missing < maxFileGoes:
		f.To, f.Why, f.Text = e.OnMissing, FileMissing, l.Path+" is missing"
	case l.File == FileInvalid && e.OnInvalid != "" && l.Invalid < maxFileGoes:
		f.To, f.Why, f.Text = e.OnInvalid, FileInvalid, l.Why
	case l.File == FileMissing:
		d.failList(r, st, a, viaTasks, "the task file "+l.Path+" is missing")
		return
	case l.File != FileOK:
		d.failList(r, st, a, viaTasks, "the task file cannot be used: "+l.Why)
		return
	case !settled: // the step reads the file
		return
	default:
		f.To, f.Why, f.Task, f.Text = e.OnExhausted, "exhausted", spent.ID, spent.Why
	}
	d.put(f)
	d.undo(r, w, f.To, "", false, "the list goes to "+f.To+": "+f.Why)
	if !r.led(w, f.To) {
		d.put(WorkSent{of: Of(r.ID), Step: f.To, From: st.ID})
	}
}

func (d *listing) failList(r *Run, st *Step, a *Attempt, via, why string) {
	d.signalled(StepSignalled{of: Of(r.ID), Step: st.ID, N: a.N, Status: StatusFailed, Via: via,
		Failure: clip(why, MaxFeedback)})
}

// viaTasks marks the result of a list, or of a step that is a child run.
const viaTasks = "tasks"

// endList ends a list whose tasks are all settled, with whatever result.
func (d *listing) endList(r *Run, st *Step, a *Attempt, n Tally) {
	answer, _ := json.Marshal(n)
	d.put(StepSignalled{of: Of(r.ID), Step: st.ID, N: a.N, Status: StatusDone, Via: viaTasks,
		Summary: clip(r.List.words(n), MaxFeedback), Answer: answer})
}

// words returns the list's progress and what is not done.
func (l *TaskList) words(n Tally) string {
	out := fmt.Sprintf("%d of %d tasks are done", n.Done, n.Total)
	others := slices.DeleteFunc(slices.Clone(l.Tasks), func(t *Task) bool { return t.State != TaskDone || t.Runs > 0 })
	if len(others) > 0 { // the file said so
		out += fmt.Sprintf(", %d of them not by this run", len(others))
	}
	for _, t := range l.Tasks {
		if t.State == TaskDone || l.StoodFor(t) {
			continue
		}
		why := text.Brief(t.Why)
		if t.Held {
			why = "its run was aborted by a person"
		} else if why == "" && t.State == TaskTodo && !l.free(t) {
			why = "what it depends on is not done"
		} else if why == "" && t.State == TaskTodo {
			why = "max_tries is used up"
		}
		out += withWords(fmt.Sprintf(".\n%s is %s", t.ID, t.State), why)
	}
	return out
}

// left returns which tasks are not done, or "".
func (l *TaskList) left() string {
	n, each := l.Tally(), []string{}
	if n.Done == n.Total {
		return ""
	}
	for _, t := range l.Tasks {
		switch {
		case l.Done(t) || l.StoodFor(t):
		case len(each) == maxLeft:
			return fmt.Sprintf("%d of %d tasks are not done: %s and %d more", n.Total-n.Done, n.Total,
				strings.Join(each, ", "), n.Total-n.Done-maxLeft)
		case t.doing():
			each = append(each, t.ID+" is begun")
		case t.State != TaskTodo:
			each = append(each, t.ID+" is "+l.Status(t))
		default:
			each = append(each, t.ID+" was not tried"+l.waitsFor(t))
		}
	}
	return fmt.Sprintf("%d of %d tasks are not done: %s", n.Total-n.Done, n.Total, strings.Join(each, ", "))
}

// maxLeft is how many tasks the end of a run names.
const maxLeft = 10

// waitsFor returns what a task waits for.
func (l *TaskList) waitsFor(t *Task) string {
	for _, id := range t.DependsOn {
		if x := l.by[id]; x != nil && !l.Done(x) {
			return " (it waits for " + id + ")"
		}
	}
	return ""
}

// startTask starts a task's next run.
func (d *listing) startTask(r *Run, w *Spec, st *Step, a *Attempt, t *Task, seen *TasksSeen) {
	if r.Allowance > 0 && r.Begun >= r.Allowance {
		d.limit(r, w, "max_steps", st.ID)
		return
	}
	body := t.Body
	for i := range seen.Tasks {
		if x := &seen.Tasks[i]; x.ID == t.ID && len(x.Body) > 0 && (!x.Gone || len(body) == 0) {
			body = x.Body
		}
	}
	d.startChild(r, w, st, ChildOf{N: a.N, Task: t.ID, Try: t.Tries + 1, Depth: t.Depth, Body: body, Turn: r.List.Turns})
}

// tasksSeen handles a look at the task file.
func (d *listing) tasksSeen(ev TasksSeen) {
	r, w := d.live(ev.Run)
	if r == nil {
		// others wrote the file: it is theirs
		if o := d.s.Runs[ev.Run]; o != nil && o.List != nil && ev.Key == writeKey(o.ID, o.List) {
			d.put(TasksWritten{of: Of(o.ID), Step: ev.Step, Why: "the file was changed by others"})
		}
		return
	}
	a, l := r.Current(ev.Step), r.List
	if a == nil || a.N != ev.N || a.State != Running || l == nil || l.N != a.N || w.Step(ev.Step) == nil ||
		w.Step(ev.Step).ForEach == nil {
		return
	}
	if ev.Key != lookKey(r.ID, l) && ev.Key != writeKey(r.ID, l) {
		return // another look is owed by now
	}
	d.look = &ev
	d.again.add(r)
}

// tasksSaved handles the written task file.
func (d *listing) tasksSaved(ev TasksSaved) {
	r := d.s.Runs[ev.Run]
	if r == nil || r.List == nil || ev.Key != writeKey(r.ID, r.List) {
		return
	}
	making, w := len(r.List.Make) > 0, d.spec(r)
	if making && ev.Why != "" && w == nil && r.Live() {
		return // the list must fail by its spec: the debt stays until the spec can be read
	}
	d.put(TasksWritten{of: Of(r.ID), Step: ev.Step, Stamp: ev.Stamp, Why: clip(ev.Why, maxTaskWords)})
	if making {
		if a := r.Current(ev.Step); ev.Why != "" && r.Phase == RunRunning && a != nil && a.N == r.List.N &&
			a.State == Running {
			d.failList(r, w.Step(ev.Step), a, viaTasks, ev.Why)
		}
		return
	}
	if ev.Why != "" {
		d.notice(Notice{ID: r.ID + ".tasks-unwritten", Kind: NoticeInfo, Run: r.ID, Step: ev.Step,
			Text: clip(ev.Why, 2000), Once: true})
	}
}

// lookKey returns the key of the look that is owed.
func lookKey(run string, l *TaskList) string {
	return run + "/" + l.Step + "#" + strconv.Itoa(l.N) + ".look-" + strconv.FormatInt(l.Since, 10)
}

// writeKey returns the key of the write under way, or "".
func writeKey(run string, l *TaskList) string {
	if l.Writing == 0 {
		return ""
	}
	return run + "/" + l.Step + "#" + strconv.Itoa(l.N) + ".write-" + strconv.FormatInt(l.Writing, 10)
}
