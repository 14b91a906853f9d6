package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sluice/internal/ids"
)

// States of a task.
const (
	TaskTodo  = "todo"  // entered when it is read or added, or when a try has failed; left when its run starts
	TaskDoing = "doing" // its run is under way
	TaskDone  = "done"  // its run was completed, or the file said so when it was trusted
	// by its agent, by a person who aborted its run, or because others stand for it; retried when
	// nothing else is left
	TaskBlocked = "blocked"
	TaskFailed  = "failed" // it has used its tries; in the file: blocked
	TaskSpent   = "spent"  // it has used its tries, and the visit to on_exhausted is owed; in the file: blocked
)

// State of the task file at the last look.
const (
	FileOK      = "ok"
	FileMissing = "missing"
	FileInvalid = "invalid"
)

// Limits of task lists.
const (
	MaxTasks       = 20_000  // of a list
	MaxTaskList    = 3 << 20 // bytes kept of a list's tasks, which must fit into a line of the journal
	MaxTaskAnswers = 4 << 20 // bytes kept of the answers of a list's tasks
	maxTitle       = 200
	maxTaskWords   = 2 << 10 // bytes of a summary, and of why a try failed
	maxBlockers    = 10      // of a task
	maxBlocker     = 500     // bytes of one
	maxTaskTries   = 5       // failed tries whose reasons are kept
	maxFileGoes    = 2       // visits of a list to on_missing, and to on_invalid
	WriteEvery     = Duration(time.Second)
	KeepChildren   = 20 // ended child runs of a run that stay in the state
)

// ChildOf links a child run to its parent.
type ChildOf struct {
	Parent string          `json:"parent"`
	Step   string          `json:"step"`
	N      int             `json:"n"` // the attempt of the step
	Task   string          `json:"task,omitempty"`
	Try    int             `json:"try,omitempty"` // of the task's attempts
	Depth  int             `json:"depth,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"` // the task, as it was in the file
	Dir    string          `json:"dir"`            // its folder, below .workflow/runs/
	// how many earlier runs the list's tasks had: agents of a role take turns by it
	Turn int `json:"turn,omitempty"`
}

// Title returns the run's purpose, as in "T2 of goal-loop-1, try 2"; "" unless it is a child.
func (c *ChildOf) Title() string {
	switch {
	case c == nil:
		return ""
	case c.Task == "":
		return c.Step + " of " + c.Parent
	case c.Try > 1:
		return fmt.Sprintf("%s of %s, try %d", c.Task, c.Parent, c.Try)
	}
	return c.Task + " of " + c.Parent
}

// TaskList is the tasks of a run's list, and their progress.
type TaskList struct {
	Step  string  `json:"step"`
	N     int     `json:"n"` // the attempt that last began
	Path  string  `json:"path"`
	Seen  string  `json:"seen,omitempty"` // the stamp of the file as last merged; "" = read it
	File  string  `json:"file,omitempty"` // ok, missing, invalid
	Why   string  `json:"why,omitempty"`  // of invalid
	Tasks []*Task `json:"tasks"`
	Dirty bool    `json:"dirty,omitempty"` // the file is out of date
	// the file was looked at since something could be selected
	Looked  bool      `json:"looked,omitempty"`
	Since   int64     `json:"since,omitempty"`   // which look is owed
	Writing int64     `json:"writing,omitempty"` // which write is under way; 0 = none
	Wrote   time.Time `json:"wrote,omitzero"`    // when it was last written
	Taint   bool      `json:"taint,omitempty"`   // some task's run was alive since the last look
	// since when a hook waits for its task's result to be in the file; 0 = none
	Result  int64 `json:"result,omitempty"`
	Deepest int   `json:"deepest"` // depth of the deepest of these tasks
	// a step that produces the file has passed since, or nobody was at work before
	Made    bool    `json:"made,omitempty"`
	Missing int     `json:"missing,omitempty"` // visits to on_missing
	Invalid int     `json:"invalid,omitempty"`
	To      string  `json:"to,omitempty"` // the step it visits, until it resumes
	For     string  `json:"for,omitempty"`
	Back    string  `json:"back,omitempty"` // the gate that sent it back
	Backs   int     `json:"backs,omitempty"`
	Words   string  `json:"words,omitempty"` // its round in words
	Ratio   float64 `json:"ratio,omitempty"` // of tasks that may fail
	// runs of its tasks, including those removed from the file
	Turns  int             `json:"turns,omitempty"`
	Used   int             `json:"used,omitempty"`    // of max_tries
	UsedUp bool            `json:"used_up,omitempty"` // max_tries was used up when the attempt began
	Had    map[string]int  `json:"had,omitempty"`     // task removed from the file -> its runs
	Make   json.RawMessage `json:"make,omitempty"`    // content for the file, until it is written
	// the attempts and rounds that Make, or the file, was computed from: "plan#2"
	Source string `json:"source,omitempty"`
	Own    string `json:"own,omitempty"` // the file that this run has written from Make
	// task -> the answer of its last completed run, if something reads it
	Answers map[string]json.RawMessage `json:"answers,omitempty"`

	by    map[string]*Task
	stand map[string][]*Task // the stand-ins of a task
}

