package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/tools/conform"
)

// perConnection is the most that a page keeps for an open connection, both ends of it included.
const perConnection = 32 << 10

// TestTenThousandConnections: what is open beyond the limit is refused with an answer, and closed; those
// before it are served, memory is bounded, and afterwards all is as before.
func TestTenThousandConnections(t *testing.T) {
	conform.Rule(t, "11-page connections", "10,000 open streams, slow clients")
	const (
		all  = 10_000
		icon = "/static/icon.svg"
	)
	p := newSite(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.base, "http://"))
	at := net.JoinHostPort("127.0.0.1", port)
	before := dial(t, at)
	defer before.Close()
	p.over(before)
	routines, heap := runtime.NumGoroutine(), inUse()
	var served, refused []net.Conn
	defer func() { shut(append(served, refused...)) }()
	for range all {
		c := dial(t, at)
		if code, body := p.asks(c, icon); code == http.StatusOK {
			served = append(served, c)
		} else if refused = append(refused, c); code != http.StatusServiceUnavailable ||
			!strings.Contains(body, "too many connections are open") {
			t.Fatalf("connection %d: %d %q", len(served)+len(refused), code, body)
		}
	}
	if len(served) != connections-1 || len(refused) != all-connections+1 {
		t.Errorf("of %d connections %d are served, %d refused", all, len(served), len(refused))
	}
	p.over(before)
	p.over(served[0])
	p.over(served[len(served)-1])
	if n := runtime.NumGoroutine() - routines; n > 2*connections+2*refusing {
		t.Errorf("%d goroutines", n)
	}
	shut(refused)
	if kept := int64(inUse()) - int64(heap); kept > connections*perConnection {
		t.Errorf("a connection keeps %d bytes", kept/connections)
	} else {
		t.Logf("a connection keeps %d bytes", kept/connections)
	}
	shut(served)
	eventually(t, "another is served", func() bool {
		c := dial(t, at)
		defer c.Close()
		code, _ := p.asks(c, icon)
		return code == http.StatusOK
	})
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= routines+4 })
}

func dial(t *testing.T, at string) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func shut(all []net.Conn) {
	for _, c := range all {
		_ = c.Close()
	}
}

// asks asks for a path on a connection that is open, and returns the status and the body.
func (p *site) asks(c net.Conn, path string) (int, string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), "GET", p.base+path, nil)
	if err == nil {
		r.Header.Set("Cookie", cookieName+"="+p.cookie)
		err = c.SetDeadline(time.Now().Add(20 * time.Second))
	}
	if err == nil {
		err = r.Write(c)
	}
	if err != nil {
		p.Fatal(err)
	}
	w, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		p.Fatal(err)
	}
	body, err := io.ReadAll(w.Body)
	if err != nil {
		p.Fatal(err)
	}
	return w.StatusCode, string(body)
}

// over checks that who is connected already gets the inbox.
func (p *site) over(c net.Conn) {
	p.Helper()
	if code, body := p.asks(c, "/"); code != http.StatusOK || !strings.Contains(body, "What waits for you") {
		p.Fatalf("an open connection gets %d: %s", code, body)
	}
}

// fake is a connection from another machine.
type fake struct {
	net.Conn
	from   string
	closed *atomic.Int64
}

func (f fake) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.from)) }
func (f fake) Close() error         { f.closed.Add(1); return f.Conn.Close() }

// TestOneMachineIsNotAll: another machine has a part of the connections; this one may have all.
func TestOneMachineIsNotAll(t *testing.T) {
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	limited := limit(l, false)
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := limited.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	var closed atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	from := func(at string, n int) (in []net.Conn) {
		was := closed.Load()
		for range n {
			ours, theirs := net.Pipe()
			defer ours.Close()
			l.conns <- fake{theirs, at, &closed}
			for done := false; !done; {
				select {
				case c := <-accepted:
					in, done = append(in, c), true
				case <-time.After(time.Millisecond):
					done = closed.Load() > was
					was = closed.Load()
				case <-ctx.Done():
					t.Fatal("neither in nor out")
				}
			}
		}
		return in
	}
	one := from("192.0.2.1:1000", fromOne+3)
	if len(one) != fromOne {
		t.Errorf("one machine has %d connections", len(one))
	}
	if mapped := from("[::ffff:192.0.2.1]:1000", 1); len(mapped) != 0 {
		t.Error("the same machine by another name has one more")
	}
	other := from("192.0.2.2:1000", 1)
	here := from("127.0.0.1:1000", connections-fromOne-1)
	if len(other) != 1 || len(here) != connections-fromOne-1 {
		t.Errorf("others have %d and %d", len(other), len(here))
	}
	if more := from("127.0.0.1:1000", 2); len(more) != 0 {
		t.Error("more than all")
	}
	for range 2 { // closed twice, it counts once
		_ = one[0].Close()
	}
	if again := from("192.0.2.1:1000", 2); len(again) != 1 {
		t.Errorf("after one has gone %d more come in", len(again))
	}
	_ = l.Close()
	<-accepted
}
