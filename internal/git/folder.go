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
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/git/index"
)

// maxSeedCheap is the index size up to which reading all files again is cheaper than waiting.
const maxSeedCheap = 1 << 20

// FolderTree writes the files of a worktree as a tree object: those of the commit from ("" = none)
// in their current state, and new ones that are not ignored. Paths in own (files and folders,
// slash-separated, from the worktree's top) stay as in from, or out of the tree. It trusts neither
// the worktree's own index nor its flags. No filter runs.
func (r *Repo) FolderTree(ctx context.Context, worktree, from string, own []string) (tree string, err error) {
	tree, rest, err := r.FolderTreeAhead(ctx, worktree, from, own)
	if err == nil {
		err = rest()
	}
	return tree, err
}

// FolderTreeAhead is FolderTree, but returns the tree before all work is done. The caller must call
// rest, which waits for what the next call needs to detect changes.
func (r *Repo) FolderTreeAhead(ctx context.Context, worktree, from string,
	own []string) (tree string, rest func() error, err error) {
	fail := func(err error) error { return fmt.Errorf("files of %s: %w", worktree, err) }
	t, err := r.openFolder(ctx, worktree, from, own)
	if err != nil {
		return "", nil, fail(err)
	}
	began := time.Now()
	if tree, err = t.write(ctx, own); err != nil {
		t.unlock()
		return "", nil, fail(err)
	}
	done := make(chan error, 1)
	go func() {
		defer t.unlock()
		done <- t.settle(tree, began)
	}()
	return tree, func() error {
		if err := <-done; err != nil {
			return fail(err)
		}
		return nil
	}, nil
}

// openFolder opens our index of a worktree with the entries of the commit from.
func (r *Repo) openFolder(ctx context.Context, worktree, from string, own []string) (*tree, error) {
	gitDir, top, err := r.gitDirOf(worktree)
	if err != nil {
		return nil, err
	}
	t, err := r.openIndex(ctx, top, from)
	if err != nil {
		return nil, err
	}
	exclude, err := r.excludeFile(t.index, own)
	if err == nil {
		t.env = append(t.env, setting("core.excludesFile", exclude)...)
		err = t.prepare(ctx, gitDir)
	}
	if err != nil {
		t.unlock()
		return nil, err
	}
	return t, nil
}

// prepare loads the entries of t.head into our index and keeps the cached state of unchanged files.
func (t *tree) prepare(ctx context.Context, gitDir string) error {
	if err := t.entries(ctx, gitDir); err != nil {
		return err
	}
	info, err := os.Lstat(filepath.Join(gitDir, "info", "sparse-checkout"))
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return t.sparse(ctx, filepath.Join(gitDir, indexFile))
}

