package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/git"
	"sluice/internal/text"
)

// Work is the result of a run with its own worktree.
type Work struct {
	Run    string
	Title  string // of its workflow
	Dir    string // the worktree
	Shown  string // the worktree, for messages to a person
	Branch string // without refs/heads/
	Typed  string // the command that lands it
	Passed []Passed
	Did    []string // "STEP: what it says that it did", one line each
	// Judged reports whether some round judged a commit, with any outcome.
	Judged bool
	// Unjudged accepts the branch even if no round has passed its files.
	Unjudged bool
	// Env has git's variables that name the person whose command lands it; nil = a workflow lands it.
	Env map[string]string
}

// Passed is a round that has passed.
type Passed struct {
	Gate, Outcome, Who string
	Content            string // the commit it judged, if all gates of the step passed that; else ""
	Own                bool   // the work is in the run's own worktree, whose branch has moved to it
	Said               bool   // the newest round of a gate in the spec: a trailer names it
}

// Stuck is why work cannot be landed, and what a person can do.
type Stuck struct{ Why, Do string }

func (s *Stuck) Error() string { return s.Why + ": " + s.Do }

func stuck(do, format string, args ...any) error {
	return &Stuck{Why: fmt.Sprintf(format, args...), Do: do}
}

// Landing prepares the landing on the branch with the full name onto. message is for the new
// commit; "" = made from the commits. If a person must act, the error is a *Stuck.
func (w Work) Landing(ctx context.Context, repo *git.Repo, onto, how, message string) (Landing, error) {
	l := Landing{Run: w.Run, How: how, Onto: onto, Top: repo.Top(), Worktree: w.Shown, Message: message,
		Trailers: w.trailers(), Branch: w.Branch}
	_, lost := os.Lstat(w.Dir)
	l.Lost = errors.Is(lost, fs.ErrNotExist)
	tip, err := repo.TipOf(ctx, git.BranchRefs+w.Branch)
	if err != nil {
		return l, err
	}
	base, err := repo.TipOf(ctx, git.Own("base", w.Run))
	if err != nil {
		return l, err
	}
	if tip.SHA == "" && base.SHA != "" {
		return l, w.gone()
	}
	if tip.SHA == "" || base.SHA == "" {
		return l, stuck("`git branch --list 'sluice/*'` lists those that exist",
			"%s has no branch %s: it never began", w.Run, w.Branch)
	}
	l.Tip, l.Base = tip.SHA, base.SHA
	if l.Tip == l.Base {
		if files := w.Uncommitted(ctx, repo); len(files) > 0 {
			return l, stuck("look at them, then commit them there: `git -C "+w.Shown+" add -A && git -C "+w.Shown+" commit`",
				"%s has committed nothing: its worktree has %s that no commit has: %s",
				w.Run, text.Plural(len(files), "file"), some(files))
		}
		return l, stuck("`sluice status "+w.Run+"` shows how it went", "%s has changed nothing", w.Run)
	}
	why, err := Unfinished(repo, w.Dir, git.BranchRefs+w.Branch)
	if err != nil || why != "" {
		return l, errors.Join(err, w.undone(why))
	}
	if err := w.unless(w.judged(ctx, repo, l), &l); err != nil {
		return l, err
	}
	at, err := repo.TipOf(ctx, l.Onto)
	if err == nil {
		err = w.bare(ctx, repo, l, at.SHA)
	}
	if err != nil {
		return l, err
	}
	l.Commits, why, err = l.commits(ctx, repo, at.SHA)
	if err == nil && why == "" {
		why, err = l.backward(ctx, repo, at.SHA)
	}
	if err != nil || why != "" {
		return l, errors.Join(err, w.undone(why))
	}
	if err := w.unless(w.keeps(ctx, repo, l, at.SHA), &l); err != nil {
		return l, err
	}
	if l.Message == "" {
		l.Message = w.message(l)
	}
	l.By, err = repo.Lander(ctx, w.Env)
	return l, err
}

