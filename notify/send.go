package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/internal/text"
)

type indexed struct {
	lane   int
	result Result
}

// Send sends the notice on all channels at once and returns one result for each, in a fixed order
// (the log first). It returns after at most 5.5 seconds, or half a second after ctx ended. A
// channel that is not done by then is reported as such and continues to its own limit; a log line
// reports how it ended. Send never panics.
//
// It returns nil if the notifier was closed before: nothing was attempted.
func (n *Notifier) Send(ctx context.Context, notice Notice) []Result {
	notice = cleaned(notice)
	began := time.Now()
	lanes := n.meant(notice)
	results := make([]Result, len(lanes))
	for i, l := range lanes {
		results[i] = Result{Channel: l.channel.Name()}
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.flying.Add(len(lanes))
	n.mu.Unlock()

	came := make(chan indexed, len(lanes))
	gaveUp := make(chan struct{}) // closed when this Send no longer listens
	defer close(gaveUp)
	for i, l := range lanes {
		go func() {
			defer n.flying.Done()
			n.sendOn(ctx, i, l, notice, came, gaveUp)
		}()
	}
	return n.gather(ctx, began, results, came)
}

// meant returns the lanes that a notice goes to.
func (n *Notifier) meant(notice Notice) []lane {
	return slices.DeleteFunc(slices.Clone(n.lanes), func(l lane) bool {
		_, stands := l.channel.(dismisser)
		return notice.Again && !stands || !notice.Escalated && slices.Contains(n.opt.Reserved, l.channel.Name())
	})
}

// gather waits for the results until the limit, and fills in the missing ones.
func (n *Notifier) gather(ctx context.Context, began time.Time, results []Result, came <-chan indexed) []Result {
	limit := time.NewTimer(sendLimit)
	defer limit.Stop()
	cancelled := ctx.Done()
	for missing := len(results); missing > 0; missing-- {
		select {
		case r := <-came:
			results[r.lane] = r.result
			continue
		case <-cancelled:
			cancelled = nil
			limit.Reset(cancelGrace)
			missing++ // this turn took no result
			continue
		case <-limit.C:
		}
		break
	}
	for i, r := range results {
		if !r.OK && r.Why == "" {
			took := time.Since(began)
			results[i].Took, results[i].Hung = took, ctx.Err() == nil
			results[i].Why = fmt.Sprintf("not done after %s: no longer waited for", took.Round(100*time.Millisecond))
		}
	}
	return results
}

// sendOn sends on one lane and passes its result to the waiting Send, or to the log if that has
// given up.
func (n *Notifier) sendOn(ctx context.Context, i int, l lane, notice Notice, came chan<- indexed,
	gaveUp <-chan struct{}) {
	began := time.Now()
	err := n.guarded(ctx, l, notice)
	r := Result{Channel: l.channel.Name(), OK: err == nil, Took: time.Since(began), Hung: errors.Is(err, errHung),
		Missing: errors.Is(err, errNoDesktop) || errors.Is(err, errMoot)}
	if err != nil {
		r.Why = cmp.Or(text.Clean(err.Error(), maxWhy), "failed without a message")
	}
	select {
	case <-gaveUp:
		n.tellLate(notice, r)
	default:
		came <- indexed{i, r} // has room for every lane
	}
}

// guarded sends on a lane within the limits, and turns a panic into an error.
func (n *Notifier) guarded(ctx context.Context, l lane, notice Notice) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the channel panicked: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, channelLimit)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()

	turn := time.NewTimer(sendLimit)
	defer turn.Stop()
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-turn.C:
		return fmt.Errorf("%d earlier notices are still being sent: this one was dropped%w", maxInFlight, errHung)
	case <-ctx.Done():
		return errors.New("cancelled before its turn")
	}
	return l.channel.Send(ctx, notice)
}

// tellLate reports a result that nobody waits for any more.
func (n *Notifier) tellLate(notice Notice, r Result) {
	if r.Channel == (logChannel{}).Name() {
		return
	}
	defer func() { _ = recover() }() // a fault of the log must not end the daemon
	if n.opt.Late != nil {
		n.opt.Late(notice, r)
	}
	if n.opt.Log == nil {
		return
	}
	if r.OK {
		n.opt.Log(notice, fmt.Sprintf("%s: delivered after %s", r.Channel, r.Took.Round(time.Millisecond)))
		return
	}
	n.opt.Log(notice, fmt.Sprintf("%s: not delivered: %s", r.Channel, r.Why))
}

// errHung marks the error of a channel that did not answer in time; the message says so in its own
// words.
var errHung = hung{}

type hung struct{}

func (hung) Error() string { return "" }
