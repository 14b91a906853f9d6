package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/ids"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/watcher"
)

// maxPasses bounds the passes over a large folder in one scan.
const maxPasses = 16

// box is one folder that may contain signals.
type box struct {
	path       string
	dir, place string // of FileSeen
	of         string // of FileSeen: the launch that owns it
	must       bool   // it must be readable for the scan to count
}

// Scan reads the inboxes once: see daemon.World.
func (x *Inbox) Scan(ctx context.Context, in job.Inboxes) (seen []engine.Event, more bool, err error) {
	x.one.Lock()
	defer x.one.Unlock()
	err = x.There()
	x.NoteError("repo", err)
	if err != nil {
		return nil, false, fmt.Errorf("inbox: %w", err)
	}
	if !layout.IsDir(x.Signals()) {
		if err := x.MakeBelow(layout.SignalsDir, 0o755); err != nil {
			return nil, false, fmt.Errorf("inbox: %w", err)
		}
	}
	var boxes []box
	if in.Only == nil {
		x.opt.Launches.SetLive(slices.Clone(in.Runs), in.Procs)
		boxes = x.boxes(in)
	} else {
		boxes = x.some(in)
	}
	s := scan{x: x, in: in, digests: map[string]string{}, left: map[string]int{}, levels: map[string]string{},
		settle: x.opt.Settle()}
	before := x.overNow(boxes)
	for _, b := range boxes {
		if err := s.box(ctx, b); err != nil {
			return nil, false, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if in.Only == nil {
		x.letGo(before)
		x.release(boxes)
	}
	slices.SortStableFunc(s.seen, func(a, b engine.FileSeen) int {
		return cmp.Or(s.rank(a)-s.rank(b), strings.Compare(a.Name, b.Name))
	})
	out := make([]engine.Event, len(s.seen))
	for i := range s.seen {
		out[i] = s.seen[i]
	}
	if in.Only == nil {
		out = append(out, x.counted()...)
	}
	if !s.unread.IsZero() {
		out = append(out, engine.Scanned{Began: s.unread})
	}
	return out, s.more, nil
}

// boxes lists the folders to read, and has them watched.
func (x *Inbox) boxes(in job.Inboxes) []box {
	out := []box{{path: x.Signals(), must: true}}
	for _, run := range in.Runs {
		out = x.runBox(out, run)
	}
	out = x.ownBoxes(out, "")
	for _, run := range x.strays(in.Runs) {
		out = append(out, box{path: filepath.Join(x.Signals(), run), dir: run})
	}
	for _, key := range in.Trees {
		for _, dir := range x.treeInboxes(key) {
			if dir == x.Signals() {
				continue
			}
			out = append(out, box{path: dir, place: key})
			for _, run := range in.Runs {
				if sub := filepath.Join(dir, run); layout.IsDir(sub) {
					out = append(out, box{path: sub, dir: run, place: key})
				}
			}
		}
	}
	return out
}

func (x *Inbox) runBox(out []box, run string) []box {
	if !ids.ValidRun(run) {
		return out
	}
	path := filepath.Join(x.Signals(), run)
	var err error
	if !layout.IsDir(path) {
		err = x.MakeBelow(layout.SignalsDir+"/"+run, 0o755)
	}
	x.NoteError("inbox of "+run, err)
	return append(out, box{path: path, dir: run, must: true})
}

// some lists the folders of a look. A hint at the inbox itself may mean a new run's folder, which
// has no hints of its own until it is watched.
func (x *Inbox) some(in job.Inboxes) []box {
	var out []box
	for _, p := range in.Only {
		switch {
		case p.Dir == x.Signals():
			out = append(out, box{path: x.Signals(), must: true})
			for _, run := range in.Runs {
				if !x.Watched(filepath.Join(x.Signals(), run)) {
					out = x.runBox(out, run)
				}
			}
		case filepath.Dir(p.Dir) == x.Signals():
			out = append(out, box{path: p.Dir, dir: filepath.Base(p.Dir), must: true})
		case strings.HasPrefix(p.Dir, filepath.Join(x.State, layout.LaunchesDir)+string(filepath.Separator)):
			out = x.ownBoxes(out, p.Dir)
		default:
			out = x.treeBox(out, in, p.Dir)
		}
	}
	return out
}

// treeBox adds a folder that is the inbox of a worktree, or a run's inbox in it.
func (x *Inbox) treeBox(out []box, in job.Inboxes, path string) []box {
	for _, key := range in.Trees {
		for _, dir := range x.treeInboxes(key) {
			switch run := filepath.Base(path); {
			case path == dir:
				return append(out, box{path: dir, place: key})
			case filepath.Dir(path) == dir && slices.Contains(in.Runs, run):
				return append(out, box{path: path, dir: run, place: key})
			}
		}
	}
	return out
}

// ownBoxes adds the inboxes of held launches; only, if not "", selects one folder.
func (x *Inbox) ownBoxes(out []box, only string) []box {
	x.mu.Lock()
	defer x.mu.Unlock()
	for dir, b := range x.private {
		for _, path := range []string{dir, filepath.Join(dir, b.run)} {
			if only != "" && only != path {
				continue
			}
			in := box{path: path, of: layout.LaunchOf(b.key)}
			if path != dir {
				in.dir = b.run
			}
			out = append(out, in)
		}
	}
	return out
}

// overNow returns the boxes whose launch has ended, so that nothing new can appear in them.
func (x *Inbox) overNow(boxes []box) (out []box) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range boxes {
		if !x.private[b.path].over.IsZero() {
			out = append(out, b)
		}
	}
	return out
}

// letGo forgets the inboxes of ended launches once all their files were taken in.
func (x *Inbox) letGo(boxes []box) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range boxes {
		own, ok := x.private[b.path]
		if ok && (x.opt.Now().Sub(own.over) > privateMost ||
			!holdsFile(b.path) && !holdsFile(filepath.Join(b.path, own.run))) {
			delete(x.private, b.path)
		}
	}
}

