package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/fault"
	"sluice/internal/text"
)

// Limits of what is read.
const (
	maxSource  = 512 << 10 // bytes of a workflow
	maxPart    = 64 << 10  // bytes of a file that it names: a prompt, a script, a fragment
	maxParts   = 1_000     // files read for one import
	maxTotal   = 8 << 20   // bytes of them
	maxListed  = 5_000     // entries looked at while a name is searched
	maxSources = 60        // workflows of one import

	maxChildren = 3 // workflows within one another, below the first
)

// tree is the folder that an import may read: the original's own. Paths in it are slash-separated.
type tree struct {
	root  *os.Root
	shown string // the folder as the user named it, for messages
	file  string // the workflow, below the root
	parts map[string][]byte
	total int
	files []string // all of them, once list has looked
}

// openTree opens the tree of a workflow: the nearest folder above it that a format marks, at most
// four levels up, else the workflow's own folder.
func openTree(file string) (*tree, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fault.Failed("name the file of one workflow", "%s: cannot be read: %v", text.Line(file),
			fault.WithoutPath(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fault.Failed("name the file of one workflow", "%s: not a regular file", text.Line(file))
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(abs)
	for at, up := dir, 0; up < 4 && at != filepath.Dir(at); at, up = filepath.Dir(at), up+1 {
		if marked(at) {
			dir = at
			break
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(dir, abs)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	shown := strings.TrimSuffix(filepath.ToSlash(file), filepath.ToSlash(rel))
	return &tree{root: root, shown: shown, file: filepath.ToSlash(rel), parts: map[string][]byte{}}, nil
}

// marked reports whether a folder is where a tool keeps its files: .archon, .takt, .github, or one
// with workflows and facets side by side.
func marked(dir string) bool {
	if slices.Contains([]string{".archon", ".takt", ".github"}, filepath.Base(dir)) {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, "facets"))
	return err == nil && info.IsDir()
}

// name returns a file of the tree as messages show it.
func (t *tree) name(file string) string { return text.Line(t.shown + file) }

// read returns a regular file of the tree, of at most most bytes. Links count if they stay inside.
func (t *tree) read(file string, most int64) ([]byte, error) {
	if b, ok := t.parts[file]; ok {
		return b, nil
	}
	if len(t.parts) >= maxParts {
		return nil, fmt.Errorf("more than %d files are named", maxParts)
	}
	if !fs.ValidPath(file) {
		return nil, errors.New("it leads out of the workflow's own folder")
	}
	info, err := t.root.Stat(filepath.FromSlash(file))
	if err != nil {
		return nil, t.plain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%d bytes: at most %d are read", info.Size(), most)
	}
	f, err := t.root.Open(filepath.FromSlash(file))
	if err != nil {
		return nil, t.plain(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, t.plain(err)
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("more than %d bytes", most)
	}
	if t.total += len(b); t.total > maxTotal {
		return nil, fmt.Errorf("the files that are named have more than %d bytes", maxTotal)
	}
	t.parts[file] = b
	return b, nil
}

// plain words an error of the root without its path.
func (t *tree) plain(err error) error {
	if strings.Contains(err.Error(), "escapes from parent") {
		return errors.New("it leads out of the workflow's own folder")
	}
	return fault.WithoutPath(err)
}

// text returns a file of text: UTF-8 without control characters but line ends and tabs.
func (t *tree) text(file string) (string, error) {
	b, err := t.read(file, maxPart)
	if err != nil {
		return "", err
	}
	if line := binaryLine(b); line > 0 {
		return "", fmt.Errorf("line %d is no text", line)
	}
	return string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))), nil
}

// find returns the files with one of the names, in the order of the names, then by path.
func (t *tree) find(names ...string) []string {
	var out []string
	for _, name := range names {
		for _, f := range t.list() {
			if path.Base(f) == name {
				out = append(out, f)
			}
		}
	}
	return out
}

// findIn returns the first file with one of the names in a folder of the name dir; "" = there is none.
func (t *tree) findIn(dir string, names ...string) string {
	for _, f := range t.find(names...) {
		if path.Base(path.Dir(f)) == dir {
			return f
		}
	}
	return ""
}

// list returns the files, sorted. It looks at a bounded number of entries, and follows no
// link to a folder.
func (t *tree) list() []string {
	if t.files != nil {
		return t.files
	}
	seen := 0
	_ = fs.WalkDir(t.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if seen++; seen > maxListed {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if !d.IsDir() {
			t.files = append(t.files, p)
		}
		return nil
	})
	return t.files
}
