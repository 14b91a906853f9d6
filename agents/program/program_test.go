package program

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

var now = time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)

func read(format string, lines ...string) (Result, []Event) {
	r := NewReader(format, func() time.Time { return now })
	var all []Event
	for _, l := range lines {
		all = append(all, r.Line([]byte(l))...)
	}
	return r.Result(), all
}

// TestRecordings: what the real programs printed, at releases that the tests of package test install,
// has the recorded class.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 16 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		var c struct {
			Class  Class
			Why    string
			Code   int
			Stderr string
			Stdout []string
		}
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &c)
		}
		if err != nil {
			t.Fatal(err)
		}
		format, _, _ := strings.Cut(filepath.Base(file), "-")
		r := NewReader(format, func() time.Time { return now })
		r.Take([]byte(strings.Join(c.Stdout, "\n") + "\n"))
		class, why, _ := r.Result().Class(c.Code, c.Stderr)
		if strings.Contains(file, "says-nothing") { // ended by us, which overrides what it printed
			c.Why = "interrupted"
		}
		if class != c.Class || !strings.Contains(why, c.Why) {
			t.Errorf("%s: %q %q, want %q %q", file, class, why, c.Class, c.Why)
		}
	}
}

func TestClaude(t *testing.T) {
	conform.Rule(t, "001 log.types", "claude's")
	r, events := read(Claude,
		`{"type":"system","subtype":"init","session_id":"s","model":"big"}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash","input":{"command":"ls","description":"list"}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"no such file"}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Write","input":{"file_path":"/x/a.go","content":"…"}}]}}`,
		`{"type":"assistant","parent_tool_use_id":"t1","message":{"content":[{"type":"text","text":"a subagent's word"}]}}`,
		`{"type":"a kind of tomorrow","message":7}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"Done.","num_turns":3,"total_cost_usd":0.25,"structured_output":{"verdict":"pass"},"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":1}}`)
	if class, why, _ := r.Class(0, ""); class != Good {
		t.Errorf("%s %s", class, why)
	}
	if r.Text != "Done." || string(r.Structured) != `{"verdict":"pass"}` || r.Session != "s" || r.Model != "big" || r.Turns != 3 || r.Usage != (Usage{111, 5, 0.25, 0}) {
		t.Errorf("%+v", r)
	}
	want := []Event{{Began, "", "big", ""}, {Text, "", "I look.", ""}, {Tool, "Bash", "ls", "command"}, {Failed, "", "no such file", ""}, {File, "Write", "/x/a.go", ""}, {Text, "", "a subagent's word", ""}, {Ended, "", "3 turns, 116 tokens, 0.2500 USD", ""}}
	if !slices.Equal(events, want) {
		t.Errorf("%+v", events)
	}
}

func TestCodex(t *testing.T) {
	conform.Rule(t, "001 log.types", "codex's")
	r, events := read(Codex,
		`{"type":"thread.started","thread_id":"th"}`, `{"type":"turn.started"}`,
		`{"type":"item.started","item":{"type":"command_execution","command":"go test"}}`,
		`{"type":"item.completed","item":{"type":"command_execution","command":"go test","exit_code":1,"status":"failed"}}`,
		`{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a.go","kind":"update"}]}}`,
		`{"type":"error","message":"Reconnecting... 1/5 (stream closed)"}`,
		`{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}`,
		`{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":3,"output_tokens":5}}`)
	if class, why, _ := r.Class(0, ""); class != Good {
		t.Errorf("%s %s: a failed command, or a retry that worked, is no failure", class, why)
	}
	if r.Text != "Done." || r.Session != "th" || r.Usage != (Usage{10, 5, 0, 0}) {
		t.Errorf("%+v", r)
	}
	want := []Event{{Began, "", "", ""}, {Tool, "shell", "go test", "command"}, {Failed, "shell", "exit code 1", ""}, {File, "update", "a.go", ""}, {Retry, "", "Reconnecting... 1/5 (stream closed)", ""}, {Text, "", "Done.", ""}, {Ended, "", "15 tokens", ""}}
	if !slices.Equal(events, want) {
		t.Errorf("%+v", events)
	}
}

