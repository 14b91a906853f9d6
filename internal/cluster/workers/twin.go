package workers

import (
	"cmp"
	"time"
)

// twinOf returns the machine of another worker with the same id, as a clone of its machine has; "" = there is
// none. Both would make each launch. A restarted worker has a later start than before, so a heartbeat with an
// earlier one shows that both run. at is the arrival of the newest such heartbeat, which counts for the time of
// silence. The caller holds the lock.
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
