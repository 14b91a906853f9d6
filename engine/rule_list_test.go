package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// listed is a list's world: a script with a task file.
type listed struct {
	*script
	book
	books map[string]*book                  // the files of lists within the list's tasks
	told  int                               // facts that were checked
	plays func(task string, try int) string // the result of a task's step: done, failed, blocked
	new   func(step, task string) string    // the new_tasks of an answer, as JSON
	made  func(step string)                 // what a step outside the list does
	order []string                          // the runs of tasks that ended

	blockers func(task string) []string // of its answer

	makes      []string // the lists written from an answer, task by task
	unwritable string   // why such a one cannot be written

	judges func() bool // the verdict of the list's reviewer; nil: pass
}

// book is a task file.
type book struct {
	file  []TaskSeen
	gone  bool   // there is no file
	bad   string // it is invalid
	stamp int
}

// at returns the file of a run's list; a new one has two todo tasks.
func (l *listed) at(r *Run) *book {
	if r.Child == nil {
		return &l.book
	}
	b := l.books[r.List.Path]
	if b == nil {
		b = &book{stamp: 1}
		for _, id := range []string{"I", "J"} {
			b.file = append(b.file, TaskSeen{ID: id, Title: "do " + id, Status: TaskTodo, Priority: NoPriority, Body: json.RawMessage(`{"id":"` + id + `"}`)})
		}
		set(&l.books, r.List.Path, b)
	}
	return b
}

// aList is a step that an agent does for each task.
func aList(e List, more ...func(*Step)) *Step {
	st := &Step{ID: "work", Name: "work", Gates: []string{"gwork"}, ForEach: &e, Signal: Signal{Type: SignalExit}}
	if e.MaxParallel == 0 {
		st.ForEach.MaxParallel = 1
	}
	if e.Tasks.Source == "" {
		st.ForEach.Tasks = Text{Source: "to-do.json"}
	}
	one, g := ungated("work", to(EndDone))
	one.Signal = Signal{Type: SignalExit}
	one.Agent.Worktree = Text{Source: "w", Eval: func(env *Env) (string, error) { return fmt.Sprint("w-", env.Task["id"]), nil }}
	st.Child = flow("x", one, g)
	st.Child.Inline = true
	st.Child.Link()
	for _, m := range more {
		m(st)
	}
	return st
}

// side is a step that the list may visit.
func side(id string) (*Step, *Gate) {
	st, g := ungated(id, to("work"))
	st.Signal = Signal{Type: SignalExit}
	return st, g
}

func listGate(more ...func(*Gate)) *Gate {
	g := aGate("work", to(EndDone), more...)
	g.Reviewer = Reviewer{Level: LevelAuto, FromStep: true}
	return g
}

// judgedGate has a reviewer judge the list, whatever its result.
func judgedGate(more ...func(*Gate)) *Gate {
	g := listGate(more...)
	g.Reviewer = Reviewer{Level: LevelAuto, AgentType: "reviewer"}
	return g
}

// tasksOf starts a run of a workflow with a list over the tasks: "A", "B:A" depends on A, "C!1" has
// priority 1.
func tasksOf(t *testing.T, rule, sentence string, tasks string, parts ...any) *listed {
	t.Helper()
	if rule != "" {
		conform.Rule(t, rule, sentence)
	}
	l := &listed{script: &script{world: newWorld(t, flow("x", parts...))}, book: book{stamp: 1}}
	l.specs["d-x"].graph.steps["work"].Child.Outer = l.specs["d-x"]
	l.plays = func(string, int) string { return "done" }
	l.new = func(string, string) string { return "" }
	l.made = func(string) {}
	l.write(tasks)
	l.start("x")
	return l
}

func (l *listed) write(tasks string) {
	l.file = nil
	for w := range strings.FieldsSeq(tasks) {
		id, deps, _ := strings.Cut(w, ":")
		id, prio, _ := strings.Cut(id, "!")
		x := TaskSeen{ID: id, Title: "do " + id, Status: TaskTodo, Priority: NoPriority, Body: json.RawMessage(`{"id":"` + id + `"}`)}
		if prio != "" {
			x.Priority, _ = strconv.Atoi(prio)
		}
		if deps != "" {
			x.DependsOn = strings.Split(deps, ",")
		}
		l.file = append(l.file, x)
	}
	l.stamp++
}

// edit changes a status by hand.
func (l *listed) edit(id, status string) {
	for i := range l.file {
		if l.file[i].ID == id {
			l.file[i].Status = status
		}
	}
	l.stamp++
}

func (b *book) status(id string) string {
	for _, x := range b.file {
		if x.ID == id {
			return x.Status
		}
	}
	return "-"
}

func (l *listed) seen(e Effect) {
	b := l.at(l.st.Runs[e.Run])
	l.do(TasksSeen{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: fmt.Sprint(b.stamp), Missing: b.gone, Invalid: b.bad, Tasks: slices.Clone(b.file)})
}

// save writes the statuses of a list into its file.
func (b *book) save(l *TaskList) {
	for _, t := range l.Tasks {
		if t.Writing == "" {
			continue
		}
		if b.status(t.ID) == "-" {
			b.file = append(b.file, TaskSeen{ID: t.ID, Title: t.Title, Priority: t.Priority, DependsOn: t.DependsOn, Body: t.Body, For: t.For})
		}
		for i := range b.file {
			if b.file[i].ID == t.ID {
				b.file[i].Status = t.Writing
			}
		}
	}
	b.stamp++
}

// carry carries out one effect.
func (l *listed) carry(e Effect) {
	l.t.Helper()
	r := l.st.Runs[e.Run]
	switch e.Kind {
	case DoTasks:
		l.seen(e)
	case DoSave:
		b := l.at(r)
		if len(r.List.Make) > 0 {
			l.make(e, b, r.List)
			return
		}
		if r.List.Seen != fmt.Sprint(b.stamp) || b.gone || b.bad != "" {
			l.seen(e)
			return
		}
		b.save(r.List)
		l.do(TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: fmt.Sprint(b.stamp)})
	case DoNotify:
		l.do(Noticed{Run: e.Run, ID: e.Key})
	case DoWrite:
		l.do(FileWritten{Run: e.Run, ID: e.Key})
	case DoStop:
		l.do(ProcessEnded{Run: e.Run, Key: e.Key, Exit: Exit{Stopped: true, Signal: "terminated"}})
	case DoRun:
		l.ends(r, e)
	}
}

