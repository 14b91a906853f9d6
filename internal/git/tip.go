package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice/internal/fault"
)

// Tip is where a ref points.
type Tip struct {
	SHA      string // "" = the ref does not exist
	Symbolic string // the ref it refers to; "" = not symbolic
}

// TipOf returns where a ref, by its full name, points. It reads ref files itself: git skips an
// unreadable file, or falls back to an old value, and still succeeds.
func (r *refs) TipOf(ctx context.Context, ref string) (t Tip, err error) {
	if err := checkRef(ref); err != nil {
		return Tip{}, err
	}
	if r.asksRef(ref) {
		t, err = r.askTip(ctx, ref)
	} else {
		t, err = r.readTip(ref)
	}
	if err != nil {
		return Tip{}, fmt.Errorf("read %s: %w", ref, err)
	}
	return t, nil
}

// asksRef reports whether only git can read the ref: reftable, or a link from an old git.
func (r *refs) asksRef(ref string) bool {
	info, err := os.Lstat(filepath.Join(r.common, filepath.FromSlash(ref)))
	return r.isReftable() || err == nil && info.Mode()&fs.ModeSymlink != 0
}

// askTip is TipOf with the git program.
func (r *refs) askTip(ctx context.Context, ref string) (Tip, error) {
	c := call{args: []string{"for-each-ref", "--format=%(objectname) %(refname) %(symref)", ref}, limit: listOutput}
	out, err := r.inRepo(ctx, r.common, r.top, c)
	if err != nil {
		return Tip{}, err
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(f) == 3 && f[1] == ref {
			return Tip{SHA: f[0], Symbolic: f[2]}, checkSHA(f[0])
		}
	}
	return Tip{}, nil
}

// readTip is TipOf from the files.
func (r *refs) readTip(ref string) (t Tip, err error) {
	for range maxRefHops {
		sha, to, err := r.refFile(ref)
		if err != nil || to == "" {
			if t.SHA = sha; sha == "" { // a symbolic ref to nothing does not exist
				t = Tip{}
			}
			return t, err
		}
		t.Symbolic, ref = to, to
	}
	return Tip{}, fault.New("remove one with git symbolic-ref --delete", "more than %d symbolic refs", maxRefHops)
}

// refFile reads a ref's file, else packed-refs: an object name, or the name of another ref.
func (r *refs) refFile(ref string) (sha, to string, err error) {
	file := filepath.Join(r.common, filepath.FromSlash(ref))
	if !isDir(file) { // an empty folder can be left over from other refs
		sha, to, err = readRef(filepath.Dir(file), filepath.Base(file))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		case err == nil && sha+to == "":
			return "", "", fault.New("restore it from .git/logs, or remove it", "%s names no commit", file)
		default:
			return sha, to, err
		}
	}
	all, err := r.packedRefs()
	return all[ref], "", err
}

// Detached is the ref of a checkout that is on no branch.
const Detached = "HEAD"

// TipIn is TipOf; for Detached it returns the HEAD of the checkout at top, with its branch if there is one.
func (r *refs) TipIn(ctx context.Context, top, ref string) (Tip, error) {
	if ref != Detached {
		return r.TipOf(ctx, ref)
	}
	n, err := r.NamedBy(ctx, top)
	return Tip{SHA: n.Head, Symbolic: n.Branch}, err
}

// MoveRef moves a ref from the commit from to the commit to. "" means no ref: from "" creates it,
// to "" deletes it. No hook runs. The note goes into the reflog, in the checkout at top.
func (r *refs) MoveRef(ctx context.Context, top, ref, from, to, note string) error {
	if err := checkRef(ref); err != nil && ref != Detached {
		return err
	}
	for _, sha := range []string{from, to} {
		if err := checkSHA(sha); err != nil && sha != "" {
			return fmt.Errorf("move %s: %w", ref, err)
		}
	}
	args := []string{"update-ref", "--no-deref", "-m", note, ref, to, from}
	switch {
	case to == "":
		args = []string{"update-ref", "--no-deref", "-m", note, "-d", ref, from}
	case from == "":
		args[len(args)-1] = strings.Repeat("0", len(to))
	}
	gitDir, own, err := r.gitDirOf(top)
	if err != nil {
		return err
	}
	if _, err := r.inRepo(ctx, gitDir, own, call{args: args, env: ourIdentity()}); err != nil {
		return r.locked(gitDir, ref, fmt.Errorf("move %s: %w", ref, err))
	}
	return settle(r.common)
}

// locked is the error of a git that has not moved a ref: that of its lock, if there is one.
func (r *refs) locked(gitDir, ref string, err error) error {
	lock := r.lockOf(gitDir, ref)
	switch {
	case lock == "":
		return err
	case strings.Contains(err.Error(), lock), strings.Contains(err.Error(), "cannot lock references"): // reftable
		return heldBy(lock)
	}
	return fmt.Errorf("%w (git has failed here: %w)", heldBy(lock), err) // and may have left the lock
}

// refWait is how long another git may hold a branch; git itself waits a tenth of it.
const refWait = time.Second

// AwaitRef waits until no other git is changing a ref, or HEAD of the checkout at top, which moves
// with its branch.
func (r *refs) AwaitRef(ctx context.Context, top, ref string) error {
	gitDir, _, err := r.gitDirOf(top)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, refWait)
	defer cancel()
	lock := ""
	free := func() (bool, error) {
		lock = r.lockOf(gitDir, ref)
		return lock == "", nil
	}
	return until(ctx, free, func() error { return heldBy(lock) })
}

// lockOf returns the lock file of a ref, or of a checkout's HEAD, or "". A repo of the format
// reftable has one lock for all its refs (git's reftable.adoc, "Update transactions").
func (r *refs) lockOf(gitDir, ref string) string {
	for _, file := range []string{filepath.Join(r.common, filepath.FromSlash(ref)), filepath.Join(gitDir, Detached),
		filepath.Join(r.common, "reftable", "tables.list")} {
		if _, err := os.Lstat(file + ".lock"); err == nil {
			return file + ".lock"
		}
	}
	return ""
}
