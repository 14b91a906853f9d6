//go:build unix

package serve

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/daemon"
	"sluice/internal/console"
)

// TestHangUpWhileItStarts: a SIGHUP before the daemon serves is answered, and READY=1 sent, once it does.
func TestHangUpWhileItStarts(t *testing.T) {
	dir, err := os.MkdirTemp("", "hup") // short: it is a socket's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	hears := func(within time.Duration) string {
		t.Helper()
		if err := manager.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _ := manager.Read(b) // nothing by then
		return string(b[:n])
	}
	con := console.New([]string{"NOTIFY_SOCKET=" + filepath.Join(dir, "s")}, strings.NewReader(""), io.Discard, io.Discard)
	srv := daemon.NewServer(daemon.ServerOptions{ReposFile: filepath.Join(dir, "none.json")})
	ctx, cancel := context.WithCancel(t.Context())
	hups, ready, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	hups <- syscall.SIGHUP
	go func() {
		defer close(ended)
		reloadOn(ctx, hups, ready, con, srv, zerolog.Nop())
	}()
	if got := hears(100 * time.Millisecond); got != "" {
		t.Errorf("before it serves it says %q", got)
	}
	close(ready)
	if one, two := hears(10*time.Second), hears(10*time.Second); one != "RELOADING=1" || two != "READY=1" {
		t.Errorf("%q, then %q", one, two)
	}
	cancel()
	<-ended
}
