package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
)

// Lead is this machine's part in a journal that several machines keep. One of them decides at a time.
type Lead interface {
	// Take keeps the journal in the state folder up to date until this machine is to decide. The
	// folder is locked, and nobody else has the journal open.
	Take(ctx context.Context, state string) error
	// Copy is the journal's Copy after Take.
	Copy(lines []byte, before int64) (wait func() error)
	// Holds reports whether effects may begin: no other machine can decide yet.
	Holds() bool
	// Lost is closed when another machine decides.
	Lost() <-chan struct{}
	Report() Cluster
	// Say passes words on to the machine that leads, and returns its answer; not heard: none leads,
	// and nothing was taken in. An error proves nothing.
	Say(ctx context.Context, words []byte) (answer []byte, heard bool, err error)
	// Hear has what other machines say answered, until ctx ends.
	Hear(ctx context.Context, answer func(ctx context.Context, words []byte) []byte) error
	// Close leaves the lead to the others.
	Close()
}

// Cluster is how a journal that several machines keep is doing.
type Cluster struct {
	Journal  string    `json:"journal"` // its id
	Machine  string    `json:"machine"` // this one; "" = no process serves the repo here
	Epoch    int64     `json:"epoch"`   // the newest known
	Leader   string    `json:"leader"`  // who began it
	Leads    bool      `json:"leads"`   // this machine decides
	Holds    bool      `json:"holds"`   // and its lease lasts: effects may begin
	Left     bool      `json:"left,omitempty"`
	Renewed  time.Time `json:"renewed,omitzero"`  // the newest renewal before this machine led, by this machine's clock
	Seq      int64     `json:"seq,omitempty"`     // of a standby: the last record of the stream that it has
	Stalled  string    `json:"stalled,omitempty"` // why the stream takes or gives nothing
	Unread   *Unread   `json:"unread,omitempty"`  // what this release cannot read: it never leads
	Replicas []Replica `json:"replicas,omitempty"`
	Workers  []Worker  `json:"workers,omitempty"` // that this machine has heard of just now
	Desk     string    `json:"desk,omitempty"`    // the public key that signs what this machine asks of workers
}

// Worker is a machine that makes launches for the one that decides.
type Worker struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"` // of its machine
	Version  string         `json:"version,omitempty"`
	Labels   []string       `json:"labels"`
	Slots    int            `json:"slots"`
	Since    time.Time      `json:"since"`
	Draining bool           `json:"draining,omitempty"` // it finishes what it has, and takes nothing new
	Launches []WorkerLaunch `json:"launches,omitempty"`
	Foreign  string         `json:"foreign,omitempty"` // why it is sent nothing: its release speaks to other ones
	Twin     string         `json:"twin,omitempty"`    // the machine of another worker with its id; it is sent nothing
	Stalled  string         `json:"stalled,omitempty"` // what its results and orders wait for; "": none waits
}

// WorkerLaunch is what a worker does.
type WorkerLaunch struct {
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
	Ended bool      `json:"ended,omitempty"` // its result is being fetched
}

// Replica is a server's copy of the stream.
type Replica struct {
	Name    string `json:"name"`
	Leads   bool   `json:"leads,omitempty"`
	Current bool   `json:"current"`
	Offline bool   `json:"offline,omitempty"`
	Behind  int64  `json:"behind,omitempty"` // messages
}

// drainWorker has a worker drain, or take orders again. A machine that only follows refuses it.
func (a api) drainWorker(req *http.Request) (any, error) {
	var in DrainWorker
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return nil, asked("request: %w", err)
	}
	if a.r.opt.Drain == nil {
		return nil, asked("no daemon serves this repo in a cluster, so it has no workers")
	}
	return struct{}{}, deposed(a.r.opt.Lead, a.r.opt.Drain(req.Context(), in.Worker, in.Drain))
}

// errLed refuses a journal that several machines keep to one that would go on alone.
func errLed(epoch int64) error {
	return fault.Failed("start `sluice daemon --cluster URLS`; `sluice cluster leave` lets this machine continue alone",
		"the record of this repo belongs to a cluster, which was not left after epoch %d", epoch)
}

// errDeposed ends the loop when another machine decides.
var errDeposed = errors.New("another machine decides now: this one follows")

