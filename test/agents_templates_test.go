//go:build linux

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/modelstub"
)

// cast creates a template for the real agents of newAgents, held by the sandbox: each role names
// its part of the stub's play, and asks for the named model ("" = none).
func (w *sandbox) cast(stub *modelstub.Stub, template string, models map[string]string) {
	w.t.Helper()
	w.caged()
	w.do("git", "init", "-q")
	w.do(w.bin, "init", "--template", template, "--writer", "claude", "--reviewer", "codex")
	settings := "notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\nsandbox: {mode: on}\nroles:\n"
	for r, model := range models {
		settings += fmt.Sprintf("  %s: {model: %q, network: [%q]}\n", r, model, strings.TrimPrefix(stub.URL, "http://"))
		w.put("repo/.workflow/prompts/"+r+".md", "STUB:"+r+" You are the "+r+".\n")
	}
	w.put("config/sluice/config.yaml", settings)
}

// answering is what the model says for an answer to a schema: claude uses its tool, codex says it.
func answering(v map[string]any) []modelstub.Act {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values of a test
	}
	return []modelstub.Act{{Text: string(b), Structured: v}, {Text: "That is all."}}
}

// completed fails where the run has not gone to its end, and where its record does not verify.
func (w *sandbox) completed(run daemon.RunStatus) (log string) {
	w.t.Helper()
	log = w.do(w.bin, "log", "--all", run.ID)
	if run.Phase != engine.RunCompleted {
		w.t.Fatalf("%s has ended as %s\n%s\n%s", run.ID, run.Phase, log, w.do("sh", "-c", "tail -n 5 $(find .workflow/runs -name stdout -o -name stderr)"))
	}
	w.do(w.bin, "audit", "verify")
	return log
}

// says fails where a text lacks what is wanted, in this order; runs of blanks count as one.
func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	rest := strings.Join(strings.Fields(text), " ")
	for _, want := range wants {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is not said, or too early:\n%s", want, text)
		}
		rest = after
	}
}

