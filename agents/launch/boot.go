package launch

import (
	"path/filepath"
	"time"

	"sluice/agents"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
)

// boot is the mark of the machine's start in which a repo was first served, and of when that was: by the clock, and after
// how long the machine was up. A state folder that is mounted anew, as when its disk had failed, is another start: what was
// not synced may be gone from it.
type boot struct {
	ID    string        `json:"id"`
	Since time.Time     `json:"since"`
	Up    time.Duration `json:"up_ns,omitempty"`
}

const bootFile = "boot"

// bootedIn returns when the repo was first served since the machine's start.
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
	b = boot{ID: id, Since: now, Up: up}
	return b, layout.Save(path, b)
}

// at returns the moment before which nothing was started that may still run unseen, as the clock counts now: many machines
// start with one that is hours ahead, and set it right a moment later.
func (b boot) at(now time.Time) time.Time {
	up, err := agents.Uptime()
	if err != nil || b.Up == 0 {
		return b.Since
	}
	if at := now.Add(b.Up - up); at.Before(b.Since) {
		return at
	}
	return b.Since // a clock that was set on, or a sleep of the machine, has what was decided before it wait still
}

// Booted is the moment before which nothing was started that may still run.
func (ls *Launches) Booted() time.Time { return ls.Boot.at(ls.opt.Now()) }
