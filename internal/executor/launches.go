package executor

import (
	"sync"
	"time"

	"sluice/agents"
	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/settings"
)

// LaunchesOptions are what Launches work with. All are needed, but for Slots, Spending and PutDown.
type LaunchesOptions struct {
	Cage     *Cage
	Runner   *agents.Runner
	Settings func() settings.Settings
	Slots    *launch.Slots    // shared by all repos: how many agents may run; nil = no bound
	Spending *Spending        // shared by all repos: what they have used of the day; nil = no budget of the day
	PutDown  func() time.Time // when what ran was last ended with the service, or with the machine, on purpose; nil = never
	Log      *launch.Log      // what agents say
	Now      func() time.Time
}

// Launches are the processes of one repo: each is started once under its key, waited for, and known by how it ended.
type Launches struct {
	*Cage
	opt  LaunchesOptions
	boot boot // see booted

	talks sync.Mutex // held where a session's file is read and written
}

// NewLaunches makes the Launches of a repo.
func NewLaunches(o LaunchesOptions) (*Launches, error) {
	b, err := bootedIn(o.Cage.State, o.Now())
	return &Launches{Cage: o.Cage, opt: o, boot: b}, err
}

// Sum logs what an attempt's agent has said as a whole.
func (ls *Launches) Sum(key string, ev *engine.ProcessEnded) { ls.opt.Log.Sum(key, ev) }
