package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/journal"
)

// Limits of the API.
const (
	requestMost = 1 << 20  // bytes of a request
	signalMost  = 64 << 10 // bytes of a sentinel through the socket
	answerIn    = 10 * time.Second

	stalledAfter = time.Second // a stalled loop that has not answered by then will not
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

// refused is the API's error.
type refused struct {
	Error  string `json:"error"`            // what: why: what to do
	Advice string `json:"advice,omitempty"` // what to do, if the error ends with it
}

func (r *Repo) handler() http.Handler {
	mux := http.NewServeMux()
	handle(mux, "GET /v1/ping", r.ping)
	handle(mux, "POST /v1/do", r.do)
	handle(mux, "GET /v1/status", func(req *http.Request) (any, error) { return r.status(req, false) })
	handle(mux, "GET /v1/run", func(req *http.Request) (any, error) { return r.status(req, true) })
	handle(mux, "GET /v1/offers", func(req *http.Request) (any, error) {
		var out []Offer
		err := r.Ask(req.Context(), func(c *core) { out = offersOf(c, r.opt.Root) })
		return out, err
	})
	handle(mux, "GET /v1/spec", r.spec)
	handle(mux, "POST /v1/workers", func(req *http.Request) (any, error) { return drainWorker(r, req) })
	handle(mux, "POST /v1/reload", func(req *http.Request) (any, error) { return struct{}{}, r.Reload(req.Context()) })
	mux.HandleFunc("GET /v1/facts", r.facts)
	return mux
}

func handle(mux *http.ServeMux, pattern string, fn func(*http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), answerIn)
		defer cancel()
		req.Body = http.MaxBytesReader(w, req.Body, requestMost)
		v, err := fn(req.WithContext(ctx))
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			code := http.StatusInternalServerError
			var es errStatus
			if errors.As(err, &es) {
				code = es.code
			} else if errors.Is(err, ErrStopped) {
				code = http.StatusServiceUnavailable
			}
			w.WriteHeader(code)
			_, advice := fault.Split(err)
			v = refused{err.Error(), advice}
		}
		_ = json.NewEncoder(w).Encode(v) // the client may be gone
	})
}

func (r *Repo) ping(*http.Request) (any, error) {
	return Ping{PID: pid(), Version: r.opt.Version, Root: r.opt.Root, Started: r.began}, nil
}

func (r *Repo) spec(req *http.Request) (any, error) {
	id, src := req.URL.Query().Get("run"), ""
	err := r.Ask(req.Context(), func(c *core) {
		if run := c.state.Runs[id]; run != nil {
			src = c.sourceOf(run)
		}
	})
	if err == nil && src == "" {
		err = errStatus{http.StatusNotFound, fault.New("sluice ls names them", "no run %s is known here", id)}
	}
	return map[string]string{"source": src}, err
}

// Reload reads the settings again.
func (r *Repo) Reload(ctx context.Context) error {
	_, err := r.Take(ctx, engine.Configured{Config: r.opt.Config()})
	return err
}

// Status returns the repo's status; run "" = all runs. With full, it includes all attempts and
// rounds.
func (r *Repo) Status(ctx context.Context, run string, full bool) (Status, error) {
	return answer(ctx, r, all(run, full))
}

// answer returns the status that a query asks for.
func answer(ctx context.Context, r *Repo, q query) (Status, error) {
	ask := func(ctx context.Context) (s Status, stall string, err error) {
		var mu sync.Mutex // a question that was given up may still be answered
		var sources map[string]string
		err = r.Ask(ctx, func(c *core) {
			mu.Lock()
			defer mu.Unlock()
			s, sources = statusOf(c, r.opt.Root, q, r.opt.Today)
		})
		mu.Lock()
		defer mu.Unlock()
		s.drift(sources)
		return s, stalled(r), err
	}
	soon, cancel := context.WithTimeout(ctx, stalledAfter)
	defer cancel()
	s, stall, err := ask(soon)
	if err != nil && stall == "" && ctx.Err() == nil { // only busy
		s, stall, err = ask(ctx)
	}
	if err != nil && stall != "" { // the loop waits for the disk: report that
		return Status{Root: r.opt.Root, Stalled: stall, Runs: []RunStatus{}, Cluster: clusterOf(r)}, nil
	}
	s.Cluster = clusterOf(r)
	s.Stalled, s.Health = stall, append(r.unwell(), r.opt.World.Health()...)
	s.levels(r.opt.World)
	s.awaited(r.opt.World)
	return s, err
}

// unwell reports what is wrong with the repo's own records.
func (r *Repo) unwell() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, why := range []string{r.past, r.outs} {
		if why != "" {
			out = append(out, why)
		}
	}
	return out
}

// health reports what is wrong with the repo. It does not ask the loop, which may be waiting for a
// disk.
func (r *Repo) health() []string {
	out := append(r.unwell(), r.opt.World.Health()...)
	if why := stalled(r); why != "" {
		out = append(out, "stalled: its journal cannot be written: "+why)
	}
	return out
}

func (r *Repo) status(req *http.Request, full bool) (any, error) {
	q, err := queryOf(req, full)
	if err != nil {
		return nil, err
	}
	run := q.run
	s, err := answer(req.Context(), r, q)
	if err != nil || s.Stalled != "" && !full {
		return s, err
	}
	if run != "" && len(s.Runs) == 0 {
		return nil, errStatus{http.StatusNotFound, fault.New("sluice ls names them", "no run %s is known here", run)}
	}
	if full {
		return s.Runs[0], nil
	}
	return s, nil
}

func (r *Repo) do(req *http.Request) (any, error) {
	var d Do
	if err := json.NewDecoder(req.Body).Decode(&d); err != nil {
		return nil, asked("request: %w", err)
	}
	done, err := r.Do(req.Context(), d)
	return done, deposed(r, err)
}

// Do submits a person's or agent's event and returns once the decision is journaled. The repo sets
// who says it, when, and with what trust; d only says how it arrived.
func (r *Repo) Do(ctx context.Context, d Do) (Done, error) {
	return doBy(ctx, r, d, actor(r, d))
}

func doBy(ctx context.Context, r *Repo, d Do, by engine.Actor) (Done, error) {
	ev, err := r.event(ctx, d, by)
	if err != nil {
		return Done{}, err
	}
	got, err := r.Take(ctx, ev)
	if err != nil {
		return Done{}, err
	}
	return doneOf(got), nil
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
func (r *Repo) facts(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64) // absent: from the first record
	run, follow := q.Get("run"), q.Get("follow") != ""
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, flush := json.NewEncoder(w), http.NewResponseController(w)
	send := func(rec journal.Record) error {
		for _, fact := range rec.Facts {
			if h := headOf(fact); run != "" && h.Run != run && topOf(h.Run, map[string]string{run: ""}) != run {
				continue
			}
			if err := enc.Encode(Line{Seq: rec.Seq, At: rec.At, Fact: fact}); err != nil {
				return err
			}
		}
		from = rec.Seq + 1
		return nil
	}
	for {
		ch, seq := r.follow()
		if from < 0 {
			from = seq + 1
		}
		err := r.core.log.Replay(max(from, 1), send)
		if err == nil {
			err = flush.Flush()
		}
		if err != nil || !follow {
			r.unfollow(ch)
			return
		}
		for more := true; more; {
			select {
			case rec, ok := <-ch:
				if more = ok; ok && rec.Seq >= from {
					if send(rec) != nil || flush.Flush() != nil {
						r.unfollow(ch)
						return
					}
				}
			case <-req.Context().Done():
				r.unfollow(ch)
				return
			case <-r.gone:
				return
			}
		}
	}
}