// Task is the state of one task.
type Task struct {
	ID        string   `json:"id"`
	Title     string   `json:"title,omitempty"`
	Priority  int      `json:"priority"`
	DependsOn []string `json:"depends_on,omitempty"`
	State     string   `json:"state"`
	Begun     bool     `json:"begun,omitempty"` // it was doing in the file, or has had a try
	Tries     int      `json:"tries,omitempty"`
	Runs      int      `json:"runs,omitempty"` // child runs in all: their numbers are never reused
	Depth     int      `json:"depth,omitempty"`
	For       string   `json:"for,omitempty"` // the task it stands for
	Child     string   `json:"child,omitempty"`
	// its run has ended with a known result; the run's hook has not
	Over bool `json:"over,omitempty"`
	Late bool `json:"late,omitempty"` // it was blocked when its run began
	Held bool `json:"held,omitempty"` // a person aborted its run: no automatic retry
	// its status in the file when last seen or written; "" = never there
	Base      string          `json:"base,omitempty"`
	Writing   string          `json:"writing,omitempty"` // the status being written
	Summary   string          `json:"summary,omitempty"`
	Blockers  []string        `json:"blockers,omitempty"`  // from the last answer that named any
	Unblocked bool            `json:"unblocked,omitempty"` // the last answer said there are none
	Why       string          `json:"why,omitempty"`       // how its last try failed
	Tried     []string        `json:"tried,omitempty"`
	Updated   time.Time       `json:"updated,omitzero"`
	Body      json.RawMessage `json:"body,omitempty"` // until it is in the file, and for a visit to on_exhausted
}

// index builds the lookups by id and of stand-ins.
func (l *TaskList) index() {
	if l.by != nil {
		return
	}
	l.by, l.stand = make(map[string]*Task, len(l.Tasks)), map[string][]*Task{}
	for _, t := range l.Tasks {
		l.by[t.ID] = t
		if t.For != "" {
			l.stand[t.For] = append(l.stand[t.For], t)
		}
	}
}

// answered returns the size of the tasks' answers in bytes.
func (l *TaskList) answered() (n int) {
	for _, a := range l.Answers {
		n += len(a)
	}
	return n
}

// Task returns the task with the id, or nil.
func (l *TaskList) Task(id string) *Task {
	if l == nil {
		return nil
	}
	l.index()
	return l.by[id]
}

// StoodFor reports whether other tasks replace the task.
func (l *TaskList) StoodFor(t *Task) bool {
	l.index()
	return len(l.stand[t.ID]) > 0
}

// Done reports whether the task is done: itself, or all its stand-ins.
func (l *TaskList) Done(t *Task) bool {
	l.index()
	others := l.stand[t.ID]
	if len(others) == 0 {
		return t.State == TaskDone
	}
	return !slices.ContainsFunc(others, func(x *Task) bool { return !l.Done(x) })
}

// free reports whether all dependencies of the task, and of those it stands for, are done.
func (l *TaskList) free(t *Task) bool {
	for ; t != nil; t = l.by[t.For] {
		for _, id := range t.DependsOn {
			if x := l.by[id]; x == nil || !l.Done(x) {
				return false
			}
		}
	}
	return true
}

// Status returns the task's status for the file.
func (l *TaskList) Status(t *Task) string {
	switch {
	case l.Done(t):
		return TaskDone
	case t.doing():
		return TaskDoing
	case t.State == TaskTodo:
		return TaskTodo
	}
	return TaskBlocked
}

// fileClass normalises a status of the file: doing counts as todo.
func fileClass(status string) string {
	if status == TaskDone || status == TaskBlocked {
		return status
	}
	return TaskTodo
}

// Tally counts the tasks.
func (l *TaskList) Tally() Tally {
	var out Tally
	if l == nil {
		return out
	}
	l.index()
	for _, t := range l.Tasks {
		if len(l.stand[t.ID]) > 0 {
			continue
		}
		out.Total++
		switch t.State {
		case TaskDone:
			out.Done++
		case TaskFailed:
			out.Failed++
		case TaskBlocked:
			out.Blocked++
		}
	}
	return out
}

// survey is the input of a selection.
type survey struct {
	Tally
	alive int   // tasks with a run
	late  int   // of these, those that were blocked
	spent *Task // a task for which the visit to on_exhausted is owed
	next  *Task // the task to start
}

// survey selects among all tasks: doing, then todo, then blocked; lower priority number first, then
// id; dependencies first.
func (l *TaskList) survey(most int) survey {
	out := survey{Tally: l.Tally()}
	var open, blocked *Task
	for _, t := range l.Tasks {
		if t.Child != "" {
			if out.alive++; t.Late {
				out.late++
			}
			continue
		}
		if len(l.stand[t.ID]) > 0 {
			continue
		}
		switch {
		case t.State == TaskSpent:
			if out.spent == nil {
				out.spent = t
			}
		case t.State == TaskTodo && (open == nil || before(t, open)) && l.free(t):
			open = t
		case t.State == TaskBlocked && !t.Held && t.Tries < most && (blocked == nil || before(t, blocked)) && l.free(t):
			blocked = t
		}
	}
	// no blocked task is tried beside one that is not blocked
	if out.next = open; open == nil && out.alive == out.late {
		out.next = blocked
	}
	return out
}

// before is the order of selection among tasks of one state. Begun todo tasks come first, ordered
// by id alone; a blocked task no longer counts as begun.
func before(a, b *Task) bool {
	begun := a.doing()
	if begun != b.doing() {
		return begun
	}
	if !begun && a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	return ids.Compare(a.ID, b.ID) < 0
}

// doing reports whether the task was begun and must continue.
func (t *Task) doing() bool { return t.State == TaskDoing || t.State == TaskTodo && t.Begun }
