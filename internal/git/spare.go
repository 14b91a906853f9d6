package git

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"sluice/internal/atomicfile"
)

// maxSpare limits what is prepared ahead and kept in memory for comparison: a git folder's text
// files, and its index.
const maxSpare = 4 << 20

// laid is the content of a git folder that we made and nobody else has seen yet.
type laid struct {
	files map[string][]byte
	index string          // the source of its index; "" = it has no index
	of    atomicfile.Stat // the source's state before it was copied
}

// spares prepares git folders ahead of their use.
type spares struct {
	mu    sync.Mutex
	last  laid            // the last folder from MakeFolder, as the model for the next spare; empty once used
	ready map[string]laid // by folder
}

// folders returns the folders of every git folder; git creates others when needed.
func folders() []string { return []string{"objects", "objects/info", "refs", "info"} }

// MakeSpare prepares a git folder at dir, like the last one from MakeFolder, because the next will
// be similar. MakeFolder uses it if Folder.Spare names it. dir must be where nobody but us can
// write.
func (r *spares) MakeSpare(dir string) error {
	r.mu.Lock()
	like := r.last
	_, made := r.ready[dir]
	if made || like.files == nil {
		r.mu.Unlock()
		return nil
	}
	r.last, r.ready[dir] = laid{}, laid{} // nothing else makes or takes it meanwhile
	r.mu.Unlock()
	err := layAhead(dir, like)
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready[dir] = like; err != nil {
		delete(r.ready, dir)
	}
	return err
}

func layAhead(dir string, like laid) error {
	if err := os.RemoveAll(dir); err != nil { // from an earlier process
		return err
	}
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return err
	}
	if err := layOut(dir, laid{}, like.files); err != nil || like.index == "" {
		return err
	}
	return copyFile(like.index, filepath.Join(dir, indexFile))
}

// takeSpare moves the spare folder to dir and returns its content, or nothing if there is none.
func (r *spares) takeSpare(spare, dir string) laid {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := r.ready[spare]
	if has.files == nil { // there is none, or it is in progress
		return laid{}
	}
	delete(r.ready, spare)
	if os.Rename(spare, dir) != nil {
		return laid{}
	}
	return has
}

// layOut changes a folder whose content is has to the given files.
func layOut(dir string, has laid, files map[string][]byte) error {
	if has.files == nil {
		for _, d := range folders() {
			if err := os.Mkdir(filepath.Join(dir, filepath.FromSlash(d)), privateDir); err != nil {
				return err
			}
		}
	}
	for name := range has.files {
		if _, ok := files[name]; !ok {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
	}
	for name, data := range files {
		if was, ok := has.files[name]; ok && bytes.Equal(was, data) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, privateOwn); err != nil {
			return err
		}
	}
	return nil
}

// likeNext keeps a folder's content for MakeSpare.
func (r *spares) likeNext(l laid) {
	size := int64(0)
	for name, data := range l.files {
		size += int64(len(name) + len(data))
	}
	if size > maxSpare {
		return
	}
	if l.of.Size > maxSpare {
		l.index, l.of = "", atomicfile.Stat{}
	}
	r.mu.Lock()
	r.last = l
	r.mu.Unlock()
}

// sameIndex reports whether the index is a copy of the same source in the same state.
func (l laid) sameIndex(now laid) bool {
	return l.index != "" && l.index == now.index && l.of.Untouched(now.of)
}

// statIndex returns the index to copy, or "" if it is missing or split.
func statIndex(gitDir string) (index string, now atomicfile.Stat, err error) {
	shared, err := sharedIndexes(gitDir)
	if err != nil || len(shared) > 0 {
		return "", now, err
	}
	now, err = atomicfile.Lstat(gitDir, indexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", now, nil
	}
	return filepath.Join(gitDir, indexFile), now, err
}
