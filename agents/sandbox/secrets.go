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

// secret is a file or folder of the machine's settings that a launch could read but not every user
// may.
type secret struct {
	path string
	dir  bool
}

const (
	// maxSettings limits the files searched.
	maxSettings = 200_000
	// settingsFor is how long a search stays valid: a changed mode does not show in the folder.
	settingsFor = time.Minute
	// settingsRest is how old a folder's change time must be to prove that it is unchanged, and the
	// minimum time between checks: changes during a launch are not hidden from it anyway.
	settingsRest = time.Second
)

// secrets finds and caches secrets. A full search takes milliseconds, so it is repeated only if a
// folder has changed.
type secrets struct {
	mu    sync.Mutex
	top   string
	dirs  map[string]syscall.Timespec
	void  []string // empty files: nothing to hide while they stay empty
	found []secret
	at    time.Time // time of the full search …
	seen  time.Time // … and of the last check
}

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
		return nil // inside, it is unreadable too
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

// readInside reports whether this user's launch may read a file that not every user may. Root
// inside only has the rights of the owner and of its groups.
func readInside(st syscall.Stat_t, path string, groups []int) bool {
	if os.Geteuid() == 0 {
		return st.Uid == 0 || st.Mode&0o070 != 0 && slices.Contains(groups, int(st.Gid))
	}
	const read = 4
	return syscall.Access(path, read) == nil
}
