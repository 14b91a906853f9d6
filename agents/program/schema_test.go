package program

import (
	"encoding/json"
	"testing"
)

// TestStrict: the form of a schema for OpenAI's service, and schemas without one.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		schema  string
		mayNull bool
		want    string
	}{
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, false, `{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`, false, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string","enum":["x"]}}}`, true,
			`{"additionalProperties":false,"properties":{"a":{"type":"string"},"b":{"enum":["x",null],"type":["string","null"]}},"required":["a","b"],"type":"object"}`},
		{`{"$schema":"x","type":"object","required":["l"],"properties":{"l":{"type":"array","items":{"type":"object","properties":{}}}}}`, false,
			`{"additionalProperties":false,"properties":{"l":{"items":{"additionalProperties":false,"properties":{},"required":[],"type":"object"},"type":"array"}},"required":["l"],"type":"object"}`},
		{`{"type":"object","additionalProperties":true,"properties":{}}`, true, ""},
		{`{"type":"object"}`, true, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":["string","null"]}}}`, true, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":1}}}`, true, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"oneOf":[]}}}`, true, ""},
		{`{"type":"array","items":{"type":"string"}}`, true, ""},
		{`true`, true, ""}, {``, true, ""},
	} {
		got := string(Strict(json.RawMessage(c.schema), c.mayNull))
		if got == "null" || got != c.want {
			t.Errorf("%s: %s, want %s", c.schema, got, c.want)
		}
	}
}
