package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/memo"
)

// Limits on borrowed object stores and nested submodules.
const (
	maxAlternates    = 64 << 10 // one list of other stores
	maxStores        = 32
	maxStoreHops     = 5 // like git
	maxSubmodules    = 1000
	maxSubmoduleHops = 8
)

// Stores returns the folders with the repo's objects: its own first, then those it borrows from,
// recursively.
func (r *place) Stores() ([]string, error) {
	own := filepath.Join(r.common, "objects")
	out := []string{own}
	if err := addStores(&out, own, maxStoreHops); err != nil {
		return nil, fmt.Errorf("object stores: %w", err)
	}
	return out, nil
}

func addStores(out *[]string, store string, hops int) error {
	data, _, err := atomicfile.OpenRegular(filepath.Join(store, "info"), "alternates", maxAlternates)
	if errors.Is(err, fs.ErrNotExist) || hops == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		dir := strings.TrimRight(line, "\r\n")
		if dir == "" || dir[0] == '#' || dir[0] == '"' {
			continue // a quoted name has characters unfit for a sandbox's list of folders
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(store, dir)
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !isDir(real) {
			continue // git skips it too
		}
		if slices.Contains(*out, real) {
			continue
		}
		if len(*out) == maxStores {
			return fault.New("run git repack -a -d", "more than %d", maxStores)
		}
		*out = append(*out, real)
		if err := addStores(out, real, hops-1); err != nil {
			return err
		}
	}
	return nil
}

// Submodule is a submodule of a checkout, or of another submodule in it.
type Submodule struct {
	Path   string // absolute
	Filled bool   // it has a git folder, or a file that points to one
}

// linksKept caches an index's submodules with the state of its file.
type linksKept struct {
	of   atomicfile.Stat
	list []string
}

// Submodules lists the submodules in the index of the checkout at top, and those nested in them.
func (r *submodules) Submodules(ctx context.Context, top string) ([]Submodule, error) {
	gitDir, real, err := r.gitDirOf(top)
	if err != nil {
		return nil, err
	}
	var out []Submodule
	if err := r.addSubmodules(ctx, &out, gitDir, real, maxSubmoduleHops); err != nil {
		return nil, fmt.Errorf("submodules of %s: %w", top, err)
	}
	return out, nil
}

// submodules keeps the paths that were read from each index.
type submodules struct {
	*place
	links memo.Memo[string, linksKept] // by index
}

func (r *submodules) addSubmodules(ctx context.Context, out *[]Submodule, gitDir, top string, hops int) error {
	list, err := r.gitlinks(ctx, gitDir, top)
	if err != nil {
		return err
	}
	if len(list) > 0 && hops == 0 {
		return fmt.Errorf("more than %d within each other", maxSubmoduleHops)
	}
	for _, name := range list {
		sub := Submodule{Path: filepath.Join(top, filepath.FromSlash(name))}
		dot := filepath.Join(sub.Path, ".git")
		info, err := os.Lstat(dot)
		sub.Filled = err == nil
		if len(*out) == maxSubmodules {
			return fmt.Errorf("more than %d", maxSubmodules)
		}
		*out = append(*out, sub)
		if !sub.Filled {
			continue
		}
		within := dot
		if !info.IsDir() {
			if within, err = pointer(sub.Path, ".git", "gitdir: "); err != nil {
				continue // git does not accept it either
			}
		}
		if _, err := os.Lstat(filepath.Join(within, "HEAD")); err != nil {
			continue
		}
		if err := r.addSubmodules(ctx, out, within, sub.Path, hops-1); err != nil {
			return err
		}
	}
	return nil
}

// gitlinks lists the index's submodule paths.
func (r *submodules) gitlinks(ctx context.Context, gitDir, top string) ([]string, error) {
	now, err := atomicfile.Lstat(gitDir, indexFile)
	if err != nil {
		return nil, ignoreGone(err)
	}
	if kept, ok := r.links.Get(gitDir); ok && kept.of.Same(now) {
		return kept.list, nil
	}
	c := call{args: []string{"ls-files", "--stage", "-z"},
		env: []string{"GIT_DIR=" + gitDir, "GIT_WORK_TREE=" + top}, dir: top,
		safeDir: top, limit: wholeIndex, timeout: treeTime}
	var list []string
	err = r.stream(ctx, c, func(in io.Reader) error {
		return eachLine(in, func(line string) {
			if head, name, ok := strings.Cut(line, "\t"); ok && strings.HasPrefix(head, ModeSubmodule+" ") {
				list = append(list, name)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	r.links.Put(gitDir, linksKept{now, list})
	return list, nil
}

// maxNamePath limits a line that names one path.
const maxNamePath = 1 << 20

// eachLine hands each the NUL-terminated lines of a long list, each with one path.
func eachLine(in io.Reader, each func(line string)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxNamePath)
	lines.Split(splitNUL)
	for lines.Scan() {
		each(lines.Text())
	}
	return lines.Err()
}

func splitNUL(data []byte, end bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if end && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
