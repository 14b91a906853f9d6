package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"sluice/agents/program"
	"sluice/deploy"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/settings"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

// serviceFlags are the common flags of the service commands.
type serviceFlags struct {
	system bool     // the machine's
	linger string   // yes, no, "" = ask
	keep   []string // names of variables for the service's environment
	idle   bool     // not started now
}

func serviceCommand(a *app) *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use:   "service",
		Short: "install and control the daemon as a service",
		Long: `Runs the daemon under systemd (Linux) or launchd (macOS), as your own service or, with --system, as
the machine's with its own user. It starts with your login or with the machine, and again within
seconds after a crash. Agents survive a crash, a restart and an upgrade of the daemon; they end when
the service is stopped.`,
		Example: "sluice service install\nsluice service status",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	sub := func(use, short, long, example string, do func(ctx context.Context, f serviceFlags) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: console.Between(0, 0),
			RunE: func(cmd *cobra.Command, _ []string) error { return do(cmd.Context(), f) }}
		c.Flags().BoolVar(&f.system, "system", false, "the machine's service, with a user of its own (as root)")
		cmd.AddCommand(c)
		return c
	}
	install := sub("install", "install the daemon as a service and start it",
		`Writes a systemd unit (or a launchd property list) and a file with the present environment, above
all PATH: the service looks for agents there. A second install updates both and keeps your own
additions. Asks whether the service should run while you are logged out.`,
		"sluice service install\nsluice service install --linger no --env ANTHROPIC_API_KEY\nsudo sluice service "+
			"install --system", a.serviceInstall)
	install.Flags().StringVar(&f.linger, "linger", "", "`yes|no`: run it while you are logged out; asks if not given")
	install.Flags().StringSliceVar(&f.keep, "env", nil,
		"copy these variables (`NAME,…`) into the service's environment too")
	install.Flags().BoolVar(&f.idle, "no-start", false, "do not start it now")
	sub("uninstall", "remove the service",
		"Stops the service and its agents, and removes what install created.\nJournals, runs and settings stay.",
		"sluice service uninstall\nsudo sluice service uninstall --system", a.serviceUninstall)
	sub("start", "start the service", "Returns when the daemon serves. Runs continue where they were.",
		"sluice service start\nsudo sluice service start --system",
		serviceOrder(a, "started", (*deploy.Service).Start))
	sub("stop", "stop the service and the agents in it",
		"Asks agents to end, and kills them after ten seconds. The next start launches them again,\non top of "+
			"their work.", "sluice service stop\nsudo sluice service stop --system",
		serviceOrder(a, "stopped", (*deploy.Service).Stop))
	sub("restart", "restart the daemon; agents keep running",
		"The daemon then has the new binary and environment. Agents keep running meanwhile.",
		"sluice service restart\nsudo sluice service restart --system",
		serviceOrder(a, "restarted", (*deploy.Service).Restart))
	a.JSONFlag(sub("status", "show the state of the service",
		`Prints running, degraded (a repo has a problem), crash-looping, starting, stopping, stopped, failed
or not installed, and whether the service starts with your login or with the machine. Exits 0 only
if it is running.`,
		"sluice service status\nsluice service status --json", a.serviceStatus))
	ended := sub("ended", "end the remaining agents if the service was stopped on purpose",
		"The unit runs this when the daemon has ended.", "sluice service ended", a.serviceEnded)
	ended.Hidden = true
	return cmd
}

func (f serviceFlags) options(con *console.Console) (opt deploy.Options, err error) {
	opt.System = f.system
	if f.system {
		return opt, nil
	}
	config, err := workspace.ConfigFile(con)
	opt.Home, opt.ConfigDir = con.Getenv("HOME"), filepath.Dir(config)
	return opt, err
}

// open returns the service manager, to change something.
func (f serviceFlags) open(con *console.Console) (*deploy.Service, error) {
	opt, err := f.options(con)
	if err != nil {
		return nil, err
	}
	return deploy.OpenChange(opt)
}

func (f serviceFlags) home(con *console.Console) (string, error) {
	if f.system {
		return deploy.DaemonHome(), nil
	}
	return workspace.Home(con)
}

