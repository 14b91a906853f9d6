package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// genChildren makes some steps of a drawn workflow run child runs, at most one of them per task of
// a file.
func genChildren(g *rand.Rand, w *Spec, sh shape) {
	list := -1
	if g.IntN(3) > 0 {
		list = g.IntN(len(w.Steps))
	}
	for i, st := range slices.Clone(w.Steps) {
		switch {
		case i == list:
			genList(g, w, st)
		case g.IntN(6) > 0:
			continue
		}
		if st.ForEach != nil && g.IntN(2) == 0 {
			inlined(w, st)
		} else {
			sub := sh
			sub.child, sub.lists = true, sh.lists-1
			st.Child = genSpec(g, "k", sub)
			st.Child.ID, st.Child.Digest = w.ID+"k", ""
		}
		st.Agent, st.Outputs, st.Timeout, st.Restarts, st.Signal = nil, nil, 0, nil, Signal{Type: SignalExit}
	}
}

// inlined has the step's own agent do each task.
func inlined(w *Spec, st *Step) {
	one := *st
	one.ForEach, one.Outputs, one.Gates, one.Needs, one.HasNeeds, one.ExtNeeds, one.When = nil, nil, []string{st.ID}, nil, false, nil, Cond{}
	st.Child = &Spec{ID: w.ID, Inline: true, Outer: w, Steps: []*Step{&one}, Limits: Limits{MaxSameFailure: 1 << 30}, Gates: []*Gate{{ID: st.ID, Step: st.ID, Implicit: true,
		Reviewer: Reviewer{Level: LevelAuto, FromStep: true}, OnPass: []string{EndDone}, OnFail: EndFailed, OnExhausted: EndFailed, MaxRetries: 1, RetryContext: "rc/" + st.ID + "-{n}.md"}}}
	st.Child.AfterRun = w.AfterRun
	if f := st.Child.Link(); f != nil {
		panic(f)
	}
}

// genList makes a list of the step, with steps that it may visit.
func genList(g *rand.Rand, w *Spec, st *Step) {
	l := &List{MaxParallel: 1 + g.IntN(3), Attempts: 1 + g.IntN(3), MaxDepth: g.IntN(3), Tasks: Text{Source: "tasks", Eval: func(e *Env) (string, error) { return "t-" + e.Run + ".json", nil }}}
	for k, to := range []*string{&l.OnMissing, &l.OnInvalid, &l.OnExhausted} {
		if g.IntN(2) == 0 {
			continue
		}
		id := "m" + strconv.Itoa(k)
		if k == 1 && l.OnMissing != "" && g.IntN(2) == 0 { // one for both
			*to = l.OnMissing
			continue
		}
		w.Steps = append(w.Steps, &Step{ID: id, Agent: &Agent{Type: "r", Launch: LaunchHeadless, Worktree: Text{Source: pick(g, "w0", "w1")}}, Signal: Signal{Type: SignalExit}, Gates: []string{id}})
		w.Gates = append(w.Gates, &Gate{ID: id, Step: id, Implicit: true, Reviewer: Reviewer{Level: LevelAuto, FromStep: true}, OnPass: []string{st.ID},
			OnFail: EndFailed, OnExhausted: EndFailed, MaxRetries: 1, RetryContext: "rc/" + id + "-{n}.md"})
		*to = id
	}
	if g.IntN(4) == 0 { // written from the answers of earlier steps
		for _, o := range w.Steps {
			l.From.Reads = append(l.From.Reads, o.ID)
		}
		l.From.Eval = func(e *Env) (any, error) {
			if e.Attempt%5 == 4 {
				return nil, errors.New("not there yet")
			}
			var b book
			for i := range e.Attempt % 4 {
				b.file = append(b.file, TaskSeen{ID: "T" + strconv.Itoa(i), Status: TaskTodo, Priority: i, Body: json.RawMessage(`{}`)})
			}
			return b.file, nil
		}
	}
	st.ForEach = l
}

// sidesLeadBack reports whether the steps a list visits lead back to it, as in a valid spec.
func sidesLeadBack(w *Spec) bool {
	st := w.List()
	if st == nil {
		return true
	}
	for _, id := range []string{st.ForEach.OnMissing, st.ForEach.OnInvalid, st.ForEach.OnExhausted} {
		if id != "" && !w.LeadsTo(id, st.ID) {
			return false
		}
	}
	return true
}

// at returns the task file of a run's list. At the first look it has a few tasks, is missing or is
// invalid.
func (w *sim) at(r *Run) *book {
	b := w.books[r.List.Path]
	if b == nil {
		b = &book{stamp: 1}
		for i := range w.g.IntN(5) {
			b.add(w.g, "T"+strconv.Itoa(i))
		}
		if b.gone = w.g.IntN(6) == 0; w.g.IntN(8) == 0 {
			b.bad = "no JSON"
		}
		w.books[r.List.Path] = b
	}
	return b
}

