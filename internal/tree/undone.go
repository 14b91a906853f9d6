package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/git"
)

// part is a commit of others in a run's history.
type part struct{ commit, of string }

// keeps refuses a tip whose history has commits of others without their changes. On its target
// branch, those changes would be lost; on others, a later merge would bring nothing, as git
// considers it merged. The judges have not seen that, because the run began without these commits.
func (w Work) keeps(ctx context.Context, repo *git.Repo, l Landing, onto string) error {
	if onto == "" {
		return nil
	}
	merged, err := repo.MergeBases(ctx, onto, l.Tip)
	if err != nil {
		return err
	}
	var parts []part
	for _, m := range merged {
		parts = append(parts, part{m, git.ShortBranch(l.Onto)})
	}
	if l.How != Squash && l.How != Rebase { // these drop the history
		others, err := w.others(ctx, repo, l, onto)
		if err != nil {
			return err
		}
		parts = append(parts, others...)
	}
	for i, m := range parts {
		files, err := undone(ctx, repo, l.Base, l.Tip, m.commit)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			do := fmt.Sprintf("look: git diff %.12s %.12s; then `%s --unjudged`", m.commit, l.Tip, w.Typed)
			if i >= len(merged) {
				do += fmt.Sprintf(", or `%s` for one commit without that history", w.Typed)
			}
			return stuck(do, "branch %s has merged %.12s of %s, and undoes or changes again what that brought: %s", w.Branch,
				m.commit, m.of, some(files))
		}
	}
	return nil
}

// others returns the newest commits in the run's history that are on others' branches and tags.
func (w Work) others(ctx context.Context, repo *git.Repo, l Landing, onto string) ([]part, error) {
	refs, err := w.refs(ctx, repo, l.Tip)
	if err != nil {
		return nil, err
	}
	found, err := newest(ctx, repo, l, onto, refs)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	// A person's branch has of another what the person wants. Another run may have undone it, so
	// each run counts by itself.
	var out []part
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		run, err := w.isRun(ctx, repo, name)
		if err != nil {
			return nil, err
		}
		if !run {
			continue
		}
		found, err := newest(ctx, repo, l, onto, map[string]string{name: refs[name]})
		if err != nil {
			return nil, err
		}
		delete(refs, name)
		out = append(out, found...)
	}
	found, err = newest(ctx, repo, l, onto, refs)
	return append(found, out...), err
}

// refs returns the branches and tags of others, by full name, except those that contain the tip and
// so build on the run's work.
func (w Work) refs(ctx context.Context, repo *git.Repo, tip string) (map[string]string, error) {
	named, err := repo.NamedBy(ctx, repo.Top())
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(named.Refs, func(name, _ string) bool {
		return name == git.BranchRefs+w.Branch || strings.HasPrefix(name, remoteRefs) && strings.HasSuffix(name, "/"+w.Branch)
	})
	has := func(refs map[string]string) (bool, error) {
		lacking, _, err := repo.NewCommits(ctx, map[string]string{"tip": tip}, slices.Collect(maps.Values(refs)), 1)
		return len(lacking) == 0, err
	}
	if some, err := has(named.Refs); err != nil || !some {
		return named.Refs, err
	}
	for name, sha := range named.Refs {
		if on, err := has(map[string]string{name: sha}); err != nil {
			return nil, err
		} else if on {
			delete(named.Refs, name)
		}
	}
	return named.Refs, nil
}

const remoteRefs = "refs/remotes/"

// isRun reports whether a ref is a run's branch, here or of a remote.
func (w Work) isRun(ctx context.Context, repo *git.Repo, name string) (bool, error) {
	prefix := "/" + strings.TrimSuffix(w.Branch, w.Run)
	_, run, found := strings.Cut(name, prefix)
	if !found || !strings.HasPrefix(name, git.BranchRefs) && !strings.HasPrefix(name, remoteRefs) {
		return false, nil
	}
	base, err := repo.TipOf(ctx, git.Own("base", run))
	return base.SHA != "", err
}

// newest returns the newest of the run's commits that some of the refs have too.
func newest(ctx context.Context, repo *git.Repo, l Landing, onto string, refs map[string]string) ([]part, error) {
	not := append(slices.Collect(maps.Values(refs)), l.Base, onto)
	own, _, err := repo.NewCommits(ctx, map[string]string{"tip": l.Tip}, not, len(l.Commits))
	if err != nil {
		return nil, err
	}
	theirs := map[string]bool{}
	for _, c := range l.Commits {
		theirs[c.SHA] = true
	}
	for _, c := range own {
		delete(theirs, c.SHA)
	}
	before := map[string]bool{}
	for _, c := range l.Commits {
		for _, p := range c.Parents {
			before[p] = before[p] || theirs[c.SHA]
		}
	}
	var out []part
	for _, c := range l.Commits {
		if !theirs[c.SHA] || before[c.SHA] {
			continue
		}
		of := "another branch"
		for _, name := range slices.Sorted(maps.Keys(refs)) {
			if refs[name] == c.SHA {
				of = strings.TrimPrefix(git.ShortBranch(name), remoteRefs)
				break
			}
		}
		out = append(out, part{c.SHA, of})
	}
	return out, nil
}

