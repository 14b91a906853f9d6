package git

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
)

// MaxChanged is how many files Changed returns at most.
const MaxChanged = 10_000

// The empty tree stands in for a missing commit; git knows it without storing it.
const (
	emptyTreeSHA1   = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	emptyTreeSHA256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
)

// Changes are the files of a worktree that differ.
type Changes struct {
	Files []string // sorted, with git's names; a folder that is itself a repo ends with a slash
	Cut   bool     // there are more than MaxChanged
}

// Changed returns the files of the worktree that differ from the commit base ("" = its HEAD):
// committed since, changed or deleted but not committed, or new and not ignored. No filter runs, so
// a filled-in file whose committed form comes from a filter (Git LFS) counts as changed. It
// compares content through our own index and never trusts the worktree's index.
func (r *Repo) Changed(ctx context.Context, worktree, base string) (Changes, error) {
	t, err := r.openTree(ctx, worktree, base)
	if err != nil {
		return Changes{}, fmt.Errorf("changed files of %s: %w", worktree, err)
	}
	defer t.unlock()
	set := map[string]bool{}
	for _, list := range []func(context.Context) ([]string, error){t.committed, t.uncommitted, t.untracked} {
		names, err := list(ctx)
		if err != nil {
			return Changes{}, fmt.Errorf("changed files of %s: %w", worktree, err)
		}
		for _, n := range names {
			set[n] = true
		}
	}
	return changesOf(set), nil
}

func changesOf(set map[string]bool) Changes {
	files := slices.Sorted(maps.Keys(set))
	return Changes{Files: files[:min(len(files), MaxChanged)], Cut: len(files) > MaxChanged}
}

// tree is a worktree under comparison, by our index of it.
type tree struct {
	r          *objects
	top        string
	index      string   // our index of it
	env        []string // of calls that need the worktree
	head, base string   // tree-ishes
	unlock     func()
}

// openIndex locks our index of a worktree, for a comparison with base; "" is the empty tree.
func (r *objects) openIndex(ctx context.Context, top, base string) (*tree, error) {
	if err := r.keepShadow(ctx); err != nil {
		return nil, err
	}
	base = cmp.Or(base, r.emptyTree())
	if err := checkSHA(base); err != nil {
		return nil, err
	}
	unlock, err := r.locks.Lock(ctx, top)
	if err != nil {
		return nil, err
	}
	index := r.privateIndex(top)
	return &tree{r: r, top: top, index: index, env: r.inShadowTree(top, index), head: base, base: base,
		unlock: unlock}, nil
}

// openHead opens our index of a worktree with the entries of its HEAD.
func (r *Repo) openHead(ctx context.Context, worktree, base string) (t *tree, err error) {
	gitDir, top, err := r.gitDirOf(worktree)
	if err != nil {
		return nil, err
	}
	head, err := r.headOf(ctx, gitDir, top)
	if err != nil {
		return nil, err
	}
	t, err = r.openIndex(ctx, top, cmp.Or(base, head))
	if err != nil {
		return nil, err
	}
	t.head = cmp.Or(head, r.emptyTree())
	if err := t.prepare(ctx, gitDir); err != nil {
		t.unlock()
		return nil, err
	}
	return t, nil
}

// openTree is openHead, refreshed from the files.
func (r *Repo) openTree(ctx context.Context, worktree, base string) (*tree, error) {
	t, err := r.openHead(ctx, worktree, base)
	if err != nil {
		return nil, err
	}
	// Exit code 1 means that some files differ, which is checked below.
	if _, err := t.run(ctx, "update-index", "-q", "--refresh"); err != nil {
		t.unlock()
		return nil, err
	}
	return t, nil
}

// unlockIndex removes the lock that a killed git has left on an index of ours, and which would block every later git.
// The caller is the index's only user, so the lock is stale.
func unlockIndex(index string) error { return ignoreGone(os.Remove(index + ".lock")) }

