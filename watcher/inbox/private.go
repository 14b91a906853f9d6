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
	over     time.Time // its launch is, since then: it goes when it has been read
}

// privateMost is how long an inbox is read after its launch for what cannot be taken in.
const privateMost = time.Minute

// OpenOwn has the own inbox of a launch read and watched from now on.
func (x *Inbox) OpenOwn(key string) {
	dir := x.PIDFile(key) + layout.InboxMark
	run, _, _ := strings.Cut(key, "/")
	x.mu.Lock()
	x.private[dir] = privateBox{key: key, run: run}
	x.mu.Unlock()
	for _, d := range []string{dir, filepath.Join(dir, run)} {
		if err := x.watch(d); err != nil { // the scans find what is in it a little later
			x.opt.Logf("%v", err)
		}
	}
}

// CloseOwn has the own inbox of a launch that is over read once more.
func (x *Inbox) CloseOwn(key string) {
	dir := x.PIDFile(key) + layout.InboxMark
	x.mu.Lock()
	defer x.mu.Unlock()
	if b, ok := x.private[dir]; ok {
		b.over = x.opt.Now()
		x.private[dir] = b
	}
}

// privateOf gives the folders of a launch's own inbox; none where it has none.
func (x *Inbox) privateOf(key, run string) []string {
	dir := x.PIDFile(key) + layout.InboxMark
	if !layout.IsDir(dir) {
		return nil
	}
	return []string{dir, filepath.Join(dir, run)}
}

// excess says that a file of a launch's own inbox is one too many: it is counted, and not kept. The launch's own signal is
// read for longer.
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

// drop removes a file of a launch's own inbox. The folders of that are the launch's to change: nothing is followed out.
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

// counted gives what was dropped of the launches whose inboxes have been read for the last time.
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
