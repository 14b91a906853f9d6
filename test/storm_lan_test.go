//go:build linux

package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// lan has machines in network namespaces of their own, at one switch. It is in a network namespace
// too, so that nobody else sees it, and it goes with the test.
type lan struct {
	t   *testing.T
	dir string
	all map[string]int // machine -> its number
}

func newLAN(t *testing.T, names ...string) *lan {
	t.Helper()
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs: %s (apt-get install iproute2 util-linux)", program)
		}
	}
	l := &lan{t: t, dir: t.TempDir(), all: map[string]int{}}
	for i, name := range names {
		l.all[name] = i + 1
	}
	if out, err := exec.Command("ip", "link", "add", "switch", "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("kernel: no bridge: %s", strings.TrimSpace(string(out)))
	}
	script := "ip link set lo up; ip addr add 10.77.0.254/24 dev switch; ip link set switch up\n"
	for _, name := range names {
		script += strings.NewReplacer("NS", l.space(name), "PORT", l.port(name), "ADDR", l.host(name)).Replace(
			`touch NS; unshare --net=NS true
ip link add PORT type veth peer name end; ip link set PORT master switch; ip link set PORT up; ip link set end netns NS
nsenter --net=NS sh -ec 'ip link set lo up; ip addr add ADDR/24 dev end; ip link set end up'
`)
	}
	t.Cleanup(func() {
		for _, name := range names {
			_ = syscall.Unmount(l.space(name), syscall.MNT_DETACH)
		}
	})
	l.do("sh", "-ec", script)
	return l
}

func (l *lan) do(args ...string) {
	l.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		l.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (l *lan) space(name string) string { return filepath.Join(l.dir, name) }
func (l *lan) port(name string) string  { return fmt.Sprintf("port%d", l.all[name]) }
func (l *lan) host(name string) string  { return fmt.Sprintf("10.77.0.%d", l.all[name]) }

// front is what a command of the machine is started behind.
func (l *lan) front(name string) []string { return []string{"nsenter", "--net=" + l.space(name)} }

// plug puts a machine's cable in, or pulls it.
func (l *lan) plug(name string, in bool) {
	l.t.Helper()
	l.do("ip", "link", "set", l.port(name), map[bool]string{true: "up", false: "down"}[in])
}

// hears has what one machine sends reach another, or lost.
func (l *lan) hears(to, from string, does bool) {
	l.t.Helper()
	l.do(append(l.front(from), "ip", "route", map[bool]string{true: "del", false: "add"}[does], "blackhole",
		l.host(to)+"/32")...)
}
