package program

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// claude: claude -p --output-format stream-json --verbose.
func claude() profile {
	const home = "CLAUDE_CONFIG_DIR"
	return profile{
		args: claudeArgs,
		refused: map[string]string{"-p": prompt, "--print": prompt, "--output-format": stream,
			"--input-format": prompt, "--verbose": stream,
			"--json-schema": answer, "--max-budget-usd": "sluice passes what is left of its budget: set roles.NAME.max_cost_usd",
			"--model": model, "--resume": session, "-r": session, "--continue": session, "-c": session,
			"--session-id": session, "--fork-session": session, "--no-session-persistence": session, "--": prompt},
		passed: []string{"ANTHROPIC_*", "CLAUDE_CODE_*", home, "IS_SANDBOX", "DISABLE_TELEMETRY",
			"DISABLE_ERROR_REPORTING", "API_TIMEOUT_MS"},
		// An update in the middle of the night would change the tool.
		vars: func(func(string) string, []string) map[string]string {
			return map[string]string{"DISABLE_AUTOUPDATER": "1"}
		},
		read:   reads((*Reader).claudeTells),
		within: `{"type":"rate_limit_event"`, // observed
		since:  claudeSince,
		alone:  []string{"--no-session-persistence", "--resume", "-r", "--continue", "-c", "--session-id"},
		resume: []string{"claude", "--resume"},
		kept:   func(session string) string { return filepath.Join("projects", "*", session+".jsonl") },
		homes:  map[string]string{home: ".claude"},
		seeds: func(variable func(string) string, person string) []Seed {
			dir := folder(variable(home), person, ".claude")
			out := seeds(dir, ".claude", ".credentials.json", "settings.json", "CLAUDE.md")
			if variable(home) == "" {
				dir = person // without the variable it is beside the folder
			}
			return append(out, seeds(dir, ".claude", ".claude.json")...)
		},
		login: [2]string{home, ".credentials.json"},
		keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
			"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"},
		npm: "@anthropic-ai/claude-code",
		native: func(pkg, machine string) []string {
			return []string{filepath.Join(pkg+"-"+machine, "claude"), filepath.Join(pkg+"-"+machine+"-musl", "claude")}
		},
	}
}

// claudeArgs: without a permission mode in its command, claude may change files below its folders
// and run what its settings allow.
func claudeArgs(a *args, l Launch) {
	a.flag("-p", "--print")
	a.option("--output-format", "stream-json")
	a.flag("--verbose")
	if l.Model != "" {
		a.option("--model", l.Model)
	}
	if !a.has("--dangerously-skip-permissions", "--permission-mode", "--allow-dangerously-skip-permissions") {
		if l.Contained {
			a.add("--dangerously-skip-permissions")
		} else {
			a.add("--permission-mode", "acceptEdits")
		}
	}
	if schema := plainSchema(l.Schema); schema != "" {
		a.option("--json-schema", schema)
	}
	if l.MaxCostUSD > 0 {
		// Round up, so that claude stops only when the budget is really used up.
		a.option("--max-budget-usd", strconv.FormatFloat(math.Ceil(l.MaxCostUSD*1e4)/1e4, 'f', 4, 64))
	}
	if CanResume(Claude, a.given, l.Resume) {
		a.add("--resume", l.Resume)
	}
	for _, dir := range l.Dirs {
		a.add("--add-dir", dir)
	}
}

// claudeSince: claude counts tokens per launch. It counts cost per launch (2.1.197) or per
// conversation (2.1.329); the tokens that the cost covers tell which.
func claudeSince(u, base Usage) (launch, total Usage) {
	launch, total = u, base.plus(u)
	if base.Billed > 0 && u.Billed >= base.Billed+u.Input+u.Output && u.CostUSD >= base.CostUSD {
		launch.CostUSD, total.CostUSD = u.CostUSD-base.CostUSD, u.CostUSD
		launch.Billed, total.Billed = u.Billed-base.Billed, u.Billed
	}
	return launch, total
}