// make writes a list's file from a value.
func (l *listed) make(e Effect, b *book, of *TaskList) {
	l.t.Helper()
	ev := TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Why: l.unwritable}
	var list []TaskSeen
	if of.Make[0] == '"' {
		for id := range strings.FieldsSeq(strings.Trim(string(of.Make), `"`)) {
			list = append(list, TaskSeen{ID: id, Title: "do " + id, Status: TaskTodo, Priority: NoPriority, Body: json.RawMessage(`{"id":"` + id + `"}`)})
		}
	} else if err := json.Unmarshal(of.Make, &list); err != nil {
		l.t.Fatal(err)
	}
	if l.unwritable == "" {
		for _, x := range list {
			l.makes = append(l.makes, x.ID)
		}
		b.file, b.gone = list, false
		b.stamp++
		ev.Stamp = fmt.Sprint(b.stamp)
	}
	l.do(ev)
}

// ends ends a process as played.
func (l *listed) ends(r *Run, e Effect) {
	ev := ProcessEnded{Run: e.Run, Key: e.Key}
	switch e.Proc.Kind {
	case ProcHook:
		if c := r.Child; c != nil && c.Task != "" {
			l.order = append(l.order, fmt.Sprintf("%s hook %s", c.Task, l.at(l.st.Runs[c.Parent]).status(c.Task)))
		}
	case ProcCheck:
		ev.Check = &CheckResult{OK: true, Digest: "d"}
	case ProcReview:
		ev.Verdict = &Judgement{Outcome: OutcomePass}
		if l.judges != nil && !l.judges() {
			ev.Verdict = &Judgement{Outcome: OutcomeFail, Feedback: "it is not whole"}
		}
	case ProcStep:
		task, word := "", "done"
		if c := r.Child; c != nil {
			task, word = c.Task, l.plays(c.Task, c.Try)
			l.order = append(l.order, fmt.Sprintf("%s.%d %s", task, c.Try, word))
			if word == "aborted" {
				l.do(AbortRequested{Run: r.ID, By: Actor{Who: "ann"}})
				return
			}
		} else {
			l.made(e.Step)
			if r.List != nil {
				task = r.List.For
			}
		}
		answer := map[string]any{"status": word}
		if n := l.new(e.Step, task); n != "" { // of a task, or of the step that the list visits for one
			answer["new_tasks"] = json.RawMessage(n)
		}
		if l.blockers != nil {
			answer["blockers"] = l.blockers(task)
		}
		ev.Answer, _ = json.Marshal(answer)
	}
	l.do(ev)
}

// drive carries out what is owed, until nothing is left or n effects were carried out.
func (l *listed) drive(n int) bool {
	l.t.Helper()
	for range n {
		owed := l.st.Owed(l.spec)
		if len(owed) == 0 {
			at := l.st.Wake(l.now)
			if at.IsZero() || at.After(l.now.Add(time.Minute)) {
				return true
			}
			l.now = at
			l.do(Ticked{})
			continue
		}
		l.carry(owed[0])
	}
	return false
}

func (l *listed) all() *listed {
	l.t.Helper()
	if !l.drive(5000) {
		l.t.Fatal("it does not come to rest")
	}
	l.replayed()
	return l
}

func (l *listed) did() string { return strings.Join(l.order, ", ") }

func TestListOrder(t *testing.T) {
	conform.Rule(t, "001 skip", "A waits for B, so B is next though it comes later")
	l := tasksOf(t, "1-language task lists", "doing, then todo, then blocked; lower priority number first, then id; what a task depends on first; the file says what is done",
		"T10 T2 A!2:B B!5 Z!1", aList(List{Attempts: 3}), listGate()).all()
	l.want(l.did(), "Z.1 done, B.1 done, A.1 done, T2.1 done, T10.1 done", l.r().Phase, RunCompleted, l.status("A"), TaskDone)

	l = tasksOf(t, "", "", "A B C!1", aList(List{Attempts: 3}), listGate())
	l.edit("B", TaskDoing)
	l.edit("C", TaskBlocked)
	l.all()
	l.want(l.did(), "B.1 done, A.1 done, C.1 done")

	conform.Rule(t, "001 selection", "two that are doing by id alone; todo and blocked by priority, then id; one without a priority last")
	l = tasksOf(t, "", "", "A!9 B!1 C D!2 E!2 T10!3 T9!3 G!7 H!1 F!1", aList(List{Attempts: 3}), listGate())
	for id, status := range map[string]string{"A": TaskDoing, "B": TaskDoing, "F": TaskBlocked, "G": TaskBlocked, "H": TaskBlocked} {
		l.edit(id, status)
	}
	l.all()
	l.want(l.did(), "A.1 done, B.1 done, D.1 done, E.1 done, T9.1 done, T10.1 done, C.1 done, F.1 done, H.1 done, G.1 done")

	// So are those that their agents reported blocked, beside one blocked in the file.
	l = tasksOf(t, "", "", "A!3 B!1 C!2", aList(List{Attempts: 3}), listGate())
	l.edit("C", TaskBlocked)
	l.plays = func(_ string, try int) string { return []string{"done", "blocked", "done"}[min(try, 2)] }
	l.all()
	l.want(l.did(), "B.1 blocked, A.1 blocked, B.2 done, C.1 blocked, C.2 done, A.2 done")
}

