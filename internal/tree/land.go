package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/git"
	"sluice/internal/layout"
)

// Ways to land a run's work.
const (
	Squash = "squash" // one commit
	FF     = "ff"     // the branch fast-forwards to the run's commits
	Merge  = "merge"  // a merge commit
	Rebase = "rebase" // the run's commits, recreated
	PR     = "pr"     // a pull request of the run's commits
)

const (
	// trailerPrefix begins the trailers that record who decided. Only sluice writes them.
	trailerPrefix = "Sluice-"
	// maxCommits is how many commits one landing may have.
	maxCommits = 1000
	// landedRefs is the kind of refs for the commit that a branch gets from a run.
	landedRefs = "landed"
)

// Landing brings a run's work onto a branch.
type Landing struct {
	Run      string
	Base     string // the commit that the run began from
	Tip      string // its newest commit
	Onto     string // full name of the branch
	Top      string // the person's checkout
	Worktree string // of the run, for messages to a person
	Branch   string // of the run, without refs/heads/
	Lost     bool   // the worktree is not there
	How      string
	Message  string   // of the new commit, without trailers
	Trailers []string // "Sluice-Run: x-1"
	By       git.Person
	Commits  []git.Commit // of the run that Onto lacked when this was prepared, oldest first
}

// Landed is the result of a landing.
type Landed struct {
	From    string       // the branch's commit before
	Commit  string       // and after
	Commits []git.Commit // of the run, which the branch lacked, oldest first
	Files   int          // that differ on the branch
	Already bool         // the branch had the work
}

// commits lists the run's commits that the commit onto lacks, oldest first. It refuses commits with
// sluice's trailers: why names the first. Those that onto has may have been landed by sluice; what
// is on any other branch counts as the run's, because an agent can have put it there.
func (l Landing) commits(ctx context.Context, repo *git.Repo, onto string) (list []git.Commit, why string, err error) {
	list, cut, err := repo.Range(ctx, l.Tip, maxCommits, l.Base, onto)
	if err != nil {
		return nil, "", err
	}
	if cut {
		return nil, fmt.Sprintf("the branch has more than %d commits: run git merge --squash %.12s yourself",
			maxCommits, l.Tip), nil
	}
	for _, c := range list {
		for line := range strings.Lines(c.Message) {
			if len(line) >= len(trailerPrefix) && strings.EqualFold(line[:len(trailerPrefix)], trailerPrefix) {
				return nil, fmt.Sprintf("commit %.12s contains %.80q, which only sluice may write: reword it (git rebase "+
					"--interactive %.12s)",
					c.SHA, strings.TrimSpace(line), l.Base), nil
			}
		}
	}
	return list, "", nil
}

// Forged says which of the run's commits that the commit onto lacks has a trailer of sluice's; "" = none has.
func (l Landing) Forged(ctx context.Context, repo *git.Repo, onto string) (why string, err error) {
	_, why, err = l.commits(ctx, repo, onto)
	return why, err
}

// Do brings the work onto the branch, and into the person's checkout if it has the branch checked
// out. If why is not empty, a person must act, and nothing was changed. A call after a kill
// completes the landing.
func (l Landing) Do(ctx context.Context, repo *git.Repo) (Landed, string, error) {
	out, why, err := l.do(ctx, repo, func(string) {})
	_, ofGit := errors.AsType[*git.CommandError](err)
	if ofGit || errors.Is(err, git.ErrMissing) { // was a missing object the cause?
		for _, commit := range []string{l.Base, l.Tip, out.From} {
			if why, _ := lacks(repo.Whole(ctx, commit)); why != "" {
				return out, why, nil
			}
		}
	}
	return out, why, err
}

func (l Landing) do(ctx context.Context, repo *git.Repo, at func(string)) (out Landed, why string, err error) {
	if err := Settle(ctx, repo, l.Top); err != nil {
		return out, "", err
	}
	tip, err := repo.TipOf(ctx, l.Onto)
	switch {
	case err != nil:
		return out, "", err
	case tip.SHA == "":
		return out, fmt.Sprintf("there is no branch %s: run git branch %s, or name another with --onto",
			git.ShortBranch(l.Onto), git.ShortBranch(l.Onto)), nil
	}
	out.From = tip.SHA
	if out.Commits, why, err = l.commits(ctx, repo, tip.SHA); err != nil || why != "" {
		return out, why, err
	}
	if out.Commit, why, err = l.make(ctx, repo, tip.SHA, out.Commits); err != nil || why != "" {
		out.Already = err == nil && out.Commit == out.From
		return out, why, err
	}
	changes, err := repo.ChangesBetween(ctx, out.From, out.Commit)
	if err != nil {
		return out, "", err
	}
	out.Files = len(changes)
	at("made")
	ref := git.Own(landedRefs, l.Run)
	was, err := repo.TipOf(ctx, ref)
	if err != nil {
		return out, "", err
	}
	// Before the branch moves: LandedAs checks whether it has the commit, also after a kill.
	if err := repo.Keep(ctx, ref, out.Commit); err != nil {
		return out, "", err
	}
	at("kept")
	_, why, err = Advance{Branch: l.Onto, From: out.From, To: out.Commit, Top: l.Top, Write: true}.do(ctx, repo,
		indexWait, at)
	if err == nil && why != "" && was.SHA != out.Commit {
		err = repo.MoveRef(ctx, repo.Top(), ref, out.Commit, was.SHA, "sluice: not landed")
	}
	return out, why, err
}

