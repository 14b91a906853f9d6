package program

import (
	"maps"
	"path/filepath"
	"slices"
)

// Seed is a file that a program reads at its start and that a private home needs a copy of: its login, its settings.
type Seed struct {
	From string // absolute
	To   string // below the private home, with slashes
}

// HomeVars are the variables that say where the programs keep their own files: in a private home they say otherwise.
func HomeVars() (out []string) {
	for _, p := range profiles() {
		out = slices.AppendSeq(out, maps.Keys(p.make().homes))
	}
	return out
}

// Homes returns the variables of a program's own folders, and where below a private home those are.
func Homes(format string) map[string]string { return profileOf(format).homes }

// Seeds gives the files of a program that a private home is to have, those that may be missing too. variable gives those of
// the daemon's environment; home is the real one, "" for none. Hooks and servers that the person's settings name run inside
// like all else that the program starts.
func Seeds(format string, variable func(string) string, home string) []Seed {
	if p := profileOf(format); p.seeds != nil {
		return p.seeds(variable, home)
	}
	return nil
}

// folder is where a program keeps its own: what its variable says, else a folder below the person's home; "" without one.
func folder(said, home, below string) string {
	switch {
	case filepath.IsAbs(said):
		return said
	case home == "":
		return ""
	}
	return filepath.Join(home, below)
}

// seeds are files of a folder; none without one.
func seeds(dir, to string, names ...string) (out []Seed) {
	for _, name := range names {
		if dir != "" {
			out = append(out, Seed{From: filepath.Join(dir, name), To: to + "/" + name})
		}
	}
	return out
}
