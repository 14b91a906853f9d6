package engine

import (
	"fmt"
	"slices"
	"strings"
)

// merging is a three-way merge of a task file: the known list, the file as last seen, and the file
// now.
type merging struct {
	l       *TaskList
	deepest int  // max_depth of the list
	own     bool // no task run was alive since the last look: statuses are accepted
	f       TasksRead
	tasks   []*Task
}

// readTasks merges the file.
func (d *listing) readTasks(r *Run, e *List, ev *TasksSeen) {
	l := r.List
	m := merging{l: l, deepest: e.MaxDepth, own: l.Made || !l.Taint,
		f: TasksRead{of: Of(r.ID), Step: ev.Step, Stamp: ev.Stamp, Taint: l.Taint, Deepest: l.Deepest}}
	switch {
	case ev.Missing:
		m.f.File = FileMissing
		m.f.Taint, m.f.Deepest = l.changers()
	case ev.Invalid != "":
		m.f.File, m.f.Why = FileInvalid, clip(ev.Invalid, maxTaskWords)
	default:
		m.merge(ev.Tasks)
	}
	d.put(m.f)
	if len(m.f.Refused) > 0 {
		var all []string
		for _, x := range m.f.Refused {
			all = append(all, fmt.Sprintf("%s (%s: it is %s)", x.Task, x.Status, x.Was))
		}
		d.notice(Notice{ID: fmt.Sprintf("%s.refused-%d", r.ID, d.s.Clock), Kind: NoticeInfo, Run: r.ID, Step: ev.Step,
			Text: l.Path + ": not taken, as somebody was at work on the list: " + clip(strings.Join(all, ", "), maxTaskWords)})
	}
}

// merge computes the new list and records the differences.
func (m *merging) merge(seen []TaskSeen) {
	m.f.Dirty = m.l.Dirty || m.l.Writing > 0
	m.l.index()
	there := make(map[string]bool, len(seen))
	for i := range seen {
		x := &seen[i]
		there[x.ID] = !x.Gone
		switch old := m.l.by[x.ID]; {
		case x.Gone:
		case old != nil:
			m.known(x, old)
		default:
			m.fresh(x)
		}
	}
	for _, t := range m.l.Tasks {
		if gone := !there[t.ID]; gone && m.own && t.Child == "" && t.Base != "" {
			m.f.Gone = append(m.f.Gone, t.ID)
		} else if gone {
			m.tasks, m.f.Dirty = append(m.tasks, new(*t)), true
			if t.Base != "" {
				m.f.Refused = append(m.f.Refused, StatusRefused{Task: t.ID, Status: "removed", Was: m.l.Status(t)})
			}
		}
	}
	m.orphans()
	if why := tasksFault(m.tasks); why != "" {
		m.f = TasksRead{of: m.f.of, Step: m.f.Step, Stamp: m.f.Stamp, File: FileInvalid, Why: why,
			Taint: m.l.Taint, Deepest: m.l.Deepest}
		return
	}
	m.f.File = FileOK
	for _, t := range m.tasks {
		if old := m.l.by[t.ID]; old == nil || !old.same(t) {
			m.f.Set = append(m.f.Set, *t)
		}
	}
	m.f.Taint, m.f.Deepest = m.l.changers()
}

// fresh adds a new task.
func (m *merging) fresh(x *TaskSeen) {
	c := fileClass(x.Status)
	t := &Task{ID: x.ID, Title: x.Title, Priority: x.Priority, DependsOn: x.DependsOn, State: c, Base: c}
	if m.own {
		t.Begun, t.For = x.Status == TaskDoing, x.For
	} else {
		t.Depth, t.State = m.l.Deepest+1, TaskTodo
		m.f.Dirty = m.f.Dirty || c != TaskTodo
		if t.Depth > m.deepest { // refuse it
			m.f.Refused = append(m.f.Refused, StatusRefused{Task: x.ID, Status: "added", Was: "too deep"})
			return
		}
	}
	m.tasks = append(m.tasks, t)
}

// known merges the changes of a known task.
func (m *merging) known(x *TaskSeen, old *Task) {
	t := *old
	t.Title, t.Priority, t.DependsOn = x.Title, x.Priority, x.DependsOn
	c := fileClass(x.Status)
	// its own interrupted write is no edit
	if t.Base != "" && c != t.Base && c != fileClass(m.l.Status(old)) && (t.Writing == "" || c != fileClass(t.Writing)) {
		if m.own && t.Child == "" && !m.l.StoodFor(old) {
			t.State, t.Held = c, false
			if c == TaskTodo {
				t.Tries, t.Begun = 0, false
			}
		} else {
			m.f.Refused = append(m.f.Refused, StatusRefused{Task: x.ID, Status: x.Status, Was: m.l.Status(old)})
			m.f.Dirty = true
		}
	}
	t.Base = c
	m.tasks = append(m.tasks, &t)
}

// orphans handles removed tasks: a stand-in for a removed task stands for none, and a task whose
// last stand-in was removed is todo again.
func (m *merging) orphans() {
	by, stood := make(map[string]*Task, len(m.tasks)), map[string]bool{}
	for _, t := range m.tasks {
		by[t.ID] = t
	}
	for _, t := range m.tasks {
		if o := by[t.For]; t.For != "" && o == nil {
			t.For = ""
		} else if o != nil {
			stood[t.For] = true
			if m.l.by[t.ID] == nil && m.own {
				t.Depth = min(o.Depth+1, m.deepest)
			}
		}
	}
	for _, t := range m.tasks {
		if old := m.l.by[t.ID]; old != nil && m.l.StoodFor(old) && !stood[t.ID] && t.State != TaskDone {
			t.State, t.Tries = TaskTodo, 0
		}
	}
}

// same compares two tasks, except fields that are not from the file.
func (t *Task) same(o *Task) bool {
	return t.Title == o.Title && t.Priority == o.Priority && slices.Equal(t.DependsOn, o.DependsOn) &&
		t.State == o.State && t.Begun == o.Begun &&
		t.Tries == o.Tries && t.Depth == o.Depth && t.For == o.For && t.Held == o.Held && t.Base == o.Base
}