// TestEnds: ends that no stub can cause.
func TestEnds(t *testing.T) {
	init, ok := `{"type":"system","subtype":"init"}`, `{"type":"result","subtype":"success","is_error":false,"result":"x"}`
	rejected := `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795273200,"rateLimitType":"five_hour"}}`
	limited := `{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit · resets 3pm (UTC)"}`
	for name, c := range map[string]struct {
		format string
		lines  []string
		code   int
		stderr string
		class  Class
		why    string
		reset  time.Time
	}{
		"nothing at all":                           {Claude, nil, 0, "", Infrastructure, "printed nothing", time.Time{}},
		"a usage error":                            {Claude, nil, 1, "error: unknown option '--x'", Fatal, "--x", time.Time{}},
		"no final event, code 0":                   {Claude, []string{init}, 0, "", Infrastructure, "final event", time.Time{}},
		"ok, but code 1":                           {Claude, []string{init, ok}, 1, "boom", Infrastructure, "boom", time.Time{}},
		"interrupted":                              {Claude, []string{init, `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}`}, 0, "", Infrastructure, "interrupted", time.Time{}},
		"too many turns":                           {Claude, []string{init, `{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["30 turns"]}`}, 1, "", Work, "30 turns", time.Time{}},
		"denied":                                   {Claude, []string{init, `{"type":"result","subtype":"success","permission_denials":[{"tool_name":"Bash"},{"tool_name":"Bash"},{"tool_name":"Edit"}]}`}, 0, "", Work, "Bash, Edit", time.Time{}},
		"a limit with an event":                    {Claude, []string{init, rejected, `{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit"}`}, 1, "", UsageLimit, "limit", time.Unix(1795273200, 0)},
		"a limit in words":                         {Claude, []string{init, limited}, 1, "", UsageLimit, "hit your limit", now.Add(2 * time.Hour)},
		"a limit that passed":                      {Claude, []string{init, rejected, ok}, 0, "", Good, "", time.Time{}},
		"a warning of a limit":                     {Claude, []string{init, strings.Replace(rejected, "rejected", "allowed_warning", 1), ok}, 0, "", Good, "", time.Time{}},
		"an event within a line":                   {Claude, []string{init, `{"type":"assistant","message":{"content":[{"text":"` + rejected, `rest"}]}}`, strings.Replace(limited, "resets 3pm (UTC)", "", 1)}, 1, "", UsageLimit, "limit", time.Unix(1795273200, 0)},
		"an old banner":                            {Claude, []string{init, `{"type":"result","subtype":"success","is_error":false,"result":"Claude AI usage limit reached|1795273200"}`}, 0, "", UsageLimit, "usage limit", time.Unix(1795273200, 0)},
		"words about a limit":                      {Claude, []string{init, `{"type":"result","subtype":"success","is_error":false,"result":"I handle the case: usage limit reached, 429 too many requests."}`}, 0, "", Good, "", time.Time{}},
		"not logged in":                            {Claude, []string{init, `{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}`}, 1, "", Fatal, "/login", time.Time{}},
		"codex hit its limit":                      {Codex, []string{`{"type":"turn.started"}`, `{"type":"turn.failed","error":{"message":"You've hit your usage limit. Upgrade to Pro or try again in 2 days 17 hours 14 minutes."}}`}, 1, "", UsageLimit, "usage limit", now.Add(65*time.Hour + 14*time.Minute)},
		"codex limit, a date":                      {Codex, []string{`{"type":"turn.started"}`, `{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again at Nov 22nd, 2026 11:52 AM."}}`}, 1, "", UsageLimit, "usage limit", time.Date(2026, 11, 22, 11, 52, 0, 0, time.UTC)},
		"a limit that passed, then too many turns": {Claude, []string{init, rejected, `{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["30 turns"]}`}, 1, "", Work, "30 turns", time.Time{}},
		"words of an old banner":                   {Claude, []string{init, `{"type":"result","subtype":"success","is_error":false,"result":"Claude AI usage limit reached is now parsed, with a test."}`}, 0, "", Good, "", time.Time{}},
		"an old banner as a word":                  {Claude, []string{init, `{"type":"result","subtype":"success","is_error":false,"usage":{"output_tokens":9},"result":"Claude AI usage limit reached|1795273200"}`}, 0, "", Good, "", time.Time{}},
		"a second turn":                            {Claude, []string{init, ok, init}, 0, "", Infrastructure, "final event", time.Time{}},
		"an error that passed":                     {Claude, []string{init, `{"type":"assistant","error":"authentication_failed","message":{"content":[]}}`, `{"type":"assistant","message":{"content":[]}}`}, 1, "", Infrastructure, "final event", time.Time{}},
		"a subagent's error":                       {Claude, []string{init, `{"type":"assistant","parent_tool_use_id":"t","error":"authentication_failed","message":{"content":[]}}`}, 1, "", Infrastructure, "final event", time.Time{}},
		"an odd member":                            {Claude, []string{init, `{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"errors":[{"x":1}],"result":"no"}`}, 1, "", Fatal, "401", time.Time{}},
		"codex goes on":                            {Codex, []string{`{"type":"turn.started"}`, `{"type":"error","message":"Reconnecting... 1/5 (unexpected status 429)"}`, `{"type":"item.completed","item":{"type":"agent_message","text":"on"}}`}, 101, "", Infrastructure, "final event", time.Time{}},
		"codex, a status first":                    {Codex, []string{`{"type":"turn.started"}`, `{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: authentication failed upstream, url: https://rate-limit.example/"}}`}, 1, "", Infrastructure, "503", time.Time{}},
		"codex, an address":                        {Codex, []string{`{"type":"turn.started"}`, `{"type":"turn.failed","error":{"message":"stream disconnected, url: https://rate-limit.example/"}}`}, 1, "", Infrastructure, "disconnected", time.Time{}},
		"codex declined":                           {Codex, []string{`{"type":"turn.started"}`, `{"type":"item.completed","item":{"type":"command_execution","status":"declined"}}`, `{"type":"turn.completed"}`}, 0, "", Work, "shell", time.Time{}},
		"codex, a second turn":                     {Codex, []string{`{"type":"turn.started"}`, `{"type":"turn.completed"}`, `{"type":"turn.started"}`}, 0, "", Infrastructure, "final event", time.Time{}},
		"codex has no key":                         {Codex, []string{`{"type":"turn.started"}`, `{"type":"turn.failed","error":{"message":"Missing environment variable: K"}}`}, 1, "", Fatal, "K", time.Time{}},
		"codex, an unknown model":                  {Codex, []string{`{"type":"turn.started"}`, `{"type":"turn.failed","error":{"message":"The model 'gpt-9' does not exist"}}`}, 1, "", Fatal, "gpt-9", time.Time{}},
	} {
		r, _ := read(c.format, c.lines...)
		class, why, reset := r.Class(c.code, c.stderr)
		if class != c.class || !strings.Contains(why, c.why) || !reset.Equal(c.reset) {
			t.Errorf("%s: %q, %q, %v; want %q, %q, %v", name, class, why, reset, c.class, c.why, c.reset)
		}
	}
}

