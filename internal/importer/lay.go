package importer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/text"
)

// file is one file to write, below the folder of the import.
type file struct {
	path string // slash-separated
	data []byte
}

// Plan is an import before anything is written.
type Plan struct {
	Report Report
	files  []file
}

// put adds a file once; the first with its path holds.
func (p *Plan) put(path string, data []byte) {
	if !slices.ContainsFunc(p.files, func(f file) bool { return strings.EqualFold(f.path, path) }) {
		p.files = append(p.files, file{path, data})
	}
}

// Missing adds a file that dir lacks: one that every repo with workflows has.
func (p *Plan) Missing(dir, path string, data []byte) {
	if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(path))); errors.Is(err, fs.ErrNotExist) {
		p.put(path, data)
		p.Report.Files = append(p.Report.Files, path)
	}
}

// Write writes the plan's files below dir, which must exist. If one of them exists already, it
// writes none and names those that do. It follows no link below dir.
func (p *Plan) Write(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.Failed("name an existing folder with --out", "%s: %v", text.Line(dir), fault.WithoutPath(err))
	}
	defer root.Close()
	var there []string
	for _, f := range p.files {
		if err := noLinks(root, f.path); err != nil {
			return fault.Failed("nothing was written", "%s: %s", text.Line(filepath.Join(dir, f.path)), err)
		}
		if _, err := root.Lstat(filepath.FromSlash(f.path)); err == nil {
			there = append(there, f.path)
		}
	}
	if len(there) > 0 {
		return fault.Failed("move it away, or name another folder with --out: nothing was written",
			"%s exists already%s", text.Line(there[0]), text.More(len(there)-1, "file"))
	}
	for i, f := range p.files {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		err := atomicfile.MkdirBelow(dir, filepath.Dir(path), 0o755)
		if err == nil {
			err = atomicfile.WriteNew(path, f.data, 0o644)
		}
		if err != nil {
			for _, done := range p.files[:i] {
				err = errors.Join(err, root.Remove(filepath.FromSlash(done.path)))
			}
			return fault.Failed("nothing was kept", "%v", err)
		}
	}
	return nil
}

// noLinks refuses a path with a folder that is a link, or is no folder.
func noLinks(root *os.Root, path string) error {
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		info, err := root.Lstat(filepath.FromSlash(strings.Join(parts[:i], "/")))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return errors.New(strings.Join(parts[:i], "/") + " is a link or a file, not a folder")
		}
	}
	return nil
}
