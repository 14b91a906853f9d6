// Package collect collects what agents are asked about: the files that a spec names, what was found wrong before, the words
// of people. Package prompt formats it. step.go is the prompt of a step, prompts.go the template of a role, replies.go
// what came back.
package collect

import (
	"sluice/agents/launch"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// Options are what a Collector works with. All are needed, but for Git.
type Options struct {
	Launches *launch.Launches
	Folders  *folders.Folders
	Git      *git.Repo
	Settings func() settings.Settings
	Logf     func(string, ...any)
}

// Collector collects what agents are asked about: the files that a spec names, what was found wrong before, a person's words.
type Collector struct {
	layout.Layout
	opt      Options
	launches *launch.Launches
	folders  *folders.Folders
}

// New makes the Collector of a repo.
func New(o Options) *Collector {
	return &Collector{Layout: o.Folders.Layout, opt: o, launches: o.Launches, folders: o.Folders}
}
