package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// How much is shown of the words of agents and people.
const (
	showTasks  = 50  // tasks of a list
	showAnswer = 160 // characters of a task's line
	showValue  = 400 // characters of a value within a text
)

// TextOf returns a text of the spec with the run's values; unchanged if some are unknown.
func TextOf(t engine.Text, env *engine.Env) string {
	s, err := t.String(env)
	if err != nil {
		return t.Source
	}
	return s
}

// KnownOf collects the values that texts of a step or a gate may use.
func KnownOf(r daemon.RunStatus, st daemon.StepStatus) *engine.Env {
	env := &engine.Env{Run: r.ID, Workflow: r.Workflow, Vars: r.Vars, Step: st.ID, Attempt: st.Attempt,
		Task: r.Child.TaskEnv(), Steps: map[string]engine.StepEnv{}, Gates: map[string]engine.GateEnv{},
		Foreign: func(_, value string) string { return text.CleanLines(text.Controls(value), showValue) }}
	for _, s := range r.Steps {
		known := engine.StepEnv{Status: s.State, Attempt: s.Attempt}
		for _, at := range s.Attempts {
			if v := decoded(at.Answer); v != nil {
				known.Answer, known.Stdout = v, at.Output
			}
		}
		env.Steps[s.ID] = known
		for _, g := range s.Gates {
			env.Gates[g.ID] = engine.GateEnv{Answer: decoded(g.Answer), Verdict: g.Outcome, Feedback: g.Feedback}
		}
	}
	return env
}

func decoded(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// TaskLines returns a list's tasks, one line each: status and answer, or what else is known of its
// end.
func TaskLines(tasks []daemon.TaskStatus) (lines []string) {
	stand := map[string][]string{} // the tasks that replace a task
	for _, t := range tasks {
		stand[t.StandsFor] = append(stand[t.StandsFor], t.ID)
	}
	for i, t := range tasks {
		if i == showTasks {
			return append(lines, fmt.Sprintf("… and %d more: --json has all", len(tasks)-showTasks))
		}
		line := "task " + text.Line(t.ID) + " " + t.State
		if t.Before {
			line += ", not by this run"
		}
		if by := stand[t.ID]; len(by) > 0 {
			line += ": replaced by " + text.Line(strings.Join(by, ", "))
		} else if words := text.Message(cmp.Or(string(t.Answer), t.Why, t.Summary)); words != "" {
			line += ": " + words
		}
		lines = append(lines, console.Clip(line, showAnswer))
	}
	return lines
}
