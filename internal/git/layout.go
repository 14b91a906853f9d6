package git

import (
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
)

// treeBytes limits the list of a tree's files. It is never truncated: more is an error.
const treeBytes = 512 << 20

// Entry is a file of a tree.
type Entry struct {
	Mode   string // 100644, 100755, 120000 (a link), 160000 (a submodule)
	Object string
	Path   string // in git's form
}

// Entries lists the files of a commit in git's order.
func (r *objects) Entries(ctx context.Context, commit string) ([]Entry, error) {
	if err := checkSHA(commit); err != nil {
		return nil, fmt.Errorf("files of a commit: %w", err)
	}
	c := call{args: []string{"ls-tree", "-r", "-z", "--full-tree", commit}, limit: treeBytes, timeout: treeTime}
	out, err := r.shadow(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", commit, err)
	}
	var list []Entry
	for _, line := range names(out) {
		head, path, ok := strings.Cut(line, "\t")
		words := strings.Fields(head)
		if !ok || len(words) != 3 || checkSHA(words[2]) != nil {
			return nil, fmt.Errorf("files of %s: git printed %.80q", commit, line)
		}
		list = append(list, Entry{Mode: words[0], Object: words[2], Path: path})
	}
	return list, nil
}

// HasCommit reports whether the commit exists.
func (r *objects) HasCommit(ctx context.Context, sha string) (bool, error) {
	known, err := r.Peel(ctx, []string{sha})
	return err == nil && known[0] != "", err
}

// LayOut writes files of a commit into the folder top through the caller's index, which then has
// the commit's entries. The caller has removed what must be replaced. No filter runs.
func (r *objects) LayOut(ctx context.Context, top, index, commit string, paths []string) error {
	if err := checkSHA(commit); err != nil {
		return fmt.Errorf("write the files of a commit: %w", err)
	}
	env := []string{"GIT_WORK_TREE=" + top, "GIT_INDEX_FILE=" + index}
	run := func(in io.Reader, args ...string) error {
		_, err := r.shadow(ctx, call{args: args, env: env, dir: top, stdin: in, timeout: treeTime})
		return err
	}
	err := unlockIndex(index)
	if err == nil {
		err = run(nil, "read-tree", "-m", commit)
		if err != nil && ctx.Err() == nil { // the index is of a killed git, or of another release
			if err = ignoreGone(os.Remove(index)); err == nil {
				err = run(nil, "read-tree", commit)
			}
		}
	}
	if err == nil && len(paths) > 0 {
		err = run(listOf(paths), "checkout-index", "-u", "-q", "-z", "--stdin")
	}
	if err != nil {
		return fmt.Errorf("write the files of %s: %w", commit, err)
	}
	return nil
}

// PlainFolder creates a git folder at dir, which must not exist: HEAD at the commit, the repo's
// refs, a copy of an index, and none of the repo's settings that could start a program. It borrows
// objects from the named folders, whose paths must be valid for its user.
func (r *Repo) PlainFolder(ctx context.Context, dir, commit, index string, objects []string) error {
	if err := r.plainFolder(ctx, dir, commit, index, objects); err != nil {
		return fmt.Errorf("git folder: %w", err)
	}
	return nil
}

func (r *Repo) plainFolder(ctx context.Context, dir, commit, index string, objects []string) error {
	if err := checkSHA(commit); err != nil {
		return err
	}
	config, err := r.shadowConfig(ctx)
	if err != nil {
		return err
	}
	refs, err := r.refsBelow(ctx, allRefs)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"config": config, "packed-refs": PackedRefs(refs), "HEAD": []byte(commit + "\n"),
		"info/attributes":         []byte("* diff\n"), // no attribute in the commit hides a file's content
		"objects/info/alternates": []byte(strings.Join(objects, "\n") + "\n"),
	}
	shallow, _, err := atomicfile.OpenRegular(r.common, "shallow", listOutput)
	if err == nil {
		files["shallow"] = shallow
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range []string{"refs", "objects/info", "objects/pack", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, d), privateDir); err != nil {
			return err
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, privateOwn); err != nil {
			return err
		}
	}
	return copyFile(index, filepath.Join(dir, indexFile))
}

// Beside lists the files of a worktree that are not in a commit, ignored ones included. Files for
// which own reports true do not count. A nested repo counts as one.
func (r *shadowGit) Beside(ctx context.Context, worktree, commit string, own func(file string) bool) ([]string, error) {
	if err := checkSHA(commit); err != nil {
		return nil, err
	}
	if err := r.keepShadow(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.scratch, "beside-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	env := r.inShadowTree(worktree, filepath.Join(dir, indexFile))
	var out []byte
	for _, args := range [][]string{{"read-tree", commit}, {"ls-files", "-z", "--others"}} {
		if out, err = r.run(ctx, call{args: args, env: env, dir: worktree, limit: treeBytes,
			timeout: treeTime}); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(names(out), own), nil
}
