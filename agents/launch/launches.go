// Package launch makes the launches of one repo. A launch is a process with a key: it is started
// once, confined by a sandbox where there is one, and waited for. A second start does no harm, even
// by another daemon after a crash: the launch is found by its pid file, or its recorded end is
// returned.
//
// Read process.go first (Ensure, and how a launch is followed), then begin.go (it is adopted or
// started), order.go (an Order, the Process it starts, how it Ended), told.go (its end for the engine,
// and what its agent said about it), converse.go (asks an agent until its answer can be read), line.go
// (the command line), session.go and conversation.go (conversations), spending.go (what the day has used:
// begin.go starts nothing beyond it, and process.go ends what works), slots.go, stopall.go, stream.go and
// log.go. A launch on a worker: sent.go, afar.go, bundle.go. Confinement starts in cage.go: contain.go
// (what a launch sees of the repo and its own folders), shown.go (what it can read of the machine),
// owngit.go (its git folder), level.go and unheld.go (runs with unheld launches), private.go and
// declared.go (its own files), room.go (disk usage), ahead.go (spares). judged.go says where judges
// work; standin.go plays agents in a run with --stub; boot.go identifies the machine's start.
//
// # The start of the machine, or of its disk
//
// The records of launches are not synced: no process outlives a power cut. A launch that was
// decided before the start which boot records is never started under its key if it has no pid file.
// Processes which may have its token are ended, and the launch is lost. The engine launches it
// again, under another key, as often as restarts allow. A pid file that is no record counts as
// missing if it is older than that start, and is removed; the launch of a newer one is lost too,
// and the file stays.
//
// A state folder on another mount is another start: a disk that failed and was repaired may have
// lost unsynced data while the processes live on. Commands of checks and hooks, which may run
// twice, are started again under their keys.
package launch

import (
	"fmt"
	"sync"
	"time"

	"sluice/agents"
)

// Options are what Launches need. Slots, Spending and PutDown are optional.
type Options struct {
	CageOptions
	Runner   *agents.Runner
	Slots    *Slots           // shared by all repos: how many agents may run; nil = no limit
	Spending *Spending        // shared by all repos: the usage of the day; nil = no day's budget
	PutDown  func() time.Time // last stop of the service or the machine on purpose; nil = never
	Now      func() time.Time
	Afar     Afar // the workers; nil = there are none
}

// Launches are the processes of one repo.
type Launches struct {
	*Cage
	opt  Options
	Log  *Log // what agents say
	Boot boot // see Booted
	Far  Far  // those on workers

	talks sync.Mutex // held while a session's file is read and written
}

// New returns the Launches of a repo. The caller closes them.
func New(o Options) (*Launches, error) {
	b, err := bootedIn(o.Layout.State, o.Now())
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	cage, err := newCage(o.CageOptions)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	ls := &Launches{Cage: cage, opt: o, Log: newLog(o.Layout, o.Notes.Logf, o.Now), Boot: b}
	ls.Far = Far{ls, o.Afar}
	return ls, nil
}

// SetLive sets which runs are live and which launches the journal has, as of the last whole scan.
func (ls *Launches) SetLive(runs, launches []string) {
	ls.mu.Lock()
	ls.liveRuns = runs
	ls.mu.Unlock()
	if ls.opt.Afar != nil {
		ls.opt.Afar.Recorded(launches)
	}
}
