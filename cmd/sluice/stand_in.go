package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/job"
	"sluice/internal/stub"
	"sluice/internal/stub/play"
)

// maxPart is the limit, in bytes, of the file of a stand-in's part.
const maxPart = 1 << 20

// standInCommand plays one part of a run with stand-ins, from a file that the service wrote beside
// the launch's output. Like any agent it is a process: it can be ended, found again and judged by
// its end.
func standInCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: job.StandIn + " PART", Aliases: []string{"stand-in"}, Short: "play an agent in a run with --stub",
		Hidden: true, Args: console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := atomicfile.Read(args[0], maxPart)
			if err != nil {
				return fault.Failed("only a run with --stub starts it", "%s: %s", job.StandIn, oneLine(err.Error()))
			}
			var p stub.Part
			if err := json.Unmarshal(data, &p); err != nil {
				return fault.Failed("only a run with --stub starts it", "%s: %s", job.StandIn, oneLine(err.Error()))
			}
			return play.Part(cmd.Context(), &a.Console, p)
		},
	}
}
