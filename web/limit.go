package web

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits of open connections.
const (
	connections = 1024 // at each address; more than streams, so that these cannot shut others out
	// fromOne is how many of them another machine may have. A browser there needs one, over HTTP/2.
	fromOne = 128
	// refusing is how many refused connections may ask before they are answered, refusedIn for how long.
	refusing  = 64
	refusedIn = time.Second
)

// tooMany is the answer to a connection beyond the limits. One that speaks TLS is only closed.
const tooMany = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 10\r\n" +
	"Connection: close\r\n\r\ntoo many connections are open to this page: close some tabs, and try again\n"

// limited is a listener that refuses connections beyond the limits at once, so that none of them waits.
type limited struct {
	net.Listener
	plain   bool // no TLS
	refused chan struct{}

	mu    sync.Mutex
	open  int
	peers map[netip.Addr]int
}

func limit(l net.Listener, plain bool) *limited {
	return &limited{Listener: l, plain: plain, refused: make(chan struct{}, refusing), peers: map[netip.Addr]int{}}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := peer(c)
		if l.enter(from) {
			return &counted{Conn: c, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		l.refuse(c)
	}
}

// peer returns the machine at the other end.
func peer(c net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

func (l *limited) enter(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= connections || !from.IsLoopback() && l.peers[from] >= fromOne {
		return false
	}
	l.open++
	l.peers[from]++
	return true
}

func (l *limited) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.peers[from]--; l.peers[from] == 0 {
		delete(l.peers, from)
	}
}

// refuse answers a connection and closes it. One that is closed before its request was read can lose the
// answer, so as many as may wait are read from first.
func (l *limited) refuse(c net.Conn) {
	if !l.plain || c.SetDeadline(time.Now().Add(refusedIn)) != nil {
		_ = c.Close() // it may have gone
		return
	}
	select {
	case l.refused <- struct{}{}:
		go func() {
			defer func() { <-l.refused }()
			_, _ = c.Read(make([]byte, 8<<10)) // whatever it asks
			answer(c)
		}()
	default:
		answer(c)
	}
}

func answer(c net.Conn) {
	_, _ = c.Write([]byte(tooMany)) // it may have gone
	_ = c.Close()
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
