package workers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/internal/atomicfile"
	"sluice/internal/cluster"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/text"
)

const (
	beatEvery  = time.Second
	greetIn    = 15 * time.Second // whoever decides greets a worker at its next heartbeat
	sweepEvery = time.Hour
	// keptFor is how long a key that is over stays refused, and what its launch has left stays.
	keptFor = 30 * 24 * time.Hour
	// goodFor is how old a request may be, by the worker's clock. It is less than keptFor: one that was
	// copied makes no launch anew once its key is forgotten.
	goodFor = keptFor / 2
	// stateDir, in the repo's state folder, has what a worker knows: its id, the newest epoch, and a
	// file for each key.
	stateDir    = "worker"
	idFile      = "id"
	journalFile = "journal" // for which the rest counts
	epochFile   = "epoch"
	drainFile   = "drains"
	keysDir     = "keys"
)

// Maker makes launches on this machine.
type Maker interface {
	// Lacks reports whether an order's commits have to come as a pack, and what that may build on.
	Lacks(ctx context.Context, s launch.Sent) (have []string, lacks bool, err error)
	// Make makes a launch that was accepted at a time, or goes on with it after a restart, and waits for
	// its end. The error is ctx's.
	Make(ctx context.Context, s launch.Sent, since time.Time) (launch.Back, error)
	// Signals returns what is in the launch's inbox.
	Signals(s launch.Sent) []launch.Signal
	// Stop ends a launch; Make then returns. It does nothing once the launch has ended.
	Stop(ctx context.Context, s launch.Sent)
	// Clear removes the worktree of a launch, once it has ended.
	Clear(ctx context.Context, s launch.Sent) error
	// Forget removes what all launches of these runs have left, whose files are below one folder of runs.
	Forget(folder string, runs []string) error
}

// PostOptions are what a Post needs.
type PostOptions struct {
	Conn    *cluster.Conn
	State   string // the repo's state folder
	Journal string // its id
	Name    string // of this machine, for people
	Version string
	Labels  []string
	Slots   int
	Desks   []string // public keys: what none of them has signed is refused; none = nothing is signed
	Maker   Maker
	Stalled func() string      // what results and orders wait for; "" = none waits; nil = as ""
	Leaves  func(launches int) // called once it is asked to end, with the number it has to finish; nil = not called
	Logf    func(string, ...any)
	Now     func() time.Time
}

// Post is a worker: it takes orders, has them carried out and answers for them. What it has accepted
// goes on after a restart.
type Post struct {
	opt     PostOptions
	id      string
	since   time.Time
	done    sync.WaitGroup
	said    string        // why a request was refused last; of Run alone
	beaten  time.Time     // the time of the newest heartbeat; of Run alone
	unheard string        // why it could not be sent; of Run alone
	alone   bool          // it was reported that nobody leads; of Run alone
	ended   chan struct{} // has room for one: a launch has ended or is forgotten, which the next heartbeat says

	mu     sync.Mutex // guards what follows
	epoch  int64      // the highest seen
	drains drains
	leaves bool // it is asked to end
	keys   map[string]*made
	swept  string // a folder of runs that is being removed; "" = none
}

// made is a launch that this worker has or had.
type made struct {
	Sent    launch.Sent     `json:"sent"` // of one that is over only its key, run and folder
	Since   time.Time       `json:"since"`
	Stopped bool            `json:"stopped,omitempty"` // it is to end
	Drop    bool            `json:"drop,omitempty"`    // and to be forgotten
	Result  json.RawMessage `json:"result,omitempty"`  // set once it has ended
	Over    bool            `json:"over,omitempty"`    // it was forgotten; the key stays used

	clears bool // what it has left is being removed
}

