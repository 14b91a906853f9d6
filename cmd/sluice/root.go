package main

import (
	"errors"
	"fmt"
	"sluice/internal/fault"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Groups of commands, in the order of the help.
const (
	groupStart  = "start"
	groupRun    = "run"
	groupDecide = "decide"
	groupLook   = "look"
	groupAgent  = "agent"
	groupSetUp  = "setup"
)

// helpOrder annotates a command with its place in its group.
const helpOrder = "order"

// rootCommand is the tree of commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "a gated pipeline for coding agents, out of your repo's .workflow/ folder",
		Long: `A workflow is one YAML file: steps that agents carry out, and gates between them that a
command, an agent or a person opens. sluice launches the agents, waits for their signals,
has each step judged, sends failed work back with the reason, and asks you where you said so.`,
		Example: `sluice demo                    # see the whole thing in a minute: no key, no network
sluice init && sluice run gated-pipeline`,
		SilenceUsage: true, SilenceErrors: true, DisableSuggestions: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs, RunE: group,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	pf := root.PersistentFlags()
	pf.StringVarP(&a.dir, "dir", "C", "", "work on the repo in `DIR` instead of the current folder")
	pf.BoolVarP(&a.yes, "yes", "y", false, "answer yes to every question")
	for _, g := range [][2]string{{groupStart, "Begin"}, {groupRun, "Run"}, {groupDecide, "Decide"}, {groupLook, "Look"}, {groupAgent, "For agents and scripts"}, {groupSetUp, "Set up and mend"}} {
		root.AddGroup(&cobra.Group{ID: g[0], Title: g[1]})
	}
	add(root, groupStart, a.demoCommand(), a.initCommand(), a.validateCommand(), a.fmtCommand(), a.graphCommand())
	add(root, groupRun, a.runCommand(), a.startCommand(), a.pushCommand(), a.pauseCommand(), a.resumeCommand(), a.abortCommand(), a.retryCommand(), a.landCommand(),
		a.noteCommand(), a.takeoverCommand(), a.handbackCommand())
	add(root, groupDecide, a.inboxCommand(), a.showCommand(), a.passCommand(), a.failCommand(), a.vetoCommand(), a.decideCommand())
	add(root, groupLook, a.topCommand(), a.lsCommand(), a.statusCommand(), a.logCommand(), a.tailCommand(), a.attemptCommand(), a.explainCommand(), a.auditCommand())
	add(root, groupAgent, a.nextCommand(), a.signalCommand(), a.mcpCommand(), a.notifyCommand())
	add(root, groupSetUp, a.daemonCommand(), a.serviceCommand(), a.watchCommand(), a.configCommand(), a.keysCommand(), a.doctorCommand(), a.cleanCommand(), a.journalCommand(), a.completionCommand(), a.versionCommand())
	root.AddCommand(a.demoAgentCommand(), a.standInCommand(), a.manCommand())
	a.completeAll(root)
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Hidden: true, RunE: a.helpFor})
	root.SetHelpFunc(a.help)
	root.SetFlagErrorFunc(flagFault)
	return root
}

func add(root *cobra.Command, id string, commands ...*cobra.Command) {
	for i, c := range commands {
		c.GroupID = id
		c.Annotations = map[string]string{helpOrder: fmt.Sprintf("%02d", i)}
		root.AddCommand(c)
	}
}

// group is the RunE of a command that only has commands below it: its help, or what was likely meant.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	mend := "`" + cmd.CommandPath() + " --help` lists them"
	if near := nearest(args[0], names); near != "" {
		mend = "did you mean `" + cmd.CommandPath() + " " + near + "`?"
	}
	return fault.Misused(mend, "no command %q", clean(cmd.CommandPath()+" "+args[0]))
}

// flagFault tells a wrong flag and the nearest that there is.
func flagFault(cmd *cobra.Command, err error) error {
	text := err.Error()
	mend := "`" + cmd.CommandPath() + " --help` lists its flags"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		name := unknown.GetSpecifiedName()
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest(name, names); near != "" {
			mend = "did you mean --" + near + "?"
		}
		text = "unknown flag --" + name
	}
	return fault.Misused(mend, "%s: %s", cmd.CommandPath(), text)
}

// between is how many arguments a command takes, told as its usage line says it. most < 0: any number.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		what := "is missing"
		if len(args) > least {
			what = "is too much: " + clean(args[most])
		}
		if len(args) < least {
			what = wanted(cmd, len(args)) + " is missing"
		}
		return fault.Misused("usage: "+cmd.UseLine(), "%s: %s", strings.TrimPrefix(cmd.CommandPath(), "sluice "), what)
	}
}

// wanted is the n-th argument as the usage line names it.
func wanted(cmd *cobra.Command, n int) string {
	words := strings.Fields(cmd.Use)[1:]
	for _, w := range words {
		if strings.HasPrefix(w, "[") || strings.HasPrefix(w, "-") {
			continue
		}
		if n == 0 {
			return w
		}
		n--
	}
	return "an argument"
}

// jsonFlag gives a command --json.
func (a *app) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, for programs")
	return cmd
}
