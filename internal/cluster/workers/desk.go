package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/internal/cluster"
	"sluice/internal/layout"
)

const (
	// pace is how often a launch looks at what its worker's heartbeats say.
	pace = 100 * time.Millisecond
	// silentLeast is the least time after which a worker counts as silent: it beats every second.
	silentLeast = 5 * time.Second
	maxWorkers  = 10_000
	beatsAhead  = 1 << 12
)

// DeskOptions are what a Desk needs.
type DeskOptions struct {
	Conn    *cluster.Conn
	Packs   *cluster.Packs
	Layout  layout.Layout
	Journal string               // its id
	By      string               // this machine, for people
	Lead    func() (epoch int64) // the epoch in which this machine decides; 0 = it may begin nothing now
	Lease   func() time.Duration
	// Secret returns what the machines that can decide share, and no worker. The tokens of launches are
	// made of it, so that each of them knows a launch by its heartbeat.
	Secret func(ctx context.Context) ([]byte, error)
	// Pack stores a pack of an order's commits for a worker that has others; it returns its digest.
	Pack func(ctx context.Context, s launch.Sent, have []string) (digest string, err error)
	Late Late
	Logf func(string, ...any)
}

// Desk sends the launches of one journal to workers. Any goroutine may call it; Close ends it.
type Desk struct {
	opt   DeskOptions
	began time.Time
	subs  *nats.Subscription
	quit  context.CancelFunc
	done  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	workers map[string]*seen
	live    map[string]*live   // the launches that calls wait for
	asked   time.Time          // the time of the newest request
	asks    map[string]bool    // workers that are asked what their heartbeat makes necessary
	odd     map[string]*oddity // by worker
	records records
}

// seen is a worker as its newest heartbeat says.
type seen struct {
	Beat
	at       time.Time // when it came, by the monotonic clock
	given    int       // launches sent since
	answered bool      // it has answered once: before that, the name may be nobody's
	twin     time.Time // when one came of an older worker with its id
}

// live is a launch that calls wait for.
type live struct {
	calls  int
	token  string    // "" = it was not sent yet
	worker string    // that it was sent to; "" with a token: it is looked for
	marked time.Time // of the newest heartbeat that its worker has marked, by the worker's clock
	at     time.Time // when that came
}

var _ launch.Afar = (*Desk)(nil)

// NewDesk listens for workers. The caller closes it.
func NewDesk(o DeskOptions) (*Desk, error) {
	ctx, quit := context.WithCancel(context.Background())
	d := &Desk{opt: o, began: time.Now(), quit: quit, workers: map[string]*seen{}, live: map[string]*live{},
		asks: map[string]bool{}, odd: map[string]*oddity{}, records: records{begun: map[string]bool{}}}
	beats := make(chan *nats.Msg, beatsAhead)
	var err error
	if d.subs, err = o.Conn.Listen(prefix+"*"+beatEnd, beats); err != nil {
		quit()
		return nil, err
	}
	d.done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-beats:
				d.beat(ctx, m)
			}
		}
	})
	return d, nil
}

// Close ends the listening. What workers do goes on.
func (d *Desk) Close() error {
	err := d.subs.Unsubscribe()
	d.quit()
	d.done.Wait()
	return err
}

// Key returns the public key that signs what workers are asked; "" = nothing is signed.
func (d *Desk) Key() string { return d.opt.Conn.Key() }

// What of a worker's messages is reported: that many lines in that time, of so many workers.
const (
	oddMost  = 100
	oddEvery = time.Hour
)

// oddity is what of a worker's messages was refused.
type oddity struct {
	last  string
	lines int
	since time.Time // of the first
}

// refuse reports what of a worker's messages is not taken, what is repeated once. A worker cannot fill
// the log.
func (d *Desk) refuse(worker, what string) {
	d.mu.Lock()
	o := d.odd[worker]
	if o == nil || time.Since(o.since) > oddEvery {
		o = &oddity{since: time.Now()}
	}
	silent := o.last == what || o.lines == oddMost || d.odd[worker] == nil && len(d.odd) >= maxWorkers
	if !silent {
		o.last, o.lines, d.odd[worker] = what, o.lines+1, o
	}
	last := o.lines == oddMost
	d.mu.Unlock()
	switch {
	case silent:
	case last:
		d.opt.Logf("worker %.40s: refused: %s (more of it is not reported for up to %s)", worker, what, oddEvery)
	default:
		d.opt.Logf("worker %.40s: refused: %s", worker, what)
	}
}

// beat takes in a heartbeat.
func (d *Desk) beat(ctx context.Context, m *nats.Msg) {
	worker := strings.TrimSuffix(strings.TrimPrefix(m.Subject, prefix), beatEnd)
	b, err := readBeat(m.Data, worker)
	if err != nil {
		d.refuse(worker, "its heartbeat: "+err.Error())
		return
	}
	if b.Journal != d.opt.Journal {
		return
	}
	epoch := d.opt.Lead()
	d.mu.Lock()
	last := d.workers[worker]
	if last == nil && !d.room() {
		d.mu.Unlock()
		return
	}
	now := &seen{Beat: b, at: time.Now(), answered: last != nil && last.answered}
	now.Twin, now.twin = d.twinOf(last, now)
	d.workers[worker] = now
	if b.Foreign != "" {
		d.mu.Unlock()
		d.refuse(worker, b.Foreign)
		return
	}
	var over []string
	for _, l := range b.Launches {
		x := d.live[l.Key]
		if x == nil {
			over = append(over, l.Key)
		} else if x.shown(b, l) {
			x.worker, x.marked, x.at = b.Worker, b.At, time.Now()
		}
	}
	twins := now.Twin != "" && last.Twin == ""
	greets := epoch > 0 && (b.Epoch < epoch || !now.answered) // or it would take orders of whoever decided before
	d.mu.Unlock()
	if twins {
		d.refuse(worker, "another worker, on "+now.Twin+", has its id: both get no steps")
	}
	if greets || len(over) > 0 {
		d.replyTo(ctx, worker, greets, over)
	}
}

