package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Loopback gives those of the rules' hosts that are this machine's own, with their ports: inside they are on the same port.
func (r Rules) Loopback() []string {
	var out []string
	for _, rule := range r.Hosts {
		host, port, err := SplitHost(rule)
		if err != nil || port == "" {
			continue
		}
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			out = append(out, net.JoinHostPort(host, port))
		}
	}
	return out
}

// Vars are the variables by which programs find the forwarder.
func (f *Forwarder) Vars() []string {
	at := "http://" + f.all[0].Addr().String()
	const not = "localhost,127.0.0.1,::1"
	return []string{"HTTP_PROXY=" + at, "HTTPS_PROXY=" + at, "http_proxy=" + at, "https_proxy=" + at, "NO_PROXY=" + not, "no_proxy=" + not}
}

// Forwarder hands connections on to the proxy's socket.
type Forwarder struct {
	socket string
	all    []net.Listener
	ends   sync.WaitGroup
}

// Forward listens on the sandbox's own loopback for programs that know the proxy, and, for each of ports
// ("127.0.0.1:8080"), there: such a connection comes out at the same address outside.
func Forward(socket string, ports []string) (*Forwarder, error) {
	f := &Forwarder{socket: socket}
	if err := f.listen("127.0.0.1:0", ""); err != nil {
		return nil, err
	}
	for _, at := range ports {
		if err := f.listen(at, at); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// Close ends the listening; connections end with the process.
func (f *Forwarder) Close() error {
	var err error
	for _, l := range f.all {
		err = errors.Join(err, l.Close())
	}
	f.ends.Wait()
	return err
}

func (f *Forwarder) listen(at, to string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	f.all = append(f.all, l)
	f.ends.Go(func() {
		for {
			in, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(10 * time.Millisecond) // no descriptors left: some will be
				continue
			}
			go f.carry(in, to)
		}
	})
	return nil
}

// carry joins a connection to the proxy's socket; to, where it is given, is what the proxy is asked for first.
func (f *Forwarder) carry(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("unix", f.socket)
	if err != nil {
		return
	}
	defer out.Close()
	back := net.Conn(out)
	if to != "" {
		if back, err = connect(out, to); err != nil {
			fmt.Fprintf(os.Stderr, "sluice: %s: %v\n", to, err)
			return
		}
	}
	join(in, in, back)
}

// connect asks the proxy for a tunnel.
func connect(out net.Conn, to string) (net.Conn, error) {
	if _, err := fmt.Fprintf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		return nil, err
	}
	r := bufio.NewReader(out)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return nil, fmt.Errorf("%s: %s", resp.Status, why)
	}
	return readAhead{out, r}, nil
}

// readAhead is a connection of which some was read already.
type readAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c readAhead) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite says that nothing more comes.
func (c readAhead) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}
