package decide

import (
	"strings"
	"testing"

	"sluice/internal/findings"
)

func TestCommentsOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]findings.Finding{
		"src/a.go:12:this hides it":   {File: "src/a.go", Line: 12, Message: "this hides it"},
		"a b.go:1: a: b:2:c":          {File: "a b.go", Line: 1, Message: "a: b:2:c"},
		"./src//a.go:3:no":            {File: "src/a.go", Line: 3, Message: "no"},
		"c:/x.go:3:no":                {File: "c:/x.go", Line: 3, Message: "no"},
		"a.go:3:two\nlines\x1b[2Jred": {File: "a.go", Line: 3, Message: "two\nlinesred"},
	} {
		d := Decision{Comments: []string{in}}
		err := commentsOf(&d)
		if got := findings.List(d.findings); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %+v %v, want %+v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"": "not a comment", "a.go": "not a comment", "a.go:12": "not a comment", "a.go:12:": "not a comment",
		"a.go:12: ": "not a comment", ":12:x": "not a comment", "a.go:-1:x": "not a comment", "a.go::x": "not a comment",
		"../a.go:1:x": "outside the repo", "/etc/passwd:1:x": "outside the repo",
		"a.go:0:x": "number of a line", "a.go:99999999999999999999:x": "number of a line", "a.go:100000001:x": "number of a line",
		"a.go:1:" + strings.Repeat("x", findings.MaxText+1): "more than 4096 bytes",
	} {
		if err := commentsOf(&Decision{Comments: []string{in}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", in, err, want)
		}
	}
	many := make([]string, findings.Max+1)
	for i := range many {
		many[i] = "a.go:1:x"
	}
	for want, d := range map[string]Decision{
		"at most 200":         {Comments: many},
		"the signed file":     {Comments: many[:1], Signed: "f"},
		"the signed file has": {Review: true, Signed: "f"},
		"-m were both":        {Review: true, Text: "x"},
	} {
		if err := commentsOf(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestManyRuns: where hundreds of runs have the gate, the error names a few of them.
func TestManyRuns(t *testing.T) {
	d := Decision{Gate: "g", runs: strings.Split(strings.Repeat("w-1 ", 200)+"w-1", " ")}
	if err := d.which(""); len(err.Error()) > 200 || !strings.Contains(err.Error(), "w-1, …)") {
		t.Error(err)
	}
}
