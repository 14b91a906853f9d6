package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/internal/workspace"
	"sluice/tools/conform"
)

// asked counts the requests that the page makes to who serves the repo, by path; "recent" is a status
// without most of the past.
type asked struct {
	mu    sync.Mutex
	paths map[string]int
	first map[string]func() // what happens before the first request of a path
	stall string            // why each status says that the journal cannot be written; "" = as it is
}

// counted puts a counter before the repo's socket. The test's own client goes past it.
func (p *site) counted() *asked {
	p.Helper()
	dir, err := os.MkdirTemp("", "sl") // paths of sockets are short
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, own := filepath.Join(p.at.State, daemon.SocketName), filepath.Join(dir, "counter")
	if err := os.Rename(socket, filepath.Join(dir, daemon.SocketName)); err != nil {
		p.Fatal(err)
	}
	l, err := net.Listen("unix", own)
	if err == nil {
		err = os.Symlink(own, socket)
	}
	if err != nil {
		p.Fatal(err)
	}
	a := &asked{paths: map[string]int{}}
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "sluice"})
	to.FlushInterval = -1
	to.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, daemon.SocketName))
	}}
	to.ModifyResponse = func(res *http.Response) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.stall == "" || res.Request.URL.Path != "/v1/status" {
			return nil
		}
		var st daemon.Status
		if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
			return err
		}
		st.Stalled = a.stall
		raw, err := json.Marshal(st)
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		res.Header.Set("Content-Length", strconv.Itoa(len(raw)))
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := strings.TrimPrefix(r.URL.Path, "/v1/")
		if r.URL.Query().Has("ended_most") {
			what = "recent"
		}
		a.mu.Lock()
		a.paths[what]++
		do := a.first[what]
		delete(a.first, what)
		a.mu.Unlock()
		if do != nil {
			do()
		}
		to.ServeHTTP(w, r)
	})}
	go func() { _ = srv.Serve(l) }()
	p.Cleanup(func() { _ = srv.Close() })
	p.client.Close()
	p.client = daemon.NewClient(dir)
	return a
}

// taken returns the counts, and begins again.
func (a *asked) taken() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.paths
	a.paths = map[string]int{}
	return out
}

// eventually polls until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// quiet reports whether the hub follows and renders nothing.
func (h *hub) quiet() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams) == 0 && len(h.feeds) == 0 && len(h.shown) == 0
}

// TestWhatAPageAsks: the requests of one rendering, when the workflow is known.
func TestWhatAPageAsks(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	p.run(asksSpec)
	n := p.counted()
	for _, c := range []struct {
		page         string
		first, later map[string]int
	}{
		{"/", map[string]int{"ping": 1, "recent": 1, "spec": 1}, map[string]int{"ping": 1, "recent": 1}},
		{"/history", map[string]int{"ping": 1, "recent": 1}, map[string]int{"ping": 1, "recent": 1}},
		{"/r/shop/" + run, map[string]int{"ping": 1, "run": 1, "status": 1, "facts": 1},
			map[string]int{"ping": 1, "run": 1, "status": 1}},
		{"/r/shop/" + run + "/a/A.1", map[string]int{"ping": 1, "run": 1}, map[string]int{"ping": 1, "run": 1}},
	} {
		for i, want := range []map[string]int{c.first, c.later} {
			if w := p.ask("GET", c.page, nil); w.Code != http.StatusOK {
				t.Fatalf("%s: %d", c.page, w.Code)
			}
			if got := n.taken(); !maps.Equal(got, want) {
				t.Errorf("%s, time %d: it asks %v, want %v", c.page, i+1, got, want)
			}
		}
	}
}

// TestViewersShareARendering: what the daemon is asked does not grow with those who look.
func TestViewersShareARendering(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	n := p.counted()
	const logins, each = 4, 12
	var all []*listener
	for range logins {
		p.cookie = p.enter(p.code())
		for range each {
			all = append(all, p.listen("/"))
		}
	}
	for _, l := range all {
		l.until(t, run)
	}
	later := p.run(asksSpec)
	for _, l := range all {
		l.until(t, later)
	}
	got := n.taken()
	if got["recent"] == 0 || got["recent"] >= len(all)/2 || got["status"] > 0 || got["facts"] != 1 || got["spec"] != 1 {
		t.Errorf("%d viewers asked %v", len(all), got)
	}
}

// TestNothingIsMissed: what happens before a journal is followed, and after a page was rendered, is
// shown before the next tick.
func TestNothingIsMissed(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	n := p.counted()
	later := make(chan string, 1)
	n.first = map[string]func(){"facts": func() { later <- p.run(asksSpec) }}
	tab := p.listen("/")
	tab.until(t, run)
	began := time.Now()
	if tab.until(t, <-later); time.Since(began) >= tick {
		t.Errorf("it is shown after %s", time.Since(began))
	}
}

// TestAPageOfOneRun is rendered again for facts of its run and of its tasks' runs, and for no other.
func TestAPageOfOneRun(t *testing.T) {
	p := &shown{run: "w-1"}
	for run, want := range map[string]bool{"": true, "w-1": true, "w-1.T1.1": true, "w-10": false, "w-2": false} {
		if p.concerns(run) != want {
			t.Errorf("%q: %v", run, !want)
		}
	}
	for fact, want := range map[string]string{`{"run":"w-1"}`: "w-1", `{"notice":{"run":"w-2"}}`: "w-2",
		`{"move":{"run":"w-3"}}`: "w-3", `{}`: "", `x`: ""} {
		if got := (daemon.Line{Fact: []byte(fact)}).Run(); got != want {
			t.Errorf("%s: %q", fact, got)
		}
	}
}