// room reports whether one more worker can be listed. One that has never answered makes room for it. The caller
// holds the lock.
func (d *Desk) room() bool {
	if len(d.workers) < maxWorkers {
		return true
	}
	for id, w := range d.workers {
		if !w.answered {
			delete(d.workers, id)
			return true
		}
	}
	return false
}

// replyTo asks of a worker what its heartbeat makes necessary, one after the other: a heartbeat can name
// any launches. The first that fails ends it, and the next heartbeat tries again.
func (d *Desk) replyTo(ctx context.Context, worker string, greets bool, over []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asks[worker] {
		return
	}
	d.asks[worker] = true
	d.done.Go(func() {
		var err error
		if greets {
			_, err = d.ask(ctx, worker, call{Do: doGreet})
		}
		for i := 0; i < len(over) && err == nil; i++ {
			err = d.dropOver(ctx, worker, over[i])
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.asks, worker)
	})
}

// shown reports whether a heartbeat shows that the launch goes on, or who has one that is looked for: it
// is of the worker that has the launch's token, and newer than the last one, whoever has sent it.
func (x *live) shown(b Beat, l Doing) bool {
	its := x.worker == "" || x.worker == b.Worker && !l.Ended
	return x.token != "" && its && b.At.After(x.marked) && l.marked(b, x.token)
}

// dropOver has a worker forget a launch that nobody waits for: its result is in, or it was given up and
// what it has made is kept, or the journal does not have it.
func (d *Desk) dropOver(ctx context.Context, worker, key string) error {
	r, err := d.load(key)
	none := errors.Is(err, fs.ErrNotExist)          // another machine may have sent it
	mayHave := r.Worker == worker || r.Worker == "" // "": as above
	awaited := r.Result == nil && r.Worker == worker && !r.Lost
	switch {
	case err != nil && !none:
		return nil
	case (none || awaited) && !d.unrecorded(key):
		return nil // whoever waits for it comes, or comes back
	case r.Lost && !r.Seen && mayHave && !d.late(ctx, &r, worker):
		return nil // it is asked again
	}
	_, err = d.ask(ctx, worker, call{Do: doDrop, Key: key})
	return err
}

// Workers returns who is there, those that are silent left out, by name.
func (d *Desk) Workers() []Beat {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Beat
	for id, w := range d.workers {
		if time.Since(w.at) > d.silence() {
			delete(d.workers, id)
			continue
		}
		out = append(out, w.Beat)
	}
	slices.SortFunc(out, func(a, b Beat) int { return strings.Compare(a.Name+a.Worker, b.Name+b.Worker) })
	return out
}

func (d *Desk) silence() time.Duration { return max(d.opt.Lease(), silentLeast) }

// of returns a worker's newest heartbeat, and for how long it has been silent.
func (d *Desk) of(worker string) (b Beat, silent time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.workers[worker]; w != nil {
		return w.Beat, time.Since(w.at)
	}
	return b, time.Since(d.began)
}

// version returns the version in which a worker is spoken to.
func (d *Desk) version(worker string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours, theirs := versions(), versions()
	if w := d.workers[worker]; w != nil {
		theirs = w.Versions
	}
	return cmp.Or(ours.common(theirs), ours.Newest)
}

// pick returns a worker with all labels and most free slots; not one of those passed over, nor one that has never
// answered. Without one, why says what is missing.
func (d *Desk) pick(on []string, prefer string, not map[string]time.Time) (worker, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	there, most, names := "", 0, strings.Join(on, ", ")
	for id, w := range d.workers {
		if time.Since(w.at) > d.silence() {
			delete(d.workers, id)
			continue
		}
		if !labelled(w.Labels, on) {
			continue
		}
		if why := w.unfit(id == prefer); why != "" {
			there = cmp.Or(there, why)
			continue
		}
		there = "are busy"
		free := w.free() - w.given
		if free > 0 && id == prefer {
			free = MaxSlots + 1
		}
		if free > most && time.Now().After(not[id]) {
			worker, most = id, free
		}
	}
	switch {
	case worker != "":
		d.workers[worker].given++
		return worker, ""
	case there == "":
		return "", fmt.Sprintf("no worker with the labels %s is there: start one with `sluice worker`", names)
	}
	return "", fmt.Sprintf("all workers with the labels %s %s", names, there)
}

// unfit returns why a worker is sent no launch; what one that drains has had, it finishes. "" = it may be sent one.
func (w *seen) unfit(has bool) string {
	switch {
	case w.Foreign != "":
		return "are of another release: `sluice workers` says which"
	case w.Twin != "":
		return "have an id that another worker has, too: `sluice workers` says which"
	case w.Draining && !has:
		return "are draining: `sluice workers resume ID` has one take steps again"
	case !w.answered:
		return "have yet to answer"
	}
	return ""
}

// holds has a key count as waited for until the returned function is called.
func (d *Desk) holds(key string) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[key] == nil {
		d.live[key] = &live{}
	}
	d.records.begun[layout.LaunchOf(key)] = true
	x := d.live[key]
	x.calls++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if x.calls--; x.calls == 0 {
			delete(d.live, key)
		}
	}
}

// expects has a worker's heartbeats show that it has a launch, which holds has begun to count. It
// returns when one has last shown it.
func (d *Desk) expects(r *record) (at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.live[r.Sent.Key]
	x.token, x.worker = r.Sent.Token, r.Worker
	return x.at
}
