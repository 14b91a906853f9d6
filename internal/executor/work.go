package executor

import (
	"sync"
	"time"

	"sluice/internal/git"
	"sluice/watcher/inbox"
)

// Options are what Work works with. All are needed, but for Git.
type WorkOptions struct {
	Judges *Judges
	Inbox  *inbox.Inbox
	Git    *git.Repo
	Logf   func(string, ...any)
	Now    func() time.Time
}

// Work carries out what attempts are owed, from their launch to what is written of them.
type Work struct {
	*Judges
	*inbox.Inbox
	opt WorkOptions

	listMu sync.Mutex
	lists  map[string]*taskFile // task files as read last, by their paths
}

// NewWork makes the Work of a repo.
func NewWork(o WorkOptions) *Work {
	return &Work{Judges: o.Judges, Inbox: o.Inbox, opt: o, lists: map[string]*taskFile{}}
}
