package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
)

// Checkout is a git checkout that a launch works in. All paths are real.
type Checkout struct {
	Top    string   // its top level
	GitDir string   // its git folder in the repo
	Common string   // that of all worktrees; the same for the main one
	Main   string   // the top level that the workflow's root lies in
	Linked []string // the top levels of other worktrees, as far as they lie in Top

	Own        string      // the launch's own git folder, which stands for the repo's
	Stores     []string    // where the repo's objects are, its own first: they are read
	Submodules []Submodule // of Top, and within each other
	Aside      string      // a folder, not seen inside, for what the mounts of all launches need
	InPlace    bool        // nothing can be seen elsewhere than where it is
}

// Submodule is a folder of a checkout with a git folder of its own.
type Submodule struct {
	Path   string
	Filled bool // its .git is there
}

// GitAt is where a launch's own git folder is inside, where it cannot be at .git: that is a file then.
const GitAt = "/run/sluice/git"

// StoreAt is where the i-th of the repo's object stores is inside. What git LFS keeps beside it is beside it there too.
func StoreAt(i int) string {
	if i == 0 {
		return "/run/sluice/repo/objects"
	}
	return fmt.Sprintf("/run/sluice/repo.%d/objects", i)
}

// Names of what lies in Aside.
const (
	asideNone   = "none"   // an empty file
	asideEmpty  = "empty"  // an empty folder
	asideDot    = "dot"    // what a .git that is a file says
	asideCommon = "common" // what is seen in the place of the repo's git folder
)

// Mounts lists what of the checkout is seen, and how. Nothing in the repo's own git folder can be written: the launch's own
// stands in its place, and the object stores are read.
func (c Checkout) Mounts() ([]Mount, error) {
	dot := filepath.Join(c.Top, ".git")
	if err := NoLink(dot); err != nil {
		return nil, err
	}
	var out []Mount
	around := c.Main != "" && c.Main != c.Top
	if around && !Inside(c.Top, c.Main) {
		out = append(out, Mount{Path: c.Main})
	}
	out = append(out, Mount{Path: c.Top, Write: true})
	for _, dir := range c.Linked {
		out = append(out, Mount{Path: dir, Try: true}) // it may go meanwhile
	}
	if around && Inside(c.Top, c.Main) {
		out = append(out, Mount{Path: c.Main})
	}
	if c.InPlace {
		out = append(out, Mount{Path: c.Common}, Mount{Path: dot}, Mount{Path: c.Own, Write: true})
	} else {
		if err := c.aside(); err != nil {
			return nil, err
		}
		out = append(append(out, c.own(dot)...), c.Objects()...)
	}
	subs, err := c.submodules()
	return append(out, subs...), err
}

// aside makes what the mounts need.
func (c Checkout) aside() error {
	files := map[string]string{asideNone: "", asideDot: "gitdir: " + GitAt + "\n"}
	for _, d := range []string{asideEmpty, asideCommon} {
		if err := os.MkdirAll(filepath.Join(c.Aside, d), 0o755); err != nil {
			return err
		}
	}
	for name, text := range files {
		if _, err := os.Lstat(filepath.Join(c.Aside, name)); err == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(c.Aside, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if rel, err := filepath.Rel(c.Common, c.modules()); err == nil && isDir(c.modules()) {
		return os.MkdirAll(filepath.Join(c.Aside, asideCommon, rel), 0o755) // to be mounted on
	}
	return nil
}

// modules is where the git folders of the submodules are.
func (c Checkout) modules() string { return filepath.Join(c.GitDir, "modules") }

// own has the launch's git folder stand for the repo's.
func (c Checkout) own(dot string) (out []Mount) {
	modules := dot
	if dot == c.Common {
		out = []Mount{{Path: c.Own, At: dot, Write: true}}
	} else {
		modules = c.GitDir
		out = []Mount{{Path: filepath.Join(c.Aside, asideCommon), At: c.Common}, {Path: c.Own, At: GitAt, Write: true},
			{Path: filepath.Join(c.Aside, asideDot), At: dot}}
	}
	if isDir(c.modules()) {
		out = append(out, Mount{Path: c.modules(), At: filepath.Join(modules, "modules")})
	}
	return out
}

// Objects has the repo's objects be read. What a store borrows from is one of the list: its own note of that would lead to
// where nothing is seen.
func (c Checkout) Objects() (out []Mount) {
	for i, dir := range c.Stores {
		at := StoreAt(i)
		out = append(out, Mount{Path: dir, At: at})
		if _, err := os.Lstat(filepath.Join(dir, "info", "alternates")); err == nil {
			out = append(out, Mount{Path: filepath.Join(c.Aside, asideNone), At: filepath.Join(at, "info", "alternates")})
		}
		if lfs := filepath.Join(filepath.Dir(dir), "lfs", "objects"); isDir(lfs) {
			out = append(out, Mount{Path: lfs, At: filepath.Join(filepath.Dir(at), "lfs", "objects")})
		}
	}
	return out
}

// submodules keeps what says where a submodule's git folder is: a person's git at the top follows it, and reads the
// settings there. One that is not filled is covered.
func (c Checkout) submodules() (out []Mount, err error) {
	for _, s := range c.Submodules {
		if err := NoLink(s.Path); err != nil {
			return nil, err
		}
		m := Mount{Path: filepath.Join(s.Path, ".git")}
		if s.Filled {
			err = NoLink(m.Path)
		} else {
			m = Mount{Path: filepath.Join(c.Aside, asideEmpty), At: s.Path}
			if info, err := os.Lstat(s.Path); c.InPlace || err == nil && !info.IsDir() {
				m = Mount{Path: s.Path, Try: true}
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
