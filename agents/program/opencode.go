package program

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// opencode: opencode run --format json.
func opencode() profile {
	const data, config, own = "XDG_DATA_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG"
	return profile{
		command: []string{"run"},
		args:    opencodeArgs,
		refused: map[string]string{"run": stream, "--format": stream, "--interactive": stream, "-i": stream,
			"--mini":   stream,
			"--attach": "it must work here", "--dir": "sluice sets where it works", "--command": prompt, "--": prompt,
			"--session": session, "-s": session, "--continue": session, "-c": session, "--fork": session, "--model": model,
			"-m": model},
		former: []string{"opencode", "run"},
		passed: []string{"OPENCODE_*"},
		vars:   opencodeVars,
		read:   reads((*Reader).opencodeTells),
		alone:  []string{"--session", "-s", "--continue", "-c", "--fork", "--attach"},
		resume: []string{"opencode", "--session"},
		gone:   []string{"Session not found"},
		homes:  map[string]string{data: ".local/share", config: ".config", own: ".config/opencode/own.json"},
		seeds: func(variable func(string) string, person string) []Seed {
			out := seeds(folder(variable(data), person, ".local/share"), ".local/share", "opencode/auth.json")
			out = append(out, seeds(folder(variable(config), person, ".config"), ".config",
				"opencode/config.json", "opencode/opencode.json", "opencode/opencode.jsonc", "opencode/AGENTS.md")...)
			if file := variable(own); filepath.IsAbs(file) {
				out = append(out, Seed{From: file, To: ".config/opencode/own.json"})
			}
			return out
		},
		npm: "opencode-ai",
		native: func(pkg, machine string) []string {
			return []string{filepath.Join(filepath.Dir(pkg), "opencode-"+machine, "bin", "opencode")}
		},
	}
}

// opencodeArgs: with nobody to ask, permissions that need asking are refused, unless sluice's
// sandbox holds it. Setting a title saves a request to the model for one, which opencode would not
// report.
func opencodeArgs(a *args, l Launch) {
	a.option("--format", "json")
	a.option("--title", "sluice")
	if l.Model != "" {
		a.option("--model", l.Model, "-m")
	}
	if l.Contained {
		a.flag("--auto", "--yolo", "--dangerously-skip-permissions")
	}
	if CanResume(Opencode, a.given, l.Resume) {
		a.add("--session", l.Resume)
	}
}

// opencodeVars allow the launch's extra folders, on top of the person's variable.
func opencodeVars(variable func(string) string, dirs []string) map[string]string {
	const rules = "OPENCODE_PERMISSION"
	out := map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1"}
	said := map[string]any{}
	if text := variable(rules); text != "" && json.Unmarshal([]byte(text), &said) != nil {
		return out // opencode ignores a value it cannot read
	}
	outside, ok := said["external_directory"].(map[string]any)
	if !ok {
		outside = map[string]any{}
		if all, ok := said["external_directory"].(string); ok {
			outside["*"] = all
		}
	}
	outside = maps.Clone(outside)
	for _, dir := range dirs {
		if !strings.ContainsAny(dir, "*?") { // they would match other folders
			outside[dir+"/*"] = "allow"
		}
	}
	said["external_directory"] = outside
	if text, err := json.Marshal(said); err == nil {
		out[rules] = string(text)
	}
	return out
}

