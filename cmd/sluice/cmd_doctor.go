package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/agents/program"
	cage "sluice/agents/sandbox"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/executor"
	"sluice/internal/fault"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/journal"
	"sluice/specs"
)

func (a *app) doctorCommand() *cobra.Command {
	var service, system bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check what sluice needs, with a mend for each fault",
		Long: `git, the repo, .workflow/, its specs and settings, the agents of its roles, notification, limits on
watched folders, the state folder, the journal, the clock, and who serves the repo. Exit 1 if one
fails; a warning is something that works, but less well than it could. What it can mend itself
it asks about, each by itself; --yes says yes to all. --as-service makes the checks inside the
installed service: its PATH and its logins are not your shell's.`,
		Example: "sluice doctor\nsluice doctor --yes\nsluice doctor --as-service\nsluice doctor --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if system && !service {
				return fault.Misused("sluice doctor --as-service --system", "--system is about the service")
			}
			if service {
				return a.doctorInService(cmd.Context(), system)
			}
			return a.doctor(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&service, "as-service", false, "make the checks inside the installed service")
	cmd.Flags().BoolVar(&system, "system", false, "with --as-service: the machine's (as root)")
	return a.JSONFlag(cmd)
}

// check is what doctor says of one thing.
type check struct {
	What  string `json:"what"`
	State string `json:"state"` // ok, warn, fail
	Says  string `json:"says"`
	Mend  string `json:"mend,omitempty"`

	repair *repair // what can be done about it here
}

func fine(what, format string, args ...any) check {
	return check{What: what, State: "ok", Says: fmt.Sprintf(format, args...)}
}
func warned(what, mend, format string, args ...any) check {
	return check{What: what, State: "warn", Says: fmt.Sprintf(format, args...), Mend: mend}
}
func broken(what, mend, format string, args ...any) check {
	return check{What: what, State: "fail", Says: fmt.Sprintf(format, args...), Mend: mend}
}

func (a *app) doctor(ctx context.Context) error {
	checks := a.checks(ctx)
	err := a.printChecks(checks)
	if a.JSON {
		return err
	}
	if done, merr := a.mends(ctx, checks); merr != nil || !done {
		return cmp.Or(merr, err)
	}
	a.Print("")
	return a.printChecks(a.checks(ctx))
}

// checks looks at everything.
func (a *app) checks(ctx context.Context) []check {
	checks := []check{a.checkGit(ctx), a.checkState(), a.checkClock()}
	checks = append(checks, watchLimits()...)
	checks = append(checks, a.checkSandbox(ctx))
	p, err := a.bare(ctx)
	if err != nil {
		f := explain(err)
		checks = append(checks, broken("repo", f.Advice, "%s", f.Cause))
		checks = append(checks, a.checkNotify(ctx, "")...)
	} else {
		checks = append(checks, a.checkRepo(ctx, p)...)
		checks = append(checks, a.checkForeign(p.root)...)
	}
	return checks
}

func (a *app) printChecks(checks []check) error {
	failures := 0
	for _, c := range checks {
		if c.State == "fail" {
			failures++
		}
	}
	if a.JSON {
		if err := a.Document(map[string]any{"ok": failures == 0, "checks": checks}); err != nil {
			return err
		}
	} else {
		for _, c := range checks {
			style := map[string]string{"ok": console.Green, "warn": console.Yellow, "fail": console.Red}[c.State]
			a.Print("%s  %s  %s", a.Paint(style, console.Pad(c.State, 4)), console.Pad(c.What, 10), oneLine(c.Says))
			if c.Mend != "" {
				a.Print("%s %s", strings.Repeat(" ", 17), a.Paint(console.Dim, "→ "+oneLine(c.Mend)))
			}
		}
	}
	if failures > 0 {
		return fault.Exit(fault.ExitFailed)
	}
	return nil
}

// gitMinor: the oldest git that has all that is asked of it is 2.36.
const gitMinor = 36

func (a *app) checkGit(ctx context.Context) check {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "version").Output()
	if err != nil {
		return broken("git", "install git (2.36 or newer) and see that it is on PATH", "%s", err)
	}
	m := regexp.MustCompile(`(\d+)\.(\d+)`).FindStringSubmatch(string(out))
	if m == nil {
		return warned("git", "", "its version cannot be read: %s", clean(string(out)))
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2])
	if major < 2 || major == 2 && minor < gitMinor {
		return broken("git", "upgrade it to 2.36 or newer", "%s is too old", m[0])
	}
	return fine("git", "%s", clean(string(out)))
}

