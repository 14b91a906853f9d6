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
)

// Private is a git folder of a launch's own. It stands for the repo's while the launch runs: the launch can change nothing
// of the repo's. Once the launch has begun, nothing in it is believed, and no git outside a sandbox reads it.
type Private struct {
	Order
	Dir    string   `json:"dir"`    // outside
	Top    string   `json:"top"`    // the checkout that it is for
	Stores []string `json:"stores"` // the repo's object stores, outside; the launch reads them
	Keeps  bool     `json:"keeps"`  // what is committed in it is work; else it is thrown away
	// Linked and Submodules are what lies in the checkout and is not its own.
	Linked     []string        `json:"linked,omitempty"`
	Submodules []git.Submodule `json:"submodules,omitempty"`
}

// inboxLine keeps the launch's inbox out of its commits: a worktree may have no .gitignore of ours.
const inboxLine = "**/.workflow/signals/"

// MakePrivate makes the folder for a launch, of the repo's refs as they are now; a spare one that git.MakeSpare laid out
// ahead becomes it. seen says where the i-th store is inside. What was at dir before goes.
func MakePrivate(ctx context.Context, repo *git.Repo, p Private, now git.Named, spare string, seen func(i int, store string) string) (Private, error) {
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
	f := git.Folder{Dir: p.Dir, Top: p.Top, Branch: p.Branch, Base: p.Base, Ignore: []string{inboxLine}, Now: now, Spare: spare}
	for _, dir := range linked {
		if rel, err := filepath.Rel(p.Top, dir); err == nil && rel != "." && filepath.IsLocal(rel) {
			p.Linked = append(p.Linked, dir)
			f.Ignore = append(f.Ignore, git.IgnorePath(rel))
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

// Pin keeps the base from `git gc` in the repo while the launch needs it, and its work afterwards.
func (p Private) Pin(ctx context.Context, repo *git.Repo) error {
	if p.Base == "" {
		return nil
	}
	return repo.Keep(ctx, p.Ref(), p.Base)
}

// Ref keeps the base of an attempt while it runs, and then its last commit.
func (p Private) Ref() string { return git.Own("tip", p.name()) }

// Bounds of what of a private folder is read without git.
const (
	maxHead   = 4 << 10
	maxPacked = 256 << 20
)

// Unmoved reports whether HEAD is where it was when the folder was made, by its files alone. false may be too careful.
func (p Private) Unmoved() bool {
	at, err := p.head()
	return err == nil && at == p.Base
}

// head reads where HEAD is, as plain files say it; nothing else is tried.
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
	if !filepath.IsLocal(ref) || !strings.HasPrefix(ref, branchRefs) {
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

// branchRefs is where branches are.
const branchRefs = "refs/heads/"

// Remove removes a folder that an agent could write to: one may have made parts of it unreadable.
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