// bare refuses commits with files in an inbox: in the person's checkout they would be answers, in every way
// to land. Taking refuses them too, but a person or an older release may have left some.
func (w Work) bare(ctx context.Context, repo *git.Repo, l Landing, onto string) error {
	file, err := planted(ctx, repo, l.Tip, l.Base, onto)
	if err != nil || file == "" {
		return err
	}
	return stuck(fmt.Sprintf("look: git log %.12s..%.12s -- %q; then drop it from each of them (git -C %s rebase "+
		"--interactive %.12s) and `%s` again", l.Base, l.Tip, file, w.Shown, l.Base, w.Typed),
		"a commit of branch %s has %q, where only sluice and its people write", w.Branch, file)
}

// gone is about a branch that was removed.
func (w Work) gone() error {
	for _, p := range slices.Backward(w.Passed) {
		if p.Own && p.Content != "" {
			return stuck(fmt.Sprintf("`git branch %s %.12s` has it back at what has passed; then `%s`", w.Branch, p.Content,
				w.Typed), "the branch %s was removed", w.Branch)
		}
	}
	return stuck(fmt.Sprintf("`sluice attempt show %s ATTEMPT` names what each attempt left; then `git branch %s COMMIT`",
		w.Run, w.Branch), "the branch %s was removed", w.Branch)
}

// unless accepts what is no judged work where the person lands it unjudged: then the new commit says
// that, and names no gates.
func (w Work) unless(err error, l *Landing) error {
	if _, is := errors.AsType[*Stuck](err); !is || !w.Unjudged {
		return err
	}
	l.Trailers = []string{Trailer("Run", w.Run), Trailer("Unjudged", "yes")}
	return nil
}

// Uncommitted returns the worktree's files that are in no commit, or nil if the worktree is gone.
func (w Work) Uncommitted(ctx context.Context, repo *git.Repo) (files []string) {
	changes, err := repo.Changed(ctx, w.Dir, "")
	if err != nil {
		return nil
	}
	for _, f := range changes.Files {
		if !oursIn(f) {
			files = append(files, git.OneLine(f))
		}
	}
	return files
}

// judged refuses a tip whose files no step's gates have passed. It accepts work that was never
// judged.
func (w Work) judged(ctx context.Context, repo *git.Repo, l Landing) error {
	if !w.Judged {
		return nil
	}
	have, err := repo.TreeOf(ctx, l.Tip)
	if err != nil {
		return err
	}
	newest := l.Base
	for _, p := range w.Passed {
		if len(p.Content) != len(l.Tip) {
			continue
		}
		if tree, err := repo.TreeOf(ctx, p.Content); err == nil && tree == have {
			return w.newest(ctx, repo, l, have)
		} else if err == nil {
			newest = p.Content
		}
	}
	lacks, err := w.lacks(ctx, repo, l)
	if err != nil {
		return err
	}
	if lacks != "" {
		return stuck(fmt.Sprintf("look: git diff %.12s %.12s; then `git -C %s merge %.12s` to have it, or "+
			"`%s --unjudged` to go without", l.Tip, lacks, w.Shown, lacks, w.Typed),
			"branch %s is not what a gate of %s has passed: it was not moved to %.12s, which has", w.Branch, w.Run, lacks)
	}
	return stuck(fmt.Sprintf("look: git diff %.12s %.12s; then `sluice retry %s STEP` does the step again on top, and "+
		"its gates judge both, or `%s --unjudged` lands it as it is", newest, l.Tip, w.Run, w.Typed),
		"branch %s is not what a gate of %s has passed", w.Branch, w.Run)
}

// lacks returns the newest passed work in the run's own worktree if the tip is not built on it: its
// branch could not be moved when it passed, or a person has moved it since.
func (w Work) lacks(ctx context.Context, repo *git.Repo, l Landing) (commit string, err error) {
	for _, p := range slices.Backward(w.Passed) {
		if !p.Own || len(p.Content) != len(l.Tip) {
			continue
		}
		if there, err := repo.HasCommit(ctx, p.Content); err != nil || !there {
			return "", err
		}
		on, err := repo.Descends(ctx, l.Tip, p.Content)
		if err != nil || on {
			return "", err
		}
		return p.Content, nil
	}
	return "", nil
}

