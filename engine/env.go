package engine

import (
	"encoding/json"
)

// Env is what a condition or a ${{ … }} sees. Values are plain JSON values (map[string]any, []any,
// float64, string, bool, nil).
type Env struct {
	Run, Workflow string
	Vars          map[string]any
	Steps         map[string]StepEnv
	Gates         map[string]GateEnv

	// In a step.
	Step    string
	Attempt int

	// In a gate: the reviewer's answer, or the step's own if the step is the reviewer.
	Gate      string
	Answer    any
	Score     any // float64, or nil if there is none
	Scores    map[string]any
	Findings  []any
	Failures  int
	Exhausted bool

	Task  map[string]any // in a task's run, and in a step that a list visits for one: the task, with attempt and depth
	Tasks []any          // the list's tasks, if the spec reads them
	Tally Tally

	Event map[string]any // in `on: with`: what fired, by name

	// Foreign, if set, returns the replacement in a text for a value that agents or people wrote,
	// so that the text's builder can tell it from its own words.
	Foreign func(source, value string) string `json:"-"`
}

// Tally counts the tasks of a list, except those that others replace.
type Tally struct {
	Total   int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Blocked int `json:"blocked"`
}

// StepEnv is a step's latest state, as expressions see it.
type StepEnv struct {
	Answer  any
	Status  string
	Attempt int
	Stdout  string
}

// GateEnv is a gate's latest state, as expressions see it.
type GateEnv struct {
	Answer   any
	Verdict  string
	Score    any
	Feedback string
}

// holds evaluates a condition; the zero condition is true. The environment is built only when
// needed.
func holds(c Cond, env func() *Env) (bool, error) {
	if c.Eval == nil {
		return true, nil
	}
	return c.Eval(env())
}

// StepEnv returns what expressions of the step see in its attempt n. The step sees its own latest
// answer, so that a repeated attempt can continue from it.
func (s *State) StepEnv(r *Run, w *Spec, step string, n int) *Env {
	env := s.env(r, w)
	env.Step, env.Attempt = step, n
	if w.Inline && r.Child != nil { // the expression is part of the parent's workflow
		env.Attempt = r.Child.N
	}
	if l := r.List; l != nil && l.To == step && l.For != "" {
		if t := l.Task(l.For); t != nil {
			env.Task = t.env(t.Body, t.Tries)
		}
	}
	as := r.Attempts[step]
	for i := len(as) - 1; i >= 0 && env.Steps[step].Answer == nil; i-- {
		own := env.Steps[step]
		own.Answer = value(as[i].Answer)
		env.Steps[step] = own
	}
	return env
}

// env returns the task as expressions see it.
func (t *Task) env(body json.RawMessage, try int) map[string]any {
	out, _ := value(body).(map[string]any)
	if out == nil {
		out = map[string]any{"title": t.Title}
	}
	out["id"], out["attempt"], out["depth"] = t.ID, float64(try), float64(t.Depth)
	return out
}

// TaskEnv returns the run's task as expressions see it, or nil.
func (c *ChildOf) TaskEnv() map[string]any {
	if c == nil || c.Task == "" {
		return nil
	}
	return (&Task{ID: c.Task, Depth: c.Depth}).env(c.Body, c.Try)
}

// env returns a list's tasks as expressions see them.
func (l *TaskList) env() []any {
	out := []any{}
	if l == nil {
		return out
	}
	for _, t := range l.Tasks {
		x := map[string]any{"id": t.ID, "title": t.Title, "status": l.Status(t), "attempts": float64(t.Tries),
			"depth": float64(t.Depth), "summary": t.Summary, "answer": nil}
		if t.State == TaskDone {
			x["answer"], x["attempts"] = value(l.Answers[t.ID]), float64(t.Tries+min(t.Runs, 1))
		}
		if t.Why != "" {
			x["why"] = t.Why
		}
		if t.For != "" {
			x["stands_for"] = t.For
		}
		out = append(out, x)
	}
	return out
}

