package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	return slices.ContainsFunc(dirs, func(d string) bool { return Inside(d, path) })
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

// systemMounts shows the machine's folders; a link into another one stays a link.
func (l *laid) systemMounts() {
	for _, dir := range system() {
		if to, err := os.Readlink(dir); err == nil {
			if real, err := filepath.EvalSymlinks(dir); err == nil && InSystem(real) {
				l.add("--symlink", to, dir)
				continue
			}
		}
		if dir == programsDir || dir == settingsDir || holdsSome(dir) {
			l.show(Mount{Path: dir})
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
