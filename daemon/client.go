package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/journal"
)

// answerMost is the largest buffer that is made for an answer before it comes.
const answerMost = 16 << 20

// ErrNotServed reports that no process answers on a socket.
var ErrNotServed = errors.New("no sluice process answers")

// Client is a client of the process that serves a repo (NewClient), or of the daemon
// (NewDaemonClient).
type Client struct{ http http.Client }

// NewClient returns a client of the process that serves the repo with this state folder.
func NewClient(state string) *Client { return newClient(filepath.Join(state, SocketName), 0) }

// daemonMost limits an answer of the daemon, which waits for no repo longer than startMost.
const daemonMost = 10 * time.Second

// NewDaemonClient returns a client of the daemon with this home. A daemon that is stopped or hangs is an error.
func NewDaemonClient(home string) *Client {
	return newClient(filepath.Join(home, "daemon."+SocketName), daemonMost)
}

// newClient returns a client of a socket; most limits the wait for an answer, 0 = without end.
func newClient(socket string, most time.Duration) *Client {
	c := &Client{}
	c.http.Transport = &http.Transport{MaxIdleConns: 2, ResponseHeaderTimeout: most,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx, socket)
			if err != nil {
				return nil, fmt.Errorf("%w on %s: %w", ErrNotServed, socket, err)
			}
			return conn, nil
		}}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ask makes one request and decodes the JSON answer into into.
func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	var rd io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		rd = bytes.NewReader(b)
	}
	res, err := c.send(ctx, method, path, rd)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if into == nil {
		return nil
	}
	raw := new(bytes.Buffer)
	if n := res.ContentLength; n > 0 && n < answerMost {
		raw.Grow(int(n) + bytes.MinRead) // once, not by doubling
	}
	if _, err := raw.ReadFrom(res.Body); err != nil {
		return err
	}
	return json.Unmarshal(raw.Bytes(), into)
}

// send makes one request. The caller closes the body of the answer.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://sluice"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if ue, ok := errors.AsType[*url.Error](err); ok {
		if ue.Timeout() && ctx.Err() == nil {
			return nil, &fault.Error{Cause: "the daemon does not answer", Code: fault.ExitServed, Err: ue.Err,
				Advice: "end it and start it again: agents keep running, and runs continue where they were"}
		}
		return nil, ue.Err // without the HTTP client's prefix
	}
	if err == nil && res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, refusal(res)
	}
	return res, err
}

func refusal(res *http.Response) error {
	var e refused
	b, _ := io.ReadAll(io.LimitReader(res.Body, requestMost)) // a part is shown too
	if json.Unmarshal(b, &e) != nil || e.Error == "" {
		return fmt.Errorf("the service answered %s", res.Status)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		return ErrStopped
	}
	what := e.Error
	if e.Advice != "" {
		what = strings.TrimSuffix(what, ": "+e.Advice)
	}
	return &fault.Error{Cause: what, Advice: e.Advice}
}

// How often Ping asks while the other side goes away, and with which pause.
const (
	pingTries = 10
	pingPause = 50 * time.Millisecond
)

// Ping asks who serves. A connection that was cut is tried again: the socket of a killed process is
// open for a moment longer, in a child that it was just starting.
func (c *Client) Ping(ctx context.Context) (p Ping, err error) {
	for range pingTries {
		err = c.ask(ctx, "GET", "/v1/ping", nil, &p)
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) || !health.Wait(ctx, pingPause) {
			break
		}
	}
	return p, err
}

// Do submits an event of a kind listed at the type Do.
func (c *Client) Do(ctx context.Context, ev engine.Event, via string) (d Done, err error) {
	raw, err := json.Marshal(ev)
	if err != nil {
		return d, err
	}
	return d, c.ask(ctx, "POST", "/v1/do", Do{Kind: ev.EventKind(), Event: raw, Via: via}, &d)
}

// Status returns the repo's status; run "" = all runs.
func (c *Client) Status(ctx context.Context, run string) (s Status, err error) {
	return s, c.ask(ctx, "GET", "/v1/status?run="+url.QueryEscape(run), nil, &s)
}

// Recent returns the status with all live runs and, of those that have ended after since, the newest
// `most`, at most RecentMost. Status.Left counts the other ones. Ended runs of tasks are neither
// included nor counted.
func (c *Client) Recent(ctx context.Context, since time.Time, most int) (s Status, err error) {
	q := url.Values{"ended_most": {strconv.Itoa(min(max(most, 0), RecentMost))}}
	if !since.IsZero() {
		q.Set("ended_since", since.Format(time.RFC3339Nano))
	}
	return s, c.ask(ctx, "GET", "/v1/status?"+q.Encode(), nil, &s)
}

// Run returns all of one run.
func (c *Client) Run(ctx context.Context, run string) (r RunStatus, err error) {
	return r, c.ask(ctx, "GET", "/v1/run?run="+url.QueryEscape(run), nil, &r)
}

