package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// lets is a value that is computed from what expressions see.
func lets(f func(*Env) (any, error)) Value { return Value{Source: "an expression", Eval: f} }

// given makes the list's step pass vars to its child runs and compute their answers.
func given(answer func(*Env) (any, error), vars map[string]func(*Env) (any, error)) func(*Spec) {
	return func(w *Spec) {
		st := w.List()
		for _, name := range sortedKeys(vars) {
			st.ChildVars = append(st.ChildVars, ChildVar{Name: name, Value: lets(vars[name])})
		}
		if answer != nil {
			st.ChildAnswer = lets(answer)
		}
		st.Child.Vars = []Var{{Name: "own", Default: "child's"}, {Name: "shared", Default: "child's"}, {Name: "given", Default: "child's"}}
		w.Vars, w.ReadsTasks = []Var{{Name: "shared", Default: "parent's"}, {Name: "given", Default: "parent's"}}, true
	}
}

func TestRule34Vars(t *testing.T) {
	computed := 0
	l := twoStepList(t, "13-law children", "`vars:` wins over the parent's var of the same name, is computed once and kept in the fact that starts the run", "A", List{Attempts: 3}, Limits{},
		given(nil, map[string]func(*Env) (any, error){"given": func(env *Env) (any, error) {
			if computed++; computed == 1 {
				return nil, errors.New("w.yaml:7: it is not there yet")
			}
			return fmt.Sprint(env.Task["id"], " ", env.Vars["shared"], " ", env.Step), nil
		}}))
	l.all()
	k := l.st.Runs["x-1.A.2"]
	l.want(fmt.Sprint(k.Vars), "map[given:A parent's work own:child's shared:parent's]", fmt.Sprint(computed), "2", l.r().Phase, RunCompleted)
	// A value that cannot be computed fails the try before anything is launched.
	bad := l.st.Runs["x-1.A.1"]
	l.want(bad.Phase, RunFailed, bad.EndWhy, "w.yaml:7: it is not there yet", fmt.Sprint(len(bad.Attempts)), "0", l.did(), "A.2 done, A.2 done", fmt.Sprint(bad.Vars["given"]), "parent's")
	if tried := l.r().List.Task("A").Tried; len(tried) != 1 || !strings.Contains(tried[0], "not there yet") {
		t.Errorf("the next try is told %q", tried)
	}

	l = twoStepList(t, "", "", "A", List{Attempts: 1}, Limits{}, given(nil, map[string]func(*Env) (any, error){"given": func(*Env) (any, error) { return strings.Repeat("x", MaxVars), nil }}))
	l.all()
	l.want(l.r().Phase, RunFailed)
	l.has(l.r().List.Task("A").Why, "vars: they take more than 64 KiB")
}

func TestRule34Answer(t *testing.T) {
	files := func(env *Env) (any, error) { // over the child's names
		if env.Steps["b"].Status != Passed || env.Steps["work"].Status != "" {
			return nil, fmt.Errorf("it sees %v", env.Steps)
		}
		return map[string]any{"from": env.Task["id"], "b": env.Steps["b"].Answer}, nil
	}
	l := twoStepList(t, "13-law children", "`answer: expression`, over the child's names; each of `tasks` has its `answer`", "A B", List{Attempts: 1}, Limits{}, given(files, nil))
	l.plays = func(task string, _ int) string { return map[string]string{"A": "done", "B": "failed"}[task] }
	l.all()
	l.want(fmt.Sprint(l.answers()), `map[A:{"b":{"status":"done"},"from":"A"}]`)
	snapshot, err := json.Marshal(l.st)
	var again State
	if err == nil {
		err = json.Unmarshal(snapshot, &again)
	}
	if err != nil || len(again.Runs["x-1"].List.Answers) != 1 {
		t.Errorf("a snapshot forgets the answers: %v", err)
	}
	env := l.st.StepEnv(l.r(), l.specs["d-x"], "work", 1)
	l.want(fmt.Sprint(env.Tasks[0].(map[string]any)["answer"]), "map[b:map[status:done] from:A]", fmt.Sprint(env.Tasks[1].(map[string]any)["answer"]), "<nil>")

	// Without an expression it is the last step's, or an inline step's own; if nothing reads it,
	// none is kept.
	for _, reads := range []bool{true, false} {
		l = tasksOf(t, "", "", "A", aList(List{Attempts: 1}), listGate(), func(w *Spec) { w.ReadsTasks = reads })
		l.all()
		l.want(fmt.Sprint(l.answers()), map[bool]string{true: `map[A:{"status":"done"}]`, false: "map[]"}[reads])
	}

	// One that cannot be computed, or is too large, fails the try; the next has its own.
	tries := 0
	l = twoStepList(t, "", "", "A", List{Attempts: 3}, Limits{}, given(func(*Env) (any, error) {
		switch tries++; tries {
		case 1:
			return nil, errors.New("w.yaml:9: what it reads is not there yet")
		case 2:
			return strings.Repeat("x", MaxAnswer), nil
		}
		return "third", nil
	}, nil))
	l.all()
	l.want(l.r().Phase, RunCompleted, fmt.Sprint(l.answers()), `map[A:"third"]`, l.st.Runs["x-1.A.1"].Phase, RunCompleted)
	if tried := strings.Join(l.r().List.Task("A").Tried, "; "); !strings.Contains(tried, "w.yaml:9: what it reads is not there yet; step work: answer: an expression: it has more than 64 KiB") {
		t.Errorf("the tries failed for %s", tried)
	}
}

