package daemon

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"sluice/engine"
	"sluice/internal/job"
)

// simBook is a task file of the world.
type simBook struct {
	tasks []engine.TaskSeen
	stamp int
	gone  bool
	bad   string
}

// simChildren has a step of the workflow done for each task of a file, and perhaps another one by a
// run of its own; false where it does not load then.
func simChildren(g *rand.Rand, w *engine.Spec) bool {
	list := g.IntN(len(w.Steps))
	for i, st := range slices.Clone(w.Steps) {
		switch {
		case i == list:
			simList(g, w, st)
		case g.IntN(5) > 0:
			continue
		}
		if g.IntN(2) == 0 {
			st.Child = simInline(w, st)
		} else {
			st.Child = simSpec(g, w.ID+"k")
			st.Child.Limits = engine.Limits{}
			for _, k := range st.Child.Steps {
				k.ExtNeeds = nil
			}
			if g.IntN(3) == 0 && !simChildren(g, st.Child) || st.Child.Link() != nil {
				return false
			}
		}
		st.Agent, st.Outputs, st.Timeout, st.Restarts, st.Signal = nil, nil, 0, nil, engine.Signal{Type: engine.SignalExit}
	}
	if w.Link() != nil {
		return false
	}
	l := w.List().ForEach
	for _, id := range []string{l.OnMissing, l.OnExhausted} {
		if id != "" && !w.LeadsTo(id, w.List().ID) {
			return false
		}
	}
	return true
}

// simInline is the workflow of a task that the step's own agent does.
func simInline(w *engine.Spec, st *engine.Step) *engine.Spec {
	one := *st
	one.ForEach, one.Outputs, one.Gates, one.Needs, one.HasNeeds, one.ExtNeeds, one.When = nil, nil, []string{st.ID}, nil, false, nil, engine.Cond{}
	k := &engine.Spec{ID: w.ID, Name: "s", Inline: true, Outer: w, Steps: []*engine.Step{&one}, Gates: []*engine.Gate{implicitGate(st.ID, []string{engine.EndDone})}}
	k.Link()
	return k
}

func simList(g *rand.Rand, w *engine.Spec, st *engine.Step) {
	l := &engine.List{MaxParallel: 1 + g.IntN(2), Attempts: 1 + g.IntN(3), MaxDepth: g.IntN(3),
		Tasks: engine.Text{Source: "tasks", Eval: func(e *engine.Env) (string, error) { return "t-" + e.Run + ".json", nil }}}
	for k, to := range []*string{&l.OnMissing, &l.OnExhausted} {
		if g.IntN(2) == 0 {
			continue
		}
		id := "m" + strconv.Itoa(k)
		w.Steps = append(w.Steps, &engine.Step{ID: id, Name: "s", Agent: &engine.Agent{Type: "r", Launch: engine.LaunchHeadless}, Signal: engine.Signal{Type: engine.SignalExit}, Gates: []string{id}})
		w.Gates = append(w.Gates, implicitGate(id, []string{st.ID}))
		*to = id
	}
	l.OnInvalid = l.OnMissing
	st.ForEach = l
}

// book returns a task file. Under mu.
func (s *sim) book(path string) *simBook {
	b := s.w.books[path]
	if b == nil {
		b = &simBook{stamp: 1, gone: s.g.IntN(6) == 0}
		for range s.g.IntN(4) {
			b.add(s.g)
		}
		s.w.books[path] = b
	}
	if s.calm && (b.gone || b.bad != "") {
		b.gone, b.bad = false, ""
		b.stamp++
	}
	return b
}

// add adds a task that may depend on one before it.
func (b *simBook) add(g *rand.Rand) {
	id := fmt.Sprintf("T%d", len(b.tasks))
	if slices.ContainsFunc(b.tasks, func(x engine.TaskSeen) bool { return x.ID == id }) {
		return
	}
	x := engine.TaskSeen{ID: id, Title: id, Status: engine.TaskTodo, Priority: g.IntN(3), Body: json.RawMessage(`{"id":"` + id + `"}`)}
	if len(b.tasks) > 0 && g.IntN(2) == 0 {
		x.DependsOn = []string{b.tasks[g.IntN(len(b.tasks))].ID}
	}
	b.tasks = append(b.tasks, x)
}

// edit is what somebody does to a task file. Under mu.
func (s *sim) edit(path string) {
	b := s.book(path)
	b.stamp++
	switch k := s.g.IntN(6); {
	case k == 0:
		b.gone = !b.gone
	case k == 1:
		b.bad = pick(s.g, "", "no JSON")
	case k == 2 || len(b.tasks) == 0:
		b.add(s.g)
	case k == 3:
		b.tasks = slices.Clone(b.tasks[:len(b.tasks)-1])
	default:
		b.tasks[s.g.IntN(len(b.tasks))].Status = pick(s.g, engine.TaskTodo, engine.TaskDone, engine.TaskBlocked)
	}
}

// callTasks looks at a task file, or writes it where it is the one that was taken in.
func (s *sim) callTasks(c *simCall, add func(*simCall, string, func())) {
	e := c.job.Effect
	stale := func(b *simBook) bool {
		return e.Kind == engine.DoTasks || b.gone || b.bad != "" || c.job.Tasks.Seen != strconv.Itoa(b.stamp)
	}
	if !s.calm && e.Kind == engine.DoSave && s.g.IntN(4) == 0 {
		add(c, "written", func() { // and nobody is told
			if b := s.book(c.job.Tasks.Path); !stale(b) {
				b.write(c.job.Tasks.Changes)
			}
		})
		return
	}
	add(c, "looked at, or written and told", func() {
		b := s.book(c.job.Tasks.Path)
		if stale(b) {
			s.port.answer(c, engine.TasksSeen{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: strconv.Itoa(b.stamp), Missing: b.gone, Invalid: b.bad, Tasks: slices.Clone(b.tasks)})
			return
		}
		b.write(c.job.Tasks.Changes)
		s.port.answer(c, engine.TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: strconv.Itoa(b.stamp)})
	})
}

// write puts the changes into the file.
func (b *simBook) write(changes []job.TaskChange) {
	b.stamp++
	b.tasks = slices.Clone(b.tasks)
	for _, c := range changes {
		i := slices.IndexFunc(b.tasks, func(x engine.TaskSeen) bool { return x.ID == c.ID })
		if i < 0 {
			var body struct {
				DependsOn []string `json:"depends_on"`
			}
			_ = json.Unmarshal(c.Body, &body) // our own
			b.tasks = append(b.tasks, engine.TaskSeen{ID: c.ID, Title: c.ID, Status: c.Status, DependsOn: body.DependsOn, For: c.For, Body: c.Body})
			continue
		}
		b.tasks[i].Status = c.Status
	}
}

// worked is what a step's process leaves beside its word: new tasks, or a task file that is one.
// Under mu.
func (s *sim) worked(p *simProc, ev *engine.ProcessEnded) {
	more := json.RawMessage(`{"new_tasks":[{"title":"more"}]}`)
	switch {
	case p.status != engine.StatusDone || p.exit != (engine.Exit{}):
	case p.task != "" && !s.calm && s.g.IntN(12) == 0, p.step == "m1" && s.g.IntN(3) > 0:
		ev.Answer = more
	case p.step == "m0":
		b := s.book("t-" + p.run + ".json")
		b.gone, b.bad = false, ""
		b.stamp++
	}
}
