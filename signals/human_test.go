package signals

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/internal/text"
	"sluice/tools/conform"
)

func TestParseHuman(t *testing.T) {
	conform.Rule(t, "2-files decision file", "a file written by hand: empty, text or JSON")
	conform.Rule(t, "2-files decision content", "unknown and doubled keys and two outcomes are refused")
	conform.Rule(t, "2-files decision words", "the file's text is the feedback")
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     Human
		state    State
		why      string
	}{
		{"XG-1-pass", "", Human{}, Whole, ""},
		{"XG-1-pass.json", "\n", Human{}, Whole, ""},
		{"XG-1-fail.md", "\uFEFF# No\r\n\r\nuse the index\r\n", Human{Text: "# No\n\nuse the index"}, Whole, ""},
		{"XG-1-fail.txt", "nein, bitte höher 🎉", Human{Text: "nein, bitte höher 🎉"}, Whole, ""},
		{"XG-1-fail", `{"feedback":"no"}`, Human{Text: "no"}, Whole, ""}, // JSON, whatever the ending
		{"XG-1-pass.md", "\uFEFF \n{\"verdict\":\"fail\"}", Human{Outcome: "fail"}, Whole, ""},
		{"XG-1-pass.txt", `{"verdict":"fail"`, Human{}, Partial, "not whole"},
		{"XG-1-fail.txt", `{not JSON}`, Human{}, Bad, "text that begins with { is read as JSON"},
		{"XG-1-fail.md", "half \xc3", Human{}, Partial, "middle of a character"},
		{"XG-1-fail.md", "half \xc3(", Human{}, Bad, "byte 5: invalid UTF-8"},
		{"XG-1-fail.txt", "\xff\xfeN\x00o\x00", Human{}, Bad, "byte 0: invalid UTF-8: save the file as UTF-8"},
		{"XG-1-fail.txt", "N\x00o\x00", Human{}, Bad, "byte 1: NUL"},
		{"XG-1-fail.md", strings.Repeat("x", MaxBytes+1), Human{}, Bad, "more than 65536 bytes"},
		{"XG-1-fail.md", strings.Repeat("x", MaxBytes), Human{Text: strings.Repeat("x", MaxBytes)}, Whole, ""},

		{"XG-1-fail.json", `{"feedback":" no ","round":3,"by":"alice","run":"r-1","gate":"XG-1","verdict":"fail"}`, Human{Text: "no", Round: 3, By: "alice", Run: "r-1", Gate: "XG-1", Outcome: "fail"}, Whole, ""},
		{"XG-1-fail.json", `{"decision":"fail","outcome":"fail"}`, Human{Outcome: "fail"}, Whole, ""},
		{"XG-1-fail.json", `{"outcome":"fail","verdict":null}`, Human{Outcome: "fail"}, Whole, ""},
		{"XG-1-fail.json", `{"message":"no"}`, Human{Text: "no"}, Whole, ""},
		{"XG-1-fail.json", `{"text":"no","feedback":null}`, Human{Text: "no"}, Whole, ""},
		{"XG-1-fail.json", `{"text":"no"`, Human{}, Partial, "not whole"},
		{"XG-1-fail.json", `no`, Human{}, Bad, "want"},
		{"XG-1-fail.json", `"no"`, Human{}, Bad, "want an object, found a text"},
		{"XG-1-fail.json", `{"text":"no","message":"yes"}`, Human{}, Bad, "given twice"},
		{"XG-1-fail.json", `{"decision":"fail","verdict":"pass"}`, Human{}, Bad, `verdict: "pass" and decision "fail" are two outcomes: say one`},
		{"XG-1-fail.json", `{"verdict":true}`, Human{}, Bad, "verdict: want a text, found true or false"},
		{"XG-1-fail.json", `{"verdict":""}`, Human{}, Bad, "verdict: want an outcome, found an empty text"},
		{"XG-1-fail.json", `{"gate":"../x"}`, Human{}, Bad, "gate: want an id"},
		{"XG-1-fail.json", `{"feedback":"no","more":1}`, Human{}, Bad, `"more": unknown key: want feedback, verdict, gate, round, run, by, answer or findings`},
		{"XG-1-pass.json", `{"answer":{"replicas":2}}`, Human{Answer: json.RawMessage(`{"replicas":2}`)}, Whole, ""},
		{"XG-1-fail.json", `{"findings":[{"file":"a.go","line":3,"message":"no"}]}`, Human{Findings: json.RawMessage(`[{"file":"a.go","line":3,"message":"no"}]`)}, Whole, ""},
		{"XG-1-fail.json", `{"findings":{"file":"a.go"}}`, Human{}, Bad, "findings: want a list"},
		{"XG-1-fail.json", `{"findings":[{"line":-1}]}`, Human{}, Bad, "line: want a number from 0"},
		{"XG-1-pass.json", `{"answer":"web"}`, Human{}, Bad, "answer: want an object of its properties"},
		{"XG-1-pass.json", `{"answer":{"n":1,"n":2}}`, Human{}, Bad, "twice"},
		{"XG-1-pass.json", `{"passed":false}`, Human{}, Bad, `"passed": unknown key`},
		{"XG-1-pass.json", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`, Human{}, Bad, "and 2 more: unknown keys: want"},
		{"XG-1-fail.json", `{"verdict":"fail","verdict":"pass"}`, Human{}, Bad, "twice"},
		{"XG-1-fail.json", `{"feedbck":"no"}`, Human{}, Bad, "unknown key: did you mean feedback?"},
		{"XG-1-fail.json", `{"Feedback":"no"}`, Human{}, Bad, `write it "feedback"`},
		{"XG-1-fail.json", `{"feedback":["no"]}`, Human{}, Bad, "feedback: want a text, found a list"},
		{"XG-1-fail.json", `{"round":"3"}`, Human{}, Bad, "round: want a number, found a text"},
		{"XG-1-fail.json", `{"round":0}`, Human{}, Bad, "round: want a number from 1"},
		{"XG-1-fail.json", `{"decision":"fail","Decision":"pass"}`, Human{}, Bad, "differ in case only"},
		{"XG-1-fail.json", `{"run":"../x"}`, Human{}, Bad, "run: want an id"},
		{"XG-1-fail.json", `{"by":"` + strings.Repeat("b", maxBy+1) + `"}`, Human{}, Bad, "by: more than 256 bytes"},
	} {
		h, state, err := ParseHuman(c.name, []byte(c.in))
		if !reflect.DeepEqual(h, c.want) || state != c.state || (err == nil) != (state == Whole) || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s %.50q: %.80v %s %v; want %.80v %s %q", c.name, c.in, h, state, err, c.want, c.state, c.why)
		}
	}
}

func FuzzHuman(f *testing.F) {
	f.Add("XG-1-pass.md", []byte("words"))
	f.Add("XG-1-fail.json", []byte(`{"feedback":"no","round":2}`))
	f.Add("G-x", []byte("\xff"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		h, state, err := ParseHuman(name, data)
		if (err == nil) != (state == Whole) {
			t.Fatalf("%q %q: %s, %v", name, data, state, err)
		}
		if !utf8.ValidString(h.Text) || strings.ContainsRune(h.Text, 0) || strings.ContainsRune(h.By, 0) {
			t.Fatalf("%q: %+v", data, h)
		}
		if state != Whole && !reflect.DeepEqual(h, Human{}) {
			t.Fatalf("%q is %s, yet says %+v", data, state, h)
		}
		_ = fmt.Sprint(text.Nearest(name, []string{"feedback", name}))
	})
}
