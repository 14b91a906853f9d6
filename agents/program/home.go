package program

import (
	"maps"
	"path/filepath"
	"slices"
)

// Seed is a file that a program reads at start and needs as a copy in a private home: its login,
// its settings.
type Seed struct {
	From string // absolute
	To   string // below the private home, with slashes
}

// HomeVars returns the variables for the programs' own folders; in a private home they change.
func HomeVars() (out []string) {
	for _, p := range profiles() {
		out = slices.AppendSeq(out, maps.Keys(p.make().homes))
	}
	return out
}

// Homes returns a program's folder variables and their folders below a private home.
func Homes(format string) map[string]string { return profileOf(format).homes }

// Seeds returns the files of a program for a private home; some may not exist. variable reads the
// daemon's environment; home is the real home, or "". Hooks and servers in the person's settings
// run inside, like everything that the program starts.
func Seeds(format string, variable func(string) string, home string) []Seed {
	if p := profileOf(format); p.seeds != nil {
		return p.seeds(variable, home)
	}
	return nil
}

// folder returns a program's own folder: from its variable, else below the person's home, or "".
func folder(said, home, below string) string {
	switch {
	case filepath.IsAbs(said):
		return said
	case home == "":
		return ""
	}
	return filepath.Join(home, below)
}

// seeds returns files of a folder; none without a folder.
func seeds(dir, to string, names ...string) (out []Seed) {
	for _, name := range names {
		if dir != "" {
			out = append(out, Seed{From: filepath.Join(dir, name), To: to + "/" + name})
		}
	}
	return out
}
