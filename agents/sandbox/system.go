package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// system returns the folders of the machine's own programs and settings. A launch sees these,
// except settings that only some users may read, and what its plan shows.
func system() []string {
	return []string{programsDir, "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", settingsDir, "/opt",
		"/nix/store", "/gnu/store", "/var/lib/ca-certificates"}
}

// These are never empty.
const (
	programsDir = "/usr"
	settingsDir = "/etc"
)

// scratch returns the empty, writable folders.
func scratch() []string { return []string{"/tmp", "/var/tmp"} }

// bare returns empty folders that programs expect.
func bare() []string { return []string{"/run", "/sys", "/mnt", "/media", "/home", "/var"} }

// InSystem reports whether a path is in one of the machine's folders that every launch sees.
func InSystem(path string) bool { return inside(system(), path) }

func inside(dirs []string, path string) bool {
	path = filepath.Clean(path)
	return slices.ContainsFunc(dirs, func(d string) bool { return within(filepath.Clean(d), path) })
}

// Sees reports whether something is visible inside at path: the machine's file, or its replacement.
func (p Plan) Sees(path string) bool {
	if slices.ContainsFunc(p.shown(), func(m Mount) bool { return Inside(m.at(), path) }) {
		return true
	}
	hidden := p.Hide
	if p.Home != "" && p.Home != "/" {
		hidden = append(slices.Clone(hidden), p.Home)
	}
	return (p.InPlace || InSystem(path)) && !inside(hidden, path)
}

// Toolchain returns the folder that programs in dir need: all packages of the surrounding
// node_modules, or the parent with a lib folder. It returns dir itself if that parent has mixed
// content: the home, its .local, a folder above the home, a checkout.
func Toolchain(dir, home string) string {
	const packages = "/node_modules/"
	if i := strings.LastIndex(dir+"/", packages); i >= 0 {
		return dir[:i+len(packages)-1]
	}
	top := filepath.Dir(dir)
	if top == "/" || !slices.Contains([]string{"bin", "sbin", "shims"}, filepath.Base(dir)) {
		return dir
	}
	if home != "" && (Inside(top, home) || top == filepath.Join(home, ".local")) {
		return dir
	}
	if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil && filepath.Base(dir) != "shims" {
		return dir // except shims: version managers (pyenv, rbenv) are installed by git clone
	}
	for _, name := range []string{"lib", "lib64", "libexec"} {
		if isDir(filepath.Join(top, name)) {
			return top
		}
	}
	return dir
}

// folder is one of the machine's folders that is not empty. link is its target if it is a link into
// another one.
type folder struct{ dir, link string }

// foldersFor is how long they are cached: finding them takes a tenth of a launch's system calls.
const foldersFor = time.Second

// folders finds and caches them.
type folders struct {
	mu    sync.Mutex
	found []folder
	at    time.Time
}

// now returns the folders as they were at most foldersFor ago.
func (f *folders) now() []folder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.found == nil || now.Sub(f.at) >= foldersFor {
		f.found, f.at = foldersNow(), now
	}
	return f.found
}

func foldersNow() (out []folder) {
	for _, dir := range system() {
		if to, err := os.Readlink(dir); err == nil {
			if real, err := filepath.EvalSymlinks(dir); err == nil && InSystem(real) {
				out = append(out, folder{dir: dir, link: to})
				continue
			}
		}
		if dir == programsDir || dir == settingsDir || holdsSome(dir) {
			out = append(out, folder{dir: dir})
		}
	}
	return out
}

// systemMounts shows the machine's folders; a link stays a link.
func (l *laid) systemMounts(all []folder) {
	for _, f := range all {
		if f.link != "" {
			l.add("--symlink", f.link, f.dir)
		} else {
			l.show(Mount{Path: f.dir})
		}
	}
}

// holdsSome reports whether a folder is not empty: each mount costs a launch a tenth of a
// millisecond.
func holdsSome(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) > 0
}

// mask hides the secrets.
func (l *laid) mask(secrets []secret) {
	for _, s := range secrets {
		if s.dir {
			l.empty(s.path)
			continue
		}
		l.add("--ro-bind", os.DevNull, s.path) // it cannot be opened there
		l.done = append(l.done, Mount{Path: os.DevNull, At: s.path})
	}
}

// empty mounts an empty, writable folder at path.
func (l *laid) empty(path string) {
	l.add("--tmpfs", path)
	l.bare = append(l.bare, path)
}
