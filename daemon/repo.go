package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/journal"
)

// Limits of the loop.
const (
	stallFirst = 100 * time.Millisecond
	stallMost  = 2 * time.Second
	aliveEvery = 10 * time.Second
	// rescanEvery is the usual time between scans of the inboxes.
	rescanEvery = 5 * time.Second
)

// RepoOptions configures a repo's loop.
type RepoOptions struct {
	Root    string // the repo's root; "": no readable copies and no mark of being served
	State   string // its state folder, 0700
	World   World
	Compile Compile
	Config  func() engine.Config // the settings in force; the loop asks, so it must not block
	Reread  func()               // reads them again, for a reload; may be nil
	Changed <-chan struct{}      // says that they have changed; may be nil
	Rescan  time.Duration        // between scans of the inboxes, regardless of hints
	// Rest is the same while nothing is under way; the World then hints at what no event reported.
	// 0: Rescan.
	Rest    time.Duration
	Log     zerolog.Logger
	Journal journal.Options
	ID      string // of the journal, if it is new; "": a random one
	Version string
	// Beat is called by the loop at least every Rescan, or Rest, for a watchdog. It may be nil.
	Beat func()
	// Alarm alerts a person to what concerns no run. It may be nil.
	Alarm func(ctx context.Context, title, text string)
	Now   func() time.Time
	// Spent receives what the repo has used of a day whenever that changes. It returns what to tell
	// a person. It may be nil.
	Spent func(engine.Day) []engine.Event
	// Asked receives a run's rounds that a person may decide, by gate, whenever they change. The
	// loop waits for it, so it must not block. It may be nil.
	Asked func(run string, rounds []job.AskedRound)
	// Hear begins to pass on what people say by ways other than the socket: to do, in the name of the
	// process's user, or to take, whose events name who says it. Both return once the decision is
	// journaled. end waits for what is under way; nothing is passed to do after it. It may be nil.
	Hear func(ctx context.Context, do func(context.Context, Do) (Done, error),
		take func(context.Context, engine.Event) (Done, error)) (end func())
	// Present returns what the triggers of a spec would fire for and that is there already. It may
	// be nil: nothing is.
	Present func(ctx context.Context, spec *engine.Spec) ([]engine.Was, error)
	// Today returns the day, what all repos have used of it, and the limit (0 = none). It may be
	// nil.
	Today func() (day string, used, most engine.Spend)
	// Pace converts a span of Now's clock to one of the machine's timers: a soak test passes a week
	// in an hour. nil: the same.
	Pace func(time.Duration) time.Duration
	// Brought brings the work of a live run that the journal names, if another machine made it. It
	// returns why a person must see to it. nil: all work is here.
	Brought func(ctx context.Context, run string, work Work) (why string)
	// Lead is set for a journal that several machines keep. nil: this one alone decides.
	Lead Lead
	// Drain has a worker finish what it has and take nothing new, or take orders again. nil: no workers.
	Drain func(ctx context.Context, worker string, drain bool) error
	// Hold is for taking the repo up only to end a run. Nothing is launched and no process is
	// adopted, for any run. What must end is ended, and an ended run's after_run continues. The
	// rest is left to the next process that serves the repo.
	Hold bool
	// Look is the time between two looks whether the repo's socket is still there; 0: a minute.
	Look time.Duration
}

// Repo is one repo's loop: one goroutine that decides on what the queue brings, turn by turn. Only the loop
// uses its parts, except those whose docs say that any goroutine may call.
type Repo struct {
	opt       RepoOptions
	core      *core
	troubles  *troubles
	queue     *queue
	followers *followers
	intake    *intake
	orders    *orders
	scans     *scans
	asks      *asks
	day       dayReport
	fl        *flights
	exp       *exporter
	began     time.Time

	ticked  time.Time    // when Ticked was last decided
	retryAt time.Time    // when to retry failed effects
	marked  time.Time    // when the mark of being served was last written
	resting bool         // until something is decided, the next rescan is Rest away
	wall    time.Time    // of the last turn; a jump against the monotonic clock means the machine slept
	stalled engine.Woken // the last turn could not be recorded for so long; zero: it could

	goroutines sync.WaitGroup // of scans and effects

	served func() time.Time                       // when the repo was last served; zero: unknown
	serve  func(time.Time)                        // writes that time
	told   func(done []entry)                     // for the simulation: what was journaled
	steady func(from, to time.Time) time.Duration // duration by the clock that sleeps with the machine
}

// OpenRepo opens the journal. The caller has the repo's lock. It returns a *journal.Damage
// unchanged.
func OpenRepo(opt RepoOptions) (*Repo, journal.Recovery, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Pace == nil {
		opt.Pace = func(d time.Duration) time.Duration { return d }
	}
	if opt.Rescan <= 0 {
		opt.Rescan = rescanEvery
	}
	c, rec, err := openCore(opt.State, opt.Journal, opt.Compile)
	if err != nil {
		return nil, rec, err
	}
	if c.led > 0 && opt.Lead == nil {
		return nil, rec, errors.Join(errLed(c.led), c.log.Close())
	}
	if opt.Hold {
		c.state.Hold()
	}
	r := &Repo{opt: opt, core: c, began: opt.Now(), orders: newOrders(c, opt.Hold)}
	r.troubles = &troubles{opt: &r.opt}
	r.queue = newQueue(r.troubles)
	r.followers = &followers{subs: map[chan journal.Record]bool{}}
	r.intake = &intake{opt: &r.opt, queue: r.queue}
	r.scans = &scans{opt: &r.opt, core: c, post: r.queue.post, spawn: r.spawn, moved: map[string]bool{}}
	r.asks = &asks{opt: &r.opt, orders: r.orders, last: map[string][]askedRound{}}
	if r.followers.seq, _ = c.log.Last(); r.followers.seq == 0 {
		c.id = cmp.Or(opt.ID, journal.NewID())
	}
	var alive aliveFile
	if opt.Root != "" {
		alive = aliveFile(filepath.Join(opt.State, "alive"))
	}
	r.served, r.serve = alive.last, alive.set
	if opt.Lead != nil { // by whichever machine
		r.served = func() time.Time { return opt.Lead.Report().Renewed }
	}
	r.steady = func(from, to time.Time) time.Duration { return to.Sub(from) }
	return r, rec, nil
}

