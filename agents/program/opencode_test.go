package program

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

const (
	opencodeBegan = `{"type":"step_start","sessionID":"ses_df7b38b92ffe","part":{"type":"step-start"}}`
	opencodeDone  = `{"type":"step_finish","part":{"reason":"stop","tokens":{"input":10,"output":5,"reasoning":2,"cache":{"read":100,"write":1}},"cost":0.25}}`
	opencodeGoes  = `{"type":"step_finish","part":{"reason":"tool-calls","tokens":{"input":10,"output":5,"reasoning":2,"cache":{"read":100,"write":1}},"cost":0.25}}`
)

func TestOpencode(t *testing.T) {
	conform.Rule(t, "001 log.types", "opencode's")
	r, events := read(Opencode, opencodeBegan,
		`{"type":"text","part":{"text":"I look."}}`,
		`{"type":"tool_use","part":{"tool":"bash","state":{"status":"completed","input":{"command":"go test"},"metadata":{"exit":1}}}}`,
		`{"type":"tool_use","part":{"tool":"read","state":{"status":"error","input":{"filePath":"/x/none"},"error":"File not found"}}}`,
		`{"type":"tool_use","part":{"tool":"write","state":{"status":"completed","input":{"filePath":"/x/a.go","content":"…"}}}}`,
		opencodeGoes, opencodeBegan, `{"type":"a kind of tomorrow","part":7}`,
		`{"type":"text","part":{"text":"Done."}}`, opencodeDone)
	if class, why, _ := r.Class(0, ""); class != Good {
		t.Errorf("%s %s: a failed command is no failure", class, why)
	}
	if r.Text != "Done." || r.Session != "ses_df7b38b92ffe" || r.Turns != 2 || r.Usage != (Usage{222, 14, 0.5, 0}) {
		t.Errorf("%+v", r)
	}
	want := []Event{{Began, "", "", ""}, {Text, "", "I look.", ""}, {Tool, "bash", "go test", "command"}, {Failed, "bash", "exit code 1", ""},
		{Tool, "read", "/x/none", "file_path"}, {Failed, "read", "File not found", ""}, {File, "write", "/x/a.go", ""}, {Text, "", "Done.", ""},
		{Ended, "", "2 turns, 236 tokens, 0.5000 USD", ""}}
	if !slices.Equal(events, want) {
		t.Errorf("%+v", events)
	}
	if launch, total := r.Since(Usage{Input: 1000, Output: 50, CostUSD: 1}); launch != r.Usage || total != (Usage{1222, 64, 1.5, 0}) {
		t.Errorf("%+v, in all %+v: it counts the launch", launch, total)
	}
	r, _ = read(Opencode, opencodeBegan, `{"type":"text","part":{"text":"If all holds: {\"verdict\":\"pass\"}"}}`,
		`{"type":"tool_use","part":{"tool":"bash","state":{"status":"completed"}}}`, opencodeGoes, opencodeBegan, opencodeDone)
	if r.Text != "" {
		t.Errorf("%q was no last word", r.Text)
	}
}

// TestOpencodeEnds: ends that the recordings lack.
func TestOpencodeEnds(t *testing.T) {
	refused := `{"type":"tool_use","part":{"tool":"bash","state":{"status":"error","error":"The user rejected permission to use this specific tool call."}}}`
	failed := func(rest string) string { return `{"type":"error","error":` + rest + `}` }
	for name, c := range map[string]struct {
		lines  []string
		code   int
		stderr string
		class  Class
		why    string
	}{
		"nothing at all":        {nil, 0, "", Infrastructure, "printed nothing"},
		"killed in a step":      {[]string{opencodeBegan}, -1, "", Infrastructure, "final event"},
		"killed between steps":  {[]string{opencodeBegan, opencodeGoes}, -1, "", Infrastructure, "final event"},
		"refused, and it ended": {[]string{opencodeBegan, refused, opencodeGoes}, 0, "", Work, "bash"},
		"refused by a rule": {[]string{opencodeBegan, strings.Replace(refused, "rejected permission to use", "has specified a rule which prevents you from using", 1),
			opencodeGoes, opencodeBegan, opencodeDone}, 0, "", Work, "bash"},
		"refused, and killed at the next": {[]string{opencodeBegan, refused, opencodeGoes, opencodeBegan}, -1, "", Infrastructure, "final event"},
		"a later release's end":           {[]string{opencodeBegan, opencodeGoes, `{"type":"done","reason":"idle","rejected":["external_directory"]}`}, 0, "", Work, "external_directory"},
		"cut off":                         {[]string{opencodeBegan, strings.Replace(opencodeDone, "stop", "length", 1)}, 0, "", Work, "length"},
		"an error, and it goes on":        {[]string{failed(`{"name":"APIError","data":{"statusCode":503}}`), opencodeBegan, opencodeDone}, 0, "", Good, ""},
		"no login":                        {[]string{failed(`{"name":"ProviderAuthError","data":{"message":"no key"}}`)}, 1, "", Fatal, "no key"},
		"a limit":                         {[]string{failed(`{"name":"APIError","data":{"message":"slow down","statusCode":429}}`)}, 1, "", UsageLimit, "429"},
		"no credit":                       {[]string{failed(`{"name":"APIError","data":{"message":"insufficient_quota","statusCode":429}}`)}, 1, "", Fatal, "quota"},
		"a bad gateway":                   {[]string{failed(`{"name":"APIError","data":{"message":"bad gateway","statusCode":502}}`)}, 1, "", Infrastructure, "502"},
		"interrupted":                     {[]string{opencodeBegan, failed(`{"name":"MessageAbortedError","data":{"message":"aborted"}}`)}, 1, "", Infrastructure, "interrupted"},
		"an odd member":                   {[]string{failed(`{"name":"APIError","data":{"message":{"x":1},"statusCode":401}}`)}, 1, "", Fatal, "401"},
		"ok, but code 1":                  {[]string{opencodeBegan, opencodeDone}, 1, "boom", Infrastructure, "boom"},
	} {
		r, _ := read(Opencode, c.lines...)
		if class, why, _ := r.Class(c.code, c.stderr); class != c.class || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q %q, want %q %q", name, class, why, c.class, c.why)
		}
	}
	if r, _ := read(Opencode); !r.Gone("Error: Session not found") || r.Gone("Error: unknown") {
		t.Error("a conversation that is not there")
	}
}

