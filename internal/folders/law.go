package folders

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/settings"
)

// agentsOf are the agents of the settings.
func agentsOf(s settings.Settings, spec *engine.Spec) (out []gates.Agent) {
	used, named := map[string]bool{}, map[string][]string{}
	role := func(name string) {
		r := s.Role(name)
		for _, a := range r.Agent {
			used[a], named[a] = true, append(named[a], filesNamed(r.Args)...)
		}
	}
	for _, st := range spec.Steps {
		role(st.Role())
	}
	for _, g := range spec.Gates {
		role(g.Reviewer.AgentType)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		out = append(out, gates.Agent{Name: name, Command: s.Agents[name].Command, Used: used[name], Named: named[name]})
	}
	return out
}

// filesNamed are the files and folders that arguments may name: settings and tools of an agent, which say what it may do.
func filesNamed(args []string) (out []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			_, arg, _ = strings.Cut(arg, "=")
		}
		if arg = path.Clean(filepath.ToSlash(arg)); arg != "." && !strings.HasPrefix(arg, "**") {
			out = append(out, arg, arg+"/**")
		}
	}
	return out
}
