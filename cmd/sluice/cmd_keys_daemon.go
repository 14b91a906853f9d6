package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/approval"
	"sluice/internal/console"
	"sluice/internal/workspace"
)

func keysDaemonCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "daemon", Short: "print the public key of this repo's daemon, for a policy",
		Long: `The key signs evidence about runs (sluice attest) and counts at no gate. It is created when first
needed, in the state folder, out of reach of agents in a sandbox. The line goes below signers in the
policy of sluice verify.`,
		Example: "sluice keys daemon\nsluice keys daemon --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := keysPlace(cmd.Context(), a)
			if err != nil {
				return err
			}
			if err := workspace.MakeState(p.State); err != nil {
				return err
			}
			key, err := approval.Store{State: p.State}.OwnKey()
			if err != nil {
				return err
			}
			line, err := key.Line("daemon@" + p.ID)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.Document(map[string]any{"line": line, "key": key.Key})
			}
			a.Print("%s", line)
			return nil
		},
	})
}
