package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sluice/internal/atomicfile"
)

// MaxDigested is how many files one digest covers, including those in folders.
const MaxDigested = 50_000

// ErrTooMany is returned for a digest of more than MaxDigested files.
var ErrTooMany = errors.New("too many files")

// Digest returns the SHA-256, in hex, of the files' path, kind, executable bit and content. Paths
// are slash-separated, relative to the worktree, in any order; duplicates count once. A missing
// file counts as missing, a link as its text, a folder as its contents except a .git. Files are
// streamed; the context limits the time. Nothing outside the worktree is followed.
func Digest(ctx context.Context, worktree string, files []string) (string, error) {
	worktree, err := filepath.EvalSymlinks(worktree)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	if files, err = expand(worktree, files); err != nil {
		return "", fmt.Errorf("digest of %s: %w", worktree, err)
	}
	sum := sha256.New()
	for _, name := range files {
		if err := addFile(ctx, sum, worktree, name, name); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// DigestAs is Digest of one file under another name: for a file not in place yet.
func DigestAs(ctx context.Context, worktree, file, as string) (string, error) {
	sum := sha256.New()
	err := addFile(ctx, sum, worktree, file, as)
	return hex.EncodeToString(sum.Sum(nil)), err
}

func addFile(ctx context.Context, sum hash.Hash, worktree, file, as string) error {
	kind, content, err := digestFile(ctx, worktree, file)
	if err != nil {
		return fmt.Errorf("digest of %s: %q: %w", worktree, file, err)
	}
	// The length comes first, so that no name or content can be read as another entry.
	fmt.Fprintf(sum, "%d %s %s %s\n", len(as), as, kind, content)
	return nil
}

// expand expands folders, sorts the names and drops duplicates.
func expand(worktree string, files []string) ([]string, error) {
	var all []string
	add := func(name string) error {
		if len(all) >= 2*MaxDigested {
			return ErrTooMany
		}
		all = append(all, name)
		return nil
	}
	for _, f := range files {
		name := strings.TrimSuffix(f, "/")
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("%q leads out of the worktree", f)
		}
		root := filepath.Join(worktree, filepath.FromSlash(name))
		if info, err := os.Lstat(root); err != nil || !info.IsDir() {
			if err := add(name); err != nil {
				return nil, err
			}
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == ".git" && path != root {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if d.IsDir() {
				return nil
			}
			rel, err := filepath.Rel(worktree, path)
			if err != nil {
				return err
			}
			return add(filepath.ToSlash(rel))
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > MaxDigested {
		return nil, fmt.Errorf("%w: at most %d", ErrTooMany, MaxDigested)
	}
	return all, nil
}

// digestFile returns the file's kind and the digest of its content.
func digestFile(ctx context.Context, worktree, name string) (kind, content string, err error) {
	local := filepath.FromSlash(name)
	f, st, err := atomicfile.Open(worktree, local)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "missing", "-", nil
	case errors.Is(err, atomicfile.ErrNotRegular) && st.Mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(filepath.Join(worktree, local))
		if err != nil {
			return "", "", err
		}
		sum := sha256.Sum256([]byte(target))
		return "link", hex.EncodeToString(sum[:]), nil
	case errors.Is(err, atomicfile.ErrNotRegular):
		// A pipe, a socket, or a file behind a linked folder: its content is not the worktree's.
		return "special", st.Mode.Type().String(), nil
	default:
		return "", "", err
	}
	kind = "file"
	if st.Mode&0o111 != 0 {
		kind = "executable"
	}
	sum := sha256.New()
	err = copyUnder(ctx, sum, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", "", err
	}
	return kind, hex.EncodeToString(sum.Sum(nil)), nil
}

// copyUnder copies until the context is done: a sparse file can be larger than any disk.
func copyUnder(ctx context.Context, sum hash.Hash, f io.Reader) error {
	buf := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