// answers returns the kept answers of the list's tasks.
func (l *listed) answers() map[string]string {
	out := map[string]string{}
	for id, a := range l.r().List.Answers {
		out[id] = string(a)
	}
	return out
}

// TestRule34AnswersBounded: the answers of a list stay below their limit; those of tasks that begin
// again or are removed are forgotten.
func TestRule34AnswersBounded(t *testing.T) {
	large := func(*Env) (any, error) { return strings.Repeat("x", MaxAnswer-10), nil }
	var ids []string
	for i := range MaxTaskAnswers/MaxAnswer + 1 {
		ids = append(ids, fmt.Sprint("T", i))
	}
	l := twoStepList(t, "", "", strings.Join(ids, " "), List{Attempts: 1}, Limits{}, given(large, nil))
	l.all()
	last := l.r().List.Task(ids[len(ids)-1])
	l.want(l.r().Phase, RunFailed, last.State, TaskFailed, fmt.Sprint(len(l.answers())), fmt.Sprint(len(ids)-1))
	l.has(last.Why, "its answer is not kept: with it those of the list's tasks would take more than 4 MiB")

	l = twoStepList(t, "", "", "A B", List{Attempts: 1}, Limits{}, given(large, nil), func(w *Spec) { *w.Gates[0] = *judgedGate(most(3)) })
	rounds := 0
	l.judges = func() bool {
		if rounds++; rounds == 1 { // a person has B repeated, and removes A
			l.edit("B", TaskTodo)
			l.file = l.file[1:]
		}
		return rounds > 1
	}
	l.plays = func(task string, _ int) string {
		if rounds == 1 {
			l.want(fmt.Sprint(len(l.answers())), "0")
		}
		return "done"
	}
	l.all()
	l.want(fmt.Sprint(len(l.answers()), l.answers()["B"] != ""), "1 true")
}

// TestRule34StepAnswer: a step that is a child run, and not a list.
func TestRule34StepAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*Env) (any, error)
		vars   func(*Env) (any, error)
		phase  string
		want   string
	}{
		"computed":    {func(env *Env) (any, error) { return env.Vars["given"], nil }, func(env *Env) (any, error) { return env.Step, nil }, RunCompleted, `"build"`},
		"no answer":   {func(*Env) (any, error) { return nil, errors.New("w.yaml:4: not there") }, nil, RunFailed, "w.yaml:4: not there"},
		"no var":      {nil, func(*Env) (any, error) { return nil, errors.New("w.yaml:3: not there") }, RunFailed, "w.yaml:3: not there"},
		"last step's": {nil, nil, RunCompleted, `{"n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			a, ga := ungated("a", to(EndDone))
			a.Signal = Signal{Type: SignalExit}
			b, gb := ungated("build", to(EndDone))
			b.Agent, b.Signal = nil, Signal{Type: SignalExit}
			b.Child = flow("sub", a, ga, func(w *Spec) { w.Vars = []Var{{Name: "given", Default: "none"}} })
			b.Child.Link()
			if c.vars != nil {
				b.ChildVars = []ChildVar{{Name: "given", Value: lets(c.vars)}}
			}
			if c.answer != nil {
				b.ChildAnswer = lets(c.answer)
			}
			s := begin(t, "", "", flow("x", b, gb))
			for _, e := range s.owed(DoRun) {
				s.do(ProcessEnded{Run: e.Run, Key: e.Key, Answer: json.RawMessage(`{"n":1}`)})
			}
			got := s.r().Attempts["build"][0]
			s.want(s.r().Phase, c.phase, string(got.Answer)+got.Failure, c.want)
			s.replayed()
		})
	}
}
