// Package collect collects the contents of prompts: the files that a spec names, earlier faults,
// people's words. Package prompt formats them. step.go has the prompt of a step, prompts.go the
// template of a role, replies.go what came back.
package collect

import (
	"sluice/agents/launch"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// Options are what a Collector needs. Git is optional.
type Options struct {
	Launches *launch.Launches
	Folders  *folders.Folders
	Git      *git.Repo
	Settings func() settings.Settings
}

// Collector collects the contents of prompts.
type Collector struct {
	layout.Layout
	opt      Options
	launches *launch.Launches
	folders  *folders.Folders
}

// New returns the Collector of a repo.
func New(o Options) *Collector {
	return &Collector{Layout: o.Folders.Layout, opt: o, launches: o.Launches, folders: o.Folders}
}
