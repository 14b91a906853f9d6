package test

import (
	"context"
	"fmt"
	"os"
	"time"

	"sluice/internal/cluster"
	"sluice/internal/console"
	"sluice/internal/personal"
	"sluice/internal/serve"
	"sluice/internal/workspace"
)

// stormSlots is how many launches a worker of the storm makes at once.
const stormSlots = 4

// timeVar has this binary be a daemon or a worker whose clock is off by so much.
const timeVar = "SLUICE_TEST_TIME"

// inOtherTime makes this process a machine of a cluster if it was started as one, and returns
// otherwise. Its arguments are the binary that launches go through, the servers, and of a worker the
// journal's id.
func inOtherTime() {
	off, err := time.ParseDuration(os.Getenv(timeVar))
	if err != nil {
		return
	}
	con := console.New(os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	con.Now = func() time.Time { return time.Now().Add(off) }
	ctx, stop := personal.Interrupted(context.Background())
	defer stop()
	o, servers := serve.Options{Console: con, Self: os.Args[1]}, cluster.Servers{URLs: os.Args[2]}
	if len(os.Args) == 3 {
		o.Cluster = &serve.Cluster{Servers: servers, Standby: true}
		err = serve.Daemon(ctx, o)
	} else {
		var p *workspace.Workspace
		if p, err = workspace.Bare(ctx, con, "."); err == nil {
			err = serve.Work(ctx, o, p, serve.Worker{Servers: servers, Journal: os.Args[3], Labels: []string{"linux"},
				Slots: stormSlots})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
