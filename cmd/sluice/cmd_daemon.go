package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/workspace"
)

func daemonCommand(a *app) *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "serve all watched repos, in the foreground",
		Long: `Runs the pipelines of every repo that was added with sluice watch add, until it is told to
stop. What systemd or launchd start; in a terminal, Ctrl-C stops it. Agents that run go on
without it, and the next start goes on where this one stopped: nothing is lost.
Settings that change on the disk are read by themselves; SIGHUP has them, and the list of repos,
read at once.`,
		Example: "sluice watch add && sluice daemon\nsluice daemon --set notify.desktop=false",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveAll(cmd.Context(), a, set)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "a setting over all layers: `KEY=VALUE`")
	return cmd
}

// newLogger writes the daemon's log: lines for people on a terminal, else JSON, with its priority where journald takes it.
func newLogger(con *console.Console, w io.Writer) zerolog.Logger {
	if _, ok := console.Terminal(w); ok {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !con.ColourOn(w), TimeFormat: time.TimeOnly}
	} else if f, ok := w.(*os.File); ok && toJournal(f, con.Getenv("JOURNAL_STREAM")) {
		w = leveled{w}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}

// serveAll is the daemon.
func serveAll(ctx context.Context, a *app, set []string) error {
	home, err := workspace.Home(&a.Console)
	if err != nil {
		return err
	}
	if err := workspace.MakeState(home); err != nil {
		return err
	}
	log := newLogger(&a.Console, a.Err)
	profiled, err := startProfile(&a.Console)
	if err != nil {
		return err
	}
	w, err := newParts(a, log, set)
	if err != nil {
		return errors.Join(err, profiled())
	}
	srv := w.server(home)
	inner, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { w.dog.feed(inner, a) })
	wg.Go(func() { reloadOn(inner, &a.Console, srv, log) })
	wg.Go(func() { giveBack(inner) })
	err = srv.Run(ctx, func() {
		n := len(srv.States())
		log.Info().Int("pid", os.Getpid()).Str("version", version).Int("repos", n).Msg("the daemon serves")
		if n == 0 {
			log.Warn().Msg("no repo is watched yet: `sluice watch add` in one")
		}
		tellManager(&a.Console, fmt.Sprintf("READY=1\nSTATUS=serving %s", plural(n, "repo")))
	})
	tellManager(&a.Console, "STOPPING=1")
	stop()
	wg.Wait()
	if cerr := errors.Join(w.Close(), profiled()); err == nil {
		err = cerr
	}
	if err == nil {
		log.Info().Msg("stopped; agents that run go on, and the next start takes them up again")
	}
	return err
}

// reloadOn reads settings and repos again at each SIGHUP.
func reloadOn(ctx context.Context, con *console.Console, srv *daemon.Server, log zerolog.Logger) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, reloadSignals()...)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			tellManager(con, "RELOADING=1")
			if err := srv.Reload(ctx); err != nil {
				log.Error().Err(err).Msg("not all could be read again")
			} else {
				log.Info().Msg("settings and repos were read again")
			}
			tellManager(con, "READY=1")
		}
	}
}
