package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/journal"
)

// Limits of the loop.
const (
	queueMost  = 64  // queued items; more block the sender
	batchMost  = 512 // items per sync
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
	Config  func() engine.Config // read at start and on reload
	Changed <-chan engine.Config // receives later changes; may be nil
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
	// Hear runs beside the loop until ctx ends. It passes to do what people say by ways other than
	// the socket. It may be nil.
	Hear func(ctx context.Context, do func(context.Context, Do) (Done, error))
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
}

// Repo is one repo's loop: one queue, one goroutine that decides.
type Repo struct {
	opt   RepoOptions
	core  *core
	queue chan *item // pointers: the empty queue is most of the memory of an idle repo
	fl    *flights
	exp   *exporter
	mu    sync.Mutex // guards what follows, which the API reads
	subs  map[chan journal.Record]bool
	stall string
	outs  string // what is wrong with the exports
	past  string // what is wrong with records before the newest snapshot
	seq   int64

	scanning  bool
	scanAgain bool      // read all inboxes after the current scan
	lookAgain bool      // read the hinted folders after it
	since     time.Time // start of the first in a series of incomplete scans
	scanAfter time.Time // after a failed scan: none before this
	ticked    time.Time // when Ticked was last decided; wall clock only
	retryAt   time.Time // when to retry failed effects
	marked    time.Time // when the mark of being served was last written
	clean     bool      // the last full scan found nothing and left nothing to look at
	resting   bool      // until something is decided, the next rescan is Rest away
	wall      time.Time // of the last turn; a jump against the monotonic clock means the machine slept
	gone      chan struct{}
	began     time.Time
	asked     map[string][]askedRound // what Asked last received
	spent     *engine.Day             // what Spent last received
	spentOf   engine.Spend            // the day's budget then
	found     map[string]bool         // keys of the launches that were on the record at the start

	goroutines sync.WaitGroup // of scans and effects
	// files moved out of their inbox during a scan that may have seen them
	moved  map[string]bool
	served func() time.Time                       // when the repo was last served; zero: unknown
	serve  func(time.Time)                        // writes that time
	told   func(done []entry)                     // for the simulation: what was journaled
	steady func(from, to time.Time) time.Duration // duration by the clock that sleeps with the machine
}

// item is one thing in the queue: an event, a question, or an effect's landing.
type item struct {
	event  engine.Event
	scan   []engine.Event // what a finished scan saw
	began  time.Time      // when it began
	part   bool           // it covered some folders only
	more   bool           // it did not reach the end
	landed *flight
	ask    func(*core)      // run on the loop's goroutine
	reply  chan<- doneReply // told when the event is journaled
}

type doneReply struct {
	facts []engine.Fact
	rec   journal.Record
	err   error
}

// ErrStopped is returned to callers of a loop that has ended.
var ErrStopped = errors.New("the service for this repo has stopped")

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
	r := &Repo{opt: opt, core: c, queue: make(chan *item, queueMost), subs: map[chan journal.Record]bool{},
		asked: map[string][]askedRound{}, moved: map[string]bool{}, gone: make(chan struct{}), began: opt.Now(),
		found: launched(c.state)}
	if r.seq, _ = c.log.Last(); r.seq == 0 {
		c.id = cmp.Or(opt.ID, journal.NewID())
	}
	r.served, r.serve = r.lastServed, r.markServed
	if opt.Lead != nil { // by whichever machine
		r.served = func() time.Time { return opt.Lead.Report().Renewed }
	}
	r.steady = func(from, to time.Time) time.Duration { return to.Sub(from) }
	return r, rec, nil
}

// launched returns the keys of the launches that have not ended.
func launched(s *engine.State) map[string]bool {
	keys := map[string]bool{}
	for _, run := range s.Runs {
		for _, p := range run.Procs {
			keys[p.Key] = true
		}
	}
	return keys
}

// Root returns the repo's root.
func (r *Repo) Root() string { return r.opt.Root }

// State returns the repo's state folder.
func (r *Repo) State() string { return r.opt.State }

// post queues an item. It waits while the queue is full and gives up when the loop has ended.
func (r *Repo) post(it item) {
	select {
	case r.queue <- &it:
	case <-r.gone:
	}
}

