package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sluice/internal/fault"
	"sluice/tools/printed"
)

// page is a writer as wide as the text blocks of the documents.
type page struct{ strings.Builder }

func (*page) Columns() int { return 100 }

// TestCommandsAreDocumented: docs/commands.md has the help of each command that the help lists.
func TestCommandsAreDocumented(t *testing.T) {
	var out strings.Builder
	root := rootCommand(newApp(nil, nil, nil, nil))
	out.WriteString("- [All](#sluice)\n")
	groups := root.Groups()
	commands := slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.GroupID == "" })
	place := func(c *cobra.Command) string {
		i := slices.IndexFunc(groups, func(g *cobra.Group) bool { return g.ID == c.GroupID })
		return fmt.Sprint(i, c.Annotations[helpOrder])
	}
	slices.SortFunc(commands, func(x, y *cobra.Command) int { return cmp.Compare(place(x), place(y)) })
	for _, g := range groups {
		var names []string
		for _, c := range commands {
			if c.GroupID == g.ID {
				names = append(names, fmt.Sprintf("[%s](#sluice-%s)", c.Name(), c.Name()))
			}
		}
		fmt.Fprintf(&out, "- %s: %s\n", g.Title, strings.Join(names, " "))
	}
	var help func(c *cobra.Command)
	help = func(c *cobra.Command) {
		fmt.Fprintf(&out, "\n## %s\n\n```text\n", c.CommandPath())
		before, _, _ := strings.Cut(helpOf(c), "\nFlags of every command\n")
		out.WriteString(before + "```\n")
		for _, sub := range c.Commands() {
			if c.HasParent() && sub.IsAvailableCommand() {
				help(sub)
			}
		}
	}
	help(root)
	for _, c := range commands {
		help(c)
	}
	printed.Check(t, "../../docs/commands.md", "commands", out.String())
}

// helpOf is what `sluice help` prints of a command.
func helpOf(c *cobra.Command) string {
	var out page
	newApp(nil, nil, &out, &out).help(c, nil)
	return out.String()
}

// TestExitCodesAreDocumented: docs/operate.md has all of them.
func TestExitCodesAreDocumented(t *testing.T) {
	var rows [][]string
	for _, c := range fault.ExitCodes() {
		rows = append(rows, []string{fmt.Sprint(c.Code), strings.ReplaceAll(c.Means, "--timeout", "`--timeout`"), c.More})
	}
	printed.Check(t, "../../docs/operate.md", "exit codes", printed.Table([]string{"code", "meaning", "notes"}, rows))
}
