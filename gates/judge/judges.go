// Package judge runs the judges of an attempt's work: criteria and commands (check.go), reviewers
// (review.go) and their setups (setup.go). Judges work in a checkout of the taken commit
// (judge.go). Package gates decides what their outcome means.
package judge

import (
	"time"

	"sluice/agents"
	"sluice/agents/launch"
	"sluice/gates/checkouts"
	"sluice/internal/collect"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/layout"
)

// Options are what Judges need. Git is optional.
type Options struct {
	Collector *collect.Collector
	Launches  *launch.Launches
	Folders   *folders.Folders
	Runner    *agents.Runner
	Git       *git.Repo // nil: there are no checkouts to judge in
	Now       func() time.Time
}

// Judges run the criteria, gate commands and reviewers of one repo, and their setups.
type Judges struct {
	layout.Layout
	*health.Notes
	opt       Options
	collector *collect.Collector
	launches  *launch.Launches
	folders   *folders.Folders

	Seats   *checkouts.Checkouts // nil: there is no git
	setting chan struct{}        // taken by whoever runs a setup
}

// New returns the Judges of a repo.
func New(o Options) *Judges {
	js := &Judges{Layout: o.Folders.Layout, Notes: o.Folders.Notes, opt: o, collector: o.Collector,
		launches: o.Launches, folders: o.Folders,
		setting: make(chan struct{}, 1)}
	js.Seats = js.newCheckouts()
	return js
}
