package doctor

import (
	"maps"
	"runtime"
	"slices"
	"strings"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/specs"
)

// Agents looks for the agents of all roles, and for their logins. there reports what a spec lacks.
func Agents(con *console.Console, root string, s settings.Settings, there func(*engine.Spec) error) []Check {
	files, err := specs.Find(root)
	if err != nil {
		return nil // reported already
	}
	var out []Check
	said := map[string]bool{}
	for _, f := range files {
		spec, faults := specs.LoadFile(f)
		if len(faults) > 0 {
			continue
		}
		if err := there(spec); err != nil {
			if what, advice := fault.Split(err); !said[what] {
				said[what] = true
				out = append(out, Broken("agents", advice, "%s", what))
			}
		}
	}
	if len(out) == 0 {
		out = append(out, Fine("agents", "all roles have their agents"))
	}
	out = append(out, native(con, root, s)...)
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		if args := s.Roles[name].Args; len(args) > 0 {
			out = append(out, Fine("agents", "role %s: its agents are launched with %s", name,
				text.Line(strings.Join(args, " "))))
		}
	}
	return append(out, logins(con, root, s)...)
}

// native names the programs behind launchers from npm, which are what is started.
func native(con *console.Console, root string, s settings.Settings) []Check {
	var out []Check
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		agent := s.Agents[name]
		if len(agent.Command) == 0 || !program.Known(agent.Format) {
			continue
		}
		file, err := agents.LookUp(agent.Command[0], con.Env, root)
		if err != nil {
			continue // nobody's role, or said already
		}
		if behind := program.Native(agent.Format, file); behind != file {
			out = append(out, Fine("agents", "%s starts %s, the program behind %s", name, text.Line(behind), text.Line(file)))
		} else {
			out = append(out, Fine("agents", "%s starts %s", name, text.Line(file)))
		}
	}
	return out
}

// logins checks whether the installed agents have a login: a service lacks the environment in which
// a person logged in. It is a guess by the files that agents keep, so only a warning.
func logins(con *console.Console, root string, s settings.Settings) []Check {
	var out []Check
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		agent := s.Agents[name]
		if len(agent.Command) == 0 || !program.Known(agent.Format) || runtime.GOOS != "linux" { // elsewhere a keychain has it
			continue
		}
		if _, err := agents.LookUp(agent.Command[0], con.Env, root); err != nil {
			continue // nobody's role, or said already
		}
		file, vars := program.Login(agent.Format, con.Getenv, con.Getenv("HOME"))
		if file == "" || layout.IsFile(file) ||
			slices.ContainsFunc(vars, func(v string) bool { return con.Getenv(v) != "" }) {
			continue
		}
		out = append(out, Warned("login",
			"log in with it as this user, or have "+vars[0]+
				" in the environment (of a service: `sluice service install --env "+vars[0]+"`)",
			"%s: no login found: neither %s nor a key in the environment", name, file))
	}
	return out
}
