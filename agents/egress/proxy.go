// Package egress is the way out of a sandbox without a network of its own: a proxy, which passes
// what its rules allow and logs what it refuses. It runs outside and listens inside: its sockets
// belong to the sandbox's network, where programs find them by the usual variables.
//
//	program ──its loopback──────────> proxy ────────> the host that is allowed
//	(the sandbox: loopback only)      (the machine)
//
// HTTP and anything tunnelled by CONNECT passes (TLS is not opened). Name servers, ssh and raw
// sockets do not.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of the proxy.
const (
	dialTime   = 30 * time.Second
	headerTime = 30 * time.Second // to receive a request's complete header
	maxHeader  = 64 << 10
	maxNoted   = 200 // different refusals reported
	maxHost    = 253
)

// Rules are where a sandbox may connect to. The zero value allows nothing.
type Rules struct {
	// Web allows every host of the public internet on ports 80 and 443, but no address of this
	// machine, its own networks, or private networks.
	Web bool `json:"web,omitempty"`
	// Hosts are also allowed, at any address: "name", "name:port", "*.name"; without a port, 80 and
	// 443.
	Hosts []string `json:"hosts,omitempty"`
	// Public are allowed like Hosts, but only at addresses that Web allows.
	Public []string `json:"public,omitempty"`
	// Page is the port of sluice's page, which no rule reaches.
	Page string `json:"page,omitempty"`
}

// named reports whether rules allow host and port.
func named(rules []string, host, port string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool {
		want, only, _ := SplitHost(rule)
		if only == "" && port != "80" && port != "443" || only != "" && only != port {
			return false
		}
		if strings.EqualFold(want, host) {
			return true
		}
		ok, err := path.Match(strings.ToLower(want), strings.ToLower(host))
		return ok && err == nil && strings.HasPrefix(want, "*.")
	})
}

// SplitHost splits a rule; the port is "" if it has none. The error says what a rule looks like.
func SplitHost(rule string) (host, port string, err error) {
	host = rule
	if h, p, serr := net.SplitHostPort(rule); serr == nil {
		host, port = h, p
	}
	host = strings.Trim(host, "[]")
	bad := host == "" || len(host) > maxHost || strings.ContainsAny(strings.TrimPrefix(host, "*."), "/*?@ \t\n\\[]")
	if port != "" {
		if n, perr := net.LookupPort("tcp", port); perr != nil || n < 1 || n > 65535 {
			bad = true
		}
	}
	if bad {
		return "", "", fmt.Errorf("%.80q is not a host: want name, name:port or *.name", rule)
	}
	return host, port, nil
}

// errRefused is the refusal of a host that the rules do not allow.
var errRefused = errors.New("not allowed by the role's network setting")

// Proxy serves one sandbox.
type Proxy struct {
	rules  Rules
	note   func(host string) // receives refused hosts, each once
	server *http.Server
	dialer net.Dialer
	addrs  func() ([]net.Addr, error) // of this machine

	mu    sync.Mutex
	noted map[string]bool
	open  map[net.Conn]bool // tunnels, which the server does not track
	shut  bool
	ends  sync.WaitGroup
}

// NewProxy returns a proxy. note receives each refused host once; it may be nil.
func NewProxy(rules Rules, note func(host string)) *Proxy {
	p := &Proxy{rules: rules, note: note, noted: map[string]bool{}, open: map[net.Conn]bool{},
		addrs: net.InterfaceAddrs, dialer: net.Dialer{Timeout: dialTime}}
	p.dialer.Control = p.besidePage
	through := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport: &http.Transport{DialContext: p.dial, DisableCompression: true, MaxIdleConnsPerHost: 4,
			IdleConnTimeout: time.Minute},
		FlushInterval: -1, // forward a stream as it comes
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { unreached(w, err) },
	}
	p.server = &http.Server{ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				p.tunnel(w, r)
			case r.URL.IsAbs() && r.URL.Scheme == "http":
				through.ServeHTTP(w, r)
			default:
				http.Error(w, "sluice: this is a proxy: it takes CONNECT and http:// requests", http.StatusBadRequest)
			}
		})}
	return p
}

// unreached says why a host is not reached.
func unreached(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	if errors.Is(err, errRefused) {
		code = http.StatusForbidden
	}
	http.Error(w, "sluice: "+err.Error(), code)
}

// Serve serves connections until Close. It returns when none is open.
func (p *Proxy) Serve(l net.Listener) error {
	err := p.server.Serve(l)
	p.ends.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends all connections at once.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.shut = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	return p.server.Close()
}

// tunnel joins the two ends of a CONNECT.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	out, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		unreached(w, err)
		return
	}
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		out.Close()
		http.Error(w, "sluice: no tunnel: "+err.Error(), http.StatusInternalServerError)
		return
	}
	if !p.keep(in, out) {
		return
	}
	defer p.drop(in, out)
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(in, buffered, out)
}

// keep registers connections for Close to end; after Close it closes them and returns false.
func (p *Proxy) keep(cs ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		if p.shut {
			c.Close()
			continue
		}
		p.open[c] = true
	}
	if !p.shut {
		p.ends.Add(1)
	}
	return !p.shut
}

func (p *Proxy) drop(cs ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		delete(p.open, c)
		c.Close()
	}
	p.ends.Done()
}

// join copies both ways until both are done.
func join(in net.Conn, from io.Reader, out net.Conn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		closeWrite(in)
	})
	_, _ = io.Copy(out, from)
	closeWrite(out)
	back.Wait()
}

// closeWrite signals the end of the data.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	c.Close()
}

// dial connects to an allowed host. It resolves the name here and connects to the address that it
// checked.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%.300q: %w", address, err)
	}
	if named(p.rules.Hosts, host, port) {
		return p.dialer.DialContext(ctx, network, address)
	}
	if !named(p.rules.Public, host, port) && (!p.rules.Web || port != "80" && port != "443") {
		return nil, p.refuse(host, port)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var last error
	for _, ip := range ips {
		if !Public(ip) || p.own(ip) {
			last = p.refuse(host, port)
			continue
		}
		c, err := p.dialer.DialContext(ctx, network, net.JoinHostPort(ip.Unmap().String(), port))
		if err == nil {
			return c, nil
		}
		last = err
	}
	if last == nil {
		last = fmt.Errorf("%s has no address", host)
	}
	return nil, last
}

// own reports whether an address is this machine's, even a public one: services there may not be
// meant for the world.
func (p *Proxy) own(ip netip.Addr) bool {
	all, err := p.addrs()
	return err != nil || slices.ContainsFunc(all, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip.Unmap()
	})
}

// besidePage refuses a connection to the page, whatever name led to its address.
func (p *Proxy) besidePage(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip, port := at.Addr().Unmap(), strconv.Itoa(int(at.Port()))
	if port == p.rules.Page && (ip.IsLoopback() || ip.IsUnspecified() || p.own(ip)) {
		return p.refuse(ip.String(), port)
	}
	return nil
}

func (p *Proxy) refuse(host, port string) error {
	at := net.JoinHostPort(host, port)
	p.mu.Lock()
	fresh := !p.noted[at] && len(p.noted) < maxNoted
	if fresh {
		p.noted[at] = true
	}
	p.mu.Unlock()
	if fresh && p.note != nil {
		p.note(at)
	}
	return fmt.Errorf("%s: %w", at, errRefused)
}
