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
	"sluice/internal/fault"
)

// Limits on what is read of a repo's refs.
const (
	maxRefs      = 1_000_000
	maxRefFile   = 8 << 10   // a loose ref
	maxRefPacked = 256 << 20 // packed-refs
	maxRefHops   = 5         // symbolic refs in a chain
)

// Named is a repo's refs at one moment, and the HEAD of one of its checkouts.
type Named struct {
	Refs   map[string]string // object name by full ref name, without our own
	Branch string            // full name of HEAD's branch; "" = detached
	Head   string            // HEAD's commit; "" before the first commit
}

// NamedBy reads all refs, and the HEAD of the checkout at top. It reads ref files itself and runs
// git only for reftable.
func (r *refs) NamedBy(ctx context.Context, top string) (n Named, err error) {
	gitDir, real, err := r.gitDirOf(top)
	if err != nil {
		return n, err
	}
	if n.Refs, err = r.refsBelow(ctx, allRefs); err == nil {
		if r.isReftable() {
			n.Branch, n.Head, err = r.askHead(ctx, real)
		} else if n.Head, n.Branch, err = readRef(gitDir, "HEAD"); n.Branch != "" {
			n.Head = n.Refs[n.Branch]
		}
	}
	if err != nil {
		return n, fmt.Errorf("refs: %w", err)
	}
	return n, nil
}

// BranchOf reads the full name of the branch of the checkout at top from its HEAD file, or "". ok
// is false if only git can read it.
func (r *refs) BranchOf(top string) (branch string, ok bool) {
	gitDir, real, err := r.gitDirOf(top)
	if err != nil || real != top || r.isReftable() {
		return "", false
	}
	sha, branch, err := readRef(gitDir, "HEAD")
	return branch, err == nil && (sha != "" || branch != "")
}

// askHead reads the HEAD of the checkout at top with the git program.
func (r *refs) askHead(ctx context.Context, top string) (branch, head string, err error) {
	trees, err := r.Worktrees(ctx)
	for _, t := range trees {
		if real, rerr := filepath.EvalSymlinks(t.Path); rerr == nil && real == top {
			branch, head = t.Branch, t.Head
		}
	}
	return branch, head, err
}

// notShared reports whether a ref is ours, or belongs to one worktree.
func notShared(name string) bool {
	return slices.ContainsFunc([]string{ownRefs, "refs/bisect/", "refs/worktree/", "refs/rewritten/"},
		func(p string) bool { return strings.HasPrefix(name, p) })
}

// allRefs is the folder of all refs.
const allRefs = "refs/"

// refsBelow returns the refs whose names begin with under; for all refs it omits ours and those of
// one worktree. It reads ref files itself: git skips what it cannot read and still succeeds.
func (r *refs) refsBelow(ctx context.Context, under string) (map[string]string, error) {
	if r.isReftable() {
		return r.askRefs(ctx, under)
	}
	return r.readRefs(ctx, under)
}

// askRefs is refsBelow with the git program.
func (r *refs) askRefs(ctx context.Context, under string) (map[string]string, error) {
	c := call{args: []string{"for-each-ref", "--format=%(objectname) %(refname)", under}, limit: listOutput}
	out, err := r.inRepo(ctx, r.common, r.top, c)
	refs := parseRefs(out, " ")
	maps.DeleteFunc(refs, func(name, _ string) bool { return otherwise(name, under) })
	return refs, err
}

// otherwise reports whether refsBelow omits a ref.
func otherwise(name, under string) bool {
	return !strings.HasPrefix(name, under) || under == allRefs && notShared(name)
}

// readRefs is refsBelow from the files. It reads loose refs first, because packing writes the pack
// before it removes them.
func (r *refs) readRefs(ctx context.Context, under string) (map[string]string, error) {
	loose, symbolic := map[string]string{}, map[string]string{}
	top := filepath.Join(r.common, filepath.FromSlash(under)) + string(filepath.Separator) // works if that is a link
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its last ref was deleted meanwhile
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.common, path)
		if name = filepath.ToSlash(name); err == nil && d.IsDir() && under == allRefs && notShared(name+"/") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || otherwise(name, under) || checkRef(name) != nil {
			return err
		}
		if len(loose)+len(symbolic) >= maxRefs {
			return fault.New("pack or delete some", "more than %d", maxRefs)
		}
		if d.Type()&fs.ModeSymlink != 0 { // from an old git
			linked, err := r.askRefs(ctx, name)
			maps.Copy(loose, linked)
			return err
		}
		sha, to, err := readRef(filepath.Dir(path), filepath.Base(path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case to != "":
			symbolic[name] = to
		default:
			loose[name] = sha
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	refs, err := r.packedRefs()
	if err != nil {
		return nil, err
	}
	maps.Copy(refs, loose)
	for name, to := range symbolic {
		for hop := 0; symbolic[to] != "" && hop < maxRefHops; hop++ {
			to = symbolic[to]
		}
		refs[name] = refs[to]
	}
	maps.DeleteFunc(refs,
		func(name, sha string) bool { return sha == "" || otherwise(name, under) || checkRef(name) != nil })
	return refs, nil
}

// readRef reads a loose ref: an object name, or the name of another ref. A broken ref has neither.
func readRef(dir, name string) (sha, to string, err error) {
	data, _, err := atomicfile.OpenRegular(dir, name, maxRefFile)
	if err != nil {
		return "", "", err
	}
	text := strings.TrimSpace(string(data))
	if rest, ok := strings.CutPrefix(text, "ref:"); ok {
		to = strings.TrimSpace(rest)
		if checkRef(to) != nil {
			to = ""
		}
		return "", to, nil
	}
	if checkSHA(text) != nil || strings.Trim(text, "0") == "" {
		return "", "", nil
	}
	return text, "", nil
}

// packedRefs reads packed-refs.
func (r *refs) packedRefs() (map[string]string, error) {
	data, _, err := atomicfile.OpenRegular(r.common, "packed-refs", maxRefPacked)
	return parseRefs(data, " "), ignoreGone(err)
}

// PackedRefs formats refs as git's packed-refs file.
func PackedRefs(refs map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		b.WriteString(refs[name] + " " + name + "\n")
	}
	return b.Bytes()
}

// isReftable reports whether only git can read the repo's refs.
func (r *place) isReftable() bool { return isDir(filepath.Join(r.common, "reftable")) }

func isDir(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}