// readHead makes our index that of t.head.
func (t *tree) readHead(ctx context.Context) error {
	if _, err := os.Lstat(t.index); err == nil {
		// --reset keeps the cached state of unchanged files.
		if _, err = t.run(ctx, "read-tree", "--reset", t.head); err == nil {
			return nil
		}
		// The index was cut short by a kill, or is from another git. Nothing in it is irreplaceable.
		if err := ignoreGone(os.Remove(t.index)); err != nil {
			return err
		}
	}
	_, err := t.run(ctx, "read-tree", t.head)
	return err
}

func (r *place) emptyTree() string {
	if r.format == "sha256" {
		return emptyTreeSHA256
	}
	return emptyTreeSHA1
}

func (t *tree) run(ctx context.Context, args ...string) ([]byte, error) {
	return t.r.run(ctx, call{args: args, env: t.env, dir: t.top, limit: listOutput, timeout: treeTime,
		codes: codesOf(args[0])})
}

func codesOf(sub string) []int {
	if sub == "update-index" {
		return []int{1}
	}
	return nil
}

// differing lists the files that a comparison by git names. Of a submodule it compares only the commit: a look at its
// files would start a git in it, which reads its configuration.
func (t *tree) differing(ctx context.Context, comparison string, more ...string) ([]string, error) {
	out, err := t.run(ctx, append([]string{comparison, "-z", "--name-only", "--no-renames", "--no-ext-diff",
		"--no-textconv", "--ignore-submodules=dirty"}, more...)...)
	return names(out), err
}

func (t *tree) committed(ctx context.Context) ([]string, error) {
	return t.differing(ctx, "diff-tree", "-r", t.base, t.head)
}

func (t *tree) uncommitted(ctx context.Context) ([]string, error) {
	return t.differing(ctx, "diff-files")
}

func (t *tree) untracked(ctx context.Context) ([]string, error) {
	args := []string{"ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"}
	for _, path := range ignoreFiles(t.r.common) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			args = append(args, "--exclude-from="+path)
		}
	}
	out, err := t.run(ctx, args...)
	return names(out), err
}

// ignoreFiles returns the ignore lists besides the .gitignore files: the repo's and the user's own.
// Without the latter a .DS_Store would be a change.
func ignoreFiles(common string) []string {
	files := []string{filepath.Join(common, "info", "exclude")}
	if config, ok := os.LookupEnv("XDG_CONFIG_HOME"); ok && filepath.IsAbs(config) {
		return append(files, filepath.Join(config, "git", "ignore"))
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		files = append(files, filepath.Join(home, ".config", "git", "ignore"))
	}
	return files
}

// excludeFile writes the ignore rules besides the .gitignore files: the repo's and the user's
// lists, and our own files.
func (r *place) excludeFile(index string, own []string) (string, error) {
	file := index + ".exclude"
	return file, os.WriteFile(file, append(joined(ignoreFiles(r.common)), passOver(own)...), privateOwn)
}

// passOver returns ignore rules for files and folders of a worktree, by their paths from its top.
func passOver(own []string) []byte {
	var b bytes.Buffer
	for _, p := range own {
		b.WriteString(ignoreRule(p) + "\n")
	}
	return b.Bytes()
}

// IgnoreFolder returns the ignore rule for a folder, by its path from the top.
func IgnoreFolder(rel string) string { return ignoreRule(rel) + "/" }

func ignoreRule(rel string) string {
	b := []byte{'/'}
	for _, c := range []byte(rel) {
		if strings.IndexByte("\\*?[]!# ", c) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return string(b)
}

// joined concatenates lists of ignore rules. It skips one that is missing or too long.
func joined(files []string) []byte {
	var b bytes.Buffer
	for _, file := range files {
		if data, err := atomicfile.Read(file, maxExclude); err == nil {
			b.Write(data)
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// maxExclude limits a list of ignore rules.
const maxExclude = 1 << 20

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// listOf returns paths as git reads a list of them: each ends with a NUL.
func listOf(paths []string) io.Reader { return strings.NewReader(strings.Join(paths, "\x00") + "\x00") }

// names splits a list of NUL-terminated paths.
func names(out []byte) []string {
	out = bytes.TrimSuffix(out, []byte{0})
	if len(out) == 0 {
		return nil
	}
	return strings.Split(string(out), "\x00")
}
