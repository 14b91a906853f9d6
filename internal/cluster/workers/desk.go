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
	"sluice/engine"
	"sluice/internal/cluster"
	"sluice/internal/health"
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
	// Pack stores a pack of an order's commits for a worker that has others; it returns its digest.
	Pack func(ctx context.Context, s launch.Sent, have []string) (digest string, err error)
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
	live    map[string]int    // how many calls wait for a key
	drops   map[string]bool   // keys that a worker is asked to drop
	odd     map[string]string // worker -> what of its messages was refused last
}

// seen is a worker as its newest heartbeat says.
type seen struct {
	Beat
	at    time.Time // when it came, by the monotonic clock
	given int       // launches sent since
}

var _ launch.Afar = (*Desk)(nil)

// NewDesk listens for workers. The caller closes it.
func NewDesk(o DeskOptions) (*Desk, error) {
	ctx, quit := context.WithCancel(context.Background())
	d := &Desk{opt: o, began: time.Now(), quit: quit, workers: map[string]*seen{}, live: map[string]int{},
		drops: map[string]bool{}, odd: map[string]string{}}
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

// refuse reports once what of a worker's messages is not taken.
func (d *Desk) refuse(worker, what string) {
	d.mu.Lock()
	known := d.odd[worker] == what
	if len(d.odd) < maxWorkers {
		d.odd[worker] = what
	}
	d.mu.Unlock()
	if !known {
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
	d.mu.Lock()
	if d.workers[worker] == nil && len(d.workers) >= maxWorkers {
		d.mu.Unlock()
		return
	}
	d.workers[worker] = &seen{Beat: b, at: time.Now()}
	if b.Foreign != "" {
		d.mu.Unlock()
		d.refuse(worker, b.Foreign)
		return
	}
	var over []string
	for _, l := range b.Launches {
		if d.live[l.Key] == 0 {
			over = append(over, l.Key)
		}
	}
	d.mu.Unlock()
	for _, key := range over {
		d.mu.Lock()
		known := d.drops[key]
		d.drops[key] = true
		d.mu.Unlock()
		if known {
			continue // it is being asked already
		}
		d.done.Go(func() {
			d.dropOver(ctx, worker, key)
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.drops, key)
		})
	}
}

// dropOver has a worker forget a launch that nobody waits for: its result is in, or it was given up.
func (d *Desk) dropOver(ctx context.Context, worker, key string) {
	r, err := d.load(key)
	if err == nil && r.Result == nil && r.Worker == worker && !r.Lost {
		return // whoever waits for it comes back
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && r.Lost && r.Worker == worker {
		d.refuse(worker, key+": it was given up, and launched again under another key: its result does not count")
	}
	if d.opt.Lead() > 0 {
		_, _ = d.ask(ctx, worker, call{Do: doDrop, Key: key}) // the next heartbeat has it asked again
	}
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

// pick returns a worker with all labels and most free slots; not one of those passed over. Without
// one, why says what is missing.
func (d *Desk) pick(on []string, prefer string, not map[string]time.Time) (worker, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	there, most, names := "", 0, strings.Join(on, ", ")
	for id, w := range d.workers {
		if time.Since(w.at) > d.silence() || !w.labelled(on) {
			continue
		}
		if w.Foreign != "" {
			there = cmp.Or(there, "are of another release: `sluice workers` says which")
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

// holds has a key count as waited for until the returned function is called.
func (d *Desk) holds(key string) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[key]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.live[key]--; d.live[key] == 0 {
			delete(d.live, key)
		}
	}
}

// record is what is known on disk of a launch that was sent.
type record struct {
	Sent    launch.Sent  `json:"sent"`
	Worker  string       `json:"worker"`
	Epoch   int64        `json:"epoch"`
	Taken   bool         `json:"taken,omitempty"` // the worker has said that it has it
	Lost    bool         `json:"lost,omitempty"`  // given up: no result counts any more
	Stopped bool         `json:"stopped,omitempty"`
	Result  *launch.Back `json:"result,omitempty"`
}

func (d *Desk) file(key string) string { return d.opt.Layout.PIDFile(key) + launch.SentMark }

func (d *Desk) load(key string) (r record, err error) { return r, layout.Load(d.file(key), &r) }

func (d *Desk) save(r record) error { return layout.Save(d.file(r.Sent.Key), r) }

// Knows reports whether a launch was sent: see launch.Afar.
func (d *Desk) Knows(key string) bool { return layout.IsFile(d.file(key)) }

// lost is the result of a launch whose worker is gone.
func lost() launch.Back { return launch.Back{Exit: engine.Exit{Code: -1, Lost: true}} }

// Launch has a worker make a launch: see launch.Afar.
func (d *Desk) Launch(ctx context.Context, key string, on []string, prepare func() (launch.Sent, error),
	w launch.Watch) (launch.Back, error) {
	defer d.holds(key)()
	r, err := d.load(key)
	if errors.Is(err, fs.ErrNotExist) {
		if d.elsewhere(key) { // it was sent by whoever decided before, under another token
			return lost(), nil
		}
		r, err = d.assign(ctx, key, on, prepare, w)
	}
	if err != nil {
		return launch.Back{}, err
	}
	return d.wait(ctx, &r, w)
}

// elsewhere reports whether a worker has a launch that this machine has not sent.
func (d *Desk) elsewhere(key string) bool {
	return slices.ContainsFunc(d.Workers(), func(b Beat) bool { _, has := b.has(key); return has })
}

// assign sends the order to a worker that takes it.
func (d *Desk) assign(ctx context.Context, key string, on []string, prepare func() (launch.Sent, error),
	w launch.Watch) (r record, err error) {
	full := map[string]time.Time{} // workers that would not take it -> until when they are not asked
	said, prefer := "", ""
	if first, err := d.load(layout.LaunchOf(key)); err == nil {
		prefer = first.Worker // its conversation is there
	}
	for {
		worker, why := "", "this machine may begin nothing now: the servers do not answer"
		if d.opt.Lead() > 0 {
			worker, why = d.pick(on, prefer, full)
		}
		if worker != "" {
			if r.Sent.Key == "" {
				if err := d.opt.Packs.Open(ctx); err != nil { // its result is stored there
					return r, err
				}
				if r.Sent, err = prepare(); err != nil {
					return r, err
				}
			}
			r.Worker, r.Epoch = worker, d.opt.Lead()
			r.Sent.Pack, r.Sent.Bases = "", nil
			taken, err := d.give(ctx, &r)
			if taken || err != nil {
				return r, err
			}
			full[worker] = time.Now().Add(time.Second)
			continue
		}
		if why != said {
			said = why
			w.Waits(why)
		}
		if !health.Wait(ctx, pace) {
			return r, ctx.Err()
		}
	}
}

// give sends an order to its worker. It is on disk before, so that it is asked for after a crash.
// taken: the worker has it, or may have it.
func (d *Desk) give(ctx context.Context, r *record) (taken bool, err error) {
	if err := d.save(*r); err != nil {
		return false, err
	}
	a, err := d.ask(ctx, r.Worker, call{Do: doLaunch, Key: r.Sent.Key, Sent: &r.Sent})
	if err == nil && a.Is == isLacking {
		if r.Sent.Pack, err = d.opt.Pack(ctx, r.Sent, a.Have); err != nil {
			return false, errors.Join(err, d.forget(r.Sent.Key))
		}
		r.Sent.Bases = a.Have
		if err := d.save(*r); err != nil {
			return false, err
		}
		a, err = d.ask(ctx, r.Worker, call{Do: doLaunch, Key: r.Sent.Key, Sent: &r.Sent})
	}
	switch {
	case ctx.Err() != nil:
		return true, nil
	case errors.Is(err, nats.ErrNoResponders), err == nil && a.Is != isRunning && a.Is != isEnded:
		if err == nil && a.Is != isFull {
			d.refuse(r.Worker, fmt.Sprintf("%s: it does not take it: %s %s", r.Sent.Key, a.Is, a.Why))
		}
		return false, d.forget(r.Sent.Key)
	}
	r.Taken = err == nil
	return true, nil // no answer proves nothing
}
