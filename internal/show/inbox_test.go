package show

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/workspace"
)

// TestInboxAsksAllReposAtOnce: it waits once for all daemons that hang, and calls no repo empty that it could not read.
func TestInboxAsksAllReposAtOnce(t *testing.T) {
	const repos = 3
	base, err := os.MkdirTemp("", "in") // short: a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	var out, notes strings.Builder
	con := console.New([]string{"XDG_STATE_HOME=" + base, "HOME=" + base}, nil, &out, &notes)
	home, err := workspace.Home(con)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan net.Conn, repos)
	for _, name := range []string{"a", "b", "c"} {
		root := filepath.Join(base, name)
		if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := workspace.AddRepo(home, root); err != nil {
			t.Fatal(err)
		}
		p, err := workspace.At(t.Context(), con, root)
		if err == nil {
			err = os.MkdirAll(p.State, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(p.State, daemon.SocketName))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_ = l.Close()
				asked <- conn
			}
		}()
	}
	go func() { // all hang until each was asked
		var conns []net.Conn
		for range repos {
			conns = append(conns, <-asked)
		}
		for _, c := range conns {
			_, _ = c.Write([]byte("HTTP/1.1 500 broken\r\nContent-Length: 0\r\n\r\n"))
		}
	}()
	began := time.Now()
	items, unread, err := AllInboxes(t.Context(), con, base)
	if err == nil {
		err = PrintInbox(con, items, unread)
	}
	if err != nil || unread != repos || out.String() != "Nothing waits for you in the repos that could be read.\n" {
		t.Errorf("%d unread, %v: %q\n%s", unread, err, out.String(), notes.String())
	}
	if took := time.Since(began); took > 2500*time.Millisecond { // one after another, the first takes 3s
		t.Errorf("it took %s", took)
	}
}