func (a *app) checkState() check {
	home, err := a.stateHome()
	if err != nil {
		f := explain(err)
		return broken("state", f.Advice, "%s", f.Cause)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return broken("state", "make it writable, or set XDG_STATE_HOME", "%s", err)
	}
	info, err := os.Stat(home)
	if err != nil {
		return broken("state", "make it readable, or set XDG_STATE_HOME", "%s", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return warned("state", "chmod 700 "+home, "%s may be read by others (%s): journals and tokens lie there", home, info.Mode().Perm()).
			by("Let nobody else read "+home+"?", func(context.Context) error { return os.Chmod(home, 0o700) })
	}
	f, err := os.CreateTemp(home, ".doctor-*")
	if err != nil {
		return broken("state", "make room, or make it writable", "%s", err)
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(make([]byte, 4096)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return broken("state", "make room on that disk: without it nothing is started", "%s", err)
	}
	return fine("state", "%s", home)
}

// clockFloor is before any release: a clock that is earlier was never set.
const clockFloor = 2025

// checkSandbox tries the sandbox out as the daemon does.
func (a *app) checkSandbox(ctx context.Context) check {
	root := ""
	if p, err := a.bare(ctx); err == nil {
		root = p.root
	}
	mode, want := executor.SandboxAuto, ""
	if s, err := a.settingsOf(root, nil); err == nil { // faults are told by another check
		mode, want = s.Sandbox.Mode, s.Trust
	}
	if mode == executor.SandboxOff {
		return warned("sandbox", "sandbox.mode: auto in your settings holds them", "off: "+text.Unheld+": nothing stands between them and a gate")
	}
	self, err := os.Executable()
	if err != nil {
		return broken("sandbox", "", "%v", err)
	}
	box, err := cage.Find(ctx, self, "")
	const mend = "docs/trust.md says what it takes"
	switch {
	case err == nil:
		return fine("sandbox", "%s holds: an agent can answer no gate", box.Program())
	case mode == executor.SandboxOn || want == engine.TrustSandbox || want == engine.TrustSigned:
		return a.withBubblewrap(broken("sandbox", mend, "%v: the settings want one, so nothing is launched", err))
	}
	return a.withBubblewrap(warned("sandbox", mend, "%v: "+text.Unheld, err))
}

func (a *app) checkClock() check {
	now := a.Now()
	if now.Year() < clockFloor {
		return broken("clock", "set it: veto windows and deadlines go by it", "it says %s", now.Format(time.DateTime))
	}
	return fine("clock", "%s", now.Format("2006-01-02 15:04:05 MST"))
}

// checkPlain tells of a root that is no git checkout, or was none when sluice was first used in it.
func (p *place) checkPlain() check {
	if _, err := os.Lstat(filepath.Join(p.root, ".git")); err == nil {
		return warned("repo", "remove the .git if an agent made it; if you did, end the runs and remove "+filepath.Join(p.state, storeFolder),
			"%s: there is a .git now, which does not count: sluice keeps trees in a store of its own here", p.root)
	}
	return fine("repo", "%s, no git checkout: no branches, worktrees and landing", p.root)
}

func (a *app) checkRepo(ctx context.Context, p *place) []check {
	out := []check{fine("repo", "%s", p.root)}
	if p.plain {
		out[0] = p.checkPlain()
	}
	if !isDir(filepath.Join(p.root, workflowDir)) {
		lay := broken("workflow", "`sluice init` lays one out", "no %s/ here", workflowDir).by("Lay out a first workflow here (sluice init)?", func(context.Context) error {
			t, err := templateNamed(defaultTemplate)
			var c choice
			if err == nil {
				err = a.choose(p.root, &c)
			}
			if err != nil {
				return err
			}
			return a.layOut(p.root, t, &c)
		})
		return append(append(out, lay), a.checkNotify(ctx, p.root)...)
	}
	out = append(out, a.checkSpecs(p)...)
	s, err := a.settingsOf(p.root, nil)
	if err != nil {
		out = append(out, settingsChecks(err)...)
	} else {
		says := "built-in"
		if len(s.files) > 0 {
			says = strings.Join(s.files, ", ")
		}
		out = append(out, fine("settings", "%s", says))
		for _, w := range s.Warnings() {
			out = append(out, warned("settings", "", "%s", w))
		}
		out = append(out, a.checkAgents(p, s)...)
	}
	out = append(out, a.checkKeys(ctx, p)...)
	out = append(out, a.checkNotify(ctx, p.root)...)
	return append(out, a.checkJournal(p), a.checkServed(ctx, p))
}

func settingsChecks(err error) []check {
	var out []check
	for _, e := range faultsIn(err) {
		out = append(out, broken("settings", "`sluice help config` names the keys", "%s", e))
	}
	return out
}

func (a *app) checkSpecs(p *place) []check {
	files, err := specs.Find(p.root)
	if err != nil {
		return []check{broken("specs", "make the folder readable", "%s", err)}
	}
	if len(files) == 0 {
		return []check{broken("specs", "`sluice init` makes a first one", "none in %s/", specsDir)}
	}
	var out []check
	good := 0
	for _, f := range files {
		if _, faults := specs.LoadFile(f); len(faults) > 0 {
			out = append(out, broken("specs", "`sluice validate` tells all", "%s%s", faults[0], more(len(faults)-1)))
			continue
		}
		good++
	}
	if good > 0 {
		out = append(out, fine("specs", "%s valid", plural(good, "spec")))
	}
	return out
}

func (a *app) checkAgents(p *place, s *settings) []check {
	files, err := specs.Find(p.root)
	if err != nil {
		return nil // said already
	}
	var out []check
	said := map[string]bool{}
	for _, f := range files {
		spec, faults := specs.LoadFile(f)
		if len(faults) > 0 {
			continue
		}
		if err := a.agentsThere(p, spec, s.Settings, false); err != nil {
			if x := explain(err); !said[x.Cause] {
				said[x.Cause] = true
				out = append(out, broken("agents", x.Advice, "%s", x.Cause))
			}
		}
	}
	if len(out) == 0 {
		out = append(out, fine("agents", "those of all roles are there"))
	}
	out = append(out, a.checkNative(p, s)...)
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		if args := s.Roles[name].Args; len(args) > 0 {
			out = append(out, fine("agents", "role %s: its agents are launched with %s", name, clean(strings.Join(args, " "))))
		}
	}
	return append(out, a.checkLogins(p, s)...)
}

// checkNative names the programs behind launchers from npm: they are what is started.
func (a *app) checkNative(p *place, s *settings) []check {
	var out []check
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		agent := s.Agents[name]
		if len(agent.Command) == 0 || !program.Known(agent.Format) {
			continue
		}
		file, err := a.lookFor(p.root, agent.Command[0])
		if err != nil {
			continue // nobody's role, or said already
		}
		if native := program.Native(agent.Format, file); native != file {
			out = append(out, fine("agents", "%s starts %s, the program behind %s", name, clean(native), clean(file)))
		} else {
			out = append(out, fine("agents", "%s starts %s", name, clean(file)))
		}
	}
	return out
}

