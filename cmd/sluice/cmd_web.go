package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/workspace"
)

func webCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "web",
		Short: "print a link to the page, where you watch and decide in a browser",
		Long: `The daemon serves a page with your inbox, runs and their graphs, gates with the changes,
transcripts, a form that starts workflows, and history. This command prints a link to it. The link
logs in one browser, once, within ten minutes. Unless your settings have web.listen, the page
listens on this machine only, from the first link until the daemon ends.`,
		Example: "sluice web\nsluice web --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.forPersons("may open the page", "leave the page to a person"); err != nil {
				return err
			}
			url, err := pageLink(cmd.Context(), &a.Console)
			if err != nil {
				return err
			}
			return a.answer(map[string]string{"url": url}, url)
		},
	}
	return a.JSONFlag(cmd)
}

// pageLink asks the daemon for a link to its page. The page listens from then on.
func pageLink(ctx context.Context, con *console.Console) (string, error) {
	home, err := workspace.Home(con)
	if err != nil {
		return "", err
	}
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	link, err := c.Web(ctx)
	if errors.Is(err, daemon.ErrNotServed) {
		err = fault.Failed("start it: `sluice watch add` in your repo, then `sluice daemon` or `sluice service install`",
			"the daemon serves the page, and no daemon runs now")
	}
	return link, err
}
