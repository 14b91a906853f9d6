package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/layout"
)

// Private is a launch's own git folder. It replaces the repo's while the launch runs, so the launch
// cannot change the repo. Once the launch has begun, the folder is not trusted, and git reads it
// only in a sandbox.
type Private struct {
	Order
	Dir    string   `json:"dir"`    // outside
	Top    string   `json:"top"`    // the checkout that it is for
	Stores []string `json:"stores"` // the repo's object stores, outside; the launch can read them
	Keeps  bool     `json:"keeps"`  // commits made in it are work; otherwise they are discarded
	// Linked and Submodules are inside the checkout but not part of it.
	Linked     []string        `json:"linked,omitempty"`
	Submodules []git.Submodule `json:"submodules,omitempty"`
}

// ownLines keep sluice's folders out of a launch's commits: a worktree may lack our .gitignore.
func ownLines() (lines []string) {
	for _, name := range layout.Uncommitted() {
		lines = append(lines, "**/"+layout.WorkflowDir+"/"+name+"/")
	}
	return lines
}

// MakePrivate creates a launch's folder with the repo's current refs, from a spare of git.MakeSpare
// if there is one. seen returns the i-th store's path inside. It replaces what was at dir.
func MakePrivate(ctx context.Context, repo *git.Repo, p Private, now git.Named, spare string,
	seen func(i int, store string) string) (Private, error) {
	var err error
	if p.Stores, err = repo.Stores(); err != nil {
		return p, err
	}
	if p.Submodules, err = repo.Submodules(ctx, p.Top); err != nil {
		return p, err
	}
	linked, err := repo.Linked()
	if err != nil {
		return p, err
	}
	p.Linked = nil
	f := git.Folder{Dir: p.Dir, Top: p.Top, Branch: p.Branch, Base: p.Base, Ignore: ownLines(),
		Now: now, Spare: spare}
	for _, dir := range linked {
		if rel, inside := layout.Rel(p.Top, dir); inside && rel != "." {
			p.Linked = append(p.Linked, dir)
			f.Ignore = append(f.Ignore, git.IgnoreFolder(rel))
		}
	}
	for i, s := range p.Stores {
		f.Stores = append(f.Stores, seen(i, s))
	}
	if err := Remove(p.Dir); err != nil {
		return p, err
	}
	return p, repo.MakeFolder(ctx, f)
}

// Pin protects the base from `git gc` in the repo while the launch needs it, and its work
// afterwards.
func (p Private) Pin(ctx context.Context, repo *git.Repo) error {
	if p.Base == "" {
		return nil
	}
	return repo.Keep(ctx, p.Ref(), p.Base)
}

// Ref is the ref of the attempt's base while it runs, then of its last commit.
func (p Private) Ref() string { return git.Own("tip", p.name()) }

// Limits on files of a private folder that are read without git.
const (
	maxHead   = 4 << 10
	maxPacked = 256 << 20
)

// Unmoved reports, from plain files alone, whether HEAD is where it was when the folder was made.
// false may be overcautious.
func (p Private) Unmoved() bool {
	at, err := p.head()
	return err == nil && at == p.Base
}

// head reads HEAD's commit from plain files, and only from these.
func (p Private) head() (string, error) {
	data, _, err := atomicfile.OpenRegular(p.Dir, "HEAD", maxHead)
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(data), "\n")
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return text, nil
	}
	if !filepath.IsLocal(ref) || !strings.HasPrefix(ref, git.BranchRefs) {
		return "", fmt.Errorf("HEAD is at %.80q", ref)
	}
	data, _, err = atomicfile.OpenRegular(p.Dir, filepath.FromSlash(ref), maxHead)
	if err == nil {
		return strings.TrimSuffix(string(data), "\n"), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	packed, _, err := atomicfile.OpenRegular(p.Dir, "packed-refs", maxPacked)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for line := range strings.Lines(string(packed)) {
		if sha, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && name == ref {
			return sha, nil
		}
	}
	return "", err
}

// Remove removes a folder that an agent could write to, even if the agent made parts of it
// unreadable.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}