// Run runs the loop until ctx ends, then syncs what is decided and leaves agents running. An error
// is final: this process must not use the journal's file again.
func (r *Repo) Run(ctx context.Context) error {
	defer close(r.gone)
	defer r.endExport() // nothing more is published
	work, stop := context.WithCancel(context.Background())
	r.fl = newFlights(work, r.opt.World, r.spawn, r.post)
	if r.opt.Lead != nil {
		r.fl.holds = r.opt.Lead.Holds
	}
	defer r.land(stop)
	if r.opt.Root != "" {
		r.exp = newExporter(r.opt.Root, r.opt.State, r.opt.Log, r.setExport)
		go r.exp.run(r.core.log.Replay)
		r.spawn(func() { r.checkPast(work) })
	}
	if r.opt.Hear != nil {
		r.spawn(func() { r.opt.Hear(work, r.Do) })
	}
	c := r.newClocks()
	defer c.stop()
	for batch := r.start(ctx); ; {
		if err := r.turn(ctx, batch); err != nil {
			return errors.Join(err, r.core.log.Close())
		}
		r.beat()
		c.follow(r)
		if at := r.nextWake(); !at.IsZero() {
			c.wake.Reset(r.opt.Pace(max(at.Sub(r.opt.Now()), 0)))
		} else {
			c.wake.Stop()
		}
		if r.core.state.NeedsScan(r.opt.Now()) {
			r.scan(work)
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
	now := r.opt.Now()
	woken := engine.Woken{From: r.left(now), To: now, Offset: engine.Duration(r.core.ahead)}
	if c := clusterOf(r); c != nil {
		woken.Epoch = c.Epoch
	}
	batch := []item{{event: woken}}
	if cfg := r.opt.Config(); !sameJSON(cfg, r.core.state.Config) {
		batch = append(batch, item{event: engine.Configured{Config: cfg}})
	}
	for _, id := range r.core.state.Order { // pinned specs that this release cannot load
		run := r.core.state.Runs[id]
		if why, bad := r.core.unread[run.Digest]; bad && run.Live() && !run.Paused {
			why = "the spec it was started with cannot be read by this release: " + why
			batch = append(batch, item{event: engine.SpecUnread{Run: id, Why: why}})
		}
	}
	if r.opt.Brought != nil {
		batch = append(batch, brought(ctx, r)...)
	}
	return append(batch, item{ask: func(*core) { // journaled: only now may the time away be forgotten
		r.serve(now)
		r.scan(r.fl.ctx)
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

func (r *Repo) setStall(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why != "" && r.stall == "" {
		r.opt.Log.Error().Str("repo", r.opt.Root).Str("why",
			why).Msg("stalled: the journal cannot be written; nothing is started until it can")
	}
	if why == "" && r.stall != "" {
		r.opt.Log.Info().Str("repo", r.opt.Root).Msg("the journal can be written again")
	}
	r.stall = why
}

// setExport records what is wrong with the exports, "" for nothing. They retry by themselves.
func (r *Repo) setExport(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why != "" && r.outs == "" {
		r.opt.Log.Warn().Str("repo", r.opt.Root).Str("why",
			why).Msg("the audit export cannot be written; what is missing is added as soon as it can")
	}
	r.outs = why
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq = done[len(done)-1].rec.Seq
	for ch := range r.subs {
		for _, e := range done {
			if !offer(ch, e.rec) { // too slow: it resumes from the journal
				delete(r.subs, ch)
				close(ch)
				break
			}
		}
	}
}

func offer(ch chan journal.Record, rec journal.Record) bool {
	select {
	case ch <- rec:
		return true
	default:
		return false
	}
}

// follow returns the records from now on. The channel is closed when its reader lags or the loop
// ends.
func (r *Repo) follow() (chan journal.Record, int64) {
	ch := make(chan journal.Record, 1024)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.subs == nil {
		close(ch)
	} else {
		r.subs[ch] = true
	}
	return ch, r.seq
}

func (r *Repo) unfollow(ch chan journal.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subs, ch)
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
