package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/agents"
	"sluice/agents/program"
	cage "sluice/agents/sandbox"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/doctor"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/settings"
	"sluice/internal/setup"
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

func (a *app) doctor(ctx context.Context) error {
	checks := a.checks(ctx)
	err := doctor.Print(&a.Console, checks)
	if a.JSON {
		return err
	}
	if done, merr := doctor.Fix(ctx, &a.Console, checks); merr != nil || !done {
		return cmp.Or(merr, err)
	}
	a.Print("")
	return doctor.Print(&a.Console, a.checks(ctx))
}

// checks looks at everything.
func (a *app) checks(ctx context.Context) []doctor.Check {
	checks := []doctor.Check{doctor.Git(ctx), a.checkState(), doctor.Clock(a.Now())}
	checks = append(checks, doctor.Watching()...)
	checks = append(checks, a.checkSandbox(ctx))
	p, err := a.bare(ctx)
	if err != nil {
		f := explain(err)
		checks = append(checks, doctor.Broken("repo", f.Advice, "%s", f.Cause))
		checks = append(checks, a.checkNotify(ctx, "")...)
	} else {
		checks = append(checks, a.checkRepo(ctx, p)...)
		checks = append(checks, a.checkForeign(p.root)...)
	}
	return checks
}

func (a *app) checkState() doctor.Check {
	home, err := a.stateHome()
	if err != nil {
		f := explain(err)
		return doctor.Broken("state", f.Advice, "%s", f.Cause)
	}
	return doctor.StateFolder(home)
}

// checkSandbox tries the sandbox out as the daemon does.
func (a *app) checkSandbox(ctx context.Context) doctor.Check {
	root := ""
	if p, err := a.bare(ctx); err == nil {
		root = p.root
	}
	mode, want := settings.SandboxAuto, ""
	if s, err := a.settingsOf(root, nil); err == nil { // faults are told by another check
		mode, want = s.Sandbox.Mode, s.Trust
	}
	if mode == settings.SandboxOff {
		return doctor.Warned("sandbox", "sandbox.mode: auto in your settings holds them", "off: "+text.Unheld+": nothing stands between them and a gate")
	}
	self, err := os.Executable()
	if err != nil {
		return doctor.Broken("sandbox", "", "%v", err)
	}
	box, err := cage.Find(ctx, self, "")
	const mend = "docs/trust.md says what it takes"
	switch {
	case err == nil:
		return doctor.Fine("sandbox", "%s holds: an agent can answer no gate", box.Program())
	case mode == settings.SandboxOn || want == engine.TrustSandbox || want == engine.TrustSigned:
		return doctor.WithBubblewrap(&a.Console, doctor.Broken("sandbox", mend, "%v: the settings want one, so nothing is launched", err))
	}
	return doctor.WithBubblewrap(&a.Console, doctor.Warned("sandbox", mend, "%v: "+text.Unheld, err))
}

// checkPlain tells of a root that is no git checkout, or was none when sluice was first used in it.
func (p *place) checkPlain() doctor.Check {
	if _, err := os.Lstat(filepath.Join(p.root, ".git")); err == nil {
		return doctor.Warned("repo", "remove the .git if an agent made it; if you did, end the runs and remove "+filepath.Join(p.state, storeFolder),
			"%s: there is a .git now, which does not count: sluice keeps trees in a store of its own here", p.root)
	}
	return doctor.Fine("repo", "%s, no git checkout: no branches, worktrees and landing", p.root)
}

