// Package work carries out what attempts are owed, from their launch to what is written of them: the process of a step and
// its answer (step.go), hooks (hook.go), offers (offer.go), task files (tasks.go, tasks_made.go), outputs and retry context
// (write.go), the end of what is owed no more (stop.go), and what is removed with a run that is over (retire.go).
package work

import (
	"sync"
	"time"

	"sluice/gates/judge"
	"sluice/internal/git"
	"sluice/watcher/inbox"
)

// Options are what Work works with. All are needed, but for Git.
type Options struct {
	Judges *judge.Judges
	Inbox  *inbox.Inbox
	Git    *git.Repo
	Logf   func(string, ...any)
	Now    func() time.Time
}

// Work carries out what attempts are owed, from their launch to what is written of them.
type Work struct {
	*judge.Judges
	*inbox.Inbox
	opt Options

	listMu sync.Mutex
	lists  map[string]*taskFile // task files as read last, by their paths
}

// New makes the Work of a repo.
func New(o Options) *Work {
	return &Work{Judges: o.Judges, Inbox: o.Inbox, opt: o, lists: map[string]*taskFile{}}
}
