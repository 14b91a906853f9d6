package specs

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"sluice/tools/conform"
)

var update = flag.Bool("update", false, "write what is generated, and the golden files, anew")

// TestSchemaIsGenerated: the shipped schema matches the language's types.
func TestSchemaIsGenerated(t *testing.T) {
	conform.Rule(t, "1-language schema", "the shipped schema is the generated one")
	want := Schema()
	if *update {
		if err := os.WriteFile(SchemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the types give: go test ./specs -run Schema -update", SchemaFile)
	}
}

func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("workflow.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON converts YAML as an editor's schema check does.
func asJSON(t testing.TB, src []byte) any {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(src, &n); err != nil {
		t.Fatal(err)
	}
	return plainNode(n.Content[0])
}

func plainNode(n *yaml.Node) any {
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plainNode(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, c := range n.Content {
			l = append(l, plainNode(c))
		}
		return l
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true"
	case "!!int", "!!float":
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return f
		}
	}
	return n.Value
}

// goodSpecs are specs that load: the document's, the examples', the templates', and one with every
// key.
func goodSpecs(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, glob := range []string{"testdata/*.yaml", "../examples/*/.workflow/specs/*.yaml", "templates/*/specs/*.yaml"} {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", glob, err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = src
		}
	}
	return out
}

// TestGoodSpecs: Load and the schema accept every spec we ship.
func TestGoodSpecs(t *testing.T) {
	conform.Rule(t, "1-language schema", "what loads is good to the schema")
	schema := compiledSchema(t)
	for file, src := range goodSpecs(t) {
		if _, faults := Load(file, src); len(faults) > 0 {
			t.Errorf("Load: %v", faults)
		}
		if err := schema.Validate(asJSON(t, src)); err != nil {
			t.Errorf("%s: schema: %v", file, err)
		}
	}
}

// A gate that the forge judges is good to the schema as it is to Load, and two judges are to neither.
func TestSchemaKnowsTheForge(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for reviewer, good := range map[string]bool{
		"{level: auto, forge: [checks]}":            true,
		"{level: auto, forge: [checks], run: make}": false,
		"{level: human, forge: [checks]}":           false,
	} {
		src := []byte("workflow: {id: w, workspace: run}\nsteps: [{id: a, run: make, gate: G}]\n" +
			"gates: [{id: G, reviewer: " + reviewer + ", on_pass: {next_step: DONE}}]\n")
		if _, faults := Load("w.yaml", src); (len(faults) == 0) != good {
			t.Errorf("%s: %v", reviewer, faults)
		}
		if err := schema.Validate(asJSON(t, src)); (err == nil) != good {
			t.Errorf("%s: the schema: %v", reviewer, err)
		}
	}
}
