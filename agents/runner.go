package agents

import (
	"context"
	"sync"
	"time"
)

const (
	// claimLimit is how long a shim may take from its start to its pid file.
	claimLimit = 30 * time.Second
	// stopMargin is what a shim gets beyond kill-after to see its tree gone
	// and write the record. One that takes longer is held (SIGSTOP) or broken
	// and is ended itself.
	stopMargin = 5 * time.Second
	// warmFor is how long a shim without a launch is kept: a daemon that waits
	// for people for hours needs none.
	warmFor = 30 * time.Second
)

// Options of a Runner.
type Options struct {
	// Shim is the command that runs the shim, e.g. ["/usr/bin/sluice",
	// "shim"]: something that calls ShimMain.
	Shim []string
	// Warm is how many shims that have no launch any more are kept for the
	// next ones, for half a minute each: to start one takes as long as to start
	// this program.
	Warm int
	// Logf is told what went wrong but did not stop the work; it may be nil.
	Logf func(format string, args ...any)
}

// Runner starts, adopts and stops launches. What is known of a launch is on
// the disk, so that a new Runner goes on where the last one ended. It is safe
// for use by several goroutines. Close it.
type Runner struct {
	shim       []string
	warm       int
	logf       func(format string, args ...any)
	stopMargin time.Duration
	warmFor    time.Duration

	mu      sync.Mutex
	closed  bool
	idle    []*host             // shims without a launch, that rests the longest first
	cooling *time.Timer         // until its time is over; nil: there is none
	busy    map[string]*ongoing // by pid file
	shims   sync.WaitGroup      // their followers
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	return &Runner{shim: append([]string(nil), o.Shim...), warm: o.Warm, logf: o.Logf, stopMargin: stopMargin, warmFor: warmFor, busy: map[string]*ongoing{}}
}

// Proc is one launch, live or ended.
type Proc struct {
	r   *Runner
	id  identity
	dir string
}

// Key is the launch's key.
func (p *Proc) Key() string { return p.id.Key }

// Pid is the shim's process, to be shown to a person. Never signal it: it may
// have gone and the number be another's.
func (p *Proc) Pid() int { return p.id.Pid }

// Launched is when the launch was claimed.
func (p *Proc) Launched() time.Time { return p.id.Launched }

// Stop ends the launch: see Runner.Stop.
func (p *Proc) Stop(ctx context.Context) error { return p.r.stop(ctx, p.id, p.dir) }