// sparse marks files that a sparse checkout omits, which would otherwise count as removed. An
// existing file is never marked, whatever the checkout's own index says.
func (t *tree) sparse(ctx context.Context, theirs string) error {
	if err := t.unflag(ctx); err != nil {
		return err
	}
	list, err := t.entriesIn(ctx, t.r.inShadowTree(t.top, theirs), "-v")
	if err != nil {
		return err
	}
	known, err := t.entriesIn(ctx, t.env)
	if err != nil {
		return err
	}
	ours := setOf(known)
	var left []string
	for _, line := range list {
		tag, name, _ := strings.Cut(line, " ")
		if !strings.EqualFold(tag, "s") || !ours[name] {
			continue
		}
		if _, err := os.Lstat(filepath.Join(t.top, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	_, err = t.feed(ctx, listOf(left), "update-index", "-z", "--skip-worktree", "--stdin")
	return err
}

// entries is prepare without sparse checkouts.
func (t *tree) entries(ctx context.Context, gitDir string) error {
	if err := unlockIndex(t.index); err != nil {
		return err
	}
	_, err := os.Lstat(t.index)
	if errors.Is(err, fs.ErrNotExist) {
		err = t.seed(ctx, gitDir)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(t.index); err == nil && t.has(ctx) {
		return nil
	}
	return t.readHead(ctx)
}

// holdsName is the suffix of the file that names the tree whose entries an index has.
const holdsName = ".tree"

// has reports whether our index has the entries of t.head already. It consumes the note of that.
func (t *tree) has(ctx context.Context) bool {
	note, err := os.ReadFile(t.index + holdsName)
	if err != nil || os.Remove(t.index+holdsName) != nil {
		return false
	}
	tree, err := t.r.TreeOf(ctx, t.head)
	return err == nil && tree == string(note)
}

// seed copies the checkout's own index, which saves reading every file of a large repo. This does
// not trust an agent: the first copy precedes any agent's work there, and write removes flags.
func (t *tree) seed(ctx context.Context, gitDir string) error {
	own := filepath.Join(gitDir, indexFile)
	info, err := os.Lstat(own)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= maxSeedCheap {
		return nil // reading all files is cheap, or there is nothing to copy
	}
	if err := afterSecond(ctx, info.ModTime()); err != nil {
		return err
	}
	if err := copyFile(own, t.index); err != nil {
		return errors.Join(err, ignoreGone(os.Remove(t.index)))
	}
	if err := t.plainIndex(ctx, gitDir); err != nil {
		return err
	}
	if _, err := os.Lstat(t.index); err != nil {
		return nil
	}
	return t.unflag(ctx)
}

// plainIndex makes the copied index self-contained and removes what can hide a change.
func (t *tree) plainIndex(ctx context.Context, gitDir string) error {
	shared, err := sharedIndexes(gitDir)
	if err != nil {
		return err
	}
	for _, f := range shared { // a split index names a file with the rest, in the current git folder
		data, err := atomicfile.Read(f, maxIndex)
		if err == nil {
			err = os.WriteFile(filepath.Join(t.r.shadowDir(), filepath.Base(f)), data, privateOwn)
		}
		if err != nil {
			return err
		}
	}
	for _, change := range [][]string{{"--no-split-index"}, {"--no-fsmonitor"}, {"--no-untracked-cache"},
		{"--index-version", "2"}} { // package index reads it
		if _, err := t.run(ctx, append([]string{"update-index"}, change...)...); err != nil {
			return os.Remove(t.index) // this git cannot read it
		}
	}
	return nil
}

// maxIndex limits the part of an index that is read into memory.
const maxIndex = 1 << 30

// afterSecond waits until the second of at is over. git compares whole seconds: a file rewritten in
// the second in which its entry was made can look unchanged.
func afterSecond(ctx context.Context, at time.Time) error {
	left := time.Until(at.Truncate(time.Second).Add(time.Second))
	if left <= 0 || left > time.Second { // do not wait for a clock that was set back
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left):
		return nil
	}
}

// write updates the entries from the files and returns the tree.
func (t *tree) write(ctx context.Context, own []string) (string, error) {
	changed, err := t.add(ctx, "--all")
	if err != nil {
		return "", err
	}
	tree, err := t.treeAfter(ctx, changed)
	if changed && err == nil && len(own) > 0 {
		tree, err = t.without(ctx, tree, own)
	}
	return tree, err
}

// add updates the entries from the files: --all, or --update for known ones only. git add would start a git in
// each submodule, which runs programs that the submodule's configuration names; update-index only reads
// its HEAD. It reports whether it changed the index.
func (t *tree) add(ctx context.Context, which string) (changed bool, err error) {
	links, err := index.Links(t.index, t.r.format)
	if err != nil {
		return false, err
	}
	was, err := t.state()
	if err != nil {
		return false, err
	}
	paths := []string{"."}
	for _, name := range links {
		paths = append(paths, ":(exclude,literal)"+name)
	}
	magic := *t
	magic.env = append(slices.Clone(t.env), "GIT_LITERAL_PATHSPECS=0")
	_, err = magic.feed(ctx, listOf(paths), "add", which, "--pathspec-from-file=-", "--pathspec-file-nul")
	if err == nil && len(links) > 0 {
		_, err = t.feed(ctx, listOf(links), "update-index", "-z", "--add", "--remove", "--stdin")
	}
	if err != nil {
		return false, err
	}
	now, err := t.state()
	return !now.Untouched(was), err
}

// state returns the state of our index; the zero one if it is missing.
func (t *tree) state() (atomicfile.Stat, error) {
	s, err := atomicfile.Lstat(filepath.Split(t.index))
	return s, ignoreGone(err)
}

// treeAfter returns the tree of our index, which has had the entries of t.head until it was changed.
func (t *tree) treeAfter(ctx context.Context, changed bool) (string, error) {
	if !changed {
		return t.r.TreeOf(ctx, t.head)
	}
	return t.writeTree(ctx)
}

// settle prepares our index for the next call. It has had the entries of the tree since began.
func (t *tree) settle(tree string, began time.Time) error {
	if err := index.ForgetFresh(t.index, t.r.format, began); err != nil {
		return err
	}
	return t.holds(tree)
}

// holds notes that our index has the entries of the tree.
func (t *tree) holds(tree string) error {
	return os.WriteFile(t.index+holdsName, []byte(tree), privateOwn)
}

func (t *tree) writeTree(ctx context.Context) (string, error) {
	return nameIn(t.run(ctx, "write-tree"))
}

// without restores our own files in the tree to their state in t.head.
func (t *tree) without(ctx context.Context, tree string, own []string) (string, error) {
	changes, err := t.r.ChangesBetween(ctx, t.head, tree)
	if err != nil {
		return "", err
	}
	var back strings.Builder
	for _, c := range changes {
		if Within(own, c.Path) {
			back.WriteString(indexLine(c.Old, c.OldID, c.Path))
		}
	}
	if back.Len() == 0 {
		return tree, nil
	}
	if _, err := t.feed(ctx, strings.NewReader(back.String()), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return t.writeTree(ctx)
}

// feed runs a call with input.
func (t *tree) feed(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	return t.r.run(ctx, call{args: args, env: t.env, dir: t.top, stdin: in, limit: listOutput, timeout: treeTime})
}

// unflag removes the flag assume-unchanged, and skip-worktree from entries whose file exists.
func (t *tree) unflag(ctx context.Context) error {
	var assumed, skipped []string
	list, err := t.entriesIn(ctx, t.env, "-v")
	if err != nil {
		return err
	}
	for _, line := range list {
		tag, name, _ := strings.Cut(line, " ")
		if tag == strings.ToLower(tag) {
			assumed = append(assumed, name)
		}
		if strings.EqualFold(tag, "s") {
			if _, err := os.Lstat(filepath.Join(t.top, filepath.FromSlash(name))); err == nil {
				skipped = append(skipped, name)
			}
		}
	}
	for flag, list := range map[string][]string{"--no-assume-unchanged": assumed, "--no-skip-worktree": skipped} {
		if len(list) == 0 {
			continue
		}
		if _, err := t.feed(ctx, listOf(list), "update-index", "-z", flag, "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// entriesIn lists the entries of an index, with -v each behind its tag.
func (t *tree) entriesIn(ctx context.Context, env []string, more ...string) ([]string, error) {
	args := append([]string{"ls-files", "-z"}, more...)
	out, err := t.r.run(ctx, call{args: args, env: env, dir: t.top, limit: wholeIndex, timeout: treeTime})
	return names(out), err
}

// wholeIndex limits a list of all entries, in bytes.
const wholeIndex = 512 << 20
