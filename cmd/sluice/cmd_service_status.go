package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/deploy"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
)

// serviceState is how the service stands: what its manager says, and what the daemon in it does.
type serviceState struct {
	deploy.Status
	Version string             `json:"version,omitempty"` // of the daemon that answers
	Repos   []daemon.RepoState `json:"repos"`
}

func (a *app) serviceStatus(ctx context.Context, f serviceFlags) error {
	s, err := openService(&a.Console, f, false, false)
	if err != nil {
		return err
	}
	st := serviceState{Repos: []daemon.RepoState{}}
	if st.Status, err = s.Status(ctx); err != nil {
		return err
	}
	if st.State == deploy.StateRunning {
		lookInside(ctx, &a.Console, &st)
	}
	if a.JSON {
		err = a.Document(st)
	} else {
		printService(&a.Console, st)
	}
	if err == nil && st.State != deploy.StateRunning {
		err = fault.Exit(fault.ExitFailed)
	}
	return err
}

// serviceHome is the state folder of the service's daemon.
func serviceHome(con *console.Console, system bool) (string, error) {
	if system {
		return filepath.Join(deploy.SystemHome, ".local", "state", "sluice"), nil
	}
	return stateHome(con)
}

// lookInside asks the daemon. The manager knows a process; whether it serves only the daemon can tell.
func lookInside(ctx context.Context, con *console.Console, st *serviceState) {
	home, err := serviceHome(con, st.System)
	if err != nil {
		st.Why = "how its repos are is not known: " + err.Error()
		return
	}
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	within, cancel := context.WithTimeout(ctx, pingIn)
	defer cancel()
	ping, err := c.Ping(within)
	switch {
	case errors.Is(err, daemon.ErrNotServed) && st.System && !isDir(home):
		st.Why = "how its repos are is told to root alone"
		return
	case err != nil:
		st.State, st.Why = deploy.StateDegraded, "the daemon does not answer: "+err.Error()
		return
	case ping.PID != st.PID:
		st.State, st.Why = deploy.StateDegraded, "another daemon than the service's answers: end it (pid "+strconv.Itoa(ping.PID)+")"
		return
	}
	st.Version = ping.Version
	repos, err := c.Repos(within)
	if err != nil {
		st.State, st.Why = deploy.StateDegraded, "the daemon does not tell of its repos: "+err.Error()
		return
	}
	st.Repos = append(st.Repos, repos...)
	unwell := 0
	for _, r := range repos {
		if !r.Served || len(r.Health) > 0 {
			unwell++
		}
	}
	if unwell > 0 {
		st.State, st.Why = deploy.StateDegraded, plural(unwell, "repo")+" of "+strconv.Itoa(len(repos))+" not well"
	}
}

func printService(con *console.Console, st serviceState) {
	style := map[string]string{deploy.StateRunning: console.Green, deploy.StateStopped: console.Dim, deploy.StateAbsent: console.Dim, deploy.StateFailed: console.Red, deploy.StateLooping: console.Red}[st.State]
	if style == "" {
		style = console.Yellow
	}
	head := con.Paint(style, st.State)
	if !st.Since.IsZero() && st.State != deploy.StateAbsent {
		head += " for " + render.Ago(con.Now().Sub(st.Since).Round(time.Second))
	}
	if st.PID > 0 {
		head += ", pid " + strconv.Itoa(st.PID)
	}
	if st.Restarts > 0 {
		head += ", started again " + plural(st.Restarts, "time") + " after a crash"
	}
	con.Print("%s", head)
	if st.Why != "" {
		con.Print("  %s", oneLine(st.Why))
	}
	for _, r := range st.Repos {
		switch {
		case !r.Served:
			con.Print("  %s  %s: %s", con.Paint(console.Red, "not served"), r.Root, oneLine(r.Why))
		case len(r.Health) > 0:
			con.Print("  %s  %s: %s", con.Paint(console.Yellow, "unwell"), r.Root, oneLine(strings.Join(r.Health, "; ")))
		default:
			con.Print("  %s  %s", con.Paint(console.Green, "served"), r.Root)
		}
	}
	printUnit(con, st)
}

// printUnit tells of the service as it is installed.
func printUnit(con *console.Console, st serviceState) {
	flag := ""
	if st.System {
		flag = " --system"
	}
	if st.State == deploy.StateAbsent {
		con.Note("`sluice service install%s` installs it", flag)
		return
	}
	con.Print("  begins %s, by %s (%s)", st.Begins, st.Manager, st.File)
	if st.Begins == "at login" && st.Manager == "systemd" {
		con.Note("it ends with your last login: `sluice service install --linger yes` has it run on")
	}
	if st.Stale {
		con.Note("the unit was changed by hand: `sluice service install%s` has it read again", flag)
	}
	if st.Version != "" && st.Version != version {
		con.Note("the daemon is sluice %s and this is %s: `sluice service restart%s`; agents go on", clean(st.Version), version, flag)
	}
	if st.State != deploy.StateRunning && st.Manager == "systemd" {
		log := "journalctl --user -u sluice"
		if st.System {
			log = "journalctl -u sluice"
		}
		con.Note("its log: %s", log)
	}
}
