//go:build linux || darwin

package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"sluice/agents/egress"
	"sluice/internal/fault"
)

const (
	// networkFile is the log of hosts that a launch's proxy refused.
	networkFile = "network.log"
	// maxInfo limits what a sandbox reports about itself.
	maxInfo = 4 << 10
	// insideLimit is how long a sandbox may take to report its network.
	insideLimit = 30 * time.Second
)

// errGone means that the process whose network was requested is gone.
var errGone = errors.New("it is gone")

// exit is a launch's way out of a sandbox without a network of its own: a proxy that listens
// inside.
type exit struct {
	proxy *egress.Proxy
	ports []net.Listener // of single services of this machine
	done  sync.WaitGroup

	info  *os.File // the sandbox reports its network here …
	start *os.File // … and waits until this is written to
	its   [2]*os.File
}

// openExit prepares a launch's way out, or returns nil if it needs none.
func openExit(s Spec) (x *exit, err error) {
	if s.Net == nil {
		return nil, nil
	}
	x = &exit{proxy: egress.NewProxy(*s.Net, func(host string) {
		_ = makeDir(s.Below, s.Dir) // the next error says what is wrong with it
		f, err := os.OpenFile(filepath.Join(s.Dir, networkFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return // the refusal stands
		}
		defer f.Close()
		fmt.Fprintf(f, "%s refused %s\n", time.Now().UTC().Format(time.RFC3339), host)
	})}
	if x.info, x.its[0], err = os.Pipe(); err == nil {
		x.its[1], x.start, err = os.Pipe()
	}
	if err != nil {
		x.close()
		return nil, fault.New("raise the limit of open files", "proxy: %w", err)
	}
	return x, nil
}

// files returns the sandbox's descriptors beyond a command's three: sandbox.InfoFd and
// sandbox.BlockFd.
func (x *exit) files() []uintptr {
	if x == nil {
		return nil
	}
	return []uintptr{x.its[0].Fd(), x.its[1].Fd()}
}

// open makes the proxy listen in the started sandbox and lets its command begin. A sandbox that
// fails reports its own error.
func (x *exit) open(rules *egress.Rules) error {
	if x == nil {
		return nil
	}
	x.letGo()
	if err := x.info.SetReadDeadline(time.Now().Add(insideLimit)); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(x.info, maxInfo))
	if err != nil {
		return fmt.Errorf("proxy: the sandbox did not report its network: %w", err)
	}
	var of struct {
		Pid int `json:"child-pid"`
	}
	if json.Unmarshal(said, &of) != nil || of.Pid <= 0 {
		return nil // it has failed
	}
	ports := slices.Compact(slices.Sorted(slices.Values(rules.Loopback()))) // one can have two names
	all, err := listenInside(of.Pid, append([]string{rules.Address()}, ports...))
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("proxy: the sandbox's network: %w", err)
	}
	x.done.Go(func() { _ = x.proxy.Serve(all[0]) })
	x.ports = all[1:]
	for i, l := range x.ports {
		x.done.Go(func() { _ = x.proxy.Carry(l, ports[i]) })
	}
	_, err = x.start.Write([]byte{1})
	if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("proxy: %w", err)
	}
	return nil
}

// letGo closes the sandbox's ends.
func (x *exit) letGo() { closeAll(x.its[:]...) }

// close ends the proxy.
func (x *exit) close() {
	if x == nil {
		return
	}
	x.letGo()
	closeAll(x.info, x.start)
	for _, l := range x.ports {
		l.Close()
	}
	_ = x.proxy.Close()
	x.done.Wait()
}
