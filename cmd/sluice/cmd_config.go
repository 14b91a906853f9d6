package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

func configCommand(a *app) *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "config [KEY]",
		Short: "show every setting, and where each comes from",
		Long: `Settings come in layers, and a later layer overrides an earlier one: built-in, your own file
(~/.config/sluice/config.yaml), the project's (.workflow/config.yaml), SLUICE_CONFIG_<KEY>
in the environment, and --set. The command shows each value, its layer, and whether the
project's file may set it: other people and agents can write that file.

The keys, by what the project's file may do with them (NAME is that of an agent or a role, "*"
any role without an entry); ` + "`sluice config KEY`" + ` says what one does:
` + projectWords(),
		Example: "sluice config veto_window\nSLUICE_CONFIG_VETO_WINDOW=2m sluice config roles",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := ""
			p, err := a.bare(cmd.Context())
			switch {
			case err == nil:
				root = p.Root
			case !errors.Is(err, git.ErrNoRepo):
				return err
			}
			s, err := workspace.Settings(&a.Console, root, set)
			if err != nil {
				return allFaults(&a.Console, err)
			}
			return showSettings(&a.Console, s, args)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "override every layer: `KEY=VALUE`, such as veto_window=5s")
	return a.JSONFlag(cmd)
}

// allFaults prints every fault of the settings, one per line, before the error itself.
func allFaults(con *console.Console, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Err == nil {
		return err
	}
	if many := settings.Faults(err); len(many) > 1 {
		for _, e := range many {
			con.Note("%s", oneLine(e.Error()))
		}
		return &fault.Error{Cause: "settings: " + plural(len(many), "fault"),
			Advice: "`sluice config --help` names the keys", Code: f.Code}
	}
	return err
}

// projectWords names the keys of each class.
func projectWords() string {
	of := settings.Classes()
	var out strings.Builder
	for _, class := range []string{settings.YoursOnly, settings.MayTighten, settings.Free} {
		out.WriteString("\n  " + class + ":")
		column := projectColumns
		for _, name := range of[class] {
			if column+1+len(name) > projectColumns {
				out.WriteString("\n   ")
				column = 3
			}
			out.WriteString(" " + name)
			column += 1 + len(name)
		}
	}
	return out.String()
}

// projectColumns is the width of projectWords.
const projectColumns = 90

func showSettings(con *console.Console, s *settings.Layered, args []string) error {
	list := []settings.Value{}
	for _, v := range s.Values() {
		if len(args) == 0 || v.Key == args[0] || strings.HasPrefix(v.Key, args[0]+".") {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		if err := settings.Known(args[0]); err != nil {
			return fault.Misused("`sluice config` lists them all", "%s", err)
		}
	}
	if con.JSON {
		return con.Document(list)
	}
	t := &console.Table{Columns: []console.Column{{}, {Fit: console.Wrapped}, {Fit: console.Below}, {Fit: console.Below}}}
	for _, l := range list {
		t.Row(console.Styled(l.Key, console.Plain), console.Styled(valueWords(l.Value), console.Bold),
			console.Styled(l.From, console.Dim), console.Styled(l.Class, console.Dim))
	}
	con.PrintTable(t)
	if len(args) == 1 {
		m := settings.MeaningOf(strings.Split(args[0], "."))
		if len(list) == 0 && m.Key != "" {
			con.Print("%s is not set", args[0])
		}
		if m.Does != "" {
			con.PrintWrapped(0, console.Styled(m.Does, console.Dim))
		}
	}
	for _, w := range s.Warnings() {
		con.Note("%s %s", con.PaintErr(console.Yellow, "warning:"), oneLine(w))
	}
	return nil
}

func valueWords(v any) string {
	if s, ok := v.(string); ok {
		if d, err := time.ParseDuration(s); err == nil && d > 0 {
			return text.Span(d)
		}
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
