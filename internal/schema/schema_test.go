package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	deep := `{"$defs":{"a0":{"type":"string"}`
	for i := range 30 {
		deep += fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i+1, i, i)
	}
	deep += `},"$ref":"#/$defs/a30"}`
	for _, c := range []struct{ schema, want string }{
		{`{}`, ""}, {`true`, "an object"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string"}}}`, ""},
		{`{"properties":{"children":{"items":{"$ref":"#"}},"destructive":{"type":"boolean"}},"required":["destructive"]}`, ""},
		{`{"type":"strin"}`, "type"}, {`{"type":`, "not whole"}, {`{"a":1,"a":2}`, "twice"}, {`{"x":"` + strings.Repeat("x", MaxBytes) + `"}`, "more than 65536"},
		{`{"pattern":"("}`, "pattern"}, {`{"$ref":"#/$defs/none"}`, "none"},
		{`{"$ref":"https://example.org/s.json"}`, "another document"}, {`{"$ref":"other.json"}`, "another document"}, {`{"$ref":"file:///etc/passwd"}`, "another document"},
		{`{"$id":"https://example.org/a","$ref":"b"}`, "another document"},
		{`{"properties":{"destructive":{"default":false}}}`, "`destructive` has a default (at /properties/destructive)"},
		{`{"properties":{"Destructive":{"default":false}}}`, "has a default"},
		{`{"items":{"properties":{"destructive":{"$ref":"#/$defs/no"}}},"$defs":{"no":{"default":false}}}`, "has a default"},
		{`{"properties":{"destructive":{"allOf":[{"anyOf":[{"default":false}]}]}}}`, "has a default"},
		{`{"properties":{"commands":{"default":[{"destructive":false}]}}}`, "has a default"},
		{`{"anyOf":[{"properties":{"x":{"default":{"y":{"DESTRUCTIVE":false}}}}}]}`, "has a default"},
		{`{"$ref":"#"}`, "too complex"}, {deep, "too complex"},
		{`{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}}}`, "too complex"},
	} {
		_, err := Compile([]byte(c.schema))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v; want %q", c.schema, err, c.want)
		}
	}
}

// A file of the machine is no part of a schema, even where it would do as one.
func TestSchemaReadsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(path, []byte(`{"type":"string"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Compile([]byte(`{"$ref":"file://` + filepath.ToSlash(path) + `"}`)); err == nil || !strings.Contains(err.Error(), "another document") {
		t.Errorf("error %v", err)
	}
}