// TestListAfterReview: if a gate sends the list back, blocked tasks stay behind todo ones.
func TestListAfterReview(t *testing.T) {
	l := tasksOf(t, "13-law 001 order", "\"doing → todo → blocked priority\", also after a review pass: new tasks come before what was blocked",
		"A!1 B!2 C:B", aList(List{Attempts: 1}), judgedGate(most(3), exhausted(EndFailed)))
	l.plays = func(task string, _ int) string {
		if len(l.order) < 2 {
			return map[string]string{"A": "blocked", "B": "failed"}[task]
		}
		return "done"
	}
	l.judges = func() bool {
		if len(l.order) > 3 {
			return true
		}
		l.file = append(l.file, TaskSeen{ID: "N", Title: "new", Status: TaskTodo, Priority: NoPriority})
		l.stamp++
		return false
	}
	l.all()
	l.want(l.did(), "A.1 blocked, B.1 failed, N.1 done, A.1 done, B.1 done, C.1 done", l.r().Phase, RunCompleted)

	// After a person's retry, all of it is to be done.
	l = tasksOf(t, "", "", "A!1 B", aList(List{Attempts: 1}), listGate(most(1), exhausted(EndFailed)))
	l.plays = func(string, int) string { return []string{"blocked", "done"}[min(len(l.order), 1)] }
	l.all()
	l.do(RetryRequested{Run: "x-1", Step: "work", By: Actor{Who: "ann"}})
	for l.r().List.N < 2 {
		l.drive(1)
	}
	l.want(l.r().List.Task("A").State, TaskTodo)

	// Blocked tasks run beside one another, and beside nothing else.
	l = tasksOf(t, "", "", "A B C", aList(List{Attempts: 1, MaxParallel: 2}), listGate())
	l.edit("A", TaskBlocked)
	l.edit("B", TaskBlocked)
	most := 0
	for l.r().Live() {
		l.drive(1)
		a, b, c := l.r().List.Task("A"), l.r().List.Task("B"), l.r().List.Task("C")
		if a == nil {
			continue
		}
		if c.Child != "" && (a.Child != "" || b.Child != "") {
			t.Fatal("what was blocked is done beside C")
		}
		most = max(most, len(l.r().kids))
	}
	if most != 2 {
		t.Errorf("%d at a time, want 2", most)
	}
}

// TestListBlockers: the blockers in an answer are recorded with the task.
func TestListBlockers(t *testing.T) {
	l := tasksOf(t, "13-law 001 blockers", "\"blockers\": [\"Blocking issue description\"]: those that an answer names reach the task's entry in the file", "A B", aList(List{Attempts: 2}), listGate(most(1), exhausted(EndFailed)))
	l.plays = func(task string, try int) string {
		return map[string]string{"A1": "blocked", "A2": "blocked", "B1": "done"}[fmt.Sprint(task, try)]
	}
	l.blockers = func(task string) []string {
		if task == "A" && len(l.order) == 1 {
			return []string{"no key", strings.Repeat("x", 3000)}
		}
		return nil
	}
	l.all()
	a := l.r().List.Task("A")
	l.want(fmt.Sprint(len(a.Blockers)), "2", a.Blockers[0], "no key", l.r().EndWhy, "gwork: fail")
	if len(a.Blockers[1]) > maxBlocker {
		t.Errorf("a blocker of %d bytes is kept", len(a.Blockers[1]))
	}
}

// TestListLeft: a run can complete with unfinished tasks; its end names them.
func TestListLeft(t *testing.T) {
	l := tasksOf(t, "13-law 001 completed", "\"Running --> Completed: All tasks done\", \"Reviewing --> Completed: Review complete\": a run that a review completes with tasks left says which",
		"A B:A C D", aList(List{Attempts: 1}), judgedGate())
	l.plays = func(task string, _ int) string {
		return map[string]string{"A": "blocked", "C": "done", "D": "failed"}[task]
	}
	l.all()
	l.want(l.r().Phase, RunCompleted, l.r().EndWhy, "3 of 4 tasks are not done: A is blocked, B was not tried (it waits for A), D is blocked")

	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 1}), judgedGate()).all()
	l.want(l.r().Phase, RunCompleted, l.r().EndWhy, "")
}

// TestListMaxTries: once tries are used up, the list's gate decides; after being sent back, no
// tries are left.
func TestListMaxTries(t *testing.T) {
	l := tasksOf(t, "13-law 001 iterations", "\"More iterations?\", \"No\", \"Run Review Pass\": used up, the list ends and its gate decides",
		"A B C", aList(List{Attempts: 2, MaxTries: 2}), judgedGate())
	l.plays = func(_ string, try int) string { return []string{"done", "failed", "done"}[min(len(l.order), 2)] }
	l.all()
	l.want(l.did(), "A.1 done, B.1 failed", l.r().Phase, RunCompleted, l.r().EndWhy, "2 of 3 tasks are not done: B is begun, C was not tried")

	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 2, MaxTries: 2}), judgedGate(most(3), exhausted(EndFailed), func(g *Gate) { g.OnFail = "work" }))
	rounds := 0
	l.judges = func() bool { rounds++; return false }
	l.all()
	l.want(l.did(), "A.1 done, B.1 done", l.r().Phase, RunFailed, fmt.Sprint(rounds), "1")
	as := l.r().Attempts["work"]
	l.has(as[len(as)-1].Failure, "max_tries 2 is used up, and 1 of 3 tasks are not done: gwork-1 was not tried")

	// A person's retry grants as many again.
	l.judges = nil
	l.do(RetryRequested{Run: "x-1", Step: "work", By: Actor{Who: "ann"}})
	l.all()
	l.want(l.r().Phase, RunCompleted)
}

