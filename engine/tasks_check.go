package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/ids"
)

// tasksFault returns what is wrong with the tasks together: duplicate ids, missing dependencies,
// cycles. A task waits for its stand-ins, and they wait for its dependencies.
func tasksFault(ts []*Task) string {
	by, stand := make(map[string]*Task, len(ts)), map[string][]string{}
	for _, t := range ts {
		if by[t.ID] != nil {
			return fmt.Sprintf("task %s is there twice", t.ID)
		}
		by[t.ID] = t
		if t.For != "" {
			stand[t.For] = append(stand[t.For], t.ID)
		}
	}
	for _, t := range ts {
		n := 0
		for x := by[t.For]; x != nil; x = by[x.For] {
			if n++; n > len(ts) {
				return fmt.Sprintf("task %s stands for itself", t.ID)
			}
		}
	}
	mark := make(map[string]int, len(ts))
	var way []string
	var walk func(id string) string
	walk = func(id string) string {
		t := by[id]
		if mark[id] == 2 {
			return ""
		}
		if way = append(way, id); mark[id] == 1 {
			return "the tasks wait for one another: " + strings.Join(way[slices.Index(way, id):], " -> ")
		}
		mark[id] = 1
		next := slices.Concat(t.DependsOn, stand[id])
		for x := by[t.For]; x != nil; x = by[x.For] {
			next = append(next, x.DependsOn...)
		}
		for _, n := range next {
			if by[n] == nil {
				return fmt.Sprintf("task %s depends on %s, which is not there", id, n)
			}
			if why := walk(n); why != "" {
				return why
			}
		}
		mark[id] = 2
		way = way[:len(way)-1]
		return ""
	}
	for _, t := range ts {
		if why := walk(t.ID); why != "" {
			return why
		}
	}
	return ""
}

// wrongKind returns which key of a new task has a type that would make the task file invalid.
func wrongKind(body map[string]json.RawMessage) string {
	var text string
	var whole int
	for _, key := range []string{"id", "title", "stands_for"} {
		if raw := body[key]; len(raw) > 0 && json.Unmarshal(raw, &text) != nil {
			return key + ": want a text"
		}
	}
	if raw := body["priority"]; len(raw) > 0 && json.Unmarshal(raw, &whole) != nil {
		return "priority: want a whole number"
	}
	return ""
}

// newTasks reads the key `new_tasks` of an answer. Tasks without an id get one made from base.
func newTasks(l *TaskList, answer json.RawMessage, base string) ([]Task, string) {
	var keys struct {
		New json.RawMessage `json:"new_tasks"`
	}
	if len(answer) == 0 || json.Unmarshal(answer, &keys) != nil || len(keys.New) == 0 || string(keys.New) == "null" {
		return nil, ""
	}
	var bodies []map[string]json.RawMessage
	if json.Unmarshal(keys.New, &bodies) != nil {
		return nil, "new_tasks: want a list of tasks"
	}
	var out []Task
	taken := func(id string) bool {
		return l.Task(id) != nil || slices.ContainsFunc(out, func(t Task) bool { return t.ID == id })
	}
	for i, body := range bodies {
		if body == nil {
			return nil, fmt.Sprintf("new_tasks: item %d of the list is not a task", i+1)
		}
		if why := wrongKind(body); why != "" {
			return nil, fmt.Sprintf("new_tasks: task %d of the list: %s", i+1, why)
		}
		t := Task{ID: typed[string](body["id"]), Title: clip(typed[string](body["title"]), maxTitle),
			Priority: NoPriority, State: TaskTodo}
		if t.ID == "" {
			for n := 1; t.ID == "" || taken(t.ID); n++ {
				t.ID = fmt.Sprintf("%s.%d", base, n)
			}
			body["id"], _ = json.Marshal(t.ID)
		}
		if bad := ids.Fault(t.ID); bad != "" {
			return nil, fmt.Sprintf("new_tasks: task id %.80q %s", t.ID, bad)
		}
		if taken(t.ID) {
			return nil, fmt.Sprintf("new_tasks: task %s exists already", t.ID)
		}
		t.Title = cmp.Or(t.Title, clip(typed[string](body["description"]), maxTitle))
		if p := typed[*int](body["priority"]); p != nil {
			t.Priority = *p
		}
		if raw := body["depends_on"]; len(raw) > 0 && json.Unmarshal(raw, &t.DependsOn) != nil {
			return nil, fmt.Sprintf("new_tasks: task %s: depends_on: want a list of ids", t.ID)
		}
		delete(body, "status")
		t.Body, _ = json.Marshal(body) // it was parsed from JSON, so it cannot fail
		out = append(out, t)
	}
	return out, ""
}

// NoPriority is the priority of a task without one: after all others.
const NoPriority = 1 << 30

// with returns the list's tasks and more.
func (l *TaskList) with(more []Task) []*Task {
	out := slices.Clone(l.Tasks)
	for i := range more {
		out = append(out, &more[i])
	}
	return out
}
