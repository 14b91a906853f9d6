package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sluice/internal/fault"
)

// HeadPrefix begins the names of the worktrees' HEADs in Refs: HeadPrefix + path. No ref can have
// such a name.
const HeadPrefix = "HEAD:"

// ownRefs is the folder of our own refs; no work is done on them.
const ownRefs = "refs/sluice/"

// BranchRefs is the folder of branches.
const BranchRefs = "refs/heads/"

// ShortBranch returns the name of a branch as people say it, by its full name. Any other name stays.
func ShortBranch(ref string) string { return strings.TrimPrefix(ref, BranchRefs) }

// refs reads and moves the repo's names: refs and HEADs.
type refs struct {
	*place
	trees sync.RWMutex // git fails if it reads a new worktree while another git writes it
}

// Refs returns every ref except ours and those of one worktree, and every worktree's HEAD as
// HeadPrefix + its path, because a commit on a detached HEAD is on no ref. A ref to a tag has the
// tag's object name. The repo's ref format (loose, packed, reftable) makes no difference; broken
// refs are omitted.
func (r *refs) Refs(ctx context.Context) (map[string]string, error) {
	refs, err := r.refsBelow(ctx, allRefs)
	if err != nil {
		return nil, fmt.Errorf("refs: %w", err)
	}
	trees, err := r.Worktrees(ctx)
	if err != nil {
		return nil, fmt.Errorf("refs: %w", err)
	}
	for _, t := range trees {
		if t.Head != "" {
			refs[HeadPrefix+t.Path] = t.Head
		}
	}
	return refs, nil
}

// Newest returns the commits of at most n refs, ours too, the newest first.
func (r *refs) Newest(ctx context.Context, n int) (list []string, err error) {
	out, err := r.inRepo(ctx, r.common, r.top, call{args: []string{"for-each-ref", "--sort=-committerdate",
		"--count=" + strconv.Itoa(n), "--format=%(objectname) %(objecttype)"}, limit: listOutput})
	for line := range strings.Lines(string(out)) {
		if sha, is := strings.CutSuffix(line, " commit\n"); is && !slices.Contains(list, sha) {
			list = append(list, sha)
		}
	}
	return list, err
}

// parseRefs reads lines of an object name, sep and a ref's name, and skips others.
func parseRefs(out []byte, sep string) map[string]string {
	refs := map[string]string{}
	for line := range bytes.Lines(out) {
		sha, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), sep)
		if ok && checkSHA(sha) == nil && strings.HasPrefix(name, "refs/") {
			refs[name] = sha
		}
	}
	return refs
}

// Worktree is one checkout of the repo.
type Worktree struct {
	Path     string // in git's form; the main one first
	Head     string // object name of its HEAD; "" before the first commit
	Branch   string // full name of its branch; "" = detached
	Bare     bool   // the main entry of a bare repo: no files
	Prunable string // why git would prune it: usually its folder is gone
}

// Worktrees lists the checkouts of the repo, including those whose folder is gone. What git
// silently skips is read again or is an error: otherwise its branch would seem to be checked out
// nowhere.
func (r *refs) Worktrees(ctx context.Context) ([]Worktree, error) {
	r.trees.RLock()
	defer r.trees.RUnlock()
	before, err := r.countLinked()
	if err != nil {
		return nil, err
	}
	c := call{args: []string{"worktree", "list", "--porcelain", "-z"}, limit: listOutput}
	out, err := r.inRepo(ctx, r.common, r.top, c)
	if err != nil {
		return nil, err
	}
	trees := parseWorktrees(out)
	if len(trees) > 0 && filepath.Join(r.top, ".git") != r.common {
		// Git derives the main checkout's place from the common folder's. If that is elsewhere (git
		// init --separate-git-dir, a submodule), it names the git folder itself.
		if gitDir, _, err := r.gitDirOf(r.top); err == nil && gitDir == r.common {
			trees[0].Path = r.top
		}
	}
	after, err := r.countLinked()
	if err != nil {
		return nil, err
	}
	if there := min(before, after); len(trees)-1 < there {
		return nil, fault.New(fmt.Sprintf("see that all in %s can be read, and try again", r.linkedDir()),
			"git worktree list names %d of %d linked worktrees", max(len(trees)-1, 0), there)
	}
	for i := range trees {
		t := &trees[i]
		if _, err := os.Lstat(filepath.Join(t.Path, ".git")); err == nil {
			t.Prunable = ""
		}
		if !t.Bare && t.Head == "" && t.Branch == "" {
			if err := r.readHead(t, i == 0); err != nil {
				return nil, fmt.Errorf("git cannot read HEAD of %s: %w", t.Path, err)
			}
		}
	}
	return trees, nil
}

