package git

import (
	"bytes"
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
)

// maxSeedCheap is the size of an index up to which reading all files again costs less than waiting.
const maxSeedCheap = 1 << 20

// FolderTree writes the files of a worktree as a tree object: those of the commit from ("" = none) as they are now, and
// new ones that are not ignored. What own names (files and folders, slash-separated, from the worktree's top) stays as it
// is in from, or out of the tree. The worktree's own index, flags in it included, is not believed. No filter is run.
func (r *Repo) FolderTree(ctx context.Context, worktree, from string, own []string) (tree string, err error) {
	tree, rest, err := r.FolderTreeAhead(ctx, worktree, from, own)
	if err == nil {
		err = rest()
	}
	return tree, err
}

// FolderTreeAhead is FolderTree that gives the tree before all is done. rest waits for what is left, which makes the next
// call see what changed; it is to be called.
func (r *Repo) FolderTreeAhead(ctx context.Context, worktree, from string, own []string) (tree string, rest func() error, err error) {
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
	if err := r.keepShadow(ctx); err != nil {
		return nil, err
	}
	gitDir, top, err := r.gitDirOf(worktree)
	if err != nil {
		return nil, err
	}
	if from == "" {
		from = r.emptyTree()
	}
	if err := checkSHA(from); err != nil {
		return nil, err
	}
	unlock, err := r.lock(ctx, top)
	if err != nil {
		return nil, err
	}
	index := r.privateIndex(top)
	t := &tree{r: r, top: top, head: from, base: from, unlock: unlock}
	exclude, err := r.excludeFile(index, own)
	if err == nil {
		t.env = append(r.inShadowTree(top, index), "GIT_LITERAL_PATHSPECS=0",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.excludesFile", "GIT_CONFIG_VALUE_0="+exclude)
		err = t.prepare(ctx, gitDir, index)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return t, nil
}

// excludeFile writes what is passed over beside the .gitignore files: what the repo's and the user's own lists name, and
// what is ours.
func (r *Repo) excludeFile(index string, own []string) (string, error) {
	file := index + ".exclude"
	return file, os.WriteFile(file, append(joined(ignoreFiles(r.common)), passOver(own)...), privateOwn)
}

// passOver are ignore rules for files and folders of a worktree, by their paths from its top.
func passOver(own []string) []byte {
	var b bytes.Buffer
	for _, p := range own {
		b.WriteByte('/')
		for _, c := range []byte(p) {
			if strings.IndexByte("\\*?[]!# ", c) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// joined is what lists of ignore rules say together; one that is not there, or too long, says nothing.
func joined(files []string) []byte {
	var b bytes.Buffer
	for _, file := range files {
		if data, _, err := atomicfile.OpenRegular(filepath.Dir(file), filepath.Base(file), maxExclude); err == nil {
			b.Write(data)
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// maxExclude bounds a list of ignore rules.
const maxExclude = 1 << 20

// prepare has our index hold the entries of t.head, with what is known of the files that stayed as they were.
func (t *tree) prepare(ctx context.Context, gitDir, index string) error {
	if err := t.entries(ctx, gitDir, index); err != nil {
		return err
	}
	info, err := os.Lstat(filepath.Join(gitDir, "info", "sparse-checkout"))
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return t.sparse(ctx, filepath.Join(gitDir, "index"))
}

// sparse has our index know which files a sparse checkout leaves out: else they would count as removed. A file that is
// there is never left out, whatever the checkout's own index says.
func (t *tree) sparse(ctx context.Context, theirs string) error {
	if err := t.unflag(ctx); err != nil {
		return err
	}
	env := t.r.inShadowTree(t.top, theirs)
	list, err := t.r.run(ctx, call{args: []string{"ls-files", "-v", "-z"}, env: env, dir: t.top, limit: wholeIndex, timeout: treeTime})
	if err != nil {
		return err
	}
	known, err := t.r.run(ctx, call{args: []string{"ls-files", "-z"}, env: t.env, dir: t.top, limit: wholeIndex, timeout: treeTime})
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, n := range names(known) {
		ours[n] = true
	}
	var left []string
	for _, line := range names(list) {
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
	_, err = t.feed(ctx, left, "update-index", "-z", "--skip-worktree", "--stdin")
	return err
}

// entries is prepare for the entries alone.
func (t *tree) entries(ctx context.Context, gitDir, index string) error {
	// A git that was ended in the middle leaves its lock. It is nobody's: the caller holds ours.
	if err := os.Remove(index + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := os.Lstat(index)
	if errors.Is(err, fs.ErrNotExist) {
		err = t.seed(ctx, gitDir, index)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(index); err == nil {
		if t.has(ctx, index) {
			return nil
		}
		if _, err = t.run(ctx, "read-tree", "--reset", t.head); err == nil {
			return nil
		}
		// Cut short by a kill, or of another git: it holds nothing that cannot be read again.
		if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err = t.run(ctx, "read-tree", t.head)
	return err
}

// holdsName is what follows the name of an index in that of the file that names the tree whose entries it has.
const holdsName = ".tree"

// has reports whether our index has the entries of t.head already. The note of it is good for one use.
func (t *tree) has(ctx context.Context, index string) bool {
	note, err := os.ReadFile(index + holdsName)
	if err != nil || os.Remove(index+holdsName) != nil {
		return false
	}
	tree, err := t.r.TreeOf(ctx, t.head)
	return err == nil && tree == string(note)
}

// seed copies the checkout's own index, which spares reading every file of a large repo. Nothing an agent wrote is
// believed by it: the first copy is made before any agent works there, and flags are removed in write.
func (t *tree) seed(ctx context.Context, gitDir, index string) error {
	own := filepath.Join(gitDir, "index")
	info, err := os.Lstat(own)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= maxSeedCheap {
		return nil // reading all files is cheap, or there is nothing to copy
	}
	if err := afterSecond(ctx, info.ModTime()); err != nil {
		return err
	}
	in, err := os.Open(own)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(index, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, privateOwn)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(index))
	}
	if err := os.Chtimes(index, time.Now(), info.ModTime()); err != nil { // git tells by it which entries may be racy
		return err
	}
	if err := t.plainIndex(ctx, gitDir, index); err != nil {
		return err
	}
	if _, err := os.Lstat(index); err != nil {
		return nil
	}
	return t.unflag(ctx)
}

// plainIndex turns the copy of an index into one that stands alone and has no flags that hide a change.
func (t *tree) plainIndex(ctx context.Context, gitDir, index string) error {
	shared, err := filepath.Glob(filepath.Join(gitDir, "sharedindex.*"))
	if err != nil {
		return err
	}
	for _, f := range shared { // a split index names the file that has the rest, in the git folder in use
		data, _, err := atomicfile.OpenRegular(filepath.Dir(f), filepath.Base(f), maxIndex)
		if err == nil {
			err = os.WriteFile(filepath.Join(t.r.shadowDir(), filepath.Base(f)), data, privateOwn)
		}
		if err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"update-index", "--no-split-index"}, {"update-index", "--no-fsmonitor"}, {"update-index", "--no-untracked-cache"}} {
		if _, err := t.run(ctx, args...); err != nil {
			return os.Remove(index) // one that this git cannot read
		}
	}
	return nil
}

// maxIndex bounds the part of an index that is read into memory.
const maxIndex = 1 << 30

// afterSecond waits until the second of at is over. git compares whole seconds: a file written again in the second in
// which its entry was made can look unchanged.
func afterSecond(ctx context.Context, at time.Time) error {
	left := time.Until(at.Truncate(time.Second).Add(time.Second))
	if left <= 0 || left > time.Second { // a clock that was set back is no reason to wait
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left):
		return nil
	}
}

// write brings the entries up to the files and gives the tree.
func (t *tree) write(ctx context.Context, own []string) (string, error) {
	if _, err := t.run(ctx, "add", "--all", "--", "."); err != nil {
		return "", err
	}
	tree, err := t.writeTree(ctx)
	if err == nil && len(own) > 0 {
		tree, err = t.without(ctx, tree, own)
	}
	return tree, err
}

// settle makes our index, which has the entries of a tree since began, fit for the next taking.
func (t *tree) settle(tree string, began time.Time) error {
	index := t.r.privateIndex(t.top)
	if err := forgetFresh(index, t.r.format, began); err != nil {
		return err
	}
	return os.WriteFile(index+holdsName, []byte(tree), privateOwn)
}

func (t *tree) writeTree(ctx context.Context) (string, error) {
	out, err := t.run(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	tree := strings.TrimSpace(string(out))
	return tree, checkSHA(tree)
}

// without puts what is ours back to how it is in the commit it came from.
func (t *tree) without(ctx context.Context, tree string, own []string) (string, error) {
	c := call{args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", t.head, tree}, env: t.env, limit: wholeIndex, timeout: treeTime}
	out, err := t.r.run(ctx, c)
	if err != nil {
		return "", err
	}
	fields := names(out)
	var back []string
	for i := 0; i+1 < len(fields); i += 2 {
		f, name := strings.Fields(strings.TrimPrefix(fields[i], ":")), fields[i+1]
		if len(f) > 2 && slices.ContainsFunc(own, func(o string) bool { return name == o || strings.HasPrefix(name, o+"/") }) {
			back = append(back, f[0]+" "+f[2]+" 0\t"+name)
		}
	}
	if len(back) == 0 {
		return tree, nil
	}
	if _, err := t.feed(ctx, back, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return t.writeTree(ctx)
}

// feed gives a call a list of names.
func (t *tree) feed(ctx context.Context, list []string, args ...string) ([]byte, error) {
	in := strings.NewReader(strings.Join(list, "\x00") + "\x00")
	return t.r.run(ctx, call{args: args, env: t.env, dir: t.top, stdin: in, limit: listOutput, timeout: treeTime})
}

// unflag removes the flag assume-unchanged, and skip-worktree from entries whose file is there.
func (t *tree) unflag(ctx context.Context) error {
	var assumed, skipped []string
	c := call{args: []string{"ls-files", "-v", "-z"}, env: t.env, dir: t.top, limit: wholeIndex, timeout: treeTime}
	out, err := t.r.run(ctx, c)
	if err != nil {
		return err
	}
	for _, line := range names(out) {
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
		if _, err := t.feed(ctx, list, "update-index", "-z", flag, "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// wholeIndex bounds a list of all entries, in bytes.
const wholeIndex = 512 << 20
