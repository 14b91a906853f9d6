package inbox

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/layout"
)

// privateBox is the inbox of a held launch.
type privateBox struct {
	key, run string
	over     time.Time // when the launch ended; the box is dropped after a last read
}

// privateMost is how long an ended launch's inbox is read for files that cannot be taken in.
const privateMost = time.Minute

// OpenOwn starts reading and watching a launch's own inbox.
func (x *Inbox) OpenOwn(key string) {
	dir := x.PIDFile(key) + layout.InboxMark
	run, _, _ := strings.Cut(key, "/")
	x.mu.Lock()
	x.private[dir] = privateBox{key: key, run: run}
	x.mu.Unlock()
	for _, d := range []string{dir, filepath.Join(dir, run)} {
		if err := x.watch(d); err != nil { // scans find its contents a little later
			x.Logf("%v", err)
		}
	}
}

// CloseOwn has the own inbox of an ended launch read once more.
func (x *Inbox) CloseOwn(key string) {
	dir := x.PIDFile(key) + layout.InboxMark
	x.mu.Lock()
	defer x.mu.Unlock()
	if b, ok := x.private[dir]; ok {
		b.over = x.opt.Now()
		x.private[dir] = b
	}
}

// privateOf returns the folders of a launch's own inbox, if it has one.
func (x *Inbox) privateOf(key, run string) []string {
	dir := x.PIDFile(key) + layout.InboxMark
	if !layout.IsDir(dir) {
		return nil
	}
	return []string{dir, filepath.Join(dir, run)}
}

// excess reports whether a file in a launch's own inbox exceeds the limit: it is then counted but
// not kept. The launch's own signal has a higher limit.
func (s *scan) excess(b box, name string) bool {
	if b.of == "" {
		return false
	}
	left, known := s.left[b.of]
	if !known {
		left = engine.KeepRefused - s.in.Refused[b.of]
	}
	if name == s.in.Words[b.of] {
		return s.in.Refused[b.of] >= engine.MostRefused
	}
	s.left[b.of] = left - 1
	return left <= 0
}

// drop removes a file from a launch's own inbox. It follows nothing out of it, because the launch
// controls its folders.
func (x *Inbox) drop(b box, name string) {
	root, err := os.OpenRoot(x.PIDFile(b.of) + layout.InboxMark)
	if err != nil {
		return // it has gone
	}
	defer root.Close()
	if root.Remove(filepath.Join(b.dir, name)) != nil {
		return // it goes with the inbox
	}
	x.mu.Lock()
	x.dropped[b.of]++
	x.mu.Unlock()
}

// counted returns what was dropped of the launches whose inboxes were read for the last time.
func (x *Inbox) counted() (out []engine.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	open := map[string]bool{}
	for _, b := range x.private {
		open[layout.LaunchOf(b.key)] = true
	}
	for _, of := range slices.Sorted(maps.Keys(x.dropped)) {
		if !open[of] {
			out = append(out, engine.FilesDropped{Of: of, N: x.dropped[of]})
			delete(x.dropped, of)
		}
	}
	return out
}
