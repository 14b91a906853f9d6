package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sluice/specs"
)

// releaseFlow is the workflow of `sluice push`: the shipped one, or the repo's own by that name.
const releaseFlow = "release"

func (a *app) pushCommand() *cobra.Command {
	var o order
	var version, remote string
	cmd := &cobra.Command{
		Use:   "push",
		Short: "make a release: notes, changelog, tag and push, after your yes",
		Long: `Runs the workflow "release" in the foreground: an agent writes the changelog and the notes, you are
asked, then it is committed, tagged and pushed. Where the repo has no workflow of that name, the
shipped one is laid out by ` + "`sluice init --template release`" + `.`,
		Example: "sluice push\nsluice push --version v1.4.0 --remote origin\nsluice push --stub",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			if files, err := specs.Find(p.root); err != nil {
				return err
			} else if !hasFlow(files, releaseFlow) {
				return failed("`sluice init --template release` lays it out; look at it, commit it, then `sluice push`", "this repo has no workflow %q", releaseFlow)
			}
			o.workflow = releaseFlow
			for _, v := range [][2]string{{"version", version}, {"remote", remote}} {
				if v[1] != "" {
					o.vars = append(o.vars, v[0]+"="+v[1])
				}
			}
			return a.run(cmd.Context(), p, o)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "the `VERSION` wanted, as v1.2.3; else the agent chooses it by what has changed")
	cmd.Flags().StringVar(&remote, "remote", "", "the `REMOTE` to push to (origin)")
	o.flags(cmd)
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "a setting over all layers: `KEY=VALUE` (where no daemon serves the repo)")
	return cmd
}

// hasFlow says that a workflow's file is among the files.
func hasFlow(files []string, id string) bool {
	for _, f := range files {
		if strings.EqualFold(workflowOf(f), id) {
			return true
		}
	}
	return false
}
