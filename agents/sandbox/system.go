package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// system are the folders of the machine's own programs and settings. Of the machine a launch sees these, without what not
// everybody may read of the settings, and what its plan shows besides.
func system() []string {
	return []string{programsDir, "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", settingsDir, "/opt",
		"/nix/store", "/gnu/store", "/var/lib/ca-certificates"}
}

// These are never empty.
const (
	programsDir = "/usr"
	settingsDir = "/etc"
)

// scratch are folders that are empty and writable.
func scratch() []string { return []string{"/tmp", "/var/tmp"} }

// bare are folders that programs expect, empty.
func bare() []string { return []string{"/run", "/sys", "/mnt", "/media", "/home", "/var"} }

// InSystem reports whether a path lies in one of the machine's folders that every launch sees.
func InSystem(path string) bool { return inside(system(), path) }

func inside(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return Inside(d, path) })
}

// Sees reports whether something of the machine is seen inside at path: what lies there, or what stands for it.
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

// Toolchain returns the folder that the programs in dir need around them: all packages of the folder node_modules they lie
// in, or the folder that has a lib beside them. It is dir itself where that folder is one of mixed content: the home,
// its .local, what the home lies in, a checkout.
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
		return dir // shims are a version manager's (pyenv, rbenv), which is installed by git clone
	}
	for _, name := range []string{"lib", "lib64", "libexec"} {
		if isDir(filepath.Join(top, name)) {
			return top
		}
	}
	return dir
}

// systemMounts shows the machine's folders; one that is a link into another is one inside.
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

// holdsSome reports whether something lies in a folder: each mount costs a launch a tenth of a millisecond.
func holdsSome(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) > 0
}

// mask hides what not everybody may read.
func (l *laid) mask(secrets []secret) {
	for _, s := range secrets {
		if s.dir {
			l.empty(s.path)
			continue
		}
		l.add("--ro-bind", os.DevNull, s.path) // which cannot be opened there
		l.done = append(l.done, Mount{Path: os.DevNull, At: s.path})
	}
}

// empty has nothing at path but an empty folder, which can be written.
func (l *laid) empty(path string) {
	l.add("--tmpfs", path)
	l.bare = append(l.bare, path)
}
