package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/journal"
)

// Limits of the API.
const (
	requestMost = 1 << 20         // bytes of a request
	signalMost  = 64 << 10        // bytes of a sentinel through the socket
	answerIn    = 2 * time.Minute // a pass reads the whole checkout first

	stalledAfter = 200 * time.Millisecond // a stalled loop that has not answered a question by then will not
	stalledMost  = 10 * time.Second       // how long a decision waits for a stall to end: servers may elect a leader
)

// errStatus is an error with its HTTP status.
type errStatus struct {
	code int
	error
}

func (e errStatus) Unwrap() error { return e.error }

func asked(format string, args ...any) error {
	return errStatus{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

func unknownRun(id string) error {
	return errStatus{http.StatusNotFound, fault.New("sluice ls names them", "no run %s is known here", id)}
}

// refused is the API's error.
type refused struct {
	Error  string `json:"error"`            // what: why: what to do
	Advice string `json:"advice,omitempty"` // what to do, if the error ends with it
}

// api answers requests to a repo's socket. Any goroutine may call.
type api struct{ r *Repo }

// ServeHTTP looks requests up in a switch: a ServeMux for each repo takes a tenth of an idle repo's memory.
func (a api) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var fn func(*http.Request) (any, error)
	switch req.Method + " " + req.URL.Path {
	case "GET /v1/ping":
		fn = a.ping
	case "POST /v1/do":
		fn = a.do
	case "GET /v1/status":
		fn = func(req *http.Request) (any, error) { return a.status(req, false) }
	case "GET /v1/run":
		fn = func(req *http.Request) (any, error) { return a.status(req, true) }
	case "GET /v1/offers":
		fn = a.offers
	case "GET /v1/spec":
		fn = a.spec
	case "POST /v1/workers":
		fn = a.drainWorker
	case "POST /v1/reload":
		fn = func(req *http.Request) (any, error) { return struct{}{}, a.r.Reload(req.Context()) }
	case "GET /v1/facts":
		a.facts(w, req)
		return
	default:
		http.NotFound(w, req)
		return
	}
	if req.Method == "GET" {
		ctx, cancel := a.r.queue.patience(req.Context(), stalledAfter)
		defer cancel()
		req = req.WithContext(ctx)
	}
	answer(w, req, fn)
}

// look runs fn on the loop's state or, while the loop waits for the disk, on what is recorded.
func (r *Repo) look(ctx context.Context, fn func(*core)) error {
	err := r.queue.ask(ctx, fn)
	if stall, _ := r.troubles.stalled(); err == nil || stall == "" {
		return err
	}
	records, _, failed := follow(r.opt)
	if failed != nil {
		return err
	}
	fn(records.c)
	return records.Close()
}

func (a api) offers(req *http.Request) (out any, err error) {
	err = a.r.look(req.Context(), func(c *core) { out = offersOf(c, a.r.opt.Root) })
	return out, err
}

func handle(mux *http.ServeMux, pattern string, fn func(*http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) { answer(w, req, fn) })
}