// Settle completes a killed process's move whose ref has moved but whose index has not. It skips a
// folder that is gone.
func Settle(ctx context.Context, repo *git.Repo, top string) error {
	dir, err := repo.GitDir(top)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !git.IndexLeft(dir) {
		return nil
	}
	h, err := repo.HoldIndex(ctx, top, indexWait)
	if err != nil {
		return err
	}
	if moved, err := complete(h.Guard(ctx), repo, h, func(string) {}); moved && err != nil {
		return errors.Join(err, h.Leave())
	}
	return h.Release()
}

// make creates the commit for the branch.
func (l Landing) make(ctx context.Context, repo *git.Repo, onto string,
	list []git.Commit) (commit, why string, err error) {
	if has, err := repo.Descends(ctx, onto, l.Tip); err != nil || has {
		return onto, l.nothing(), err
	}
	switch l.How {
	case FF:
		why, err := l.backward(ctx, repo, onto)
		return l.Tip, why, err
	case Merge:
		tree, files, err := repo.MergeTree(ctx, l.Base, onto, l.Tip)
		return l.commit(ctx, repo, tree, files, err, onto, onto, l.Tip)
	case Rebase:
		return l.rebase(ctx, repo, onto, list)
	}
	tree, files, err := Merged(ctx, repo, l.Base, l.Tip, onto)
	return l.commit(ctx, repo, tree, files, err, onto, onto)
}

// backward returns why the branch cannot be fast-forwarded, where that is wanted.
func (l Landing) backward(ctx context.Context, repo *git.Repo, onto string) (why string, err error) {
	if l.How != FF {
		return "", nil
	}
	if has, err := repo.Descends(ctx, onto, l.Tip); err != nil || has {
		return "", err
	}
	forward, err := repo.Descends(ctx, l.Tip, onto)
	if err == nil && !forward {
		why = fmt.Sprintf("%s has commits that %s is not built on: land it without --ff (one squashed commit), or with "+
			"--rebase or --merge", git.ShortBranch(l.Onto), l.Run)
	}
	return why, err
}

// Merged returns the tree of a run's work from base to tip merged into a commit. If that was rebased, it lacks
// the run's base, and an ordinary merge would restore what the person dropped, so only the run's changes are applied.
func Merged(ctx context.Context, repo *git.Repo, base, tip, onto string) (tree string, conflicts []string, err error) {
	stands, err := repo.Descends(ctx, onto, base)
	if err != nil {
		return "", nil, err
	}
	if stands {
		return repo.MergeTree(ctx, base, onto, tip)
	}
	return repo.Replay(ctx, base, tip, onto)
}

func (l Landing) nothing() string {
	return fmt.Sprintf("%s has the work of %s already: there is nothing to land", git.ShortBranch(l.Onto), l.Run)
}

// commit creates the single commit of a merged tree.
func (l Landing) commit(ctx context.Context, repo *git.Repo, tree string, files []string, err error,
	onto string, parents ...string) (string, string, error) {
	if errors.Is(err, git.ErrConflict) {
		return "", l.conflict(files), nil
	}
	if err != nil {
		return "", "", err
	}
	was, err := repo.TreeOf(ctx, onto)
	if err != nil {
		return "", "", err
	}
	if was == tree && len(parents) == 1 {
		return onto, l.nothing(), nil
	}
	sha, err := repo.CommitAs(ctx, l.By, nil, tree, withTrailers(l.Message, l.Trailers), parents...)
	return sha, "", err
}

