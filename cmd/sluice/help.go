package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/internal/console"
	"sluice/internal/fault"
)

func (a *app) helpFor(cmd *cobra.Command, args []string) error {
	root := cmd.Root()
	found, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		advice := "`sluice help` lists the commands"
		if near := console.Meant(root, args[0]); near != "" {
			advice = "did you mean `sluice help " + near + "`?"
		}
		return fault.Misused(advice, "no command %q", clean(strings.Join(args, " ")))
	}
	a.help(found, nil)
	return nil
}

// help prints what a command does, when to use it, two examples and its flags.
func (a *app) help(cmd *cobra.Command, _ []string) {
	a.Print("%s - %s", a.Paint(console.Bold, cmd.CommandPath()), cmd.Short)
	if cmd.Long != "" {
		a.Print("\n%s", cmd.Long)
	}
	helpHead(&a.Console, "Usage")
	if cmd.HasAvailableSubCommands() {
		a.Print("  %s COMMAND", cmd.CommandPath())
	} else {
		a.Print("  %s", cmd.UseLine())
	}
	if len(cmd.Aliases) > 0 {
		a.Print("  Also called: %s", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Example != "" {
		helpHead(&a.Console, "Examples")
		a.Print("%s", indent(cmd.Example))
	}
	helpCommands(&a.Console, cmd)
	if cmd.HasAvailableLocalFlags() {
		helpFlags(&a.Console, "Flags", cmd.LocalFlags())
	}
	if cmd.HasAvailableInheritedFlags() {
		helpFlags(&a.Console, "Flags of every command", cmd.InheritedFlags())
	}
	if cmd.Parent() == nil {
		helpHead(&a.Console, "Exit codes")
		a.PrintWrapped(2, console.Styled(exitCodes(" · "), console.Plain))
		a.Print("\n`sluice help COMMAND` describes a command.")
	}
}

func helpHead(con *console.Console, title string) { con.Print("\n%s", con.Paint(console.Bold, title)) }

func helpCommands(con *console.Console, cmd *cobra.Command) {
	width := 0
	for _, c := range cmd.Commands() {
		width = max(width, len(c.Name()))
	}
	commands := slices.Clone(cmd.Commands())
	slices.SortStableFunc(commands, func(x, y *cobra.Command) int {
		return strings.Compare(x.Annotations[helpOrder], y.Annotations[helpOrder])
	})
	groups := cmd.Groups()
	if len(groups) == 0 && cmd.HasAvailableSubCommands() {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		helpHead(con, g.Title)
		t := &console.Table{Indent: 2, Columns: []console.Column{{Least: width}, {Fit: console.Wrapped}}}
		for _, c := range commands {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				t.Row(console.Styled(c.Name(), console.Plain), console.Styled(c.Short, console.Plain))
			}
		}
		con.PrintTable(t)
	}
}

func helpFlags(con *console.Console, title string, flags *pflag.FlagSet) {
	t := &console.Table{Indent: 2, Columns: []console.Column{{}, {Fit: console.Wrapped}}}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		left := "    --" + f.Name
		if f.Shorthand != "" {
			left = "-" + f.Shorthand + ", --" + f.Name
		}
		if kind != "" {
			left += " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && f.DefValue != "0s" {
			usage += " (" + f.DefValue + ")"
		}
		t.Row(console.Styled(left, console.Plain), console.Styled(usage, console.Plain))
	})
	helpHead(con, title)
	con.PrintTable(t)
}

// exitCodes lists the exit codes in brief.
func exitCodes(sep string) string {
	var out []string
	for _, c := range fault.ExitCodes() {
		out = append(out, fmt.Sprintf("%d %s", c.Code, c.Means))
	}
	return strings.Join(out, sep)
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }
