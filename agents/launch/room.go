package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// roomMark ends the name of the mark, beside a pid file, of a launch ended because its run's
// private folders grew too large. The mark contains the reason.
const roomMark = ".room"

const (
	// roomWalk is the longest time between two walks, except where a walk is slow: see roomShare.
	roomWalk = 10 * time.Second
	// roomCalm: if 1/roomCalm of the limit has gone from the free space, a walk follows at once.
	roomCalm = 4
	// roomShare is the least ratio of the pause after a walk to the walk.
	roomShare = 50
)

const gigabyte = 1e9

// room measures what a run's held launches wrote to their private homes and git folders, on the
// disk of the journal and all other runs.
type room struct {
	dirs  []string
	bound int64 // bytes
	name  string
	free  int64 // of the disk, at the last walk
	next  time.Time
}

// roomOf returns the measure of a held launch's run; nil if there is no limit.
func (x *Cage) roomOf(key string) *room {
	gb := x.opt.Settings().Sandbox.MaxHomeGB
	if gb <= 0 {
		return nil
	}
	run, _, _ := strings.Cut(key, "/")
	r := &room{bound: int64(gb * gigabyte), name: fmt.Sprintf("%.4g GB", gb)}
	for _, dir := range []string{layout.HomesDir, layout.GitsDir} {
		r.dirs = append(r.dirs, filepath.Join(x.State, dir, layout.PathElement(run)))
	}
	return r
}

// over returns what is wrong with the folders; "" = nothing.
func (r *room) over() string {
	if r == nil {
		return ""
	}
	free, known := freeOf(filepath.Dir(filepath.Dir(r.dirs[0])))
	began := time.Now()
	if began.Before(r.next) && (!known || r.free-free < r.bound/roomCalm) {
		return ""
	}
	has, err := usedIn(r.dirs)
	r.free, r.next = free, time.Now().Add(max(roomWalk, roomShare*time.Since(began)))
	if err != nil && !health.Passing(err) {
		return fmt.Sprintf("it was ended: what the private homes and git folders of its run have on the disk cannot be "+
			"counted: %s", text.Clip(err.Error(), maxMark/2))
	}
	if has <= r.bound {
		return ""
	}
	return fmt.Sprintf("it was ended: the private homes and git folders of its run have %.4g GB, and "+
		"sandbox.max_home_gb is %s: remove what is not needed in %s, or raise it in your own settings",
		float64(has)/gigabyte, r.name, r.dirs[0])
}

const maxRoomFiles = 5_000_000

// usedIn returns the disk usage of the files in folders. A file with several names counts in parts.
// A folder that cannot be read is an error: it escapes no limit.
func usedIn(dirs []string) (bytes int64, err error) {
	left := maxRoomFiles
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
				return nil
			}
			if err != nil {
				return err
			}
			if left--; left < 0 {
				return fmt.Errorf("more than %d files", maxRoomFiles)
			}
			info, err := d.Info()
			if err == nil {
				bytes += onDisk(info)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
		if err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}
