package watcher

import "path/filepath"

// FileWatch hints at one file, under its Key, as soon as it may have changed. It is for who reads the file from time to time
// anyway, and would like to earlier: where there are no events, no hint comes, and nothing is written beside the file.
type FileWatch struct {
	w   *Watcher
	key string
}

// WatchFile follows the file. It need not be there, nor need its folder: see Arm.
func (w *Watcher) WatchFile(file string) *FileWatch {
	path, err := watchPath(file)
	if err != nil {
		path = file // it is asked for events in vain
	}
	f := &FileWatch{w: w, key: path}
	w.mu.Lock()
	w.files[path]++
	w.mu.Unlock()
	f.Arm()
	return f
}

// Key is the name under which Hints tells of the file.
func (f *FileWatch) Key() string { return f.key }

// Arm asks for the events of the file's folder again: a watch goes with its folder, and one that was not there has none.
func (f *FileWatch) Arm() {
	f.w.arming.Lock()
	defer f.w.arming.Unlock()
	if f.w.source != nil {
		_ = f.w.source.Add(filepath.Dir(f.key)) // without it the file is read when it is time
	}
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

// hasFile says that a file in the folder is followed. mu is held.
func (w *Watcher) hasFile(dir string) bool {
	for path := range w.files {
		if filepath.Dir(path) == dir {
			return true
		}
	}
	return false
}
