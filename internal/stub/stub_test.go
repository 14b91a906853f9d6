package stub

import (
	"encoding/json"
	"testing"
)

func TestPlay(t *testing.T) {
	s, err := Read([]byte(`{"commands":"real",
		"roles": {"writer": [{"say":"w0"},{"say":"w1"}], "*": [{"say":"any"}]},
		"steps": {"A": [{"say":"a1","then":[{"say":"a1 again"},{"say":"a1 once more"}]},{"say":"a2"}]},
		"gates": {"G": [{"verdict":"fail"},{"verdict":"pass"}]}}`))
	if err != nil || !s.Runs() {
		t.Fatal(err)
	}
	for _, x := range []struct {
		turn Turn
		want string
	}{
		{Turn{Role: "writer", Step: "A", N: 1}, "a1"},
		{Turn{Role: "writer", Step: "A", N: 1, Again: 1}, "a1 again"},
		{Turn{Role: "writer", Step: "A", N: 1, Again: 9}, "a1 once more"},
		{Turn{Role: "writer", Step: "A", N: 2}, "a2"},
		{Turn{Role: "writer", Step: "A", N: 7, Again: 1}, "a2"},
		{Turn{Role: "writer", Step: "B", N: 5, Nth: 0}, "w0"},
		{Turn{Role: "writer", Step: "B", N: 1, Nth: 4}, "w1"},
		{Turn{Role: "other", Step: "B", N: 1}, "any"},
		{Turn{Step: "B", N: 1}, ""}, // a command: roles are of agents
		{Turn{Role: "reviewer", Gate: "G", Step: "A", N: 1}, "fail"},
		{Turn{Role: "reviewer", Gate: "G", N: 3}, "pass"},
		{Turn{Role: "reviewer", Gate: "H", Step: "A", N: 1}, "any"},
	} {
		p, ok := s.Play(x.turn)
		got := p.Verdict
		if p.Say != nil {
			got = *p.Say
		}
		if got != x.want || ok != (x.want != "") {
			t.Errorf("%+v: %q %v, want %q", x.turn, got, ok, x.want)
		}
	}
	s, err = Read([]byte(`{"steps": {"A": [{"say":"a1"}], "T1/A": [{"say":"t1"},{"say":"t1 again"}], "T2/A": [{"say":"t2"}], "T1/B": [{"say":"b"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	t1, t2 := Task{ID: "T1"}, Task{ID: "T2"}
	for _, x := range []struct {
		turn Turn
		want string
	}{
		{Turn{Step: "A", N: 1}, "a1"},
		{Turn{Step: "A", N: 2, Tasks: []Task{t1}}, "t1 again"},
		{Turn{Step: "A", N: 1, Tasks: []Task{{"T1", 1}}}, "t1 again"}, // of an outer task that is tried again
		{Turn{Step: "A", N: 1, Tasks: []Task{t2, t1}}, "t2"},
		{Turn{Step: "A", N: 1, Tasks: []Task{{ID: "T3"}, t1}}, "t1"},
		{Turn{Step: "B", N: 1, Tasks: []Task{t2, t1}}, "b"},
		{Turn{Step: "A", N: 1, Tasks: []Task{{ID: "T3"}}}, "a1"},
	} {
		if p, ok := s.Play(x.turn); !ok || *p.Say != x.want {
			t.Errorf("%+v: %+v, want %s", x.turn, p, x.want)
		}
	}
	if _, err := Read([]byte(`{`)); err == nil {
		t.Error("half a script was read")
	}
	if (&Script{}).Runs() {
		t.Error("commands are run though nobody said so")
	}
}

func TestLeast(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"array","minItems":2,"items":{"type":"integer","minimum":3}},"c":{}}}`: `{"a":"stub","b":[3,3]}`,
		`{"type":"string","pattern":"^v\\d+\\.\\d+\\.\\d+$"}`: `"v0.0.1"`,
		`{"enum":["failed","done"]}`:                          `"done"`,
		`{"enum":["x","y"]}`:                                  `"x"`,
		`{"const":5}`:                                         `5`,
		`{"type":"string","minLength":7}`:                     `"stub st"`,
		`{"type":"string","maxLength":2}`:                     `"st"`,
		`{"type":"number","exclusiveMinimum":1.5}`:            `2`,
		`{"type":"integer","multipleOf":5,"minimum":7}`:       `10`,
		`{"type":"number","maximum":-1}`:                      `-1`,
		`{"type":["null","string"]}`:                          `"stub"`,
		`{"type":"boolean"}`:                                  `false`,
		`{"type":"string","format":"date"}`:                   `"2026-01-01"`,
		`{"default":{"x":1}}`:                                 `{"x":1}`,
		`{"allOf":[{"required":["a"],"properties":{"a":{"type":"null"}}},{"required":["b"],"properties":{"b":{"const":1}}}]}`:   `{"a":null,"b":1}`,
		`{"required":["x"],"anyOf":[{"required":["y"],"properties":{"y":{"type":"boolean"}}}]}`:                                 `{"x":"stub","y":false}`,
		`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["n"],"properties":{"n":{"const":"x"}}}}}`:                `{"n":"x"}`,
		`{"type":"array","minItems":3,"items":{"required":["id"],"properties":{"id":{"type":"string"}}}}`:                       `[{"id":"stub"},{"id":"stub-2"},{"id":"stub-3"}]`,
		`{"type":"array","minItems":2,"items":{"required":["id"],"properties":{"id":{"type":"string","pattern":"^T[0-9]+$"}}}}`: `[{"id":"T1"},{"id":"T2"}]`,
		`{"type":"array","minItems":2,"items":{"required":["id"],"properties":{"id":{"const":"x"}}}}`:                           `[{"id":"x"},{"id":"x"}]`,
		`{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"string","maxLength":5}}`:                              `["stub","stub2"]`,
		`{"type":"array","minItems":2,"items":{"type":"string"}}`:                                                               `["stub","stub"]`,
		`true`:    `{}`,
		`{"type"`: `{}`,
	} {
		if got := string(Least(json.RawMessage(schema))); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
	// One that refers to itself ends.
	if got := Least(json.RawMessage(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/n"}}}}}`)); !json.Valid(got) {
		t.Error(string(got))
	}
}

// TestLeastIsBounded: a schema in which many lists, or many things that are like the whole, lie in one another makes no answer
// without end.
func TestLeastIsBounded(t *testing.T) {
	lists := `{"type": "string"}`
	for range 8 {
		lists = `{"type": "array", "minItems": 50, "items": ` + lists + `}`
	}
	like := `{"type": "object", "required": ["a", "b", "c", "d", "e", "f"], "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}, "d": {"$ref": "#"}, "e": {"$ref": "#"}, "f": {"$ref": "#"}}}`
	for _, schema := range []string{lists, like} {
		if got := Least(json.RawMessage(schema)); len(got) > 1<<20 {
			t.Errorf("%d bytes of %.60s", len(got), schema)
		}
	}
}

// TestLeastOfGivenItems: items that the schema itself gives differ in their ids too, unless it says that they are just so.
func TestLeastOfGivenItems(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type": "array", "minItems": 3, "items": {"type": "object", "default": {"id": "T1"}}}`:    `[{"id":"T1"},{"id":"T1-2"},{"id":"T1-3"}]`,
		`{"type": "array", "minItems": 2, "items": {"type": "object", "examples": [{"id": "T1"}]}}`: `[{"id":"T1"},{"id":"T1-2"}]`,
		`{"type": "array", "minItems": 2, "items": {"const": {"id": "T1"}}}`:                        `[{"id":"T1"},{"id":"T1"}]`,
		`{"type": "array", "minItems": 2, "items": {"enum": [{"id": "T1"}]}}`:                       `[{"id":"T1"},{"id":"T1"}]`,
	} {
		if got := string(Least(json.RawMessage(schema))); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}
