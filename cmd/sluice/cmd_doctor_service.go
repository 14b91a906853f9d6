package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"runtime"
	"slices"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/deploy"
	"sluice/internal/doctor"
	"sluice/internal/fault"
	"sluice/internal/layout"
)

// doctorInService has the service's binary make the checks inside the installed unit: with its PATH, its user and its
// limits, which are where agents most often break.
func (a *app) doctorInService(ctx context.Context, system bool) error {
	s, err := a.openService(serviceFlags{system: system}, true, false)
	if err != nil {
		return err
	}
	dir, err := a.startDir()
	if err != nil {
		return err
	}
	said, complaints, err := s.Within(ctx, "doctor", "--json", "-C", dir)
	if errors.Is(err, deploy.ErrNoManager) {
		return fault.Failed("look into the service's log, and run `sluice doctor` here", "%s", oneLine(err.Error()))
	}
	if err != nil {
		return err
	}
	var report struct {
		Checks []doctor.Check `json:"checks"`
	}
	if err := json.Unmarshal(said, &report); err != nil {
		return fault.Failed("`sluice service install` again, if the service has an older binary", "the service's binary gives no report: %s", oneLine(string(complaints)+string(said)))
	}
	st, err := s.Status(ctx)
	if err != nil {
		return err
	}
	first := []doctor.Check{doctor.Fine("service", "what follows was found inside of %s", st.File)}
	if self, err := os.Executable(); err == nil && self != st.Program {
		first[0] = doctor.Warned("service", "`sluice service install` with the one that is meant", "its binary is %s, and this one is %s", clean(st.Program), self)
	}
	return doctor.Print(&a.Console, append(first, report.Checks...))
}

// checkLogins looks whether the agents that are there have a login here: a service has not the environment in which a
// person logged in. It is a guess by what they keep, so no more than a warning.
func (a *app) checkLogins(p *place, s *layered) []doctor.Check {
	var out []doctor.Check
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		agent := s.Agents[name]
		if len(agent.Command) == 0 || !program.Known(agent.Format) || runtime.GOOS != "linux" { // elsewhere a keychain has it
			continue
		}
		if _, err := agents.LookUp(agent.Command[0], a.Env, p.root); err != nil {
			continue // nobody's role, or said already
		}
		file, vars := program.Login(agent.Format, a.Getenv, a.Getenv("HOME"))
		if file == "" || layout.IsFile(file) || slices.ContainsFunc(vars, func(v string) bool { return a.Getenv(v) != "" }) {
			continue
		}
		out = append(out, doctor.Warned("login", "log in with it as this user, or have "+vars[0]+" in the environment (of a service: `sluice service install --env "+vars[0]+"`)",
			"%s: no login found: neither %s nor a key in the environment", name, file))
	}
	return out
}
