package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/internal/console"
)

// manCommand writes the man pages of all commands. It is for packages, so the help hides it.
func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "write the man pages of all commands",
		Long:   "Writes one page per command below DIR, dated by SOURCE_DATE_EPOCH if that is set.",
		Hidden: true,
		Args:   console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := a.Now()
			if sec, err := strconv.ParseInt(a.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
				at = time.Unix(sec, 0)
			}
			return manPages(cmd.Root(), args[0], at.UTC().Format(time.DateOnly))
		},
	}
}

func manPages(cmd *cobra.Command, dir, date string) error {
	file := filepath.Join(dir, manName(cmd)+".1")
	if err := os.WriteFile(file, []byte(manPage(cmd, date)), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			if err := manPages(c, dir, date); err != nil {
				return err
			}
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the man page of a command, from its help.
func manPage(cmd *cobra.Command, date string) string {
	var b strings.Builder
	out := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	out(`.TH %s 1 %s "sluice %s" "sluice"`, strings.ToUpper(roff(manName(cmd))), date, roff(version))
	out(".SH NAME\n%s \\- %s", roff(manName(cmd)), roff(cmd.Short))
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " COMMAND"
	}
	out(".SH SYNOPSIS\n%s", roff(use))
	if cmd.Long != "" {
		out(".SH DESCRIPTION\n%s", roff(cmd.Long))
	}
	if cmd.HasAvailableSubCommands() {
		out(".SH COMMANDS")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				out(".TP\n.BR %s (1)\n%s", roff(manName(c)), roff(c.Short))
			}
		}
	}
	manFlags(out, "OPTIONS", cmd.LocalNonPersistentFlags())
	manFlags(out, "OPTIONS OF EVERY COMMAND", cmd.Root().PersistentFlags())
	if cmd.Example != "" {
		out(".SH EXAMPLES\n.nf\n%s\n.fi", roff(cmd.Example))
	}
	if cmd.HasParent() {
		out(".SH SEE ALSO\n.BR %s (1)", roff(manName(cmd.Parent())))
	} else {
		out(".SH EXIT STATUS\n%s.", roff(exitCodes(", ")))
	}
	return b.String()
}

func manFlags(out func(string, ...any), title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	out(".SH %s", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		out(".TP\n.B %s\n%s", roff(strings.TrimSpace(name+" "+kind)), roff(usage))
	})
}

// roff escapes text: a line that begins with a dot or a quote would be a command.
func roff(s string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
