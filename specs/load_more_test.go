package specs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/engine"
	"sluice/tools/conform"
)

// loaded loads a spec that must load.
func loaded(t *testing.T, src string) *engine.Spec {
	t.Helper()
	spec, faults := Load("", []byte(src))
	if len(faults) > 0 {
		t.Fatalf("%v", faults)
	}
	return spec
}

// TestPipeIsNoFile: a named pipe in the place of a spec or a schema is a fault. Nobody waits for its
// writer.
func TestPipeIsNoFile(t *testing.T) {
	for name, pipe := range map[string]string{"schema": "x.json", "spec": ".workflow/specs/w.yaml"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			spec := filepath.Join(root, ".workflow/specs/w.yaml")
			if err := os.MkdirAll(filepath.Dir(spec), 0o755); err != nil {
				t.Fatal(err)
			}
			text := "workflow: {id: w}\nsteps: [{id: a, agent: {type: t}, answer: x.json, next_step: DONE}]\n"
			if name == "schema" {
				if err := os.WriteFile(spec, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Mkfifo(filepath.Join(root, pipe), 0o644); err != nil {
				t.Fatal(err)
			}
			found := make(chan []Fault, 1)
			go func() {
				_, faults := LoadFile(spec)
				found <- faults
			}()
			select {
			case faults := <-found:
				if len(faults) != 1 || !strings.Contains(faults[0].Message, "not a regular file") {
					t.Errorf("got %v", faults)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it waits for a writer")
			}
		})
	}
}

// TestDefaults: missing keys have the language's defaults.
func TestDefaults(t *testing.T) {
	conform.Rule(t, "1-language defaults", "what a spec does not say has the language's value")
	conform.Rule(t, "1-language required", "a name defaults to the id")
	conform.Rule(t, "8-semantics 3", "the implicit gate of a step without one")
	conform.Rule(t, "8-semantics 4", "the first step, and what only needs lead to")
	conform.Rule(t, "8-semantics 5", "max_retries absent is 3, 0 reads as 1")
	conform.Rule(t, "004 §2 Step.name", "a label, the id if absent")
	s := loaded(t, `
workflow: {id: w}
steps:
  - {id: a, agent: {type: t}, gate: g}
  - {id: b, agent: {launch: interactive}, next_step: c}
  - {id: c, run: [make], signal: {type: git_commit}, gate: h}
  - {id: d, run: make, signal: {type: git_commit}}
  - {id: e, needs: [d], run: make, next_step: DONE}
  - {id: f, needs: [], run: make, signal: {type: sentinel_file}, next_step: [d]}
gates:
  - {id: g, reviewer: {level: notify, agent_type: r}, on_pass: {next_step: b}, max_retries: 0}
  - {id: h, reviewer: {level: human}, on_pass: {next_gate: i}}
  - {id: i, reviewer: {level: auto, from: step}, on_pass: {next_step: d}, on_fail: {next_step: a}}
`)
	for step, want := range map[string]engine.Signal{
		"a": {Type: "stdout_exit"}, "b": {Type: "sentinel_file", Value: ".workflow/signals/b-done.json"},
		"c": {Type: "git_commit", Value: "[GATE:h]"}, "d": {Type: "git_commit", Value: "[GATE:d]"}, "e": {Type: "stdout_exit"},
		"f": {Type: "sentinel_file", Value: ".workflow/signals/f-done.json"},
	} {
		if got := s.Step(step).Signal; got != want {
			t.Errorf("step %s: signal %+v, not %+v", step, got, want)
		}
	}
	if s.Name != "w" || s.Step("a").Name != "a" || s.Gate("g").Name != "g" || s.Step("a").Agent.Launch != "headless" {
		t.Error("names default to ids, launch to headless")
	}
	g, h, i := s.Gate("g"), s.Gate("h"), s.Gate("i")
	if g.MaxRetries != 1 || h.MaxRetries != 3 || g.OnFail != "a" || h.OnFail != "c" || i.OnFail != "a" || g.OnExhausted != "human" || g.OnTimeout != "remind" {
		t.Errorf("gates: %+v %+v", g, h)
	}
	if g.RetryContext != ".workflow/retry-context/g-attempt-{n}.md" || g.VetoWindow != nil {
		t.Errorf("gate g: %+v", g)
	}
	if !reflect.DeepEqual(s.Step("c").Gates, []string{"h", "i"}) || h.Step != "c" || i.Step != "c" || h.NextGate != "i" {
		t.Errorf("the row of c: %v", s.Step("c").Gates)
	}
	d := s.LastGate(s.Step("d"))
	if !d.Implicit || d.ID != "d" || d.Step != "d" || d.OnFail != "FAILED" || d.OnExhausted != "FAILED" || !d.Reviewer.FromStep || d.Reviewer.Level != "auto" || len(d.OnPass) != 0 {
		t.Errorf("the implicit gate: %+v", d)
	}
	if s.Limits.MaxSameFailure != 3 || !s.Step("f").HasNeeds || s.Step("a").HasNeeds {
		t.Errorf("limits %+v", s.Limits)
	}
	if !reflect.DeepEqual(s.Starts(), []string{"a", "f"}) {
		t.Errorf("starts %v", s.Starts())
	}
}

// TestCriteria: the sentences a machine can check, and those for the reviewer. TestMaxFailures: the
// count has two names, in the spec, its schema and the layout, which keeps the one written; a gate
// has one of them.
func TestMaxFailures(t *testing.T) {
	conform.Rule(t, "13-law max_failures", "a gate has one of the two, and both ask at the same failure")
	const src = `workflow: {id: w, vars: {n: {default: 2}}}
steps: [{id: a, run: x, gate: g}]
gates: [{id: g, reviewer: {level: auto, from: step}, on_pass: {next_step: DONE}, %s}]
`
	for keys, want := range map[string]int{
		"max_failures: 2": 2, "max_retries: 2": 2, "max_failures: 0": 1, `max_failures: "${{vars.n + 1}}"`: 3, "retry: 1": 0,
	} {
		text := fmt.Sprintf(src, keys)
		s, faults := Load("", []byte(text))
		if want == 0 {
			if s != nil {
				t.Errorf("%s is taken", keys)
			}
			continue
		}
		if len(faults) > 0 || s.Gate("g").MaxRetries != want {
			t.Errorf("%s: %v", keys, faults)
			continue
		}
		if out, err := Format([]byte(text)); err != nil || !strings.Contains(string(out), keys) {
			t.Errorf("%s: laid out as\n%s%v", keys, out, err)
		}
		if err := compiledSchema(t).Validate(asJSON(t, []byte(text))); err != nil {
			t.Errorf("%s: %v", keys, err)
		}
	}
	_, faults := Load("", fmt.Appendf(nil, src, "max_failures: 2, max_retries: 2"))
	if len(faults) != 1 || !strings.Contains(faults[0].Error(), "3:112: gate g: max_retries and max_failures are two names of one count: keep one of them") {
		t.Errorf("both: %v", faults)
	}
	if _, faults = Load("", fmt.Appendf(nil, src, "max_failures: -1")); !strings.Contains(fmt.Sprint(faults), "gate g: max_failures: -1 is less than 0") {
		t.Errorf("%v", faults)
	}
}

func TestCriteria(t *testing.T) {
	conform.Rule(t, "1-language rule 4", "the sentences a machine can check")
	conform.Rule(t, "004 §3 criterion.file", "the document's own sentence")
	conform.Rule(t, "004 §3 criterion.command", "the document's own sentence")
	for sentence, want := range map[string]engine.Criterion{
		"pixi run test exits 0":              {Command: &engine.Command{Shell: "pixi run test"}},
		"file a.txt exists":                  {File: "a.txt"},
		"file a b.txt exists":                {File: "a b.txt"},
		"file a.txt exists and is non-empty": {File: "a.txt", NonEmpty: true},
		"the file a.txt exists":              {Text: "the file a.txt exists"},
		"make exits 1":                       {Text: "make exits 1"},
		"exits 0":                            {Text: "exits 0"},
		"File a exists":                      {Text: "File a exists"},
	} {
		s := loaded(t, fmt.Sprintf("workflow: {id: w}\nsteps: [{id: a, run: x, success_criterion: %q, next_step: DONE}]", sentence))
		if got := s.Steps[0].Criteria; len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%q is read as %+v", sentence, got)
		}
	}
}

