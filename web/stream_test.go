package web

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"sluice/internal/console"
	"sluice/internal/press"
	"sluice/tools/conform"
)

// TestStreamsAreFew: a login has 16 streams and all have 512; the oldest of them gives way, and no
// other.
func TestStreamsAreFew(t *testing.T) {
	conform.Rule(t, "11-page bounds", "Bounds on every body, login and stream")
	h := newHub(newRepos(console.New(nil, nil, nil, nil)))
	defer h.close()
	join := func(login string) context.Context {
		ctx, _ := h.join(t.Context(), login, "/"+login, nothing)
		return ctx
	}
	other := join("other")
	var own []context.Context
	for range ownMost + 3 {
		own = append(own, join("me"))
	}
	for i, ctx := range own {
		if over := ctx.Err() != nil; over != (i < 3) {
			t.Errorf("stream %d of a login: over is %v", i+1, over)
		}
	}
	if other.Err() != nil {
		t.Error("another login's stream gave way")
	}
	for i := 0; len(h.streams) < streamsMost; i++ {
		join(fmt.Sprint(i / ownMost))
	}
	if other.Err() != nil {
		t.Errorf("with %d streams the oldest gave way", len(h.streams))
	}
	last := join("one more")
	if other.Err() == nil || own[3].Err() != nil || last.Err() != nil || len(h.streams) != streamsMost {
		t.Errorf("the oldest of %d streams did not give way: %v %v", len(h.streams), other.Err(), own[3].Err())
	}
}

// listener reads the messages of a stream.
type listener struct {
	*bufio.Reader
	close func()
}

// listen opens the stream of a page as a browser does.
func (p *site) listen(target string) *listener {
	p.Helper()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.base, "http://"))
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	r, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+port+target, nil)
	if err != nil {
		p.Fatal(err)
	}
	r.Host = strings.TrimPrefix(p.base, "http://")
	r.Header.Set("Cookie", cookieName+"="+p.cookie)
	r.Header.Set("Accept", "text/event-stream")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	l := &listener{bufio.NewReader(w.Body), func() { cancel(); _ = w.Body.Close() }}
	p.Cleanup(l.close)
	if w.StatusCode != 200 || w.Header.Get("Content-Type") != "text/event-stream" {
		p.Fatalf("%s: %d", target, w.StatusCode)
	}
	return l
}

// until reads messages until one has the text.
func (l *listener) until(t *testing.T, want string) string {
	t.Helper()
	message := ""
	for {
		line, err := l.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended before %q: %v", want, err)
		}
		if message += line; line != "\n" {
			continue
		}
		if strings.Contains(message, want) {
			return message
		}
		message = ""
	}
}

// TestStreamFollows: what is decided arrives at who looks, as one element for each message.
func TestStreamFollows(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	inbox, gate := p.listen("/"), p.listen(at)
	inbox.until(t, run)
	gate.until(t, "round 1")
	if w := p.answer(at, p.form(at), "outcome", "fail", "text", "more"); w.Code != 303 {
		t.Fatal(w.Code)
	}
	message := gate.until(t, "round 2")
	if !strings.HasPrefix(message, `data: <`) || strings.Count(message, " id=\"gatehead\"") != 1 {
		t.Errorf("no element of the page: %s", message)
	}
	sure := fieldsOf(p.answer(at, p.form(at), "outcome", "pass").Body.String())
	p.later(press.Shown)
	p.answer(at, sure, "outcome", "pass")
	inbox.until(t, "completed")
}

// TestStreamsGiveWay: a browser's 17th tab is live; its first is told to ask again.
func TestStreamsGiveWay(t *testing.T) {
	conform.Rule(t, "11-page streams", "At most 16 streams a login, 512 in all, the oldest gives way")
	p := newSite(t)
	run := p.run(asksSpec)
	first := p.listen("/")
	first.until(t, run)
	for range ownMost {
		p.listen("/").until(t, run)
	}
	for {
		if _, err := first.ReadString('\n'); err != nil {
			return // within the 20 seconds of the request
		}
	}
}