// TestListHooks: a task's hook sees the file with the task's result, and what follows waits for the
// hook.
func TestListHooks(t *testing.T) {
	hooked := func(st *Step) { st.Child.AfterRun = &Command{Shell: "true"} }
	plays := func(task string, try int) string {
		return map[string]string{"A1": "done", "B1": "failed", "B2": "failed", "C1": "blocked", "C2": "done", "D1": "aborted"}[fmt.Sprint(task, try)]
	}
	l := tasksOf(t, "13-law 001 hooks", "\"Apply results (update status, add new tasks)\", then \"Execute post-iteration hooks\", then the next task is selected",
		"A B C D", aList(List{Attempts: 2}, hooked), listGate(most(1), exhausted(EndFailed)))
	l.plays = plays
	l.all()
	l.want(l.did(), "A.1 done, A hook done, B.1 failed, B hook doing, B.2 failed, B hook blocked, C.1 blocked, C hook blocked, D.1 aborted, D hook blocked, C.2 done, C hook done", l.r().Phase, RunFailed)

	// If the last result hits a limit, the run ends, and its hook has run with the result in the
	// file.
	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 1}, hooked), listGate(), func(w *Spec) {
		w.Limits = Limits{MaxSameFailure: 9, MaxFailedRatio: 0.4, OnHit: map[string]string{maxFailedRatio: EndFailed}}
	})
	l.plays = func(string, int) string { return "failed" }
	l.all()
	l.want(l.did(), "A.1 failed, A hook blocked", l.r().Phase, RunFailed)

	// During a pause its hook still runs, and nothing else begins; a file that became invalid
	// blocks nothing.
	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 1}, hooked), listGate())
	l.plays = func(task string, _ int) string {
		if task == "A" {
			l.do(PauseRequested{Run: "x-1", By: Actor{Who: "ann"}})
			l.bad, l.stamp = "no JSON", l.stamp+1
		}
		return "done"
	}
	l.drive(5000)
	l.want(l.did(), "A.1 done, A hook doing", l.r().Phase, RunRunning)
	l.bad, l.stamp = "", l.stamp+1
	l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.all()
	l.want(l.did(), "A.1 done, A hook doing, B.1 done, B hook done", l.status("A"), TaskDone, l.r().Phase, RunCompleted)

	// Nor does one that was invalid before the result came.
	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 1, MaxParallel: 2}, hooked), listGate())
	l.plays = func(task string, _ int) string {
		if task == "A" {
			l.bad, l.stamp = "no JSON", l.stamp+1
		}
		return "done"
	}
	l.drive(5000)
	l.want(l.did(), "A.1 done, A hook doing, B.1 done, B hook todo", l.r().List.File, FileInvalid)
}

// TestListCommits: concurrent tasks may commit in the same second, by the same author.
func TestListCommits(t *testing.T) {
	l := tasksOf(t, "", "", "A B", aList(List{Attempts: 2, MaxParallel: 2}, func(st *Step) {
		st.Child.Steps[0].Signal = Signal{Type: SignalCommit, Value: "[GATE:w]"}
	}), listGate())
	at := func(run string) *Attempt { return l.st.Runs[run].Current("work") }
	for l.st.Runs["x-1.B.1"] == nil || at("x-1.A.1").State != Running || at("x-1.B.1").State != Running {
		l.drive(1)
	}
	for _, run := range []string{"x-1.A.1", "x-1.B.1"} {
		l.do(CommitSeen{Run: run, Step: "work", N: 1, K: 1, SHA: run + "-sha-of-it", Author: "ann 1"})
		l.want(at(run).State, Signalled)
	}
	r := l.st.Runs["x-1.A.1"]
	l.want(fmt.Sprint(l.st.besides(r, r), l.st.besides(r, l.st.Runs["x-1"]), l.st.besides(r, l.st.Runs["x-1.B.1"])), "false false true")
}

func TestRule34Outcomes(t *testing.T) {
	l := tasksOf(t, "8-semantics 34", "completed = done; failed = one try, and after the last the task has failed; settled tasks end the step done, and from: step passes only if all are done",
		"A B", aList(List{Attempts: 2}), listGate(most(1), exhausted(EndFailed)))
	l.plays = func(task string, _ int) string { return map[string]string{"A": "failed", "B": "done"}[task] }
	l.all()
	l.want(l.did(), "A.1 failed, A.2 failed, B.1 done", l.r().Phase, RunFailed, l.r().List.Task("A").State, TaskFailed, l.status("A"), TaskBlocked)
	if n := l.r().Begun; n != 3 {
		t.Errorf("%d steps were counted: each try counts one, the list none", n)
	}
	if id := l.st.Order[1]; id != "x-1.A.1" || l.st.Runs[id].Folder() != "x-1/work.1/A.1" {
		t.Errorf("child %s in %s", id, l.st.Runs[id].Folder())
	}
}

func TestRule34Blocked(t *testing.T) {
	l := tasksOf(t, "8-semantics 34", "a task whose agent says blocked is tried again when nothing else is left, while it has attempts; one whose run a person aborted is not",
		"A B C", aList(List{Attempts: 2}), listGate(most(1), exhausted(EndFailed)))
	l.plays = func(task string, _ int) string {
		if task == "A" {
			return "blocked"
		}
		return "done"
	}
	for l.st.Runs["x-1.B.1"] == nil {
		l.drive(1)
	}
	l.do(AbortRequested{Run: "x-1.B.1", By: Actor{Who: "ann"}})
	l.all()
	l.want(l.did(), "A.1 blocked, C.1 done, A.2 blocked", l.r().List.Task("B").State, TaskBlocked, l.r().List.Task("A").State, TaskFailed, l.r().Phase, RunFailed)
}

