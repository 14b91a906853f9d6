package show

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// mostName is how many bytes of a value's name are printed.
const mostName = 200

// printGiven prints what a run was started with, if it waits for a person before its first step: all of it, with what
// hides in it made visible. Where that came from, it may say something else by now.
func printGiven(con *console.Console, r daemon.RunStatus) {
	if r.Paused != engine.PausedConfirm || len(r.Vars) == 0 {
		return
	}
	con.Print("  it was given:")
	printValue(con, "", r.Vars)
}

// printValue prints a value under its name, that of an object by its keys. A row of a text of several lines cannot
// pass for another value.
func printValue(con *console.Console, name string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			printValue(con, strings.TrimPrefix(name+"."+key, "."), v[key])
		}
		return
	case string:
		value = text.Reveal(v)
	default:
		raw, _ := json.Marshal(v) // it came from JSON
		value = text.Reveal(string(raw))
	}
	lines := strings.Split(strings.TrimRight(value.(string), "\n"), "\n")
	if len(lines) == 1 {
		con.Print("    %s: %s", text.RevealLine(name, mostName), lines[0])
		return
	}
	con.Print("    %s:", text.RevealLine(name, mostName))
	for _, line := range lines {
		con.Print("    | %s", line)
	}
}
