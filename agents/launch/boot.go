package launch

import (
	"path/filepath"
	"time"

	"sluice/agents"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
)

// boot identifies a machine start, and when a repo was first served in it: clock time and uptime. A
// state folder on a new mount, as after a disk failure, is another start: unsynced data may be
// gone.
type boot struct {
	ID    string        `json:"id"`
	Since time.Time     `json:"since"`
	Up    time.Duration `json:"up_ns,omitempty"`
}

const bootFile = "boot"

// bootedIn returns the start in which the repo is served, and records a new one.
func bootedIn(state string, now time.Time) (boot, error) {
	id, err := agents.BootID()
	if err != nil {
		return boot{}, err
	}
	if mount := atomicfile.MountID(state); mount != "" {
		id += "/" + mount
	}
	var b boot
	path := filepath.Join(state, bootFile)
	if err := layout.Load(path, &b); err == nil && b.ID == id {
		return b, nil
	}
	up, err := agents.Uptime()
	if err != nil {
		return boot{}, err
	}
	b = boot{ID: id, Since: now.Round(0), Up: up} // the steady clock would hide that the other is set back
	return b, layout.Save(path, b)
}

// at returns the moment, on today's clock, before which nothing was started that may still run.
// Many machines start with a clock that is hours ahead, and correct it a moment later.
func (b boot) at(now time.Time) time.Time {
	up, err := agents.Uptime()
	if err != nil || b.Up == 0 {
		return b.Since
	}
	if at := now.Add(b.Up - up); at.Before(b.Since) {
		return at
	}
	// After a clock set forward or a sleep, earlier decisions still wait.
	return b.Since
}

// Booted returns boot.at of the current time.
func (ls *Launches) Booted() time.Time { return ls.Boot.at(ls.opt.Now()) }

// after reports whether something was decided before the machine's start. at is never later than Since,
// which costs no look at the uptime.
func (b boot) after(decided time.Time, now func() time.Time) bool {
	return !decided.IsZero() && decided.Before(b.Since) && decided.Before(b.at(now()))
}