// add adds a task that may depend on those before it.
func (b *book) add(g *rand.Rand, id string) {
	if b.status(id) != "-" {
		return
	}
	x := TaskSeen{ID: id, Title: "do " + id, Status: pick(g, TaskTodo, TaskTodo, TaskTodo, TaskDoing, TaskDone, TaskBlocked), Priority: g.IntN(3), Body: json.RawMessage(`{"id":"` + id + `"}`)}
	if n := len(b.file); n > 0 && g.IntN(2) == 0 {
		x.DependsOn = []string{b.file[g.IntN(n)].ID}
	}
	b.file = append(b.file, x)
}

// taskFile reads a task file, or writes it if it is unchanged.
func (w *sim) taskFile(e Effect) {
	r := w.st.Runs[e.Run]
	b := w.at(r)
	if w.calm && (b.gone || b.bad != "") {
		b.gone, b.bad = false, ""
		b.stamp++
	}
	if e.Kind == DoSave && len(r.List.Make) > 0 {
		w.makeFile(e, b, r.List.Make)
		return
	}
	if e.Kind == DoTasks || r.List.Seen != strconv.Itoa(b.stamp) || b.gone || b.bad != "" {
		w.handle(&told{ev: TasksSeen{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: strconv.Itoa(b.stamp), Missing: b.gone, Invalid: b.bad, Tasks: slices.Clone(b.file)}})
		return
	}
	b.save(r.List)
	if w.p(0.03) { // cut short: it is in the file, and nobody knows
		return
	}
	ev := TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: strconv.Itoa(b.stamp)}
	if w.p(0.03) {
		b.stamp--
		ev.Stamp, ev.Why = "", "the disk is full"
	}
	w.handle(&told{ev: ev})
}

// makeFile writes a task file from a value.
func (w *sim) makeFile(e Effect, b *book, from json.RawMessage) {
	ev := TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key}
	if w.p(0.05) {
		ev.Why = "it is there already"
		w.handle(&told{ev: ev})
		return
	}
	b.gone, b.bad, b.file = false, "", nil
	if err := json.Unmarshal(from, &b.file); err != nil {
		w.fail("%s: a list is made of %s", e.Run, from)
	}
	b.stamp++
	if w.p(0.05) { // cut short: it is there, and nobody knows
		return
	}
	w.handle(&told{ev: ev})
}

// worked adds what a step's process leaves besides its signal: a task file, new tasks.
func (w *sim) worked(p *simProc, ev *ProcessEnded) {
	r := w.st.Runs[p.run]
	w.ids++
	fresh := json.RawMessage(fmt.Sprintf(`{"new_tasks":[{"id":"N%d","title":"more"},{"title":"no id","depends_on":["N%d"]}]}`, w.ids, w.ids))
	if c := r.Child; c != nil && c.Task != "" && w.p(0.1) {
		ev.Answer = fresh
	}
	st := w.spec(r.Digest).List()
	if st == nil || r.List == nil || p.status != StatusDone || p.exit != (Exit{}) {
		return
	}
	switch e := st.ForEach; p.step {
	case e.OnMissing, e.OnInvalid:
		if b := w.at(r); !w.p(0.2) {
			b.gone, b.bad = false, ""
			b.stamp++
		}
	case e.OnExhausted:
		if w.g.IntN(3) > 0 {
			ev.Answer = fresh
		}
	}
}

// edit is a change to a task file by a person, or by an agent that was not asked to.
func (w *sim) edit(r *Run) {
	b := w.at(r)
	b.stamp++
	i := 0
	if len(b.file) > 0 {
		i = w.g.IntN(len(b.file))
	}
	switch k := w.g.IntN(8); {
	case k == 0:
		b.gone = !b.gone
	case k == 1:
		b.bad = pick(w.g, "", "no JSON")
	case k < 4 || len(b.file) == 0:
		w.ids++
		b.add(w.g, "H"+strconv.Itoa(w.ids))
	case k == 4:
		b.file = slices.Delete(slices.Clone(b.file), i, i+1) // dependencies on it make the file invalid
	case k == 5:
		b.file[i].DependsOn = []string{pick(w.g, b.file...).ID} // a cycle, perhaps
	default:
		b.file[i].Status = pick(w.g, TaskTodo, TaskDoing, TaskDone, TaskBlocked)
	}
}

