package land

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/pulls"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// Options is how a person wants a run's work landed.
type Options struct {
	How        string
	Onto       string
	Message    string
	Unfinished bool
	Unjudged   bool
	Close      bool
	State      string // the repo's state folder
}

// landed is the document of a landing.
type landed struct {
	Run    string   `json:"run"`
	Branch string   `json:"branch"`
	How    string   `json:"how"`
	Trust  string   `json:"trust,omitempty"` // file: some launch of the run was not held
	Commit string   `json:"commit,omitempty"`
	Files  int      `json:"files"`
	Before bool     `json:"before,omitempty"` // the branch had the work already
	URL    string   `json:"url,omitempty"`    // of the pull request
	Closed bool     `json:"closed,omitempty"`
	Listed []string `json:"commits,omitempty"` // that were not judged one by one
}

// Run lands a run's work in the repo at root, or says what keeps it from that.
func Run(ctx context.Context, con *console.Console, root string, r daemon.RunStatus, l Options) error {
	if err := landable(r, l); err != nil {
		return err
	}
	repo, err := git.Open(ctx, root)
	if err != nil {
		return err
	}
	defer repo.Close()
	w := folders.WorkOf(root, r.Made())
	w.Unjudged, w.Shown, w.Env = l.Unjudged, text.Typed(layout.ShortPath(w.Dir)), map[string]string{}
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		w.Env[name] = con.Getenv(name)
	}
	if l.Unfinished {
		w.Typed += " --unfinished"
	}
	onto, err := branchOnto(ctx, repo, l.Onto)
	if err != nil {
		return err
	}
	to, err := w.Landing(ctx, repo, onto, l.How, l.Message)
	if err != nil {
		return landFault(err)
	}
	if files := w.Uncommitted(ctx, repo); len(files) > 0 {
		con.Note("not landed: %s of %s without a commit: %s", text.Plural(len(files), "file"), r.Workspace,
			text.JoinMost(files))
	}
	out := landed{Run: r.ID, Branch: git.ShortBranch(onto), How: l.How, Trust: r.Trust}
	if l.How != tree.Squash && len(to.Commits) > 0 {
		if out.Listed, err = listCommits(con, to); err != nil {
			return err
		}
	}
	if l.How == tree.PR {
		made := r.Made()
		out.URL, err = pulls.New(pulls.Options{State: l.State, Git: repo, Env: con.Env,
			Remote: func(ctx context.Context) (string, error) { return repo.RemoteURL(ctx, "origin") },
		}).Request(ctx, made, w, to)
	} else {
		var got tree.Landed
		got, err = w.Land(ctx, repo, to)
		out.Commit, out.Files, out.Before = got.Commit, got.Files, got.Already
	}
	if err != nil {
		return landFault(err)
	}
	if l.Close {
		if err := closeWorktree(ctx, root, repo, r, &out); err != nil {
			return err
		}
	}
	return tellLanded(con, r, out)
}

// landable refuses what is no work to land, and what a person has to say outright.
func landable(r daemon.RunStatus, l Options) error {
	switch {
	case r.Child != nil:
		return fault.Failed("land that run instead", "%s is a part of %s", r.ID, r.Child.Parent)
	case r.Workspace == "":
		return fault.Failed("its work is there already; with `workspace: run` in the workflow, each run has its "+
			"own worktree", "%s worked in your checkout: there is nothing to land", r.ID)
	case r.Started.IsZero():
		return fault.Failed("`sluice ls` lists the runs", "%s has not begun: there is nothing to land", r.ID)
	case r.Stubbed:
		return fault.Failed("`sluice run "+r.Workflow+"`", "%s is a run with stubs: nothing in it is real work", r.ID)
	case r.Phase != engine.RunCompleted && !l.Unfinished:
		do := "run `sluice land " + r.ID + " --unfinished`"
		if r.Live() {
			do = "wait for its end, or " + do
		}
		return fault.Failed(do, "%s has not completed: it is %s", r.ID, r.Phase)
	}
	return nil
}

// branchOnto is the full name of the branch that is named, or checked out.
func branchOnto(ctx context.Context, repo *git.Repo, name string) (string, error) {
	if name != "" {
		return git.BranchRefs + git.ShortBranch(name), nil
	}
	branch, err := tree.CheckedOut(ctx, repo, repo.Top())
	if err == nil && branch == "" {
		err = fault.Failed("name one: --onto BRANCH", "no branch is checked out in %s", repo.Top())
	}
	return branch, err
}

