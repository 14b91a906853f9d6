package workers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
	"sluice/internal/layout"
)

const (
	beatEvery = time.Second
	// keptFor is how long a key that is over stays refused.
	keptFor = 30 * 24 * time.Hour
	// stateDir, in the repo's state folder, has what a worker knows: its id, the newest epoch, and a
	// file for each key.
	stateDir  = "worker"
	idFile    = "id"
	epochFile = "epoch"
	keysDir   = "keys"
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
	// Clear removes what a launch has left, once it has ended.
	Clear(ctx context.Context, s launch.Sent) error
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
	Maker   Maker
	Logf    func(string, ...any)
	Now     func() time.Time
}

// Post is a worker: it takes orders, has them carried out and answers for them. What it has accepted
// goes on after a restart.
type Post struct {
	opt   PostOptions
	id    string
	since time.Time
	done  sync.WaitGroup
	ended chan struct{} // has room for one: a launch has ended, which the next heartbeat says

	mu    sync.Mutex // guards what follows
	epoch int64      // the highest seen
	keys  map[string]*made
}

// made is a launch that this worker has or had.
type made struct {
	Sent    launch.Sent     `json:"sent"` // of one that is over only its key
	Since   time.Time       `json:"since"`
	Stopped bool            `json:"stopped,omitempty"` // it is to end
	Drop    bool            `json:"drop,omitempty"`    // and to be forgotten
	Result  json.RawMessage `json:"result,omitempty"`  // set once it has ended
	Over    bool            `json:"over,omitempty"`    // it was forgotten; the key stays used
}

// NewPost reads what this worker has accepted before.
func NewPost(o PostOptions) (*Post, error) {
	p := &Post{opt: o, since: o.Now(), keys: map[string]*made{}, ended: make(chan struct{}, 1)}
	var err error
	if p.id, err = ID(o.State); err != nil {
		return nil, err
	}
	if err := layout.Load(p.path(epochFile), &p.epoch); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
		if m.Over && o.Now().Sub(m.Since) > keptFor {
			_ = os.Remove(p.path(keysDir, e.Name())) // it is only kept for longer then
			continue
		}
		p.keys[m.Sent.Key] = &m
	}
	return p, nil
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

// Run serves until ctx ends. Launches go on, and the next Run takes them up again.
func (p *Post) Run(ctx context.Context) error {
	calls := make(chan *nats.Msg, 256)
	sub, err := p.opt.Conn.Listen(prefix+p.id+orderEnd, calls)
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
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		p.beat()
		select {
		case <-ctx.Done():
			return sub.Unsubscribe()
		case m := <-calls:
			p.reply(ctx, m)
		case <-p.ended:
		case <-tick.C:
		}
	}
}

// beat says who is here and what it does.
func (p *Post) beat() {
	p.mu.Lock()
	b := Beat{Worker: p.id, Name: p.opt.Name, Journal: p.opt.Journal, Version: p.opt.Version,
		Versions: versions(), Labels: p.opt.Labels, Slots: p.opt.Slots, Since: p.since}
	running := map[string]launch.Sent{}
	for key, m := range p.keys {
		if m.Over || len(b.Launches) == maxKeys {
			continue
		}
		b.Launches = append(b.Launches, Doing{Key: key, Ended: m.Result != nil, Since: m.Since})
		if m.Result == nil {
			running[key] = m.Sent
		}
	}
	p.mu.Unlock()
	slices.SortFunc(b.Launches, func(x, y Doing) int { return strings.Compare(x.Key, y.Key) })
	for i, l := range b.Launches {
		if s, ok := running[l.Key]; ok {
			b.Launches[i].Words = len(p.opt.Maker.Signals(s))
		}
	}
	data, err := json.Marshal(b)
	if err == nil {
		err = p.opt.Conn.Say(prefix+p.id+beatEnd, data)
	}
	if err != nil {
		p.opt.Logf("a heartbeat: %v", err)
	}
}

// reply answers a request.
func (p *Post) reply(ctx context.Context, m *nats.Msg) {
	c, err := readCall(m.Data)
	var a answer
	if err != nil {
		a = answer{Is: isRefused, Why: err.Error()}
	} else if a, err = p.do(ctx, c); err != nil {
		a = answer{Is: isRefused, Why: "this worker cannot: " + err.Error()}
	}
	if a.Is == isRefused {
		p.opt.Logf("a request of %s is refused: %s", c.By, a.Why)
	}
	data, err := json.Marshal(a)
	if err == nil && m.Reply != "" {
		err = m.Respond(data)
	}
	if err != nil {
		p.opt.Logf("an answer: %v", err)
	}
}

// do does what is asked.
func (p *Post) do(ctx context.Context, c call) (answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Journal != p.opt.Journal {
		return answer{Is: isRefused, Why: "it is for another repo"}, nil
	}
	if c.Epoch < p.epoch {
		return answer{Is: isRefused, Why: fmt.Sprintf("its epoch is %d, and another machine decides since, in %d", c.Epoch,
			p.epoch)}, nil
	}
	if c.Epoch > p.epoch {
		if err := layout.Save(p.path(epochFile), c.Epoch); err != nil {
			return answer{}, err
		}
		p.epoch = c.Epoch
	}
	m := p.keys[c.Key]
	switch {
	case m == nil && c.Do == doLaunch:
		return p.accept(ctx, *c.Sent)
	case m == nil:
		return answer{Is: isUnknown}, nil
	case m.Over:
		return answer{Is: isOver}, nil
	case c.Do == doStop && !m.Stopped || c.Do == doDrop && !m.Drop:
		m.Stopped, m.Drop = true, m.Drop || c.Do == doDrop
		if err := p.keep(m); err != nil {
			return answer{}, err
		}
		if m.Result == nil {
			s := m.Sent
			p.done.Go(func() { p.opt.Maker.Stop(ctx, s) })
		}
	}
	return p.state(ctx, m), nil
}

// state returns what is known of a launch. One to be forgotten is, once it has ended.
func (p *Post) state(ctx context.Context, m *made) answer {
	switch {
	case m.Result == nil:
		return answer{Is: isRunning, Signals: p.opt.Maker.Signals(m.Sent)}
	case m.Drop:
		p.clear(ctx, m)
		return answer{Is: isOver}
	}
	return answer{Is: isEnded, Result: m.Result, Sign: sign(m.Sent.Token, m.Sent.Key, m.Result)}
}

// clear forgets a launch that has ended. Its key stays.
func (p *Post) clear(ctx context.Context, m *made) {
	if err := p.opt.Maker.Clear(ctx, m.Sent); err != nil {
		p.opt.Logf("%s: what it has left: %v", m.Sent.Key, err)
		return // it is asked again
	}
	over := made{Sent: launch.Sent{Key: m.Sent.Key}, Since: p.opt.Now(), Over: true}
	if err := p.keep(&over); err != nil {
		p.opt.Logf("%s: %v", m.Sent.Key, err)
		return
	}
	p.keys[m.Sent.Key] = &over
}

// accept takes an order, or says why not.
func (p *Post) accept(ctx context.Context, s launch.Sent) (answer, error) {
	running := 0
	for _, m := range p.keys {
		if m.Result == nil && !m.Over {
			running++
		}
	}
	if running >= p.opt.Slots {
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
		if err := p.keep(m); err != nil {
			p.opt.Logf("%s: its result: %v", s.Key, err) // after a restart it is made out again
		}
		if m.Drop {
			p.clear(ctx, m)
		}
		select {
		case p.ended <- struct{}{}:
		default:
		}
	})
}
