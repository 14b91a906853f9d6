package git

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

// staged is a worktree under construction in a place that nobody else can write to. In its final
// place, an agent in the surrounding checkout could plant a link and redirect the files.
type staged struct {
	r    *place
	root *os.Root // of the checkout
	rel  string   // of its own folder, below root
	path string   // of the worktree, absolute
	over bool
}

// stage returns the place to build the worktree of path, or nil to build it in place. It removes
// leftovers of an earlier, killed attempt.
func (r *Repo) stage(path string) (*staged, error) {
	rel, err := filepath.Rel(r.top, r.staging)
	if err != nil || r.staging == "" || !filepath.IsLocal(rel) {
		return nil, nil
	}
	if to, err := filepath.Rel(r.top, path); err != nil || !filepath.IsLocal(to) {
		return nil, nil // no agent of this repo can write around it
	}
	root, err := os.OpenRoot(r.top)
	if err != nil {
		return nil, err
	}
	s := &staged{r: r.place, root: root, rel: filepath.Join(rel, fmt.Sprintf("%x", sha256.Sum256([]byte(path)))[:16])}
	s.path = filepath.Join(r.top, s.rel, filepath.Base(path))
	err = s.clear(path)
	if err == nil {
		err = root.MkdirAll(s.rel, 0o700)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

// move moves the worktree to its place, through no link that leads out of the checkout.
func (s *staged) move(path string) error {
	name, err := s.r.adminOf(s.path)
	if err != nil || name == "" {
		return errors.Join(err, fmt.Errorf("it was not made: %w", fs.ErrNotExist))
	}
	admin := filepath.Join(s.r.linkedDir(), name)
	if err := atomicfile.Write(filepath.Join(s.path, ".git"), []byte("gitdir: "+filepath.ToSlash(admin)+"\n"),
		0o644); err != nil {
		return err
	}
	to, err := filepath.Rel(s.r.top, path)
	if err != nil {
		return err
	}
	dot := func(path string) error {
		return atomicfile.Write(filepath.Join(admin, "gitdir"),
			[]byte(filepath.ToSlash(filepath.Join(path, ".git"))+"\n"), 0o644)
	}
	if err := dot(path); err != nil {
		return err
	}
	if err := s.root.Rename(filepath.Join(s.rel, filepath.Base(path)), to); err != nil {
		return errors.Join(err, dot(s.path))
	}
	s.over = true
	return nil
}

// close releases the place, and removes a worktree that was not moved.
func (s *staged) close() {
	if !s.over {
		_ = s.clear("") // otherwise the next one does
	}
	s.over = true
	_ = s.root.RemoveAll(s.rel)
	_ = s.root.Remove(filepath.Dir(s.rel)) // succeeds if nothing else is under construction
	_ = s.root.Close()
}

// clear removes a worktree that was never moved, and git's entry for it. A kill may have come just
// before the move to path.
func (s *staged) clear(path string) error {
	_, none := s.root.Lstat(filepath.Join(s.rel, filepath.Base(s.path), ".git"))
	half := none == nil
	for _, p := range []string{s.path, path} {
		name, err := s.r.adminOf(p)
		switch {
		case err != nil:
			return err
		case name == "" || p == "":
		case p == path && !half:
			return fault.New("if its folder was deleted, run git worktree prune",
				"it is missing but already registered as a worktree")
		default:
			if err := os.RemoveAll(filepath.Join(s.r.linkedDir(), name)); err != nil {
				return err
			}
		}
	}
	return s.root.RemoveAll(s.rel)
}

// adminOf returns git's entry name for a linked worktree, or "".
func (r *place) adminOf(path string) (name string, err error) {
	err = r.eachLinked(path, func(admin, tree string) (found bool) {
		if tree == path {
			name = filepath.Base(admin)
		}
		return name != ""
	})
	return name, err
}