// holdsFile reports whether a folder contains anything but folders.
func holdsFile(dir string) bool {
	return slices.ContainsFunc(entriesOf(dir, maxEntries), func(e os.DirEntry) bool { return !e.IsDir() })
}

// entriesOf returns at most `most` entries of a folder; what could be read counts.
func entriesOf(dir string, most int) []os.DirEntry {
	f, err := atomicfile.OpenDir(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(most)
	return entries
}

// Watched reports whether a folder is watched.
func (x *Inbox) Watched(dir string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.watched[dir]
}

// strays returns the nonempty folders of runs that do not live, so that their files are seen and
// refused by name. It skips the search while the inbox is unchanged since there was none.
func (x *Inbox) strays(live []string) []string {
	st, err := atomicfile.Lstat(filepath.Dir(x.Signals()), filepath.Base(x.Signals()))
	if err == nil && st.Same(x.noStrays) && st.Nlink == x.noStrays.Nlink && len(live) == x.liveThen {
		return nil
	}
	x.noStrays = atomicfile.Stat{}
	f, err := atomicfile.OpenDir(x.Signals())
	if err != nil {
		return nil // the scan of the inbox itself reports it
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries) // what was read counts
	lives := make(map[string]bool, len(live))
	for _, run := range live {
		lives[run] = true
	}
	var out []string
	others := false
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || name == rejected || !ids.ValidRun(name) || lives[name] || len(out) == maxStrays {
			continue
		}
		others = true
		if len(entriesOf(filepath.Join(x.Signals(), name), 1)) > 0 {
			out = append(out, name)
		}
	}
	if !others && (err == nil || errors.Is(err, io.EOF)) && x.opt.Now().Sub(st.ModTime) > watcher.AtRest {
		x.noStrays, x.liveThen = st, len(live)
	}
	return out
}

const (
	rejected   = "rejected"
	maxStrays  = 100
	maxEntries = 10_000 // entries of the inbox that are searched
)

// treeInboxes returns the inboxes of a checkout's worktrees. One behind a link is none: an agent may have made the link
// where a step works later, and files would be moved away from wherever it leads.
func (x *Inbox) treeInboxes(key string) []string {
	var out []string
	if key != "." {
		out = append(out, layout.InboxOf(x.TreeDir(key)))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for dir, k := range x.places {
		if k == key && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	top := x.TreeDir(key)
	return slices.DeleteFunc(out, func(dir string) bool {
		rel, inside := layout.Rel(top, dir)
		_, err := layout.Under(top, rel+"/x")
		return inside && err != nil
	})
}

// Expect remembers the folder an attempt works in, if it is not the top level of its checkout.
func (x *Inbox) Expect(j job.Job) {
	if j.Attempt == nil || j.Attempt.Worktree == "" {
		return
	}
	dir, err := x.Below(j.Attempt.Worktree)
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	in := layout.InboxOf(dir)
	if len(x.places) < watcher.MaxFolders/2 {
		x.places[in] = j.Attempt.Tree
	}
	if !slices.Contains(x.placed[j.Run], in) {
		x.placed[j.Run] = append(x.placed[j.Run], in)
	}
}

// release ends the watch of folders that nothing waits for any more.
func (x *Inbox) release(boxes []box) {
	x.mu.Lock()
	idle := maps.Clone(x.watched)
	x.mu.Unlock()
	for _, b := range boxes {
		delete(idle, b.path)
	}
	x.untrouble(boxes)
	for dir := range idle {
		x.unwatch(dir)
		if filepath.Dir(dir) == x.Signals() {
			_ = os.Remove(dir) // of an ended run: removed if it is empty
		}
	}
}
