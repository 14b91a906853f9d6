package agents

import (
	"slices"
	"sync"
	"time"
)

const (
	// claimLimit is how long a shim may take from its start to its pid file.
	claimLimit = 30 * time.Second
	// stopMargin is the time beyond kill-after for a shim to see its tree gone and write the
	// record. A slower one is suspended (SIGSTOP) or broken, and is killed.
	stopMargin = 5 * time.Second
	// warmFor is how long an idle shim is kept: a daemon that waits hours for people needs none.
	warmFor = 30 * time.Second
)

// Options of a Runner.
type Options struct {
	// Shim is the command that runs the shim, e.g. ["/usr/bin/sluice", "shim"]: something that
	// calls ShimMain.
	Shim []string
	// Warm is how many idle shims are kept for the next launches, for half a minute each: starting
	// one takes as long as starting this program.
	Warm int
	// Logf receives errors that did not stop the work; it may be nil.
	Logf func(format string, args ...any)
}

// Runner starts, adopts and stops launches. All that is known of a launch is on disk, so a new
// Runner continues where the last one ended. It is safe for concurrent use. Close it.
type Runner struct {
	shim       []string
	warm       int
	logf       func(format string, args ...any)
	stopMargin time.Duration
	warmFor    time.Duration

	mu      sync.Mutex
	closed  bool
	idle    []*host             // idle shims, longest idle first
	cooling *time.Timer         // until the first's time is over; nil if there is none
	busy    map[string]*ongoing // by pid file
	shims   sync.WaitGroup      // their followers
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	return &Runner{shim: slices.Clone(o.Shim), warm: o.Warm, logf: o.Logf, stopMargin: stopMargin,
		warmFor: warmFor, busy: map[string]*ongoing{}}
}

// Proc is one launch, live or ended.
type Proc struct {
	r   *Runner
	id  identity
	dir string
}

// Launched returns when the launch was claimed.
func (p *Proc) Launched() time.Time { return p.id.Launched }
