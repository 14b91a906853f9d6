package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// endPhase returns the phase of a run that ends at a target: aborted, unless that is EndFailed.
func endPhase(target string) string {
	if target == EndFailed {
		return RunFailed
	}
	return RunAborted
}

// end ends the run at once, undoes its live work and stops its processes.
func (d *ending) end(r *Run, f RunEnded) {
	if !r.Live() {
		return
	}
	if l := r.List; l != nil && l.Dirty && l.Writing == 0 && l.File == FileOK && l.Seen != "" {
		d.put(TasksWriteOwed{of: Of(r.ID), Step: l.Step})
	}
	f.of = Of(r.ID)
	d.put(f)
	for _, k := range slices.Clone(r.kids) {
		d.end(k, RunEnded{Phase: RunAborted, Why: "its parent " + r.ID + " is over", Cause: causeParent})
	}
	if r.Child != nil { // its parent reports it
		d.forget(r.flow)
		return
	}
	d.notice(Notice{ID: r.ID + ".ended-" + strconv.FormatInt(d.s.Clock, 10), Kind: NoticeEnded, Run: r.ID,
		Step: f.Step, Text: f.Why})
	d.forget(r.flow)
}

// complete ends a run that has nothing left to do, once its work is where the spec names.
func (d *ending) complete(r *Run, w *Spec) {
	if d.lands(r, w) {
		return
	}
	why := r.List.left()
	if r.Unlanded != "" {
		why = clip(strings.TrimPrefix(why+"; not landed: "+r.Unlanded, "; "), MaxFeedback)
	}
	d.end(r, RunEnded{Phase: RunCompleted, Why: why})
}

// afterRun starts the hook of an ended run once all its processes are gone and, for a task, the
// file has its result.
func (d *ending) afterRun(r *Run, w *Spec) {
	if r.Live() || r.Hooked || w.AfterRun == nil || len(r.Procs) > 0 || len(r.kids) > 0 || d.s.owesResult(r) {
		return
	}
	d.put(HookStarted{of: Of(r.ID), N: int(d.s.Clock), Key: r.ID + "/after_run-" + strconv.FormatInt(d.s.Clock, 10),
		Deadline: d.at.Add(time.Duration(d.s.Config.Timeout))})
}

// settles reports whether the parent has yet to take in the child run's end.
func (d *ending) settles(r *Run) bool {
	o := d.s.Parent(r)
	if o == nil {
		return false
	}
	if t := o.List.Task(r.Child.Task); t != nil {
		return t.Child == r.ID
	}
	a := o.Current(r.Child.Step)
	return a != nil && a.Child == r.ID
}

// forget removes the workflow's oldest ended runs, so that a start costs the live runs, not the
// history.
func (d *ending) forget(flow *workflow) {
	var ended []*Run
	keep := KeepEnded
	for _, r := range flow.ended {
		if r.Child != nil {
			keep = KeepChildren
		}
		if len(r.Procs) == 0 && len(r.Writes) == 0 && len(r.kids) == 0 && !d.settles(r) {
			ended = append(ended, r)
		}
	}
	for i := 0; i < len(ended)-keep; i++ {
		d.forgetRun(ended[i])
	}
}

// forgetRun forgets a run and its children.
func (d *ending) forgetRun(r *Run) {
	for _, k := range d.s.Children(r.ID) {
		d.forgetRun(k)
	}
	d.put(RunForgotten{of: Of(r.ID)})
}
