package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kardianos/service"

	"sluice/internal/fault"
)

// How a service stands. StateDegraded is for who asks the daemon: the manager does not know.
const (
	StateAbsent   = "not installed" // no unit
	StateStopped  = "stopped"       // nothing runs, by somebody's wish or because nobody started it
	StateStarting = "starting"      // it runs and does not serve yet
	StateRunning  = "running"
	StateDegraded = "degraded"      // it runs, and something of it is unwell
	StateLooping  = "crash-looping" // it crashed several times and is started again and again
	StateStopping = "stopping"
	StateFailed   = "failed" // it ended with an error, and the manager does not try again
)

// A service that came back is said to loop while it has crashed so often and has not been up for this long since.
const (
	loopCrashes = 3
	loopFor     = time.Minute
)

// Status is how the manager has the service.
type Status struct {
	Manager  string    `json:"manager"` // systemd, launchd
	System   bool      `json:"system"`
	State    string    `json:"state"`
	Why      string    `json:"why,omitempty"`
	File     string    `json:"file,omitempty"`
	Program  string    `json:"program,omitempty"`
	Enabled  bool      `json:"enabled"` // it begins with the login, or with the machine
	Begins   string    `json:"begins"`  // at boot, at login, by hand
	Linger   bool      `json:"linger"`  // a user's service runs while nobody is logged in
	PID      int       `json:"pid,omitempty"`
	Since    time.Time `json:"since,omitzero"` // in this state
	Restarts int       `json:"restarts"`       // by the manager, after crashes
	Stale    bool      `json:"stale"`          // the unit was changed and the manager has not read it again
}

// Status asks the manager.
func (s *Service) Status(ctx context.Context) (Status, error) {
	if s.launchd {
		return s.launchdStatus()
	}
	p := s.show(ctx, Unit)
	if len(p) == 0 {
		return Status{}, fault.New(fmt.Sprintf("run `systemctl %s`",
			strings.Join(s.scoped("status", Unit), " ")), "service: systemctl prints nothing")
	}
	return s.read(p, time.Now()), nil
}

// show returns what systemd knows of a unit.
func (s *Service) show(ctx context.Context, unit string) map[string]string {
	out, err := command(ctx, "systemctl", s.scoped("show", unit, "--property="+strings.Join([]string{
		"LoadState", "ActiveState", "SubState", "Result", "ExecMainStatus", "ExecMainCode", "MainPID", "NRestarts",
		"UnitFileState",
		"FragmentPath", "NeedDaemonReload", "StateChangeTimestamp", "ControlGroup", "LoadError", "ExecStart"}, ","))...)
	p := map[string]string{}
	if err != nil {
		return p
	}
	for line := range strings.SplitSeq(out, "\n") {
		key, value, _ := strings.Cut(line, "=")
		p[key] = value
	}
	return p
}

// read makes a status of what systemd says.
func (s *Service) read(p map[string]string, now time.Time) Status {
	st := Status{Manager: "systemd", System: s.opt.System, File: p["FragmentPath"],
		Enabled: p["UnitFileState"] == "enabled",
		Stale:   p["NeedDaemonReload"] == "yes", Linger: !s.opt.System && Lingers(),
		Program: programOf(p["ExecStart"])}
	st.PID, _ = strconv.Atoi(p["MainPID"]) // 0 = none
	st.Restarts, _ = strconv.Atoi(p["NRestarts"])
	if at, err := time.Parse("Mon 2006-01-02 15:04:05 MST", p["StateChangeTimestamp"]); err == nil { // empty: never
		st.Since = at
	}
	st.Begins = begins(st)
	st.State, st.Why = state(p, st, now)
	return st
}

func begins(st Status) string {
	switch {
	case !st.Enabled:
		return "by hand"
	case st.System || st.Linger:
		return "at boot"
	}
	return "at login"
}

// state returns what systemd's many words come to.
func state(p map[string]string, st Status, now time.Time) (string, string) {
	why := lastEnd(p)
	switch {
	case p["LoadState"] == "not-found":
		return StateAbsent, ""
	case p["LoadState"] != "loaded":
		return StateFailed, "systemd cannot read the unit: " + p["LoadError"]
	}
	switch p["ActiveState"] {
	case "active", "reloading":
		if st.Restarts >= loopCrashes && now.Sub(st.Since) < loopFor {
			return StateLooping,
				fmt.Sprintf("it crashed %d times and came back %d s ago", st.Restarts, int(now.Sub(st.Since).Seconds()))
		}
		return StateRunning, ""
	case "activating":
		switch again := p["SubState"] == "auto-restart"; {
		case again && st.Restarts+1 >= loopCrashes:
			return StateLooping, fmt.Sprintf("%s; it crashed %d times", why, st.Restarts+1)
		case again:
			return StateStarting, why + "; it is started again"
		case st.Restarts >= loopCrashes:
			return StateLooping, fmt.Sprintf("it crashed %d times and is starting again", st.Restarts)
		}
		return StateStarting, ""
	case "deactivating":
		return StateStopping, ""
	case "failed":
		if p["Result"] == "start-limit-hit" {
			return StateFailed, "it crashed again and again, and systemd gave up: the log has the reason"
		}
		return StateFailed, why
	}
	return StateStopped, ""
}

// lastEnd returns how the daemon ended.
func lastEnd(p map[string]string) string {
	switch {
	case p["Result"] == "watchdog":
		return "it hung, and the watchdog ended it"
	case p["Result"] == "timeout":
		return "it did not start or stop in time"
	case p["ExecMainCode"] == "1" && p["ExecMainStatus"] == strconv.Itoa(fault.ExitDamaged):
		return "a journal is damaged: it waits for a person"
	case p["ExecMainCode"] == "1":
		return "it ended with exit code " + p["ExecMainStatus"]
	case p["ExecMainStatus"] != "" && p["ExecMainStatus"] != "0":
		return "it was ended by signal " + p["ExecMainStatus"]
	}
	return "it ended: " + p["Result"]
}

// programOf reads "{ path=… ; argv[]=… }".
func programOf(exec string) string {
	_, rest, _ := strings.Cut(exec, "path=")
	path, _, _ := strings.Cut(rest, " ; argv[]=")
	return path
}

// launchdStatus: launchd tells less.
func (s *Service) launchdStatus() (Status, error) {
	st := Status{Manager: "launchd", File: s.File(), Enabled: true, Begins: "at login", State: StateStopped}
	if _, err := os.Stat(st.File); err != nil {
		st.Enabled, st.Begins, st.State, st.File = false, "by hand", StateAbsent, ""
		return st, nil
	}
	switch is, err := s.order.Status(); {
	case errors.Is(err, service.ErrNotInstalled):
		st.State = StateAbsent
	case err != nil:
		return st, fmt.Errorf("service: %w", err)
	case is == service.StatusRunning:
		st.State = StateRunning
	}
	return st, nil
}