func (a *app) serviceInstall(ctx context.Context, f serviceFlags) error {
	if err := deploy.CheckProgram(f.system); err != nil {
		return err
	}
	if _, err := f.open(&a.Console); errors.Is(err, deploy.ErrNoManager) { // before any question
		return err
	}
	env, err := serviceEnv(&a.Console, f)
	if err != nil {
		return err
	}
	lingered, err := deploy.SettleLinger(ctx, f.system, f.linger, a.Ask)
	if err != nil {
		return err
	}
	opt, err := f.options(&a.Console)
	if err != nil {
		return err
	}
	opt.Linger = lingered
	s, err := deploy.OpenChange(opt)
	if err != nil {
		return err
	}
	done, err := s.Install(ctx, env)
	if err != nil {
		return err
	}
	printInstalled(&a.Console, done)
	if f.idle {
		return nil
	}
	home, err := f.home(&a.Console)
	if err == nil {
		err = s.Begin(ctx, home, done)
	}
	if err != nil {
		return err
	}
	flag := ""
	if f.system {
		flag = " --system"
	}
	a.Print("it runs; `sluice service status%s` shows its state, `sluice doctor --as-service%s` checks its "+
		"environment", flag, flag)
	return nil
}

func printInstalled(con *console.Console, done deploy.Installed) {
	word := "is up to date"
	switch {
	case done.Fresh:
		word = "is installed"
	case done.Changed:
		word = "was changed"
	}
	con.Print("%s %s", done.File, word)
	if done.EnvFile != "" {
		con.Print("%s has its environment: add what your agents need, one line each", done.EnvFile)
	}
}

func (a *app) serviceUninstall(ctx context.Context, f serviceFlags) error {
	s, err := f.open(&a.Console)
	if err != nil {
		return err
	}
	removed, err := s.Uninstall(ctx)
	for _, what := range removed {
		if what == "linger" {
			a.Print("your services end with your login again, as before")
			continue
		}
		a.Print("%s is removed", what)
	}
	if err != nil {
		return err
	}
	switch {
	case len(removed) == 0 && f.system && s.Packaged():
		a.Print("the package's service is stopped and does not start again; `apt-get remove sluice` removes it")
	case len(removed) == 0:
		a.Print("no service was installed")
	case f.system:
		a.Print("the user %s and %s with its journals stay; `userdel -r %s` removes both", deploy.Name, deploy.SystemHome,
			deploy.Name)
	}
	return nil
}

// serviceOrder sends an order to an installed service.
func serviceOrder(a *app, word string, order func(*deploy.Service, context.Context) error) func(context.Context,
	serviceFlags) error {
	return func(ctx context.Context, f serviceFlags) error {
		s, err := f.open(&a.Console)
		if err != nil {
			return err
		}
		st, err := s.Status(ctx)
		if err != nil {
			return err
		}
		if st.State == deploy.StateAbsent {
			return fault.Failed("`sluice service install` does it", "no service is installed")
		}
		if word == "started" {
			var home string
			if home, err = f.home(&a.Console); err == nil {
				err = s.Alone(ctx, home)
			}
		}
		if err == nil {
			err = order(s, ctx)
		}
		// After a crash the unit runs nothing at a stop.
		if err == nil && word == "stopped" && !f.system {
			err = a.notePutDown(deploy.EndStop)
		}
		if err != nil {
			return err
		}
		a.Print("%s", word)
		return nil
	}
}

func (a *app) serviceEnded(ctx context.Context, f serviceFlags) error {
	why, err := deploy.Ended(ctx, f.system, a.notePutDown)
	if err == nil && why == deploy.EndStop {
		a.Note("the service was stopped: the next start launches its agents again")
	}
	return err
}

// notePutDown records when the service was stopped or the machine went down: an agent that ends
// with them has not failed.
func (a *app) notePutDown(why deploy.End) error {
	home, err := workspace.Home(&a.Console)
	if err == nil {
		err = deploy.NotePutDown(home, why, a.Now())
	}
	return err
}

// serviceEnv returns the service's environment: what agents need, and only the secrets that were
// named.
func serviceEnv(con *console.Console, f serviceFlags) (map[string]string, error) {
	env := deploy.SystemVars() // root's own is not the service's
	if !f.system {
		env = deploy.Vars(con.Env, append(program.HomeVars(), settings.EnvPrefix+"*"))
	}
	return deploy.WithNamed(env, con.Getenv, f.keep)
}

func (a *app) serviceStatus(ctx context.Context, f serviceFlags) error {
	opt, err := f.options(&a.Console)
	if err != nil {
		return err
	}
	s, err := deploy.OpenOwn(opt)
	if err != nil {
		return err
	}
	st, err := s.Look(ctx, func() (string, error) { return f.home(&a.Console) })
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.Document(st)
	} else {
		show.Service(&a.Console, st, version)
	}
	if err == nil && st.State != deploy.StateRunning {
		err = fault.Exit(fault.ExitFailed)
	}
	return err
}
