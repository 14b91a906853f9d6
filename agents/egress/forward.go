package egress

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"time"
)

// proxyPort is the proxy's port on a sandbox's own loopback, or the first after it that the rules
// do not use.
const proxyPort = 3128

const loopback = "127.0.0.1"

// Loopback returns the rules' hosts that are this machine, with ports, but for the page. They have the
// same ports inside.
func (r Rules) Loopback() []string {
	var out []string
	for _, rule := range r.Hosts {
		host, port, err := SplitHost(rule)
		if err != nil || port == "" || port == r.Page {
			continue
		}
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			if host == "localhost" {
				host = loopback
			}
			out = append(out, net.JoinHostPort(host, port))
		}
	}
	return out
}

// Address returns the proxy's address inside.
func (r Rules) Address() string {
	taken := r.Loopback()
	for port := proxyPort; ; port++ {
		if at := net.JoinHostPort(loopback, strconv.Itoa(port)); !slices.Contains(taken, at) {
			return at
		}
	}
}

// Vars returns the variables by which programs find the proxy.
func (r Rules) Vars() []string {
	at := "http://" + r.Address()
	const not = "localhost,127.0.0.1,::1"
	return []string{"HTTP_PROXY=" + at, "HTTPS_PROXY=" + at, "http_proxy=" + at, "https_proxy=" + at,
		"NO_PROXY=" + not, "no_proxy=" + not}
}

// Carry forwards connections at l, a port inside, to the host that the rules allow, until l is
// closed.
func (p *Proxy) Carry(l net.Listener, to string) error {
	for {
		in, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no descriptors left: wait for some
			continue
		}
		go p.carry(in, to)
	}
}

func (p *Proxy) carry(in net.Conn, to string) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	out, err := p.dial(ctx, "tcp", to)
	if err != nil {
		in.Close()
		return
	}
	if !p.keep(in, out) {
		return
	}
	defer p.drop(in, out)
	join(in, in, out)
}
