package console

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/internal/fault"
	"sluice/internal/text"
)

// Group is the RunE of a command that only has commands below it: its help, or what was likely meant.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	advice := "`" + cmd.CommandPath() + " --help` lists them"
	if near := Meant(cmd, args[0]); near != "" {
		advice = "did you mean `" + cmd.CommandPath() + " " + near + "`?"
	}
	return fault.Misused(advice, "no command %q", text.Line(cmd.CommandPath()+" "+args[0]))
}

// Meant returns the command below cmd that other tools call name, or the nearest; "" if none is near.
func Meant(cmd *cobra.Command, name string) string {
	var names []string
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, name) {
			return c.Name()
		}
		if !c.Hidden {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	return text.Meant(name, names)
}

// FlagFault reports a wrong flag and suggests the nearest.
func FlagFault(cmd *cobra.Command, err error) error {
	what := err.Error()
	advice := "`" + cmd.CommandPath() + " --help` lists its flags"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		name := unknown.GetSpecifiedName()
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		advice = text.MeantOr(advice, "--", name, names)
		what = "unknown flag --" + name
	}
	return fault.Misused(advice, "%s: %s", cmd.CommandPath(), what)
}

// Between is how many arguments a command takes, told as its usage line says it. most < 0: any number.
func Between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		missing := wanted(cmd, len(args))
		what, advice := missing+" is missing", "usage: "+cmd.UseLine()
		if len(args) > least {
			what = "unexpected argument: " + text.Line(args[most])
		} else if list := lists(missing); list != "" {
			advice += "; " + list
		}
		return fault.Misused(advice, "%s: %s", cmd.CommandPath(), what)
	}
}

// lists says which command lists the values that an argument can have; empty if none does.
func lists(argument string) string {
	switch argument {
	case "GATE":
		return "`sluice inbox` lists the gates that wait"
	case "GATE|STEP", "STEP":
		return "`sluice status` lists steps and gates"
	case "RUN":
		return "`sluice ls` lists the runs; `last` is the newest"
	}
	return ""
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

// JSONFlag gives a command --json.
func (c *Console) JSONFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.JSON, "json", false, "print JSON, for programs")
	return cmd
}
