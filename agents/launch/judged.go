package launch

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/gates/checkouts"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Judged is where a launch works or judges.
type Judged struct {
	tree.Begin                     // Dir and Top as the judge sees them
	Host       string              // Dir as the daemon sees it; "" = it does not judge
	Agents     tree.Begin          // where the agent worked
	Seat       *checkouts.Checkout // nil: no commit was taken, and it is the agent's own folder
	Covers     bool                // the checkout appears in place of Top
	Made       []Made              // by the setup, and shown in Dir
	Alone      bool                // it has its own home, though it works in the agent's folder
	Reads      bool                // a step that only looks: the checkout is read-only
}

// compiledApart returns the variable by which a judge's Python reads no compiled file beside a source:
// the work may have one that is not of that source.
func (j Judged) compiledApart(env []string, home string) []string {
	const name = "PYTHONPYCACHEPREFIX="
	set := slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name) })
	if j.Seat == nil || !j.Seat.Compiled || set {
		return nil
	}
	return []string{name + filepath.Join(home, ".cache", "python")}
}

// program returns the path of a checkout's program as the judge sees it; "" for one elsewhere. A
// program of the agent's folder which the commit lacks is an error.
func (j Judged) program(name string) (string, error) {
	if rel, inside := layout.Rel(j.Seat.Top, name); inside {
		return filepath.Join(j.Top, rel), nil
	}
	rel, inside := layout.Rel(j.Top, name)
	if !inside {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(j.Seat.Top, rel)); err != nil {
		return "", job.Fatal("command %s: it is not in the commit that is judged: commit it, or move it out of the repo", rel)
	}
	return name, nil
}

// Made is a folder or file that a setup created.
type Made struct {
	Path string // from the folder it ran in
	At   string // where it is kept
}

// Link shows an unheld judge what a setup created.
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
