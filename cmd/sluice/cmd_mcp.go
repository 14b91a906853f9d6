package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/mcp"
	"sluice/internal/text"
)

func mcpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "offer work to an orchestrating agent as tools (stdio)",
		Long: `Speaks the Model Context Protocol on standard input and output. Its tools (list, next, claim,
context, signal and evaluate) let an agent have steps done whose launch is subagent or interactive.
They decide no gate: sluice evaluates gates, and only a person answers one that asks a person. The
daemon must serve the repo. Register the command with your agent, which then starts it itself.

For claude, in this repo or for one session:
  claude mcp add sluice -- sluice -C "$PWD" mcp
  claude --allowedTools mcp__sluice --mcp-config '{"mcpServers": {"sluice":
    {"command": "sluice", "args": ["-C", "/path/to/repo", "mcp"]}}}'

For codex, in its config.toml:
  [mcp_servers.sluice]
  command = "sluice"
  args = ["-C", "/path/to/repo", "mcp"]
  env_vars = ["XDG_STATE_HOME", "XDG_CONFIG_HOME"]
  tool_timeout_sec = 660`,
		Example: "claude mcp add sluice -- sluice -C \"$PWD\" mcp\nsluice -C /path/to/repo mcp",
		Args:    console.Between(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveMCP(cmd.Context(), a) },
	}
}

func serveMCP(ctx context.Context, a *app) error {
	if a.Interactive() {
		return fault.Misused("`sluice help mcp` explains how to register it with an agent",
			"sluice mcp is started by an agent, not from a terminal")
	}
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	err = mcp.Serve(ctx, mcp.Options{
		Root: p.Root, Version: version, In: a.In, Out: a.Out,
		Open: func(ctx context.Context) (mcp.Repo, func(), error) {
			s, err := p.NeedServing(ctx)
			if err != nil {
				return nil, nil, withMend(err)
			}
			return s, s.Close, nil
		},
		Work: func(ctx context.Context, o daemon.Offer) (mcp.Work, error) {
			work, err := workOf(ctx, p, o)
			work.Prompt = text.Reveal(work.Prompt)
			return work, err
		},
	})
	if errors.Is(err, context.Canceled) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil // the agent is gone, or ended it
	}
	return err
}

// withMend returns an error with its advice in its words, for clients that see only these.
func withMend(err error) error {
	f := explain(err)
	if f.Advice == "" {
		return err
	}
	return f
}
