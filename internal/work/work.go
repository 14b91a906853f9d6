// Package work carries out the work that attempts need, from launch to record: a step's process and
// answer (step.go), on a worker too (afar.go), hooks (hook.go), offers (offer.go), task files (tasks.go,
// tasks_made.go), outputs, retry context and moves of branches (write.go), stops (stop.go), and what the
// state folder keeps of ended runs (retire.go).
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

// Options are what Work needs. Git is optional.
type Options struct {
	Judges    *judge.Judges
	Collector *collect.Collector
	Launches  *launch.Launches
	Folders   *folders.Folders
	Inbox     *inbox.Inbox
	Git       *git.Repo
	Now       func() time.Time
}

// Work carries out the work of one repo's attempts.
type Work struct {
	Options
	layout.Layout
	*health.Notes

	listMu sync.Mutex
	lists  map[string]*taskFile // last read task files, by path
}

// New returns the Work of a repo.
func New(o Options) *Work {
	return &Work{Options: o, Layout: o.Folders.Layout, Notes: o.Folders.Notes, lists: map[string]*taskFile{}}
}