// countLinked counts the linked worktrees.
func (r *refs) countLinked() (n int, err error) {
	err = r.eachLinked("", func(string, string) bool {
		n++
		return false
	})
	return n, err
}

// readHead reads the HEAD of a worktree that git does not report. A broken or missing one stays
// empty.
func (r *refs) readHead(t *Worktree, main bool) error {
	gitDir, err := r.common, error(nil)
	if !main {
		gitDir, _, err = r.gitDirOf(t.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its folder is gone
	}
	if err == nil && r.isReftable() {
		err = errors.New("try again; if it stays so, run git fsck")
	}
	if err != nil {
		return err
	}
	sha, to, err := readRef(gitDir, "HEAD")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && to != "" {
		var tip Tip
		tip, err = r.readTip(to)
		sha = tip.SHA
	}
	t.Branch, t.Head = to, sha
	return err
}

// parseWorktrees reads git worktree list --porcelain -z: attributes end with NUL, entries with
// another one.
func parseWorktrees(out []byte) []Worktree {
	var trees []Worktree
	for line := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(line, " ")
		if key == "worktree" {
			trees = append(trees, Worktree{Path: filepath.FromSlash(value)})
			continue
		}
		if len(trees) == 0 {
			continue
		}
		t := &trees[len(trees)-1]
		switch key {
		case "HEAD":
			if checkSHA(value) == nil && strings.Trim(value, "0") != "" {
				t.Head = value
			}
		case "branch":
			t.Branch = value
		case "bare":
			t.Bare = true
		case "prunable":
			t.Prunable = value
		}
	}
	return trees
}

// Head returns the object name of the HEAD of the worktree at path, "" before the first commit. It
// reads the files itself and runs git only for what they do not say.
func (r *refs) Head(ctx context.Context, path string) (string, error) {
	gitDir, top, err := r.gitDirOf(path)
	if err != nil {
		return "", err
	}
	return r.headOf(ctx, gitDir, top)
}

func (r *refs) headOf(ctx context.Context, gitDir, top string) (string, error) {
	c := call{args: []string{"rev-parse", "--verify", "--quiet", "HEAD"}, codes: []int{1}}
	if err := r.intoRepo(gitDir, top, &c); err != nil {
		return "", err
	}
	if sha, to, err := readRef(gitDir, "HEAD"); err == nil && !r.asksRef(cmp.Or(to, allRefs)) {
		if to != "" && !notShared(to) {
			t, _ := r.readTip(to)
			sha = t.SHA
		}
		if sha != "" {
			return sha, nil
		}
	}
	out, err := r.run(ctx, c)
	sha := strings.TrimSpace(string(out))
	if err != nil || sha == "" {
		return "", err
	}
	return sha, checkSHA(sha)
}

// checkRef returns an error if a full ref name is malformed, by the rules of `git
// check-ref-format`.
func checkRef(ref string) error {
	no := fmt.Errorf("%.80q is not a valid name for a ref", ref)
	if !strings.HasPrefix(ref, "refs/") || strings.HasSuffix(ref, ".") || strings.Contains(ref, "..") ||
		strings.Contains(ref, "@{") || strings.ContainsAny(ref, " ~^:?*[\\\x7f") {
		return no
	}
	if strings.IndexFunc(ref, func(c rune) bool { return c < ' ' }) >= 0 {
		return no
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return no
		}
	}
	return nil
}
