package strictjson

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hostile has what a terminal or an editor acts on, as it stands in JSON of encoding/json.
const hostile = "a\u009b31mred\u0085\u007f\u202eevil\u2066\u200b\u200d\u2028\u2029\ufeff\u00ad\U000e0041\ue000é漢😀\u00a0"

func TestPlain(t *testing.T) {
	raw, err := json.Marshal(map[string]string{hostile: hostile})
	if err != nil {
		t.Fatal(err)
	}
	out := Plain(raw)
	for _, r := range string(out) {
		if r > 0x7e && !unicode.IsGraphic(r) {
			t.Errorf("%U is there raw: %s", r, out)
		}
	}
	var back map[string]string
	if err := json.Unmarshal(out, &back); err != nil || back[hostile] != hostile {
		t.Errorf("%v: %q", err, back)
	}
	if again := Plain(out); string(again) != string(out) {
		t.Errorf("done twice it differs: %s", again)
	}
	if s := `{"a":"é漢😀 b"}`; string(Plain([]byte(s))) != s {
		t.Error("what is plain was changed")
	}
	for in, want := range map[string]string{"\"\u009b\"": `"\u009b"`, "\"\u202e\"": `"\u202e"`, "\"\U000e0041\"": `"\udb40\udc41"`, "\"\x9b\"": `"\ufffd"`, "\"\x7f\"": `"\u007f"`} {
		if got := string(Plain([]byte(in))); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, s string) {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var a, b string
		if json.Unmarshal(raw, &a) != nil || json.Unmarshal(Plain(raw), &b) != nil || a != b || !utf8.Valid(Plain(raw)) {
			t.Fatalf("%q: %q %q", s, a, b)
		}
	})
}
