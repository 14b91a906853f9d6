package gates

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/findings"
	"sluice/internal/schema"
)

// TestVerdictSchema: the result is a valid schema, and a verdict that matches it with the gate's
// words is readable.
func TestVerdictSchema(t *testing.T) {
	own := &engine.Schema{Source: json.RawMessage(`{"type":"object","required":["risk"],"properties":{"risk":{"type":"string"},"score":{"type":"integer"}}}`)}
	closed := &engine.Schema{Source: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"verdict":{"type":"string"}}}`)}
	for _, c := range []struct {
		allowed, rubric []string
		computed        bool
		own             *engine.Schema
		required        []string
		has             []string
	}{
		{[]string{"pass", "fail"}, nil, false, nil, []string{"feedback", "verdict"}, []string{"score", "findings", "summary"}},
		{nil, []string{"clarity"}, true, nil, []string{"feedback", "scores"}, []string{"scores"}},
		{[]string{"pass", "fail"}, nil, false, own, []string{"feedback", "verdict", "risk"}, []string{"risk", "score", "findings"}},
		{[]string{"pass", "fail"}, nil, false, closed, nil, []string{"verdict"}},
	} {
		raw := VerdictSchema(c.allowed, c.rubric, c.computed, c.own)
		if _, err := schema.Compile(raw); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		var s struct {
			Required   []string
			Properties map[string]struct {
				Type string
				Enum []string
			}
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		slices.Sort(s.Required)
		slices.Sort(c.required)
		if !slices.Equal(s.Required, c.required) {
			t.Errorf("required %v, want %v", s.Required, c.required)
		}
		for _, name := range c.has {
			if _, ok := s.Properties[name]; !ok {
				t.Errorf("no %s in %s", name, raw)
			}
		}
		if c.own == own && s.Properties["score"].Type != "integer" {
			t.Errorf("the gate's own word does not hold: %s", raw)
		}
		if c.own == nil && !slices.Equal(s.Properties["verdict"].Enum, c.allowed) {
			t.Errorf("verdict: %s", raw)
		}
	}
	// For codex, null means the same as missing.
	j, err := ReadVerdict(VerdictInput{Output: []byte(`{"verdict":"fail","feedback":"no","score":null,"summary":null,"findings":[{"severity":null,"file":"a.go","line":7,"message":"m"},{"severity":null,"file":null,"line":null,"message":"n"}]}`), Allowed: []string{"pass", "fail"}})
	if err != nil || j.Score != nil || len(findings.List(j.Findings)) != 2 || findings.List(j.Findings)[0] != (findings.Finding{File: "a.go", Line: 7, Message: "m"}) {
		t.Errorf("%+v %v", j, err)
	}
	if _, err := ReadVerdict(VerdictInput{Output: []byte(`{"verdict":null,"feedback":"no"}`), Allowed: []string{"pass"}}); err == nil || !strings.Contains(err.Error(), "verdict") {
		t.Errorf("no word, and %v", err)
	}
}