// undone returns the files in which tip lacks the changes between base and a commit of its history.
func undone(ctx context.Context, repo *git.Repo, base, tip, merged string) (files []string, err error) {
	if has, err := repo.Descends(ctx, base, merged); err != nil || has {
		return nil, err
	}
	from, err := repo.MergeBases(ctx, base, merged)
	if err != nil {
		return nil, err
	}
	before := strings.Join(from[:min(len(from), 1)], "")
	tree, files, err := repo.Replay(ctx, before, merged, tip)
	if err != nil && !errors.Is(err, git.ErrConflict) {
		return nil, err
	}
	changes, err := repo.ChangesBetween(ctx, tip, tree)
	for _, c := range changes {
		files = append(files, c.Path)
	}
	if err != nil || len(files) == 0 {
		return nil, err
	}
	slices.Sort(files)
	return resolution{before, merged, tip}.undone(ctx, repo, slices.Compact(files))
}

// resolution is a merge of a commit into the tip, both begun from before; "" = an empty tree. What
// it has resolved is a conflict for git whenever it is merged again.
type resolution struct{ before, merged, tip string }

// undone returns those of the files in which the tip lacks a line that merged has added, or has one
// that merged has removed.
func (r resolution) undone(ctx context.Context, repo *git.Repo, files []string) (out []string, err error) {
	theirs, err := changesBy(ctx, repo, r.before, r.merged)
	if err != nil {
		return nil, err
	}
	since, err := changesBy(ctx, repo, r.merged, r.tip)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if kept, err := r.keeps(ctx, repo, theirs[f], since[f]); err != nil {
			return nil, err
		} else if !kept {
			out = append(out, f)
		}
	}
	return out, nil
}

func changesBy(ctx context.Context, repo *git.Repo, from, to string) (map[string]git.Change, error) {
	list, err := repo.ChangesBetween(ctx, from, to)
	by := map[string]git.Change{}
	for _, c := range list {
		by[c.Path] = c
	}
	return by, err
}

// keeps reports whether a file has what merged changed in it. since is what the tip changed on top.
// Its removed lines must not be those that merged added; its added lines must be new, and not kept
// from before.
func (r resolution) keeps(ctx context.Context, repo *git.Repo, theirs, since git.Change) (bool, error) {
	file := func(mode string) bool { return strings.HasPrefix(mode, "100") }
	newMode := theirs.Old != theirs.New && since.Old != since.New
	if theirs.Path == "" || newMode || !file(since.Old) || !file(since.New) {
		return false, nil
	}
	onTop, err := linesBetween(ctx, repo, r.merged, r.tip, since.Path)
	if err != nil {
		return false, err
	}
	brought, err := linesBetween(ctx, repo, r.before, r.merged, since.Path)
	if err != nil {
		return false, err
	}
	all, err := linesBetween(ctx, repo, r.before, r.tip, since.Path)
	if err != nil || onTop.cut || brought.cut || all.cut {
		return false, err
	}
	for n := range onTop.gone {
		if brought.came[n] {
			return false, nil
		}
	}
	for n := range onTop.came {
		if !all.came[n] {
			return false, nil
		}
	}
	return true, nil
}

const (
	// maxPatch limits how much of the differences of a file is read.
	maxPatch = 4 << 20
	// maxHunk limits how much of a line is read to find where its hunk is.
	maxHunk = 80
)

// lines are those in which two commits of a file differ, by number.
type lines struct {
	gone map[int]bool // only in the first
	came map[int]bool // only in the second
	cut  bool         // there are too many
}

func linesBetween(ctx context.Context, repo *git.Repo, from, to, file string) (lines, error) {
	l := lines{gone: map[int]bool{}, came: map[int]bool{}}
	patch, cut, err := repo.Between(ctx, from, to, maxPatch, git.Look{Paths: []string{file}, Bare: true})
	l.cut = cut
	for line := range bytes.Lines(patch) {
		if f := strings.Fields(string(line[:min(len(line), maxHunk)])); len(f) > 2 && f[0] == "@@" {
			number(l.gone, f[1])
			number(l.came, f[2])
		}
	}
	return l, err
}

// number adds the lines of a hunk's side: -12 or +12 is one line, -12,3 are three.
func number(lines map[int]bool, side string) {
	first, many, several := strings.Cut(side[1:], ",")
	from, err := strconv.Atoi(first)
	n := 1
	if several && err == nil {
		n, err = strconv.Atoi(many)
	}
	for i := 0; err == nil && i < n; i++ {
		lines[from+i] = true
	}
}