func TestRule34Parent(t *testing.T) {
	l := tasksOf(t, "8-semantics 34", "an abort of the parent aborts its children in the same event; superseding the step does so too, unfinished tasks are todo again with no tries, done ones stay done; a child cannot be retried",
		"A B C", aList(List{Attempts: 2}), listGate(most(9)))
	l.plays = func(task string, try int) string {
		if task == "B" && try == 1 {
			return "failed"
		}
		return "done"
	}
	for l.st.Runs["x-1.B.2"] == nil {
		l.drive(1)
	}
	l.has(ignored(l.do(RetryRequested{Run: "x-1.B.2", By: Actor{Who: "ann"}})), "a child of x-1")
	l.do(RetryRequested{Run: "x-1", Step: "work", By: Actor{Who: "ann"}})
	l.want(l.st.Runs["x-1.B.2"].Phase, RunAborted, l.r().List.Task("A").State, TaskDone, l.r().List.Task("B").State, TaskTodo, fmt.Sprint(l.r().List.Task("B").Tries), "0")
	for l.st.Runs["x-1.B.3"] == nil {
		l.drive(1)
	}
	facts := l.do(AbortRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.want(fmt.Sprint(count[RunEnded](facts)), "2", l.st.Runs["x-1.B.3"].Phase, RunAborted)
	l.all()
	l.want(l.r().Phase, RunAborted, l.status("A"), TaskDone)
}

func TestRule34Aborted(t *testing.T) {
	l := tasksOf(t, "8-semantics 34", "a child that its own gate ends ABORTED aborts the parent too", "A B", aList(List{Attempts: 2}, func(st *Step) {
		st.Child.Gates[0].OnPass = to(EndAborted)
		st.Child.Link()
	}), listGate()).all()
	l.want(l.r().Phase, RunAborted, l.did(), "A.1 done")
}

func TestRule15aSides(t *testing.T) {
	rp, gp := side("replan")
	l := tasksOf(t, "8-semantics 15a", "the list lets its children end, and only then goes to a step; its tasks keep state, tries and depth; when that has passed the new attempt goes on; new_tasks stand for the task, which is blocked, and done when they are",
		"A B C:A", aList(List{Attempts: 2, MaxDepth: 2, MaxParallel: 2, OnExhausted: "replan"}), listGate(), rp, gp)
	l.plays = func(task string, _ int) string {
		if task == "A" || task == "A1" {
			return "failed"
		}
		return "done"
	}
	l.new = func(step, task string) string {
		if step != "replan" {
			return ""
		}
		return fmt.Sprintf(`[{"id":"%s1"},{"title":"no id"}]`, task)
	}
	l.all()
	l.want(l.r().Phase, RunCompleted, l.r().List.Task("A").State, TaskBlocked, l.status("A"), TaskDone, l.status("A11"), TaskDone, l.status("C"), TaskDone)
	if x := l.r().List.Task("A11"); x.Depth != 2 || x.For != "A1" {
		t.Errorf("%+v", x)
	}
	if i, k := strings.Index(l.did(), "C.1"), strings.Index(l.did(), "A11.1"); i < k {
		t.Errorf("C ran before what stands for A was done: %s", l.did())
	}
}

func TestRule15aWaits(t *testing.T) {
	rp, gp := side("replan")
	l := tasksOf(t, "8-semantics 15a", "a list goes to a step only when its running tasks have ended; no new task begins meanwhile", "A B C",
		aList(List{Attempts: 1, MaxDepth: 1, MaxParallel: 2, OnExhausted: "replan"}), listGate(most(1), exhausted(EndFailed)), rp, gp)
	for l.st.Runs["x-1.B.1"] == nil || l.st.Runs["x-1.B.1"].Current("work") == nil || l.st.Runs["x-1.A.1"].Procs.Of("x-1.A.1/work#1.1") == nil {
		l.drive(1)
	}
	l.do(ProcessEnded{Run: "x-1.A.1", Key: "x-1.A.1/work#1.1", Answer: json.RawMessage(`{"status":"failed"}`)})
	for range 50 {
		for _, e := range l.st.Owed(l.spec) {
			if e.Kind != DoRun || e.Run != "x-1.B.1" {
				l.carry(e)
				break
			}
		}
	}
	l.want(l.step("replan"), "-", l.step("work"), "1 running", l.st.Runs["x-1.B.1"].Phase, RunRunning)
	if l.st.Runs["x-1.C.1"] != nil {
		t.Error("a new task began while the list was to go to a step")
	}
	l.do(ProcessEnded{Run: "x-1.B.1", Key: "x-1.B.1/work#1.1", Answer: json.RawMessage(`{"status":"done"}`)})
	l.all()
	l.want(l.r().Phase, RunFailed) // replan had no new tasks: A has failed
}

func TestListFileSteps(t *testing.T) {
	bs, gb := side("make")
	rs, gr := side("mend")
	l := tasksOf(t, "1-language task lists", "on_missing and on_invalid: at most twice each; then, or where there is none, the step fails and names the file", "A",
		aList(List{Attempts: 1, OnMissing: "make", OnInvalid: "mend"}), listGate(most(1), exhausted(EndFailed)), bs, gb, rs, gr)
	l.gone = true
	n := map[string]int{}
	l.made = func(step string) {
		n[step]++
		switch l.stamp++; {
		case step == "make":
			l.gone, l.bad = false, "to-do.json:3: task B depends on X, which is not there"
		case n["mend"] == 2:
			l.bad = ""
		}
	}
	l.all()
	l.want(l.r().Phase, RunCompleted, fmt.Sprint(n), "map[make:1 mend:2]", l.did(), "A.1 done")

	l = tasksOf(t, "", "", "A", aList(List{Attempts: 1, OnMissing: "make"}), listGate(most(1), exhausted(EndFailed)), bs, gb)
	l.gone, n = true, map[string]int{}
	l.made = func(step string) { n[step]++ }
	l.all()
	l.want(l.r().Phase, RunFailed, fmt.Sprint(n), "map[make:2]")
	l.has(l.r().Attempts["work"][2].Failure, "to-do.json is missing")

	l = tasksOf(t, "", "", "A", aList(List{Attempts: 1, OnInvalid: "mend"}), listGate(most(1), exhausted(EndFailed)), rs, gr)
	l.bad = "to-do.json:7: bad"
	l.all()
	l.want(l.r().Phase, RunFailed)
	l.has(l.r().Attempts["work"][2].Failure, "to-do.json:7: bad")
}

func TestListHandEdits(t *testing.T) {
	l := tasksOf(t, "1-language task lists", "a status that changed in the file while an attempt was live is not taken, recorded and told; what else changed is; one that changes while nobody is at work is taken",
		"A B C", aList(List{Attempts: 1, MaxDepth: 3}), listGate())
	l.plays = func(task string, _ int) string {
		if task == "A" {
			l.edit("B", TaskDone)
			l.file[2].Priority = 1
			l.file = append(l.file, TaskSeen{ID: "D", Status: TaskDone, Priority: 9, Body: json.RawMessage(`{"id":"D"}`)})
		}
		return "done"
	}
	l.all()
	l.want(l.did(), "A.1 done, C.1 done, D.1 done, B.1 done", fmt.Sprint(count[TasksRead](l.log) > 1), "true")
	refused := ""
	for _, f := range l.log {
		if f, ok := f.(TasksRead); ok && len(f.Refused) > 0 {
			refused = fmt.Sprint(f.Refused)
		}
	}
	l.want(refused, "[{B done todo}]")

	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 1}), listGate())
	l.edit("A", TaskDone)
	l.all()
	l.want(l.did(), "B.1 done")
}