// claudeLine is the part of a line from claude that we read.
type claudeLine struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	Model   string `json:"model"`
	Parent  string `json:"parent_tool_use_id"` // of a subagent's messages
	Error   any    `json:"error"`              // of an assistant line: authentication_failed, rate_limit, …
	Message struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Usage   claudeUsage     `json:"usage"`
	} `json:"message"`
	Attempt int    `json:"attempt"`   // of api_retry
	Tool    string `json:"tool_name"` // of permission_denied

	RateLimit struct {
		Status string  `json:"status"`   // allowed, allowed_warning, rejected
		Resets float64 `json:"resetsAt"` // seconds since 1970
	} `json:"rate_limit_info"`

	// Of the result.
	IsError    bool            `json:"is_error"`
	Result     string          `json:"result"`
	Errors     []string        `json:"errors"`
	Turns      int             `json:"num_turns"`
	Cost       float64         `json:"total_cost_usd"`
	Status     int             `json:"api_error_status"`
	Terminal   string          `json:"terminal_reason"`
	Structured json.RawMessage `json:"structured_output"`
	Denials    []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
	Usage  claudeUsage            `json:"usage"`
	Models map[string]claudeModel `json:"modelUsage"`
}

// claudeModel is the use of a model, in the launch or in the whole conversation.
type claudeModel struct {
	Input   int64 `json:"inputTokens"`
	Output  int64 `json:"outputTokens"`
	Read    int64 `json:"cacheReadInputTokens"`
	Created int64 `json:"cacheCreationInputTokens"`
}

type claudeUsage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Created int64 `json:"cache_creation_input_tokens"`
}

func (u claudeUsage) usage() Usage {
	return Usage{Input: u.Input + u.Read + u.Created, Output: u.Output}
}

// claudeBlock is a part of a message.
type claudeBlock struct {
	Type    string          `json:"type"` // text, tool_use, tool_result
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	IsError bool            `json:"is_error"`
	Content json.RawMessage `json:"content"`
}

// blocks returns the parts of a message; none if it is a plain text.
func (l claudeLine) blocks() (out []claudeBlock) {
	if json.Unmarshal(l.Message.Content, &out) != nil {
		return nil
	}
	return out
}

func (r *Reader) claudeTells(l claudeLine) []Event {
	if l.Session != "" {
		r.r.Session = clip(l.Session, 200)
	}
	switch l.Type {
	case "system":
		return r.claudeSystem(l)
	case "assistant":
		if word, ok := l.Error.(string); ok && word != "" && l.Parent == "" {
			r.fail(claudeWord(word), word)
		} else if l.Parent == "" {
			r.r.failure = failure{} // it continues
		}
		if l.Message.ID == "" || l.Message.ID != r.r.message { // printed once per block
			r.r.message, r.r.said = l.Message.ID, r.r.said.plus(l.Message.Usage.usage())
		}
		return r.claudeSaid(l)
	case "user":
		return claudeResults(l)
	case "rate_limit_event":
		return r.claudeLimit(l)
	case "result":
		return r.claudeEnd(l)
	}
	return nil
}

func (r *Reader) claudeSystem(l claudeLine) []Event {
	switch l.Subtype {
	case "init": // also at the start of a turn after a background task ended
		r.r.Final = false
		r.r.Model = clip(l.Model, 200)
		return []Event{{Kind: Began, Text: r.r.Model}}
	case "api_retry":
		return []Event{{Kind: Retry, Text: fmt.Sprintf("the model's service is asked again (%d)", l.Attempt)}}
	case "permission_denied":
		if l.Tool != "" {
			r.deny(l.Tool)
		}
		return []Event{{Kind: Denied, Name: l.Tool}}
	}
	return nil
}

// claudeSaid reads a message of the agent. A subagent's text is not its last word.
func (r *Reader) claudeSaid(l claudeLine) []Event {
	var out []Event
	for _, b := range l.blocks() {
		switch b.Type {
		case "text":
			if l.Parent == "" && strings.TrimSpace(b.Text) != "" {
				r.r.Text = end(b.Text)
			}
			out = append(out, Event{Kind: Text, Text: clip(b.Text, maxShown)})
		case "tool_use":
			if l.Parent == "" {
				r.r.Text = "" // so it was not the last word
			}
			out = append(out, claudeTool(b))
		}
	}
	return out
}

// claudeTool returns how a tool is used.
func claudeTool(b claudeBlock) Event {
	in := members(b.Input)
	switch b.Name {
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return Event{Kind: File, Name: b.Name, Text: or(in.text("file_path"), in.text("notebook_path"))}
	}
	return in.use(b.Name, "command", "file_path", "pattern", "path", "url", "query", "description", "prompt")
}