const withValues = `workflow: {id: w, vars: {n: 3, wait: 1h, must: {required: true}}, context_files: ["${{vars.wait}}.md"], limits: {max_duration: "${{vars.wait}}", max_steps: "${{vars.must}}"}}
steps: [{id: a, run: x, success_criterion: "file ${{vars.wait}}.txt exists", timeout: "${{vars.wait}}", gate: g}]
gates: [{id: g, reviewer: {level: human}, on_pass: {next_step: DONE}, max_retries: "${{vars.n + 1}}"}]
`

// TestCountsOfARun: counts and durations that are expressions use the run's vars.
func TestCountsOfARun(t *testing.T) {
	conform.Rule(t, "1-language values", "counts and durations may be expressions")
	src := []byte(withValues)
	s, faults := Load("", src)
	if s == nil {
		t.Fatal(faults)
	}
	if s.Gates[0].MaxRetries != 4 || time.Duration(s.Steps[0].Timeout) != time.Hour || s.Limits.MaxSteps != 0 || s.ContextFiles[0] != "1h.md" {
		t.Errorf("by the defaults: %+v %+v", s.Gates[0], s.Limits)
	}
	s, faults = LoadFor("", src, map[string]any{"n": 7.0, "wait": "5m", "must": "9"})
	if s == nil {
		t.Fatal(faults)
	}
	if s.Gates[0].MaxRetries != 8 || time.Duration(s.Limits.MaxDuration) != 5*time.Minute || s.Limits.MaxSteps != 9 || s.ContextFiles[0] != "5m.md" {
		t.Errorf("by the run's vars: %+v %+v", s.Gates[0], s.Limits)
	}
	if s, faults = LoadFor("", src, map[string]any{"wait": "soon"}); s != nil || !strings.Contains(fmt.Sprint(faults), `"soon" is not a duration`) {
		t.Errorf("a wrong value: %v", faults)
	}
	if s, faults = LoadFor("", src, map[string]any{"wait": "../5m"}); s != nil || !strings.Contains(fmt.Sprint(faults), "leaves the repo") {
		t.Errorf("a path out of the repo: %v", faults)
	}
}

