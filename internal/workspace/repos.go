package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/daemon"
	"sluice/internal/console"
)

// ReposFile returns the file, in the folder of all state folders, with the repos that a daemon
// serves.
func ReposFile(home string) string { return filepath.Join(home, "repos.json") }

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
