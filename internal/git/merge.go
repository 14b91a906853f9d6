package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sluice/internal/fault"
)

// ErrConflict is returned if two commits change the same places; the files are returned with it.
var ErrConflict = errors.New("conflict")

// Replay applies the changes between two commits to another one and returns the tree. It runs in
// the shadow, where no merge driver is defined, and touches no checkout. ErrConflict comes with the
// files. base and tip are "" before a first commit.
func (r *objects) Replay(ctx context.Context, base, tip, onto string) (tree string, conflicts []string, err error) {
	ids := [3]string{}
	for i, commit := range []string{base, onto, tip} {
		if ids[i], err = r.TreeOf(ctx, commit); err != nil {
			return "", nil, fmt.Errorf("merge: %w", err)
		}
	}
	switch {
	case ids[1] == ids[0] || ids[1] == ids[2]:
		return ids[2], nil, nil
	case ids[2] == ids[0]:
		return ids[1], nil, nil
	}
	// This git accepts no merge base: give the two commits a common parent.
	common, err := r.CommitTree(ctx, ids[0], "base\n")
	if err != nil {
		return "", nil, fmt.Errorf("merge: %w", err)
	}
	sides := []string{}
	for _, id := range ids[1:] {
		side, err := r.CommitTree(ctx, id, "side\n", common)
		if err != nil {
			return "", nil, fmt.Errorf("merge: %w", err)
		}
		sides = append(sides, side)
	}
	return r.MergeTree(ctx, common, sides[0], sides[1])
}

// MergeTree merges two commits with the common base in the shadow and returns the tree. ErrConflict
// comes with the files that have conflict markers in the tree.
func (r *objects) MergeTree(ctx context.Context, base, ours, theirs string) (
	tree string, conflicts []string, err error) {
	if err := r.wholeTrees(ctx, base, ours, theirs); err != nil {
		return "", nil, fmt.Errorf("merge: %w", err)
	}
	out, err := r.shadow(ctx, call{
		args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
			"--allow-unrelated-histories", ours, theirs},
		limit: listOutput, timeout: treeTime, codes: []int{1},
	})
	if err != nil {
		return "", nil, fmt.Errorf("merge: %w", err)
	}
	fields := names(out)
	if len(fields) == 0 || checkSHA(fields[0]) != nil {
		return "", nil, fmt.Errorf("merge: git printed %.80q", out)
	}
	if len(fields) == 1 {
		return fields[0], nil, nil
	}
	conflicts = slices.DeleteFunc(fields[1:], func(f string) bool { return f == "" })
	slices.Sort(conflicts)
	return fields[0], slices.Compact(conflicts), ErrConflict
}

// MergeBases returns the newest common commits: none, or several after criss-cross merges.
func (r *objects) MergeBases(ctx context.Context, a, b string) ([]string, error) {
	if err := checkSHA(a, b); err != nil {
		return nil, err
	}
	out, err := r.shadow(ctx, call{args: []string{"merge-base", "--all", a, b}, limit: listOutput,
		timeout: treeTime, codes: []int{1}})
	return strings.Fields(string(out)), err
}

// Range lists the commits of tip that the bases lack, oldest first, at most `most`; cut reports that
// there are more. Base "" is empty.
func (r *objects) Range(ctx context.Context, tip string, most int, bases ...string) (commits []Commit, cut bool,
	err error) {
	in, err := span(tip, bases...)
	if err != nil {
		return nil, false, err
	}
	// Unlike NewCommits it skips no missing commit: callers decide by the list.
	if commits, cut, err = r.newest(ctx, strings.NewReader(in), most); err != nil {
		return nil, false, fmt.Errorf("commits: %w", err)
	}
	slices.Reverse(commits)
	return commits, cut, nil
}

// Person is who commits, and how.
type Person struct {
	Name, Email string
	author      Author   // of what is new, where it is not the same
	sign        []string // the person's own settings for signing; nil = unsigned
}