func TestReset(t *testing.T) {
	for text, want := range map[string]time.Time{
		"try again in 3 hours 2 minutes.":                      now.Add(3*time.Hour + 2*time.Minute),
		"Please try again in 1.5s.":                            now.Add(1500 * time.Millisecond),
		"Please try again in 171ms.":                           {},
		"resets 12:45pm":                                       {}, // just passed
		"try again in 5 days":                                  now.Add(5 * 24 * time.Hour),
		"try again in 90 days":                                 {}, // not credible
		`{"resets_at":1795273200,"resets_in_seconds":1}`:       time.Unix(1795273200, 0),
		`{"resets_at":1600000000}`:                             {}, // passed
		"resets 12am (UTC)":                                    time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
		"resets at 1:30 pm":                                    time.Date(2026, 11, 21, 13, 30, 0, 0, time.UTC),
		"resets 2pm (Nowhere/At_All)":                          {},
		"resets 25pm":                                          {},
		"try again later":                                      {},
		"it resets in the evening, when all is done in 3 ways": {},
	} {
		if got := resetIn(text, now); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestRead: lines of any length, a last one without its end.
func TestRead(t *testing.T) {
	long := `{"type":"user","message":{"content":"` + strings.Repeat("x", MaxLine+100) + `"}}`
	for _, in := range []string{
		long + "\n" + `{"type":"result","subtype":"success","result":"end"}`,
		"no JSON\n\n\r\n" + strings.Repeat("{", 100_000) + "\n" + `{"type":"result","subtype":"success","result":"end"}` + "\n",
	} {
		r := NewReader(Claude, time.Now)
		if _, err := io.Copy(r, io.LimitReader(strings.NewReader(in+"\n"), MaxLine*2)); err != nil || r.Result().Text != "end" ||
			!r.Result().Final {
			t.Errorf("%v %+v", err, r.Result())
		}
	}
}

func TestArgs(t *testing.T) {
	l := Launch{Model: "big", Dirs: []string{"/a", "/b"}, Schema: json.RawMessage(`{"type":"object"}`)}
	for _, c := range []struct {
		format string
		given  []string
		want   string
	}{
		{Claude, nil, `-p --output-format stream-json --verbose --model big --permission-mode acceptEdits --json-schema {"type":"object"} --add-dir /a --add-dir /b`},
		{Claude, []string{"--print", "--model=small", "--dangerously-skip-permissions"}, `--output-format stream-json --verbose --json-schema {"type":"object"} --add-dir /a --add-dir /b`},
		{Claude, []string{"-p", "22", "host", "/opt/claude", "--verbose"}, `-p --output-format stream-json --model big --permission-mode acceptEdits --json-schema {"type":"object"} --add-dir /a --add-dir /b`},
		{Codex, []string{"exec", "-i", "box", "codex", "-c", "sandbox_mode=read-only"}, "exec --json --skip-git-repo-check --model big --add-dir /a --add-dir /b -"},
		{Codex, nil, "exec --json --skip-git-repo-check --model big --sandbox workspace-write --add-dir /a --add-dir /b -"},
		{Codex, []string{"exec", "-m", "small", "-s", "read-only"}, "--json --skip-git-repo-check --add-dir /a --add-dir /b -"},
		{"text", nil, ""},
	} {
		if got := strings.Join(Args(c.format, c.given, l), " "); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.format, c.given, got, c.want)
		}
	}
}

