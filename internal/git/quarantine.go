package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
)

// Quarantine holds objects from elsewhere until they are checked. It is beside the repo's objects,
// which git can read through it. Close removes it with whatever was not kept.
type Quarantine struct {
	r   *Repo
	dir string
}

// quarantinePrefix is a prefix that `git prune` removes, in case we are killed.
const quarantinePrefix = "tmp_objdir-sluice-"

// Quarantine creates one.
func (r *Repo) Quarantine(ctx context.Context) (*Quarantine, error) {
	if err := r.keepShadow(ctx); err != nil {
		return nil, err
	}
	own := filepath.Join(r.common, "objects")
	dir, err := os.MkdirTemp(own, quarantinePrefix)
	if err != nil {
		return nil, fmt.Errorf("quarantine: %w", err)
	}
	q := &Quarantine{r: r, dir: dir}
	for _, d := range []string{"info", "pack"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, d), privateDir))
	}
	if err == nil {
		// the repo's own objects
		err = os.WriteFile(filepath.Join(dir, "info", "alternates"), []byte("../\n"), privateOwn)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("quarantine: %w", err), q.Close())
	}
	return q, nil
}

// Close removes it.
func (q *Quarantine) Close() error { return os.RemoveAll(q.dir) }

func (q *Quarantine) run(ctx context.Context, c call) ([]byte, error) {
	c.env = append(q.r.inShadow(), append(c.env, "GIT_OBJECT_DIRECTORY="+q.dir)...)
	return q.r.run(ctx, c)
}

// Take reads a pack of at most most bytes. It checks every object as strictly as git can; a pack
// that fails is a CommandError.
func (q *Quarantine) Take(ctx context.Context, pack io.Reader, most int64) error {
	strict := "--strict=badFilemode=error,gitmodulesParse=error" // git would only warn
	if q.r.promises() != "" {
		strict = "--fsck-objects" // objects outside the pack may be missing on this machine; Connected checks
	}
	c := call{args: []string{"index-pack", "--stdin", "--fix-thin", strict, fmt.Sprintf("--max-input-size=%d", most)},
		stdin: pack, timeout: treeTime}
	_, err := q.run(ctx, c)
	return err
}

// promises names the remote that promises missing objects to a partial clone; "" for other repos.
func (r *place) promises() string {
	found, err := atomicfile.Glob(filepath.Join(r.common, "objects", "pack"), "*.promisor")
	if err != nil || len(found) == 0 {
		return ""
	}
	return "origin"
}

// Connected returns an error if an object reachable from tip but not from the bases is missing; base
// "" is empty. What a partial clone may lack counts as present.
func (q *Quarantine) Connected(ctx context.Context, tip string, bases ...string) error {
	in, err := span(tip, bases...)
	if err == nil {
		_, err = q.run(ctx, q.r.objectsOf(in))
	}
	return err
}

// Descends reports whether base is tip or one of its ancestors.
func (q *Quarantine) Descends(ctx context.Context, tip, base string) (bool, error) {
	return descends(ctx, q.run, tip, base)
}

// gitIn runs a git that sees certain objects.
type gitIn func(context.Context, call) ([]byte, error)

func descends(ctx context.Context, run gitIn, tip, base string) (bool, error) {
	if err := checkSHA(tip); err != nil {
		return false, err
	}
	in, err := span(base, tip)
	if err != nil {
		return false, err
	}
	out, err := run(ctx, call{args: []string{"rev-list", "--max-count=1", "--stdin"}, stdin: strings.NewReader(in),
		timeout: treeTime})
	return err == nil && len(out) == 0, err
}

// span returns rev-list's input for tip and its ancestors without the bases and theirs; "" is none.
func span(tip string, bases ...string) (string, error) {
	in, err := tip+"\n", checkSHA(tip)
	for _, base := range bases {
		if base != "" {
			in, err = in+"^"+base+"\n", errors.Join(err, checkSHA(base))
		}
	}
	return in, err
}

// Keep moves the packs to the repo's objects and points our ref, from Own, at a commit in them.
func (q *Quarantine) Keep(ctx context.Context, ref, commit string) error {
	from, to := filepath.Join(q.dir, "pack"), filepath.Join(q.r.common, "objects", "pack")
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, ending := range []string{".pack", ".rev", ".idx"} { // git looks for .idx, so it comes last
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ending) {
				continue
			}
			if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := atomicfile.SyncDir(to); err != nil {
		return err
	}
	if err := q.r.Keep(ctx, ref, commit); err != nil {
		return err
	}
	q.r.gather(ctx)
	return nil
}

const (
	// packsMost is how many packs may come before gather: every git reads the index of each.
	packsMost = 50
	// packLarge is the size in bytes from which gather leaves a pack alone.
	packLarge = 16 << 20
)

// gather packs loose objects and small packs into larger ones, once many packs have come. It removes
// no object. After a failure this process does not try again: git may leave half a pack each time.
func (r *Repo) gather(ctx context.Context) {
	if !r.gathering.TryLock() {
		return
	}
	defer r.gathering.Unlock()
	packs := filepath.Join(r.common, "objects", "pack")
	found, err := atomicfile.Glob(packs, "*.pack")
	if err != nil || len(found) < max(r.gatherAt, packsMost) || r.promises() != "" {
		return // a partial clone's packs are of two kinds
	}
	c := call{args: []string{"repack", "--geometric=2", "-d", "-l", "-q"}}
	for _, f := range found {
		if info, err := os.Lstat(f); err == nil && info.Size() >= packLarge {
			c.args = append(c.args, "--keep-pack="+filepath.Base(f))
		}
	}
	if _, err = r.shadow(context.WithoutCancel(ctx), c); err == nil {
		found, err = atomicfile.Glob(packs, "*.pack")
	}
	if r.gatherAt = len(found) + packsMost; err != nil {
		r.gatherAt = math.MaxInt
	}
}

// Submodule names a submodule that is new or at another commit in tip than in base, or "".
func (q *Quarantine) Submodule(ctx context.Context, base, tip string) (string, error) {
	list, err := changesBetween(ctx, q.run, q.r.emptyTree(), base, tip)
	for _, c := range list {
		if c.New == ModeSubmodule {
			return c.Path, err
		}
	}
	return "", err
}
