package findings

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want, why string }{
		{"none", ``, ``, ""},
		{"an empty list", `[]`, ``, ""},
		{"null", `null`, ``, ""},
		{"a finding", `[{"file":"a.go","line":3,"message":"x","severity":"high"}]`, `[{"file":"a.go","line":3,"message":"x","severity":"high"}]`, ""},
		{"words", `["just words"]`, `[{"message":"just words"}]`, ""},
		{"hostile", "[{\"file\":\"a\\u001b[2J\\u202e\\n.go\",\"message\":\"m\\u0007\"}]", `[{"file":"a<U+202E> .go","message":"m"}]`, ""},
		{"another key stays", `[{"message":"m","rule":7}]`, `[{"message":"m","rule":7}]`, ""},
		{"an object", `{"file":"a"}`, ``, "want a list"},
		{"an object after the list", `[],"verdict":"pass"`, ``, "want a list, as JSON"},
		{"no JSON", `[`, ``, "want a list, as JSON"},
		{"a number", `[1]`, ``, "want an object"},
		{"a key twice", `[{"file":"a","file":"b"}]`, ``, "twice"},
		{"another case", `[{"File":"a"}]`, ``, `write it "file"`},
		{"a line of text", `[{"line":"3"}]`, ``, "findings[0]: line: want a number"},
		{"line -1", `[{"line":-1}]`, ``, "from 0"},
		{"many", "[" + strings.Repeat(`"x",`, Max) + `"x"]`, ``, "more than 200"},
		{"large", "[" + strings.Repeat(`"`+strings.Repeat("x", MaxText)+`",`, 20) + `"x"]`, ``, "more than"},
	} {
		got, err := Clean(json.RawMessage(c.in))
		if string(got) != c.want || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %.100s %v; want %s %q", c.name, got, err, c.want, c.why)
		}
		if again, err := Clean(got); err != nil || string(again) != string(got) {
			t.Errorf("%s: cleaned twice: %s %v", c.name, again, err)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	list := []Finding{{File: "a \xff.go", Line: 3, Message: "one\n\ttwo <b>"}, {Message: "three"}}
	raw, err := Encode(list)
	if err != nil || strings.Contains(string(raw), "\n") || !utf8.Valid(raw) {
		t.Fatalf("%s %v", raw, err)
	}
	got := List(raw)
	if fmt.Sprint(got) != fmt.Sprint([]Finding{{File: "a \uFFFD.go", Line: 3, Message: "one\n\ttwo <b>"}, {Message: "three"}}) {
		t.Errorf("%+v", got)
	}
	if got[0].File != File(list[0].File) || got[0].Place() != "a \uFFFD.go:3" || got[1].Place() != "" || (Finding{File: "a"}).Place() != "a" {
		t.Errorf("%q %q", got[0].File, got[0].Place())
	}
	if raw, err := Encode(nil); raw != nil || err != nil {
		t.Errorf("%s %v", raw, err)
	}
	if List(json.RawMessage(`{"a":1}`)) != nil || List(nil) != nil {
		t.Error("a list was read")
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte(`[{"file":"a","line":1,"message":"m"},"x"]`))
	f.Add([]byte("],\"findings\":[\"\x1b\""))
	f.Fuzz(func(t *testing.T, raw []byte) {
		clean, err := Clean(raw)
		if err != nil {
			return
		}
		if again, err := Clean(clean); err != nil || string(again) != string(clean) || len(clean) > maxList {
			t.Fatalf("%q: %q, then %q %v", raw, clean, again, err)
		}
	})
}
