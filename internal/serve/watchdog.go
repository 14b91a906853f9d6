package serve

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"sluice/internal/console"
)

// watchdog tells the service manager (systemd's protocol: datagrams to $NOTIFY_SOCKET) how the daemon does. It is fed by
// the loops: when one of them hangs, the manager hears nothing more and starts the daemon anew.
type watchdog struct {
	mu    sync.Mutex
	beats map[string]time.Time // repo -> when its loop last came round
}

// loopMost is how long a loop may take to come round; a scan of a slow disk is in it.
const loopMost = 60 * time.Second

func (d *watchdog) beat(repo string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beats[repo] = time.Now()
}

func (d *watchdog) forget(repo string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.beats, repo)
}

// well reports whether every loop came round lately.
func (d *watchdog) well(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.beats {
		if now.Sub(at) > loopMost {
			return false
		}
	}
	return true
}

// feed tells the manager as often as it wants to hear, until ctx ends. Without a manager it does nothing.
func (d *watchdog) feed(ctx context.Context, con *console.Console) {
	usec, err := strconv.ParseInt(con.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 {
		return
	}
	every := time.NewTicker(max(time.Duration(usec)*time.Microsecond/2, time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			if d.well(now) {
				tellManager(con, "WATCHDOG=1")
			}
		}
	}
}

// tellManager sends one message to the service manager, where there is one. That it did not arrive changes nothing here.
func tellManager(con *console.Console, message string) {
	socket := con.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	if socket[0] == '@' {
		socket = "\x00" + socket[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(message))
}
