package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/agents/program"
	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// ends lets go of what held a launch, or of the note that nothing did. The files of its inbox are read once more.
func (e *Executor) ends(key string) {
	pid := e.PIDFile(key)
	e.opt.Unheld.end(pid)
	_ = os.Remove(pid + layout.OpenMark) // a mark that stays says too much, never too little
	e.dropGit(key, true)
	if !strings.Contains(key, setupMark) { // what it made is taken out of its checkout first
		e.vacate(pid)
	}
	e.mu.Lock()
	delete(e.held, key)
	if b, ok := e.private[pid+layout.InboxMark]; ok {
		b.over = e.opt.Now()
		e.private[pid+layout.InboxMark] = b
	}
	e.mu.Unlock()
}

// privateBox is the inbox of a held launch.
type privateBox struct {
	key, run string
	over     time.Time // its launch is, since then: it goes when it has been read
}

// privateMost is how long an inbox is read after its launch for what cannot be taken in.
const privateMost = time.Minute

// keepPrivate notes that a launch has an inbox of its own, and where it works.
func (e *Executor) keepPrivate(key string) {
	dir := e.PIDFile(key) + layout.InboxMark
	if !layout.IsDir(dir) {
		return
	}
	run, _, _ := strings.Cut(key, "/")
	e.mu.Lock()
	e.private[dir] = privateBox{key: key, run: run}
	e.mu.Unlock()
	for _, d := range []string{dir, filepath.Join(dir, run)} {
		if err := e.watch(d); err != nil { // the scans find what is in it a little later
			e.opt.Logf("%v", err)
		}
	}
	if g, ok := e.ownGitOf(key); ok {
		e.workedIn(key, g)
	}
}

// reached gives the checkout of another launch that a worktree lies in: one that began before the worktree was there may
// write around it. "" = there is none.
func (e *Executor) reached(c sandbox.Checkout) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.held {
		if g.Top != c.Top && sandbox.Inside(g.Top, c.Top) {
			return g.Top
		}
	}
	return ""
}

// privateOf gives the folders of a launch's own inbox; none where it has none.
func (e *Executor) privateOf(key, run string) []string {
	dir := e.PIDFile(key) + layout.InboxMark
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
func (e *Executor) drop(b box, name string) {
	root, err := os.OpenRoot(e.PIDFile(b.of) + layout.InboxMark)
	if err != nil {
		return // it has gone
	}
	defer root.Close()
	if root.Remove(filepath.Join(b.dir, name)) != nil {
		return // it goes with the inbox
	}
	e.mu.Lock()
	e.dropped[b.of]++
	e.mu.Unlock()
}

// counted gives what was dropped of the launches whose inboxes have been read for the last time.
func (e *Executor) counted() (out []engine.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	open := map[string]bool{}
	for _, b := range e.private {
		open[layout.LaunchOf(b.key)] = true
	}
	for _, of := range slices.Sorted(maps.Keys(e.dropped)) {
		if !open[of] {
			out = append(out, engine.FilesDropped{Of: of, N: e.dropped[of]})
			delete(e.dropped, of)
		}
	}
	return out
}

// seed puts a program's login and settings into a launch's private home, as they are now: a copy, so that nothing that
// starts with the person's own is the agent's to write.
func (e *Executor) seed(plan sandbox.Plan, format string) error {
	for _, s := range program.Seeds(format, e.variable, plan.Home) {
		data, err := readSeed(s.From)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return job.Unready("%s: %v", s.From, err)
		}
		if err := replace(plan.Private, s.To, data); err != nil {
			return err
		}
	}
	return nil
}

// maxSeed bounds a file that is copied into a private home.
const maxSeed = 4 << 20

func readSeed(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSeed {
		return nil, fmt.Errorf("it is no regular file of at most %d MiB", maxSeed>>20)
	}
	return os.ReadFile(file)
}

// replace writes a file below a folder in which an earlier launch may have left links.
func replace(base, rel string, data []byte) error {
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := path.Dir(rel); dir != "." {
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			if err := root.Remove(dir); err != nil {
				return err
			}
		}
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := root.RemoveAll(rel); err != nil {
		return err
	}
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
