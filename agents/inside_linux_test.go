package agents

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/agents/egress"
	"sluice/agents/sandbox"
	"sluice/tools/conform"
)

// heldSpec is a launch in a hand-made sandbox whose network has only the proxy. The command reads
// from the proxy's port.
func heldSpec(t *testing.T, command string, rules egress.Rules) Spec {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("needs: bwrap (apt-get install bubblewrap)")
	}
	if out, err := exec.Command(bwrap, "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		t.Skipf("kernel: no user namespaces for bwrap: %s", out)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs: python3 (apt-get install python3-minimal)")
	}
	s := testSpec(t, "unused")
	s.Net = &rules
	s.Cage = &sandbox.Start{Env: s.Env, Argv: []string{bwrap, "--unshare-user", "--unshare-pid", "--unshare-net", "--disable-userns",
		"--info-fd", strconv.Itoa(sandbox.InfoFd), "--block-fd", strconv.Itoa(sandbox.BlockFd), "--die-with-parent",
		"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "python3", "-c", command}}
	s.Argv, s.Env = nil, nil
	return s
}

// ask has a command inside connect at once, and print the answer.
const ask = `import socket, sys
s = socket.create_connection(("127.0.0.1", %PORT%), timeout=20)
s.sendall(b"CONNECT 10.1.2.3:22 HTTP/1.1\r\n\r\n")
s.shutdown(socket.SHUT_WR)
while (b := s.recv(4096)): sys.stdout.buffer.write(b)
`

// TestProxyListensInside: the proxy is there when the command begins, only on the sandbox's own
// loopback, and the command has no descriptor of it.
func TestProxyListensInside(t *testing.T) {
	conform.Rule(t, "4-trust network", "the proxy listens on the sandbox's loopback before the command begins, and there only")
	r := newRunner()
	for range 5 {
		s := heldSpec(t, strings.ReplaceAll(ask, "%PORT%", "3128")+"import os\nprint(sorted(os.listdir('/proc/self/fd')))", egress.Rules{Web: true})
		exit := wait(t, ensure(t, r, s))
		if exit.Code != 0 {
			t.Fatalf("%+v: %s", exit, Tail(s.Dir, 4000))
		}
		out := string(Tail(s.Dir, 4000))
		// its own socket, and that of listdir
		if !strings.Contains(out, "403 Forbidden") || !strings.Contains(out, "10.1.2.3:22") || !strings.Contains(out, "['0', '1', '2', '3', '4']") {
			t.Errorf("%s", out)
		}
		if note, err := os.ReadFile(filepath.Join(s.Dir, networkFile)); err != nil || !strings.Contains(string(note), "refused 10.1.2.3:22") {
			t.Errorf("%q %v", note, err)
		}
		if c, err := net.DialTimeout("tcp", "127.0.0.1:3128", time.Second); err == nil {
			c.Close()
			t.Error("it listens outside too")
		}
	}
}

// TestServiceInside: a service of this machine in the rules is on its own port inside.
func TestServiceInside(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			_, _ = io.WriteString(c, "the service")
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := heldSpec(t, strings.ReplaceAll(ask, "%PORT%", port), egress.Rules{Hosts: []string{l.Addr().String()}})
	exit := wait(t, ensure(t, newRunner(), s))
	if out := string(Tail(s.Dir, 4000)); exit.Code != 0 || !strings.Contains(out, "the service") {
		t.Errorf("%+v: %s", exit, out)
	}
}

// TestSandboxThatFails: a sandbox that cannot be created reports its own error, and nothing waits
// for its network.
func TestSandboxThatFails(t *testing.T) {
	s := heldSpec(t, "", egress.Rules{Web: true})
	s.Cage.Argv = slices.Insert(s.Cage.Argv, 1, "--bind", "/no/such/folder", "/x")
	exit := wait(t, ensure(t, newRunner(), s))
	if out := string(Tail(s.Dir, 4000)); exit.Code != 1 || exit.NotStarted != "" || !strings.Contains(out, "/no/such/folder") {
		t.Errorf("%+v: %s", exit, out)
	}
}

// TestNobodysNetwork: a missing process, and a network that we may not enter, are reported.
func TestNobodysNetwork(t *testing.T) {
	if _, err := listenInside(1<<22+1, []string{"127.0.0.1:3128"}); !errors.Is(err, errGone) {
		t.Errorf("%v", err)
	}
	if _, err := listenInside(os.Getpid(), []string{"not an address"}); err == nil {
		t.Error("an address is taken that is none")
	}
}