// NewPost reads what this worker has accepted before.
func NewPost(o PostOptions) (*Post, error) {
	p := &Post{opt: o, since: o.Now(), keys: map[string]*made{}, ended: make(chan struct{}, 1)}
	var err error
	if p.id, err = ID(o.State); err != nil {
		return nil, err
	}
	if err := p.ofJournal(); err != nil {
		return nil, err
	}
	if err := layout.Load(p.path(epochFile), &p.epoch); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := layout.Load(p.path(drainFile), &p.drains); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := os.ReadDir(p.path(keysDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		var m made
		if err := layout.Load(p.path(keysDir, e.Name()), &m); err != nil {
			return nil, fmt.Errorf("a launch that this worker has: %w", err)
		}
		p.keys[m.Sent.Key] = &m
	}
	return p, nil
}

// ofJournal returns an error where the state is of a worker of another journal, whose epochs and keys
// mean nothing for this one.
func (p *Post) ofJournal() error {
	var of string
	err := layout.Load(p.path(journalFile), &of)
	if errors.Is(err, fs.ErrNotExist) {
		return layout.Save(p.path(journalFile), p.opt.Journal)
	}
	if err == nil && of != p.opt.Journal {
		return fault.Failed("give this worker a clone of its own, or remove "+p.path()+" once nothing of the other runs",
			"this clone has worked for the journal %.80s, and now for %s", of, p.opt.Journal)
	}
	return err
}

// Inbox returns the prefix of the subjects that a worker is replied to.
func Inbox(id string) string { return "_INBOX_" + id }

// ID returns the id of the worker with the state folder, made at first use.
func ID(state string) (string, error) {
	dir := filepath.Join(state, stateDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	err := atomicfile.WriteNew(filepath.Join(dir, idFile), []byte(hex.EncodeToString(b[:])), 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	data, _, err := atomicfile.OpenRegular(dir, idFile, 2*idBytes)
	if err == nil && !isWorker(string(data)) {
		err = fmt.Errorf("%s names no worker: remove it", filepath.Join(dir, idFile))
	}
	return string(data), err
}

func (p *Post) path(names ...string) string {
	return filepath.Join(append([]string{p.opt.State, stateDir}, names...)...)
}

func (p *Post) keep(m *made) error {
	return layout.Save(p.path(keysDir, layout.PathElement(m.Sent.Key)), m)
}

// ID returns the worker's id.
func (p *Post) ID() string { return p.id }

// Run serves until ctx ends. Launches go on, and the next Run takes them up again. Once leave is
// closed it takes nothing new, and returns as soon as what it has is finished and fetched.
func (p *Post) Run(ctx context.Context, leave <-chan struct{}) error {
	calls := make(chan *nats.Msg, 256)
	sub, err := p.opt.Conn.Listen(p.orders(), calls)
	if err != nil {
		return err
	}
	defer p.done.Wait()
	p.mu.Lock()
	for _, m := range p.keys {
		if m.Result == nil && !m.Over {
			p.goOn(ctx, m)
		}
	}
	p.mu.Unlock()
	sweeps, quit := context.WithCancel(ctx)
	defer quit()
	p.done.Go(func() {
		for p.sweep(); health.Wait(sweeps, sweepEvery); p.sweep() {
		}
	})
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		p.beat()
		if p.left() {
			return sub.Unsubscribe()
		}
		select {
		case <-ctx.Done():
			return sub.Unsubscribe()
		case <-leave:
			leave = nil
			p.leave()
		case m := <-calls:
			p.reply(ctx, m)
		case <-p.ended:
		case <-tick.C:
			p.listen()
		}
	}
}

// listen reports, once, that no leader has ever been heard of, as with the id of another journal.
func (p *Post) listen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alone || p.epoch > 0 || p.opt.Now().Sub(p.since) < greetIn {
		return
	}
	p.alone = true
	p.opt.Logf("no leader of journal %s has been heard of for %s, so this worker gets no steps: start the leader's "+
		"daemon, or give --journal the id that `sluice cluster init` printed", p.opt.Journal, greetIn)
}

// orders is the subject of requests to this worker.
func (p *Post) orders() string { return prefix + p.id + orderEnd }

// beat says who is here and what it does.
func (p *Post) beat() {
	p.beaten = later(p.beaten, p.opt.Now())
	p.mu.Lock()
	b := Beat{Worker: p.id, Name: p.opt.Name, Journal: p.opt.Journal, Version: p.opt.Version,
		Versions: versions(), Labels: p.opt.Labels, Slots: p.opt.Slots, Since: p.since, At: p.beaten,
		Draining: p.drains.Drains || p.leaves, Epoch: p.epoch}
	if p.opt.Stalled != nil {
		b.Stalled = text.Message(p.opt.Stalled())
	}
	has := map[string]launch.Sent{}
	for key, m := range p.keys {
		if m.Over || len(b.Launches) == maxKeys {
			continue
		}
		b.Launches = append(b.Launches, Doing{Key: key, Ended: m.Result != nil, Since: m.Since})
		has[key] = m.Sent
	}
	p.mu.Unlock()
	slices.SortFunc(b.Launches, func(x, y Doing) int { return strings.Compare(x.Key, y.Key) })
	for i, l := range b.Launches {
		if !l.Ended {
			b.Launches[i].Words = sumOf(p.opt.Maker.Signals(has[l.Key]))
		}
		b.Launches[i].Mark = mark(has[l.Key].Token, p.id, l.Key, b.At)
	}
	data, err := json.Marshal(b)
	if err == nil {
		err = p.opt.Conn.Say(prefix+p.id+beatEnd, data)
	}
	said := p.unheard
	if p.unheard = ""; err != nil {
		p.unheard = err.Error()
	}
	if p.unheard != said && err != nil {
		p.opt.Logf("a heartbeat: %v", err)
	}
}

// sumOf returns a checksum of signals, whatever their order; 0 = there are none.
func sumOf(signals []launch.Signal) int {
	if len(signals) == 0 {
		return 0
	}
	sum := crc32.NewIEEE()
	slices.SortFunc(signals, func(x, y launch.Signal) int { return strings.Compare(x.Name, y.Name) })
	for _, s := range signals {
		fmt.Fprintf(sum, "%q %q\n", s.Name, s.Data)
	}
	return int(sum.Sum32()>>1) + 1
}

// accept takes an order, or says why not.
func (p *Post) accept(ctx context.Context, s launch.Sent, on []string) (answer, error) {
	if !labelled(p.opt.Labels, on) { // a heartbeat in its name has said so
		return refusal("it needs the labels %s", strings.Join(on, ", ")), nil
	}
	if p.drained(s.Key) {
		return answer{Is: isFull}, nil
	}
	running := 0
	for _, m := range p.keys {
		if m.Result == nil && !m.Over {
			running++
		}
	}
	if running >= p.opt.Slots || p.swept != "" && p.swept == folderOf(s.Dir) {
		return answer{Is: isFull}, nil
	}
	if s.Pack == "" {
		have, lacks, err := p.opt.Maker.Lacks(ctx, s)
		if err != nil {
			return answer{}, err
		}
		if lacks {
			return answer{Is: isLacking, Have: have[:min(len(have), maxHave)]}, nil
		}
	}
	m := &made{Sent: s, Since: p.opt.Now()}
	if err := p.keep(m); err != nil {
		return answer{}, err
	}
	p.keys[s.Key] = m
	p.goOn(ctx, m)
	return answer{Is: isRunning}, nil
}

// goOn has a launch made. The caller holds the lock.
func (p *Post) goOn(ctx context.Context, m *made) {
	s, since, stopped := m.Sent, m.Since, m.Stopped
	if stopped {
		p.done.Go(func() { p.opt.Maker.Stop(ctx, s) })
	}
	p.done.Go(func() {
		back, err := p.opt.Maker.Make(ctx, s, since)
		if err != nil {
			return // the next Run goes on
		}
		data, err := json.Marshal(back)
		if err != nil {
			panic("workers: a result that is no JSON: " + err.Error())
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		m.Result = data
		if err := p.keep(m); err != nil { // after a restart it is made again from what the launch left
			p.opt.Logf("%s: its result: %v", s.Key, err)
		}
		if m.Drop {
			p.clear(ctx, m)
		}
		p.changes()
	})
}

// changes has the next heartbeat sent now.
func (p *Post) changes() {
	select {
	case p.ended <- struct{}{}:
	default:
	}
}
