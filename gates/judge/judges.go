// Package judge runs what judges the work of an attempt: its criteria and commands (check.go), reviewers (review.go) and the
// setups that these need (setup.go). Who judges works in a checkout of the taken commit (judge.go); what its outcome means
// package gates says.
package judge

import (
	"time"

	"sluice/agents"
	"sluice/gates/checkouts"
	"sluice/internal/collect"
	"sluice/internal/git"
	"sluice/internal/settings"
)

// Options are what Judges work with. All are needed, but for Git.
type Options struct {
	Collector *collect.Collector
	Runner    *agents.Runner
	Git       *git.Repo // nil: there are no checkouts to judge in
	Settings  func() settings.Settings
	Logf      func(string, ...any)
	Now       func() time.Time
}

// Judges run what judges the work of attempts: criteria, gate commands, reviewers, and the setups that these need.
type Judges struct {
	*collect.Collector
	opt Options

	Seats   *checkouts.Checkouts // nil: there is no git
	setting chan struct{}        // held by whoever runs a setup
}

// New makes the Judges of a repo.
func New(o Options) *Judges {
	js := &Judges{Collector: o.Collector, opt: o, setting: make(chan struct{}, 1)}
	js.Seats = js.newCheckouts()
	return js
}