// standBy waits, answering what a follower can, until this machine is to decide. The returned
// context ends when it is not to any more, or with stop.
func standBy(ctx context.Context, opt *RepoOptions, end func(error)) (led context.Context, stop func(), err error) {
	l, err := listen(filepath.Join(opt.State, SocketName), opt.Look)
	if err != nil {
		return nil, nil, err
	}
	f := &follower{opt: *opt}
	defer f.close()
	stopServing := serve(l, standbyHandler(f), end)
	passing, stopPassing := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { passFilesOn(passing, f) })
	err = opt.Lead.Take(ctx, opt.State)
	stopPassing()
	wg.Wait()
	stopServing()
	if err != nil {
		return nil, nil, err
	}
	opt.Journal.Copy = opt.Lead.Copy
	led, lost := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-opt.Lead.Lost():
			lost(errDeposed)
		case <-led.Done():
		}
	}()
	return led, func() { lost(nil) }, nil
}

// Work is what a journal says that a run and its child runs have made.
type Work struct {
	Digests []string // of results, the newest first
	Moved   []string // IDs of the moves of branches that are over, the newest last
}

// brought brings the work of live runs, each with its child runs, from where it is stored.
func (r *Repo) brought(ctx context.Context) (batch []item) {
	var roots []string
	attempts, moved, rootOf := map[string][]*engine.Attempt{}, map[string][]string{}, map[string]string{}
	for _, id := range r.core.state.Order { // parents come before their children
		run := r.core.state.Runs[id]
		root := id
		if run.Child != nil {
			root = rootOf[run.Child.Parent]
		} else if run.Live() {
			roots = append(roots, id)
		}
		rootOf[id] = root
		moved[root] = append(moved[root], run.Moved...)
		for _, of := range run.Attempts {
			attempts[root] = append(attempts[root], of...)
		}
	}
	for _, id := range roots {
		slices.SortFunc(attempts[id], func(a, b *engine.Attempt) int { return cmp.Compare(b.Since, a.Since) })
		var digests []string // the newest first
		for _, a := range attempts[id] {
			if a.Digest != "" {
				digests = append(digests, a.Digest)
			}
		}
		work := Work{Digests: digests, Moved: moved[id]}
		if why := r.opt.Brought(ctx, id, work); why != "" && !r.core.state.Runs[id].Paused {
			batch = append(batch, item{event: engine.SpecUnread{Run: id, Why: why, Lacks: engine.PausedWork}})
		}
	}
	return batch
}

// standbyHandler answers from the local journal, which is a little behind, and passes on what people
// say.
func standbyHandler(f *follower) http.Handler {
	opt, mux := f.opt, http.NewServeMux()
	ping := Ping{PID: os.Getpid(), Version: opt.Version, Root: opt.Root, Started: time.Now()}
	handle(mux, "GET /v1/ping", func(*http.Request) (any, error) { return ping, nil })
	read := func(pattern string, fn func(*http.Request, *Reader) (any, error)) {
		handle(mux, pattern, func(req *http.Request) (out any, err error) {
			err = f.use(func(r *Reader) error { out, err = fn(req, r); return err })
			return out, err
		})
	}
	read("GET /v1/status", func(req *http.Request, r *Reader) (any, error) {
		q, err := queryOf(req, false)
		if err != nil {
			return nil, err
		}
		s := r.answer(q)
		s.Cluster = clusterOf(opt.Lead)
		return s, nil
	})
	read("GET /v1/run", func(req *http.Request, r *Reader) (any, error) {
		id := req.URL.Query().Get("run")
		s := r.Status(id, true)
		if len(s.Runs) != 1 {
			return nil, unknownRun(id)
		}
		return s.Runs[0], nil
	})
	read("GET /v1/offers", func(*http.Request, *Reader) (any, error) { return []Offer{}, nil })
	read("GET /v1/spec", func(req *http.Request, r *Reader) (any, error) {
		return map[string]string{"source": r.Spec(req.URL.Query().Get("run"))}, nil
	})
	mux.HandleFunc("GET /v1/facts", func(w http.ResponseWriter, req *http.Request) {
		r, _, err := follow(opt) // of its own: whoever reads may be slow
		if err != nil {
			return // as if it had ended
		}
		defer r.Close()
		from, _ := strconv.ParseInt(req.URL.Query().Get("from"), 10, 64) // absent: from the first record
		enc := json.NewEncoder(w)
		_ = r.Facts(req.URL.Query().Get("run"), from, func(l Line) error { return enc.Encode(l) })
	})
	handle(mux, "POST /v1/do", func(req *http.Request) (any, error) { return passOn(req, f) })
	handle(mux, "/", func(*http.Request) (any, error) { return nil, notRecorded(opt.Lead.Report().Leader) })
	return mux
}

// clusterOf returns how the cluster is doing that keeps the journal; nil: none does.
func clusterOf(lead Lead) *Cluster {
	if lead == nil {
		return nil
	}
	return new(lead.Report())
}
