package workers

import (
	"cmp"
	"time"
)

// twinOf returns the machine of another worker with the same id, as a clone of its machine has; "" = there is
// none. Both would make each launch. A worker that restarts has begun later than before, so a heartbeat of one
// that began earlier shows that both are there. at is when such a heartbeat came last: what it shows holds for
// the time of silence. The caller holds the lock.
func (d *Desk) twinOf(last, now *seen) (machine string, at time.Time) {
	if last == nil {
		return "", at
	}
	at = last.twin
	if now.Since.Before(last.Since) {
		at = now.at
	}
	switch {
	case now.at.Sub(at) > d.silence():
		return "", at
	case now.Since.Equal(last.Since):
		return last.Twin, at
	}
	return cmp.Or(last.Name, "a machine without a name"), at
}