func TestOpencodeArgs(t *testing.T) {
	for _, c := range []struct {
		given []string
		l     Launch
		want  string
	}{
		{nil, Launch{Model: "a/b", Resume: "ses_df7b38b92ffe"}, "run --format json --title sluice --model a/b --session ses_df7b38b92ffe"},
		{[]string{"run", "-m", "c/d", "--title=mine"}, Launch{Model: "a/b"}, "--format json"},
		{nil, Launch{Contained: true, Args: []string{"--variant", "high"}}, "run --variant high --format json --title sluice --auto"},
		{[]string{"exec", "box", "opencode"}, Launch{}, "run --format json --title sluice"},
		{[]string{"run", "--fork"}, Launch{Resume: "ses_df7b38b92ffe"}, "--format json --title sluice"},
	} {
		if got := strings.Join(Args(Opencode, c.given, c.l), " "); got != c.want {
			t.Errorf("%q %+v: %s, want %s", c.given, c.l, got, c.want)
		}
	}
	for _, arg := range []string{"run", "--format=default", "-sID", "--session", "-c", "--model", "-mx", "--attach", "--dir", "--", "-i"} {
		if got, why := Refused(Opencode, []string{"--x", "y", arg}); got != arg || why == "" {
			t.Errorf("%s: %q %q", arg, got, why)
		}
	}
}

// TestOpencodeFolders: it may use the folders of its launch; the person's other settings are kept.
func TestOpencodeFolders(t *testing.T) {
	for said, want := range map[string]string{
		"":                              `{"external_directory":{"/a/*":"allow"}}`,
		`{"bash":"deny"}`:               `{"bash":"deny","external_directory":{"/a/*":"allow"}}`,
		`{"external_directory":"deny"}`: `{"external_directory":{"*":"deny","/a/*":"allow"}}`,
		`{"external_directory":{"*":"ask","/z":"x"}}`: `{"external_directory":{"*":"ask","/a/*":"allow","/z":"x"}}`,
		`no JSON`: "",
	} {
		variable := func(name string) string { return map[string]string{"OPENCODE_PERMISSION": said}[name] }
		if got := Vars(Opencode, variable, []string{"/a", "/b*"})["OPENCODE_PERMISSION"]; got != want {
			t.Errorf("%s: %s, want %s", said, got, want)
		}
	}
	var to []string
	for _, s := range Seeds(Opencode, func(name string) string {
		return map[string]string{"OPENCODE_CONFIG": "/etc/o.json", "XDG_DATA_HOME": "/data"}[name]
	}, "/home/me") {
		to = append(to, s.From+" "+s.To)
	}
	if want := []string{"/data/opencode/auth.json .local/share/opencode/auth.json", "/home/me/.config/opencode/config.json .config/opencode/config.json",
		"/home/me/.config/opencode/opencode.json .config/opencode/opencode.json", "/home/me/.config/opencode/opencode.jsonc .config/opencode/opencode.jsonc",
		"/home/me/.config/opencode/AGENTS.md .config/opencode/AGENTS.md", "/etc/o.json .config/opencode/own.json"}; !slices.Equal(to, want) {
		t.Errorf("%q", to)
	}
}

// FuzzOpencode: no line crashes the reader, or exceeds the limits.
func FuzzOpencode(f *testing.F) {
	for _, line := range []string{opencodeBegan, opencodeDone, `{"type":"error","error":{"data":{"statusCode":429}}}`, `{"type":"tool_use","part":{"state":{"input":[]}}}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r := NewReader(Opencode, func() time.Time { return now })
		for _, e := range r.Line(line) {
			if len(e.Text) > maxShown+10 || len(e.Name) > 200 {
				t.Errorf("%d bytes of an event", len(e.Text)+len(e.Name))
			}
		}
		if _, why, _ := r.Result().Class(0, string(line)); len(why) > maxWhy+200 || len(r.Result().Denied) > maxNames {
			t.Errorf("%d bytes of a reason", len(why))
		}
		if !json.Valid(line) && r.Result().Session != "" {
			t.Error("of no event")
		}
	})
}
