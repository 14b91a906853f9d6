package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
)

// Limits on one launch's Git LFS files.
const (
	maxLFSFiles = 10_000
	maxLFSBytes = 8 << 30
)

// CarryLFS copies the folder's Git LFS files to the repo's, beside its first object store. It skips
// files whose content does not match their name, which is the content's digest, and files behind
// links, which may be other repos'. It runs no git. If there are too many files, the error is a
// *Refused and none is copied.
func (p Private) CarryLFS(ctx context.Context) error {
	if len(p.Stores) == 0 {
		return nil
	}
	from, to := filepath.Join(p.Dir, "lfs", "objects"), filepath.Join(filepath.Dir(p.Stores[0]), "lfs", "objects")
	fail := func(err error) error {
		if _, refused := errors.AsType[*Refused](err); err == nil || refused {
			return err
		}
		return fmt.Errorf("files of git LFS in %s: %w", from, err)
	}
	if info, err := os.Lstat(filepath.Dir(from)); err == nil && !info.IsDir() {
		return nil
	}
	list, err := toCarry(ctx, from, to)
	if err != nil {
		return fail(err)
	}
	left := int64(maxLFSBytes)
	for _, rel := range list {
		n, err := carry(from, rel, to, left)
		if err != nil {
			return fail(err)
		}
		left -= n
	}
	return nil
}

// tooMuch is the error of an attempt with more Git LFS files than allowed.
func tooMuch(most string) error {
	return &Refused{"it has more than " + most + " of Git LFS: leave out of the work what it does not need"}
}

// toCarry returns the files that are missing in to.
func toCarry(ctx context.Context, from, to string) (list []string, err error) {
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == from {
			return fs.SkipAll
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		rel := filepath.Join(name[:min(2, len(name))], name[min(2, len(name)):min(4, len(name))], name)
		if sum, err := hex.DecodeString(name); err != nil || len(sum) != sha256.Size ||
			path != filepath.Join(from, rel) {
			return nil // an incomplete file, or something else
		}
		if _, err := os.Lstat(filepath.Join(to, rel)); err == nil {
			return nil
		}
		if list = append(list, rel); len(list) > maxLFSFiles {
			return tooMuch(fmt.Sprintf("%d files", maxLFSFiles))
		}
		return nil
	})
	return list, err
}

// carry copies one file of at most most bytes, if its content matches its name.
func carry(from, rel, to string, most int64) (n int64, err error) {
	in, _, err := atomicfile.Open(from, rel)
	if errors.Is(err, atomicfile.ErrNotRegular) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer in.Close()
	dir := filepath.Join(to, filepath.Dir(rel))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	tmp, err := os.CreateTemp(dir, ".sluice-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name())
	sum := sha256.New()
	n, err = io.Copy(io.MultiWriter(tmp, sum), io.LimitReader(in, most+1))
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return n, err
	}
	if n > most {
		return n, tooMuch(sized(maxLFSBytes) + " of files")
	}
	if !strings.EqualFold(hex.EncodeToString(sum.Sum(nil)), filepath.Base(rel)) {
		return n, nil
	}
	return n, os.Rename(tmp.Name(), filepath.Join(dir, filepath.Base(rel)))
}
