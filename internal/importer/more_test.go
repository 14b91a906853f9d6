package importer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planOf reads a text as the workflow of a file.
func planOf(t *testing.T, name, src string) *Plan {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	write(t, file, src)
	p, err := Read(file, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Report.Faults {
		t.Errorf("%s:%d: %s", f.File, f.Line, f.Message)
	}
	return p
}

func specOf(t *testing.T, p *Plan) string {
	t.Helper()
	i := slices.IndexFunc(p.files, func(f file) bool { return strings.HasPrefix(f.path, ".workflow/specs/") })
	if i < 0 {
		t.Fatal("no spec")
	}
	return string(p.files[i].data)
}

// TestUnknownKey: a key that no table has is left, and said.
func TestUnknownKey(t *testing.T) {
	t.Parallel()
	p := planOf(t, "w.yaml", "name: w\nfrobnicate: 1\nnodes:\n  - {id: x, prompt: y, twiddle: {a: 1}}\n")
	for _, name := range []string{"frobnicate", "nodes[].twiddle"} {
		if !slices.ContainsFunc(p.Report.Constructs, func(c Construct) bool { return c.Name == name && c.As == Left && c.Line > 1 }) {
			t.Errorf("%s is not left: %v", name, p.Report.Constructs)
		}
		if words := name[strings.LastIndexByte(name, '.')+1:]; !strings.Contains(specOf(t, p), "# left: "+words) {
			t.Errorf("the spec does not say that %s is left", name)
		}
	}
}

// TestMissingImport: a shared file that is not there is said, also as one of several.
func TestMissingImport(t *testing.T) {
	t.Parallel()
	for _, imports := range []string{"shared/none.md", "[shared/none.md]"} {
		p := planOf(t, "w.md", "---\non: push\nimports: "+imports+"\n---\nDo it.\n")
		if !slices.ContainsFunc(p.Report.Constructs, func(c Construct) bool { return c.Name == "imports" && c.As != Taken }) {
			t.Errorf("imports: %s: %v", imports, p.Report.Constructs)
		}
		if spec := specOf(t, p); !strings.Contains(spec, "shared/none.md is not in this tree") {
			t.Errorf("imports: %s: the spec does not say so:\n%s", imports, spec)
		}
	}
}

// TestManyChildren: of the workflows that another one runs, what is above the limit is said to be.
func TestManyChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, src := filepath.Join(dir, "w.yaml"), "name: w\nnodes:\n"
	for i := range maxSources {
		src += fmt.Sprintf("  - {id: n%d, workflow: c%d}\n", i, i)
		write(t, filepath.Join(dir, fmt.Sprintf("c%d.yaml", i)), "nodes:\n  - {id: x, prompt: y}\n")
	}
	write(t, out, src)
	p, err := Read(out, "")
	if err != nil {
		t.Fatal(err)
	}
	last := p.Report.Constructs[len(p.Report.Constructs)-2] // before the name
	if last.Of != "n59" || !strings.Contains(last.Note, "and 60 in all") {
		t.Errorf("%+v", last)
	}
}

// TestPersonIsAsked: what an agent said skips no person, and a script that is held asks one.
func TestPersonIsAsked(t *testing.T) {
	t.Parallel()
	p := planOf(t, "w.yaml", `name: w
nodes:
  - {id: a, prompt: hello, output_format: {type: object, properties: {ok: {type: string}}}}
  - {id: b, depends_on: [a], when: "$a.output.ok == 'no'", approval: {message: Go on}}
  - {id: c, depends_on: [a], when: "$a.output.ok == 'no'", bash: "eval $a.output.ok"}
  - {id: d, depends_on: [a], when: "$a.output.ok | weird", prompt: more}
`)
	spec := specOf(t, p)
	if strings.Contains(spec, "when:") || strings.Count(spec, "level: human") != 2 {
		t.Errorf("a person is not asked:\n%s", spec)
	}
	for _, c := range p.Report.Constructs {
		if c.Name == "nodes[].when" && c.As != Left {
			t.Errorf("%v", c)
		}
	}
}

// TestPasses: a pass goes forward only, whatever leads back.
func TestPasses(t *testing.T) {
	t.Parallel()
	got := passes("a", map[string][]string{"a": {"a", "b"}, "b": {"a", "c"}, "c": {"b", "a"}, "d": {"a"}})
	for at, to := range map[string]string{"a": "b", "b": "c", "c": "", "d": ""} {
		if got[at] != to {
			t.Errorf("%s passes to %q, want %q", at, got[at], to)
		}
	}
}

