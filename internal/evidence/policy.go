package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// Ways to compare a commit with a statement.
const (
	MatchCommit = "commit" // the statement names the commit
	MatchTree   = "tree"   // or a commit with the same tree
)

// What of a run a gate must have judged.
const (
	JudgedCommit = "commit" // the work itself, as it was landed
	JudgedRun    = "run"    // anything: an earlier step's work, such as a plan
)

// SpecsOfBase stands among a policy's specs for those of the commit that the policy was read from.
const SpecsOfBase = "base"

// Policy is what is asked of commits.
type Policy struct {
	File string // for messages
	Base string // the commit that it was read from; "" = a file

	Start      string   // commit: nothing is asked of it and its ancestors; "" = of all
	Match      string   // MatchCommit or MatchTree
	Accept     []string // HowWork, HowMerged, HowCarried
	Unfinished bool     // a run that has not completed counts
	Gates      []Rule
	Workflows  []string // "" = any
	Specs      []string // digests, or SpecsOfBase; none = any
	Paths      []string // globs: only commits that change one of these are asked; none = all
	Exempt     []string // globs: files that do not count as changed

	Signers   approval.List // whose statements count
	Approvers approval.List // whose signed answers count
}

// Rule is a gate that must have passed.
type Rule struct {
	Gate    string
	Judged  string   // JudgedCommit or JudgedRun
	Trust   string   // lowest level; "" = any
	By      []string // people, one of whom must have passed it; none = anybody
	Skipped bool     // a gate that was skipped by its `when` counts
	Line    int      // in the policy
}

// maxPolicy limits a policy's file.
const maxPolicy = 128 << 10

// ReadPolicy reads a policy: from a file, or from that file at the commit that a trusted name stands
// for. Where the judged commits could have written what is read, it is refused.
func ReadPolicy(ctx context.Context, repo *git.Repo, file, from string, judged []git.Commit) (*Policy, error) {
	if from != "" {
		return policyAt(ctx, repo, file, from, judged)
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	dir, name, inside := within(repo.Top(), abs)
	data, _, err := atomicfile.OpenRegular(dir, name, maxPolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Misused("name the file of the policy: --policy FILE", "%s: no such file", text.Line(file))
	}
	if err != nil {
		return nil, err
	}
	if inside {
		for _, c := range judged {
			changed, err := changes(ctx, repo, c)
			if err != nil {
				return nil, err
			}
			if slices.Contains(changed, filepath.ToSlash(name)) {
				return nil, fault.Misused("read it from where they cannot write: --policy-from origin/main",
					"%s: commit %.12s, which it is to judge, changes it", text.Line(file), c.SHA)
			}
		}
	}
	p, err := ParsePolicy(text.Line(file), data)
	if err == nil && slices.Contains(p.Specs, SpecsOfBase) {
		return nil, fault.Misused("read the policy from there too: --policy-from origin/main",
			"%s: specs: %s is the specs of the commit that the policy is read from", p.File, SpecsOfBase)
	}
	return p, err
}

// within says how to read a file. In the checkout, it is named from the top: a link below that is not
// followed, because a judged commit may have put it there. It may lead to the top, so the outermost
// folder that is the top counts.
func within(top, file string) (dir, name string, inside bool) {
	at, err := os.Stat(top)
	for up := filepath.Dir(file); err == nil; up = filepath.Dir(up) {
		if here, err := os.Stat(up); err == nil && os.SameFile(here, at) {
			name, _ = filepath.Rel(up, file) // it is above
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	if name != "" {
		return top, name, true
	}
	dir, name = filepath.Split(file)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if rel, inside := layout.Rel(top, filepath.Join(real, name)); inside {
			return top, rel, true
		}
	}
	return filepath.Clean(dir), name, false
}

func policyAt(ctx context.Context, repo *git.Repo, file, from string, judged []git.Commit) (*Policy, error) {
	name := filepath.ToSlash(file)
	if path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") {
		return nil, fault.Misused("name it from the top of the repo, such as .workflow/gates.yaml",
			"--policy %s: with --policy-from it is a file of a commit", text.Line(file))
	}
	commit, err := git.Resolve(ctx, repo, from)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(judged, func(c git.Commit) bool { return c.SHA == commit }) {
		return nil, fault.Misused("name what the commits are to be merged into: --policy-from origin/main",
			"--policy-from %s is %.12s, one of the commits that the policy is to judge", text.Line(from), commit)
	}
	data, err := fileAt(ctx, repo, commit, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Misused("commit the policy there first", "%s (%.12s) has no file %s", text.Line(from), commit,
			text.Line(name))
	}
	if err != nil {
		return nil, err
	}
	p, err := ParsePolicy(text.Line(from)+":"+text.Line(name), data)
	if err == nil {
		p.Base = commit
	}
	return p, err
}

// fileAt returns a regular file of a commit; fs.ErrNotExist if there is none of that name.
func fileAt(ctx context.Context, repo *git.Repo, commit, name string) ([]byte, error) {
	all, err := repo.ChangesBetween(ctx, "", commit)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.Path == name && f.New != git.ModeLink && !f.Submodule() {
			return git.BlobStart(ctx, repo, f.NewID, maxPolicy+1)
		}
	}
	return nil, fs.ErrNotExist
}

// changes lists the files that a commit changes: of a merge, those that differ from any parent.
func changes(ctx context.Context, repo *git.Repo, c git.Commit) ([]string, error) {
	parents := c.Parents
	if len(parents) == 0 {
		parents = []string{""}
	}
	seen := map[string]bool{}
	var out []string
	for _, p := range parents {
		list, err := repo.ChangesBetween(ctx, p, c.SHA)
		if err != nil {
			return nil, fmt.Errorf("what %.12s changes: %w", c.SHA, err)
		}
		for _, ch := range list {
			if !seen[ch.Path] {
				seen[ch.Path] = true
				out = append(out, ch.Path)
			}
		}
	}
	return out, nil
}
