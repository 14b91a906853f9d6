//go:build linux || darwin

package agents

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice/agents/egress"
	"sluice/agents/sandbox"
)

// networkFile is where the hosts are noted that a launch's proxy refused.
const networkFile = "network.log"

// exit is a launch's way out of a sandbox that has no network of its own.
type exit struct {
	proxy *egress.Proxy
	dir   string
	done  sync.WaitGroup
}

// openExit serves the proxy of a launch; nil where it has none.
func openExit(s Spec) (*exit, error) {
	if s.Net == nil {
		return nil, nil
	}
	if err := os.RemoveAll(s.NetDir); err != nil { // of a launch that was killed with its shim
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if err := os.MkdirAll(s.NetDir, 0o700); err != nil {
		return nil, fmt.Errorf("proxy: %w: see that the state folder can be written", err)
	}
	l, err := listenIn(s.NetDir, sandbox.SocketName)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	x := &exit{dir: s.NetDir, proxy: egress.NewProxy(*s.Net, func(host string) {
		f, err := os.OpenFile(filepath.Join(s.Dir, networkFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return // it was refused all the same
		}
		defer f.Close()
		fmt.Fprintf(f, "%s refused %s\n", time.Now().UTC().Format(time.RFC3339), host)
	})}
	x.done.Go(func() { _ = x.proxy.Serve(l) })
	return x, nil
}

// close ends it.
func (x *exit) close() {
	if x == nil {
		return
	}
	_ = x.proxy.Close()
	x.done.Wait()
	_ = os.RemoveAll(x.dir)
}

// listenIn listens on a socket in dir, whose path may be longer than a socket's address has room for.
func listenIn(dir, name string) (net.Listener, error) {
	const room = 100
	path := filepath.Join(dir, name)
	if len(path) < room {
		return net.Listen("unix", path)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), name), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%s is too long for a socket's address: %w: have a shorter state folder", path, err)
	}
	l.SetUnlinkOnClose(false) // the folder goes
	return l, nil
}