// GateEnv returns what expressions of the gate see in the round.
func (s *State) GateEnv(r *Run, w *Spec, gate string, q *Round) *Env {
	env := s.env(r, w)
	g := w.Gate(gate)
	env.Gate, env.Step, env.Attempt = gate, g.Step, q.Attempt
	env.Failures = r.Fails[gate]
	env.Exhausted = r.Fails[gate]+1 >= g.MaxRetries
	for _, n := range r.Routes[gate] {
		env.Exhausted = env.Exhausted || n+1 >= g.MaxRetries
	}
	env.setAnswer(Judgement{Answer: q.Answer, Score: q.Score, Scores: q.Scores, Findings: q.Findings})
	if len(q.Answer) == 0 && g.Reviewer.FromStep {
		if a := r.Attempt(g.Step, q.Attempt); a != nil {
			env.setAnswer(ownWord(a))
		}
	}
	return env
}

func (d *draft) gateEnv(r *Run, w *Spec, g *Gate, q *Round) *Env { return d.s.GateEnv(r, w, g.ID, q) }

func (s *State) env(r *Run, w *Spec) *Env {
	env := &Env{Run: r.ID, Workflow: r.Workflow, Vars: r.Vars, Steps: map[string]StepEnv{}, Gates: map[string]GateEnv{}}
	if w.ReadsTasks {
		env.Tasks, env.Tally = r.List.env(), r.List.Tally()
	}
	if c := r.Child; c != nil {
		if o := s.Runs[c.Parent]; o != nil && w.Inline && w.Outer != nil {
			outer := s.env(o, w.Outer)
			env.Run, env.Workflow, env.Steps, env.Gates, env.Tasks, env.Tally = outer.Run, outer.Workflow, outer.Steps,
				outer.Gates, outer.Tasks, outer.Tally
		}
		env.Task = c.TaskEnv()
	}
	for _, st := range w.Steps {
		if as := r.Attempts[st.ID]; len(as) > 0 {
			a := as[len(as)-1]
			env.Steps[st.ID] = StepEnv{Answer: value(a.Answer), Status: a.State, Attempt: a.N, Stdout: a.Output}
		}
	}
	for _, g := range w.Gates {
		if qs := r.Rounds[g.ID]; len(qs) > 0 {
			q := qs[len(qs)-1]
			env.Gates[g.ID] = GateEnv{Answer: value(q.Answer), Verdict: q.Outcome, Score: number(q.Score), Feedback: q.words()}
		}
	}
	return env
}

func (e *Env) setAnswer(j Judgement) {
	e.Answer, e.Score, e.Scores, e.Findings = value(j.Answer), number(j.Score), map[string]any{}, nil
	for k, v := range j.Scores {
		e.Scores[k] = v
	}
	if fs, ok := value(j.Findings).([]any); ok {
		e.Findings = fs
	}
}

func value(raw json.RawMessage) any { return typed[any](raw) }

func number(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

// said holds the keys of a step's answer that the engine reads.
type said struct {
	Status   string             `json:"status"`
	Summary  string             `json:"summary"`
	Feedback string             `json:"feedback"`
	Question string             `json:"question"`
	Options  []string           `json:"options"`
	Score    *float64           `json:"score"`
	Scores   map[string]float64 `json:"scores"`
	Findings json.RawMessage    `json:"findings"`
}

// answerWord reads the keys with a fixed meaning. It ignores values of other types.
func answerWord(raw json.RawMessage) said {
	var keys map[string]json.RawMessage
	var out said
	if len(raw) == 0 || json.Unmarshal(raw, &keys) != nil {
		return out
	}
	out.Status, out.Summary, out.Question = typed[string](keys["status"]), typed[string](keys["summary"]),
		typed[string](keys["question"])
	out.Feedback = typed[string](keys["feedback"])
	out.Options, out.Score, out.Scores = typed[[]string](keys["options"]), typed[*float64](keys["score"]),
		typed[map[string]float64](keys["scores"])
	out.Findings = keys["findings"]
	return out
}

// typed reads a value of type T; a value of another type reads as zero.
func typed[T any](raw json.RawMessage) T {
	var v, none T
	if json.Unmarshal(raw, &v) != nil {
		return none
	}
	return v
}
