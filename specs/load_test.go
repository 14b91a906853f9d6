package specs

import (
	"encoding/json"
	"os"
	"testing"

	"sluice/engine"
	"sluice/internal/conform"
)

func example(t *testing.T) []byte {
	t.Helper()
	src, err := os.ReadFile("testdata/phase-4-search-index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestTheDocumentsExample: document 004's annotated example loads, byte for byte.
func TestTheDocumentsExample(t *testing.T) {
	conform.Rule(t, "004 §3 example.loads", "byte for byte")
	conform.Rule(t, "004 §3 YAML", "one YAML file")
	conform.Rule(t, "004 §5 question 1", "the document's own YAML is the format")
	spec, faults := Load("phase-4-search-index.yaml", example(t))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if len(spec.Steps) != 2 || len(spec.Gates) != 2 || spec.Gates[1].OnPass[0] != "DONE" {
		t.Errorf("read as %+v", spec)
	}
}

// describe gives all of a spec that can be compared: its functions by their sources.
func describe(s *engine.Spec) any {
	b, err := json.Marshal(struct {
		ID, Name, Description string
		ContextFiles, Protect []string
		Vars                  []engine.Var
		Limits                engine.Limits
		Needs                 []engine.Need
		AfterStep, AfterRun   *engine.Command
		Steps                 []*engine.Step
		Gates                 []*engine.Gate
	}{s.ID, s.Name, s.Description, s.ContextFiles, s.Protect, s.Vars, s.Limits, s.Needs, s.AfterStep, s.AfterRun, s.Steps, s.Gates})
	if err != nil {
		panic(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		panic(err)
	}
	return v
}