func (a *app) checkRepo(ctx context.Context, p *place) []doctor.Check {
	out := []doctor.Check{doctor.Fine("repo", "%s", p.root)}
	if p.plain {
		out[0] = p.checkPlain()
	}
	if !isDir(filepath.Join(p.root, workflowDir)) {
		lay := doctor.Broken("workflow", "`sluice init` lays one out", "no %s/ here", workflowDir).WithFix("Lay out a first workflow here (sluice init)?", func(context.Context) error {
			t, err := templateNamed(defaultTemplate)
			var c setup.Choice
			if err == nil {
				err = c.Choose(&a.Console, p.root)
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
		out = append(out, doctor.Fine("settings", "%s", says))
		for _, w := range s.Warnings() {
			out = append(out, doctor.Warned("settings", "", "%s", w))
		}
		out = append(out, a.checkAgents(p, s)...)
	}
	out = append(out, a.checkKeys(ctx, p)...)
	out = append(out, a.checkNotify(ctx, p.root)...)
	return append(out, a.checkJournal(p), a.checkServed(ctx, p))
}

func settingsChecks(err error) []doctor.Check {
	var out []doctor.Check
	for _, e := range faultsIn(err) {
		out = append(out, doctor.Broken("settings", "`sluice help config` names the keys", "%s", e))
	}
	return out
}

func (a *app) checkSpecs(p *place) []doctor.Check {
	files, err := specs.Find(p.root)
	if err != nil {
		return []doctor.Check{doctor.Broken("specs", "make the folder readable", "%s", err)}
	}
	if len(files) == 0 {
		return []doctor.Check{doctor.Broken("specs", "`sluice init` makes a first one", "none in %s/", specsDir)}
	}
	var out []doctor.Check
	good := 0
	for _, f := range files {
		if _, faults := specs.LoadFile(f); len(faults) > 0 {
			out = append(out, doctor.Broken("specs", "`sluice validate` tells all", "%s%s", faults[0], more(len(faults)-1)))
			continue
		}
		good++
	}
	if good > 0 {
		out = append(out, doctor.Fine("specs", "%s valid", plural(good, "spec")))
	}
	return out
}

func (a *app) checkAgents(p *place, s *layered) []doctor.Check {
	files, err := specs.Find(p.root)
	if err != nil {
		return nil // said already
	}
	var out []doctor.Check
	said := map[string]bool{}
	for _, f := range files {
		spec, faults := specs.LoadFile(f)
		if len(faults) > 0 {
			continue
		}
		if err := a.agentsThere(p, spec, s.Settings, false); err != nil {
			if x := explain(err); !said[x.Cause] {
				said[x.Cause] = true
				out = append(out, doctor.Broken("agents", x.Advice, "%s", x.Cause))
			}
		}
	}
	if len(out) == 0 {
		out = append(out, doctor.Fine("agents", "those of all roles are there"))
	}
	out = append(out, a.checkNative(p, s)...)
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		if args := s.Roles[name].Args; len(args) > 0 {
			out = append(out, doctor.Fine("agents", "role %s: its agents are launched with %s", name, clean(strings.Join(args, " "))))
		}
	}
	return append(out, a.checkLogins(p, s)...)
}

// checkNative names the programs behind launchers from npm: they are what is started.
func (a *app) checkNative(p *place, s *layered) []doctor.Check {
	var out []doctor.Check
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		agent := s.Agents[name]
		if len(agent.Command) == 0 || !program.Known(agent.Format) {
			continue
		}
		file, err := agents.LookUp(agent.Command[0], a.Env, p.root)
		if err != nil {
			continue // nobody's role, or said already
		}
		if native := program.Native(agent.Format, file); native != file {
			out = append(out, doctor.Fine("agents", "%s starts %s, the program behind %s", name, clean(native), clean(file)))
		} else {
			out = append(out, doctor.Fine("agents", "%s starts %s", name, clean(file)))
		}
	}
	return out
}

func (a *app) checkJournal(p *place) doctor.Check {
	if !layout.IsFile(filepath.Join(p.state, journal.FileName)) {
		return doctor.Fine("journal", "none yet: nothing ever ran here")
	}
	rep, err := journal.Verify(p.state, journal.Options{})
	var damage *journal.Damage
	if errors.As(err, &damage) {
		return doctor.Broken("journal", fmt.Sprintf("look at it, then `sluice journal repair --to %d`", damage.Good), "%s", err)
	}
	if err != nil {
		return doctor.Broken("journal", "make it readable", "%s", err)
	}
	return doctor.Fine("journal", "%s, %s, whole", plural(int(rep.Records), "line"), render.Size(rep.Bytes))
}

func (a *app) checkServed(ctx context.Context, p *place) doctor.Check {
	s, err := serving(ctx, p)
	if err != nil {
		f := explain(err)
		return doctor.Broken("served", f.Advice, "%s", f.Cause)
	}
	if s == nil && !isDir(p.state) {
		return doctor.Warned("served", "`sluice run WORKFLOW`, or `sluice watch add` and `sluice daemon`", "nobody serves this repo now")
	}
	if s == nil {
		lock, err := daemon.TakeLock(p.state)
		if err != nil {
			return doctor.Broken("served", "end that process, or let it come to its end", "%s", err)
		}
		_ = lock.Release() // it was only tried
		return doctor.Warned("served", "`sluice run WORKFLOW`, or `sluice watch add` and `sluice daemon`", "nobody serves this repo now")
	}
	defer s.Close()
	ping, err := s.Ping(ctx)
	if err != nil {
		return doctor.Broken("served", "see what that process does", "%s", err)
	}
	if ping.Version != version {
		return doctor.Warned("served", "start it anew", "by pid %d, which is sluice %s and not %s", ping.PID, clean(ping.Version), version)
	}
	st, err := s.Status(ctx, "")
	if err == nil && st.Stalled != "" {
		return doctor.Broken("served", "make room on the disk of the state folder", "by pid %d, but its journal cannot be written: %s", ping.PID, st.Stalled)
	}
	if err == nil && len(st.Health) > 0 {
		return doctor.Warned("served", "", "by pid %d: %s", ping.PID, strings.Join(st.Health, "; "))
	}
	return doctor.Fine("served", "by pid %d since %s", ping.PID, render.Clock(ping.Started))
}
