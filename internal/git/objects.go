package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/memo"
)

// Change is a path that differs between two commits.
type Change struct {
	Path         string // in git's form
	Old, New     string // modes, such as 100644; "000000" if absent
	OldID, NewID string // object names
}

// indexLine returns the line by which update-index takes a side of a change; modeNone removes the path.
func indexLine(mode, id, path string) string { return fmt.Sprintf("%s %s 0\t%s\x00", mode, id, path) }

// modeNone is the mode on a side without the path.
const modeNone = "000000"

// Added reports whether only the new side has the path.
func (c Change) Added() bool { return c.Old == modeNone }

// Deleted reports whether only the old side has the path.
func (c Change) Deleted() bool { return c.New == modeNone }

// Submodule reports whether either side is a submodule, which has no file in this repo.
func (c Change) Submodule() bool { return c.Old == ModeSubmodule || c.New == ModeSubmodule }

// Modes of entries that are not files.
const (
	ModeLink      = "120000"
	ModeSubmodule = "160000"
)

// objects reads and writes commits and trees, in the shadow.
type objects struct {
	*shadowGit
	commits memo.Memo[string, commitKept]  // by name
	changes memo.Memo[[2]string, []Change] // from one to another
}

// maxChangesKept limits the length of a cached list.
const maxChangesKept = 64

// ChangesBetween lists the paths that differ between two commits or trees, sorted; "" is the empty tree.
func (r *objects) ChangesBetween(ctx context.Context, from, to string) ([]Change, error) {
	from, to = r.treeIn(from), r.treeIn(to)
	if list, ok := r.changes.Get([2]string{from, to}); ok {
		return slices.Clone(list), nil
	}
	list, err := changesBetween(ctx, r.shadow, r.emptyTree(), from, to)
	if err == nil && len(list) <= maxChangesKept {
		r.changes.Put([2]string{from, to}, slices.Clone(list))
	}
	return list, err
}

// treeIn returns the tree of a commit that is cached, and any other name unchanged.
func (r *objects) treeIn(name string) string {
	if c, ok := r.commits.Get(name); ok {
		return c.tree
	}
	return name
}

func changesBetween(ctx context.Context, run gitIn, empty, from, to string) ([]Change, error) {
	from, to = cmp.Or(from, empty), cmp.Or(to, empty)
	if err := checkSHA(from, to); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	if from == to {
		return nil, nil
	}
	c := call{args: append([]string{"diff-tree", "-r"}, asChanges(from, to)...), limit: wholeIndex, timeout: treeTime}
	out, err := run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("changes from %.12s to %.12s: %w", from, to, err)
	}
	return changesIn(out)
}

// asChanges returns the arguments for a list that changesIn reads.
func asChanges(of ...string) []string {
	return append([]string{"-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=none"}, of...)
}

func changesIn(out []byte) ([]Change, error) {
	fields := names(out)
	var list []Change
	for i := 0; i+1 < len(fields); i += 2 {
		modes := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(modes) != 5 {
			return nil, fmt.Errorf("changes: git printed %.80q", fields[i])
		}
		list = append(list, Change{Path: fields[i+1], Old: modes[0], New: modes[1], OldID: modes[2], NewID: modes[3]})
	}
	return list, nil
}