func TestListWriteCutShort(t *testing.T) {
	l := tasksOf(t, "1-language task lists", "its own writing, whose end a crash cut off, is no edit of anybody's", "A B", aList(List{Attempts: 1}), listGate())
	for l.st.Runs["x-1.B.1"] == nil {
		l.drive(1)
	}
	l.now = l.now.Add(2 * time.Second)
	l.do(Ticked{})
	if len(l.owed(DoSave)) != 1 {
		t.Fatalf("owed: %v", l.st.Owed(l.spec))
	}
	for _, x := range l.r().List.Tasks { // it was written, but that was never reported
		l.edit(x.ID, x.Writing)
	}
	l.carry(l.owed(DoSave)[0])
	l.all()
	l.want(l.did(), "A.1 done, B.1 done")
	for _, f := range l.log {
		if f, ok := f.(TasksRead); ok && len(f.Refused) > 0 {
			t.Errorf("refused %v", f.Refused)
		}
	}
}

func TestListStandIns(t *testing.T) {
	l := &TaskList{Tasks: []*Task{{ID: "A", State: TaskBlocked, DependsOn: []string{"C"}}, {ID: "B", For: "A", State: TaskTodo}, {ID: "C", State: TaskTodo}}}
	if s := l.survey(3); s.next == nil || s.next.ID != "C" {
		t.Errorf("next is %+v: what stands for a task waits for what that waits for", s.next)
	}
	l.Tasks[2].State = TaskDone
	if s := l.survey(3); s.next == nil || s.next.ID != "B" || l.Status(l.Tasks[0]) != TaskBlocked {
		t.Errorf("next is %+v", s.next)
	}
	if why := tasksFault([]*Task{{ID: "A"}, {ID: "B", For: "A", DependsOn: []string{"A"}}}); why == "" {
		t.Error("B stands for A and waits for it")
	}
}

func TestListSentBack(t *testing.T) {
	g := aGate("work", to(EndDone))
	l := tasksOf(t, "1-language task lists", "sent back by its gate, what is not done is todo again with new attempts; if all was done and no new_tasks came, the feedback becomes a task; new_tasks of the gate's answer are added",
		"A B", aList(List{Attempts: 1}), g)
	round := 0
	for r, n := l.r(), 0; r.Live(); {
		owed := l.st.Owed(l.spec)
		if len(owed) == 0 || owed[0].Kind != DoRun || owed[0].Proc.Kind != ProcReview {
			if n++; n > 2000 || len(owed) == 0 && l.st.Wake(l.now).IsZero() {
				t.Fatalf("it does not go on: %+v %+v", r.List, owed)
			}
			l.drive(1)
			continue
		}
		v := Judgement{Outcome: OutcomeFail, Feedback: "the docs are missing"}
		switch round++; round {
		case 2:
			v.Answer = json.RawMessage(`{"new_tasks":[{"id":"N"}]}`)
		case 3:
			v.Outcome = OutcomePass
		}
		l.do(ProcessEnded{Run: "x-1", Key: owed[0].Key, Verdict: &v})
	}
	l.want(l.did(), "A.1 done, B.1 done, gwork-1.1 done, N.1 done", l.r().Phase, RunCompleted, l.status("N"), TaskDone)
	l.has(string(l.st.Runs["x-1.gwork-1.1"].Child.Body), "the docs are missing")
}

// TestTaskOfAReview: the task made from a review of a finished list has everything that the review
// said.
func TestTaskOfAReview(t *testing.T) {
	conform.Rule(t, "13-law 002 findings", `"Output: review.json, recommendations.json", and back to execution: the task of it in the list`)
	score := 40.0
	for name, c := range map[string]struct {
		said Judgement
		want []string
	}{
		"all of it": {Judgement{Outcome: OutcomeFail, Feedback: "the docs are missing", Score: &score, Scores: map[string]float64{"security": 40, "architecture": 71.5},
			Findings: json.RawMessage(`[{"severity":"high","file":"src/a.go","line":12,"message":"never closed"},{"message":"no docs"},"a word"]`),
			Answer:   json.RawMessage(`{"recommendations":["use a pool",{"file":"b.go","line":3,"message":"split it"},{"title":"rename"}]}`)},
			[]string{"the docs are missing", "Score: 40", "- architecture: 71.5", "- security: 40", "- [high] src/a.go:12: never closed", "- no docs", "- a word", "- use a pool", "- b.go:3: split it", `- {"title":"rename"}`}},
		"no words": {Judgement{Outcome: OutcomeFail, Findings: json.RawMessage(`[{"file":"a.go","message":"x"}]`)}, []string{"gave no reason", "- a.go: x"}},
		"nothing":  {Judgement{Outcome: OutcomeFail}, []string{"gwork", "fail", "gave no reason"}},
		"a flood":  {Judgement{Outcome: OutcomeFail, Feedback: "first", Findings: json.RawMessage(`[{"message":"` + strings.Repeat("x", 60<<10) + `"}]`)}, []string{"first", "\n[cut]"}},
	} {
		l := tasksOf(t, "", "", "A", aList(List{Attempts: 1}), aGate("work", to(EndDone)))
		for n := 0; len(l.r().List.Tasks) < 2 && n < 2000; n++ {
			owed := l.st.Owed(l.spec)
			if len(owed) > 0 && owed[0].Kind == DoRun && owed[0].Proc.Kind == ProcReview {
				l.do(ProcessEnded{Run: "x-1", Key: owed[0].Key, Verdict: &c.said})
				continue
			}
			l.drive(1)
		}
		if len(l.r().List.Tasks) < 2 {
			t.Fatalf("%s: no task was made", name)
		}
		body := l.r().List.Tasks[1].Body
		words := typed[map[string]string](body)["description"]
		for _, w := range c.want {
			if !strings.Contains(words, w) {
				t.Errorf("%s: the task says %.2000s; want %q in it", name, words, w)
			}
		}
		if len(words) > MaxFeedback {
			t.Errorf("%s: %d bytes", name, len(words))
		}
	}
}

