package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/specs"
	"sluice/specs/graph"
	"sluice/tools/conform"
)

// guide returns a template's page.
func guide(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../docs/templates/" + name + ".md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// section returns what stands below a page's heading.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		t.Errorf("there is no section %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// templateFlows returns a template's workflows as `sluice graph` reads them, by id.
func templateFlows(t *testing.T, name string) map[string]*engine.Spec {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(templateFiles(t, name), "specs", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*engine.Spec{}
	for _, file := range files {
		spec, faults := specs.LoadFile(file)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		out[spec.ID] = spec
	}
	return out
}

// TestGuides: each template has a page that says when to take it, has the picture that `sluice graph` draws, each setting with
// its default, and a run; and the list of templates names it.
func TestGuides(t *testing.T) {
	conform.Rule(t, "6-seeds templates", "the six, each with a line in both lists")
	conform.Rule(t, "6-seeds guides", "of each template")
	index, err := os.ReadFile("../docs/templates/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tpl := range specs.Templates() {
		names = append(names, tpl.Name)
		t.Run(tpl.Name, func(t *testing.T) {
			page := guide(t, tpl.Name)
			if !strings.Contains(string(index), "| ["+tpl.Name+"]("+tpl.Name+".md) | ") || len(tpl.Line) < 20 {
				t.Errorf("the lists of templates have no line of it")
			}
			if !strings.HasPrefix(page, "# "+tpl.Name+"\n\nUse it ") || !strings.Contains(page, "    sluice init --template "+tpl.Name+"\n") {
				t.Error("it does not begin with when to use it, and how to create it")
			}
			flows := templateFlows(t, tpl.Name)
			picture := section(t, page, "Its picture")
			for id, spec := range flows {
				if want := strings.TrimSpace(graph.Text(spec, nil, graph.Options{})); !strings.Contains(picture, "\n"+want+"\n") {
					t.Errorf("the picture of %s is another; it is:\n%s", id, want)
				}
				drawingIs(t, id, spec, picture)
			}
			tableNames(t, tpl.Name, flows[tpl.Name], section(t, page, "Settings"))
			for _, setting := range theDocumentsSettings()[tpl.Name] {
				if !strings.Contains(section(t, page, "Settings"), "| "+setting+" |") {
					t.Errorf("the table of settings has no row of the document's %s", setting)
				}
			}
			runIs(t, tpl.Name, flows, section(t, page, "A run"))
		})
	}
	slices.Sort(names)
	if want := []string{"backlog", "dev-cycle", "document-example", "gated-pipeline", "goal-loop", "release", "supervised-loop"}; !slices.Equal(names, want) {
		t.Errorf("the templates are %v", names)
	}
}

// drawingIs fails where a page does not show the workflow's drawing, or its file is another.
func drawingIs(t *testing.T, id string, spec *engine.Spec, picture string) {
	t.Helper()
	file := "../docs/templates/" + id + ".svg"
	drawn := graph.SVG(spec, nil, graph.Options{})
	if *redraw {
		if err := os.WriteFile(file, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != string(drawn) {
		t.Errorf("%s is another (%v): go test ./test -run TestGuides -redraw, and look at it", file, err)
	}
	if !strings.Contains(picture, "]("+id+".svg)") {
		t.Errorf("the page does not show %s.svg", id)
	}
}

// theDocumentsSettings are the documents' names of settings, by the template of each document.
func theDocumentsSettings() map[string][]string {
	return map[string][]string{
		"goal-loop": {"`maxFixCycles`", "`maxPlanRevisions`", "`attemptsBeforeReplan`", "`maxReplanDepth`", "`maxGoalIterations`", "`timeLimit`", "approval threshold", "revision threshold", "on plan rejection"},
		"backlog": {"task file", "max iterations", "schedule: single, odd-even, round-robin", "`AgentConfig`: binary, args, model, timeout", "its working directory", "its last message", "custom agents", "`hooks.post_iteration`",
			"prompts, `--prompt-file`", "`looper-logs/runs/<id>/events.jsonl`, `last`"},
		"dev-cycle":       {"`maxDurationMs`", "`maxReviewIterations`", "`autoCommit`", "`notifyOnPhaseComplete`", "claude-sonnet-4, gpt-5.1-codex"},
		"supervised-loop": {"`LOOP_GOAL`", "`MAX_ITER`", "`CLAUDE_MODEL`", "`ANTHROPIC_API_KEY`", "`runs/run-{timestamp}.jsonl`", "2 correction attempts"},
	}
}

// tableNames fails where a page's table of settings lacks one of the workflow's, or has another default.
func tableNames(t *testing.T, name string, spec *engine.Spec, table string) {
	t.Helper()
	others := map[string]string{ // those that are set in another way, or whose value is told in words
		"goal-loop on_plan_rejected": "| `--var on_plan_rejected=…` | skip_and_continue;",
		"gated-pipeline test":        "| `vars: test` in the spec, filled in by `sluice init` | `true` |",
		"document-example test":      "| `vars: test` in the spec, filled in by `sluice init` | `true` |",
		"release version":            "| `--version`, else the agent chooses | chosen |",
		"release remote":             "| `--remote` | git's own choice: `pushRemote`, the upstream's, else origin |",
	}
	for _, v := range spec.Vars {
		want := fmt.Sprintf("`--var %s=%v` | %v", v.Name, v.Default, v.Default)
		if v.Default == false { // the table shows how it is switched on
			want = fmt.Sprintf("`--var %s=true` | false", v.Name)
		}
		if v.Required {
			want = fmt.Sprintf("`--var %s=…` | required |", v.Name)
		}
		if other, ok := others[name+" "+v.Name]; ok {
			want = other
		}
		if !strings.Contains(table, want) {
			t.Errorf("the table of settings has no %s", want)
		}
	}
}

// runIs fails where the run that a page shows is none of these workflows: it names a step, a gate or a way that is not there,
// or does not come to an end.
func runIs(t *testing.T, name string, flows map[string]*engine.Spec, text string) {
	t.Helper()
	known := []string{engine.EndDone, engine.EndFailed, engine.EndAborted}
	for _, spec := range flows {
		for _, s := range spec.Steps {
			known = append(known, s.ID)
		}
		for _, g := range spec.Gates {
			known = append(known, g.ID)
		}
	}
	part := regexp.MustCompile(`\s([A-Za-z][\w-]*)(?:\.\d+| #\d+)\s|→ ([\w-]+)`)
	task := regexp.MustCompile(`^(T\d+|code-review-\d+)$`)
	seen := 0
	for line := range strings.Lines(text) {
		if !regexp.MustCompile(`^\d\d:\d\d:\d\d `).MatchString(line) {
			continue
		}
		for _, m := range part.FindAllStringSubmatch(line, -1) {
			if seen++; !slices.Contains(known, m[1]+m[2]) && !task.MatchString(m[1]) {
				t.Errorf("the run has %s, which is not there: %s", m[1]+m[2], line)
			}
		}
	}
	if end := regexp.MustCompile(`\n` + name + `-1 completed \(stubbed\) in \d+s\n`); seen < 10 || !end.MatchString(text) {
		t.Errorf("no run of %s to its end is shown: %d parts", name, seen)
	}
}
