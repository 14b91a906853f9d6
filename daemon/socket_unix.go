//go:build unix

package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"sluice/internal/fault"
)

// sunPathMost is the longest unix socket path that works everywhere.
const sunPathMost = 100

// listen creates the socket. Only its owner can enter the folder (0700), and the peer is checked
// too. A socket that nobody answers on is left from a crash: the caller, who has the lock, replaces
// it. look is the time between two looks whether it is still there; 0: thereEvery.
func listen(path string, look time.Duration) (*socket, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		c, err := dial(context.Background(), path)
		if err != nil {
			break
		}
		c.Close()
		if try == answerTries {
			return nil, fault.New("end that process first", "socket %s: somebody answers on it", path)
		}
		time.Sleep(answerPause)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var l *net.UnixListener
	err := shortPath(path, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // it may have been bound under another name
	own, err := os.Lstat(path)
	if err = errors.Join(err, os.Chmod(path, 0o600)); err != nil {
		l.Close()
		return nil, err
	}
	return &socket{l, path, os.Getuid(), own, cmp.Or(look, thereEvery)}, nil
}

func dial(ctx context.Context, path string) (c net.Conn, err error) {
	err = shortPath(path, func(short string) (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, "unix", short)
		return err
	})
	return c, err
}

// shortPath calls fn with a path that is short enough for the system, through the open folder if
// need be.
func shortPath(path string, fn func(string) error) error {
	if len(path) <= sunPathMost || runtime.GOOS != "linux" {
		return fn(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return fn(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// errUnreachable ends what listened on a socket that was removed, alone or with its folder: no command
// finds it any more, and a journal in that folder is lost.
var errUnreachable = fault.New("start it again", "no command reaches what listened there")

// thereEvery is the time between two looks. Each wakes an idle daemon.
const thereEvery = time.Minute

// socket only accepts connections of our own user and of root, until it is no longer at its path.
type socket struct {
	*net.UnixListener
	path string
	uid  int
	own  os.FileInfo // of the file at path
	look time.Duration
}

func (l *socket) Accept() (net.Conn, error) {
	for {
		// All sockets wake together, at a multiple of look. Of a closed one Accept says so.
		_ = l.SetDeadline(time.Now().Truncate(l.look).Add(l.look))
		c, err := l.UnixListener.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if !l.gone() {
				continue
			}
			err = fmt.Errorf("the socket %s was removed: %w", l.path, errUnreachable)
		}
		if err != nil {
			return nil, err
		}
		uid, err := peerOf(c.(*net.UnixConn))
		if err == nil && (uid == l.uid || uid == 0) {
			return c, nil
		}
		c.Close()
	}
}

// gone reports whether the socket's path leads nowhere, or to somebody else's.
func (l *socket) gone() bool {
	now, err := os.Lstat(l.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, l.own)
}

// peerOf returns the user at the other end of the connection.
func peerOf(c syscall.Conn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { uid, inner = peerUID(int(fd)) })
	return uid, errors.Join(err, inner)
}
