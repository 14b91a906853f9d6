package specs

import (
	"fmt"
	"strings"
	"testing"

	"sluice/tools/conform"
)

func TestListFrom(t *testing.T) {
	conform.Rule(t, "13-law from answer", "one entry, whose path names the run; what it is computed from is known")
	spec := func(tasks string) string {
		return "workflow: {id: w, vars: {v: x}}\nsteps:\n  - {id: plan, agent: {type: a}, answer: {type: object}, gate: G}\n" +
			"  - {id: work, run: x, for_each: {tasks: " + tasks + "}, next_step: DONE}\ngates:\n  - {id: G, reviewer: {level: auto, from: step}, on_pass: {next_step: work}}\n"
	}
	for tasks, want := range map[string]string{
		`{"a/${{run}}.json": steps.plan.answer.items}`:                    "[plan]",
		`{"a/${{run}}-${{vars.v}}.json": 'steps["plan"].answer.x'}`:       "[plan]",
		`{"${{run}}.json": 'gates.G.score > 3 ? [] : steps.plan.answer'}`: "[G plan]",
		`{"${{run}}.json": 'map(keys(steps), #)'}`:                        "[plan work]",
		`{"${{run}}.json": "[vars.v]"}`:                                   "[]",
	} {
		w, faults := Load("w.yaml", []byte(spec(tasks)))
		if faults != nil {
			t.Errorf("%s: %v", tasks, faults)
			continue
		}
		if from := w.List().ForEach.From; fmt.Sprint(from.Reads) != want || from.Eval == nil {
			t.Errorf("%s reads %v, want %s", tasks, from.Reads, want)
		}
	}
	for tasks, want := range map[string]string{
		`{a.json: steps.plan.answer}`:                                 `4:43: step work: for_each: tasks: "a.json": the list is written there for each run: name the run in the path`,
		`{"${{runs}}.json": steps.plan.answer}`:                       `unknown name "runs"`,
		`{"${{run}}.json": steps.paln.answer}`:                        `unknown step "paln": did you mean "plan"?`,
		`{"${{run}}.json": steps.plan.answer, "b${{run}}.json": "1"}`: "want one entry, {path: expression}",
		`{}`:                                     "want one entry, {path: expression}",
		`{"${{run}}.json": ""}`:                  "the expression is empty",
		`{".workflow/specs/${{run}}.json": "1"}`: "is in .workflow/specs", `{".workflow/prompts/${{run}}.md": "1"}`: "is in .workflow/prompts",
		`[a.json]`: "expected a path, or {path: expression}, found a list",
	} {
		_, faults := Load("w.yaml", []byte(spec(tasks)))
		if text := fmt.Sprint(faults); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", tasks, text, want)
		}
	}
}
