package git

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnRefsAreNotRead: each attempt leaves our own refs; preparing a launch, which gets none of
// them, does not even list them.
func TestOwnRefsAreNotRead(t *testing.T) {
	s := newSandbox(t)
	head := s.git("rev-parse", "HEAD")
	s.git("update-ref", Own("salvage", "w-1/A.1"), head)
	s.git("update-ref", "refs/tags/deep/v1", head)
	r := s.open()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	check(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, s.dir+"/.git/refs/sluice", unix.IN_OPEN)
	check(t, err)
	n, err := r.NamedBy(ctx(t), s.dir)
	check(t, err)
	if len(n.Refs) != 2 || n.Refs["refs/tags/deep/v1"] == "" || n.Refs["refs/heads/main"] == "" {
		t.Errorf("%q", n.Refs)
	}
	if _, err := unix.Read(fd, make([]byte, 4096)); err == nil {
		t.Error("the folder of our own refs is read")
	}
}