func TestListAdded(t *testing.T) {
	l := tasksOf(t, "1-language task lists", "new_tasks in an answer of a task are added, a step deeper each; none deeper than max_depth",
		"A", aList(List{Attempts: 2, MaxDepth: 1}), listGate())
	l.new = func(_, task string) string {
		return map[string]string{"A": `[{"id":"N","title":"n"}]`, "N": `[{"id":"M"}]`}[task]
	}
	l.all()
	l.want(l.did(), "A.1 done, N.1 done", l.status("N"), TaskDone, l.status("M"), "-", fmt.Sprint(l.r().List.Task("N").Depth), "1")

	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 2, MaxDepth: 3}), listGate(most(1), exhausted(EndFailed)))
	l.new = func(_, task string) string {
		return map[string]string{"A": `[{"id":"B"}]`}[task]
	}
	l.all() // tasks that cannot be added are a failure of the work
	l.want(l.did(), "A.1 done, A.2 done, B.1 done", l.r().List.Task("A").State, TaskFailed)
	l.has(l.r().List.Task("A").Why, "task B exists already")
}

func TestListRatio(t *testing.T) {
	l := tasksOf(t, "1-language task lists", "max_failed_ratio is hit when more of a list's tasks have failed; human: paused, and resumed with the same amount once more",
		"A B C D", aList(List{Attempts: 1}), listGate(most(1), exhausted(EndFailed)), func(w *Spec) {
			w.Limits.MaxFailedRatio, w.Limits.OnHit = 0.25, map[string]string{maxFailedRatio: Human}
		})
	l.plays = func(string, int) string { return "failed" }
	l.all()
	l.want(l.r().PausedWhy, "limit:max_failed_ratio", l.did(), "A.1 failed, B.1 failed")
	l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.all()
	l.want(l.r().PausedWhy, "limit:max_failed_ratio", l.did(), "A.1 failed, B.1 failed, C.1 failed")
}

func TestChildRun(t *testing.T) {
	call := &Step{ID: "call", Name: "call", Gates: []string{"gcall"}, Signal: Signal{Type: SignalExit}, Child: one()}
	call.Child.ID = "other"
	call.Child.Vars = []Var{{Name: "v", Default: "own"}, {Name: "w", Default: "own"}}
	call.Child.Link()
	w := flow("x", call, aGate("call", to(EndDone)), func(w *Spec) { w.Vars = []Var{{Name: "v", Default: "parent's"}} })
	s := begin(t, "1-language child runs", "workflow: a child run with the vars it declares from here; DONE = done; it is paused and resumed with its parent; a newer run of the workflow is none of its", w)
	k := s.st.Runs["x-1.call.1"]
	s.want(fmt.Sprint(k.Vars), "map[v:parent's w:own]", k.Phase, RunRunning, k.RetryDir, k.ID)
	s.do(PauseRequested{Run: "x-1", By: Actor{Who: "ann"}})
	s.want(k.PausedWhy, PausedParent)
	s.has(ignored(s.do(ResumeRequested{Run: k.ID, By: Actor{Who: "ann"}})), "sluice resume x-1")
	s.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
	s.want(fmt.Sprint(k.Paused), "false")
	s.run = k.ID
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(k.Phase, RunCompleted)
	s.run = "x-1"
	s.checked()
	s.want(s.step("call"), "1 gating")
	if s.st.index.newest("other", s.r()) != nil {
		t.Error("a child counts as a run of its workflow")
	}
}

// TestChildRunHook: the step continues once the hook of its child run has ended.
func TestChildRunHook(t *testing.T) {
	call := &Step{ID: "call", Name: "call", Gates: []string{"gcall"}, Signal: Signal{Type: SignalExit}, Child: one()}
	call.Child.ID, call.Child.AfterRun = "other", &Command{Shell: "true"}
	call.Child.Link()
	s := begin(t, "8-semantics 34", "a child run is over when its processes are gone, its after_run hook among them", flow("x", call, aGate("call", to(EndDone))))
	s.run = "x-1.call.1"
	s.done("a")
	s.judged("ga", OutcomePass)
	k := s.st.Runs[s.run]
	s.want(k.Phase, RunCompleted, fmt.Sprint(len(k.Procs)), "1")
	s.run = "x-1"
	s.want(s.step("call"), "1 running")
	s.do(ProcessEnded{Run: k.ID, Key: k.Procs[0].Key})
	s.checked()
	s.want(s.step("call"), "1 gating")
}