func claudeResults(l claudeLine) []Event {
	var out []Event
	for _, b := range l.blocks() {
		if b.Type == "tool_result" && b.IsError {
			var s string
			_ = json.Unmarshal(b.Content, &s) // some tools return a list: only report that it failed
			out = append(out, Event{Kind: Failed, Text: clip(s, maxShown)})
		}
	}
	return out
}

func (r *Reader) claudeLimit(l claudeLine) []Event {
	r.r.refused = l.RateLimit.Status == "rejected"
	if r.r.refused {
		r.r.limit = epoch(l.RateLimit.Resets, r.now())
	}
	if l.RateLimit.Status == "allowed" || l.RateLimit.Status == "" {
		return nil
	}
	return []Event{{Kind: Limit, Text: l.RateLimit.Status}}
}

// claudeEnd reads the result. It overrides earlier reports: a failure that a retry fixed does not
// count.
func (r *Reader) claudeEnd(l claudeLine) []Event {
	said := r.r.failure
	r.r.Final, r.r.failure, r.r.Turns = true, failure{}, l.Turns
	// A process may print several results: each has its own tokens, but the cost of all so far.
	r.r.Usage.CostUSD, r.r.Usage.Billed = 0, 0
	usage := l.Usage.usage()
	usage.CostUSD = l.Cost
	for _, m := range l.Models {
		for _, tokens := range []int64{m.Input, m.Output, m.Read, m.Created} {
			usage = usage.plus(Usage{Billed: tokens})
		}
	}
	r.r.gone = l.Turns == 0 && strings.HasPrefix(strings.Join(l.Errors, "; "), "No conversation found")
	r.r.Usage, r.r.said = r.r.Usage.plus(usage), Usage{}
	if !l.IsError || l.Result != "" {
		r.r.Text = end(l.Result)
	}
	if r.r.Structured = l.Structured; string(l.Structured) == "null" {
		r.r.Structured = nil
	}
	for _, d := range l.Denials {
		r.deny(d.Tool)
	}
	why := or(or(l.Result, strings.Join(l.Errors, "; ")), or(l.Terminal, l.Subtype))
	switch {
	case !l.IsError && l.Subtype == "success":
		if class, reset := claudeBanner(l.Result, r.now()); class != Good && l.Usage.Output == 0 {
			r.r.failure = failure{class: class, why: clip(l.Result, maxWhy), reset: reset}
		}
	case l.Status != 0 && ofStatus(l.Status) == Work:
		r.failWords(fmt.Sprintf("%s (HTTP status %d)", clip(why, maxWhy/2), l.Status), Work)
	case l.Status != 0:
		r.fail(ofStatus(l.Status), fmt.Sprintf("%s (HTTP status %d)", why, l.Status))
	case strings.HasPrefix(l.Terminal, "aborted"):
		r.fail(Infrastructure, "it was interrupted")
	case l.Subtype == "error_max_budget_usd":
		r.fail(UsageLimit, "the cost that it was given is used up")
		r.r.failure.limit = "" // no time ends it
	case l.Terminal == "prompt_too_long", strings.HasPrefix(l.Subtype, "error_max"):
		r.fail(Work, why)
	case said.class != Good:
		r.fail(said.class, why)
	default:
		r.failWords(why, Infrastructure)
	}
	return []Event{{Kind: Ended, Text: fmt.Sprintf("%d turns, %d tokens, %.4f USD", l.Turns,
		r.r.Usage.Input+r.r.Usage.Output, l.Cost)}}
}

// claudeBanner recognises a usage limit that older releases reported in a successful result:
// "Claude AI usage limit reached|1752345600".
func claudeBanner(result string, now time.Time) (Class, time.Time) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(result), "Claude AI usage limit reached|")
	if !ok || len(rest) < 9 || len(rest) > 11 || strings.Trim(rest, "0123456789") != "" {
		return Good, time.Time{}
	}
	return UsageLimit, resetIn("|"+rest, now)
}

// claudeWord returns the class of the error in an assistant line.
func claudeWord(word string) Class {
	switch word {
	case "rate_limit":
		return UsageLimit
	case "authentication_failed", "billing_error", "model_not_found", "oauth_org_not_allowed":
		return Fatal
	}
	return Infrastructure
}

// ofStatus returns the class of an HTTP status.
func ofStatus(status int) Class {
	switch {
	case status == 429:
		return UsageLimit
	case status == 401, status == 402, status == 403, status == 404:
		return Fatal
	case status == 400, status == 413, status == 422:
		return Work // the request itself: probably too long
	}
	return Infrastructure
}
