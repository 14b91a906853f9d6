package workers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/agents/launch"
)

// lateIn is how long the late work of one launch may take to fetch, before a later heartbeat tries again.
const lateIn = 10 * time.Minute

// Late keeps the work of a launch that was given up, for people to look at. kept says what to type to see
// it; "" = there is none. why is what is wrong with the work: it is not kept. After an error the same call
// is made again.
type Late func(ctx context.Context, s launch.Sent, back launch.Back) (kept, why string, err error)

// late has a launch that was given up, and that a worker names, ended there, and keeps what it has made.
// That counts for nothing. over reports that the worker may forget it.
func (d *Desk) late(ctx context.Context, r *record, worker string) (over bool) {
	ctx, cancel := context.WithTimeout(ctx, lateIn)
	defer cancel()
	key, said := r.Sent.Key, ""
	a, err := d.ask(ctx, worker, call{Do: doStop, Key: key})
	if err != nil {
		return false
	}
	own := a.Is == isEnded && r.Sent.Token != "" && signed(r.Sent.Token, key, a)
	switch {
	case own:
		kept, why, err := d.keep(ctx, r.Sent, a)
		switch {
		case err != nil:
			d.refuse(worker, fmt.Sprintf("%s: its late work cannot be kept now: %v", key, err))
			return false
		case why != "":
			said = "; its work is not kept: " + why
		case kept != "":
			said = "; its work is kept: " + kept
		}
	case a.Is == isEnded:
		said = "; its work is not kept: its result is not signed with the launch's token"
	case a.Is != isUnknown && a.Is != isOver: // it is being ended
		return false
	}
	d.refuse(worker, key+": it was given up, and launched again under another key: its result does not count"+said)
	if r.Worker == "" && !own {
		return true // another worker may have it
	}
	r.Seen = true
	if err := d.save(*r); err != nil {
		d.opt.Logf("%s: %v", key, err) // it is done once more after a restart
	}
	return true
}

// keep keeps what a late result has.
func (d *Desk) keep(ctx context.Context, s launch.Sent, a answer) (kept, why string, err error) {
	back, err := readResult(a.Result)
	if err != nil {
		return "", "its result: " + err.Error(), nil
	}
	if back.Commit == "" {
		return "", back.Refused, nil
	}
	if s.Run == "" { // another machine has sent it
		if s = named(s.Key); s.N == 0 || back.Head == "" {
			return "", "it does not say what it began from", nil
		}
		s.Head, s.Start = back.Head, back.Start
	}
	return d.opt.Late(ctx, s, back)
}

// named returns what the key of a launch says of it.
func named(key string) (s launch.Sent) {
	var numbers string
	s.Key = key
	s.Run, s.Step, numbers = splitKey(key)
	n, _, _ := strings.Cut(numbers, ".")
	s.N, _ = strconv.Atoi(n) // 0 = it is no key of a step's launch
	return s
}
