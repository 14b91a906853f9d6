package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sluice/tools/conform"
)

const testMax = 64 << 10

func TestCheckObject(t *testing.T) {
	conform.Rule(t, "2-files signal 3", "doubled keys, keys that differ in case, invalid UTF-8")
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, c := range []struct {
		in    string
		state State
		why   string
	}{
		{`{}`, Whole, ""},
		{" \t\r\n{ } \n", Whole, ""},
		{`{"a":[1,-0.5e+3,true,false,null,"x",[],{}],"b":{"a":1}}`, Whole, ""},
		{`{"a":"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t é 🎉"}`, Whole, ""},
		{`{"":1}`, Whole, ""},
		{deep(MaxDepth), Whole, ""},
		{`{"a":[` + strings.Repeat(`[{"b":1}],{},`, MaxDepth) + `[]]}`, Whole, ""}, // depth is not count

		{``, Partial, "ends after 0 bytes"},
		{`  `, Partial, "ends after"},
		{`{`, Partial, "ends after 1 bytes"},
		{`{"a":tru`, Partial, ""},
		{`{"a":-`, Partial, ""},
		{`{"a":1.`, Partial, ""},
		{`{"a":12`, Partial, ""},
		{`{"a":` + strings.Repeat("9", 400), Partial, ""}, // "e-300}" may follow
		{`{"a":` + strings.Repeat("9", 400) + `e-300}`, Whole, ""},
		{`{"a":` + strings.Repeat("9", 400) + `}`, Bad, "a number out of range"},
		{`{"a":"\ud83d`, Partial, ""},
		{`{"a":"\ud83d\`, Partial, ""},
		{"{\"a\":\"\xc3", Partial, ""},

		{`[]`, Bad, "want an object, found a list"},
		{`"x"`, Bad, "want an object, found a text"},
		{`1`, Bad, "want an object, found a number"},
		{`null`, Bad, "want an object, found null"},
		{`tr`, Bad, "want an object, found true or false"},
		{`done`, Bad, `byte 0: want a value, found 'd'`},
		{"\uFEFF{}", Bad, "byte order mark"},
		{`{} {}`, Bad, "byte 3: something follows"},
		{`{}x`, Bad, "something follows"},
		{`{"a":1,}`, Bad, "want a key"},
		{`{,}`, Bad, "want a key"},
		{`{a:1}`, Bad, "want a key in double quotes"},
		{`{"a" 1}`, Bad, `want a colon after the key "a"`},
		{`{"a":1 "b":2}`, Bad, "want a comma"},
		{`{"a":[1,]}`, Bad, "want a value"},
		{`{"a":[1}`, Bad, "want a comma or ']'"},
		{`{"a":01}`, Bad, "want a comma"},
		{`{"a":+1}`, Bad, "want a value"},
		{`{"a":.5}`, Bad, "want a value"},
		{`{"a":1.x}`, Bad, "want a digit"},
		{`{"a":1e999}`, Bad, "a number out of range"},
		{`{"a":NaN}`, Bad, "want a value"},
		{`{"a":trux}`, Bad, "want true"},
		{"{\"a\":\"x\ny\"}", Bad, "control character"},
		{"{\"a\":\"\x00\"}", Bad, "control character"},
		{`{"a":"\u0000"}`, Bad, "NUL in a text"},
		{`{"a\u0000":1}`, Bad, "NUL in a text"},
		{"{\"a\":\"\xff\"}", Bad, "invalid UTF-8"},
		{"{\"a\":\"\xc3(\"}", Bad, "invalid UTF-8"},
		{"{\"a\":\"\xed\xa0\x80\"}", Bad, "invalid UTF-8"}, // a surrogate in UTF-8
		{`{"a":"\ud83d"}`, Bad, "half of a surrogate pair"},
		{`{"a":"\ude00"}`, Bad, "half of a surrogate pair"},
		{`{"a":"\ude00\ude00"}`, Bad, "half of a surrogate pair"},
		{`{"a":"\ud83d\u0041"}`, Bad, "half of a surrogate pair"},
		{`{"a":"\x"}`, Bad, "unknown escape"},
		{`{"a":"\u12g4"}`, Bad, "four hex digits"},
		{deep(MaxDepth + 1), Bad, "nested more than 64 deep"},
		{strings.Repeat("[", 60_000), Bad, "want an object"},
		{`{"a":` + strings.Repeat("[", 60_000), Bad, "nested more than 64 deep"},
		{`{"a":"` + strings.Repeat("x", testMax) + `"}`, Bad, "more than 65536 bytes"},

		{`{"a":1,"a":2}`, Bad, `the key "a" is there twice`},
		{`{"a":1,"a`, Partial, ""},
		{`{"a":1,"a"`, Bad, "twice"}, // no byte that follows can mend it
		{`{"decision":"fail","Decision":"pass"}`, Bad, `the keys "decision" and "Decision" differ in case only`},
		{`{"x":{"a":1,"b":[{"k":1,"k":1}]}}`, Bad, "twice"},
		{`{"x":[{"deep":{"Key":1,"kEY":1}}]}`, Bad, "differ in case only"},
		{`{"k":1,"\u006b":2}`, Bad, "twice"},
		{`{"k":1,"\u212a":2}`, Bad, "differ in case only"}, // the Kelvin sign
		{`{"straße":1,"STRAẞE":2}`, Bad, "differ in case only"},
		{`{"a":{"k":1},"b":{"k":1}}`, Whole, ""},
	} {
		state, err := CheckObject([]byte(c.in), testMax)
		if state != c.state || (err == nil) != (c.state == Whole) || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.60q: %s, %v; want %s, %q", c.in, state, err, c.state, c.why)
		}
		if got := Object([]byte(c.in), testMax); (got == nil) != (c.state == Whole) {
			t.Errorf("%.60q: Object: %v", c.in, got)
		}
	}
}

func TestCheckTakesAnyKind(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]State{`1`: Whole, `"x"`: Whole, `[{"a":1}]`: Whole, `null`: Whole, `[{"a":1,"A":1}]`: Bad, `[1`: Partial, `-`: Partial} {
		if state, err := Check([]byte(in), testMax); state != want {
			t.Errorf("%s: %s, %v; want %s", in, state, err, want)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 30_000)
	if err := Object([]byte(`{"`+key+`":1,"`+key+`":2}`), testMax); err == nil || len(err.Error()) > 300 {
		t.Errorf("a message of %d bytes", len(fmt.Sprint(err)))
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	in := `{"t":"x","n":70.5,"i":3,"l":["a","b"],"o":{"k":1},"z":null,"big":1e9,"frac":1.5,"mixed":["a",1],"Score":1}`
	f, state, err := Read([]byte(in), testMax)
	if err != nil || state != Whole {
		t.Fatal(state, err)
	}
	if f.Text("t", 9) != "x" || f.Number("n", 0, 100) != 70.5 || f.Int("i", 1, 5) != 3 || strings.Join(f.Texts("l", 2), "") != "ab" ||
		string(f.Raw("o")) != `{"k":1}` || f.Has("z") || !f.Has("o") || f.Text("none", 1) != "" || f.Int("z", 1, 2) != 0 || f.Err() != nil {
		t.Errorf("read wrong, or faults: %v", f.Err())
	}
	f.Int("t", 0, 9)
	f.Text("n", 9)
	f.Text("o", 9)
	f.Texts("i", 9)
	f.Texts("l", 1)
	f.Texts("mixed", 9)
	f.Int("big", 1, 1_000_000)
	f.Int("frac", 1, 9)
	f.Number("i", 4, 9)
	f.Text("t", 0)
	f.Exactly("t", "score")
	want := []string{
		"t: want a number, found a text",
		"n: want a text, found a number",
		"o: want a text, found an object",
		"i: want a list, found a number",
		"l: more than 1 of them",
		"mixed[1]: want a text, found a number",
		"big: want a number from 1 to 1e+06, found 1e9",
		"frac: want a whole number, found 1.5",
		"i: want a number from 4 to 9, found 3",
		"t: more than 0 bytes",
		`Score: unknown key: write it "score"`,
	}
	if got := f.Err().Error(); got != strings.Join(want, "\n") {
		t.Errorf("faults:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// strictByTokens finds doubled and case-variant keys by another road than the
// parser's: the standard library's tokens.
func strictByTokens(data []byte) bool {
	d := json.NewDecoder(strings.NewReader(string(data)))
	type open struct {
		keys  []string
		isKey bool
		obj   bool
	}
	var stack []open
	value := func() {
		if n := len(stack); n > 0 && stack[n-1].obj {
			stack[n-1].isKey = true
		}
	}
	for {
		tok, err := d.Token()
		if err != nil {
			return true
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			stack = append(stack, open{obj: tok == json.Delim('{'), isKey: true})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
			value()
			continue
		}
		if n := len(stack); n > 0 && stack[n-1].obj && stack[n-1].isKey {
			key := tok.(string)
			for _, k := range stack[n-1].keys {
				if strings.EqualFold(k, key) {
					return false
				}
			}
			stack[n-1].keys = append(stack[n-1].keys, key)
			stack[n-1].isKey = false
			continue
		}
		value()
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\ud83d\ude00"}]}`, `{"a":1,"A":2}`, `{"k":1,"\u212a":2}`, `{"a":1e5`, "{\"a\":\"\xc3", `[[[`, `1.5e-7`, `"\u0000"`, `{"a":{"b":1},"b":{"a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := Check(data, testMax)
		if (err == nil) != (state == Whole) {
			t.Fatalf("%q: %s, %v", data, state, err)
		}
		switch {
		case state == Whole:
			if !json.Valid(data) || !strictByTokens(data) {
				t.Fatalf("%q is whole, but no strict JSON", data)
			}
			for i := range data { // nothing on the way there is hopeless
				if s, err := Check(data[:i], testMax); s == Bad {
					t.Fatalf("%q is whole, but its beginning %q is bad: %v", data, data[:i], err)
				}
			}
		case state == Partial && json.Valid(data):
			t.Fatalf("%q is partial, but JSON", data)
		case state == Bad:
			for _, more := range []string{"", "1", `"`, "}", "]", `"}`, `":1}`, "0}", `\ude00"}`} {
				if s, _ := Check(append(data[:len(data):len(data)], more...), testMax); s == Whole {
					t.Fatalf("%q is bad, but whole with %q", data, more)
				}
			}
		}
	})
}
