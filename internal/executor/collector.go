package executor

import (
	"sync"

	"sluice/agents/launch"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/settings"
)

// CollectorOptions are what a Collector works with. All are needed, but for Git.
type CollectorOptions struct {
	Launches *launch.Launches
	Folders  *folders.Folders
	Git      *git.Repo
	Settings func() settings.Settings
	Logf     func(string, ...any)
}

// Collector collects what agents are asked about: the files that a spec names, what was found wrong before, a person's words.
type Collector struct {
	*launch.Launches
	*folders.Folders
	opt CollectorOptions

	pointing sync.Mutex // held while runs/last is made to lead elsewhere
}

// NewCollector makes the Collector of a repo.
func NewCollector(o CollectorOptions) *Collector {
	return &Collector{Launches: o.Launches, Folders: o.Folders, opt: o}
}
