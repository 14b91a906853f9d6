package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/console"
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

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "a gated pipeline for coding agents, defined in your repo's .workflow/ folder",
		Long: `A workflow is one YAML file: steps that agents carry out, and gates between them that a
command, an agent or a person passes. sluice launches the agents, waits for their signals,
has each step judged, sends failed work back with the reason, and asks you where the file says so.`,
		Example: `sluice demo                    # see the whole thing in a minute: no key, no network
sluice init && sluice run      # in your repo: asks what to build`,
		SilenceUsage: true, SilenceErrors: true, DisableSuggestions: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
	}
	wanted := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *wanted {
			a.Print("%s", versionLine())
			return nil
		}
		return console.Group(cmd, args)
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	pf := root.PersistentFlags()
	pf.StringVarP(&a.dir, "dir", "C", "", "use the repo in `DIR` instead of the current folder")
	pf.BoolVarP(&a.Yes, "yes", "y", false, "answer yes to every question")
	for _, g := range [][2]string{{groupStart, "Begin"}, {groupRun, "Run"}, {groupDecide, "Decide"},
		{groupLook, "Look"}, {groupAgent, "For agents and scripts"}, {groupSetUp, "Set up and maintain"}} {
		root.AddGroup(&cobra.Group{ID: g[0], Title: g[1]})
	}
	add(root, groupStart, demoCommand(a), initCommand(a), importCommand(a), validateCommand(a), fmtCommand(a),
		graphCommand(a))
	add(root, groupRun, runCommand(a), startCommand(a), releaseCommand(a), pauseCommand(a), resumeCommand(a),
		abortCommand(a), retryCommand(a), landCommand(a), triggersCommand(a),
		triggerCommand(a),
		noteCommand(a), takeoverCommand(a), handbackCommand(a))
	add(root, groupDecide, inboxCommand(a), showCommand(a), passCommand(a), failCommand(a), vetoCommand(a),
		decideCommand(a))
	add(root, groupLook, topCommand(a), webCommand(a), lsCommand(a), statusCommand(a), logCommand(a), tailCommand(a),
		attemptCommand(a), explainCommand(a), statsCommand(a), auditCommand(a), attestCommand(a), evidenceCommand(a))
	add(root, groupAgent, nextCommand(a), signalCommand(a), mcpCommand(a), notifyCommand(a))
	add(root, groupSetUp, daemonCommand(a), serviceCommand(a), watchCommand(a), configCommand(a), keysCommand(a),
		clusterCommand(a), workerCommand(a), workersCommand(a), doctorCommand(a), cleanCommand(a), journalCommand(a),
		completionCommand(a), versionCommand(a))
	root.AddCommand(demoAgentCommand(a), standInCommand(a), manCommand(a))
	otherNames(root)
	completeAll(a, root)
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Hidden: true, RunE: a.helpFor})
	root.SetHelpFunc(a.help)
	root.SetFlagErrorFunc(console.FlagFault)
	return root
}

func add(root *cobra.Command, id string, commands ...*cobra.Command) {
	for i, c := range commands {
		c.GroupID = id
		c.Annotations = map[string]string{helpOrder: fmt.Sprintf("%02d", i)}
		root.AddCommand(c)
	}
}

// otherNames gives commands the names they have in other tools: also is understood, hint is
// suggested.
func otherNames(root *cobra.Command) {
	for _, o := range []struct{ name, also, hint string }{
		{"pass", "approve", "accept ok"},
		{"fail", "reject", "deny"},
		{"ls", "list", "ps runs"},
		{"watch ls", "list", ""},
		{"keys ls", "list", ""},
		{"log", "logs", "history events"},
		{"status", "", "stauts statsu st"}, // slips that are nearer to stats
		{"inbox", "", "pending approvals todo"},
		{"show", "", "diff review view"},
		{"top", "", "tui monitor"},
		{"web", "", "ui dashboard browser open"},
		{"tail", "", "follow attach"},
		{"explain", "", "why describe"},
		{"run", "", "exec"},
		{"start", "", "launch trigger dispatch submit"},
		{"abort", "", "stop cancel kill"},
		{"resume", "", "continue unpause"},
		{"retry", "", "rerun restart redo"},
		{"land", "", "merge apply"},
		{"release", "push", "publish"},
		{"init", "", "new create"},
		{"validate", "", "lint check"},
		{"graph", "", "dag draw viz"},
		{"clean", "", "gc prune"},
		{"config", "", "settings set get"},
		{"service", "", "install uninstall"},
		{"daemon", "", "serve server"},
		{"doctor", "", "diagnose"},
	} {
		cmd, _, err := root.Find(strings.Fields(o.name))
		if err != nil {
			panic("sluice: " + err.Error())
		}
		cmd.Aliases, cmd.SuggestFor = strings.Fields(o.also), strings.Fields(o.hint)
	}
}
