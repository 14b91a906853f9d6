package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/fault"
)

// ErrNotKept is returned if there is no salvage of that name.
var ErrNotKept = errors.New("nothing is kept")

// OwnBelow returns our refs of a kind whose names begin with prefix and a slash, as name -> commit; prefix
// "" is all of the kind.
func (r *refs) OwnBelow(ctx context.Context, kind, prefix string) (map[string]string, error) {
	under := strings.TrimSuffix(Own(kind, prefix), "/")
	if err := checkRef(under); err != nil {
		return nil, fmt.Errorf("what is kept: %w", err)
	}
	refs, err := r.refsBelow(ctx, under+"/")
	if err != nil {
		return nil, fmt.Errorf("what is kept: %w", err)
	}
	kept := map[string]string{}
	for name, sha := range refs {
		kept[strings.TrimPrefix(name, Own(kind, ""))] = sha
	}
	return kept, nil
}

// Kept returns an attempt's result and starting point by its name <run>/<step>.<n>: the taken
// commit and the one found before it. If nothing could be taken, it returns the salvaged files and
// their base: the commit named as "Base: " in the message, else their parent, else "".
func (r *Repo) Kept(ctx context.Context, name string) (sha, base string, err error) {
	for ref, commit := range map[string]*string{Own("taken", name): &sha, Own("found", name): &base} {
		tip, err := r.TipOf(ctx, ref)
		if err != nil {
			return "", "", err
		}
		*commit = tip.SHA
	}
	if sha != "" {
		return sha, base, nil
	}
	return r.salvaged(ctx, name)
}

// salvaged is Kept for what Salvage keeps.
func (r *Repo) salvaged(ctx context.Context, name string) (sha, base string, err error) {
	kept, err := r.OwnBelow(ctx, "salvage", filepath.ToSlash(filepath.Dir(name)))
	if err != nil {
		return "", "", err
	}
	sha = kept[name]
	if sha == "" {
		return "", "", fmt.Errorf("%s: %w", name, ErrNotKept)
	}
	out, err := r.shadow(ctx, call{args: []string{"cat-file", "commit", sha}})
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", name, err)
	}
	for line := range strings.Lines(string(out)) {
		word, b, _ := strings.Cut(strings.TrimSpace(line), " ")
		if (word == "parent" && base == "" || word == "Base:") && checkSHA(b) == nil {
			base = b
		}
	}
	return sha, base, nil
}

// Between returns the differences between two commits as a readable patch of at most maxBytes; from
// "" is the empty tree. cut reports that there is more. No filter or diff driver runs.
func (r *objects) Between(ctx context.Context, from, to string, maxBytes int64,
	look Look) (text []byte, cut bool, err error) {
	c, err := r.between(from, to, look, maxBytes+1)
	if err == nil {
		text, err = r.shadow(ctx, c)
	}
	if err != nil && !errors.Is(err, ErrOutput) {
		return nil, false, fmt.Errorf("diff: %w", err)
	}
	return text[:min(int64(len(text)), maxBytes)], err != nil, nil
}

// between returns the call for the differences between two commits.
func (r *objects) between(from, to string, look Look, limit int64, more ...string) (call, error) {
	from = cmp.Or(from, r.emptyTree())
	args := look.patch(append([]string{"diff-tree", "-r"}, more...), from, to)
	return call{args: args, limit: limit, timeout: treeTime}, checkSHA(from, to)
}

// CheckoutAt creates a linked worktree at path, which must not exist, with the files of a commit
// and on no branch.
func (r *Repo) CheckoutAt(ctx context.Context, path, sha string) error {
	fail := func(err error) error { return fmt.Errorf("check out %s: %w", path, err) }
	if !filepath.IsAbs(path) {
		return fail(errors.New("not an absolute path"))
	}
	if _, err := os.Lstat(path); err == nil {
		return fail(fault.New("name a folder that is not there yet", "%w", fs.ErrExist))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	if err := checkSHA(sha); err != nil {
		return fail(err)
	}
	gitDir, _, err := r.gitDirOf(r.top)
	if err != nil {
		return fail(err)
	}
	args := []string{"worktree", "add", "--quiet", "--no-checkout", "--detach", "--", path, sha}
	if _, err := r.inRepo(ctx, gitDir, r.top, call{args: args, dir: r.top}); err != nil {
		return fail(addError(err))
	}
	if err := r.checkout(ctx, path); err != nil {
		return fail(fmt.Errorf("write the files: %w", err))
	}
	return nil
}

// runKinds returns the kinds of our refs that have a folder per run.
func runKinds() []string { return []string{"salvage", "tip", "start", "found", "taken", "late"} }

// Drop deletes our refs of a run's attempts. git collects the unreferenced objects later.
func (r *refs) Drop(ctx context.Context, run string) error {
	fail := func(err error) error { return fmt.Errorf("drop what is kept of %s: %w", run, err) }
	if err := checkRef(ownRefs + run); err != nil {
		return fail(err)
	}
	var lines []string
	for _, kind := range runKinds() {
		kept, err := r.OwnBelow(ctx, kind, run)
		if err != nil {
			return fail(err)
		}
		for name, sha := range kept {
			lines = append(lines, fmt.Sprintf("delete %s %s\n", Own(kind, name), sha))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	c := call{args: []string{"update-ref", "--no-deref", "--stdin"},
		stdin: strings.NewReader(strings.Join(lines, "")), env: ourIdentity()}
	if _, err := r.inRepo(ctx, r.common, r.top, c); err != nil {
		return fail(err)
	}
	return nil
}