// rebase recreates the run's commits on the branch. Empty ones are omitted; the last has the
// trailers.
func (l Landing) rebase(ctx context.Context, repo *git.Repo, onto string, list []git.Commit) (string, string, error) {
	type made struct {
		tree string
		of   git.Commit
	}
	var todo []made
	at, tree := onto, ""
	was, err := repo.TreeOf(ctx, onto)
	if err != nil {
		return "", "", err
	}
	for _, c := range list {
		if len(c.Parents) > 1 {
			return "", fmt.Sprintf("commit %.12s is a merge, which cannot be recreated: land it without --rebase (one "+
				"squashed commit), or with --merge", c.SHA), nil
		}
		parent := ""
		if len(c.Parents) == 1 {
			parent = c.Parents[0]
		}
		var files []string
		tree, files, err = repo.Replay(ctx, parent, c.SHA, at)
		if errors.Is(err, git.ErrConflict) {
			return "", fmt.Sprintf("commit %.12s: %s", c.SHA, l.conflict(files)), nil
		}
		if err != nil {
			return "", "", err
		}
		if tree == was {
			continue
		}
		was = tree
		todo = append(todo, made{tree, c})
		if at, err = repo.CommitTree(ctx, tree, "step\n", at); err != nil { // the base to replay the next one on
			return "", "", err
		}
	}
	if len(todo) == 0 {
		return onto, l.nothing(), nil
	}
	at = onto
	for i, m := range todo {
		message := m.of.Message
		if i == len(todo)-1 {
			message = withTrailers(message, l.Trailers)
		}
		by := &git.Author{Name: m.of.AuthorName, Email: m.of.AuthorEmail,
			Date: "@" + strconv.FormatInt(max(m.of.AuthorDate.Unix(), 0), 10) + " +0000"}
		if at, err = repo.CommitAs(ctx, l.By, by, m.tree, message, at); err != nil {
			return "", "", err
		}
	}
	return at, "", nil
}

// conflict names the files that both sides change, and what to do.
func (l Landing) conflict(files []string) string {
	again := ""
	if l.Lost {
		again = fmt.Sprintf("git worktree add -f %s %s && ", l.Worktree, l.Branch)
	}
	return fmt.Sprintf("%s and %s change the same places in %s: run `%sgit -C %s merge %s`, resolve the conflicts "+
		"and commit; `sluice retry %s STEP` does the step again on top, and its gates judge both",
		l.Run, git.ShortBranch(l.Onto), some(files), again, l.Worktree, git.ShortBranch(l.Onto), l.Run)
}

// withTrailers ends a message with a paragraph of trailers.
func withTrailers(message string, trailers []string) string {
	message = strings.TrimSpace(message) + "\n"
	if len(trailers) == 0 {
		return message
	}
	return message + "\n" + strings.Join(trailers, "\n") + "\n"
}

// Trailer formats a key and a value as one line, so that the value cannot begin another trailer.
func Trailer(key, value string) string {
	return trailerPrefix + key + ": " + strings.Join(strings.Fields(value), " ")
}

// LandedAs returns the commit that a run was landed as, or "", and whether the branch has it: a
// kill may have come before the branch moved, or a person has moved it back.
func LandedAs(ctx context.Context, repo *git.Repo, run, onto string) (commit string, there bool, err error) {
	tip, err := repo.TipOf(ctx, git.Own(landedRefs, run))
	if err != nil || tip.SHA == "" {
		return "", false, err
	}
	branch, err := repo.TipOf(ctx, onto)
	if err != nil || branch.SHA == "" {
		return tip.SHA, false, err
	}
	there, err = repo.Descends(ctx, branch.SHA, tip.SHA)
	return tip.SHA, there, err
}

// HasLanded reports whether the run's work was landed, on whichever branch.
func HasLanded(ctx context.Context, repo *git.Repo, run string) (bool, error) {
	tip, err := repo.TipOf(ctx, git.Own(landedRefs, run))
	return tip.SHA != "", err
}

// Close removes the worktree of a run whose work is on its branch. If changed or new files are in
// no commit, it stays, and why names them. Ignored files are removed.
func Close(ctx context.Context, repo *git.Repo, dir string) (why string, err error) {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	changes, err := repo.Changed(ctx, dir, "")
	if err != nil {
		return "", err
	}
	files := slices.DeleteFunc(changes.Files, oursIn)
	if len(files) > 0 {
		return fmt.Sprintf("%s has files that are in no commit: %s: commit or remove them", dir, some(files)), nil
	}
	return "", repo.CloseWorktree(ctx, dir)
}

// oursIn reports whether sluice itself keeps a file of a run's worktree. Other files in .workflow/
// are a person's or an agent's.
func oursIn(file string) bool {
	below, ok := strings.CutPrefix(file, layout.WorkflowDir+"/")
	name, _, _ := strings.Cut(below, "/")
	return ok && slices.Contains(layout.OwnFolders(), name)
}
