package watcher

import (
	"path/filepath"
	"strings"
)

// FileWatch hints at one file, under its Key, as soon as it may have changed. It is for callers
// that read the file from time to time anyway. Without events there are no hints; it writes nothing
// beside the file.
type FileWatch struct {
	w   *Watcher
	key string
}

// AnyFile, as the name of a file, follows all files of its folder.
const AnyFile = "*"

// WatchFile follows the file. Neither the file nor its folder need exist: see Arm.
func (w *Watcher) WatchFile(file string) *FileWatch {
	path, err := watchPath(file)
	if err != nil {
		path = file // no events will match it
	}
	f := &FileWatch{w: w, key: path}
	w.mu.Lock()
	w.files[path]++
	w.mu.Unlock()
	f.Arm()
	return f
}

// Key returns the name with which Hints reports the file.
func (f *FileWatch) Key() string { return f.key }

// Arm requests the events of the file's folder again: a watch goes with its folder, and a missing
// folder has none. Do it after each hint, which may be the last of a folder that was exchanged. It
// reports whether hints will come; if not, look at the file often.
func (f *FileWatch) Arm() bool {
	f.w.arming.Lock()
	defer f.w.arming.Unlock()
	dir := filepath.Dir(f.key)
	return f.w.source != nil && f.w.source.Add(dir) == nil && silent(dir) == ""
}

// Close ends the watch.
func (f *FileWatch) Close() {
	f.w.arming.Lock()
	defer f.w.arming.Unlock()
	f.w.mu.Lock()
	if f.w.files[f.key]--; f.w.files[f.key] == 0 {
		delete(f.w.files, f.key)
	}
	f.w.mu.Unlock()
	f.w.release(filepath.Dir(f.key))
}

// filesIn returns the followed files of a folder; "" = all. The caller holds mu.
func (w *Watcher) filesIn(dir string) (out []string) {
	for path := range w.files {
		if strings.HasPrefix(path, dir) && (dir == "" || filepath.Dir(path) == dir) {
			out = append(out, path)
		}
	}
	return out
}
