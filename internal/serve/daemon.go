package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/rs/zerolog"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// Daemon serves all watched repos until ctx ends.
func Daemon(ctx context.Context, o Options) error {
	con := o.Console
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP) // from now on it ends nothing
	defer signal.Stop(hups)
	home, err := workspace.Home(con)
	if err != nil {
		return err
	}
	if err := workspace.MakeState(home); err != nil {
		return err
	}
	log := newLogger(con, con.Err)
	profiled, err := startProfile(con)
	if err != nil {
		return err
	}
	w, err := New(o, log)
	if err != nil {
		return errors.Join(err, profiled())
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	page, err := w.page(inner, home)
	if err != nil {
		return errors.Join(err, w.Close(), profiled())
	}
	srv := w.Server(home, page.Link)
	var wg sync.WaitGroup
	wg.Go(func() { w.dog.feed(inner, con) })
	ready := make(chan struct{})
	wg.Go(func() { reloadOn(inner, hups, ready, con, srv, log) })
	wg.Go(func() { giveBack(inner) })
	err = srv.Run(ctx, func() {
		n := len(srv.States())
		log.Info().Int("pid", os.Getpid()).Str("version", o.Version).Int("repos", n).Msg("the daemon serves")
		if n == 0 {
			log.Warn().Msg("the list of repos is empty: run `sluice watch add` in a repo")
		}
		tellManager(con, fmt.Sprintf("READY=1\nSTATUS=serving %s", text.Plural(n, "repo")))
		close(ready)
	})
	tellManager(con, "STOPPING=1")
	stop()
	wg.Wait()
	if cerr := errors.Join(page.Close(), w.Close(), profiled()); err == nil {
		err = cerr
	}
	if err == nil {
		log.Info().Msg("stopped; agents keep running, and the next start takes them up again")
	}
	return err
}

// reloadOn reads settings and repos again on each SIGHUP, once the daemon is ready: one from before that is answered
// then.
func reloadOn(ctx context.Context, hups <-chan os.Signal, ready <-chan struct{}, con *console.Console,
	srv *daemon.Server, log zerolog.Logger) {
	select {
	case <-ctx.Done():
		return
	case <-ready:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hups:
			tellManager(con, "RELOADING=1")
			if err := srv.Reload(ctx); err != nil {
				log.Error().Err(err).Msg("settings or repos could not all be read again")
			} else {
				log.Info().Msg("settings and repos were read again")
			}
			tellManager(con, "READY=1")
		}
	}
}
