package program

import "path/filepath"

// Seed is a file that a program reads at its start and that a private home needs a copy of: its login, its settings.
type Seed struct {
	From string // absolute
	To   string // below the private home, with slashes
}

// HomeVars are the variables that say where the programs keep their own files: in a private home they say otherwise.
func HomeVars() []string { return []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME"} }

// Homes gives the variable of a program's own folder, and where below a private home that is.
func Homes(format string) map[string]string {
	switch format {
	case Claude:
		return map[string]string{"CLAUDE_CONFIG_DIR": ".claude"}
	case Codex:
		return map[string]string{"CODEX_HOME": ".codex"}
	}
	return nil
}

// Seeds gives the files of a program that a private home is to have, those that may be missing too. variable gives those of
// the daemon's environment; home is the real one, "" for none. Hooks and servers that the person's settings name run inside
// like all else that the program starts.
func Seeds(format string, variable func(string) string, home string) []Seed {
	at := func(name, below string) string {
		if dir := variable(name); filepath.IsAbs(dir) {
			return dir
		}
		if home == "" {
			return ""
		}
		return filepath.Join(home, below)
	}
	var out []Seed
	add := func(dir, to string, names ...string) {
		for _, name := range names {
			if dir != "" {
				out = append(out, Seed{From: filepath.Join(dir, name), To: to + "/" + name})
			}
		}
	}
	switch format {
	case Claude:
		dir := at("CLAUDE_CONFIG_DIR", ".claude")
		add(dir, ".claude", ".credentials.json", "settings.json", "CLAUDE.md")
		if variable("CLAUDE_CONFIG_DIR") == "" {
			add(home, ".claude", ".claude.json") // without the variable it lies beside the folder
		} else {
			add(dir, ".claude", ".claude.json")
		}
	case Codex:
		add(at("CODEX_HOME", ".codex"), ".codex", "auth.json", "config.toml", "AGENTS.md")
	}
	return out
}
