package form

import (
	"encoding/json"
	"strings"
	"testing"
)

const asked = `{"required":["name","ratio"],"properties":{"name":{"type":"string","title":"Name of the\u001b[31m service","description":"in DNS too"},
	"ratio":{"type":"number"},"region":{"enum":["eu","us"],"default":"eu"},"tags":{"type":"array"}}}`

// TestForm: each property is asked in turn, Enter takes the default, and what is wrong is told and asked again.
func TestForm(t *testing.T) {
	f, err := New(json.RawMessage(asked))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ question, line, why string }{
		{"name, Name of the service: in DNS too (text)", "", "name is required: want text"},
		{"name, Name of the service: in DNS too (text)", " 7 ", ""},
		{"ratio (a number)", "much", `ratio: want a number, found "much"`},
		{"ratio (a number)", "1.5", ""},
		{"region (one of eu, us) [eu]", "asia", `region: want one of eu, us, found "asia"`},
		{"region (one of eu, us) [eu]", "", ""},
		{"tags (a list, in JSON) [left out]", "", ""},
	} {
		if q := f.Question(); q != c.question || f.Done() {
			t.Errorf("asks %q, want %q", q, c.question)
		}
		if why := f.Take(c.line); why != c.why {
			t.Errorf("%s %q: %q, want %q", c.question, c.line, why, c.why)
		}
	}
	got, err := f.Answer()
	if !f.Done() || err != nil || string(got) != `{"name":"7","ratio":1.5,"region":"eu"}` {
		t.Errorf("%s %v", got, err)
	}
	if s := Shown(got); s != "name=7, ratio=1.5, region=eu" {
		t.Error(s)
	}
	if s := Shown(json.RawMessage(`{"a":"x\u001b[2J` + strings.Repeat("y", 90) + `","b":{"c":1}}`)); strings.Contains(s, "\x1b") || len(s) > 90 || !strings.HasSuffix(s, `b={"c":1}`) {
		t.Errorf("%q", s)
	}
}
