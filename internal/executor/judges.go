package executor

import (
	"time"

	"sluice/agents"
	"sluice/gates/checkouts"
	"sluice/internal/git"
	"sluice/internal/settings"
)

// JudgesOptions are what Judges work with. All are needed, but for Git.
type JudgesOptions struct {
	Collector *Collector
	Runner    *agents.Runner
	Git       *git.Repo // nil: there are no checkouts to judge in
	Settings  func() settings.Settings
	Logf      func(string, ...any)
	Now       func() time.Time
}

// Judges run what judges the work of attempts: criteria, gate commands, reviewers, and the setups that these need.
type Judges struct {
	*Collector
	opt JudgesOptions

	judges  *checkouts.Checkouts // nil: there is no git
	setting chan struct{}        // held by whoever runs a setup
}

// NewJudges makes the Judges of a repo.
func NewJudges(o JudgesOptions) *Judges {
	js := &Judges{Collector: o.Collector, opt: o, setting: make(chan struct{}, 1)}
	js.judges = js.newCheckouts()
	return js
}
