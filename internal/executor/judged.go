package executor

import (
	"os"
	"path"
	"path/filepath"

	"sluice/gates/judge"
	"sluice/internal/job"
	"sluice/internal/tree"
)

// judged is where a judge works.
type judged struct {
	tree.Begin                 // Dir and Top as the judge sees them
	host       string          // Dir, as we see it; "" = it does not judge
	agents     tree.Begin      // where the agent worked
	seat       *judge.Checkout // nil: no commit was taken, and it is the agent's own folder
	covers     bool            // the checkout is seen in the place of Top
	made       []made          // by the setup, and shown in Dir
	alone      bool            // it has a home of its own, though it works in the agent's folder
	reads      bool            // it is a step that only looks: the checkout is read-only
}

// program gives the path of a program of the checkout as the judge sees it; "" where it lies elsewhere. One that the agent
// has in its folder and the commit has not is none.
func (j judged) program(name string) (string, error) {
	if rel, err := filepath.Rel(j.seat.Top, name); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(j.Top, rel), nil
	}
	rel, err := filepath.Rel(j.Top, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(j.seat.Top, rel)); err != nil {
		return "", job.Fatal("command %s: it is not in the commit that is judged: commit it, or move it out of the repo", rel)
	}
	return name, nil
}

// made is a folder or file that a setup has made.
type made struct {
	path string // from the folder it ran in
	at   string // where it is kept
}

// link shows a judge that is not held what a setup has made.
func (j judged) link(root *os.Root, rel string) error {
	for _, m := range j.made {
		at := path.Join(filepath.ToSlash(rel), m.path)
		if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
		if err := root.RemoveAll(at); err != nil {
			return err
		}
		if err := root.Symlink(m.at, at); err != nil {
			return err
		}
	}
	return nil
}