func (a *app) checkJournal(p *place) check {
	if !isFile(filepath.Join(p.state, journal.FileName)) {
		return fine("journal", "none yet: nothing ever ran here")
	}
	rep, err := journal.Verify(p.state, journal.Options{})
	var damage *journal.Damage
	if errors.As(err, &damage) {
		return broken("journal", fmt.Sprintf("look at it, then `sluice journal repair --to %d`", damage.Good), "%s", err)
	}
	if err != nil {
		return broken("journal", "make it readable", "%s", err)
	}
	return fine("journal", "%s, %s, whole", plural(int(rep.Records), "line"), size(rep.Bytes))
}

func (a *app) checkServed(ctx context.Context, p *place) check {
	s, err := serving(ctx, p)
	if err != nil {
		f := explain(err)
		return broken("served", f.Advice, "%s", f.Cause)
	}
	if s == nil && !isDir(p.state) {
		return warned("served", "`sluice run WORKFLOW`, or `sluice watch add` and `sluice daemon`", "nobody serves this repo now")
	}
	if s == nil {
		lock, err := daemon.TakeLock(p.state)
		if err != nil {
			return broken("served", "end that process, or let it come to its end", "%s", err)
		}
		_ = lock.Release() // it was only tried
		return warned("served", "`sluice run WORKFLOW`, or `sluice watch add` and `sluice daemon`", "nobody serves this repo now")
	}
	defer s.Close()
	ping, err := s.Ping(ctx)
	if err != nil {
		return broken("served", "see what that process does", "%s", err)
	}
	if ping.Version != version {
		return warned("served", "start it anew", "by pid %d, which is sluice %s and not %s", ping.PID, clean(ping.Version), version)
	}
	st, err := s.Status(ctx, "")
	if err == nil && st.Stalled != "" {
		return broken("served", "make room on the disk of the state folder", "by pid %d, but its journal cannot be written: %s", ping.PID, st.Stalled)
	}
	if err == nil && len(st.Health) > 0 {
		return warned("served", "", "by pid %d: %s", ping.PID, strings.Join(st.Health, "; "))
	}
	return fine("served", "by pid %d since %s", ping.PID, render.Clock(ping.Started))
}
