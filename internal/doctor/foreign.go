package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"sluice/internal/atomicfile"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// The documents of the templates name settings (variables, files, keys) that sluice does not read.
// `validate` and `doctor` say what takes their place.

// foreignEnv are variables that the documents name.
func foreignEnv() map[string]string {
	return map[string]string{
		"LOOP_GOAL":    "sluice run supervised-loop --var goal=…",
		"MAX_ITER":     "sluice run supervised-loop --var max_iter=…",
		"CLAUDE_MODEL": "roles.NAME.model in .workflow/config.yaml",
	}
}

// foreignPrefix begins the variables of document 001; the rest of a name is a key of its settings.
const foreignPrefix = "LOOPER_"

// foreignKeys are keys of the documents' settings, and what they are here. A key of an agent or a role is below it.
func foreignKeys() map[string]string {
	return map[string]string{
		"max_iterations":         "--var max_iterations=… of the template backlog",
		"todo":                   "--var tasks=… of the template backlog",
		"todo_file":              "--var tasks=… of the template backlog",
		"task_file":              "--var tasks=… of the template backlog",
		"schedule":               "roles.iter.agent, whose agents take turns",
		"scheduler":              "roles.iter.agent, whose agents take turns",
		"binary":                 "agents.NAME.command",
		"args":                   "agents.NAME.command",
		"model":                  "roles.NAME.model",
		"timeout":                "roles.NAME.timeout",
		"work_dir":               "agent: {worktree: …} in the spec",
		"last_msg":               "nothing: it is read from the agent's events",
		"prompt_file":            "roles.NAME.prompt_file",
		"post_iteration":         "hooks: {after_task: …} in the spec",
		"auto_commit":            "--var auto_commit=true of the template backlog",
		"max_fix_cycles":         "--var max_fix_cycles=… of the template goal-loop",
		"max_plan_revisions":     "--var max_plan_revisions=… of the template goal-loop",
		"attempts_before_replan": "--var attempts_before_replan=… of the template goal-loop",
		"max_replan_depth":       "--var max_replan_depth=… of the template goal-loop",
		"max_goal_iterations":    "--var max_goal_iterations=… of the template goal-loop",
		"time_limit":             "--var time_limit=2h of the template goal-loop",
		"approval_threshold":     "--var approve=… of the template goal-loop",
		"revision_threshold":     "--var revise=… of the template goal-loop",
		"on_plan_rejected":       "--var on_plan_rejected=… of the template goal-loop",
		"codex":                  "agents.codex in .workflow/config.yaml",
		"claude":                 "agents.claude in .workflow/config.yaml",
		"agents":                 "agents in .workflow/config.yaml",
		"hooks":                  "hooks: {after_task: …} in the spec",
	}
}

// Bounds of what is read and reported.
const (
	maxForeign     = 20       // names
	maxForeignFile = 64 << 10 // bytes of a file
)

// Foreign is a setting that exists and is not read.
type Foreign struct{ What, Instead string }

func (f Foreign) String() string {
	return fmt.Sprintf("%s is not read; in its place: %s", f.What, f.Instead)
}

// Check is what doctor says of it.
func (f Foreign) Check() Check { return Warned("settings", f.Instead, "%s is not read", f.What) }

// FindForeign finds the documents' settings in the environment, the repo and the person's folder of
// settings ("" = none).
func FindForeign(environ []string, root, config string) (out []Foreign) {
	env := map[string]string{}
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); value != "" {
			env[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if instead := foreignEnv()[name]; instead != "" {
			out = append(out, Foreign{"$" + name, instead})
		} else if key, ok := strings.CutPrefix(name, foreignPrefix); ok {
			out = append(out, Foreign{"$" + name, insteadOf(key, env[name])})
		}
	}
	files := [][2]string{{root, ".looper/config.json"}, {root, ".claude-looper/config.json"}}
	if config != "" {
		files = append(files, [2]string{config, "looper/config.json"})
	}
	for _, f := range files {
		out = append(out, foreignFile(filepath.Join(f[0], filepath.FromSlash(f[1])))...)
	}
	if layout.IsFile(filepath.Join(root, ".claude-looper", "state.json")) {
		out = append(out, Foreign{".claude-looper/state.json",
			"a run's state is in sluice's own folder: continue a run with `sluice resume` or `sluice retry`; start one with " +
				"`sluice run goal-loop --var goal=…`"})
	}
	if n := len(out); n > maxForeign {
		out = append(out[:maxForeign], Foreign{fmt.Sprintf("%d more of their settings", n-maxForeign), "see docs/templates/"})
	}
	return out
}

// foreignFile returns each key of a settings file, or the file alone if no key can be read.
func foreignFile(path string) (out []Foreign) {
	data, err := atomicfile.Read(path, maxForeignFile)
	if err != nil && !layout.IsFile(path) {
		return nil
	}
	var keys map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // as they are written
	if err != nil || d.Decode(&keys) != nil || len(keys) == 0 {
		return []Foreign{{layout.ShortPath(path),
			"vars and roles: `sluice config` shows the values, docs/templates/ explains them"}}
	}
	var walk func(keys map[string]any, above string)
	walk = func(keys map[string]any, above string) {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			below, more := keys[key].(map[string]any)
			if more && len(out) <= maxForeign {
				walk(below, above+key+".")
				continue
			}
			out = append(out, Foreign{layout.ShortPath(path) + ": " + text.Line(above+key),
				insteadOf(key, fmt.Sprint(keys[key]))})
		}
	}
	walk(keys, "")
	return out
}

// insteadOf returns what takes the place of a key, found by its name, else by the longest known key
// that the name ends in.
func insteadOf(key, value string) string {
	name, best := snake(key), ""
	for known := range foreignKeys() {
		if (name == known || strings.HasSuffix(name, "_"+known)) && len(known) > len(best) {
			best = known
		}
	}
	if best == "" {
		return "vars of the workflow (`--var`) and `sluice config`; docs/templates/ has both beside the documents' names"
	}
	instead := foreignKeys()[best]
	if best == "time_limit" {
		var ms int64
		if n, err := fmt.Sscan(value, &ms); n == 1 && err == nil && ms > 0 && ms < int64(1000*time.Hour/time.Millisecond) {
			instead = fmt.Sprintf("--var time_limit=%s of the template goal-loop", time.Duration(ms)*time.Millisecond)
		}
	}
	return instead
}

// snake writes maxFixCycles and MAX_FIX_CYCLES as max_fix_cycles.
func snake(key string) string {
	if strings.ToUpper(key) == key {
		return strings.ToLower(key)
	}
	var b strings.Builder
	for i, r := range key {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
