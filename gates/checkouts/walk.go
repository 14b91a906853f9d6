package checkouts

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/git"
)

const namesAtOnce = 10_000

// walk goes through a checkout and removes what was changed or is not in the commit.
type walk struct {
	root    *os.Root // of the checkout's own folder
	files   []file
	at      map[string]int  // path -> index in files
	folders map[string]bool // folders that contain files
	known   manifest
}

func newWalk(root *os.Root, entries []git.Entry, m manifest) (*walk, error) {
	w := &walk{root: root, known: m, files: make([]file, len(entries)), at: make(map[string]int, len(entries)),
		folders: map[string]bool{".": true}}
	for i, e := range entries {
		if first, _, _ := strings.Cut(e.Path, "/"); strings.EqualFold(first, gitName) || !fs.ValidPath(e.Path) {
			return nil, errors.New("its tree has a path that git refuses: " + strconv.Quote(e.Path[:min(len(e.Path), 200)]))
		}
		w.files[i], w.at[e.Path] = file{Entry: e}, i
		for dir := path.Dir(e.Path); !w.folders[dir]; dir = path.Dir(dir) {
			w.folders[dir] = true
		}
	}
	return w, nil
}

// within checks a folder of the commit, after undoing changes that its last user may have made to
// it. above is its parent.
func (w *walk) within(ctx context.Context, above *os.Root, rel, name string, info fs.FileInfo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if info.Mode() != fs.ModeDir|folderMode {
		if err := above.Chmod(name, folderMode); err != nil {
			return err
		}
	}
	in, err := above.OpenRoot(name)
	if err != nil {
		return err
	}
	defer in.Close()
	list, err := in.Open(".")
	if err != nil {
		return err
	}
	defer list.Close()
	marked, err := hasMarks(list)
	if err != nil {
		return err
	}
	if marked { // access lists, which new files in it would inherit
		return w.toss(above, rel, name, info)
	}
	for {
		names, err := list.Readdirnames(namesAtOnce)
		for _, name := range names {
			if err := w.entry(ctx, in, path.Join(rel, name), name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *walk) entry(ctx context.Context, in *os.Root, rel, name string) error {
	info, err := in.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	i, ours := w.at[rel]
	switch {
	case info.IsDir() && w.folders[rel]:
		return w.within(ctx, in, rel, name, info)
	case ours && !info.IsDir():
		f := &w.files[i]
		if k := w.known.files[rel]; k.state != "" && k.object == f.object() && k.state == stateOf(info) {
			f.state = k.state
			return nil
		}
	}
	return w.toss(in, rel, name, info)
}

// toss removes a name from the checkout. It moves a folder to the trash whole.
func (w *walk) toss(in *os.Root, rel, name string, info fs.FileInfo) error {
	if !info.IsDir() {
		return in.Remove(name)
	}
	if err := in.Chmod(name, 0o700); err != nil { // otherwise it cannot be moved
		return err
	}
	return w.root.Rename(path.Join(treeName, rel), path.Join(trashName, rand.Text()))
}

// clear empties the trash. It first moves nested folders up, so that no depth is too deep.
func (s seat) clear() error {
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for {
		list, err := some(root, trashName)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range list {
			if err := empty(root, path.Join(trashName, name)); err != nil {
				return err
			}
		}
	}
}

// empty removes a name from the trash, moving its folders beside it.
func empty(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return errors.Join(err, root.Remove(name))
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	for {
		list, err := some(root, name)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return root.Remove(name)
		}
		for _, n := range list {
			at := path.Join(name, n)
			info, err := root.Lstat(at)
			if err == nil && info.IsDir() {
				if err = root.Chmod(at, 0o700); err == nil {
					err = root.Rename(at, path.Join(trashName, rand.Text()))
				}
			} else if err == nil {
				err = root.Remove(at)
			}
			if err != nil {
				return err
			}
		}
	}
}

// some returns names in a folder, sorted; of a large folder not all.
func some(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(namesAtOnce)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}