// TestCallsWithArguments: one workflow that is called with other arguments is another child.
func TestCallsWithArguments(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), ".takt")
	write(t, filepath.Join(dir, "facets/policies/a.md"), "Policy a.\n")
	write(t, filepath.Join(dir, "facets/policies/b.md"), "Policy b.\n")
	write(t, filepath.Join(dir, "workflows/in.yaml"), `name: in
subworkflow: {callable: true, params: {how: {type: facet_ref, facet_kind: policy, default: a}}}
initial_step: s
steps:
  - {name: s, persona: p, policy: {$param: how}, instruction: Do it., rules: [{condition: done, next: COMPLETE}]}
`)
	out := filepath.Join(dir, "workflows/out.yaml")
	write(t, out, `name: out
initial_step: x
steps:
  - {name: x, kind: workflow_call, call: in, args: {how: b}, rules: [{condition: COMPLETE, next: y}]}
  - {name: y, kind: workflow_call, call: in, rules: [{condition: COMPLETE, next: z}]}
  - {name: z, kind: workflow_call, call: in, args: {how: b}, rules: [{condition: COMPLETE, next: COMPLETE}]}
`)
	p, err := Read(out, "")
	if err != nil {
		t.Fatal(err)
	}
	var specs []string
	for _, f := range p.files {
		if strings.HasPrefix(f.path, ".workflow/specs/") {
			specs = append(specs, f.path)
		}
	}
	if len(specs) != 3 || len(p.Report.Faults) > 0 {
		t.Errorf("%v, %v", specs, p.Report.Faults)
	}
	write(t, out, "name: out\ninitial_step: x\nsteps:\n  - {name: x, call: out, rules: [{condition: COMPLETE, next: y}]}\n"+
		"  - {name: y, persona: p, instruction: Do., rules: [{condition: done, next: COMPLETE}]}\n")
	if p, err := Read(out, ""); err == nil && len(p.Report.Faults) == 0 && !strings.Contains(specOf(t, p), "level: human") {
		t.Errorf("one that calls itself is read:\n%s", specOf(t, p))
	}
}

// TestScriptText: a text that conductor has a shell run is run with the script's arguments, variables and time;
// one with values in it is not run, wherever the command names the shell.
func TestScriptText(t *testing.T) {
	t.Parallel()
	spec := specOf(t, planOf(t, "w.yaml", `workflow: {name: w, entry_point: a}
agents:
  - {name: a, type: script, command: bash, args: [-c, "echo $LEVEL"], env: {LEVEL: high}, timeout: 90, routes: [{to: b}]}
  - {name: b, type: script, command: env, args: [bash, -c, "echo {{ workflow.input.x }}"], routes: [{to: c}]}
  - {name: c, type: script, command: sh, args: [-c, 'echo "$1"', sh, further], routes: [{to: $end}]}
`))
	for _, want := range []string{"/.workflow/scripts/w/a.sh", "protect: [.workflow/scripts/w/**]", "LEVEL: high", "timeout: 90s", "level: human", "sh, further]"} {
		if !strings.Contains(spec, want) {
			t.Errorf("%q is not in\n%s", want, spec)
		}
	}
}

// TestByHandGoesOn: after a step that is left to a person, the workflow continues as after the step itself: at the join
// of parallel branches, and with the next command.
func TestByHandGoesOn(t *testing.T) {
	t.Parallel()
	spec := specOf(t, planOf(t, "w.yaml", `name: w
initial_step: a
steps:
  - name: a
    parallel:
      - {name: b, call: missing}
      - {name: c, persona: p, instruction: Do it., rules: [{condition: done}]}
    rules: [{condition: all("done"), next: COMPLETE}]
`))
	if !strings.Contains(spec, "on_pass: {next_step: a-join}") {
		t.Errorf("what a person does by hand does not come to the join:\n%s", spec)
	}
	spec = specOf(t, planOf(t, "w.md", `---
on: push
steps:
  - {name: one, run: "echo ${{ github.actor }}"}
  - {name: two, run: echo two}
---
Do it.
`))
	if !strings.Contains(spec, "on_pass: {next_step: two}") {
		t.Errorf("the command after one that a person does is passed over:\n%s", spec)
	}
}