// landFault turns what keeps the work from landing into an error that says what to do.
func landFault(err error) error {
	if s, ok := errors.AsType[*tree.Stuck](err); ok {
		return fault.Failed(s.Do, "%s", text.Line(s.Why))
	}
	return err
}

// listCommits shows the commits that come with the work, and asks.
func listCommits(con *console.Console, w tree.Landing) ([]string, error) {
	var out []string
	for _, c := range w.Commits {
		out = append(out, fmt.Sprintf("%.12s %s", c.SHA, text.Line(tree.Subject(c))))
	}
	if con.JSON {
		return out, nil
	}
	con.Print("Not judged one by one:")
	for _, line := range out {
		con.Print("  %s", line)
	}
	yes, err := con.Ask(fmt.Sprintf("Bring %s of %s?", text.Plural(len(w.Commits), "commit"), w.Run))
	if err == nil && !yes {
		err = fault.Exit(fault.ExitFailed)
	}
	return out, err
}

func closeWorktree(ctx context.Context, root string, repo *git.Repo, r daemon.RunStatus, out *landed) error {
	if r.Live() {
		return fault.Failed("end it first: sluice abort "+r.ID, "the worktree stays: %s is at work", r.ID)
	}
	why, err := tree.Close(ctx, repo, filepath.Join(root, filepath.FromSlash(r.Workspace)))
	if err != nil {
		return err
	}
	if why != "" {
		return fault.Failed("then `sluice land "+r.ID+" --close` again", "landed, but the worktree stays: %s", why)
	}
	out.Closed = true
	return nil
}

func tellLanded(con *console.Console, r daemon.RunStatus, out landed) error {
	if con.JSON {
		return con.Document(out)
	}
	switch {
	case out.URL != "":
		con.Print("%s", out.URL)
	case out.Before && out.Commit != "":
		con.Print("%s was landed before: %s has it as %.12s", r.ID, out.Branch, out.Commit)
	case out.Before:
		con.Print("%s has the work of %s already", out.Branch, r.ID)
	default:
		con.Print("%s landed on %s as %.12s: %s", r.ID, out.Branch, out.Commit, text.Plural(out.Files, "file"))
	}
	if words := render.Unheld(r); words != "" {
		con.Print("%s", con.Paint(console.Yellow, words))
	}
	if out.Closed {
		con.Print("removed %s; the branch %s stays", r.Workspace, r.Branch)
	}
	return nil
}

// ToTake says in a line what a run that is over has left to take over, and how, or that it has
// landed, or changed nothing; "" of one that worked in the checkout or with stubs. near: its reader
// is where the command runs. What git cannot say is left out: this is a hint. last is for a reader who
// asks again and again: git is asked when a ref has moved. state is the repo's state folder.
func ToTake(ctx context.Context, root, state string, r daemon.RunStatus, near bool, last *Last) string {
	if !lands(r) {
		return ""
	}
	repo, err := git.Open(ctx, root)
	if err != nil {
		return ""
	}
	defer repo.Close()
	tip, err := repo.TipOf(ctx, git.BranchRefs+r.Branch)
	if err != nil || tip.SHA == "" {
		return ""
	}
	base, err := repo.TipOf(ctx, git.Own("base", r.ID))
	if err != nil || base.SHA == "" {
		return ""
	}
	how := commandFor(r)
	if at := pulls.Address(state, r.ID); at != "" && tip.SHA == base.SHA && r.Phase == engine.RunCompleted {
		return "its pull request: " + text.Line(at) // somebody merged it while a gate was open
	}
	if tip.SHA == base.SHA {
		take := toCommit(ctx, repo, folders.WorkOf(root, r.Made()), how, near)
		if take == "" && r.Phase == engine.RunCompleted {
			return nothingOn(r)
		}
		return take
	}
	now := Last{how: how, base: base.SHA, tip: tip.SHA, pull: pulls.Address(state, r.ID), words: last.words}
	if now.middle, err = tree.Unfinished(repo, filepath.Join(root, filepath.FromSlash(r.Workspace)),
		git.BranchRefs+r.Branch); err != nil {
		return ""
	}
	if now.onto, err = branchOnto(ctx, repo, ""); err == nil {
		var to git.Tip
		to, err = repo.TipOf(ctx, now.onto)
		now.to = to.SHA
	}
	if err != nil || now != *last {
		words, failed := now.committed(ctx, repo, r)
		if *last = now; errors.Join(err, failed) != nil {
			*last = Last{} // it is asked again
		}
		last.words = words
	}
	return last.words
}

