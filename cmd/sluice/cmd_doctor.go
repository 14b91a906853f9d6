package main

import (
	"cmp"
	"context"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/doctor"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/serve"
	"sluice/internal/settings"
	"sluice/internal/setup"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
)

func doctorCommand(a *app) *cobra.Command {
	var service, system bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check what sluice needs, and fix what it can",
		Long: `Checks git, the repo, .workflow/, its specs and settings, the agents of its roles, notification,
limits on watched folders, the state folder, the journal, the clock, the page's address, and the
process that serves the repo. A warning marks something that works less well than it could; a fault
exits 1. Doctor asks before each fix it can make; --yes answers yes to all. --as-service runs the
checks inside the installed service, where PATH and logins differ from your shell's.`,
		Example: "sluice doctor\nsluice doctor --yes\nsluice doctor --as-service\nsluice doctor --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if system && !service {
				return fault.Misused("sluice doctor --as-service --system", "--system is about the service")
			}
			if service {
				return doctorInService(cmd.Context(), a, system)
			}
			return runDoctor(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVar(&service, "as-service", false, "run the checks inside the installed service")
	cmd.Flags().BoolVar(&system, "system", false, "with --as-service: the machine's service (as root)")
	return a.JSONFlag(cmd)
}

func runDoctor(ctx context.Context, a *app) error {
	checks := allChecks(ctx, a)
	err := doctor.Print(&a.Console, checks)
	if a.JSON {
		return err
	}
	if done, merr := doctor.Fix(ctx, &a.Console, checks); merr != nil || !done {
		return cmp.Or(merr, err)
	}
	a.Print("")
	return doctor.Print(&a.Console, allChecks(ctx, a))
}

func allChecks(ctx context.Context, a *app) []doctor.Check {
	checks := []doctor.Check{doctor.Git(ctx), checkState(&a.Console), doctor.Clock(a.Now())}
	checks = append(checks, doctor.Watching()...)
	checks = append(checks, checkSandbox(ctx, a), checkPage(ctx, &a.Console))
	p, err := a.bare(ctx)
	if err != nil {
		f := explain(err)
		checks = append(checks, doctor.Broken("repo", f.Advice, "%s", f.Cause))
		checks = append(checks, checkNotify(ctx, &a.Console, "")...)
	} else {
		checks = append(checks, checkRepo(ctx, &a.Console, p)...)
		for _, f := range foreignIn(&a.Console, p.Root) {
			checks = append(checks, f.Check())
		}
	}
	return checks
}

func checkState(con *console.Console) doctor.Check {
	home, err := workspace.Home(con)
	if err != nil {
		f := explain(err)
		return doctor.Broken("state", f.Advice, "%s", f.Cause)
	}
	return doctor.StateFolder(home)
}

// checkSandbox tests the sandbox as the daemon does.
func checkSandbox(ctx context.Context, a *app) doctor.Check {
	root := ""
	if p, err := a.bare(ctx); err == nil {
		root = p.Root
	}
	mode, trust := settings.SandboxAuto, ""
	if s, err := workspace.Settings(&a.Console, root, nil); err == nil { // faults: another check
		mode, trust = s.Sandbox.Mode, s.Trust
	}
	return doctor.Sandbox(ctx, &a.Console, mode, trust)
}

// checkPage checks the address of the page: project settings have no say in it.
func checkPage(ctx context.Context, con *console.Console) doctor.Check {
	s, err := workspace.Settings(con, "", nil)
	if err != nil {
		return doctor.Warned("page", "fix the settings first", "not known: the settings cannot be read")
	}
	local := settings.LocalName
	if s.Web.Label != "" {
		local = s.Web.Label + "." + local
	}
	return doctor.Page(ctx, s.Web, local, con.Now(), net.DefaultResolver.LookupHost)
}

// checkNotify returns the ways by which notices reach a person.
func checkNotify(ctx context.Context, con *console.Console, root string) []doctor.Check {
	s, err := workspace.Settings(con, root, nil)
	if err != nil {
		return []doctor.Check{doctor.Warned("notify", "fix the settings first", "not known: the settings cannot be read")}
	}
	self, err := os.Executable()
	if err != nil {
		return []doctor.Check{doctor.Warned("notify", "", "not known: %s", err)}
	}
	return doctor.Notify(ctx, con, root, s.Notify, []string{self, serve.NotifyHelper})
}

// foreignIn finds settings of the documents that are not read, in the environment, the repo and the
// person's folder.
func foreignIn(con *console.Console, root string) []doctor.Foreign {
	config := ""
	if file, err := workspace.ConfigFile(con); err == nil {
		config = filepath.Dir(filepath.Dir(file))
	}
	return doctor.FindForeign(con.Env, root, config)
}