// answer writes what fn returns.
func answer(w http.ResponseWriter, req *http.Request, fn func(*http.Request) (any, error)) {
	ctx, cancel := context.WithTimeout(req.Context(), answerIn)
	defer cancel()
	req.Body = http.MaxBytesReader(w, req.Body, requestMost)
	v, err := fn(req.WithContext(ctx))
	code := http.StatusOK
	if err != nil {
		code = http.StatusInternalServerError
		if es, ok := errors.AsType[errStatus](err); ok {
			code = es.code
		} else if errors.Is(err, ErrStopped) {
			code = http.StatusServiceUnavailable
		}
		_, advice := fault.Split(err)
		v = refused{err.Error(), advice}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(code)
	_, _ = w.Write(raw) // the client may be gone
}

func (a api) ping(*http.Request) (any, error) {
	opt := &a.r.opt
	return Ping{PID: os.Getpid(), Version: opt.Version, Root: opt.Root, Started: a.r.began}, nil
}

func (a api) spec(req *http.Request) (any, error) {
	id, src := req.URL.Query().Get("run"), ""
	err := a.r.look(req.Context(), func(c *core) {
		if run := c.state.Runs[id]; run != nil {
			src = c.sourceOf(run)
		}
	})
	if err == nil && src == "" {
		err = unknownRun(id)
	}
	return map[string]string{"source": src}, err
}

// Reload reads the settings again.
func (r *Repo) Reload(ctx context.Context) error {
	if r.opt.Reread != nil {
		r.opt.Reread()
	}
	_, err := r.queue.take(ctx, engine.Configured{})
	return err
}

// Quiet reports whether the run, its child runs and all their processes have ended, after_run
// included.
func (r *Repo) Quiet(ctx context.Context, run string) (quiet bool, err error) {
	err = r.queue.ask(ctx, func(c *core) {
		quiet = true
		of := map[string]bool{run: true}
		for _, id := range c.state.Order { // parents come before their children
			o := c.state.Runs[id]
			if o.Child != nil && of[o.Child.Parent] {
				of[id] = true
			}
			if of[id] && (o.Live() || len(c.state.OwedBy(nil, engine.Debtor{ID: id}, c.spec)) > 0) {
				quiet = false
			}
		}
	})
	return quiet, err
}

// answer returns the status that a query asks for.
func (r *Repo) answer(ctx context.Context, q query) (s Status, err error) {
	var sources map[string]string
	err = r.look(ctx, func(c *core) { s, sources = statusOf(c, r.opt.Root, q, r.opt.Today) })
	s.drift(sources)
	stall, _ := r.troubles.stalled()
	if err != nil && stall != "" { // nor can the records be read
		return Status{Root: r.opt.Root, Stalled: stall, Runs: []RunStatus{}, Cluster: clusterOf(r.opt.Lead)}, nil
	}
	s.Cluster = clusterOf(r.opt.Lead)
	s.Stalled, s.Health = stall, append(r.troubles.unwell(), r.opt.World.Health()...)
	s.levels(r.opt.World)
	s.awaited(r.opt.World)
	return s, err
}

// health reports what is wrong with the repo. It does not ask the loop, which may be waiting for a
// disk.
func (r *Repo) health() []string {
	out := append(r.troubles.unwell(), r.opt.World.Health()...)
	if why, _ := r.troubles.stalled(); why != "" {
		out = append(out, "stalled: its journal cannot be written: "+why)
	}
	return out
}

func (a api) status(req *http.Request, full bool) (any, error) {
	q, err := queryOf(req, full)
	if err != nil {
		return nil, err
	}
	s, err := a.r.answer(req.Context(), q)
	if err != nil || s.Stalled != "" && !full {
		return s, err
	}
	switch {
	case q.run == "" || len(s.Runs) > 0:
	case s.Stalled != "":
		_, advice := a.r.troubles.stalled()
		return nil, fault.New(advice+notTaken, "stalled: %s", s.Stalled)
	default:
		return nil, unknownRun(q.run)
	}
	if full {
		return s.Runs[0], nil
	}
	return s, nil
}

func (a api) do(req *http.Request) (any, error) {
	var d Do
	if err := json.NewDecoder(req.Body).Decode(&d); err != nil {
		return nil, asked("request: %w", err)
	}
	done, err := a.r.Do(req.Context(), d)
	return done, deposed(a.r.opt.Lead, err)
}

// Do submits a person's or agent's event and returns once the decision is journaled. The repo sets
// who says it, when, and with what trust; d only says how it arrived.
func (r *Repo) Do(ctx context.Context, d Do) (Done, error) {
	ctx, cancel := r.queue.patience(ctx, stalledMost)
	defer cancel()
	ev, err := r.intake.event(ctx, d, r.intake.actor(d))
	if err != nil {
		return Done{}, err
	}
	return r.take(ctx, ev)
}

// take has the loop decide on an event, and returns once the decision is journaled.
func (r *Repo) take(ctx context.Context, ev engine.Event) (Done, error) {
	got, err := r.queue.take(ctx, ev)
	return doneOf(got), err
}

func doneOf(got doneReply) Done {
	out := Done{Seq: got.rec.Seq, Facts: got.rec.Facts}
	for _, f := range got.facts {
		if ig, ok := f.(engine.Ignored); ok && out.Ignored == "" {
			out.Ignored = ig.Why
		}
		if out.Run == "" {
			out.Run = f.RunID()
		}
	}
	return out
}

// runOf returns the run that an event is for; "" if it names none.
func runOf(event json.RawMessage) string {
	var ev struct {
		Run string `json:"run"`
	}
	_ = json.Unmarshal(event, &ev) // invalid events are refused where their kind is known
	return ev.Run
}

// facts streams facts, one JSON line each.
func (a api) facts(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64) // absent: from the first record
	run, follow := q.Get("run"), q.Get("follow") != ""
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, flush := json.NewEncoder(w), http.NewResponseController(w)
	send := func(rec journal.Record) error {
		from = rec.Seq + 1
		return eachFact(rec, run, func(l Line) error { return enc.Encode(l) })
	}
	var ch chan journal.Record
	defer func() { a.r.followers.unfollow(ch) }()
	for {
		var seq int64
		ch, seq = a.r.followers.follow()
		if from < 0 {
			from = seq + 1
		}
		err := a.r.core.log.Replay(max(from, 1), send)
		if err == nil {
			err = flush.Flush()
		}
		if err != nil || !follow {
			return
		}
		for more := true; more; {
			select {
			case rec, ok := <-ch:
				if more = ok; ok && rec.Seq >= from && (send(rec) != nil || flush.Flush() != nil) {
					return
				}
			case <-req.Context().Done():
				return
			case <-a.r.queue.gone:
				return
			}
		}
	}
}