// wasTold returns the texts with which a part's conversations began or went on, in their order.
func wasTold(stub *modelstub.Stub, part string) (texts []string) {
	for _, r := range stub.Seen() {
		if r.Part == part && r.Step == 0 {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// file returns what stands in a file of the repo.
func (w *sandbox) file(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.repo, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// TestRealAgentsDevCycle has the real claude plan, execute and sum up, and the real codex review, through document 002's
// workflow as it is shipped: the plan and the code are each sent back once.
func TestRealAgentsDevCycle(t *testing.T) {
	t.Parallel()
	needsCage(t)
	conform.Rule(t, "002 phases", "by the real claude and codex")
	conform.Rule(t, "002 engines", "claude plans and executes, codex reviews, each for real")
	conform.Rule(t, "002 models", "the models of the document, as the programs ask for them")
	conform.Rule(t, "002 planning.input", "the task stands in the prompt")
	conform.Rule(t, "002 code-review.input", "the diff and the report, in the prompt")
	conform.Rule(t, "002 finalize.commit", "the commit that bears the summary's first line")
	conform.Rule(t, "002 session.id", "in agent.json of each iteration of a phase")
	conform.Rule(t, "002 session.jsonl", "of each, an event of the program a line")
	tasks := `{"schema_version": 1, "tasks": [
	  {"id": "T1", "title": "the parser", "description": "reads a date", "priority": 1, "status": "todo", "acceptance": ["2026-11-20 is read"]},
	  {"id": "T2", "title": "its errors", "description": "says what is wrong", "priority": 1, "status": "todo", "depends_on": ["T1"], "acceptance": ["ERRORS"]}]}`
	planned := func(plan, errors string) []modelstub.Act {
		return []modelstub.Act{{Bash: "echo '" + plan + "' >plan.md; cat >tasks.json <<'END'\n" + strings.Replace(tasks, "ERRORS", errors, 1) + "\nEND\n"}, {Text: "Planned."}}
	}
	wrote := func(text, file string) []modelstub.Act {
		return []modelstub.Act{{Bash: "printf '" + text + "\\n' >>" + file}, {Text: "Done."}}
	}
	scored := func(tests int, feedback string) []modelstub.Act {
		return answering(map[string]any{"scores": map[string]any{"architecture": 80, "code_quality": 80, "test_coverage": tests, "security": 80, "documentation": 80},
			"feedback": feedback, "findings": []any{map[string]any{"severity": "low", "file": "dates.py", "line": 1, "message": "name the format"}}, "summary": "read"})
	}
	w, stub := newAgents(t, "", map[string]modelstub.Part{
		"planner":  {planned("Two tasks.", "it fails"), planned("Two tasks, with errors.", "13 is no month")},
		"executor": {wrote("parse = 1", "dates.py"), wrote("errors = 1", "dates.py"), wrote("def test_13(): pass", "test_dates.py"), wrote("A parser for dates\\n\\nBuilt and tested.", "summary.md")},
		"reviewer": {judging("fail", "say how one sees that the errors are right"), judging("pass", "sound"), scored(10, "the 13th month has no test"), scored(80, "good to keep")},
	})
	models := map[string]string{"planner": "claude-sonnet-4", "executor": "claude-sonnet-4", "reviewer": "gpt-5.1-codex"}
	w.cast(stub, "dev-cycle", models)
	run := w.ran("dev-cycle", "--var", "task=dates in the index", "--var", "auto_commit=true")
	says(t, w.completed(run), "plan-review #1 failed by its reviewer → planning", "planning.2", "plan-review #2 passed",
		"T1 is done", "T2 is done", "code-review #1 rejected by its reviewer → execution", "code-review-1 is done", "code-review #2 passed")
	if got := w.file(".workflow/worktrees/dev-cycle-1/dates.py"); got != "parse = 1\nerrors = 1\n" {
		t.Errorf("dates.py: %q", got)
	}
	if p := wasTold(stub, "planner"); len(p) < 2 || !strings.Contains(p[1], "say how one sees that the errors are right") {
		t.Errorf("the planner heard %d times: %q", len(p), p)
	}
	if r := wasTold(stub, "reviewer"); len(r) != 4 || !strings.Contains(r[2], "+errors = 1") || !strings.Contains(r[2], "execution-report.json") {
		t.Errorf("the reviewer of the code was not told what was changed: %d %q", len(r), r[min(2, len(r)-1)])
	}
	if p := wasTold(stub, "planner"); !strings.Contains(p[0], "dates in the index") {
		t.Errorf("the planner was not told the task: %q", p[0])
	}
	e := strings.Join(wasTold(stub, "executor"), "\n")
	says(t, e, "reads a date", "2026-11-20 is read", "says what is wrong", "13 is no month", "the 13th month has no test", "Write summary.md")
	says(t, w.do("git", "log", "--reverse", "--format=%s", "sluice/dev-cycle-1"), "start", "planning (dev-cycle-1)", "A parser for dates")
	says(t, w.file(".workflow/worktrees/dev-cycle-1/review.json"), "good to keep")
	says(t, w.file(".workflow/worktrees/dev-cycle-1/recommendations.json"), "name the format")
	says(t, w.file(".workflow/worktrees/dev-cycle-1/execution-report.json"), "T2", "code-review-1")
	for n, task := range map[int]string{1: "T1", 2: "code-review-1"} {
		tried, err := filepath.Glob(filepath.Join(w.repo, fmt.Sprintf(".workflow/runs/dev-cycle-1/execution.%d/%s.1/*/agent.json", n, task)))
		if err != nil || len(tried) != 1 {
			t.Fatalf("execution.%d: %v %v", n, tried, err)
		}
		data, err := os.ReadFile(tried[0])
		if err != nil {
			t.Fatal(err)
		}
		says(t, string(data), fmt.Sprintf(`"session":"wf-dev-cycle-1-execution-%d"`, n))
	}
	// Each iteration of a phase has a session of its own, by the document's id, and its record.
	for phase, of := range map[string][2]string{"planning.1": {"planning-1", "Planned."}, "planning.2": {"planning-2", "Planned."}, "plan-review.1": {"plan-review-1", "errors are right"},
		"plan-review.2": {"plan-review-2", "sound"}, "code-review.2": {"code-review-2", "good to keep"}, "finalize.1": {"finalize-1", "Done."}} {
		dir := ".workflow/runs/dev-cycle-1/" + phase
		session := `"session":"wf-dev-cycle-1-` + of[0] + `"`
		if strings.Contains(phase, "review") { // a judge's conversations are apart from those of steps
			session = strings.Replace(session, "wf-", `judge\twf-`, 1)
		}
		says(t, w.file(dir+"/agent.json"), session)
		says(t, w.file(dir+"/session.jsonl"), of[1])
		for line := range strings.Lines(w.file(dir + "/session.jsonl")) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: not JSON: %s", dir, line)
			}
		}
	}
	for _, r := range stub.Seen() {
		if want, ok := models[r.Part]; ok && r.Model != want {
			t.Errorf("the %s asks for the model %s, not for %s", r.Part, r.Model, want)
		}
		if n := strings.Count(r.Text, "STUB:"); n > 1 {
			t.Errorf("a conversation of the %s went on: its name stands in it %d times", r.Part, n)
		}
	}
	if left := w.do("git", "status", "--porcelain", "--", ".", ":!.workflow/audit"); left != "" {
		t.Errorf("the checkout was touched: %s", left)
	}
}

// TestRealAgentsGoalLoop has the real claude plan and code, and the real codex test and supervise, through document 000's
// workflow as it is shipped: the plan is revised once, the first task's tests fail once, and who is asked again is asked in
// the conversation that it was in.
func TestRealAgentsGoalLoop(t *testing.T) {
	t.Parallel()
	needsCage(t)
	conform.Rule(t, "000 phases", "by the real claude and codex")
	conform.Rule(t, "000 agents", "claude plans and codes, codex tests and supervises, each for real")
	conform.Rule(t, "000 plan-review", "the planner's second prompt")
	conform.Rule(t, "000 fix-loop", "what the tester's own command found, in the coder's second prompt")
	conform.Rule(t, "000 conversations", "the real programs go on in theirs")
	task := func(id, title, check string, after ...any) map[string]any {
		return map[string]any{"id": id, "title": title, "description": title, "complexity": "simple", "depends_on": append([]any{}, after...), "verification": []any{check}}
	}
	plan := func(check string) []modelstub.Act {
		return answering(map[string]any{"tasks": []any{task("T1", "the parser", check), task("T2", "its errors", "13 is no month", "T1"), task("T3", "the guide", "its example runs", "T2")}})
	}
	code := func(command string) []modelstub.Act {
		return append([]modelstub.Act{{Bash: command}}, answering(map[string]any{"status": "done", "summary": "it is written", "files": []any{"dates.py"}})...)
	}
	// The tester looks at what was made with the shell of codex, and believes its output.
	test := []modelstub.Act{{Bash: "grep -q bad dates.py && echo it is BAD || echo it is fine"}, {Play: func(turn modelstub.Turn) modelstub.Act {
		if strings.Contains(turn.Result, "BAD") {
			return answering(map[string]any{"status": "failed", "failures": []any{"2026-11-20 is read as 20 days"}, "fix_plan": []any{"mend it"}, "feedback": "2026-11-20 is read as 20 days"})[0]
		}
		return answering(map[string]any{"status": "passed"})[0]
	}}}
	score := func(n int, feedback string) []modelstub.Act {
		return answering(map[string]any{"score": n, "feedback": feedback})
	}
	w, stub := newAgents(t, "", map[string]modelstub.Part{
		"planner":    {plan("it works"), plan("2026-11-20 is read")},
		"coder":      {code("echo bad >dates.py"), code("echo good >dates.py"), code("echo errors >>dates.py"), code("echo guide >guide.md")},
		"tester":     {test},
		"supervisor": {score(60, "say how one sees that it works"), score(90, "sound")},
	})
	w.cast(stub, "goal-loop", map[string]string{"planner": "", "coder": "", "tester": "", "supervisor": ""})
	run := w.ran("goal-loop", "--var", "goal=dates are read")
	says(t, w.completed(run), "plan-review #1 revise by its reviewer → plan", "plan-review #2 passed",
		"test #1 failed by its reviewer → code", "test #2 passed", "verify #1 passed", "T1 is done", "T2 is done", "T3 is done", "goal-reached #1 passed")
	if got := w.file(".workflow/worktrees/goal-loop-1/dates.py") + w.file(".workflow/worktrees/goal-loop-1/guide.md"); got != "good\nerrors\nguide\n" {
		t.Errorf("the files hold %q", got)
	}
	// Each part's words stand in its first conversation as often as it was asked in it.
	for part, want := range map[string]struct {
		within []int  // how often each of its prompts, or those before it in the conversation, names it
		told   string // the second
	}{
		"planner":    {[]int{1, 2}, "say how one sees that it works"},
		"coder":      {[]int{1, 2, 1, 1}, "2026-11-20 is read as 20 days"},
		"tester":     {[]int{1, 1, 1, 1}, "2026-11-20 is read as 20 days"},
		"supervisor": {[]int{1, 2, 1, 1, 1, 3}, "it works"},
	} {
		var within []int
		texts := wasTold(stub, part)
		for _, text := range texts {
			within = append(within, strings.Count(text, "STUB:"+part))
		}
		if !slices.Equal(within, want.within) || len(texts) < 2 || !strings.Contains(texts[1], want.told) {
			t.Errorf("the %s was asked %d times, in conversations of %v: want %v; the second has to have %q", part, len(texts), within, want.within, want.told)
		}
	}
	says(t, w.file(".workflow/backlog/goal-loop-1.json"), "2026-11-20 is read")
}