// checkLists checks the rules of lists, tasks and child runs (8-semantics 15a, 29 and 34).
func (w *sim) checkLists(t *told, facts []Fact) {
	for _, id := range w.st.Order {
		if r := w.st.Runs[id]; r.Child != nil {
			w.checkChild(r)
		}
		if r := w.st.Runs[id]; r.List != nil {
			w.checkList(r)
		}
	}
	for _, f := range facts {
		switch f := f.(type) {
		case RunStarted:
			if f.Child != nil {
				w.checkUnpaused(f.Child.Parent, "the start of "+f.Run, facts)
				w.checkBegun(f)
			}
		case TaskEnded:
			w.checkTaskEnded(f)
		case ListSent:
			if l := w.st.Runs[f.Run].List; slices.ContainsFunc(l.Tasks, func(x *Task) bool { return x.Child != "" }) {
				w.fail("the list of %s went to %s while its tasks run", f.Run, f.To)
			}
		case StepSignalled:
			if l := w.st.Runs[f.Run].List; f.Via == viaTasks && l != nil && l.Step == f.Step && l.survey(99).alive > 0 {
				w.fail("the list of %s says that it is over, and tasks run", f.Run)
			}
		case RoundPassed:
			r := w.st.Runs[f.Run]
			g := w.spec(r.Digest).Gate(f.Gate)
			if l := r.List; l != nil && l.Step == g.Step && g.Reviewer.FromStep && (f.ByKind == "step" || f.ByKind == "reviewer") {
				if n := l.Tally(); n.Done != n.Total {
					w.fail("the list of %s passed by its own word with %+v", f.Run, n)
				}
			}
		}
	}
}

// checkChild: a child run is live only for a parent that wants it, and pauses with it.
func (w *sim) checkChild(k *Run) {
	o := w.st.Runs[k.Child.Parent]
	if !k.Live() {
		return
	}
	switch {
	case o == nil || !o.Live():
		w.fail("%s lives and its parent does not", k.ID)
		return
	case o.Paused && !k.Paused:
		w.fail("%s goes on and its parent is paused", k.ID)
	case !strings.HasPrefix(k.Digest, o.Digest+"/"):
		w.fail("%s is not pinned to the specs of %s", k.ID, o.ID)
	}
	a := o.Current(k.Child.Step)
	if a == nil || a.N != k.Child.N || a.State != Running {
		w.fail("%s lives and its step is not at work", k.ID)
		return
	}
	if x := o.List.Task(k.Child.Task); k.Child.Task != "" && (x == nil || x.Child != k.ID) || k.Child.Task == "" && a.Child != k.ID {
		w.fail("%s lives and nobody knows of it", k.ID)
	}
}

func (w *sim) checkList(r *Run) {
	st := w.spec(r.Digest).List()
	if n := r.List.survey(99).alive; n > st.ForEach.MaxParallel {
		w.fail("%s: %d tasks at a time", r.ID, n)
	}
	for _, x := range r.List.Tasks {
		if x.Tries > st.ForEach.Attempts {
			w.fail("%s: %s has had %d tries", r.ID, x.ID, x.Tries)
		}
		if x.Depth > st.ForEach.MaxDepth+1 {
			w.fail("%s: %s is %d deep", r.ID, x.ID, x.Depth)
		}
		if k := w.st.Runs[x.Child]; x.Child != "" && (k == nil || k.Child == nil || k.Child.Task != x.ID) {
			w.fail("%s: the run %s of %s is not there", r.ID, x.Child, x.ID)
		}
	}
}

func (w *sim) checkBegun(f RunStarted) {
	o := w.st.Runs[f.Child.Parent]
	if f.Child.Task == "" || o.List == nil {
		return
	}
	if x := o.List.Task(f.Child.Task); x == nil || x.Child == f.Run && !o.List.free(x) {
		w.fail("%s begins and what it depends on is not done", f.Run)
	}
	if o.Allowance > 0 && o.Begun > o.Allowance {
		w.fail("%s begins as step %d of %d", f.Run, o.Begun, o.Allowance)
	}
}

// checkTaskEnded: a task is done only by a completed run.
func (w *sim) checkTaskEnded(f TaskEnded) {
	var last *Run
	for _, id := range w.st.Order {
		if k := w.st.Runs[id]; k.Child != nil && k.Child.Parent == f.Run && k.Child.Task == f.Task {
			last = k
		}
	}
	// its hook follows, at once if the file is invalid
	busy := func(p *Proc) bool { return !f.Hook || p.Kind != ProcHook }
	if last == nil || last.Live() || slices.ContainsFunc(last.Procs, busy) {
		w.fail("%s: the end of task %s, whose run is not over", f.Run, f.Task)
	} else if (f.State == TaskDone) != (last.Phase == RunCompleted) && !(last.Phase == RunCompleted && f.Tried) {
		w.fail("%s: task %s is %s, its run is %s", f.Run, f.Task, f.State, last.Phase)
	}
}

// lists counts the history's lists and child runs.
func (w *sim) lists() map[string]int {
	n := map[string]int{}
	for _, l := range w.journal {
		for _, f := range l.facts {
			switch f := f.(type) {
			case RunStarted:
				if f.Fired != nil {
					n["runs of triggers"]++
				}
				if f.Child != nil {
					n["child runs"]++
				}
				if f.Child != nil && strings.Count(f.Run, ".") > 3 {
					n["children of children"]++
				}
			case TaskEnded:
				if n["tasks added"] += len(f.Added); f.State == TaskDone {
					n["tasks done"]++
				} else if f.State == TaskTodo {
					n["tasks tried again"]++
				}
			case ListBegan:
				if len(f.Make) > 0 {
					n["lists made"]++
				}
			case ListSent:
				n["sent to "+f.Why]++
			}
		}
	}
	return n
}
