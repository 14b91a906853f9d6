//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"sluice/internal/fault"
)

// secret is what a launch would see of the machine's settings, and not everybody on the machine may.
type secret struct {
	path string
	dir  bool
}

const (
	// maxSettings bounds what is looked through.
	maxSettings = 200_000
	// settingsFor is how long what was found is gone by: that a file's mode is changed does not show in its folder.
	settingsFor = time.Minute
	// settingsRest is how long a folder must have rested for its time of change to say that it is as it was; and how long
	// nobody looks again: what is made while a launch runs is not hidden from it either.
	settingsRest = time.Second
)

// secrets knows which these are. Looking through all settings takes milliseconds: it is done anew when a folder has changed.
type secrets struct {
	mu    sync.Mutex
	top   string
	dirs  map[string]syscall.Timespec
	void  []string // files without content: there is nothing to hide as long as they are
	found []secret
	at    time.Time // when all was looked through …
	seen  time.Time // … and when it was seen to be as it was
}

// now returns them as they are.
func (s *secrets) now() ([]secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.seen) < settingsRest {
		return s.found, nil
	}
	if s.seen = time.Now(); s.same() {
		return s.found, nil
	}
	s.dirs, s.void, s.found, s.at = map[string]syscall.Timespec{}, nil, nil, s.seen
	groups, err := os.Getgroups()
	if err != nil {
		return nil, err
	}
	left := maxSettings
	if err := s.walk(s.top, append(groups, os.Getegid()), &left); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.dirs, s.seen = nil, time.Time{}
		return nil, fmt.Errorf("what not everybody may read below %s: %w", s.top, err)
	}
	return s.found, nil
}

func (s *secrets) same() bool {
	if s.dirs == nil || time.Since(s.at) > settingsFor {
		return false
	}
	for dir, changed := range s.dirs {
		var st syscall.Stat_t
		if syscall.Lstat(dir, &st) != nil || st.Ctim != changed || s.at.Sub(time.Unix(st.Ctim.Unix())) < settingsRest {
			return false
		}
	}
	return !slices.ContainsFunc(s.void, func(file string) bool {
		info, err := os.Lstat(file)
		return err != nil || info.Size() > 0
	})
}

func (s *secrets) walk(dir string, groups []int, left *int) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(dir, &st); err != nil {
		return err
	}
	s.dirs[dir] = st.Ctim
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // nor is it read inside
	}
	if err != nil {
		return err
	}
	if *left -= len(entries); *left < 0 {
		return fault.New("move some elsewhere", "more than %d files", maxSettings)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if err := syscall.Lstat(path, &st); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return err
		}
		switch mode := st.Mode; {
		case mode&syscall.S_IFMT == syscall.S_IFLNK:
		case mode&syscall.S_IFMT == syscall.S_IFDIR && mode&0o001 != 0:
			if err := s.walk(path, groups, left); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		case mode&0o004 != 0 || !readInside(st, path, groups):
		case mode&syscall.S_IFMT == syscall.S_IFREG && st.Size == 0:
			s.void = append(s.void, path)
		default:
			s.found = append(s.found, secret{path: path, dir: mode&syscall.S_IFMT == syscall.S_IFDIR})
		}
	}
	return nil
}

// readInside says that a launch of this user's may read a file that not everybody may. Root has no rights there but those
// of the owner and of its groups.
func readInside(st syscall.Stat_t, path string, groups []int) bool {
	if os.Geteuid() == 0 {
		return st.Uid == 0 || st.Mode&0o070 != 0 && slices.Contains(groups, int(st.Gid))
	}
	const read = 4
	return syscall.Access(path, read) == nil
}
