package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// roomMark is behind the pid file of a launch that was ended as the private folders of its run had grown too large: it says
// so.
const roomMark = ".room"

const (
	maxRoomMark = 1 << 10
	// roomPace is how often the disk is asked how much of it is free.
	roomPace = time.Second
	// roomWalk is how often at least the folders are looked through. It takes at most a fiftieth of the time.
	roomWalk = 10 * time.Second
	// roomCalm is the part of the bound by which the disk may fill before they are looked through at once.
	roomCalm = 4
	// roomShare is how much longer than a walk the time to the next one is.
	roomShare = 50
)

const gigabyte = 1e9

// room watches how much a run's held launches have written to their private homes and git folders: they lie on the disk
// that the journal and all other runs need.
type room struct {
	dirs  []string
	bound int64 // bytes
	name  string
	free  int64 // of the disk, when the folders were looked through last
	next  time.Time
}

// roomOf returns the watch of a held launch's run; nil where there is no bound.
func (x *Cage) roomOf(key string) *room {
	gb := x.opt.Settings().Sandbox.MaxHomeGB
	if gb <= 0 || !layout.IsDir(x.PIDFile(key)+layout.InboxMark) {
		return nil
	}
	run, _, _ := strings.Cut(key, "/")
	r := &room{bound: int64(gb * gigabyte), name: fmt.Sprintf("%.4g GB", gb)}
	for _, dir := range []string{layout.HomesDir, layout.GitsDir} {
		r.dirs = append(r.dirs, filepath.Join(x.State, dir, layout.PathElement(run)))
	}
	return r
}

// soon is the time to the next look, where pause is that of others; 0 = they need none.
func (r *room) soon(pause time.Duration) time.Duration {
	if r == nil || pause > 0 && pause < roomPace {
		return pause
	}
	return roomPace
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
	if err != nil {
		return fmt.Sprintf("it was ended: what the private homes and git folders of its run have on the disk cannot be counted: %s", text.Clip(err.Error(), maxRoomMark/2))
	}
	if has <= r.bound {
		return ""
	}
	return fmt.Sprintf("it was ended: the private homes and git folders of its run have %.4g GB, and sandbox.max_home_gb is %s: remove what is not needed in %s, or raise it in your own settings",
		float64(has)/gigabyte, r.name, r.dirs[0])
}

// maxRoomFiles bounds what is looked through.
const maxRoomFiles = 5_000_000

// usedIn counts what the files of folders have on the disk. A file with several names is counted in parts. One who makes a
// folder that cannot be looked into escapes no bound: that is an error.
func usedIn(dirs []string) (bytes int64, err error) {
	left := maxRoomFiles
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // it has gone meanwhile
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

// roomOfMark is what the mark of a launch says; "" where there is none.
func roomOfMark(pidFile string) string {
	data, _, err := atomicfile.OpenRegular(filepath.Dir(pidFile), filepath.Base(pidFile)+roomMark, maxRoomMark)
	if err != nil {
		return ""
	}
	return string(data)
}