// TestListHistories plays lists at random: tries that fail, edits, pauses, aborts, retries,
// crashes.
func TestListHistories(t *testing.T) {
	n := 300
	if s := os.Getenv("SEEDS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	ends := map[string]int{}
	for seed := range n {
		t.Run("", func(t *testing.T) { ends[listHistory(t, uint64(seed))]++ })
	}
	t.Logf("%v", ends)
	for _, phase := range []string{RunCompleted, RunFailed, RunAborted} {
		if n >= 300 && ends[phase] == 0 {
			t.Errorf("no run was %s: %v", phase, ends)
		}
	}
}

func listHistory(t *testing.T, seed uint64) string {
	g := rand.New(rand.NewPCG(seed, 7))
	tasks := ""
	for i := range 1 + g.IntN(6) {
		tasks += fmt.Sprintf(" T%d!%d", i, g.IntN(3))
		if i > 0 && g.IntN(2) == 0 {
			tasks += fmt.Sprintf(":T%d", g.IntN(i))
		}
	}
	rp, gp := side("replan")
	bs, gb := side("make")
	e := List{Attempts: 1 + g.IntN(3), MaxDepth: g.IntN(3), MaxParallel: 1 + g.IntN(3), OnExhausted: "replan", OnMissing: "make", OnInvalid: "make"}
	l := tasksOf(t, "", "", tasks, aList(e, func(st *Step) {
		if seed%2 == 0 {
			st.Child.AfterRun = &Command{Shell: "true"}
		}
	}), listGate(most(1+g.IntN(3)), exhausted(EndFailed)), rp, gp, bs, gb)
	fails := g.IntN(3)
	l.plays = func(string, int) string {
		switch g.IntN(4 + fails*2) {
		case 4, 6:
			return "failed"
		case 5, 7:
			return "blocked"
		}
		return "done"
	}
	l.new = func(step, task string) string {
		switch {
		case step == "replan" && g.IntN(3) > 0:
			return fmt.Sprintf(`[{"title":"a"},{"title":"b","depends_on":["%s"]}]`, []string{task + ".1", task}[min(g.IntN(6), 1)^1])
		case step == "work" && g.IntN(12) == 0:
			return `[{"title":"more"}]`
		}
		return ""
	}
	l.made = func(step string) {
		if step == "make" {
			l.stamp++
			l.gone, l.bad = false, ""
		}
	}
	people := g.IntN(2) == 0
	for k := 0; k < 3000 && l.r().Live(); k++ {
		if people && k < 300 {
			l.person(g)
		}
		owed := l.st.Owed(l.spec)
		if len(owed) == 0 {
			if l.r().Paused {
				l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
				continue
			}
			at := l.st.Wake(l.now)
			if at.IsZero() {
				break
			}
			l.now = at
			l.do(Ticked{})
		} else if l.now = l.now.Add(time.Duration(g.IntN(700)) * time.Millisecond); g.IntN(20) == 0 {
			l.do(Ticked{})
		} else {
			l.carry(owed[g.IntN(len(owed))])
		}
		l.holds()
	}
	if l.r().Live() {
		t.Fatalf("seed %d: it does not end: %+v owed %v", seed, l.r().List, l.st.Owed(l.spec))
	}
	l.all()
	return l.r().Phase
}

// person does one random thing.
func (l *listed) person(g *rand.Rand) {
	ann := Actor{Who: "ann"}
	switch g.IntN(40) {
	case 0:
		l.edit(l.file[g.IntN(len(l.file))].ID, []string{TaskTodo, TaskDone, TaskBlocked}[g.IntN(3)])
	case 1:
		l.do(PauseRequested{Run: "x-1", By: ann})
	case 2:
		l.do(ResumeRequested{Run: "x-1", By: ann})
	case 3:
		l.gone = true
		l.stamp++
	case 4:
		l.bad = "to-do.json:1: edited"
		l.stamp++
	case 5:
		if kids := l.r().kids; len(kids) > 0 {
			l.do(AbortRequested{Run: kids[g.IntN(len(kids))].ID, By: ann})
		}
	case 6:
		l.do(RetryRequested{Run: "x-1", Step: []string{"work", "replan", "make"}[g.IntN(3)], By: ann})
	case 7:
		l.file = append(l.file, TaskSeen{ID: fmt.Sprint("P", l.stamp), Status: TaskTodo, Body: json.RawMessage(`{}`)})
		l.stamp++
	case 8:
		if len(l.file) > 1 {
			l.file = slices.Delete(l.file, 0, 1)
			l.stamp++
		}
	case 9:
		l.restart(time.Duration(g.IntN(90)) * time.Second)
	case 10:
		if g.IntN(5) == 0 {
			l.do(AbortRequested{Run: "x-1", By: ann})
		}
	}
}

// holds checks the invariants of lists.
func (l *listed) holds() {
	l.t.Helper()
	if why := l.st.Fault(l.spec); why != "" {
		l.t.Fatal(why)
	}
	if why := l.st.indexFault(l.spec); why != "" {
		l.t.Fatal(why)
	}
	r := l.r()
	var kids list
	for _, id := range l.st.Order {
		k := l.st.Runs[id]
		if k.Child == nil {
			continue
		}
		if k.Live() && !r.Live() {
			l.t.Fatalf("%s is %s and its child %s lives", r.ID, r.Phase, k.ID)
		}
		if k.Live() || len(k.Procs) > 0 {
			kids = append(kids, k)
		}
		if k.Live() && (r.List.Task(k.Child.Task) == nil || r.List.Task(k.Child.Task).Child != k.ID) && k.Child.N == r.List.N && r.Current("work") != nil {
			l.t.Fatalf("%s lives and its task does not know of it", k.ID)
		}
	}
	if !slices.Equal(kids, r.kids) {
		l.t.Fatalf("children: kept %v, found %v", r.kids.ids(), kids.ids())
	}
	if r.List == nil {
		return
	}
	for ; l.told < len(l.log); l.told++ {
		if f, ok := l.log[l.told].(RunStarted); ok && f.Child != nil {
			if x := r.List.Task(f.Child.Task); x == nil || x.Child == f.Run && !r.List.free(x) {
				l.t.Fatalf("%s begins and what it depends on is not done", f.Child.Task)
			}
		}
	}
	if n := r.List.survey(99).alive; n > l.specs["d-x"].List().ForEach.MaxParallel {
		l.t.Fatalf("%d tasks at a time", n)
	}
	for _, x := range r.List.Tasks {
		if x.Tries > l.specs["d-x"].List().ForEach.Attempts {
			l.t.Fatalf("%s has had %d tries", x.ID, x.Tries)
		}
	}
	if a := r.Current("work"); a != nil && a.State == Passed && r.List.N == a.N {
		if n := r.List.Tally(); n.Done != n.Total {
			l.t.Fatalf("the list has passed with %+v", n)
		}
	}
}
