package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Checkout is a git checkout that a launch works in. All paths are real.
type Checkout struct {
	Top    string   // its top level
	GitDir string   // its own git folder
	Common string   // that of all worktrees; the same for the main one
	Main   string   // the top level that the workflow's root lies in
	Others []string // the top levels of the repo's other worktrees
}

// pin is what the file commondir of a main checkout's git folder holds, so that nobody can put another there: git reads
// its settings from where the file says, and this says "here".
const pin = ".\n"

// PinFile is the file that Mounts makes in the git folder of a main checkout. It may go when no launch works there.
func (c Checkout) PinFile() string {
	if c.GitDir != c.Common {
		return ""
	}
	return filepath.Join(c.Common, "commondir")
}

// Unpin removes the file, if it is as Mounts made it.
func Unpin(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(data) != pin {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// Mounts gives what of the checkout is seen, and how. It makes the folders and files that have to be there to be held
// read-only: what is missing, an agent could make.
func (c Checkout) Mounts() ([]Mount, error) {
	linked := c.GitDir != c.Common
	var out []Mount
	ro := func(paths ...string) {
		for _, p := range paths {
			out = append(out, Mount{Path: p})
		}
	}
	rw := func(paths ...string) {
		for _, p := range paths {
			out = append(out, Mount{Path: p, Write: true})
		}
	}
	g := func(name string) string { return filepath.Join(c.Common, name) }
	needed := []string{"hooks", "info", "worktrees", "modules", "objects", "refs", "logs", "refs/sluice"}
	if linked {
		needed = []string{"objects", "refs", "logs", "refs/sluice"}
	}
	for _, name := range needed {
		if err := c.folder(g(name)); err != nil {
			return nil, err
		}
	}
	if err := c.exclude(); err != nil {
		return nil, err
	}
	if c.Main != "" && c.Main != c.Top && !Inside(c.Top, c.Main) {
		ro(c.Main)
	}
	rw(c.Top)
	for _, other := range c.Others {
		if other != c.Top && Inside(c.Top, other) {
			out = append(out, Mount{Path: other, Try: true}) // it may go meanwhile
		}
	}
	if c.Main != c.Top && Inside(c.Top, c.Main) {
		ro(c.Main)
	}
	if linked {
		ro(c.Common)
		rw(g("objects"), g("refs"), g("logs"), c.GitDir)
		ro(filepath.Join(c.GitDir, "commondir"), filepath.Join(c.GitDir, "gitdir"), filepath.Join(c.Top, ".git"))
	} else {
		if err := c.file(g("commondir"), pin); err != nil {
			return nil, err
		}
		rw(c.Common)
		rw(g("objects"), g("refs"), g("logs")) // on themselves: what others mount is not to be moved away
		ro(g("config"), g("hooks"), g("info"), g("commondir"), g("worktrees"), g("modules"))
		if dot := filepath.Join(c.Top, ".git"); dot != c.Common { // a file that says where the git folder is
			ro(dot)
		}
	}
	ro(g("refs/sluice"))
	own := filepath.Join(c.GitDir, "config.worktree")
	perWorktree, err := c.perWorktree()
	if err != nil {
		return nil, err
	}
	if perWorktree {
		if err := c.file(own, ""); err != nil {
			return nil, err
		}
		ro(own)
	} else {
		out = append(out, Mount{Path: own, Try: true})
	}
	for _, m := range out {
		if err := NoLink(m.Path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// excluded keeps an inbox out of what `git add -A` takes inside: a worktree may have no .gitignore of ours.
const excluded = "**/.workflow/signals/"

// exclude adds it to the repo's own list of what is not for git.
func (c Checkout) exclude() error {
	info := filepath.Join(c.Common, "info")
	if err := c.folder(info); err != nil {
		return err
	}
	file := filepath.Join(info, "exclude")
	if err := NoLink(file); err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if line == excluded {
			return nil
		}
	}
	line := excluded + "\n"
	if len(data) > 0 && !strings.HasSuffix(string(data), "\n") {
		line = "\n" + line
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// maxConfig bounds the repo's settings that are looked through.
const maxConfig = 1 << 20

// perWorktree says that the repo's settings may turn on settings of a worktree's own. It is read without git, and too
// often said yes to does no harm: an empty file is pinned.
func (c Checkout) perWorktree() (bool, error) {
	file := filepath.Join(c.Common, "config")
	info, err := os.Lstat(file)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return false, fmt.Errorf("%s: not a regular file of at most 1 MiB: mend it", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	text := strings.ToLower(string(data))
	return strings.Contains(text, "worktreeconfig") || strings.Contains(text, "include"), nil
}

func (c Checkout) folder(dir string) error {
	if err := NoLink(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// file makes a file that is missing. It is never there without its text: git takes an empty commondir for a broken repo.
func (c Checkout) file(name, text string) error {
	if err := NoLink(name); err != nil {
		return err
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".sluice-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), name); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return os.Rename(f.Name(), name) // a file system without hard links
}
