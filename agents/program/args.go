package program

import (
	"encoding/json"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Launch is what a launch asks of a program.
type Launch struct {
	Model  string          // "" = the program's own choice
	Dirs   []string        // folders beside the one it works in that it may write to, absolute
	Schema json.RawMessage // a JSON Schema that its answer has to fit; nil = none
	// SchemaFile is a file that holds the schema in the form of Strict, for codex; "" = there is none.
	SchemaFile string
	// MaxCostUSD is what it may cost, where the program can hold to that by itself (claude); 0 = no bound.
	MaxCostUSD float64
	// Contained: a sandbox of sluice's holds it, so that one of its own adds nothing. Inside ours codex's would fail every
	// command in silence.
	Contained bool
	// Resume is a conversation to go on with, as Result.Session named it; "" = a new one.
	Resume string
	// ReadOnly: it judges, and has nothing to write but its answer.
	ReadOnly bool
	// Args are arguments of the role's, for the program behind its own command; those that Refused names are not among them.
	Args []string
}

// Args are the arguments that have the program of a format work by itself and tell what it does; the prompt comes on its
// standard input. given are the arguments that its command has already: what they say is not said again, so that who
// writes a permission mode or a sandbox there has it. Without one claude may change files below its folders and run what
// its settings allow; codex has its own sandbox, in which it may write there and reach no network.
func Args(format string, given []string, l Launch) []string {
	a := args{given: given}
	// Before the program's own name stands what starts it: docker exec, ssh -p 22.
	if i := slices.IndexFunc(given, func(arg string) bool { return filepath.Base(arg) == format }); i >= 0 {
		a.given = given[i+1:]
	}
	if format == Codex && !slices.Contains(a.given, "exec") && !slices.Contains(a.given, "e") {
		a.add("exec")
	}
	a.given = slices.Concat(a.given, l.Args)
	a.add(l.Args...)
	switch format {
	case Claude:
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
			// Upwards, so that a budget is used up when it says so.
			a.option("--max-budget-usd", strconv.FormatFloat(math.Ceil(l.MaxCostUSD*1e4)/1e4, 'f', 4, 64))
		}
		if CanResume(format, a.given, l.Resume) {
			a.add("--resume", l.Resume)
		}
		for _, dir := range l.Dirs {
			a.add("--add-dir", dir)
		}
	case Codex:
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
		if CanResume(format, a.given, l.Resume) { // its options stand before: resume itself takes no sandbox and no folders
			a.add("resume", l.Resume)
		}
		a.flag("-")
	}
	return a.out
}

// CanResume says that a program whose command is given can go on with the conversation: it keeps them, and id is the name of
// one.
func CanResume(format string, given []string, id string) bool {
	a := args{given: given}
	if !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{7,63}$`).MatchString(id) {
		return false
	}
	switch format {
	case Claude:
		return !a.has("--no-session-persistence", "--resume", "-r", "--continue", "-c", "--session-id")
	case Codex:
		return !a.has("--ephemeral", "resume")
	}
	return false
}

// Refused finds the first argument that a role may not add to a program of the format, as sluice says it itself, or reads by
// it; why says what to do instead. The agent's own command may have it: who writes that sees the whole.
func Refused(format string, args []string) (arg, why string) {
	if len(args) > 0 && Known(format) && !strings.HasPrefix(args[0], "-") {
		return args[0], "the first of the arguments is no option: it would be taken for the prompt, or for a command"
	}
	const (
		stream  = "sluice sets what it prints: with another output nobody could tell what it did"
		session = "sluice says which conversation it goes on with: give the step a `session`"
		prompt  = "sluice gives it its prompt, on standard input"
	)
	refused := map[string]string{}
	switch format {
	case Claude:
		refused = map[string]string{"-p": prompt, "--print": prompt, "--output-format": stream, "--input-format": prompt, "--verbose": stream,
			"--json-schema": "sluice gives it the schema of its answer", "--max-budget-usd": "sluice gives it what is left of its budget: set roles.NAME.max_cost_usd",
			"--model": "its model is set by roles.NAME.model", "--resume": session, "-r": session, "--continue": session, "-c": session,
			"--session-id": session, "--fork-session": session, "--no-session-persistence": session, "--": prompt}
	case Codex:
		refused = map[string]string{"exec": stream, "e": stream, "resume": session, "--last": session, "--ephemeral": session, "--json": stream, "--experimental-json": stream,
			"--output-schema": "sluice gives it the schema of its answer", "--model": "its model is set by roles.NAME.model", "-m": "its model is set by roles.NAME.model",
			"-": prompt, "--": prompt}
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if len(name) > 2 && name[0] == '-' && name[1] != '-' {
			name = name[:2] // -mNAME
		}
		if why := refused[name]; why != "" {
			return arg, why
		}
	}
	return "", ""
}

// Vars are the variables that a program needs beside its own: an update in the middle of the night would change the tool.
func Vars(format string) map[string]string {
	if format == Claude {
		return map[string]string{"DISABLE_AUTOUPDATER": "1"}
	}
	return nil
}

// Passed are the names and patterns of the daemon's variables that a program is to get: its key, its address, its folder.
func Passed(format string) []string {
	switch format {
	case Claude:
		return append(proxies(), "ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR", "IS_SANDBOX", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "API_TIMEOUT_MS")
	case Codex:
		return append(proxies(), "OPENAI_*", "CODEX_*")
	}
	return nil
}

// proxies are the variables by which a program finds its way out of a closed network.
func proxies() []string {
	return []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}
}

// args gathers arguments.
type args struct{ given, out []string }

func (a *args) add(words ...string) { a.out = append(a.out, words...) }

// has says that the command gives one of the options.
func (a *args) has(names ...string) bool {
	return slices.ContainsFunc(a.given, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(names, name)
	})
}

// sandboxed says that codex's command names a sandbox, or a profile that may.
func (a *args) sandboxed() bool {
	return a.has("--sandbox", "-s", "--profile", "-p", "--dangerously-bypass-approvals-and-sandbox") || slices.ContainsFunc(a.given, func(arg string) bool {
		return strings.HasPrefix(arg, "sandbox_mode") || strings.HasPrefix(arg, "-csandbox_mode") || strings.HasPrefix(arg, "-s") && !strings.HasPrefix(arg, "--")
	})
}

// flag adds an option without a value, by its first name.
func (a *args) flag(names ...string) {
	if !a.has(names...) {
		a.add(names[0])
	}
}

// option adds an option with its value; others are other names of it.
func (a *args) option(name, value string, others ...string) {
	if !a.has(append(others, name)...) {
		a.add(name, value)
	}
}
