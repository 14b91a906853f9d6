package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

func watchCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "list, add and remove the repos the daemon serves",
		Long: `The daemon serves the repos on its list. Add only repos that you trust: their agents and commands
run as you whenever a run is started.`,
		Example: "sluice watch add\nsluice watch ls",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	change := func(use, short, long, example string, do func(ctx context.Context, dir string) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: console.Between(0, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return do(cmd.Context(), arg(args, 0))
			}}
	}
	cmd.AddCommand(
		change("add [DIR]", "add a repo to the daemon's list",
			"Takes effect at once if a daemon runs, else at its next start.",
			"sluice watch add\nsluice watch add ~/code/app", a.watchAdd),
		change("rm [DIR]", "remove a repo from the daemon's list",
			"Its journal and its runs stay; running agents finish.", "sluice watch rm\nsluice watch rm ~/code/old",
			a.watchRemove),
		a.JSONFlag(&cobra.Command{Use: "ls", Short: "list the repos the daemon serves",
			Long: "If a repo is not served, the reason is shown.", Example: "sluice watch ls\nsluice watch ls --json",
			Args: console.Between(0, 0),
			RunE: func(cmd *cobra.Command, _ []string) error { return watchList(cmd.Context(), &a.Console) }}),
	)
	return cmd
}

func (a *app) watchAdd(ctx context.Context, dir string) error {
	if dir != "" {
		a.dir = dir
	}
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	added, err := workspace.AddRepo(p.Home, p.Root)
	if err != nil {
		return err
	}
	since := "already"
	if added {
		since = "now"
	}
	a.Print("%s is on the list %s", p.Root, since)
	return untilServed(ctx, &a.Console, p)
}

// untilServed makes a running daemon read its list, and waits a little until it serves the repo:
// the person's next command relies on it.
func untilServed(ctx context.Context, con *console.Console, p *workspace.Workspace) error {
	if err := reloadDaemon(ctx, con, p.Home); err != nil {
		return err
	}
	c := daemon.NewDaemonClient(p.Home)
	defer c.Close()
	for range servedTries {
		states, err := c.Repos(ctx)
		if err != nil || slices.ContainsFunc(states,
			func(s daemon.RepoState) bool { return s.Root == p.Root && (s.Served || s.Why != "") }) {
			// Without a daemon there is nothing to wait for; `sluice watch ls` reports what is in
			// its way.
			return ctx.Err()
		}
		time.Sleep(servedPause)
	}
	return nil
}

// How often to wait, and how long, for the daemon to serve a repo.
const (
	servedTries = 100
	servedPause = 50 * time.Millisecond
)

func (a *app) watchRemove(ctx context.Context, dir string) error {
	home, err := workspace.Home(&a.Console)
	if err != nil {
		return err
	}
	roots, err := daemon.LoadRepos(workspace.ReposFile(home))
	if err != nil {
		return err
	}
	root := dir
	if !slices.Contains(roots, dir) { // a listed repo may have lost its folder
		if dir != "" {
			a.dir = dir
		}
		p, err := a.bare(ctx)
		if err != nil {
			return err
		}
		root = p.Root
	}
	removed, err := workspace.RemoveRepo(home, root)
	if err != nil {
		return err
	}
	if !removed {
		return fault.Failed("`sluice watch ls` prints the list", "%s is not on the list", clean(root))
	}
	a.Print("%s is no longer on the list", root)
	return reloadDaemon(ctx, &a.Console, home)
}

// reloadDaemon makes a running daemon read its list.
func reloadDaemon(ctx context.Context, con *console.Console, home string) error {
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	err := c.Reload(ctx)
	if errors.Is(err, daemon.ErrNotServed) {
		con.Note("no daemon runs now: `sluice daemon` starts one")
		return nil
	}
	return err
}

func watchList(ctx context.Context, con *console.Console) error {
	home, err := workspace.Home(con)
	if err != nil {
		return err
	}
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	states, err := c.Repos(ctx)
	running := err == nil
	if errors.Is(err, daemon.ErrNotServed) {
		var roots []string
		roots, err = daemon.LoadRepos(workspace.ReposFile(home))
		states = []daemon.RepoState{}
		for _, r := range roots {
			states = append(states, daemon.RepoState{Root: r, Why: "no daemon runs"})
		}
	}
	if err != nil {
		return err
	}
	if con.JSON {
		return con.Document(map[string]any{"daemon": running, "repos": states})
	}
	show.Repos(con, states, 0)
	if len(states) == 0 {
		con.Note("the list is empty: run `sluice watch add` in a repo")
	} else if !running {
		con.Note("no daemon runs now: `sluice daemon` starts one")
	}
	return nil
}