// TestArgsOfARole: they are in the right place, are not repeated, and those that sluice must set
// itself are refused.
func TestArgsOfARole(t *testing.T) {
	for _, c := range []struct {
		format string
		given  []string
		args   []string
		want   string
	}{
		{Claude, nil, []string{"--permission-mode", "plan"}, "--permission-mode plan -p --output-format stream-json --verbose --resume talk-0001"},
		{Codex, nil, []string{"-c", "a=b", "--sandbox", "read-only"}, "exec -c a=b --sandbox read-only --json --skip-git-repo-check resume talk-0001 -"},
		{Codex, []string{"exec"}, []string{"-c", "a=b"}, "-c a=b --json --skip-git-repo-check --sandbox workspace-write resume talk-0001 -"},
	} {
		if got := strings.Join(Args(c.format, c.given, Launch{Args: c.args, Resume: "talk-0001"}), " "); got != c.want {
			t.Errorf("%s %q %q: %s, want %s", c.format, c.given, c.args, got, c.want)
		}
		if arg, why := Refused(c.format, c.args); why != "" {
			t.Errorf("%q: %s %s", c.args, arg, why)
		}
	}
	refused := map[string][]string{
		Claude: {"--output-format", "--output-format=json", "--input-format", "--json-schema", "-p", "--print", "--verbose", "--resume", "-r", "-rtalk", "--continue", "-c", "--session-id=x", "--model", "--max-budget-usd", "--"},
		Codex:  {"--json", "--output-schema=x", "resume", "exec", "-m", "-mbig", "--model=big", "-", "--", "--ephemeral"},
	}
	for format, all := range refused {
		for _, arg := range all {
			if got, why := Refused(format, []string{"--x", "y", arg}); got != arg || why == "" {
				t.Errorf("%s %s: %q %q", format, arg, got, why)
			}
		}
		if _, why := Refused(format, []string{"hello"}); why == "" {
			t.Errorf("%s: a prompt", format)
		}
	}
	if _, why := Refused("text", []string{"run", "--model", "-p"}); why != "" {
		t.Error(why)
	}
}