// opencodeLine is the part of a line from opencode that we read.
type opencodeLine struct {
	Type     string   `json:"type"`
	Session  string   `json:"sessionID"`
	Rejected []string `json:"rejected"` // of done
	Part     struct {
		Text   string `json:"text"`
		Tool   string `json:"tool"`
		Reason string `json:"reason"` // of step_finish: stop, tool-calls, length, …
		State  struct {
			Status   string          `json:"status"` // completed, error
			Input    json.RawMessage `json:"input"`
			Error    string          `json:"error"`
			Metadata struct {
				Exit int `json:"exit"`
			} `json:"metadata"`
		} `json:"state"`
		Cost   float64 `json:"cost"`
		Tokens struct {
			Input     int64 `json:"input"`
			Output    int64 `json:"output"`
			Reasoning int64 `json:"reasoning"`
			Cache     struct {
				Read  int64 `json:"read"`
				Write int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func (r *Reader) opencodeTells(l opencodeLine) (out []Event) {
	if l.Session != "" {
		r.r.Session = clip(l.Session, 200)
	}
	switch l.Type {
	case "step_start":
		// Only the last step's end counts.
		r.r.Final, r.r.failure = false, failure{}
		if r.r.Turns++; r.r.Turns == 1 {
			out = []Event{{Kind: Began}}
		}
	case "text":
		r.r.Text = end(l.Part.Text)
		out = []Event{{Kind: Text, Text: clip(l.Part.Text, maxShown)}}
	case "tool_use":
		r.r.Text = "" // earlier text was not the last word
		out = r.opencodeTool(l)
	case "step_finish":
		out = r.opencodeStep(l)
	case "done": // in releases after 1.18
		r.r.Final = true
		for _, what := range l.Rejected {
			r.deny(what)
		}
	case "error":
		out = r.opencodeError(l)
	}
	return out
}

// opencodeTool reads a tool's use, which is reported at its end.
func (r *Reader) opencodeTool(l opencodeLine) []Event {
	state, tool := l.Part.State, clip(l.Part.Tool, 100)
	in := members(state.Input)
	use := in.use(tool, "command", "filePath", "pattern", "path", "url", "query", "description", "prompt")
	if use.Of == "filePath" {
		use.Of = "file_path"
	}
	if slices.Contains([]string{"write", "edit", "patch"}, tool) {
		use = Event{Kind: File, Name: tool, Text: in.text("filePath")}
	}
	switch {
	case strings.HasPrefix(state.Error, "The user rejected permission"),
		strings.HasPrefix(state.Error, "The user has specified a rule which prevents"):
		r.deny(tool)
		return []Event{{Kind: Denied, Name: tool, Text: use.Text}}
	case state.Status == "error":
		return []Event{use, {Kind: Failed, Name: tool, Text: clip(state.Error, maxShown)}}
	case state.Metadata.Exit != 0:
		return []Event{use, {Kind: Failed, Name: tool, Text: fmt.Sprintf("exit code %d", state.Metadata.Exit)}}
	}
	return []Event{use}
}

// opencodeStep reads the end of a step: its usage, and whether another follows. After a refused
// tool none does.
func (r *Reader) opencodeStep(l opencodeLine) []Event {
	t := l.Part.Tokens
	r.r.Usage = r.r.Usage.plus(Usage{Input: t.Input, Output: t.Output,
		CostUSD: l.Part.Cost}).plus(Usage{Input: t.Cache.Read, Output: t.Reasoning}).plus(Usage{Input: t.Cache.Write})
	switch l.Part.Reason {
	case "tool-calls", "unknown":
		r.r.Final = len(r.r.Denied) > 0
	case "length", "content-filter":
		r.r.Final = true
		r.fail(Work, "the model's answer was cut off: "+l.Part.Reason)
	case "error":
		r.r.Final = true
		r.fail(Infrastructure, "the model's answer ended with an error")
	default:
		r.r.Final = true
	}
	if !r.r.Final {
		return nil
	}
	return []Event{{Kind: Ended, Text: fmt.Sprintf("%d turns, %d tokens, %.4f USD", r.r.Turns,
		r.r.Usage.Input+r.r.Usage.Output, r.r.Usage.CostUSD)}}
}

// opencodeError reads an error; one end can report several.
func (r *Reader) opencodeError(l opencodeLine) []Event {
	e := l.Error
	why := or(e.Data.Message, e.Name)
	switch {
	case e.Name == "ContextOverflowError", e.Name == "MessageOutputLengthError", e.Name == "ContentFilterError":
		r.fail(Work, why)
	case e.Name == "ProviderAuthError", e.Name == "ProviderModelNotFoundError":
		r.fail(Fatal, why)
	case e.Name == "MessageAbortedError":
		r.fail(Infrastructure, "it was interrupted")
	case e.Data.Status == 429 && find(`(?i)quota|billing`, why) != nil, e.Data.Status == 400:
		r.failWords(fmt.Sprintf("%s (HTTP status %d)", clip(why, maxWhy/2), e.Data.Status), ofStatus(e.Data.Status))
	case e.Data.Status != 0:
		r.fail(ofStatus(e.Data.Status), fmt.Sprintf("%s (HTTP status %d)", why, e.Data.Status))
	default:
		r.failWords(why, Infrastructure)
	}
	return []Event{{Kind: Failed, Text: clip(why, maxShown)}}
}
