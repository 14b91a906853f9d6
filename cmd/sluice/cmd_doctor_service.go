package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"sluice/deploy"
	"sluice/internal/doctor"
	"sluice/internal/fault"
	"sluice/internal/workspace"
)

// doctorInService runs the checks with the service's binary inside the installed unit: with its
// PATH, its user and its limits, where agents most often break.
func doctorInService(ctx context.Context, a *app, system bool) error {
	s, err := serviceFlags{system: system}.open(&a.Console)
	if err != nil {
		return err
	}
	dir, err := workspace.StartDir(a.dir)
	if err != nil {
		return err
	}
	said, complaints, err := s.Within(ctx, "doctor", "--json", "-C", dir)
	if errors.Is(err, deploy.ErrNoManager) {
		return fault.Failed("read the service's log, and run `sluice doctor` here", "%s", oneLine(err.Error()))
	}
	if err != nil {
		return err
	}
	var report struct {
		Checks []doctor.Check `json:"checks"`
	}
	if err := json.Unmarshal(said, &report); err != nil {
		return fault.Failed("`sluice service install` again, if the service has an older binary",
			"the service's binary printed no report: %s", oneLine(string(complaints)+string(said)))
	}
	st, err := s.Status(ctx)
	if err != nil {
		return err
	}
	first := []doctor.Check{doctor.Fine("service", "these checks ran inside %s", st.File)}
	if self, err := os.Executable(); err == nil && self != st.Program {
		first[0] = doctor.Warned("service", "run `sluice service install` with the binary you want",
			"its binary is %s, and this one is %s", clean(st.Program), self)
	}
	return doctor.Print(&a.Console, append(first, report.Checks...))
}
