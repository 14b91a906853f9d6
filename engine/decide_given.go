package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// What runs give one another: vars to a child run, its answer to its parent, the tasks of a list from an answer. Each is
// computed once, and kept in the fact that comes of it.

// fromAnswer returns what the list is to be written from, if that was not done yet, and from which attempts and rounds it is
// computed. One that goes on after a step that it went to keeps its file.
func (d *decider) fromAnswer(r *Run, w *Spec, st *Step, a *Attempt) (json.RawMessage, string, error) {
	from, source := st.ForEach.From, ""
	if from.Eval == nil {
		return nil, "", nil
	}
	for _, id := range from.Reads {
		if id != st.ID { // its own answer is no source of it
			source += fmt.Sprintf("%s#%d ", id, len(r.Attempts[id])+len(r.Rounds[id]))
		}
	}
	source = "from " + strings.TrimSpace(source)
	if l := r.List; l != nil && (l.To != "" || l.Source == source) {
		return nil, source, nil
	}
	v, err := from.Eval(d.s.StepEnv(r, w, st.ID, a.N))
	if err != nil {
		return nil, "", err
	}
	b, err := json.Marshal(v)
	if err == nil && len(b) > MaxTaskList {
		err = fmt.Errorf("step %s: for_each: tasks: %s: it has more than %d MiB: split the list", st.ID, from.Source, MaxTaskList>>20)
	}
	return b, source, err
}

// childVars gives the vars that the child declares: what the step gives it, else its parent's of the same name, else its own.
// Where what the step gives has no value, that is an error, and the var has the value it has without.
func (d *decider) childVars(r *Run, w *Spec, st *Step, c ChildOf) (map[string]any, error) {
	out := map[string]any{}
	for _, v := range st.Child.Vars {
		out[v.Name] = v.Default
		if x, ok := r.Vars[v.Name]; ok {
			out[v.Name] = x
		}
	}
	if len(st.ChildVars) == 0 {
		return out, nil
	}
	env := d.s.StepEnv(r, w, st.ID, c.N)
	if t := c.TaskEnv(); t != nil {
		env.Task = t
	}
	given := maps.Clone(out)
	for _, v := range st.ChildVars {
		x, err := v.Value.Eval(env)
		if err != nil {
			return out, err
		}
		given[v.Name] = x
	}
	if b, err := json.Marshal(given); err != nil || len(b) > MaxVars {
		return out, fmt.Errorf("step %s: vars: they take more than %d KiB", st.ID, MaxVars>>10)
	}
	return given, nil
}

// childAnswer gives the answer of a child run that was completed: what the step computes from it, else that of its last step.
func (d *decider) childAnswer(st *Step, r *Run, last json.RawMessage) (json.RawMessage, error) {
	k := d.spec(r)
	if st.ChildAnswer.Eval == nil || k == nil {
		return last, nil
	}
	v, err := st.ChildAnswer.Eval(d.s.env(r, k))
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	if err == nil && len(b) > MaxAnswer {
		err = fmt.Errorf("step %s: answer: %s: it has more than %d KiB", st.ID, st.ChildAnswer.Source, MaxAnswer>>10)
	}
	return b, err
}

// taskAnswer returns the answer of a task's run as it is kept, where the list's workflow reads it, or says why it cannot be.
func (d *decider) taskAnswer(o *Run, st *Step, r *Run, last json.RawMessage) (json.RawMessage, string) {
	answer, err := d.childAnswer(st, r, last)
	if err != nil {
		return nil, err.Error()
	}
	if w := d.spec(o); w == nil || !w.ReadsTasks {
		return nil, ""
	}
	if n := o.List.answered() + len(answer); n > MaxTaskAnswers {
		return nil, fmt.Sprintf("its answer is not kept: with it those of the list's tasks would take more than %d MiB: answer less", MaxTaskAnswers>>20)
	}
	return answer, ""
}
