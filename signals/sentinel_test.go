package signals

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sluice/internal/ids"
	"sluice/tools/conform"
)

func TestParseSentinel(t *testing.T) {
	conform.Rule(t, "2-files signal 3", "unknown keys are kept; run, attempt, launch, token are read")
	conform.Rule(t, "004 §2 Signal.sentinel_file", "a JSON file says what became of the step")
	t.Parallel()
	whole := `{"step":"X-1","status":"blocked","summary":"s","question":"which?","options":["a","b"],"run":"r-1","attempt":2,"launch":3,"token":"tk","answer":{"plan":[1]},"mine":{"x":1}}`
	got, state, err := ParseSentinel([]byte(whole))
	want := Sentinel{
		Step: "X-1", Status: Blocked, Summary: "s", Question: "which?", Options: []string{"a", "b"}, Run: "r-1", Attempt: 2, Launch: 3, Token: "tk",
		Answer: json.RawMessage(`{"plan":[1]}`), Raw: json.RawMessage(whole),
	}
	if state != Whole || err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %s, %v", got, state, err)
	}
}

func TestSentinelStates(t *testing.T) {
	conform.Rule(t, "13-law 004 status", "the words that agents write for done, failed and blocked are read; a file without a status is a done")
	conform.Rule(t, "2-files signal 3", "doubled keys, keys that differ in case only and invalid UTF-8 are refused")
	conform.Rule(t, "2-files signal 7", "at most 64 KiB")
	conform.Rule(t, "1-language rule 3 status", "done, failed and blocked are the only words")
	t.Parallel()
	for _, c := range []struct {
		in     string
		state  State
		status string
		why    string
	}{
		{``, Whole, Done, ""},
		{" \n", Whole, Done, ""},
		{`{}`, Whole, Done, ""},
		{`{"status":"done"}`, Whole, Done, ""},
		{`{"status":"failed","summary":"no"}`, Whole, Failed, ""},
		{`{"status":"complete"}`, Whole, Done, ""},
		{`{"status":"completed"}`, Whole, Done, ""},
		{`{"status":"SUCCESS"}`, Whole, Done, ""},
		{`{"status":"Ok"}`, Whole, Done, ""},
		{`{"status":"error"}`, Whole, Failed, ""},
		{`{"status":"needs_input"}`, Whole, Blocked, ""},
		{`{"status":null,"step":null,"options":null,"attempt":null}`, Whole, Done, ""},
		{`{"summary":"\u001b[31m \u202e"}`, Whole, Done, ""}, // text is data
		{`{"attempt":1000000}`, Whole, Done, ""},

		{`{"status":"don`, Partial, "", "not whole: it ends after 14 bytes"},
		{`{`, Partial, "", "not whole"},

		{`1`, Bad, "", "sentinel: want an object, found a number"},
		{`true`, Bad, "", "want an object"},
		{`["done"]`, Bad, "", "want an object, found a list"},
		{`done`, Bad, "", "want a value"},
		{`{"status":"partial"}`, Bad, "", `status: want done, failed or blocked, found "partial"`},
		{`{"status":"not done"}`, Bad, "", "want done, failed or blocked"},
		{`{"status":"done "}`, Bad, "", "want done, failed or blocked"},
		{`{"status":""}`, Bad, "", "found an empty text"},
		{`{"status":5}`, Bad, "", "status: want a text, found a number"},
		{`{"Status":"failed"}`, Bad, "", `Status: unknown key: write it "status"`},
		{`{"status":"failed","Status":"done"}`, Bad, "", "differ in case only"},
		{`{"answer":{"a":1,"A":2}}`, Bad, "", "differ in case only"},
		{`{"attempt":"1"}`, Bad, "", "attempt: want a number, found a text"},
		{`{"attempt":1.5}`, Bad, "", "attempt: want a whole number, found 1.5"},
		{`{"attempt":0}`, Bad, "", "attempt: want a number from 1"},
		{`{"attempt":-1}`, Bad, "", "attempt: want a number from 1"},
		{`{"attempt":1e300}`, Bad, "", "attempt: want a number from 1"},
		{`{"launch":1000001}`, Bad, "", "launch: want a number from 1"},
		{`{"step":"../X-1"}`, Bad, "", `step: want an id`},
		{`{"run":"a/b"}`, Bad, "", `run: want an id`},
		{`{"run":"` + strings.Repeat("x", 241) + `"}`, Bad, "", `at most 240`},
		{`{"run":"` + strings.Repeat("x", 100) + `"}`, Whole, Done, ""}, // a child run's
		{`{"summary":{"a":1},"options":"x","token":[]}`, Bad, "", "summary: want a text, found an object; options: want a list, found a text; token: want a text, found a list"},
		{`{"options":["a",1]}`, Bad, "", "options[1]: want a text, found a number"},
		{`{"options":[` + strings.Repeat(`"a",`, maxOptions) + `"a"]}`, Bad, "", "options: more than 64"},
		{`{"token":"` + strings.Repeat("t", maxToken+1) + `"}`, Bad, "", "token: more than 256 bytes"},
		{"{\"summary\":\"\xff\"}", Bad, "", "invalid UTF-8"},
		{"{\"summary\":\"a\x00b\"}", Bad, "", "control character"},
		{`{"summary":"a\u0000b"}`, Bad, "", "NUL"},
		{`{"answer":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, Bad, "", "nested more than"},
		{`{"summary":"` + strings.Repeat("x", MaxBytes) + `"}`, Bad, "", "more than 65536 bytes"},
		{"\u2000", Bad, "", "want a value"}, // a space, but not JSON's
		{strings.Repeat(" ", MaxBytes+1), Bad, "", "more than 65536 bytes"},
	} {
		s, state, err := ParseSentinel([]byte(c.in))
		if state != c.state || s.Status != c.status || (err == nil) != (state == Whole) || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.60q: %s %q %v; want %s %q %q", c.in, state, s.Status, err, c.state, c.status, c.why)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 400) {
			t.Errorf("%.60q: a reason of %d bytes or several lines", c.in, len(err.Error()))
		}
	}
}

// A file written in place is read at every length: partial at each (except empty, which only time
// distinguishes from an empty file), and whole only at the end.
func TestSentinelAtEverySplit(t *testing.T) {
	conform.Rule(t, "2-files signal 2", "a file is partial at each length, and whole once")
	t.Parallel()
	whole := `{"step":"X-1","status":"failed","attempt":12,"summary":"é \"\ud83d\ude00\" 🎉","answer":{"n":[1.5e3,-0,true,null]}}`
	for i := 1; i < len(whole); i++ {
		if s, state, err := ParseSentinel([]byte(whole[:i])); state != Partial || err == nil || s.Status != "" {
			t.Errorf("%q: %s %+v %v", whole[:i], state, s, err)
		}
	}
	for i := range whole { // and never whole with anything after it
		if _, state, _ := ParseSentinel([]byte(whole + whole[:i])); (state == Whole) != (i == 0) {
			t.Errorf("with %q behind it: %s", whole[:i], state)
		}
	}
}

func TestSentinelKeepsItsOwnBytes(t *testing.T) {
	t.Parallel()
	data := []byte(`{"answer":{"a":1},"mine":2}`)
	s, _, _ := ParseSentinel(data)
	for i := range data {
		data[i] = 'x'
	}
	if string(s.Raw) != `{"answer":{"a":1},"mine":2}` || string(s.Answer) != `{"a":1}` {
		t.Errorf("%s, %s", s.Raw, s.Answer)
	}
}

func FuzzSentinel(f *testing.F) {
	conform.Rule(f, "2-files signal 2", "what is bad stays bad, what is whole is JSON")
	for _, s := range []string{``, `{}`, `{"status":"done","attempt":1}`, `{"Status":"x"}`, `{"answer":{"a":1,"A":2}}`, `{"options":["a"]}`, `[`, `{"step":"X-1`, "{\"a\":\"\xc3"} {
		f.Add([]byte(s), []byte(`"}`))
	}
	f.Fuzz(func(t *testing.T, data, more []byte) {
		s, state, err := ParseSentinel(data)
		if (err == nil) != (state == Whole) {
			t.Fatalf("%q: %s, %v", data, state, err)
		}
		switch state {
		case Whole:
			if s.Raw == nil {
				if strings.Trim(string(data), " \t\r\n") != "" {
					t.Fatalf("%q read as empty", data)
				}
			} else if !json.Valid(data) {
				t.Fatalf("%q is whole, but no JSON", data)
			}
			if s.Status != Done && s.Status != Failed && s.Status != Blocked {
				t.Fatalf("%q: status %q", data, s.Status)
			}
			if s.Step != "" && !ids.Valid(s.Step) || s.Run != "" && !ids.ValidRun(s.Run) || s.Attempt < 0 || s.Launch < 0 {
				t.Fatalf("%q: %+v", data, s)
			}
			for _, doubled := range []string{`{"status":"done",`, `{"STATUS":"done",`} { // a second status is never accepted
				if rest := strings.TrimSpace(string(data)); strings.HasPrefix(rest, `{"status"`) {
					if _, state, _ := ParseSentinel([]byte(doubled + rest[1:])); state == Whole {
						t.Fatalf("%s%s is whole", doubled, rest[1:])
					}
				}
			}
		case Bad: // for good
			if _, state, _ := ParseSentinel(append(data[:len(data):len(data)], more...)); state == Whole {
				t.Fatalf("%q was bad (%v), and whole with %q", data, err, more)
			}
		case Partial:
			if json.Valid(data) {
				t.Fatalf("%q is JSON, but partial", data)
			}
		}
	})
}