// newest refuses a tip that a person has reset to before passed work that was not undone: the
// trailers would name gates whose work is missing.
func (w Work) newest(ctx context.Context, repo *git.Repo, l Landing, have string) error {
	var own []string
	for _, p := range w.Passed {
		if p.Own && len(p.Content) == len(l.Tip) && p.Content != l.Tip {
			own = append(own, p.Content)
		}
	}
	if on, err := repo.AnyOn(ctx, l.Tip, own); err != nil || !on {
		return err
	}
	for _, commit := range slices.Backward(own) {
		tree, err := repo.TreeOf(ctx, commit)
		if err != nil || tree == have {
			continue
		}
		on, err := repo.AnyOn(ctx, l.Tip, []string{commit})
		if err != nil {
			return err
		}
		if on {
			return stuck(fmt.Sprintf("look: git diff %.12s %.12s; then `git -C %s merge --ff-only %.12s` to have it back, or "+
				"`%s --unjudged` to go without", l.Tip, commit, w.Shown, commit, w.Typed),
				"branch %s was set back to %.12s, before %.12s, which has passed", w.Branch, l.Tip, commit)
		}
	}
	return nil
}

// trailers names the run and who passed its gates.
func (w Work) trailers() []string {
	var said []string
	times := map[string]int{} // tasks have the same gates
	for _, p := range w.Passed {
		if !p.Said {
			continue
		}
		line := fmt.Sprintf("%s %s by %s", p.Gate, p.Outcome, p.Who)
		if times[line]++; times[line] == 1 {
			said = append(said, line)
		}
	}
	out := []string{Trailer("Run", w.Run)}
	for _, line := range said {
		if n := times[line]; n > 1 {
			line += fmt.Sprintf(" (%d times)", n)
		}
		out = append(out, Trailer("Gate", line))
	}
	return out
}

// subjects is how many lines a message lists.
const subjects = 20

// message names the run, the subjects of the commits that somebody wrote, and what the steps say
// that they did; without both, the steps. A pull request has what the steps say elsewhere.
func (w Work) message(l Landing) string {
	var said, steps []string
	add := func(to *[]string, line string) {
		if !slices.Contains(*to, line) {
			*to = append(*to, line)
		}
	}
	for _, c := range l.Commits {
		if step, ok := leftBy(Subject(c)); ok {
			add(&steps, step)
		} else {
			add(&said, Subject(c))
		}
	}
	if l.How != PR {
		for _, line := range w.Did {
			add(&said, line)
		}
	}
	lines := []string{fmt.Sprintf("%s (%s)", w.Title, w.Run), ""}
	if len(said) == 0 && len(steps) > 0 {
		return strings.Join(append(lines, "Steps: "+strings.Join(steps, ", ")), "\n")
	}
	for _, line := range said[:min(len(said), subjects)] {
		lines = append(lines, "- "+line)
	}
	if more := len(said) - subjects; more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Subject returns the first line of a commit's message.
func Subject(c git.Commit) string {
	first, _, _ := strings.Cut(c.Message, "\n")
	return git.OneLine(first)
}

// undone returns an error for what a person must do first.
func (w Work) undone(why string) error {
	if why == "" {
		return nil
	}
	return stuck("then `"+w.Typed+"` again", "nothing was changed: %s", why)
}

// Land lands the work. After a *Stuck error, which says what a person must do, nothing was changed.
func (w Work) Land(ctx context.Context, repo *git.Repo, l Landing) (Landed, error) {
	out, why, err := l.Do(ctx, repo)
	switch {
	case err != nil:
		return out, err
	case out.Already:
		commit, there, err := LandedAs(ctx, repo, w.Run, l.Onto)
		if out.Commit = commit; !there {
			out.Commit = ""
		}
		return out, err
	}
	return out, w.undone(why)
}

// CheckedOut returns the full name of the branch of the checkout at top, or "".
func CheckedOut(ctx context.Context, repo *git.Repo, top string) (string, error) {
	if repo.Plain() {
		return "", nil
	}
	if branch, ok := repo.BranchOf(top); ok {
		return branch, nil
	}
	trees, err := repo.Worktrees(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range trees {
		if real, err := filepath.EvalSymlinks(t.Path); err == nil && real == top {
			return t.Branch, nil
		}
	}
	return "", nil
}
