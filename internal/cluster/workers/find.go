package workers

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/health"
	"sluice/internal/layout"
)

// find looks for the worker of a launch that another machine has sent: what goes on is not launched
// again because another machine decides now. The launch is lost where no heartbeat shows it within
// the time of silence. It is then not sent either: a worker that is cut off may have its key. Each
// heartbeat counts, not the newest of a worker alone, which somebody else may have sent in its name.
// The caller has called holds.
func (d *Desk) find(ctx context.Context, key string) (r record, err error) {
	r = waits(key)
	if r.Sent.Token, err = d.makeToken(ctx, key); err != nil {
		return r, err
	}
	d.mu.Lock()
	x := d.live[key]
	x.token = r.Sent.Token
	d.mu.Unlock()
	until := time.Now().Add(d.silence())
	for r.Worker == "" && !r.Lost {
		if !health.Wait(ctx, pace) {
			return r, ctx.Err()
		}
		switch r.Epoch = d.opt.Lead(); {
		case r.Epoch == 0: // the servers or this machine are silent, not the worker
			until = time.Now().Add(d.silence())
		case time.Now().After(until):
			r.lose("another machine had sent it to a worker, and none has shown it within %s", d.silence())
			d.opt.Logf("%s: another machine has sent it, and no worker shows it within %s: it is given up", key, d.silence())
		default:
			d.mu.Lock()
			r.Worker = x.worker
			d.mu.Unlock()
		}
	}
	r.Taken = !r.Lost
	return r, d.save(r)
}

// makeToken returns the token of a launch, the same on each machine that can decide.
func (d *Desk) makeToken(ctx context.Context, key string) (string, error) {
	secret, err := d.opt.Secret(ctx)
	if err != nil {
		return "", fmt.Errorf("the secret of the launches: %w", err)
	}
	return layout.MakeToken(secret, key), nil
}

// Token returns the token of a launch that a worker has or had; "" = none: see launch.Afar.
func (d *Desk) Token(key string) string {
	d.mu.Lock()
	if x := d.live[key]; x != nil && x.token != "" {
		defer d.mu.Unlock()
		return x.token
	}
	d.mu.Unlock()
	r, err := d.load(key)
	if err != nil || r.Worker == "" {
		return ""
	}
	return r.Sent.Token
}
