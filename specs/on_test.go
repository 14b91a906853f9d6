package specs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/tools/conform"
)

const onSpec = `workflow: {id: w, vars: {goal: {required: true}, file: "", n: 3, how: "by hand"}}
on:
  schedule: [{cron: "0 3 * * *"}, {cron: "0 3 * * *", timezone: Europe/Berlin, catch_up: all}]
  files: ["in/*.md"]
  webhook: {}
  with: {goal: "do ${{event.title ?? file}}", n: "${{event.n ?? 4}}", how: by itself}
  overlap: skip
steps:
  - {id: a, agent: {type: coder, prompt: "${{vars.goal}}|${{vars.file}}|${{vars.n}}|${{vars.how}}"}, next_step: DONE}
`

// TestOn: what triggers compile to, the vars that firings give, and which of them count as foreign.
func TestOn(t *testing.T) {
	conform.Rule(t, "12-triggers data", "vars that firings give are foreign")
	spec, faults := Load("w.yaml", []byte(onSpec))
	if faults != nil {
		t.Fatal(faults)
	}
	var names []string
	for _, o := range spec.On.Triggers {
		names = append(names, o.Name+"="+o.ID)
	}
	if got, want := strings.Join(names, "; "), "schedule=schedule 0 3 * * * UTC; schedule-2=schedule 0 3 * * * "+
		"Europe/Berlin; files=files; webhook=webhook"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if a, b := spec.On.Triggers[0].Next(at), spec.On.Triggers[1].Next(at); a.Hour() != 3 || b.Hour() != 2 {
		t.Errorf("%s and %s", a, b)
	}
	vars, err := spec.FiringVars(spec.On.Trigger("files"), map[string]any{"file": "in/a.md"})
	if err != nil || vars["goal"] != "do in/a.md" || vars["file"] != "in/a.md" || vars["n"] != 4.0 || vars["how"] != "by itself" {
		t.Errorf("%v: %v", vars, err)
	}
	event := map[string]any{"event": map[string]any{"title": "$(rm -rf /)", "n": "many"}}
	if _, err := spec.FiringVars(spec.On.Trigger("webhook"), event); err == nil || !strings.Contains(err.Error(), "not a number") {
		t.Errorf("a number that is none: %v", err)
	}
	var foreign []string
	env := &engine.Env{Vars: vars, Foreign: func(source, value string) string {
		foreign = append(foreign, source)
		return value
	}}
	if _, err := spec.Steps[0].Agent.Prompt.String(env); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(foreign, []string{"vars.goal", "vars.file", "vars.n"}) {
		t.Errorf("foreign are %v", foreign)
	}
}

// TestOnIsPinned: the text that a person arms has its triggers, and loads like the file.
func TestOnIsPinned(t *testing.T) {
	text, faults := Pin(t.TempDir(), "w.yaml", []byte(onSpec), nil)
	if faults != nil {
		t.Fatal(faults)
	}
	spec, faults := Load("", text)
	if faults != nil || len(spec.On.Triggers) != 4 || spec.On.Overlap != engine.OverlapSkip {
		t.Errorf("%+v: %v", spec, faults)
	}
}
