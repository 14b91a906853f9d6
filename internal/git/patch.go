package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// flagOutput limits the streamed list of an index's entries.
const flagOutput = 1 << 30

// ErrIndex is returned if git cannot read the index of a checkout.
var ErrIndex = errors.New("the index cannot be read")

// copyIndex makes the copy to patch. A checkout without an index has an empty one.
func (h *HeldIndex) copyIndex() (err error) {
	if err := h.dropNew(); err != nil {
		return err
	}
	in, err := h.root.Open(indexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file", ErrIndex, filepath.Join(h.gitDir, indexFile))
	}
	out, err := h.root.OpenFile(patchedNew, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// git runs a call on the copy. It runs in the repo, whose index settings (sparse, split) apply;
// none of the subcommands reads a file or starts a program.
func (h *HeldIndex) git(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	out, err := h.r.inRepo(ctx, h.gitDir, h.top, h.call(stdin, args...))
	return out, h.indexError(err)
}

func (h *HeldIndex) call(stdin string, args ...string) call {
	env := append(ourIdentity(), "GIT_INDEX_FILE="+filepath.Join(h.gitDir, patchedNew))
	return call{args: args, env: env, stdin: strings.NewReader(stdin), limit: listOutput, timeout: treeTime}
}

// indexError distinguishes an index that git cannot read from other errors.
func (h *HeldIndex) indexError(err error) error {
	if cmd, ok := errors.AsType[*CommandError](err); ok && strings.Contains(cmd.Stderr, "index") {
		for _, words := range []string{"corrupt", "bad signature", "bad index", "unknown index",
			"smaller than expected", "cannot fetch"} {
			if strings.Contains(cmd.Stderr, words) {
				return fmt.Errorf("%w: %s: %w", ErrIndex, filepath.Join(h.gitDir, indexFile), err)
			}
		}
	}
	return err
}

// Staged is what an index has and a commit lacks.
type Staged struct {
	Paths    []string
	Unmerged []string // unresolved conflicts
}

// Staged compares the index with a commit or tree; "" is the empty tree. An intent to add a file is
// not staged.
func (h *HeldIndex) Staged(ctx context.Context, from string) (s Staged, err error) {
	if err := h.copyIndex(); err != nil {
		return s, err
	}
	out, err := h.git(ctx, "", "diff-index", "--cached", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff",
		"--no-textconv", "--ita-invisible-in-index", "--ignore-submodules=dirty", cmp.Or(from, h.r.emptyTree()))
	if err != nil {
		return s, err
	}
	fields := names(out)
	for i := 0; i+1 < len(fields); i += 2 {
		s.Paths = append(s.Paths, fields[i+1])
		if strings.HasSuffix(fields[i], " U") {
			s.Unmerged = append(s.Unmerged, fields[i+1])
		}
	}
	return s, nil
}

// flags are the marks of an index's entries that a new entry lacks.
type flags struct {
	skipped   map[string]bool // skip-worktree
	unchanged map[string]bool // assume-unchanged
	sparse    bool            // some entry is skip-worktree
}

// flags returns the marks of the paths.
func (h *HeldIndex) flags(ctx context.Context, paths map[string]bool) (flags, error) {
	f := flags{skipped: map[string]bool{}, unchanged: map[string]bool{}}
	c := h.call("", "ls-files", "-z", "-v")
	c.limit = flagOutput
	err := h.r.streamIn(ctx, h.gitDir, h.top, c, func(in io.Reader) error {
		return eachLine(in, func(entry string) {
			tag, path, _ := strings.Cut(entry, " ")
			skipped := strings.EqualFold(tag, "S")
			f.sparse = f.sparse || skipped
			if paths[path] {
				f.skipped[path] = skipped
				f.unchanged[path] = tag != "" && strings.ToLower(tag) == tag
			}
		})
	})
	return f, h.indexError(err)
}

// Patch makes the finished copy: the index with the new side of the changes, none of which may be
// staged. Marks stay. In a sparse checkout an added file that does not exist is marked skipped;
// otherwise git would show it as deleted.
func (h *HeldIndex) Patch(ctx context.Context, changes []Change) error {
	if err := h.copyIndex(); err != nil {
		return err
	}
	paths := map[string]bool{}
	for _, c := range changes {
		paths[c.Path] = true
	}
	marks, err := h.flags(ctx, paths)
	if err != nil {
		return err
	}
	if _, err := h.git(ctx, indexLines(changes), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	var skip, unchanged strings.Builder
	for _, c := range changes {
		if c.Deleted() {
			continue
		}
		_, err := os.Lstat(filepath.Join(h.top, filepath.FromSlash(c.Path)))
		if errors.Is(err, fs.ErrNotExist) && (marks.skipped[c.Path] || marks.sparse && c.Added()) {
			skip.WriteString(c.Path + "\x00")
		}
		if marks.unchanged[c.Path] {
			unchanged.WriteString(c.Path + "\x00")
		}
	}
	for _, m := range []struct{ mark, paths string }{{"--skip-worktree", skip.String()},
		{"--assume-unchanged", unchanged.String()}} {
		if m.paths == "" {
			continue
		}
		if _, err := h.git(ctx, m.paths, "update-index", m.mark, "-z", "--stdin"); err != nil {
			return err
		}
	}
	return h.finish()
}

// finish syncs the copy and renames it.
func (h *HeldIndex) finish() error {
	f, err := h.root.Open(patchedNew)
	if errors.Is(err, fs.ErrNotExist) { // no index and nothing to put in it
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := h.root.Rename(patchedNew, patchedIndex); err != nil {
		return err
	}
	return settle(h.gitDir)
}
