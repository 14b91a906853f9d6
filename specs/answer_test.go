package specs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/gates"
	"sluice/tools/conform"
)

// TestOneGatekeeperOfSchemas: a schema that loads, in a spec or its file, can check answers. A
// schema that cannot is a fault of the spec, with its place.
func TestOneGatekeeperOfSchemas(t *testing.T) {
	conform.Rule(t, "13-law schemas", "what loads is what answers are held against")
	wide := `{"$defs":{"a0":{"type":"string"}`
	for i := range 30 {
		wide += fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i+1, i, i)
	}
	wide += `},"$ref":"#/$defs/a30"}`
	for _, c := range []struct {
		schema string
		good   bool
	}{
		{`{"properties":{"Destructive":{"default":false}}}`, false},
		{`{"properties":{"destructive":{"$ref":"#/$defs/no"}},"$defs":{"no":{"type":"boolean","default":false}}}`, false},
		{`{"properties":{"commands":{"default":[{"destructive":false}]}}}`, false},
		{`{"$ref":"#"}`, false},
		{`{"properties":{"destructive":{"default":false}}}`, false},
		{`{"properties":{"destructive":{"allOf":[{"anyOf":[{"default":false}]}]}}}`, false},
		{`{"anyOf":[{"properties":{"x":{"default":{"y":{"DESTRUCTIVE":false}}}}}]}`, false},
		{`{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}}}`, false},
		{wide, false},
		{`{"type":"strin"}`, false}, {`{"properties":3}`, false}, {`{"pattern":"("}`, false},
		{`{"$ref":"#/$defs/none"}`, false}, {`{"$ref":"other.json"}`, false}, {`{"$ref":"https://example.org/s.json"}`, false},
		{`{"$id":"https://example.org/a","$ref":"b"}`, false},
		{`{"a":1,"a":2}`, false}, {`true`, false}, {`[]`, false}, {``, false}, {`{`, false},
		{`{"title":"` + strings.Repeat("x", 64<<10) + `"}`, false},
		{`{"title":"` + strings.Repeat("<", 20<<10) + `"}`, false}, // longer as a run keeps it
		{`{"maximum":1e999}`, false},
		{`{}`, true}, {`{"type":"object","properties":{"n":{"type":"integer","default":3}}}`, true},
		{`{"properties":{"destructive":{"type":"boolean"},"note":{"default":"none"}},"required":["destructive"]}`, true},
		{`{"properties":{"children":{"items":{"$ref":"#"}}}}`, true},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, true},
		{`{"maximum":12345678901234567890,"multipleOf":0.1}`, true},
		{`{"properties":{"if":{"const":"then"}},"if":{"required":["if"]},"then":{"not":{"required":["else"]}}}`, true},
	} {
		root := repo(t, map[string]string{
			".workflow/specs/w.yaml": "workflow: {id: w}\nsteps:\n  - id: a\n    run: x\n    answer: s.json\n    next_step: DONE\n",
			"s.json":                 c.schema,
		})
		file := filepath.Join(root, ".workflow/specs/w.yaml")
		spec, faults := LoadFile(file)
		bothSay(t, "in a file: "+c.schema, spec, faults, c.good)
		if spec != nil {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pinned, faults := Pin(root, file, src, nil)
			if faults != nil {
				t.Errorf("%.100s: loads and cannot be kept for a run: %v", c.schema, faults)
			}
			spec, faults = Load("", pinned)
			bothSay(t, "of a run: "+c.schema, spec, faults, c.good)
		}
		if !strings.HasPrefix(c.schema, "{\"") { // otherwise it is a file's name, or invalid YAML
			continue
		}
		spec, faults = Load("w.yaml", []byte("workflow: {id: w}\nsteps:\n  - id: a\n    run: x\n    answer: "+c.schema+"\n    next_step: DONE\n"))
		bothSay(t, "in the spec: "+c.schema, spec, faults, c.good)
	}
}

// bothSay compares the results of loading a schema and of checking answers with it.
func bothSay(t *testing.T, what string, spec *engine.Spec, faults []Fault, good bool) {
	t.Helper()
	if loads := spec != nil; loads != good {
		t.Errorf("%.100s: loads: %v, want %v: %v", what, loads, good, faults)
	}
	for _, f := range faults {
		if f.Line != 5 || !strings.HasPrefix(f.Message, "step a: answer: ") {
			t.Errorf("%.100s: the fault has no place: %v", what, f)
		}
	}
	if spec == nil {
		return
	}
	source := spec.Step("a").Answer
	if _, err := gates.ReadAnswer(json.RawMessage(`{}`), source); err != nil && strings.Contains(err.Error(), "schema: ") && !strings.Contains(err.Error(), "fit the schema") {
		t.Errorf("%.100s: it loads, and the agent is asked again for it: %v", what, err)
	}
}
