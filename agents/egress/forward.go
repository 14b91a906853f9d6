package egress

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"time"
)

// proxyPort is the port, of a sandbox's own loopback, at which programs find the proxy, or the first after it that the
// rules do not need.
const proxyPort = 3128

const loopback = "127.0.0.1"

// Loopback gives those of the rules' hosts that are this machine's own, with their ports: inside they are on the same port.
func (r Rules) Loopback() []string {
	var out []string
	for _, rule := range r.Hosts {
		host, port, err := SplitHost(rule)
		if err != nil || port == "" {
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

// Address is where the proxy is found inside.
func (r Rules) Address() string {
	taken := r.Loopback()
	for port := proxyPort; ; port++ {
		if at := net.JoinHostPort(loopback, strconv.Itoa(port)); !slices.Contains(taken, at) {
			return at
		}
	}
}

// Vars are the variables by which programs find the proxy.
func (r Rules) Vars() []string {
	at := "http://" + r.Address()
	const not = "localhost,127.0.0.1,::1"
	return []string{"HTTP_PROXY=" + at, "HTTPS_PROXY=" + at, "http_proxy=" + at, "https_proxy=" + at, "NO_PROXY=" + not, "no_proxy=" + not}
}

// Carry hands on what comes in at l, a port inside, to the host that the rules allow, until l is closed. It returns when
// nothing of it is under way any more.
func (p *Proxy) Carry(l net.Listener, to string) error {
	for {
		in, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no descriptors left: some will be
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
