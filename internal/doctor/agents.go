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
)

// Agents looks for the agents of all roles, and for their logins. there reports what a spec lacks.
func Agents(con *console.Console, root string, s settings.Settings, there func(*engine.Spec) error) []Check {
	all, err := specsOf(root)
	if err != nil {
		return nil // reported already
	}
	var out []Check
	said := map[string]bool{}
	for _, spec := range all {
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
	here := installed(con, root, s)
	for _, a := range here {
		starts := text.Line(a.file)
		if behind := program.Native(a.format, a.file); behind != a.file {
			starts = text.Line(behind) + ", the program behind " + starts
		}
		out = append(out, Fine("agents", "%s starts %s", a.name, starts))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		if args := s.Roles[name].Args; len(args) > 0 {
			out = append(out, Fine("agents", "role %s: its agents are launched with %s", name,
				text.Line(strings.Join(args, " "))))
		}
	}
	return append(out, logins(con, here)...)
}

// agent is an installed agent of a known program.
type agent struct{ name, format, file string }

func installed(con *console.Console, root string, s settings.Settings) (out []agent) {
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		a := s.Agents[name]
		if len(a.Command) == 0 || !program.Known(a.Format) {
			continue
		}
		if file, err := agents.LookUp(a.Command[0], con.Env, root); err == nil { // else nobody's role, or said already
			out = append(out, agent{name, a.Format, file})
		}
	}
	return out
}

// logins checks whether the installed agents have a login: a service lacks the environment in which
// a person logged in. It is a guess by the files that agents keep, so only a warning.
func logins(con *console.Console, here []agent) []Check {
	if runtime.GOOS != "linux" { // elsewhere a keychain has it
		return nil
	}
	var out []Check
	for _, a := range here {
		file, vars := program.Login(a.format, con.Getenv, con.Getenv("HOME"))
		if file == "" || layout.IsFile(file) ||
			slices.ContainsFunc(vars, func(v string) bool { return con.Getenv(v) != "" }) {
			continue
		}
		out = append(out, Warned("login",
			"log in with it as this user, or have "+vars[0]+
				" in the environment (of a service: `sluice service install --env "+vars[0]+"`)",
			"%s: no login found: neither %s nor a key in the environment", a.name, file))
	}
	return out
}