// TestLastWords: text before further work is no last word, and so no verdict.
func TestLastWords(t *testing.T) {
	conform.Rule(t, "001 agent.last", "the last of what it says")
	draft := `If all holds: {\"verdict\":\"pass\"}`
	r, _ := read(Claude, `{"type":"assistant","message":{"content":[{"type":"text","text":"`+draft+`"},{"type":"tool_use","name":"Bash","input":{}}]}}`,
		`{"type":"result","subtype":"success","result":""}`)
	if r.Text != "" {
		t.Errorf("claude: %q", r.Text)
	}
	r, _ = read(Codex, `{"type":"turn.started"}`, `{"type":"item.completed","item":{"type":"agent_message","text":"`+draft+`"}}`,
		`{"type":"item.started","item":{"type":"command_execution","command":"go test"}}`, `{"type":"turn.completed"}`)
	if r.Text != "" {
		t.Errorf("codex: %q", r.Text)
	}
	r, _ = read(Claude, `{"type":"result","subtype":"success","result":"a","structured_output":{"verdict":"pass"}}`, `{"type":"system","subtype":"init"}`, `{"type":"result","subtype":"success","result":"b"}`)
	if r.Text != "b" || r.Structured != nil {
		t.Errorf("%+v", r)
	}
}

// TestUsage: of several results, of a missing one, and of invalid numbers.
func TestUsage(t *testing.T) {
	result := func(in, out int, cost string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","result":"x","total_cost_usd":%s,"usage":{"input_tokens":%d,"output_tokens":%d}}`, cost, in, out)
	}
	message := func(id string, out int) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":"%s","content":[],"usage":{"input_tokens":10,"output_tokens":%d}}}`, id, out)
	}
	for name, c := range map[string]struct {
		lines []string
		want  Usage
	}{
		"two results":        {[]string{result(10, 5, "1"), result(20, 5, "1.5")}, Usage{30, 10, 1.5, 0}},
		"no result":          {[]string{message("a", 1), message("a", 1), message("b", 2)}, Usage{20, 3, 0, 0}},
		"messages, a result": {[]string{message("a", 1), result(10, 1, "1"), message("b", 2)}, Usage{20, 3, 1, 0}},
		"beyond belief":      {[]string{result(math.MaxInt64, math.MaxInt64, "1e308"), result(math.MaxInt64, 1, "1e308")}, Usage{MaxTokens, MaxTokens, MaxCost, 0}},
		"less than nothing":  {[]string{result(-5, 5, "-1")}, Usage{0, 5, 0, 0}},
	} {
		r, _ := read(Claude, c.lines...)
		if r.Usage != c.want {
			t.Errorf("%s: %+v, want %+v", name, r.Usage, c.want)
		}
	}
}

// FuzzLine: no line of any program crashes the reader, or exceeds the limits.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"type":"result","subtype":"success","permission_denials":[{}],"usage":{}}`), true)
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":[]}]}}`), true)
	f.Add([]byte(`{"type":"item.completed","item":{"type":"file_change","changes":{}}}`), false)
	f.Add([]byte(`{"type":"turn.failed","error":{"message":"try again in 9999999 days"}}`), false)
	f.Fuzz(func(t *testing.T, line []byte, claude bool) {
		format := Codex
		if claude {
			format = Claude
		}
		r := NewReader(format, func() time.Time { return now })
		for _, e := range r.Line(line) {
			if len(e.Text) > maxShown+10 {
				t.Errorf("%d bytes of an event", len(e.Text))
			}
		}
		_, why, reset := r.Result().Class(0, string(line))
		if len(why) > maxWhy+200 || !reset.IsZero() && (reset.Before(now) || reset.After(now.Add(Furthest))) {
			t.Errorf("%d bytes, reset %v", len(why), reset)
		}
	})
}

