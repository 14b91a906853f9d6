package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/text"
)

// showValue is how much of a value that an agent or a person gave stands in a text that is shown.
const showValue = 400

// textOf is a text of the spec with the run's values in it, as far as they are known; else as it stands there.
func textOf(t engine.Text, env *engine.Env) string {
	s, err := t.String(env)
	if err != nil {
		return t.Source
	}
	return s
}

// knownOf gathers what the texts of a step or a gate may speak of.
func knownOf(r daemon.RunStatus, st daemon.StepStatus) *engine.Env {
	env := &engine.Env{Run: r.ID, Workflow: r.Workflow, Vars: r.Vars, Step: st.ID, Attempt: st.Attempt, Task: r.Child.TaskEnv(), Steps: map[string]engine.StepEnv{}, Gates: map[string]engine.GateEnv{},
		Foreign: func(_, value string) string { return text.CleanLines(value, showValue) }}
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

// decoded is a value as expressions see it; nil where there is none.
func decoded(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// gateState is the word for how a gate stands.
func gateState(g daemon.GateStatus) string {
	if g.Due {
		return render.Due
	}
	return orWord(g.State, "not open")
}

// taskLines are the tasks of a list, each with its status and its answer, else what else is known of its end, in one line.
func taskLines(tasks []daemon.TaskStatus) (lines []string) {
	for i, t := range tasks {
		if i == showTasks {
			return append(lines, fmt.Sprintf("… and %d more: --json has all", len(tasks)-showTasks))
		}
		line := "task " + clean(t.ID) + " " + t.State
		if words := oneLine(cmp.Or(string(t.Answer), t.Why, t.Summary)); words != "" {
			line += ": " + words
		}
		lines = append(lines, console.Clip(line, showAnswer))
	}
	return lines
}
