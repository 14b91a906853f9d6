package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/gates"
	"sluice/specs"
	"sluice/tools/conform"
)

// templateFiles creates a template's files, and returns its .workflow folder.
func templateFiles(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".workflow")
	for _, tpl := range specs.Templates() {
		if tpl.Name == name {
			if err := os.CopyFS(dir, tpl.Files); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	t.Fatalf("there is no template %s", name)
	return ""
}

// templateSpec loads a template's workflow with these values, as `sluice start` does.
func templateSpec(t *testing.T, name string, vars map[string]string) (*engine.Spec, map[string]any) {
	t.Helper()
	dir := templateFiles(t, name)
	file := filepath.Join(dir, "specs", name+".yaml")
	first, faults := specs.LoadFile(file)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	given, errs := specs.Vars(first, vars)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pinned, faults := specs.Pin(filepath.Dir(dir), file, src, given)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	spec, faults := specs.LoadFor("", pinned, given)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return spec, given
}

// varsAre fails if the workflow's vars or their defaults differ; "" = a required one.
func varsAre(t *testing.T, spec *engine.Spec, want map[string]any) {
	t.Helper()
	got := map[string]any{}
	for _, v := range spec.Vars {
		if got[v.Name] = v.Default; v.Required {
			got[v.Name] = ""
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the vars of %s are %v, want %v", spec.ID, got, want)
	}
}

// filled returns an answer as it is taken, with what was missing.
func filled(t *testing.T, schema *engine.Schema, answer, want string) {
	t.Helper()
	got, err := gates.ReadAnswer([]byte(answer), schema)
	if err != nil || string(got) != want {
		t.Errorf("%s is taken as %s (%v), want %s", answer, got, err, want)
	}
}

// promptSays fails where a prompt does not say these things.
func promptSays(t *testing.T, who, prompt string, wants ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(prompt), " ")
	for _, want := range wants {
		if !strings.Contains(flat, want) {
			t.Errorf("the %s is not told %q:\n%s", who, want, prompt)
		}
	}
}

// TestSupervisedDocument: document 003's roles, keys, prompts and numbers, in the template as it is shipped.
func TestSupervisedDocument(t *testing.T) {
	for _, r := range [][2]string{{"roles", "who plays each step, and what each leads to"}, {"planner", "its four keys"}, {"executor", "its three keys, and a command's"}, {"reviewer", "its three keys"},
		{"controller", "its three keys, and the four words"}, {"schema", "each key of each role"}, {"safe", "no decision is a pause"}, {"unmarked", "the mark is never filled in"}, {"corrections", "two"},
		{"prompts", "each role's, as written"}, {"least", "as written"}, {"iterations", "10, and 12"}, {"goal", "required"}, {"destructive", "one of two"}, {"suggested", "execute is false"},
		{"state", "what each prompt has of those before it"}, {"state.fields", "goal, plan, actions, notes and results in the prompts"}} {
		conform.Rule(t, "003 "+r[0], r[1])
	}
	spec, _ := templateSpec(t, "supervised-loop", map[string]string{"goal": "g"})
	varsAre(t, spec, map[string]any{"goal": "", "max_iter": 10, "execute": false, "confirm": "all"})
	plan, suggest, review, control := spec.Step("plan"), spec.Step("suggest"), spec.Step("review"), spec.Gate("control")
	if got := []string{plan.Role(), suggest.Role(), review.Role(), control.Reviewer.AgentType}; !slices.Equal(got, []string{"planner", "executor", "reviewer", "controller"}) {
		t.Errorf("the roles are %v", got)
	}
	filled(t, plan.Answer, `{}`, `{"assumptions":[],"next_actions":[],"plan":[],"risks":[]}`)
	filled(t, suggest.Answer, `{}`, `{"commands":[],"expected_outcomes":[],"fallbacks":[]}`)
	filled(t, suggest.Answer, `{"commands":[{"cmd":"rm x"}]}`, `{"commands":[{"cmd":"rm x","why":""}],"expected_outcomes":[],"fallbacks":[]}`)
	filled(t, suggest.Answer, `{"commands":[{"cmd":"rm x","why":"w","destructive":true}]}`, `{"commands":[{"cmd":"rm x","destructive":true,"why":"w"}],"expected_outcomes":[],"fallbacks":[]}`)
	filled(t, review.Answer, `{}`, `{"deltas":[],"findings":[],"suggested_changes":[]}`)
	filled(t, control.Answer, `{}`, `{"decision":"pause","plan_patch":[],"reason":""}`)
	for word, to := range map[string]string{"continue": "plan", "adjust_plan": "plan", "rollback": "restore", "pause": engine.LevelHuman, "stop": engine.EndDone, "go_on": ""} {
		if _, err := gates.ReadAnswer([]byte(`{"decision":"`+word+`"}`), control.Answer); (err == nil) != (to != "") {
			t.Errorf("the decision %s: %v", word, err)
		}
		if got, _ := control.Route(word); got != to {
			t.Errorf("%s leads to %q, want %q", word, got, to)
		}
	}
	conform.Rule(t, "13-law 003 confirm", "what each value of confirm asks about; one that is none of them, about all")
	pass := spec.Gate("allow").Verdict.Rules[0]
	for commands, harmless := range map[string]bool{``: true, `{"cmd":"a","destructive":false}`: true, `{"cmd":"a","destructive":true}`: false, `{"cmd":"a"}`: false, `{"cmd":"a","destructive":false},{"cmd":"b","destructive":true}`: false, `{"cmd":"a","destructive":false},{"cmd":"b"}`: false} {
		taken, err := gates.ReadAnswer([]byte(`{"commands":[`+commands+`]}`), suggest.Answer)
		var answer any
		if err := errors.Join(err, json.Unmarshal(taken, &answer)); err != nil {
			t.Fatal(err)
		}
		for confirm, want := range map[string]bool{"all": false, "destructive": harmless, "none": true, "non": false} {
			if got, err := pass.When.Eval(&engine.Env{Answer: answer, Vars: map[string]any{"confirm": confirm}}); pass.Outcome != engine.OutcomePass || got != want || err != nil {
				t.Errorf("confirm=%s lets %s pass unasked: %v, %v", confirm, taken, got, err)
			}
		}
	}
	if gates.MaxCorrections != 2 {
		t.Errorf("an answer that is no JSON is asked for %d times again", gates.MaxCorrections)
	}
	promptSays(t, "planner", plan.Agent.Prompt.Source, "You plan, and do nothing else. Change no file", "Where the goal can be read in two ways, plan the least that is of use")
	promptSays(t, "executor", suggest.Agent.Prompt.Source, "You suggest commands, and run none of them", "each with its reason", "`destructive: true` where it deletes", "what you expect of them, and what to do instead where one fails")
	promptSays(t, "reviewer", review.Agent.Prompt.Source, "You review, and change nothing", "against the plan", "(findings)", "(deltas)", "(suggested_changes)")
	promptSays(t, "controller", control.Reviewer.Prompt.Source, "`continue`", "`adjust_plan`", "`plan_patch`", "`pause`", "Choose this where you are not sure, or where harm is near", "`stop`")
	promptSays(t, "planner", plan.Agent.Prompt.Source, "${{vars.goal}}", "${{steps.plan.answer.plan}}", "${{steps.review.answer.findings}}", "${{steps.review.answer.deltas}}", "${{steps.review.answer.suggested_changes}}", "gates.control.answer.plan_patch")
	promptSays(t, "executor", suggest.Agent.Prompt.Source, "${{vars.goal}}", "${{steps.plan.answer.next_actions}}")
	promptSays(t, "reviewer", review.Agent.Prompt.Source, "${{vars.goal}}", "${{steps.plan.answer.plan}}", "${{steps.suggest.answer}}", "${{steps.execute.stdout}}")
	promptSays(t, "controller", control.Reviewer.Prompt.Source, "${{vars.goal}}", "${{steps.plan.answer.plan}}", "${{steps.suggest.answer.commands}}")
	for given, want := range map[string]int{"": 10, "12": 12} {
		vars := map[string]string{"goal": "g"}
		if given != "" {
			vars["max_iter"] = given
		}
		if spec, _ := templateSpec(t, "supervised-loop", vars); spec.Gate("control").MaxRetries != want || spec.Gate("control").OnExhausted != engine.EndDone {
			t.Errorf("max_iter=%s: %d rounds, then %s", given, spec.Gate("control").MaxRetries, spec.Gate("control").OnExhausted)
		}
	}
	if _, errs := specs.Vars(spec, map[string]string{}); len(errs) != 1 || !strings.Contains(errs[0].Error(), "goal") {
		t.Errorf("without a goal: %v", errs)
	}
}

// TestTemplateKeys: each key that an agent of a template has to write is in snake_case, as document 003 wants of all roles.
func TestTemplateKeys(t *testing.T) {
	conform.Rule(t, "003 snake_case", "of every schema of every template")
	snake := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := 0
	var walk func(where string, v any)
	walk = func(where string, v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(where, x)
			}
		case map[string]any:
			if keys, ok := v["properties"].(map[string]any); ok {
				for key := range keys {
					if seen++; !snake.MatchString(key) {
						t.Errorf("%s: the key %s", where, key)
					}
				}
			}
			for _, x := range v {
				walk(where, x)
			}
		}
	}
	for _, tpl := range specs.Templates() {
		if err := fs.WalkDir(tpl.Files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".json" {
				return err
			}
			data, err := fs.ReadFile(tpl.Files, path)
			if err != nil {
				return err
			}
			var v any
			if err := json.Unmarshal(data, &v); err != nil {
				return err
			}
			walk(tpl.Name+"/"+path, v)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if seen < 40 {
		t.Errorf("only %d keys were looked at", seen)
	}
}

// TestDevCycleDocument: document 002's phases, roles, files, scores and defaults, in the template as it is shipped.
func TestDevCycleDocument(t *testing.T) {
	for _, r := range [][2]string{{"phases", "by the edges of the spec"}, {"engines", "who plays what"}, {"planning", "its two files, looked at; what the tasks have to have"}, {"planning.input", "the prompt"},
		{"plan-review", "review.json is of its answer; where it leads"}, {"execution", "the report is of the tasks"}, {"code-review", "review.json and recommendations.json; where it leads"}, {"scores", "the five, none else; 0 and 100, not 101"},
		{"finalize", "summary.md"}, {"maxDuration", "30 minutes, and 1h"}, {"maxReviewIterations", "3, and 5, of both"}, {"autoCommit", "false"}, {"notifyOnPhaseComplete", "false"}, {"createPR", "false"}, {"session.id", "of each phase"},
		{"plan-review.structure", "the prompt"}, {"code-review.input", "the prompt"}} {
		conform.Rule(t, "002 "+r[0], r[1])
	}
	spec, _ := templateSpec(t, "dev-cycle", map[string]string{"task": "x"})
	varsAre(t, spec, map[string]any{"task": "", "max_duration": "30m", "max_review_iterations": 3, "auto_commit": false, "notify_on_phase_complete": false, "create_pr": false})
	planning, execution, finalize := spec.Step("planning"), spec.Step("execution"), spec.Step("finalize")
	plans, codes := spec.Gate("plan-review"), spec.Gate("code-review")
	ways := fmt.Sprint(planning.Gates, plans.OnPass, plans.OnFail, execution.Gates, codes.OnPass, codes.OnFail)
	if want := "[plan-review] [execution]planning[code-review] [finalize]execution"; ways != want {
		t.Errorf("the phases lead %s, want %s", ways, want)
	}
	if got := []string{planning.Role(), plans.Reviewer.AgentType, execution.Child.Steps[0].Role(), codes.Reviewer.AgentType, finalize.Role()}; !slices.Equal(got, []string{"planner", "reviewer", "executor", "reviewer", "executor"}) {
		t.Errorf("the roles are %v", got)
	}
	for name, c := range map[string]struct {
		of   []engine.Output
		want string
	}{"planning": {planning.Outputs, "plan.md= tasks.json="}, "plan-review": {plans.Outputs, "review.json=answer"}, "execution": {execution.Outputs, "execution-report.json=tasks"},
		"code-review": {codes.Outputs, "review.json=answer recommendations.json=findings ?? []"}, "finalize": {finalize.Outputs, "summary.md="}} {
		var got []string
		for _, o := range c.of {
			got = append(got, o.Path.Source+"="+o.Value.Source)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s writes %v, want %s", name, got, c.want)
		}
	}
	if got := fmt.Sprint(planning.Criteria); got != "[{<nil> plan.md true  false} {<nil> tasks.json true  false}]" {
		t.Errorf("of what was planned is checked: %s", got)
	}
	promptSays(t, "planner", planning.Agent.Prompt.Source, "${{vars.task}}", "Look at the code first", "plan.md: the approach", `"depends_on"`, `"acceptance"`)
	promptSays(t, "reviewer of the plan", plans.Reviewer.Prompt.Source, "plan.md and tasks.json sound and complete", "dependencies that are wrong")
	promptSays(t, "reviewer of the code", codes.Reviewer.Prompt.Source, "git diff, execution-report.json")
	if want := []string{"architecture", "code_quality", "test_coverage", "security", "documentation"}; !slices.Equal(codes.Reviewer.Rubric, want) {
		t.Errorf("the scores are %v", codes.Reviewer.Rubric)
	}
	conform.Rule(t, "13-law 002 rejected", `"If rejected, loops back to planning": the words of its reviewer, and what each comes to`)
	for word, want := range map[string]string{"pass": "pass", "approved": "pass", "fail": "", "rejected": "rejected", "approve": "!", "Approved": "!", "unapproved": "!", "": "!"} {
		in := gates.VerdictInput{Output: fmt.Appendf(nil, "The plan is {\"verdict\": %q, \"feedback\": \"f\"}.", word), Schema: plans.Answer, Computed: len(plans.Verdict.Rules) > 0}
		if !in.Computed {
			in.Allowed = []string{"pass", "fail"}
		}
		j, err := gates.ReadVerdict(in)
		if err != nil || want == "!" {
			if want != "!" || err == nil {
				t.Errorf("the plan's reviewer says %q: %+v, %v", word, j, err)
			}
			continue
		}
		got := ""
		for _, r := range plans.Verdict.Rules {
			ok, err := r.When.Eval(&engine.Env{Answer: map[string]any{"verdict": word}})
			if err != nil {
				t.Fatal(err)
			}
			if ok && got == "" {
				got = r.Outcome
			}
		}
		if got != want {
			t.Errorf("the plan's reviewer says %q: it comes to %q, want %q", word, got, want)
		}
	}
	for n, good := range map[int]bool{-1: false, 0: true, 100: true, 101: false} {
		in := gates.VerdictInput{Rubric: codes.Reviewer.Rubric, Schema: codes.Answer, Computed: true,
			Structured: fmt.Appendf(nil, `{"scores":{"architecture":80,"code_quality":80,"test_coverage":%d,"security":80,"documentation":80}}`, n)}
		if _, err := gates.ReadVerdict(in); (err == nil) != good {
			t.Errorf("a score of %d: %v", n, err)
		}
	}
	for phase, session := range map[string]string{"planning": planning.Agent.Session.Source, "execution": execution.Child.Steps[0].Agent.Session.Source, "finalize": finalize.Agent.Session.Source, "plan-review": plans.Reviewer.Session.Source, "code-review": codes.Reviewer.Session.Source} {
		if !strings.HasPrefix(session, "wf-${{run}}-"+phase+"-${{") {
			t.Errorf("the session of %s is %q", phase, session)
		}
	}
	other, _ := templateSpec(t, "dev-cycle", map[string]string{"task": "x", "max_duration": "1h", "max_review_iterations": "5"})
	for _, c := range []struct {
		spec *engine.Spec
		time time.Duration
		max  int
	}{{spec, 30 * time.Minute, 3}, {other, time.Hour, 5}} {
		if time.Duration(c.spec.Limits.MaxDuration) != c.time {
			t.Errorf("it has %v, want %v", time.Duration(c.spec.Limits.MaxDuration), c.time)
		}
		for _, gate := range []string{"plan-review", "code-review"} {
			if g := c.spec.Gate(gate); g.MaxRetries != c.max || g.OnExhausted != engine.EndFailed {
				t.Errorf("%s: %d times, then %s", gate, g.MaxRetries, g.OnExhausted)
			}
		}
	}
}

// TestBacklogDocument: document 001's names, keys, prompts and defaults, in the template as it is shipped.
func TestBacklogDocument(t *testing.T) {
	for _, r := range [][2]string{{"file.name", "the default, and in the prompts"}, {"fresh context", "no conversation goes on"}, {"one task", "one at a time, by the spec"}, {"error", "three tries"}, {"max iterations", "50, and 5; then it has failed"},
		{"commit", "false"}, {"summary", "the five keys, filled; the three words, one of them said"}, {"review.done", "the word"}, {"prompt", "as written"}, {"prompt.bootstrap", "as written"}, {"prompt.repair", "as written"}, {"prompt.review", "as written"}, {"prompt.log", "as written"}} {
		conform.Rule(t, "001 "+r[0], r[1])
	}
	spec, _ := templateSpec(t, "backlog", map[string]string{})
	varsAre(t, spec, map[string]any{"tasks": "to-do.json", "max_iterations": 50, "auto_commit": false})
	work, review := spec.Step("work"), spec.Gate("review")
	iter := work.Child.Steps[0]
	for who, session := range map[string]string{"iter": iter.Agent.Session.Source, "bootstrap": spec.Step("bootstrap").Agent.Session.Source, "repair": spec.Step("repair").Agent.Session.Source, "review": review.Reviewer.Session.Source} {
		if session != "" {
			t.Errorf("%s goes on in the conversation %s", who, session)
		}
	}
	if l := work.ForEach; l.MaxParallel != 1 || l.Attempts != 3 || l.OnMissing != "bootstrap" || l.OnInvalid != "repair" || l.OnExhausted != "" {
		t.Errorf("the list: %+v", l)
	}
	filled(t, iter.Answer, `{"status":"done"}`, `{"blockers":[],"files":[],"new_tasks":[],"status":"done","summary":"","task_id":null}`)
	for answer, good := range map[string]bool{`{"status":"blocked"}`: true, `{"status":"skipped"}`: true, `{"status":"todo"}`: false, `{"summary":"did it"}`: false, `{"status":"done","files":"a.go"}`: false, `{"status":"done","task_id":7}`: false} {
		if _, err := gates.ReadAnswer([]byte(answer), iter.Answer); (err == nil) != good {
			t.Errorf("%s: %v", answer, err)
		}
	}
	for word, want := range map[string]bool{"project-done": true, "more": true, "done": false} {
		if _, err := gates.ReadAnswer([]byte(`{"status":"`+word+`"}`), review.Answer); (err == nil) != want {
			t.Errorf("the review pass says %s: %v", word, err)
		}
	}
	promptSays(t, "agent of an iteration", iter.Agent.Prompt.Source, "Do this one task, and nothing else", "${{task.id}}", "${{task.description", "${{tasks}}", ".workflow/runs/last/events.jsonl")
	promptSays(t, "agent of the bootstrap", spec.Step("bootstrap").Agent.Prompt.Source, "Read its documents (README and others) and its code", "`source_files` names what you read", "${{vars.tasks}}")
	promptSays(t, "agent of the repair", spec.Step("repair").Agent.Prompt.Source, "${{vars.tasks}} is invalid; the notes below say what is wrong", "Fix it")
	promptSays(t, "agent of the review pass", review.Reviewer.Prompt.Source, "what was changed (git log, git diff)", "what came of each: ${{tasks}}", "`project-done`")
	for given, want := range map[string]int{"": 50, "5": 5} {
		vars := map[string]string{}
		if given != "" {
			vars["max_iterations"] = given
		}
		spec, _ := templateSpec(t, "backlog", vars)
		if l := spec.List().ForEach; l.MaxTries != want {
			t.Errorf("max_iterations=%s: %d tries", given, l.MaxTries)
		}
	}
}

// TestGatedDocument: the template that shows document 004's example keeps its ids, roles, levels and retries.
func TestGatedDocument(t *testing.T) {
	conform.Rule(t, "004 §3 example.values", "the template keeps its ids, roles, levels, ways and retries")
	spec, _ := templateSpec(t, "document-example", map[string]string{"task": "x"})
	var got []string
	for _, s := range spec.Steps {
		got = append(got, fmt.Sprint(s.ID, " ", s.Name, " ", s.Role(), " ", s.Agent.Launch, " ", s.Gates))
	}
	for _, g := range spec.Gates {
		got = append(got, fmt.Sprint(g.ID, " ", g.Name, " ", g.Reviewer.Level, " ", g.Reviewer.AgentType, " ", g.OnPass, " ", g.OnFail, " ", g.MaxRetries, " ", g.OnExhausted))
	}
	want := []string{"X-1 write-tests test-writer headless [XG-1-2]", "X-2 implement implementor headless [XG-2-end]",
		"XG-1-2 review-tests notify reviewer [X-2] X-1 2 human", "XG-2-end review-implementation human  [DONE] X-2 3 human"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	table := section(t, guide(t, "document-example"), "Settings")
	for _, row := range []string{"| `veto_window` | " + time.Duration(engine.DefaultConfig().VetoWindow).String() + " |", "| `max_failures` of XG-1-2 | 2 |", "| `max_failures` of XG-2-end (it is yours anyway) | 3 |",
		fmt.Sprintf("| `limits: max_steps` | %d, then you are asked |", spec.Limits.MaxSteps)} {
		if !strings.Contains(table, row) {
			t.Errorf("the guide's settings have no %s", row)
		}
	}
}