// TestNobodyLooks: without a stream nothing is asked or rendered, whatever happens.
func TestNobodyLooks(t *testing.T) {
	p := newSite(t)
	n := p.counted()
	run := p.run(asksSpec)
	if got := n.taken(); len(got) > 0 {
		t.Errorf("before anybody looks: %v", got)
	}
	tab, other := p.listen("/"), p.listen("/r/shop/"+run)
	tab.until(t, run)
	other.until(t, run)
	tab.close()
	other.close()
	eventually(t, "nothing is followed", p.s.hub.quiet)
	n.taken()
	p.run(asksSpec)
	if got := n.taken(); len(got) > 0 {
		t.Errorf("after all have gone: %v", got)
	}
}

// stuck is a browser that does not read.
type stuck struct {
	httptest.ResponseRecorder
	writes  chan struct{}
	release <-chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.writes <- struct{}{}
	<-s.release
	return 0, os.ErrDeadlineExceeded
}
func (s *stuck) SetWriteDeadline(time.Time) error { return nil }

// TestWhoDoesNotRead holds up no other browser, and is cut.
func TestWhoDoesNotRead(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	release, cut := make(chan struct{}), make(chan struct{})
	w := &stuck{*httptest.NewRecorder(), make(chan struct{}, 1), release}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Host = strings.TrimPrefix(p.base, "http://")
	r.Header.Set("Cookie", cookieName+"="+p.cookie)
	r.Header.Set("Accept", "text/event-stream")
	go func() { defer close(cut); p.s.srv.Handler.ServeHTTP(w, r) }()
	<-w.writes
	tab := p.listen("/")
	tab.until(t, run)
	tab.until(t, p.run(asksSpec))
	close(release)
	<-cut
}

// perStream is the most that a page keeps for an open stream, both ends of its connection included.
const perStream = 64 << 10

// TestManyStreams: of 600 streams 512 stay and the oldest give way; they hold a bounded amount of
// memory, and leave no goroutine behind.
func TestManyStreams(t *testing.T) {
	conform.Rule(t, "11-page connections", "10,000 open streams, slow clients")
	const streams = 600
	p := newSite(t)
	run := p.run(asksSpec)
	eventually(t, "it is quiet", p.s.hub.quiet)
	before, heap := runtime.NumGoroutine(), inUse()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for i := range streams {
		if i%ownMost == 0 {
			p.cookie = p.enter(p.code())
		}
		conns = append(conns, p.tab([]string{"/", "/r/shop/" + run}[i%2]))
	}
	h := p.s.hub
	eventually(t, "the oldest have gone", func() bool {
		return runtime.NumGoroutine() < before+streamsMost*5/2
	})
	h.mu.Lock()
	open, pages := len(h.streams), len(h.shown)
	h.mu.Unlock()
	if open != streamsMost || pages != 2 {
		t.Errorf("%d streams of %d pages are open", open, pages)
	}
	for i, c := range []net.Conn{conns[0], conns[streams-streamsMost-1]} {
		if err := drained(c); err != nil {
			t.Errorf("old stream %d stays: %v", i, err)
		}
	}
	if kept := int64(inUse()) - int64(heap); kept > streams*perStream {
		t.Errorf("a stream keeps %d bytes", kept/streams)
	} else {
		t.Logf("a stream keeps %d bytes", kept/streams)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+4 && h.quiet() })
}

// tab opens the stream of a page on a connection of its own, and reads its first message's begin.
func (p *site) tab(page string) net.Conn {
	p.Helper()
	host := strings.TrimPrefix(p.base, "http://")
	_, port, _ := net.SplitHostPort(host)
	var d net.Dialer
	c, err := d.DialContext(p.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		p.Fatal(err)
	}
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nCookie: %s=%s\r\n\r\n", page, host,
		cookieName, p.cookie)
	head, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	if err != nil || !strings.Contains(head, "200 OK") {
		p.Fatalf("%s: %q %v", page, head, err)
	}
	return c
}

// drained reads a connection to its end.
func drained(c net.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	for buf := make([]byte, 4096); ; {
		if _, err := c.Read(buf); err != nil {
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				return err
			}
			return nil
		}
	}
}

// inUse returns the bytes of heap and stacks that are in use after a collection.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestTheListOfRepos is made anew when a repo comes or goes, and otherwise once a minute.
func TestTheListOfRepos(t *testing.T) {
	p := newSite(t)
	names := func() (out []string) {
		known, err := p.s.repos.all(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range known {
			out = append(out, r.Name)
		}
		return out
	}
	if got := names(); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	made := p.s.repos.made
	p.later(knownFor)
	if got := names(); len(got) != 1 || p.s.repos.made != made {
		t.Errorf("a list of repos that are as before is made anew: %v", got)
	}
	other := filepath.Join(filepath.Dir(p.root), "other")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", other).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	state := filepath.Join(p.home, "other-0123456789ab")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := workspace.LeaveRoot(other, state); err != nil {
		t.Fatal(err)
	}
	p.later(knownFor)
	if got := names(); len(got) != 2 {
		t.Errorf("a new repo is not known: %v", got)
	}
	if err := os.RemoveAll(other); err != nil {
		t.Fatal(err)
	}
	p.later(knownFor)
	if got := names(); len(got) != 1 {
		t.Errorf("a repo that has gone is known: %v", got)
	}
	made = p.s.repos.made
	p.later(listFor)
	if names(); p.s.repos.made == made {
		t.Error("after a minute the list is not made anew")
	}
}
