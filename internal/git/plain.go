package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sluice/internal/atomicfile"
)

// OpenStore opens our own git folder, created if missing, as the repo of the folder top, which is
// not a checkout. It can take, keep and compare trees of files. It has no branches and no worktrees
// for work. Nothing below top is ever read as a git folder.
func OpenStore(ctx context.Context, store, top string, o Options) (*Repo, error) {
	fail := func(err error) (*Repo, error) { return nil, fmt.Errorf("open the store of %s: %w", top, err) }
	t, err := findTool()
	if err != nil {
		return nil, err
	}
	if top, err = filepath.Abs(top); err != nil {
		return fail(err)
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return fail(err)
	}
	if _, err = os.Lstat(filepath.Join(store, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		err = t.makeStore(ctx, store)
	}
	if err != nil {
		return fail(err)
	}
	if store, err = filepath.EvalSymlinks(store); err != nil {
		return fail(err)
	}
	return (&place{tool: t, top: top, common: store, format: "sha1", plain: true}).open(ctx, o)
}

// makeStore creates a store completely or not at all: two processes may try at once.
func (t tool) makeStore(ctx context.Context, store string) error {
	if err := os.MkdirAll(filepath.Dir(store), privateDir); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(store), filepath.Base(store)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := call{args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=sha1",
		"--initial-branch=none", dir}}
	if _, err := t.run(ctx, c); err != nil {
		return err
	}
	err = os.Rename(dir, store)
	if _, there := os.Lstat(filepath.Join(store, "HEAD")); there == nil {
		return nil
	}
	return err
}

// PassOver makes a store ignore our own files and folders, by their paths from the top; there is no
// .gitignore.
func (r *place) PassOver(own []string) error {
	if err := os.MkdirAll(filepath.Join(r.common, "info"), privateDir); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(r.common, "info", "exclude"), passOver(own), privateOwn)
}

// storeGrace is how long unreferenced objects stay in a store: they may be about to be used.
const storeGrace = "1.day.ago"

// Compact packs a store and removes unreferenced objects. Nobody else does, as it is no person's
// repo.
func (r *place) Compact(ctx context.Context) error {
	if !r.plain {
		return nil
	}
	c := call{args: []string{"gc", "--quiet", "--prune=" + storeGrace}, timeout: treeTime}
	_, err := r.inRepo(ctx, r.common, r.top, c)
	return err
}

// Plain reports whether the repo is a store of ours for a folder that is not a checkout.
func (r *place) Plain() bool { return r.plain }

// Checkout reports whether there is a repo and it belongs to a checkout. Otherwise trees are kept
// in sluice's own store, or nowhere without git; there are no branches, worktrees or git folders
// for launches.
func (r *Repo) Checkout() bool { return r != nil && !r.plain }

// TopOf returns the top level above a real path: of its checkout, or the store's folder.
func (r *place) TopOf(path string) (string, error) {
	if !r.plain {
		return above(path)
	}
	if rel, err := filepath.Rel(r.top, path); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%w: %s is outside of %s", ErrNotWorktree, path, r.top)
	}
	return r.top, nil
}

// PlainTop returns the real path of the folder at or above dir that contains a folder called name,
// or "". It returns "" inside a checkout. Folders of other users do not count: whoever can write
// above, in /tmp for example, could have put them there.
func PlainTop(dir, name string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	if _, err := Toplevel(real); !errors.Is(err, ErrNoRepo) {
		return ""
	}
	for ; ; real = filepath.Dir(real) {
		if info, err := os.Lstat(filepath.Join(real, name)); err == nil && info.IsDir() && mine(info) {
			return real
		}
		if real == filepath.Dir(real) {
			return ""
		}
	}
}

// mine reports whether this user owns a file.
func mine(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
