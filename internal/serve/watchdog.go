package serve

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"sluice/internal/console"
)

// watchdog tells the service manager (systemd's protocol: datagrams to $NOTIFY_SOCKET) that the
// daemon is well. The loops feed it: when one hangs, the manager hears nothing and restarts the
// daemon.
type watchdog struct {
	mu    sync.Mutex
	beats map[string]time.Time // repo -> its loop's last turn
}

// loopMost is how long a loop may rest and its next turn may take, with a scan of a slow disk.
const loopMost = restEvery + 60*time.Second

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

// well reports whether every loop had a turn lately.
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

// feed sends to the manager as often as it asks for, until ctx ends. Without a manager it does
// nothing.
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

// tellManager sends a message to the service manager, if there is one. A failure changes nothing.
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