// Spec returns the source that the run, or its top run, was started with.
func (c *Client) Spec(ctx context.Context, run string) (string, error) {
	var out struct {
		Source string `json:"source"`
	}
	err := c.ask(ctx, "GET", "/v1/spec?run="+url.QueryEscape(run), nil, &out)
	return out.Source, err
}

// Offers lists the steps that someone may claim.
func (c *Client) Offers(ctx context.Context) (o []Offer, err error) {
	return o, c.ask(ctx, "GET", "/v1/offers", nil, &o)
}

// Reload has a repo's settings read again; by the daemon's own socket, its list of repos.
func (c *Client) Reload(ctx context.Context) error { return c.ask(ctx, "POST", "/v1/reload", nil, nil) }

// Drain has a worker finish what it has and take nothing new; or, without drain, take orders again.
func (c *Client) Drain(ctx context.Context, worker string, drain bool) error {
	return c.ask(ctx, "POST", "/v1/workers", DrainWorker{worker, drain}, nil)
}

// Web returns the address of the daemon's page, with a code that logs a browser in once.
func (c *Client) Web(ctx context.Context) (string, error) {
	var out struct {
		URL string `json:"url"`
	}
	err := c.ask(ctx, "POST", "/v1/web", nil, &out)
	return out.URL, err
}

// Repos lists the daemon's repos.
func (c *Client) Repos(ctx context.Context) (r []RepoState, err error) {
	return r, c.ask(ctx, "GET", "/v1/repos", nil, &r)
}

// Facts calls fn with the facts of one run ("" = all) in order, from record `from` (0 = the first,
// -1 = only new ones). With follow it continues until ctx ends. It stops at an error from fn and
// returns it.
func (c *Client) Facts(ctx context.Context, run string, from int64, follow bool, fn func(Line) error) error {
	q := url.Values{"run": {run}, "from": {strconv.FormatInt(from, 10)}}
	if follow {
		q.Set("follow", "1")
	}
	res, err := c.send(ctx, "GET", "/v1/facts?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	sc := bufio.NewScanner(res.Body)
	sc.Buffer(nil, journal.MaxLineBytes)
	for sc.Scan() {
		var l Line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			return err
		}
		if err := fn(l); err != nil {
			return err
		}
	}
	return sc.Err()
}

// Reader reads a repo's state from its journal when no process serves the repo.
type Reader struct {
	c    *core
	root string
	lock *Lock
}

// OpenReader takes the repo's lock and reads the journal without changing it. A *Held means that
// the repo is served: ask its server. Without write permission it reads without the lock, served or
// not.
func OpenReader(root, state string, compile Compile) (*Reader, error) {
	lock, err := TakeLock(state)
	if err != nil && mayWrite(state) {
		return nil, err
	}
	if err != nil {
		lock = &Lock{}
	}
	log, _, err := journal.OpenRead(state, journal.Options{})
	if err != nil {
		lock.Release()
		return nil, err
	}
	c, err := coreOf(log, compile)
	if err != nil {
		lock.Release()
		return nil, err
	}
	return &Reader{c: c, root: root, lock: lock}, nil
}

// Status returns the repo's status; run "" = all runs.
func (r *Reader) Status(run string, full bool) Status {
	return r.answer(all(run, full))
}

// Recent returns what Client.Recent does.
func (r *Reader) Recent(since time.Time, most int) Status {
	return r.answer(query{since: since, most: min(max(most, 0), RecentMost)})
}

func (r *Reader) answer(q query) Status {
	q.unserved = true
	s, sources := statusOf(r.c, r.root, q, nil)
	s.drift(sources)
	if r.c.led > 0 {
		s.Cluster = &Cluster{Epoch: r.c.led}
	}
	return s
}

// Offers lists the steps on offer.
func (r *Reader) Offers() []Offer { return offersOf(r.c, r.root) }

// Facts calls fn with the facts in order, of a run and its child runs or, for "", of all.
func (r *Reader) Facts(run string, from int64, fn func(Line) error) error {
	return r.c.log.Replay(max(from, 1), func(rec journal.Record) error { return eachFact(rec, run, fn) })
}

// eachFact calls fn with the facts of a record that concern a run or its child runs; "" = all.
func eachFact(rec journal.Record, run string, fn func(Line) error) error {
	for _, fact := range rec.Facts {
		if of := headOf(fact).Run; run != "" && of != run && topOf(of, map[string]string{run: ""}) != run {
			continue
		}
		if err := fn(Line{Seq: rec.Seq, At: rec.At, Fact: fact}); err != nil {
			return err
		}
	}
	return nil
}

// Spec returns the source that the run, or its top run, was started with; "" if the run is unknown.
func (r *Reader) Spec(run string) string {
	if x := r.c.state.Runs[run]; x != nil {
		return r.c.sourceOf(x)
	}
	return ""
}

// Close closes the journal and releases the lock.
func (r *Reader) Close() error { return errors.Join(r.c.log.Close(), r.lock.Release()) }