// Lander returns the person as git knows them: by env, git's variables in the person's own command, else by git's
// settings, also the repo's. Signing comes only from the person's own settings, as it names programs.
func (r *Repo) Lander(ctx context.Context, env map[string]string) (p Person, err error) {
	gitDir, top, err := r.gitDirOf(r.top)
	if err != nil {
		return p, err
	}
	read := func(args ...string) (map[string]string, error) {
		c := call{args: append([]string{"config", "--includes", "--null"}, args...), env: remoteEnv(), userConfig: true,
			codes: []int{1}}
		out, err := r.inRepo(ctx, gitDir, top, c)
		if err != nil {
			return nil, fmt.Errorf("who you are: %w", err)
		}
		values := map[string]string{}
		for _, entry := range names(out) {
			s := settingIn(entry)
			values[s.Key] = s.Value
		}
		return values, nil
	}
	who, err := read("--get-regexp", `^user\.(name|email)$`)
	if err != nil {
		return p, err
	}
	p.Name = cmp.Or(env["GIT_COMMITTER_NAME"], who["user.name"])
	p.Email = cmp.Or(env["GIT_COMMITTER_EMAIL"], who["user.email"])
	p.author.Name = cmp.Or(env["GIT_AUTHOR_NAME"], who["user.name"])
	p.author.Email = cmp.Or(env["GIT_AUTHOR_EMAIL"], who["user.email"])
	if p.Name == "" || p.Email == "" || p.author.Name == "" || p.author.Email == "" {
		return p, fault.New("`git config --global user.name \"YOUR NAME\"` and "+
			"`git config --global user.email YOU@EXAMPLE`", "git does not know who you are")
	}
	own, err := read("--global", "--get-regexp", `^(commit\.gpgsign|user\.signingkey|gpg\..*)$`)
	if err != nil && os.Getenv("HOME") != "" {
		return p, err
	}
	switch own["commit.gpgsign"] {
	case "true", "yes", "on", "1":
		p.sign = []string{}
		for key, value := range own {
			p.sign = append(p.sign, key, value)
		}
	}
	return p, nil
}

// Author is who wrote a commit; without a Date it is now.
type Author struct{ Name, Email, Date string }

// CommitAs commits a tree in a person's name, signed by their own settings. No hook runs.
func (r *objects) CommitAs(ctx context.Context, p Person, by *Author, tree, message string,
	parents ...string) (string, error) {
	args := []string{"commit-tree", "--no-gpg-sign"}
	env := append(remoteEnv(), "GIT_COMMITTER_NAME="+p.Name, "GIT_COMMITTER_EMAIL="+p.Email)
	if by == nil {
		by = &Author{Name: cmp.Or(p.author.Name, p.Name), Email: cmp.Or(p.author.Email, p.Email)}
	}
	env = append(env, "GIT_AUTHOR_NAME="+by.Name, "GIT_AUTHOR_EMAIL="+by.Email)
	if by.Date != "" {
		env = append(env, "GIT_AUTHOR_DATE="+by.Date)
	}
	if p.sign != nil {
		args[1] = "--gpg-sign"
		env = append(append(env, signEnv()...), setting(p.sign...)...)
	}
	if err := checkSHA(append([]string{tree}, parents...)...); err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	c := call{args: append(args, tree), env: env, stdin: strings.NewReader(message), timeout: remoteTime}
	sha, err := r.line(ctx, c)
	if err != nil {
		err = fmt.Errorf("commit: %w", err)
	}
	return sha, err
}

// signEnv returns the environment variables that a signing program needs.
func signEnv() []string {
	var env []string
	for _, name := range []string{"GNUPGHOME", "GPG_TTY", "GPG_AGENT_INFO", "DISPLAY", "WAYLAND_DISPLAY",
		"TERM", "SSH_ASKPASS"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Push sends a commit to a branch at an address, like LsRemotePulls: outside the repo, without
// hooks, with the person's own settings. The branch moves only from was ("" = it is not there), so
// nothing that somebody else pushed meanwhile is lost.
func (r *objects) Push(ctx context.Context, address, commit, branch, was string) error {
	protocol, err := checkURL(address)
	if err != nil {
		return err
	}
	ref := BranchRefs + branch
	if err := errors.Join(checkSHA(commit), checkRef(ref)); err != nil {
		return err
	}
	env := append([]string{"GIT_ALLOW_PROTOCOL=" + protocol}, remoteEnv()...)
	if was != "" {
		if err := checkSHA(was); err != nil {
			return err
		}
	}
	c := call{args: []string{"push", "--quiet", "--no-verify", "--no-recurse-submodules",
		"--force-with-lease=" + ref + ":" + was, address, commit + ":" + ref},
		env: env, timeout: treeTime, userConfig: true}
	if _, err := r.shadow(ctx, c); err != nil {
		return fmt.Errorf("push to %s: %w", ShownURL(address), err)
	}
	return nil
}
