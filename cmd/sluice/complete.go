package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/workflows"
	"sluice/specs"
)

// completeAll sets the completion of every command's arguments, by their names in its usage line.
func completeAll(a *app, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		completeAll(a, c)
	}
	if len(strings.Fields(cmd.Use)) > 1 && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = a.complete
	}
}

// complete returns the possible ids of an argument. It omits what cannot be read: a Tab is no place
// for errors.
func (a *app) complete(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	words := strings.Fields(strings.NewReplacer("[", "", "]", "", "...", "").Replace(cmd.Use))[1:]
	if len(words) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	kinds := strings.Split(words[min(len(args), len(words)-1)], "|")
	// Or what follows it, without it.
	if len(args) == 0 && len(words) > 1 && strings.Fields(cmd.Use)[1] == "[RUN]" {
		kinds = append(kinds, strings.Split(words[1], "|")...)
	}
	if slices.Contains(kinds, "DIR") || slices.Contains(kinds, "FILE") && strings.Contains(begun, "/") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	p, err := a.place(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	if slices.Contains(kinds, "WORKFLOW") || slices.Contains(kinds, "SPEC") {
		files, err := specs.Find(p.Root)
		if err == nil {
			for _, f := range files {
				out = append(out, workflows.ID(f))
			}
		}
	}
	if st, err := p.Status(cmd.Context()); err == nil {
		for _, r := range st.Runs {
			if slices.Contains(kinds, "RUN") {
				out = append(out, r.ID)
			}
			for _, s := range r.Steps {
				if slices.Contains(kinds, "STEP") {
					out = append(out, s.ID)
				}
				for _, g := range s.Gates {
					if slices.Contains(kinds, "GATE") && !g.Implicit {
						out = append(out, g.ID)
					}
				}
			}
		}
	}
	slices.Sort(out)
	out = slices.DeleteFunc(slices.Compact(out), func(s string) bool { return !strings.HasPrefix(s, begun) })
	return out, cobra.ShellCompDirectiveNoFileComp
}
