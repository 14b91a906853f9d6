package program

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// codex: codex exec --json.
func codex() profile {
	const home = "CODEX_HOME"
	return profile{
		command: []string{"exec", "e"},
		args:    codexArgs,
		refused: map[string]string{"exec": stream, "e": stream, "resume": session, "--last": session,
			"--ephemeral": session, "--json": stream,
			"--experimental-json": stream, "--output-schema": answer, "--model": model, "-m": model, "-": prompt, "--": prompt},
		passed: []string{"OPENAI_*", "CODEX_*"},
		strict: true,
		read:   reads((*Reader).codexTells),
		since:  codexSince,
		noCost: true,
		alone:  []string{"--ephemeral", "resume"},
		resume: []string{"codex", "resume"},
		kept: func(session string) string {
			return filepath.Join("sessions", "*", "*", "*", "rollout-*-"+session+".jsonl")
		},
		gone:  []string{"no rollout found", "thread/resume failed"},
		homes: map[string]string{home: ".codex"},
		seeds: func(variable func(string) string, person string) []Seed {
			return seeds(folder(variable(home), person, ".codex"), ".codex", "auth.json", "config.toml", "AGENTS.md")
		},
		login:  [2]string{home, "auth.json"},
		keys:   []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		npm:    "@openai/codex",
		native: codexNative,
	}
}

// codexArgs: codex has its own sandbox, which can write its folders but reach no network. Inside
// ours that sandbox would silently fail every command.
func codexArgs(a *args, l Launch) {
	a.flag("--json")
	a.flag("--skip-git-repo-check")
	if l.Model != "" {
		a.option("--model", l.Model, "-m")
	}
	if !a.sandboxed() {
		mode := "workspace-write"
		switch {
		case l.Contained:
			mode = "danger-full-access"
		case l.ReadOnly:
			mode = "read-only"
		}
		a.add("--sandbox", mode)
	}
	for _, dir := range l.Dirs {
		a.add("--add-dir", dir)
	}
	if l.SchemaFile != "" {
		a.option("--output-schema", l.SchemaFile)
	}
	if CanResume(Codex, a.given, l.Resume) { // options come first: resume itself accepts no sandbox and no folders
		a.add("resume", l.Resume)
	}
	a.flag("-")
}

// sandboxed reports whether codex's command names a sandbox, or a profile that may have one.
func (a *args) sandboxed() bool {
	return a.has("--sandbox", "-s", "--profile", "-p", "--dangerously-bypass-approvals-and-sandbox") ||
		slices.ContainsFunc(a.given, func(arg string) bool {
			return strings.HasPrefix(arg, "sandbox_mode") || strings.HasPrefix(arg, "-csandbox_mode") ||
				strings.HasPrefix(arg, "-s") && !strings.HasPrefix(arg, "--")
		})
}

// codexSince: codex counts the tokens of the whole conversation.
func codexSince(u, base Usage) (launch, total Usage) {
	if u.Input < base.Input || u.Output < base.Output {
		return u, base.plus(u)
	}
	launch = u
	launch.Input, launch.Output = u.Input-base.Input, u.Output-base.Output
	return launch, u
}

func codexNative(pkg, machine string) (out []string) {
	triple := map[string]string{
		"linux-x64": "x86_64-unknown-linux-musl", "linux-arm64": "aarch64-unknown-linux-musl",
		"darwin-x64": "x86_64-apple-darwin", "darwin-arm64": "aarch64-apple-darwin",
	}[machine]
	for _, base := range []string{pkg + "-" + machine, pkg} {
		out = append(out, filepath.Join(base, "vendor", triple, "bin", "codex"),
			filepath.Join(base, "vendor", triple, "codex", "codex"))
	}
	return out
}

// codexLine is the part of a line from codex that we read.
type codexLine struct {
	Type    string    `json:"type"`
	Thread  string    `json:"thread_id"`
	Message string    `json:"message"` // of error
	Item    codexItem `json:"item"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"` // of turn.failed
	Usage struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
}

type codexItem struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Command string          `json:"command"`
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Query   string          `json:"query"`
	Server  string          `json:"server"`
	Tool    string          `json:"tool"`
	Code    *int            `json:"exit_code"`
	Changes json.RawMessage `json:"changes"`
}

func (r *Reader) codexTells(l codexLine) []Event {
	switch l.Type {
	case "thread.started":
		r.r.Session = clip(l.Thread, 200)
		return []Event{{Kind: Began}}
	case "turn.started":
		// Only the last turn's end counts.
		r.r.Final, r.r.failure, r.r.Text = false, failure{}, ""
		r.r.Turns++
	case "item.started", "item.completed":
		return r.codexItem(l.Item, l.Type == "item.completed")
	case "turn.completed":
		r.r.Final, r.r.failure = true, failure{}
		r.r.Usage = Usage{}.plus(Usage{Input: l.Usage.Input, Output: l.Usage.Output})
		return []Event{{Kind: Ended, Text: fmt.Sprintf("%d tokens", l.Usage.Input+l.Usage.Output)}}
	case "turn.failed":
		r.r.Final = true
		r.failWords(l.Error.Message, Infrastructure)
		return []Event{{Kind: Ended, Text: clip(l.Error.Message, maxShown)}}
	case "error":
		r.failWords(l.Message, Infrastructure)
		kind := Failed
		if strings.HasPrefix(l.Message, "Reconnecting") {
			kind = Retry
		}
		return []Event{{Kind: kind, Text: clip(l.Message, maxShown)}}
	}
	return nil
}

func (r *Reader) codexItem(i codexItem, done bool) []Event {
	if i.Type != "error" {
		r.r.failure = failure{} // it continues
	}
	switch i.Type {
	case "agent_message":
		if !done {
			return nil
		}
		r.r.Text = end(i.Text)
		return []Event{{Kind: Text, Text: clip(i.Text, maxShown)}}
	case "command_execution":
		r.r.Text = "" // earlier text was not the last word
		switch {
		case !done:
			return []Event{{Kind: Tool, Name: "shell", Of: "command", Text: clip(i.Command, maxShown)}}
		case i.Status == "declined":
			r.deny("shell")
			return []Event{{Kind: Denied, Name: "shell", Text: clip(i.Command, maxShown)}}
		case i.Code != nil && *i.Code != 0:
			return []Event{{Kind: Failed, Name: "shell", Text: fmt.Sprintf("exit code %d", *i.Code)}}
		}
	case "file_change":
		if r.r.Text = ""; done {
			return codexFiles(i.Changes)
		}
	case "mcp_tool_call":
		if !done {
			return []Event{{Kind: Tool, Name: clip(i.Server+"."+i.Tool, 200)}}
		}
	case "web_search":
		if done {
			return []Event{{Kind: Tool, Name: "web_search", Of: "query", Text: clip(i.Query, maxShown)}}
		}
	case "error": // a warning: the turn's own end says whether it failed
		return []Event{{Kind: Failed, Text: clip(i.Message, maxShown)}}
	}
	return nil
}

func codexFiles(changes json.RawMessage) []Event {
	var list []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	}
	if json.Unmarshal(changes, &list) != nil {
		return nil
	}
	var out []Event
	for _, c := range list[:min(len(list), maxNames)] {
		out = append(out, Event{Kind: File, Name: clip(c.Kind, 100), Text: clip(c.Path, maxShown)})
	}
	return out
}
