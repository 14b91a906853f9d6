package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
)

// Bounds of what is read of a repo's refs.
const (
	maxRefs      = 1_000_000
	maxRefFile   = 8 << 10   // a loose ref
	maxRefPacked = 256 << 20 // packed-refs
	maxRefHops   = 5         // from one symbolic ref to the next
)

// Named are the refs of a repo at one moment, and the HEAD of one of its checkouts.
type Named struct {
	Refs   map[string]string // object name by full ref name; ours are left out
	Branch string            // full name of the branch of HEAD; "" = detached
	Head   string            // commit of HEAD; "" before the first commit
}

// NamedBy reads all refs, and the HEAD of the checkout at top. A repo that keeps its refs in files is read without a git
// program; another (reftable) is asked by one.
func (r *Repo) NamedBy(ctx context.Context, top string) (Named, error) {
	gitDir, real, err := r.gitDirOf(top)
	if err != nil {
		return Named{}, err
	}
	n, err := Named{}, error(nil)
	if isDir(filepath.Join(r.common, "reftable")) {
		n, err = r.askNamed(ctx, real)
	} else {
		n, err = r.readNamed(gitDir)
	}
	if err != nil {
		return n, fmt.Errorf("refs: %w", err)
	}
	return n, nil
}

// askNamed is NamedBy with the git program.
func (r *Repo) askNamed(ctx context.Context, top string) (n Named, err error) {
	all, err := r.Refs(ctx)
	if err != nil {
		return n, err
	}
	n.Refs = map[string]string{}
	for name, sha := range all {
		if !strings.HasPrefix(name, HeadPrefix) && !notShared(name) {
			n.Refs[name] = sha
		}
	}
	trees, err := r.Worktrees(ctx)
	for _, t := range trees {
		if real, rerr := filepath.EvalSymlinks(t.Path); rerr == nil && real == top {
			n.Branch, n.Head = t.Branch, t.Head
		}
	}
	return n, err
}

// notShared reports whether a ref is ours, or of one worktree alone.
func notShared(name string) bool {
	return slices.ContainsFunc([]string{ownRefs, "refs/bisect/", "refs/worktree/", "refs/rewritten/"}, func(p string) bool {
		return strings.HasPrefix(name, p)
	})
}

// readNamed is NamedBy from the files. Loose refs come first: whoever packs them writes the pack before it removes them.
func (r *Repo) readNamed(gitDir string) (n Named, err error) {
	loose, symbolic := map[string]string{}, map[string]string{}
	err = filepath.WalkDir(filepath.Join(r.common, "refs"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its last ref was deleted meanwhile
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.common, path)
		if name = filepath.ToSlash(name); err == nil && d.IsDir() {
			if notShared(name + "/") { // each attempt leaves some there
				err = fs.SkipDir
			}
			return err
		}
		if err != nil || notShared(name) || strings.HasSuffix(name, ".lock") || !plainRef(name) {
			return err
		}
		sha, to, err := readRef(filepath.Dir(path), filepath.Base(path))
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case to != "":
			symbolic[name] = to
		case sha != "":
			loose[name] = sha
		}
		if len(loose)+len(symbolic) > maxRefs {
			return fmt.Errorf("more than %d: pack or delete some", maxRefs)
		}
		return nil
	})
	if err != nil {
		return n, err
	}
	if n.Refs, err = r.packed(); err != nil {
		return n, err
	}
	for name, sha := range loose {
		n.Refs[name] = sha
	}
	for name, to := range symbolic {
		for hop := 0; symbolic[to] != "" && hop < maxRefHops; hop++ {
			to = symbolic[to]
		}
		if sha := n.Refs[to]; sha != "" {
			n.Refs[name] = sha
		}
	}
	sha, to, err := readRef(gitDir, "HEAD")
	if err != nil {
		return n, err
	}
	if n.Head = sha; to != "" {
		n.Branch, n.Head = to, n.Refs[to]
	}
	return n, nil
}

// readRef reads a loose ref: an object name, or the name of another ref. One that is broken has neither.
func readRef(dir, name string) (sha, to string, err error) {
	data, _, err := atomicfile.OpenRegular(dir, name, maxRefFile)
	if err != nil {
		return "", "", err
	}
	text := strings.TrimSpace(string(data))
	if rest, ok := strings.CutPrefix(text, "ref:"); ok {
		to = strings.TrimSpace(rest)
		if !strings.HasPrefix(to, "refs/") || !plainRef(to) {
			to = ""
		}
		return "", to, nil
	}
	if checkSHA(text) != nil || strings.Trim(text, "0") == "" {
		return "", "", nil
	}
	return text, "", nil
}

// plainRef reports whether a ref's name can stand in a line of a file.
func plainRef(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
}

// packed is packedRefs without ours and those of one worktree.
func (r *Repo) packed() (map[string]string, error) {
	refs, err := r.packedRefs()
	maps.DeleteFunc(refs, func(name, _ string) bool { return notShared(name) || !plainRef(name) })
	return refs, err
}

// packedRefs reads packed-refs.
func (r *Repo) packedRefs() (map[string]string, error) {
	data, _, err := atomicfile.OpenRegular(r.common, "packed-refs", maxRefPacked)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return parseRefs(data, " "), err
}

// PackedRefs writes refs as git keeps them in one file.
func PackedRefs(refs map[string]string) []byte {
	names := make([]string, 0, len(refs))
	for name := range refs {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	b.WriteString("# pack-refs with: sorted \n")
	for _, name := range names {
		b.WriteString(refs[name] + " " + name + "\n")
	}
	return b.Bytes()
}

func isDir(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}
