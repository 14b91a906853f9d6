package schema

import (
	"strings"
	"testing"
)

const asked = `{"required":["name","replicas"],"additionalProperties":false,"properties":{
	"name":{"type":"string","title":"Name of the service","minLength":1},
	"replicas":{"type":"integer","minimum":1,"maximum":9,"default":2},
	"region":{"enum":["eu","us",3],"default":"eu"},
	"ratio":{"type":"number"},"fast":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}},
	"note":{"type":["string","null"]},"size":{"$ref":"#/$defs/size"}},
	"$defs":{"size":{"type":"integer","description":"how large","minimum":4}}}`

func compiled(t *testing.T, source string) *Schema {
	t.Helper()
	s, err := Compile([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProperties(t *testing.T) {
	var got []string
	for _, p := range compiled(t, asked).Properties() {
		got = append(got, p.Name+": "+p.Want())
	}
	want := "name: text, not empty|replicas: an integer from 1 to 9|fast: true or false|note: null or text|ratio: a number|region: one of eu, us, 3|size: an integer, at least 4|tags: a list, in JSON"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
}

// What a text must have of characters is told as it is.
func TestWantedCharacters(t *testing.T) {
	for schema, want := range map[string]string{
		`{"minLength":1}`: "text, not empty", `{"minLength":3}`: "text, at least 3 characters", `{"minLength":0}`: "text",
	} {
		props := compiled(t, `{"type":"object","properties":{"a":`+strings.Replace(schema, "{", `{"type":"string",`, 1)+`}}`).Properties()
		if got := props[0].Want(); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

// Each value is read by the type of its property, and what does not fit is told with what is wanted.
func TestGiven(t *testing.T) {
	s := compiled(t, asked)
	for _, c := range []struct{ args, want, says string }{
		{"name=web|replicas=3", `{"name":"web","region":"eu","replicas":3}`, ""},
		{"name=web", `{"name":"web","region":"eu","replicas":2}`, ""},
		{"name=12", `{"name":"12","region":"eu","replicas":2}`, ""},
		{"name=a=b <c>", `{"name":"a=b <c>","region":"eu","replicas":2}`, ""},
		{"name=x|ratio=1.50|fast=true|tags=[\"a\"]|note=null|region=3", `{"fast":true,"name":"x","note":null,"ratio":1.50,"region":3,"replicas":2,"tags":["a"]}`, ""},
		{"name=x|note=5", `{"name":"x","note":"5","region":"eu","replicas":2}`, ""},
		{`{"name":"x","replicas":9}`, `{"name":"x","region":"eu","replicas":9}`, ""},
		{"", "", "the answer lacks name (Name of the service: text, not empty)"},
		{"name=", "", "name: want text, not empty, found \"\""},
		{"name=x|replicas=two", "", `replicas: want an integer from 1 to 9, found "two"`},
		{"name=x|replicas=10", "", `replicas: want an integer from 1 to 9, found "10"`},
		{"name=x|replicas=2.5", "", "replicas: want an integer"},
		{"name=x|replica=2", "", `the answer has no "replica": did you mean replicas?`},
		{"name=x|zzzzzz=2", "", "it asks for name, replicas, fast"},
		{"name=x|name=y", "", "name is given twice"},
		{"name=x|region=asia", "", "region: want one of eu, us, 3"},
		{"name=x|tags=a", "", "tags: want a list, in JSON"},
		{"name=\xff", "", "name: want text"},
		{"web", "", "want NAME=VALUE"},
		{`{"name":"x"}|replicas=2`, "", "is complete"},
		{`{"name":"x","name":"y"}`, "", "twice"},
		{`{"name":"x","replica":2}`, "", "did you mean replicas?"},
		{`{"name":"x","replicas":"2"}`, "", "replicas: want an integer from 1 to 9, found 2"},
	} {
		var args []string
		if c.args != "" {
			args = strings.Split(c.args, "|")
		}
		v, err := s.Given(args)
		got := ""
		if err == nil {
			raw, eerr := Encode(v, MaxBytes)
			if eerr != nil {
				t.Fatal(eerr)
			}
			raw, err = s.Person(raw)
			got = string(raw)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) || c.says == "" && (err != nil || got != c.want) {
			t.Errorf("%q: %s %v; want %s %s", c.args, got, err, c.want, c.says)
		}
	}
	for _, bad := range []string{`[1]`, `"x"`, `null`, `{"name":`, `{"name":"` + strings.Repeat("x", MaxBytes) + `"}`} {
		if got, err := s.Person([]byte(bad)); err == nil {
			t.Errorf("%.40s: taken as %s", bad, got)
		}
	}
	if got := s.Example(); got != "-a name=…" {
		t.Errorf("example %q", got)
	}
}