// nothingOn says that the branch of a completed run has no change, and in which other worktrees its steps worked.
func nothingOn(r daemon.RunStatus) string {
	var others []string
	for _, st := range r.Steps {
		if st.Worktree != "" && st.Worktree != r.Workspace {
			others = append(others, text.Line(st.Worktree))
		}
	}
	if len(others) == 0 {
		return "it changed nothing"
	}
	slices.Sort(others)
	return "its branch has no change; steps worked in " + strings.Join(slices.Compact(others), ", ")
}

// lands reports whether a run is over and worked in its own worktree.
func lands(r daemon.RunStatus) bool {
	return r.Workspace != "" && r.Child == nil && !r.Stubbed && !r.Live()
}

// commandFor returns the command that lands a run.
func commandFor(r daemon.RunStatus) string {
	if r.Phase != engine.RunCompleted {
		return "sluice land " + r.ID + " --unfinished"
	}
	return "sluice land " + r.ID
}

// Unlanded is ToTake for a list of many runs: it names the branch of a run that is over and has not landed. It reads
// refs only, so it does not know a branch that somebody merged.
func Unlanded(ctx context.Context, repo *git.Repo, r daemon.RunStatus) string {
	if !lands(r) {
		return ""
	}
	tip, err := repo.TipOf(ctx, git.BranchRefs+r.Branch)
	base, badBase := repo.TipOf(ctx, git.Own("base", r.ID))
	landed, badRef := tree.HasLanded(ctx, repo, r.ID)
	if errors.Join(err, badBase, badRef) != nil || landed || tip.SHA == "" || tip.SHA == base.SHA {
		return ""
	}
	return "its work is on branch " + r.Branch + ": " + commandFor(r)
}

// Gone says that the worktree of a live run was deleted, and what to do; "" if it was not. It is a hint too.
func Gone(ctx context.Context, root string, r daemon.RunStatus) string {
	if r.Workspace == "" || !r.Live() || r.Started.IsZero() ||
		layout.IsDir(filepath.Join(root, filepath.FromSlash(r.Workspace))) {
		return ""
	}
	repo, err := git.Open(ctx, root) // it may not have been created yet
	if err != nil {
		return ""
	}
	defer repo.Close()
	trees, _ := repo.Worktrees(ctx)
	for _, t := range trees {
		if t.Prunable != "" && t.Branch == git.BranchRefs+r.Branch {
			return fmt.Sprintf("its worktree %s is gone: `git worktree prune`, then `sluice retry %s STEP` has the step do "+
				"it again", r.Workspace, r.ID)
		}
	}
	return ""
}

// Last is what ToTake has said, and by which command and refs. The zero Last is ready.
type Last struct{ how, base, tip, onto, to, pull, middle, words string }

// committed is ToTake of a run whose work is in commits.
func (l Last) committed(ctx context.Context, repo *git.Repo, r daemon.RunStatus) (string, error) {
	var failed error
	if l.to != "" {
		commit, there, err := tree.LandedAs(ctx, repo, r.ID, l.onto)
		if err == nil && there {
			return fmt.Sprintf("landed on %s as %.12s", git.ShortBranch(l.onto), commit), nil
		}
		has, herr := repo.Descends(ctx, l.to, l.tip)
		if herr == nil && has {
			return git.ShortBranch(l.onto) + " has its work already", err
		}
		failed = errors.Join(err, herr)
	}
	if l.pull != "" {
		return "its pull request: " + text.Line(l.pull), failed
	}
	changes, err := repo.ChangesBetween(ctx, l.base, l.tip)
	if err != nil || len(changes) == 0 {
		return "", errors.Join(failed, err)
	}
	if l.middle != "" {
		return "before it can land: " + text.Line(l.middle), failed
	}
	rest := ""
	if n := len(folders.WorkOf(repo.Top(), r.Made()).Uncommitted(ctx, repo)); n > 0 {
		rest = fmt.Sprintf("; %d more in no commit, in %s", n, r.Workspace)
	}
	return fmt.Sprintf("to take it: %s (%s on branch %s%s)", l.how, text.Plural(len(changes), "file"), r.Branch, rest),
		failed
}

// toCommit says how to take work that is in no commit, as one line for a shell.
func toCommit(ctx context.Context, repo *git.Repo, w tree.Work, how string, near bool) string {
	n := len(w.Uncommitted(ctx, repo))
	if n == 0 {
		return ""
	}
	dir := w.Dir
	if near {
		dir = layout.ShortPath(dir)
	}
	in := "git -C " + text.Typed(dir)
	return fmt.Sprintf("to take it (%s): %s add -A && %s commit && %s", text.Plural(n, "file"), in, in, how)
}
