package cluster

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"sluice/tools/natstest"
)

// deaf passes on what a client says to a server, and what the server answers unless it is muted.
type deaf struct {
	net.Listener
	to    string
	mu    sync.Mutex
	mute  bool
	conns []net.Conn
}

func newDeaf(t *testing.T, server string) *deaf {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deaf{Listener: l, to: u.Host}
	t.Cleanup(func() { l.Close(); d.set(false) })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", d.to)
			if err != nil {
				client.Close()
				continue
			}
			d.mu.Lock()
			d.conns = append(d.conns, client, server)
			d.mu.Unlock()
			go func() { _, _ = io.Copy(server, client); server.Close() }()
			go func() { _, _ = io.Copy(answers{d, client}, server); client.Close() }()
		}
	}()
	return d
}

type answers struct {
	*deaf
	client net.Conn
}

func (a answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	mute := a.mute
	a.mu.Unlock()
	if mute {
		return len(p), nil
	}
	return a.client.Write(p)
}

// set mutes the answers, or ends the connections and lets new ones be answered.
func (d *deaf) set(mute bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mute = mute; !mute {
		for _, c := range d.conns {
			c.Close()
		}
		d.conns = nil
	}
}

// An append is committed, and the acknowledgement never arrives: it is found in the stream, recorded
// once, and nobody is deposed.
func TestDroppedReply(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	way := newDeaf(t, servers.URL())
	a, direct := newMachine(t, "a", "nats://"+way.Addr().String()), newMachine(t, "direct", servers.URL())
	id := a.begin(1)
	d := a.mustLead(id, false)
	for i := range 3 {
		before := len(direct.stream(id))
		way.set(true)
		done := make(chan error, 1)
		go func() { done <- d.append(i) }()
		for deadline := time.Now().Add(10 * time.Second); len(direct.stream(id)) == before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the append never arrives")
			}
		}
		select {
		case err := <-done:
			t.Fatalf("it ends without an answer: %v", err)
		default:
		}
		if i == 1 { // one more try is sent, and not answered either
			time.Sleep(requestIn + 3*retryAfter)
		}
		way.set(false)
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it never ends")
		}
	}
	direct.state = a.state
	direct.sameAsStream(id)
	a.acknowledged(3)
}
