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
)

// Tip is where a ref is.
type Tip struct {
	SHA      string // "" = the ref does not exist
	Symbolic string // the ref that it stands for; "" = it is a ref of its own
}

// TipOf returns where a ref is, by its full name. A repo that keeps its refs in files is read without a git program: git passes
// over a file that it cannot read, or has an old place of the ref for it, and ends as if all were well.
func (r *Repo) TipOf(ctx context.Context, ref string) (t Tip, err error) {
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

// asksRef reports whether a ref is in no file that we read: a table, or a link of an old git.
func (r *Repo) asksRef(ref string) bool {
	info, err := os.Lstat(filepath.Join(r.common, filepath.FromSlash(ref)))
	return isDir(filepath.Join(r.common, "reftable")) || err == nil && info.Mode()&fs.ModeSymlink != 0
}

// askTip is TipOf with the git program.
func (r *Repo) askTip(ctx context.Context, ref string) (Tip, error) {
	out, err := r.inRepo(ctx, r.common, r.top, call{
		args:  []string{"for-each-ref", "--format=%(objectname) %(refname) %(symref)", ref},
		limit: listOutput, timeout: callTime,
	})
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
func (r *Repo) readTip(ref string) (t Tip, err error) {
	for range maxRefHops {
		sha, to, err := r.refFile(ref)
		if err != nil || to == "" {
			if t.SHA = sha; sha == "" { // a symbolic ref to nothing is none
				t = Tip{}
			}
			return t, err
		}
		t.Symbolic, ref = to, to
	}
	return Tip{}, fmt.Errorf("more than %d symbolic refs: remove one with git symbolic-ref --delete", maxRefHops)
}

// refFile is what the file of a ref says, else packed-refs: an object name, or the name of another ref.
func (r *Repo) refFile(ref string) (sha, to string, err error) {
	file := filepath.Join(r.common, filepath.FromSlash(ref))
	if !isDir(file) { // it can be left of other refs
		sha, to, err = readRef(filepath.Dir(file), filepath.Base(file))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		case err == nil && sha+to == "":
			return "", "", fmt.Errorf("%s names no commit: restore it from .git/logs, or remove it", file)
		default:
			return sha, to, err
		}
	}
	all, err := r.packedRefs()
	return all[ref], "", err
}

// Detached is the ref of a checkout that is on no branch.
const Detached = "HEAD"

// TipIn is TipOf; of Detached it is that of the checkout at top, which stands for a branch where it is on one.
func (r *Repo) TipIn(ctx context.Context, top, ref string) (Tip, error) {
	if ref != Detached {
		return r.TipOf(ctx, ref)
	}
	n, err := r.NamedBy(ctx, top)
	return Tip{SHA: n.Head, Symbolic: n.Branch}, err
}

// MoveRef has a ref name the commit to where it names from. "" stands for no ref: from makes it, to removes it. No hook runs. The note is for the
// reflog, whose entry is made in the checkout at top.
func (r *Repo) MoveRef(ctx context.Context, top, ref, from, to, note string) error {
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
	c := call{args: args, env: ourIdentity(), limit: smallOutput, timeout: callTime}
	if _, err := r.inRepo(ctx, gitDir, own, c); err != nil {
		return fmt.Errorf("move %s: %w", ref, err)
	}
	return settle(r.common)
}