// TestSince: the cost of a launch that resumed a conversation. claude 2.1.197 reports the cost of
// the launch, 2.1.329 that of the conversation; codex reports the conversation's tokens.
func TestSince(t *testing.T) {
	claude := func(cost string, billed int) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","result":"x","total_cost_usd":%s,"usage":{"input_tokens":1000,"output_tokens":50},"modelUsage":{"a":{"inputTokens":%d,"outputTokens":50}}}`, cost, billed-50)
	}
	codex := func(in, out int) string {
		return fmt.Sprintf(`{"type":"turn.completed","usage":{"input_tokens":%d,"output_tokens":%d}}`, in, out)
	}
	for name, c := range map[string]struct {
		format, line        string
		base, launch, total Usage
	}{
		"claude 2.1.329":            {Claude, claude("0.01", 2100), Usage{1000, 50, 0.004, 1050}, Usage{1000, 50, 0.006, 1050}, Usage{2000, 100, 0.01, 2100}},
		"claude 2.1.197":            {Claude, claude("0.006", 1050), Usage{1000, 50, 0.004, 1050}, Usage{1000, 50, 0.006, 1050}, Usage{2000, 100, 0.01, 2100}},
		"claude, a new one":         {Claude, claude("0.006", 1050), Usage{}, Usage{1000, 50, 0.006, 1050}, Usage{1000, 50, 0.006, 1050}},
		"codex":                     {Codex, codex(2000, 100), Usage{900, 60, 0, 0}, Usage{1100, 40, 0, 0}, Usage{2000, 100, 0, 0}},
		"codex, a count of its own": {Codex, codex(800, 40), Usage{900, 60, 0, 0}, Usage{800, 40, 0, 0}, Usage{1700, 100, 0, 0}},
		"codex was killed":          {Codex, `{"type":"turn.started"}`, Usage{900, 60, 0, 0}, Usage{}, Usage{900, 60, 0, 0}},
		"claude, a false base":      {Claude, claude("0.01", 2100), Usage{-1, -1, -1e308, 1}, Usage{1000, 50, 0.01, 2099}, Usage{1000, 50, 0.01, 2100}},
		"codex, a false base":       {Codex, codex(2000, 100), Usage{math.MinInt64, math.MinInt64, 0, 0}, Usage{2000, 100, 0, 0}, Usage{2000, 100, 0, 0}},
	} {
		r, _ := read(c.format, c.line)
		launch, total := r.Since(c.base)
		launch.CostUSD, total.CostUSD = math.Round(launch.CostUSD*1e6)/1e6, math.Round(total.CostUSD*1e6)/1e6
		if launch != c.launch || total != c.total {
			t.Errorf("%s: %+v, in all %+v; want %+v, %+v", name, launch, total, c.launch, c.total)
		}
	}
}

// TestGone: the programs' messages for a missing conversation, and for other faults.
func TestGone(t *testing.T) {
	for _, c := range []struct {
		format, line, stderr string
		want                 bool
	}{
		{Claude, `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found with session ID: 1"]}`, "", true},
		{Claude, `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":2,"errors":["No conversation found with session ID: 1"]}`, "", false},
		{Claude, `{"type":"result","subtype":"success","num_turns":0,"result":"No conversation found"}`, "", false},
		{Codex, ``, "Error: thread/resume: thread/resume failed: no rollout found for thread id 1 (code -32600)", true},
		{Codex, `{"type":"thread.started","thread_id":"1"}`, "no rollout found", false},
		{Codex, ``, "error: unexpected argument", false},
	} {
		r, _ := read(c.format, c.line)
		if got := r.Gone(c.stderr); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestResume: a conversation is resumed by a valid id unless the command says otherwise.
func TestResume(t *testing.T) {
	for _, c := range []struct {
		format, id string
		given      []string
		want       string
	}{
		{Claude, "3ec4830b-74ae", nil, "--resume 3ec4830b-74ae"},
		{Codex, "01a1fe86-eee8", nil, "--sandbox workspace-write resume 01a1fe86-eee8 -"},
		{Claude, "--dangerously-skip-permissions", nil, ""},
		{Claude, "short", nil, ""},
		{Claude, "3ec4830b-74ae", []string{"--no-session-persistence"}, ""},
		{Codex, "01a1fe86-eee8", []string{"exec", "--ephemeral"}, ""},
	} {
		got := strings.Join(Args(c.format, c.given, Launch{Resume: c.id}), " ")
		if c.want == "" && strings.Contains(got, c.id) || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestSchemaFile: codex gets the schema file before the conversation to resume.
func TestSchemaFile(t *testing.T) {
	l := Launch{SchemaFile: "/s.json", Resume: "01a1fe86-eee8"}
	if got := strings.Join(Args(Codex, []string{"exec"}, l), " "); !strings.HasSuffix(got, "--output-schema /s.json resume 01a1fe86-eee8 -") {
		t.Error(got)
	}
	if got := strings.Join(Args(Codex, []string{"exec", "--output-schema", "mine"}, l), " "); strings.Contains(got, "/s.json") {
		t.Error(got)
	}
}