// TestStreamThatNeverBegan: one that gives way before its page was rendered gives its connection back too.
func TestStreamThatNeverBegan(t *testing.T) {
	p := newSite(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	w := httptest.NewRecorder()
	p.s.stream(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil), func(r *http.Request) (view, error) {
		<-r.Context().Done()
		return view{}, r.Context().Err()
	})
	if got := w.Header().Get("Connection"); got != "close" {
		t.Errorf("its connection stays open: %q", got)
	}
}

// TestStreamEndsWithItsLogin: a login that has ended sees nothing new.
func TestStreamEndsWithItsLogin(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	tab := p.listen("/")
	tab.until(t, run)
	p.ask("POST", "/out", url.Values{})
	later := p.run(asksSpec)
	for {
		line, err := tab.ReadString('\n')
		if strings.Contains(line, later) {
			t.Fatal("a login that has ended still sees runs")
		}
		if err != nil {
			return
		}
	}
}

// pipes is a listener whose connections have no buffer: what nobody reads is not written.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { close(l.done); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestSlowClients: who does not send, or does not read, is cut; who reads a stream is not.
func TestSlowClients(t *testing.T) {
	conform.Rule(t, "11-page connections", "10,000 open streams, slow clients")
	p := newSite(t)
	base, cookie := p.base, p.cookie
	host := strings.TrimPrefix(base, "http://")
	line := func(method, target, accept string) string {
		return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nSec-Fetch-Site: same-origin\r\nAccept: %s\r\nCookie: %s=%s\r\n",
			method, target, host, accept, cookieName, cookie)
	}
	post := line("POST", "/out", "*/*") + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\n"
	for _, c := range []struct {
		what, sent string
		reads      bool
		within     time.Duration // it is cut; 0 = it stays for an hour
	}{
		{"nothing sent", "", true, time.Minute},
		{"half a head", "GET / HTTP/1.1\r\nHost:", true, time.Minute},
		{"half a form", strings.Replace(post, "/out", "/r/shop/none/pause", 1) + "text=", true, time.Minute},
		{"a page that is not read", line("GET", "/", "text/html") + "\r\n", false, 2 * time.Minute},
		{"a stream that is not read", line("GET", "/", "text/event-stream") + "\r\n", false, time.Minute},
		{"a stream that is read", line("GET", "/", "text/event-stream") + "\r\n", true, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cut(t, p.home, base, c.sent, c.reads, c.within) })
		})
	}
}

// cut checks when a server in a bubble of its own cuts a connection.
func cut(t *testing.T, home, base, sent string, reads bool, within time.Duration) {
	con := console.New([]string{"XDG_STATE_HOME=/nonexistent", "HOME=/nonexistent"}, nil, nil, nil)
	con.Now = func() time.Time { return time.Now().AddDate(40, 0, 0) } // the bubble begins in 2000
	s, err := New(Options{Console: con, Home: home, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().AddDate(-1, 0, 0)
	s.logins.now = func() time.Time { return now }
	s.guard = guardOf(base)
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	s.srv = s.serving()
	s.done.Go(func() { _ = s.srv.Serve(l) })
	ours, theirs := net.Pipe()
	l.conns <- theirs
	go func() { _, _ = ours.Write([]byte(sent)) }()
	ended := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		if !reads {
			time.Sleep(within)
		}
		for buf := make([]byte, 4096); ; {
			if _, err := ours.Read(buf); err != nil {
				return
			}
			if !reads {
				t.Errorf("it is not cut after %s", time.Since(began))
				return
			}
		}
	}()
	select {
	case <-ended:
		if took := time.Since(began); within == 0 || took > within+time.Second {
			t.Errorf("it is cut after %s, want %s", took, within)
		}
	case <-time.After(max(within, time.Hour) + time.Second):
		if within > 0 {
			t.Error("it is never cut")
		}
	}
	_ = ours.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// nothing renders a page without parts.
func nothing(context.Context, bool) (view, newest, error) { return view{}, newest{}, nil }
