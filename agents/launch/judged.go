package launch

import (
	"os"
	"path"
	"path/filepath"

	"sluice/gates/checkouts"
	"sluice/internal/job"
	"sluice/internal/tree"
)

// Judged is where a judge works.
type Judged struct {
	tree.Begin                     // Dir and Top as the judge sees them
	Host       string              // Dir, as we see it; "" = it does not judge
	Agents     tree.Begin          // where the agent worked
	Seat       *checkouts.Checkout // nil: no commit was taken, and it is the agent's own folder
	Covers     bool                // the checkout is seen in the place of Top
	Made       []Made              // by the setup, and shown in Dir
	Alone      bool                // it has a home of its own, though it works in the agent's folder
	Reads      bool                // it is a step that only looks: the checkout is read-only
}

// program returns the path of a program of the checkout as the judge sees it; "" where it lies elsewhere. One that the agent
// has in its folder and the commit has not is none.
func (j Judged) program(name string) (string, error) {
	if rel, err := filepath.Rel(j.Seat.Top, name); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(j.Top, rel), nil
	}
	rel, err := filepath.Rel(j.Top, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(j.Seat.Top, rel)); err != nil {
		return "", job.Fatal("command %s: it is not in the commit that is judged: commit it, or move it out of the repo", rel)
	}
	return name, nil
}

// Made is a folder or file that a setup has made.
type Made struct {
	Path string // from the folder it ran in
	At   string // where it is kept
}

// Link shows a judge that is not held what a setup has made.
func (j Judged) Link(root *os.Root, rel string) error {
	for _, m := range j.Made {
		at := path.Join(filepath.ToSlash(rel), m.Path)
		if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
		if err := root.RemoveAll(at); err != nil {
			return err
		}
		if err := root.Symlink(m.At, at); err != nil {
			return err
		}
	}
	return nil
}
