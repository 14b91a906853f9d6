package daemon

import (
	"os"
	"time"
)

// clocks are the timers that wake the loop.
type clocks struct {
	opt          *RepoOptions
	rescan, wake *time.Timer
	rest         bool // rescan waits for RepoOptions.Rest
}

func newClocks(opt *RepoOptions) *clocks {
	c := &clocks{opt: opt, wake: time.NewTimer(0)}
	c.rescan = time.NewTimer(c.toRescan())
	return c
}

func (c *clocks) stop() {
	c.rescan.Stop()
	c.wake.Stop()
}

// follow ends the long wait for a rescan when the loop's rest is over.
func (c *clocks) follow(resting bool) {
	if c.rest && !resting {
		c.set(resting)
	}
}

func (c *clocks) set(resting bool) {
	c.rest = resting
	c.rescan.Reset(c.toRescan())
}

// wakeAt sets when to wake the loop though nothing happens; zero: never.
func (c *clocks) wakeAt(at time.Time) {
	if at.IsZero() {
		c.wake.Stop()
		return
	}
	c.wake.Reset(c.opt.Pace(max(at.Sub(c.opt.Now()), 0)))
}

// toRescan returns the time to the next rescan. All repos of a daemon rescan at the same moments,
// so that an idle machine wakes once for all.
func (c *clocks) toRescan() time.Duration {
	now, every := c.opt.Now(), min(c.opt.Rescan, aliveEvery)
	if c.rest {
		every = c.opt.Rest
	}
	return c.opt.Pace(now.Truncate(every).Add(every).Sub(now))
}

// aliveFile is a file whose modification time is when its repo was last served; "" = there is none.
type aliveFile string

// last returns when the repo was last served; zero if unknown.
func (f aliveFile) last() time.Time {
	st, err := os.Stat(string(f))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

func (f aliveFile) set(now time.Time) {
	if f != "" && os.Chtimes(string(f), now, now) != nil {
		_ = os.WriteFile(string(f), nil, 0o600) // only a start's guess of the time away depends on it
	}
}
