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

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/journal"
)

// ErrNotServed is given where no process answers on a socket.
var ErrNotServed = errors.New("no sluice process answers")

// Client talks to the process that serves a repo (NewClient), or to the daemon (NewDaemonClient).
type Client struct {
	socket string
	http   http.Client
}

// NewClient is the client of whoever serves the repo with this state folder.
func NewClient(state string) *Client { return newClient(filepath.Join(state, SocketName)) }

// NewDaemonClient is the client of the daemon with this home.
func NewDaemonClient(home string) *Client {
	return newClient(filepath.Join(home, "daemon."+SocketName))
}

func newClient(socket string) *Client {
	c := &Client{socket: socket}
	c.http.Transport = &http.Transport{MaxIdleConns: 2, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dial(ctx, socket)
		if err != nil {
			return nil, fmt.Errorf("%w on %s: %w", ErrNotServed, socket, err)
		}
		return conn, nil
	}}
	return c
}

// Close lets go of the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ask makes one request; into takes the JSON that comes back.
func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	var rd io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		rd = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://sluice"+path, rd)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.plain(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return refusal(res)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// plain takes the HTTP client's words off an error.
func (c *Client) plain(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

func refusal(res *http.Response) error {
	var e refused
	b, _ := io.ReadAll(io.LimitReader(res.Body, requestMost)) // what there is of it is shown
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

// Ping asks who serves.
func (c *Client) Ping(ctx context.Context) (p Ping, err error) {
	return p, c.ask(ctx, "GET", "/v1/ping", nil, &p)
}

// Do has an event taken in. ev is one of those that Do (the type) names.
func (c *Client) Do(ctx context.Context, ev engine.Event, via string) (d Done, err error) {
	raw, err := json.Marshal(ev)
	if err != nil {
		return d, err
	}
	return d, c.ask(ctx, "POST", "/v1/do", Do{Kind: ev.EventKind(), Event: raw, Via: via}, &d)
}

// Status tells how the repo stands; run "" = all runs.
func (c *Client) Status(ctx context.Context, run string) (s Status, err error) {
	return s, c.ask(ctx, "GET", "/v1/status?run="+url.QueryEscape(run), nil, &s)
}

// Run tells all of one run.
func (c *Client) Run(ctx context.Context, run string) (r RunStatus, err error) {
	return r, c.ask(ctx, "GET", "/v1/run?run="+url.QueryEscape(run), nil, &r)
}

// Spec gives the source the run, or the run that it is a child of, was started with.
func (c *Client) Spec(ctx context.Context, run string) (string, error) {
	var out struct {
		Source string `json:"source"`
	}
	err := c.ask(ctx, "GET", "/v1/spec?run="+url.QueryEscape(run), nil, &out)
	return out.Source, err
}

// Offers lists the steps that wait for somebody to do them.
func (c *Client) Offers(ctx context.Context) (o []Offer, err error) {
	return o, c.ask(ctx, "GET", "/v1/offers", nil, &o)
}

// Reload has the settings (of the daemon: the list of repos too) read again.
func (c *Client) Reload(ctx context.Context) error { return c.ask(ctx, "POST", "/v1/reload", nil, nil) }

// Repos lists the daemon's repos.
func (c *Client) Repos(ctx context.Context) (r []RepoState, err error) {
	return r, c.ask(ctx, "GET", "/v1/repos", nil, &r)
}

// Facts gives facts in order to fn: of one run ("" = all), from record `from` on (0 = the first, -1 = those to come),
// and with follow those to come until ctx ends. An error of fn ends it and is given.
func (c *Client) Facts(ctx context.Context, run string, from int64, follow bool, fn func(Line) error) error {
	q := url.Values{"run": {run}, "from": {strconv.FormatInt(from, 10)}}
	if follow {
		q.Set("follow", "1")
	}
	req, err := http.NewRequestWithContext(ctx, "GET", "http://sluice/v1/facts?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.plain(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return refusal(res)
	}
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

// Reader reads a repo's state from its journal, where no process serves the repo.
type Reader struct {
	c    *core
	root string
	lock *Lock
}

// OpenReader takes the repo's lock and reads the journal, which it leaves as it is. A *Held says that the repo is served:
// ask its server. Who may only read there looks on without the lock, whoever serves the repo.
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

// Status tells how the repo stands; run "" = all runs.
func (r *Reader) Status(run string, full bool) Status {
	s, sources := statusOf(r.c, r.root, run, full, nil)
	s.drift(sources)
	return s
}

// Offers lists the steps on offer.
func (r *Reader) Offers() []Offer { return offersOf(r.c, r.root) }

// Facts gives facts in order to fn.
func (r *Reader) Facts(run string, from int64, fn func(Line) error) error {
	return r.c.log.Replay(max(from, 1), func(rec journal.Record) error {
		for _, fact := range rec.Facts {
			if run != "" && headOf(fact).Run != run {
				continue
			}
			if err := fn(Line{Seq: rec.Seq, At: rec.At, Fact: fact}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Spec gives the source the run, or the run that it is a child of, was started with; "" where the run is not known.
func (r *Reader) Spec(run string) string {
	if x := r.c.state.Runs[run]; x != nil {
		return r.c.sourceOf(x)
	}
	return ""
}

// Close lets the repo go.
func (r *Reader) Close() error { return errors.Join(r.c.log.Close(), r.lock.Release()) }
