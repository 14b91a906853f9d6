package checkouts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
)

// Names in the folder of a checkout.
const (
	treeName     = "tree"     // the checkout itself: all that its user sees
	trashName    = "trash"    // removed contents, to be deleted
	indexName    = "index"    // git's, for sluice's own calls
	manifestName = "manifest" // what was written there
	userName     = "user"     // its current user
	probeName    = "probe"    // shows the file system's clock
)

const gitName = ".git"

// Kinds of entries.
const (
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// folderMode is the mode of every folder of a checkout.
const folderMode fs.FileMode = 0o755

// seat is one kept checkout. The caller has exclusive use of it.
type seat struct {
	dir   string
	repo  *git.Repo
	start string
}

func (s seat) file(name string) string { return filepath.Join(s.dir, name) }
func (s seat) top() string             { return s.file(treeName) }

// file is a file of the commit, and how it was found.
type file struct {
	git.Entry
	state string // "" = must be written
}

func (f file) object() string { return f.Mode + ":" + f.Object }

// update brings the checkout to the commit, whatever is in it.
func (s seat) update(ctx context.Context, commit string) ([]git.Entry, error) {
	entries, err := s.repo.Entries(ctx, commit)
	if err != nil {
		return nil, err
	}
	return entries, s.fit(ctx, commit, entries)
}

// fit is update to the commit's entries.
func (s seat) fit(ctx context.Context, commit string, entries []git.Entry) error {
	if err := s.clear(); err != nil {
		return err
	}
	root, err := s.open()
	if err != nil {
		return err
	}
	defer root.Close()
	known := s.read()
	if attributes(entries) != attributesOf(known) {
		known.files = nil // they may change how any file is written
	}
	w, err := newWalk(root, entries, known)
	if err != nil {
		return err
	}
	top, err := root.Lstat(treeName)
	if err == nil {
		err = w.within(ctx, root, ".", treeName, top)
	}
	if err == nil {
		err = root.MkdirAll(treeName, folderMode)
	}
	if err != nil {
		return err
	}
	if err := s.fill(ctx, root, commit, known.commit, w.files); err != nil {
		return err
	}
	return s.clear()
}

// open creates missing folders of the checkout. It removes anything else in their place, such as a
// link.
func (s seat) open() (*os.Root, error) {
	for _, name := range []string{treeName, trashName} {
		if info, err := os.Lstat(s.file(name)); err == nil && !info.IsDir() {
			if err := os.Remove(s.file(name)); err != nil {
				return nil, err
			}
		}
		if err := os.MkdirAll(s.file(name), folderMode); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(s.dir)
}

// fill writes what is missing and records the result; known is the commit of the last update.
func (s seat) fill(ctx context.Context, root *os.Root, commit, known string, files []file) error {
	var missing []string
	for _, f := range files {
		switch {
		case f.state != "":
		case f.Mode == modeSubmodule:
			if err := root.MkdirAll(path.Join(treeName, f.Path), folderMode); err != nil {
				return err
			}
		default:
			missing = append(missing, f.Path)
		}
	}
	if _, err := os.Lstat(s.file(indexName)); err == nil && len(missing) == 0 && commit == known {
		return nil // unchanged since the last update
	}
	if err := s.repo.LayOut(ctx, s.top(), s.file(indexName), commit, missing); err != nil {
		return err
	}
	tree, err := root.OpenRoot(treeName)
	if err != nil {
		return err
	}
	defer tree.Close()
	var last time.Time
	for i := range files {
		if f := &files[i]; f.state == "" && f.Mode != modeSubmodule {
			info, err := tree.Lstat(f.Path)
			if err != nil {
				return fmt.Errorf("%.200q cannot be created on this file system: %w", f.Path, err)
			}
			f.state = stateOf(info)
			if at := atomicfile.StatOf(info).Changed; at.After(last) {
				last = at
			}
		}
	}
	if err := s.write(commit, files); err != nil {
		return err
	}
	return s.after(ctx, last)
}

// probeMost is how long a file system's clock may stand still: the coarsest ticks every two
// seconds.
const probeMost = 5 * time.Second

// after waits until the file system's clock has passed a time, so that later writes get another.
func (s seat) after(ctx context.Context, at time.Time) error {
	if at.IsZero() {
		return nil
	}
	for until := time.Now().Add(probeMost); ; {
		if err := os.WriteFile(s.file(probeName), []byte(at.String()), 0o600); err != nil {
			return err
		}
		info, err := os.Lstat(s.file(probeName))
		if err != nil {
			return err
		}
		if atomicfile.StatOf(info).Changed.After(at) {
			return nil
		}
		if time.Now().After(until) {
			return errors.New("the clock of its file system stands: set the machine's clock")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// attributes returns a key of a tree's git attributes.
func attributes(entries []git.Entry) string {
	var all []string
	for _, e := range entries {
		if path.Base(e.Path) == ".gitattributes" {
			all = append(all, file{Entry: e}.object()+" "+e.Path)
		}
	}
	return joined(all)
}

func attributesOf(m manifest) string {
	var all []string
	for name, k := range m.files {
		if path.Base(name) == ".gitattributes" {
			all = append(all, k.object+" "+name)
		}
	}
	return joined(all)
}

func joined(all []string) string {
	slices.Sort(all)
	return fmt.Sprintf("%q", all)
}