// TreeOf returns the tree of a commit; for "", the empty tree.
func (r *objects) TreeOf(ctx context.Context, commit string) (string, error) {
	commit = cmp.Or(commit, r.emptyTree())
	if err := checkSHA(commit); err != nil {
		return "", err
	}
	if tree := r.treeIn(commit); tree != commit || tree == r.emptyTree() {
		return tree, nil
	}
	tree, err := r.line(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", commit + "^{tree}"}})
	if err == nil {
		r.commits.Put(commit, commitKept{tree: tree})
	}
	return tree, err
}

// commitKept is the cached part of a commit, which never changes.
type commitKept struct {
	tree    string
	at      int64    // the committer's time, in seconds since 1970
	when    bool     // at is known
	parents []string // of a commit that this process made
}

// WithChanges returns the tree of a commit or tree with the new side of the changes applied.
func (r *Repo) WithChanges(ctx context.Context, commit string, changes []Change) (tree string, err error) {
	if len(changes) == 0 {
		return r.TreeOf(ctx, commit)
	}
	l, err := r.list(ctx, r.top, nil, false)
	if err == nil {
		tree, err = l.tree(ctx, commit, changes)
	}
	if err = errors.Join(err, l.remove()); err != nil {
		return "", fmt.Errorf("change %.12s: %w", commit, err)
	}
	return tree, nil
}

// tree writes the tree of a commit with changes.
func (l listed) tree(ctx context.Context, commit string, changes []Change) (string, error) {
	commit = cmp.Or(commit, l.r.emptyTree())
	if err := checkSHA(commit); err != nil {
		return "", err
	}
	if _, err := l.git(ctx, "", "read-tree", commit); err != nil {
		return "", err
	}
	var in strings.Builder
	for _, c := range changes {
		in.WriteString(indexLine(c.New, c.NewID, c.Path))
	}
	if _, err := l.git(ctx, in.String(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return nameIn(l.git(ctx, "", "write-tree"))
}

// Descends reports whether base is commit itself or one of its ancestors.
func (r *objects) Descends(ctx context.Context, commit, base string) (bool, error) {
	if r.isOn(commit, base) || r.isOn(base, commit) {
		return r.isOn(commit, base), nil
	}
	return descends(ctx, r.shadow, commit, base)
}

// isOn reports whether commit is base, or was made on base by this process.
func (r *objects) isOn(commit, base string) bool {
	c, ok := r.commits.Get(commit)
	return ok && (commit == base || slices.Contains(c.parents, base))
}

// AnyOn reports whether any of the commits descends from base and is not base itself. It skips
// missing commits.
func (r *objects) AnyOn(ctx context.Context, base string, commits []string) (bool, error) {
	if err := checkSHA(append([]string{base}, commits...)...); err != nil {
		return false, err
	}
	out, err := r.shadow(ctx, call{args: []string{"rev-list", "--max-count=1", "--ancestry-path", "--ignore-missing",
		"--stdin"}, stdin: strings.NewReader("^" + base + "\n" + strings.Join(commits, "\n") + "\n"), timeout: treeTime})
	return err == nil && len(out) > 0, err
}

// CommitTree commits a tree in sluice's name. The time is its first parent's, so the same work is
// always the same commit.
func (r *objects) CommitTree(ctx context.Context, tree, message string, parents ...string) (string, error) {
	date := int64(0)
	if len(parents) > 0 {
		at, err := r.timeOf(ctx, parents[0])
		if err != nil {
			return "", err
		}
		date = at
	}
	at := "@" + strconv.FormatInt(date, 10) + " +0000"
	commit, err := r.commit(ctx, []string{"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at}, tree, message, parents...)
	if err == nil {
		r.commits.Put(commit, commitKept{tree: tree, at: date, when: true, parents: parents})
	}
	return commit, err
}

// commit commits a tree in sluice's name.
func (r *objects) commit(ctx context.Context, env []string, tree, message string, parents ...string) (string, error) {
	if err := checkSHA(append([]string{tree}, parents...)...); err != nil {
		return "", err
	}
	args := []string{"commit-tree", "--no-gpg-sign", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return r.line(ctx, call{args: args, env: append(ourIdentity(), env...), stdin: strings.NewReader(message)})
}

// timeOf returns the committer's time of a commit, in seconds since 1970, or 0 if it is unreadable.
func (r *objects) timeOf(ctx context.Context, commit string) (int64, error) {
	if c, ok := r.commits.Get(commit); ok && c.when {
		return c.at, nil
	}
	if err := checkSHA(commit); err != nil {
		return 0, err
	}
	commits, err := r.readCommits(ctx, []string{commit})
	if err != nil || len(commits) == 0 {
		return 0, err
	}
	at := max(commits[0].CommitDate.Unix(), 0)
	if tree := commits[0].Tree; checkSHA(tree) == nil {
		r.commits.Put(commit, commitKept{tree: tree, at: at, when: true})
	}
	return at, nil
}

// line runs a call in the shadow that prints one object name.
func (r *objects) line(ctx context.Context, c call) (string, error) {
	return nameIn(r.shadow(ctx, c))
}

// nameIn returns the one object name that a call has printed.
func nameIn(out []byte, err error) (string, error) {
	if err != nil {
		return "", err
	}
	sha := strings.TrimSpace(string(out))
	return sha, checkSHA(sha)
}

// Own returns the name of our ref for a kind of thing and a name.
func Own(kind, name string) string { return ownRefs + kind + "/" + name }

// Keep points our ref, from Own, at a commit and releases the previous one.
func (r *refs) Keep(ctx context.Context, ref, commit string) error {
	if !strings.HasPrefix(ref, ownRefs) {
		return fmt.Errorf("keep %.80q: not one of sluice's refs", ref)
	}
	if err := errors.Join(checkRef(ref), checkSHA(commit)); err != nil {
		return err
	}
	if now, err := r.TipOf(ctx, ref); err == nil && now == (Tip{SHA: commit}) {
		return nil
	}
	if ctx.Err() == nil && r.keepFile(ref, commit) {
		return nil
	}
	c := call{args: []string{"update-ref", "--no-deref", ref, commit}, env: ourIdentity()}
	_, err := r.inRepo(ctx, r.common, r.top, c)
	if err != nil && r.unlockOwn(ref) {
		_, err = r.inRepo(ctx, r.common, r.top, c)
	}
	if err != nil {
		return r.locked(r.common, ref, fmt.Errorf("keep %s: %w", ref, err))
	}
	return nil
}

// keepFile writes our ref through its lock, as git does. It reports false, and git has to, unless the repo is
// ordinary and the commit a loose object.
func (r *refs) keepFile(ref, commit string) bool {
	root, err := os.OpenRoot(r.common)
	if err != nil {
		return false
	}
	defer root.Close()
	object, err := root.Lstat(filepath.Join("objects", commit[:2], commit[2:]))
	if err != nil || !object.Mode().IsRegular() || object.Size() == 0 || !r.isOrdinary() {
		return false
	}
	if root.MkdirAll(filepath.Dir(ref), 0o777) != nil {
		return false
	}
	lock := ref + ".lock"
	f, err := root.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return false
	}
	_, err = f.WriteString(commit + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(lock, ref)
	}
	if err != nil {
		_ = root.Remove(lock)
	}
	return err == nil
}

// unlockOwn removes the lock that a killed git, or a power cut, left on our ref, and reports
// whether there was one. It must predate this process: other gits lock our refs only for a moment,
// to pack them.
func (r *place) unlockOwn(ref string) bool {
	lock := filepath.Join(r.common, filepath.FromSlash(ref)+".lock")
	info, err := os.Lstat(lock)
	return err == nil && info.Mode().IsRegular() && info.ModTime().Before(r.opened) && os.Remove(lock) == nil
}

// Ignored returns the paths that the worktree's ignore rules match.
func (r *shadowGit) Ignored(ctx context.Context, worktree string, paths []string) (map[string]bool, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	_, top, err := r.gitDirOf(worktree)
	if err != nil {
		return nil, err
	}
	return r.ignoredBy(ctx, top, ignoreFiles(r.common), paths)
}

// ignoredBy is Ignored for the rules in a folder and in other lists.
func (r *shadowGit) ignoredBy(ctx context.Context, top string, others, paths []string) (map[string]bool, error) {
	if err := r.keepShadow(ctx); err != nil {
		return nil, err
	}
	list, err := os.CreateTemp(r.scratch, "exclude-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(list.Name())
	_, err = list.Write(joined(others))
	if err = errors.Join(err, list.Close()); err != nil {
		return nil, err
	}
	env := append(setting("core.excludesFile", list.Name()), "GIT_LITERAL_PATHSPECS=0", "GIT_WORK_TREE="+top)
	out, err := r.shadow(ctx, call{args: []string{"check-ignore", "-z", "--no-index", "--stdin"}, env: env, dir: top,
		stdin: listOf(paths), limit: wholeIndex, timeout: treeTime, codes: []int{1}})
	return setOf(names(out)), err
}
