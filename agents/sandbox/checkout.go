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
	Main   string   // the top level around the workflow's root
	Linked []string // the top levels of other worktrees and repos inside Top, which stay as they are

	Own        string      // the launch's own git folder, which replaces the repo's
	Stores     []string    // the repo's object stores, its own first, read-only
	Submodules []Submodule // of Top, and within each other
	Aside      string      // a folder, invisible inside, with files for the mounts of all launches
	InPlace    bool        // paths inside equal paths outside
}

// Submodule is a folder of a checkout with its own git folder.
type Submodule struct {
	Path   string
	Filled bool // its .git exists
}

// GitAt is the path inside of a launch's own git folder if .git must be a file.
const GitAt = "/run/sluice/git"

// StoreAt returns the path inside of the repo's i-th object store. Git LFS files beside it stay
// beside it.
func StoreAt(i int) string {
	if i == 0 {
		return "/run/sluice/repo/objects"
	}
	return fmt.Sprintf("/run/sluice/repo.%d/objects", i)
}

// Names in Aside.
const (
	asideNone   = "none"   // an empty file
	asideEmpty  = "empty"  // an empty folder
	asideDot    = "dot"    // the content of a .git file
	asideCommon = "common" // replaces the repo's git folder
)

// Mounts lists the checkout's mounts. Nothing in the repo's own git folder is writable: the
// launch's own replaces it, and the object stores are read-only.
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
		out = append(out, Mount{Path: dir, Try: true}) // it may be removed meanwhile
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

// aside creates the files for the mounts.
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
		return os.MkdirAll(filepath.Join(c.Aside, asideCommon, rel), 0o755) // as a mount point
	}
	return nil
}

// modules returns the folder of the submodules' git folders.
func (c Checkout) modules() string { return filepath.Join(c.GitDir, "modules") }

// own mounts the launch's git folder in place of the repo's.
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

// Objects mounts the repo's object stores read-only. Stores that one borrows from are in the list
// too, so its own list of them, with paths from outside, is covered.
func (c Checkout) Objects() (out []Mount) {
	for i, dir := range c.Stores {
		at := StoreAt(i)
		out = append(out, Mount{Path: dir, At: at})
		if _, err := os.Lstat(filepath.Join(dir, "info", "alternates")); err == nil {
			out = append(out, Mount{Path: filepath.Join(c.Aside, asideNone),
				At: filepath.Join(at, "info", "alternates")})
		}
		if lfs := filepath.Join(filepath.Dir(dir), "lfs", "objects"); isDir(lfs) {
			out = append(out, Mount{Path: lfs, At: filepath.Join(filepath.Dir(at), "lfs", "objects")})
		}
	}
	return out
}

// submodules protects what points to a submodule's git folder: a person's git at the top follows it
// and reads the settings there. One that is not filled is covered.
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
