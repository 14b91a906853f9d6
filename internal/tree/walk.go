package tree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/fault"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxOdd limits the listed odd things of a folder. If there are more, a person is asked.
const maxOdd = 1000

// Odd is something in a folder that git skips silently or cannot store.
type Odd struct {
	Path string `json:"path"`
	What string `json:"what"`
}

func (o Odd) String() string { return fmt.Sprintf("%q %s", o.Path, o.What) }

// Kinds of odd things.
const (
	oddRepo    = "is a git repository of its own"
	oddBare    = "looks like a git folder"
	oddFolder  = "is a folder that cannot be read"
	oddSpecial = "is not a regular file (a socket, a pipe or a device)"
	oddTwin    = "has a twin that differs only in upper and lower case or in Unicode form"
)

// maxLaw limits the listed deciding files. If there are more, a person is asked.
const maxLaw = 1000

// Looked is the result of a walk through all files of a folder, ignored ones too. Both lists are
// sorted.
type Looked struct {
	Odd  []Odd
	Law  []string // deciding files
	More bool     // the lists are incomplete
}

type walk struct {
	Looked
	top  string
	pass func(dir string) bool // folders to skip: our worktrees
	law  func(file string) bool
}

// Walk looks through the folder top. Paths are relative to it, with slashes: pass reports folders
// that are not part of it, law the deciding files.
func Walk(ctx context.Context, top string, pass, law func(path string) bool) (Looked, error) {
	w := walk{top: top, pass: pass, law: law}
	err := w.folder(ctx, ".")
	slices.SortFunc(w.Odd, func(a, b Odd) int { return strings.Compare(a.Path+"\x00"+a.What, b.Path+"\x00"+b.What) })
	slices.Sort(w.Law)
	return w.Looked, err
}

func (w *walk) note(path, what string) {
	if len(w.Odd) >= maxOdd {
		w.More = true
		return
	}
	w.Odd = append(w.Odd, Odd{Path: filepath.ToSlash(path), What: what})
}

// folder looks at one folder and its subfolders.
func (w *walk) folder(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var entries []fs.DirEntry
	f, err := os.Open(filepath.Join(w.top, dir))
	if err == nil {
		entries, err = f.ReadDir(-1) // os.ReadDir sorts them too, and takes twice as long
		f.Close()
	}
	if ofTheMachine(err) {
		return err
	}
	if err != nil {
		w.note(dir, oddFolder+": "+fault.WithoutPath(err).Error())
		return nil
	}
	if dir != "." && bare(entries) {
		w.note(dir, oddBare)
	}
	w.twins(dir, entries)
	for _, e := range entries {
		if w.law == nil && e.Type().IsRegular() && !strings.EqualFold(e.Name(), ".git") {
			continue // the usual case; git compares it
		}
		if err := w.entry(ctx, filepath.Join(dir, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(ctx context.Context, path string, e fs.DirEntry) error {
	switch {
	case strings.EqualFold(e.Name(), ".git"):
		if path != ".git" {
			w.note(path, oddRepo)
		}
		return nil
	case e.IsDir():
		if w.pass != nil && w.pass(filepath.ToSlash(path)) {
			return nil
		}
		return w.folder(ctx, path)
	case e.Type()&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) != 0:
		w.note(path, oddSpecial)
	case w.law != nil && w.law(filepath.ToSlash(path)):
		if w.More = w.More || len(w.Law) >= maxLaw; !w.More {
			w.Law = append(w.Law, filepath.ToSlash(path))
		}
	}
	return nil
}

// bare reports whether git would take a folder with these entries for a git folder.
func bare(entries []fs.DirEntry) bool {
	found := 0
	for _, e := range entries {
		if e.Name() == "HEAD" || (e.Name() == "objects" || e.Name() == "refs") && e.IsDir() {
			found++
		}
	}
	return found == 3
}

// twins records names in one folder that some file systems consider equal.
func (w *walk) twins(dir string, entries []fs.DirEntry) {
	if !slices.ContainsFunc(entries,
		func(e fs.DirEntry) bool { plain, lower := plainName(e.Name()); return !plain || !lower }) {
		return // all names are lower-case ASCII
	}
	fold := cases.Fold()
	seen := make(map[string]string, len(entries))
	for _, e := range entries {
		name := e.Name()
		key := name
		if plain, lower := plainName(name); !plain {
			key = norm.NFC.String(fold.String(norm.NFC.String(name)))
		} else if !lower {
			key = strings.ToLower(name)
		}
		if twin, ok := seen[key]; ok {
			w.note(filepath.Join(dir, max(name, twin)), oddTwin)
		}
		seen[key] = name
	}
}

// plainName reports whether a name is ASCII, and whether it has no capital letter.
func plainName(name string) (plain, lower bool) {
	lower = true
	for i := range len(name) {
		if name[i] >= 0x80 {
			return false, false
		}
		lower = lower && (name[i] < 'A' || name[i] > 'Z')
	}
	return true, lower
}