// TestVars: command-line values have the defaults' types.
func TestVars(t *testing.T) {
	conform.Rule(t, "1-language vars", "typed by the default, required, unknown refused")
	s := loaded(t, "workflow: {id: w, vars: {n: 3, on: false, mode: full, goal: {required: true, description: what for}}}\nsteps: [{id: a, run: x, next_step: DONE}]")
	got, faults := Vars(s, map[string]string{"n": "4.5", "on": "true", "goal": "7"})
	if len(faults) > 0 || !reflect.DeepEqual(got, map[string]any{"n": 4.5, "on": true, "goal": "7"}) {
		t.Errorf("%v %v", got, faults)
	}
	_, faults = Vars(s, map[string]string{"n": "many", "on": "yes", "mod": "x"})
	if len(faults) != 4 || !strings.Contains(fmt.Sprint(faults), `did you mean "mode"?`) || !strings.Contains(fmt.Sprint(faults), "what for") {
		t.Errorf("%v", faults)
	}
}

// repo creates a repo with files.
func repo(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const withSchemas = `# a comment
workflow: {id: w, vars: {kind: plan}}
steps:
  - {id: a, run: x, answer: ".workflow/schemas/${{vars.kind}}.json", gate: g}   # in a flow
gates:
  - id: g
    reviewer: {level: auto, agent_type: r}
    answer: .workflow/schemas/review.json  # the review
    on_pass: {next_step: DONE}
`

// TestFiles: finds specs, and reads one with its schemas.
func TestFiles(t *testing.T) {
	conform.Rule(t, "004 §4 specs", "a file per workflow")
	root := repo(t, map[string]string{
		".workflow/specs/w.yaml":         withSchemas,
		".workflow/specs/.hidden.yaml":   "x",
		".workflow/specs/notes.txt":      "x",
		".workflow/schemas/plan.json":    `{"type": "object", "properties": {"n": {"type": "integer"}}}`,
		".workflow/schemas/review.json":  `{"type": "object"}`,
		".workflow/specs/folder.yaml/ab": "x",
	})
	found, err := Find(root)
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != "w.yaml" {
		t.Fatalf("found %v, %v", found, err)
	}
	spec, faults := LoadFile(found[0])
	if spec == nil {
		t.Fatal(faults)
	}
	if got := string(spec.Step("a").Answer.Source); got != `{"properties":{"n":{"type":"integer"}},"type":"object"}` {
		t.Errorf("the schema is %s", got)
	}
	if found, err := Find(t.TempDir()); found != nil || err != nil {
		t.Errorf("no folder: %v, %v", found, err)
	}
	for name, content := range map[string]string{"plan.json": "no JSON", "review.json": `{"type": "objekt"}`} {
		if err := os.WriteFile(filepath.Join(root, ".workflow/schemas", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if spec, faults := LoadFile(found[0]); spec != nil || len(faults) != 2 {
		t.Errorf("broken schemas: %v", faults)
	}
	if err := os.Remove(filepath.Join(root, ".workflow/schemas/plan.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, ".workflow/schemas/plan.json")); err != nil {
		t.Fatal(err)
	}
	if _, faults := LoadFile(found[0]); !strings.Contains(fmt.Sprint(faults), "plan.json\" cannot be read") {
		t.Errorf("a link out of the repo: %v", faults)
	}
	if _, faults := LoadFile(filepath.Join(root, "none.yaml")); !strings.Contains(fmt.Sprint(faults), "none.yaml:1:1: cannot be read: no such file") {
		t.Errorf("no file: %v", faults)
	}
	if _, faults := LoadFile(root); !strings.Contains(fmt.Sprint(faults), "not a regular file") {
		t.Errorf("a folder: %v", faults)
	}
}

// TestPin: a pinned spec has the same meaning and reads no file.
func TestPin(t *testing.T) {
	conform.Rule(t, "1-language rule 11", "a pinned spec reads no file and says the same")
	root := repo(t, map[string]string{
		".workflow/schemas/plan.json":   `{"type": "object", "title": "a # b"}`,
		".workflow/schemas/other.json":  `{"type": "array"}`,
		".workflow/schemas/review.json": "{\n \"type\": \"object\"\n}",
	})
	for kind, want := range map[string]string{"plan": `{"title":"a # b","type":"object"}`, "other": `{"type":"array"}`} {
		out, faults := Pin(root, "w.yaml", []byte(withSchemas), map[string]any{"kind": kind})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		spec := loaded(t, string(out))
		if a := spec.Step("a").Answer; a.Path != "" || string(a.Source) != want {
			t.Errorf("pinned as %+v", a)
		}
		if !strings.Contains(string(out), "# the review") || !strings.Contains(string(out), "# in a flow") {
			t.Errorf("a comment is lost:\n%s", out)
		}
	}
	if _, faults := Pin(root, "w.yaml", []byte(withSchemas), map[string]any{"kind": "none"}); len(faults) == 0 {
		t.Error("a schema that is not there was pinned")
	}
	out, faults := Pin(root, "w.yaml", []byte(withValues), map[string]any{"n": 7.0, "wait": "5m", "must": "9"})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	pinned := loaded(t, string(out))
	live, faults := LoadFor("", []byte(withValues), map[string]any{"n": 7.0, "wait": "5m", "must": "9"})
	if live == nil || !reflect.DeepEqual(describe(pinned), describe(live)) || pinned.Gates[0].MaxRetries != 8 || pinned.Steps[0].Criteria[0].File != "5m.txt" {
		t.Errorf("%v\n%s", faults, out)
	}
}

// TestTemplates: each shipped workflow loads, and the files in its settings exist.
func TestTemplates(t *testing.T) {
	for _, tpl := range Templates() {
		src, err := readAll(tpl.Files, "specs/"+tpl.Name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		spec, faults := Load(tpl.Name+".yaml", []byte(src))
		if spec == nil {
			t.Fatal(faults)
		}
		config, err := readAll(tpl.Files, "config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range spec.Steps {
			if role := s.Role(); role != "" && !strings.Contains(config, role+":") {
				t.Errorf("%s: no settings for role %s", tpl.Name, role)
			}
		}
		for line := range strings.SplitSeq(config, "\n") {
			_, file, ok := strings.Cut(line, "prompt_file: ")
			if !ok {
				continue
			}
			prompt, err := readAll(tpl.Files, strings.TrimRight(file, "} "))
			if err != nil || len(prompt) < 500 {
				t.Errorf("%s: prompt %s: %d bytes, %v", tpl.Name, file, len(prompt), err)
			}
		}
		if tpl.Line == "" {
			t.Errorf("%s: no line", tpl.Name)
		}
	}
}

func readAll(files fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(files, name)
	return string(b), err
}

// TestSchemaNamesNoFiles: an answer's schema cannot make us read a file, even a valid one.
func TestSchemaNamesNoFiles(t *testing.T) {
	root := repo(t, map[string]string{"other.json": `{"type": "object"}`})
	src := fmt.Sprintf("workflow: {id: w}\nsteps: [{id: a, run: x, answer: {$ref: %q}, next_step: DONE}]", "file://"+filepath.ToSlash(filepath.Join(root, "other.json")))
	if spec, faults := Load("", []byte(src)); spec != nil || !strings.Contains(fmt.Sprint(faults), "another document") {
		t.Errorf("%v", faults)
	}
}