// unignored asks git whether it ignores what runs make and remove; where git cannot say, another check does.
func unignored(ctx context.Context, p *workspace.Workspace) []doctor.Check {
	if p.Plain {
		return nil
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return nil
	}
	defer repo.Close()
	below, err := filepath.Rel(repo.Top(), filepath.Join(p.Root, layout.WorkflowDir))
	if err != nil {
		return nil
	}
	var lines, asked []string
	for _, line := range strings.Fields(setup.Ignored) {
		if strings.HasPrefix(line, "/") && line != "/worktrees/" { // a .gitignore of ours is there
			lines, asked = append(lines, line), append(asked, filepath.Join(below, line, "x"))
		}
	}
	is, err := repo.Ignored(ctx, repo.Top(), asked)
	if err != nil {
		return nil
	}
	var missing []string
	ignore := ""
	for i, line := range lines {
		if !is[asked[i]] {
			missing, ignore = append(missing, path.Join(layout.WorkflowDir, line)), ignore+line+"\n"
		}
	}
	return doctor.Unignored(p.Root, missing, ignore)
}

// rootChecks are about the root: whether it is a git checkout that can be written, with a commit that runs can begin
// from.
func rootChecks(ctx context.Context, p *workspace.Workspace) []doctor.Check {
	if p.Plain {
		return append(doctor.Writable(p.Root, ""), doctor.PlainRoot(p.Root, filepath.Join(p.State, workspace.StoreFolder)))
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return []doctor.Check{doctor.Broken("repo", "look at it with `git status`", "%s", err)}
	}
	defer repo.Close()
	check := doctor.Fine("repo", "%s", p.Root)
	if head, err := repo.Head(ctx, p.Root); err == nil && head == "" {
		check = doctor.Warned("repo", "`git add -A && git commit -m start`: a run sees only what is committed",
			"%s has no commit yet, and a run begins from the last one", p.Root)
	}
	return append(doctor.Writable(p.Root, repo.CommonDir()), check)
}

func checkRepo(ctx context.Context, con *console.Console, p *workspace.Workspace) []doctor.Check {
	out := rootChecks(ctx, p)
	if !workspace.IsDir(filepath.Join(p.Root, layout.WorkflowDir)) {
		lay := doctor.Broken("workflow", "`sluice init` creates one", "no %s/ here",
			layout.WorkflowDir).WithFix("Create a first workflow here (sluice init)?", func(context.Context) error {
			t, err := templateNamed(defaultTemplate)
			var c setup.Choice
			if err == nil {
				err = c.Choose(con, p.Root)
			}
			if err != nil {
				return err
			}
			return layOut(ctx, con, p, t, &c)
		})
		return append(append(out, lay), checkNotify(ctx, con, p.Root)...)
	}
	out = append(out, doctor.Specs(p.Root)...)
	out = append(out, doctor.Schema(p.Root)...)
	out = append(out, unignored(ctx, p)...)
	s, err := workspace.Settings(con, p.Root, nil)
	if err != nil {
		for _, e := range settings.Faults(err) {
			out = append(out, doctor.Broken("settings", "`sluice help config` names the keys", "%s", e))
		}
	} else {
		says := "built-in"
		if len(s.Files) > 0 {
			says = strings.Join(s.Files, ", ")
		}
		out = append(out, doctor.Fine("settings", "%s", says))
		for _, w := range s.Warnings() {
			out = append(out, doctor.Warned("settings", "", "%s", w))
		}
		there := func(spec *engine.Spec) error { return workflows.Ready(con, p, spec, s.Settings, false) }
		out = append(out, doctor.Agents(con, p.Root, s.Settings, there)...)
	}
	out = append(out, checkKeys(ctx, con, p)...)
	out = append(out, checkNotify(ctx, con, p.Root)...)
	return append(out, doctor.Journal(p.State, workspace.Moved(con, p.Root)), checkServed(ctx, p))
}

func checkServed(ctx context.Context, p *workspace.Workspace) doctor.Check {
	s, err := p.Serving(ctx)
	if err != nil {
		f := explain(err)
		return doctor.Broken("served", f.Advice, "%s", f.Cause)
	}
	if s == nil {
		if workspace.IsDir(p.State) {
			var lock *daemon.Lock
			if lock, err = daemon.TakeLock(p.State); err == nil {
				_ = lock.Release() // it was only tried
			}
		}
		if err = cmp.Or(err, daemon.Elsewhere(p.Root)); err != nil {
			f := explain(err)
			return doctor.Broken("served", f.Advice, "%s", f.Cause)
		}
		return doctor.Warned("served", "`sluice run WORKFLOW`, or `sluice watch add` and `sluice daemon`",
			"nobody serves this repo now")
	}
	defer s.Close()
	ping, err := s.Ping(ctx)
	if err != nil {
		return doctor.Broken("served", "look at what that process does", "%s", err)
	}
	if ping.Version != version {
		return doctor.Warned("served", "restart it", "by pid %d, which is sluice %s and not %s", ping.PID,
			clean(ping.Version), version)
	}
	st, err := s.Status(ctx, "")
	if err == nil && st.Stalled != "" {
		return doctor.Broken("served", "make room on the disk of the state folder",
			"by pid %d, but its journal cannot be written: %s", ping.PID, st.Stalled)
	}
	if err == nil && len(st.Health) > 0 {
		return doctor.Warned("served", "", "by pid %d: %s", ping.PID, strings.Join(st.Health, "; "))
	}
	return doctor.Fine("served", "by pid %d since %s", ping.PID, render.Clock(ping.Started))
}
