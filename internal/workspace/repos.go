package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// ReposFile returns the file, in the folder of all state folders, with the repos that a daemon
// serves.
func ReposFile(home string) string { return filepath.Join(home, "repos.json") }

// AddRepo puts a repo on the list of those that a daemon serves. It reports whether it was not there yet.
func AddRepo(home, root string) (added bool, err error) {
	return changeRepos(home, func(roots []string) []string {
		if slices.Contains(roots, root) {
			return roots
		}
		return append(roots, root)
	})
}

// RemoveRepo takes a repo off the list, and reports whether it was there.
func RemoveRepo(home, root string) (removed bool, err error) {
	return changeRepos(home, func(roots []string) []string {
		return slices.DeleteFunc(roots, func(r string) bool { return r == root })
	})
}

func changeRepos(home string, change func([]string) []string) (changed bool, err error) {
	if err := MakeState(home); err != nil {
		return false, err
	}
	file := ReposFile(home)
	err = atomicfile.Alone(file, func() error {
		roots, err := daemon.LoadRepos(file)
		if err != nil {
			return err
		}
		before := len(roots)
		if roots = change(roots); len(roots) == before {
			return nil
		}
		slices.Sort(roots)
		raw, err := json.MarshalIndent(roots, "", "  ")
		if err != nil {
			return err
		}
		changed = true
		return atomicfile.Write(file, append(raw, '\n'), 0o600)
	})
	return changed, err
}

// rootFile is the file in a repo's state folder that says where the repo is.
const rootFile = "root"

// All returns the known repos: watched ones, those named in a state folder, and that of dir.
func All(ctx context.Context, con *console.Console, dir string) ([]*Workspace, error) {
	home, err := Home(con)
	if err != nil {
		return nil, err
	}
	roots, err := daemon.LoadRepos(ReposFile(home))
	if err != nil {
		return nil, err
	}
	states, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, s := range states {
		if raw, err := os.ReadFile(filepath.Join(home, s.Name(), rootFile)); err == nil {
			roots = append(roots, string(raw))
		}
	}
	var out []*Workspace
	seen := map[string]bool{}
	if p, err := Bare(ctx, con, dir); err == nil {
		out, seen[p.ID] = append(out, p), true
	}
	for _, r := range roots {
		if !IsDir(r) {
			continue
		}
		if p, err := At(ctx, con, r); err == nil && !seen[p.ID] {
			out, seen[p.ID] = append(out, p), true
		}
	}
	return out, nil
}

// Moved says of a root whose state knows no run that the folders of runs are there, and where their record
// is; "" = there are none. It asks the newest run's folder, and the states whose root has gone.
func Moved(con *console.Console, root string) string {
	last, err := os.Readlink(filepath.Join(root, filepath.FromSlash(layout.RunsDir), "last"))
	home, herr := Home(con)
	if errors.Join(err, herr) != nil {
		return ""
	}
	here := fmt.Sprintf("the folder of %s is here", text.Line(last))
	states, _ := os.ReadDir(home)
	for _, s := range states {
		was, err := os.ReadFile(filepath.Join(home, s.Name(), rootFile))
		if err == nil && !IsDir(string(was)) && IsDir(filepath.Join(home, s.Name(), layout.LaunchesDir, last)) {
			return fmt.Sprintf("%s, and its record is that of %s: move the repo back there to continue its runs", here,
				text.Line(string(was)))
		}
	}
	return here + " without its record: this is a copy, or its git folder or its state folder was moved or removed"
}

// Marks returns a text that changes when the repos that All returns may have changed. It starts no
// program, as All does for each repo.
func Marks(con *console.Console) (string, error) {
	home, err := Home(con)
	if err != nil {
		return "", err
	}
	states, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var out strings.Builder
	mark := func(file string) {
		if st, err := os.Stat(file); err == nil {
			fmt.Fprintf(&out, "%s %d %d\n", file, st.Size(), st.ModTime().UnixNano())
		}
	}
	mark(ReposFile(home))
	for _, s := range states {
		mark(filepath.Join(home, s.Name(), rootFile))
	}
	return out.String(), nil
}

// LeaveRoot records a state folder's repo.
func LeaveRoot(root, state string) error {
	return os.WriteFile(filepath.Join(state, rootFile), []byte(root), 0o600)
}
