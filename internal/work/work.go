// Package work carries out what attempts are owed, from their launch to what is written of them: the process of a step and
// its answer (step.go), hooks (hook.go), offers (offer.go), task files (tasks.go, tasks_made.go), outputs and retry context
// (write.go), the end of what is owed no more (stop.go), and what is removed with a run that is over (retire.go).
package work

import (
	"sync"
	"time"

	"sluice/agents/launch"
	"sluice/gates/judge"
	"sluice/internal/collect"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/watcher/inbox"
)

// Options are what Work works with. All are needed, but for Git.
type Options struct {
	Judges    *judge.Judges
	Collector *collect.Collector
	Launches  *launch.Launches
	Folders   *folders.Folders
	Inbox     *inbox.Inbox
	Git       *git.Repo
	Logf      func(string, ...any)
	Now       func() time.Time
}

// Work carries out what attempts are owed, from their launch to what is written of them.
type Work struct {
	layout.Layout
	*health.Notes
	opt       Options
	judges    *judge.Judges
	collector *collect.Collector
	launches  *launch.Launches
	folders   *folders.Folders
	inbox     *inbox.Inbox

	listMu sync.Mutex
	lists  map[string]*taskFile // task files as read last, by their paths
}

// New makes the Work of a repo.
func New(o Options) *Work {
	return &Work{Layout: o.Folders.Layout, Notes: o.Folders.Notes, opt: o, judges: o.Judges, collector: o.Collector, launches: o.Launches, folders: o.Folders,
		inbox: o.Inbox, lists: map[string]*taskFile{}}
}
