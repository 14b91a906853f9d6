package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/tui"
	"sluice/internal/tui/host"
)

func topCommand(a *app) *cobra.Command {
	var here bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch all runs live, and decide",
		Long: `A live screen of every repo that the daemon serves, and of the current one: runs, steps, gates, the
agents' latest messages, and spending. What waits for you is at the top. With keys you look at a
gate, pass, fail or veto it, pause and abort runs, and follow an agent; ? lists the keys. A key
decides only what has been on screen for a second, and a pass needs Enter.
Leaving the screen stops nothing.`,
		Example: "sluice top\nsluice top --here",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.Interactive() || a.Getenv("TERM") == "dumb" {
				return fault.Misused("`sluice status` and `sluice inbox` print the same once", "sluice top needs a terminal")
			}
			h, err := host.New(cmd.Context(), &a.Console, a.dir, here)
			if err != nil {
				return err
			}
			return tui.Run(cmd.Context(), h, tui.Options{In: a.In, Out: a.Out, Env: a.Env, Now: a.Now})
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "only this repo")
	return cmd
}
