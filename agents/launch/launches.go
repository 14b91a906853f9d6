// Package launch makes the launches of one repo: each process is started once under its key, held by a sandbox where there is
// one, waited for, and known by how it ended. Starting it twice does no harm, also by another daemon after a crash: a launch
// is found by its pid file and waited for, or its recorded end is returned.
//
// Read first process.go (an Order, the Process it starts, how it Ended), then converse.go (an agent asked until its answer can
// be read), line.go (what its program is started with), told.go (what it said of its end), session.go and conversation.go
// (conversations), spending.go (the day's budget), slots.go, stream.go and log.go. cage.go begins what holds a launch: contain.go (what it sees), owngit.go
// (its own git folder), level.go and unheld.go (which runs nothing held), private.go and declared.go (what is its own),
// room.go (how much disk), ahead.go (made before it is needed). judged.go is where those who judge work; standin.go plays
// agents in a run with --stub; boot.go knows the start of the machine.
//
// # The start of the machine, or of its disk
//
// The records of launches are not synced: no process outlives a power cut. So what was decided before the start that boot
// tells is never started under its key where it has no pid file: what may still have its token is ended, and it is lost.
// The engine launches it anew, under another key, as often as restarts allow. A pid file that is no record counts as none
// if it is older than that start, and is removed; the launch of a newer one is lost too, and the file stays.
//
// A state folder on another mount than before is another start: a disk that failed and was repaired may have lost what was
// not synced, while the processes live on. Commands of checks and hooks, which do no harm twice, are started again under
// their keys.
package launch

import (
	"sync"
	"time"

	"sluice/agents"
	"sluice/engine"
	"sluice/internal/settings"
)

// Options are what Launches work with. All are needed, but for Slots, Spending and PutDown.
type Options struct {
	Cage     *Cage
	Runner   *agents.Runner
	Settings func() settings.Settings
	Slots    *Slots           // shared by all repos: how many agents may run; nil = no bound
	Spending *Spending        // shared by all repos: what they have used of the day; nil = no budget of the day
	PutDown  func() time.Time // when what ran was last ended with the service, or with the machine, on purpose; nil = never
	Log      *Log             // what agents say
	Now      func() time.Time
}

// Launches are the processes of one repo: each is started once under its key, waited for, and known by how it ended.
type Launches struct {
	*Cage
	opt  Options
	Boot boot // see Booted

	talks sync.Mutex // held where a session's file is read and written
}

// New makes the Launches of a repo.
func New(o Options) (*Launches, error) {
	b, err := bootedIn(o.Cage.State, o.Now())
	return &Launches{Cage: o.Cage, opt: o, Boot: b}, err
}

// Sum logs what an attempt's agent has said as a whole.
func (ls *Launches) Sum(key string, ev *engine.ProcessEnded) { ls.opt.Log.Sum(key, ev) }