// Run runs the loop until ctx ends, then syncs what is decided and leaves agents running. An error
// is final: this process must not use the journal's file again.
func (r *Repo) Run(ctx context.Context) (err error) {
	defer close(r.queue.gone)
	defer func() {
		if r.exp != nil { // nothing more is published
			r.exp.end()
		}
		err = errors.Join(err, r.core.log.Close()) // the exporter reads it
	}()
	work, stop := context.WithCancel(context.Background())
	r.fl = newFlights(work, r.opt.World, r.spawn, r.queue.post)
	if r.opt.Lead != nil {
		r.fl.holds = r.opt.Lead.Holds
	}
	defer r.land(stop)
	if r.opt.Root != "" {
		r.exp = newExporter(r.opt.Root, r.opt.State, r.opt.Log, r.troubles.setExport)
		r.exp.begin(r.core.log.Replay)
		r.spawn(func() { r.troubles.checkPast(work, r.core.log) })
	}
	if r.opt.Hear != nil {
		end := r.opt.Hear(work, r.Do, r.take)
		defer r.spawn(end) // land waits for it
	}
	c := newClocks(&r.opt)
	defer c.stop()
	batch := r.start(ctx)
	if r.opt.Brought != nil && ctx.Err() != nil {
		return nil // some work may not be here: nothing is decided, and nothing begins
	}
	for {
		if err := r.turn(ctx, batch); err != nil {
			return err
		}
		r.beat()
		c.follow(r.resting)
		c.wakeAt(r.nextWake())
		if !r.scans.left && r.core.state.NeedsScan(r.opt.Now()) { // else a hint or the rescan is next
			r.scans.scan(work)
		}
		var ended bool
		if batch, ended = r.next(ctx, c); ended {
			return r.close()
		}
	}
}

// start reports what may have changed while no process served the repo. The time away comes first:
// a crash may leave only the first records of a batch, and the next start counts from the last one.
func (r *Repo) start(ctx context.Context) []item {
	now := r.opt.Now().Round(0) // what is due from it is kept, and is compared with times of the wall's clock
	woken := engine.Woken{From: r.left(now), To: now, Offset: engine.Duration(r.core.ahead)}
	if c := clusterOf(r.opt.Lead); c != nil {
		woken.Epoch = c.Epoch
	}
	batch := []item{{event: woken}}
	if !sameJSON(r.opt.Config(), r.core.state.Config) {
		batch = append(batch, item{event: engine.Configured{}})
	}
	for _, id := range r.core.state.Order { // pinned specs that this release cannot load
		run := r.core.state.Runs[id]
		if why, bad := r.core.unread[run.Digest]; bad && run.Live() && !run.Paused {
			why = "the spec it was started with cannot be read by this release: " + why
			batch = append(batch, item{event: engine.SpecUnread{Run: id, Why: why}})
		}
	}
	if r.opt.Brought != nil {
		batch = append(batch, r.brought(ctx)...)
	}
	return append(batch, item{ask: func(*core) { // journaled: only now may the time away be forgotten
		r.serve(now)
		r.scans.scan(r.fl.ctx)
	}})
}

// left returns the best guess of when the repo was last served; without any, now. The last record
// is journaled shortly after the mark of being served. A much later record predates a clock that
// was set back, and so does a mark later than now.
func (r *Repo) left(now time.Time) time.Time {
	at, last := r.served(), r.core.lastAt.Add(r.core.ahead)
	if at.IsZero() || at.After(now) || last.After(at) && last.Sub(at) <= 2*aliveEvery {
		at = last
	}
	if at.IsZero() || at.After(now) {
		return now
	}
	return at
}

func sameJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// nextWake returns when the loop must look again even if nothing happens.
func (r *Repo) nextWake() time.Time {
	at := r.core.state.Wake(r.ticked)
	if r.retryAt.IsZero() {
		return at
	}
	now := r.opt.Now() // a retry is due by the steady clock: the other may have been set back since
	if retry := now.Add(r.retryAt.Sub(now)); at.IsZero() || retry.Before(at) {
		return retry
	}
	return at
}

func (r *Repo) beat() {
	if r.opt.Beat != nil {
		r.opt.Beat()
	}
}

// publish passes journaled records to the exports and to followers.
func (r *Repo) publish(done []entry) {
	if len(done) == 0 {
		return
	}
	if r.told != nil {
		r.told(done)
	}
	if r.exp != nil {
		for _, e := range done {
			r.exp.give(e.rec)
		}
	}
	r.followers.publish(done)
}

// slept detects that the machine was asleep: the wall clock advanced and the steady clock did not.
func (r *Repo) slept(now time.Time) (woken engine.Woken, slept bool) {
	before := r.wall
	r.wall = now
	if before.IsZero() {
		return woken, false
	}
	from, to := before.Round(0), now.Round(0)
	return engine.Woken{From: from, To: to}, to.Sub(from)-r.steady(before, now) > engine.GapAllowed
}
