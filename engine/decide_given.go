package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Values that runs pass on: vars to a child run, its answer to its parent, a list's tasks from an
// answer. Each is computed once and kept in a fact.

// fromAnswer returns the content of the list's file if it must be written, and the attempts and
// rounds it is computed from. A list that resumes after visiting a step keeps its file.
func (d *listing) fromAnswer(r *Run, w *Spec, st *Step, a *Attempt) (json.RawMessage, string, error) {
	from, source := st.ForEach.From, ""
	if from.Eval == nil {
		return nil, "", nil
	}
	for _, id := range from.Reads {
		if id != st.ID { // its own answer is not a source
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
		err = fmt.Errorf("step %s: for_each: tasks: %s: it has more than %d MiB: split the list", st.ID,
			from.Source, MaxTaskList>>20)
	}
	return b, source, err
}

// childVars returns the child's declared vars: from the step, else the parent's of the same name,
// else the default. If the step's values cannot be computed, it returns an error and the vars
// without them.
func (d *listing) childVars(r *Run, w *Spec, st *Step, c ChildOf) (map[string]any, error) {
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

// childAnswer returns the answer of a completed child run: the step's expression over it, else the
// answer of its last step.
func (d *listing) childAnswer(st *Step, r *Run, last json.RawMessage) (json.RawMessage, error) {
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

// taskAnswer returns the answer to keep of a task's run if the list's workflow reads it, or why it
// cannot be kept.
func (d *listing) taskAnswer(o *Run, st *Step, r *Run, last json.RawMessage) (json.RawMessage, string) {
	answer, err := d.childAnswer(st, r, last)
	if err != nil {
		return nil, err.Error()
	}
	if w := d.spec(o); w == nil || !w.ReadsTasks {
		return nil, ""
	}
	if n := o.List.answered() + len(answer); n > MaxTaskAnswers {
		return nil, fmt.Sprintf("its answer is not kept: with it those of the list's tasks would take more than %d MiB: "+
			"shorten the answers", MaxTaskAnswers>>20)
	}
	return answer, ""
}
