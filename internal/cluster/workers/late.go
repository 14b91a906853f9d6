package workers

import (
	"context"
	"fmt"
	"time"

	"sluice/agents/launch"
)

// lateIn is how long the late work of one launch may take to fetch, before a later heartbeat tries again.
const lateIn = 10 * time.Minute

// Late keeps the work of a launch that was given up, for people to look at. kept says what to type to see
// it; "" = there is none. why is what is wrong with the work: it is not kept. After an error the same call
// is made again.
type Late func(ctx context.Context, s launch.Sent, back launch.Back) (kept, why string, err error)

// late has a launch that was given up, and whose worker is back, ended there, and keeps what it has made.
// That counts for nothing. over reports that the worker may forget it.
func (d *Desk) late(ctx context.Context, r *record) (over bool) {
	ctx, cancel := context.WithTimeout(ctx, lateIn)
	defer cancel()
	a, err := d.ask(ctx, r.Worker, call{Do: doStop, Key: r.Sent.Key})
	if err != nil {
		return false
	}
	said := ""
	switch a.Is {
	case isEnded:
		kept, why, err := d.keep(ctx, r.Sent, a)
		switch {
		case err != nil:
			d.refuse(r.Worker, fmt.Sprintf("%s: its late work cannot be kept now: %v", r.Sent.Key, err))
			return false
		case why != "":
			said = "; its work is not kept: " + why
		case kept != "":
			said = "; its work is kept: " + kept
		}
	case isUnknown, isOver:
	default: // it is being ended
		return false
	}
	d.refuse(r.Worker, r.Sent.Key+": it was given up, and launched again under another key: its result does not count"+
		said)
	r.Seen = true
	if err := d.save(*r); err != nil {
		d.opt.Logf("%s: %v", r.Sent.Key, err) // it is done once more after a restart
	}
	return true
}

// keep keeps what a late result has, if the result is the launch's own.
func (d *Desk) keep(ctx context.Context, s launch.Sent, a answer) (kept, why string, err error) {
	if !signed(s.Token, s.Key, a) {
		return "", "its result is not signed with the launch's token", nil
	}
	back, err := readResult(a.Result)
	if err != nil {
		return "", "its result: " + err.Error(), nil
	}
	if back.Commit == "" {
		return "", back.Refused, nil
	}
	return d.opt.Late(ctx, s, back)
}
