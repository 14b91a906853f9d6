package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/tree"
)

// landing is what a person says of it.
type landing struct {
	how        string
	onto       string
	message    string
	pr         bool
	unfinished bool
	unjudged   bool
	close      bool
}

func (a *app) landCommand() *cobra.Command {
	var l landing
	var ways [3]bool
	cmd := &cobra.Command{
		Use:   "land RUN",
		Short: "bring the work of a run onto your branch",
		Long: `Brings the commits of a run with a worktree of its own (workspace: run) onto the branch of your
checkout, as one commit; --ff, --merge and --rebase keep the run's commits, and list them before: what
lies between was not judged one by one. --pr pushes the run's branch and opens a pull request instead.
No hook and no merge driver of the repo runs. Your own changes stay; a file of yours that would be
written is named, and nothing is changed then. The new commits name the run and who passed its gates,
and are signed where your own git settings say so.`,
		Example: "sluice land last\nsluice land phase-4-1 --rebase --close\nsluice land phase-4-1 --pr",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.getenv("SLUICE_TOKEN") != "" {
				return failed("leave the landing to a person", "work is landed by a person, and this is the environment of an attempt (%s)", clean(a.getenv("SLUICE_RUN")))
			}
			l.how = tree.Squash
			if count(append(ways[:], l.pr)) > 1 {
				return misused("name one of --ff, --merge, --rebase, --pr, or none for one commit", "work is landed in one way")
			}
			for i, way := range []string{tree.FF, tree.Merge, tree.Rebase} {
				if ways[i] {
					l.how = way
				}
			}
			return a.withView(cmd.Context(), func(p *place, v viewer, _ bool) error {
				id, err := runNamed(cmd.Context(), v, args[0])
				if err != nil {
					return err
				}
				r, err := v.Run(cmd.Context(), id)
				if err != nil {
					return err
				}
				return a.land(cmd.Context(), p, r, l)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&ways[0], "ff", false, "your branch goes on to the run's commits")
	f.BoolVar(&ways[1], "merge", false, "a merge commit")
	f.BoolVar(&ways[2], "rebase", false, "the run's commits, made anew on your branch")
	f.BoolVar(&l.pr, "pr", false, "push the run's branch and open a pull request with gh")
	f.StringVar(&l.onto, "onto", "", "another `BRANCH` than the one that is checked out")
	f.StringVarP(&l.message, "message", "m", "", "the commit's `TEXT`")
	f.BoolVar(&l.unfinished, "unfinished", false, "also of a run that has not completed")
	f.BoolVar(&l.unjudged, "unjudged", false, "also what no gate has passed as it is")
	f.BoolVar(&l.close, "close", false, "remove the run's worktree then")
	return a.jsonFlag(cmd)
}

// count says how many are true.
func count(flags []bool) (n int) {
	for _, on := range flags {
		if on {
			n++
		}
	}
	return n
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

func (a *app) land(ctx context.Context, p *place, r daemon.RunStatus, l landing) error {
	if err := landable(r, l); err != nil {
		return err
	}
	repo, err := git.Open(ctx, p.root)
	if err != nil {
		return err
	}
	defer repo.Close()
	w, err := a.workOf(ctx, p, repo, r, l)
	if err != nil {
		return err
	}
	out := landed{Run: r.ID, Branch: shortBranch(w.Onto), How: w.How, Trust: r.Trust}
	if l.how != tree.Squash || l.pr {
		if out.Listed, err = a.listCommits(ctx, repo, w); err != nil {
			return err
		}
	}
	if l.pr {
		out.How = "pr"
		out.URL, err = a.pullRequest(ctx, p, repo, r, w)
	} else {
		err = a.landOn(ctx, repo, w, &out)
	}
	if err != nil {
		return err
	}
	if l.close {
		if err := a.closeWorktree(ctx, p, repo, r, &out); err != nil {
			return err
		}
	}
	return a.tellLanded(r, out)
}

// landable refuses what is no work to land, and what a person has to say outright.
func landable(r daemon.RunStatus, l landing) error {
	switch {
	case r.Child != nil:
		return failed("land that run", "%s is a part of %s", r.ID, r.Child.Parent)
	case r.Workspace == "":
		return failed("its work is there; `workspace: run` in the workflow gives runs a worktree of their own", "%s worked in your checkout: there is nothing to land", r.ID)
	case r.Stubbed:
		return failed("run the workflow for real", "%s is a run of stand-ins: nothing in it is real work", r.ID)
	case r.Phase != engine.RunCompleted && !l.unfinished:
		return failed("wait for its end, or say it: `sluice land "+r.ID+" --unfinished`", "%s has not completed: it is %s", r.ID, r.Phase)
	}
	return nil
}

// workOf finds what there is to land, and where.
func (a *app) workOf(ctx context.Context, p *place, repo *git.Repo, r daemon.RunStatus, l landing) (w tree.Landing, err error) {
	w = tree.Landing{Run: r.ID, How: l.how, Top: repo.Top(), Worktree: r.Workspace, Message: l.message, Trailers: trailers(r)}
	if w.Onto, err = branchOnto(ctx, repo, l.onto); err != nil {
		return w, err
	}
	tip, err := repo.TipOf(ctx, "refs/heads/"+r.Branch)
	if err != nil {
		return w, err
	}
	base, err := repo.TipOf(ctx, git.Own("base", r.ID))
	if err != nil {
		return w, err
	}
	if tip.SHA == "" || base.SHA == "" {
		return w, failed("`git branch --list 'sluice/*'` names those that are there", "%s has no branch %s: it never began, or the branch was removed", r.ID, r.Branch)
	}
	w.Tip, w.Base = tip.SHA, base.SHA
	if w.Tip == w.Base {
		if files := a.uncommitted(ctx, p, repo, r); len(files) > 0 {
			return w, failed("look at them, then commit them there: git -C "+r.Workspace+" commit", "%s has committed nothing: its worktree has %s that no commit has: %s",
				r.ID, plural(len(files), "file"), joinMost(files))
		}
		return w, failed("`sluice status "+r.ID+"` shows how it went", "%s has changed nothing", r.ID)
	}
	if err := judgedTree(ctx, repo, r, w, l); err != nil {
		return w, err
	}
	if w.By, err = repo.Lander(ctx); err != nil {
		return w, err
	}
	if files := a.uncommitted(ctx, p, repo, r); len(files) > 0 {
		a.note("not landed: %s of %s that no commit has: %s", plural(len(files), "file"), r.Workspace, joinMost(files))
	}
	if w.Message == "" {
		w.Message, err = a.landMessage(ctx, repo, r, w)
	}
	return w, err
}

// branchOnto is the full name of the branch that is named, or checked out.
func branchOnto(ctx context.Context, repo *git.Repo, name string) (string, error) {
	if name != "" {
		return "refs/heads/" + strings.TrimPrefix(name, "refs/heads/"), nil
	}
	trees, err := repo.Worktrees(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range trees {
		if real, err := filepath.EvalSymlinks(t.Path); err == nil && real == repo.Top() && t.Branch != "" {
			return t.Branch, nil
		}
	}
	return "", failed("name one: --onto BRANCH", "no branch is checked out in %s", repo.Top())
}

func shortBranch(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// uncommitted are the files of the run's worktree that are in no commit.
func (a *app) uncommitted(ctx context.Context, p *place, repo *git.Repo, r daemon.RunStatus) []string {
	changes, err := repo.Changed(ctx, filepath.Join(p.root, filepath.FromSlash(r.Workspace)), "")
	if err != nil {
		return nil // it is gone: what counts is the branch
	}
	var files []string
	for _, f := range changes.Files {
		if !strings.HasPrefix(f, workflowDir+"/") {
			files = append(files, clean(f))
		}
	}
	return files
}

// judgedTree refuses a tip whose files are not those that a gate has passed.
func judgedTree(ctx context.Context, repo *git.Repo, r daemon.RunStatus, w tree.Landing, l landing) error {
	if l.unjudged {
		return nil
	}
	have, err := repo.TreeOf(ctx, w.Tip)
	if err != nil {
		return err
	}
	newest := ""
	for _, st := range r.Steps {
		for _, g := range st.Gates {
			for _, q := range g.Rounds {
				commit, _, _ := strings.Cut(q.Digest, "+")
				if q.State != engine.Approved || len(commit) != len(w.Tip) {
					continue
				}
				if judged, err := repo.TreeOf(ctx, commit); err == nil && judged == have {
					return nil
				} else if err == nil {
					newest = commit
				}
			}
		}
	}
	if newest == "" {
		return nil // nothing says what was judged
	}
	return failed(fmt.Sprintf("look: git diff %.12s %.12s; then `sluice land %s --unjudged`", newest, w.Tip, r.ID),
		"branch %s is not what a gate of %s has passed", r.Branch, r.ID)
}

// trailers say which run it was and who passed its gates.
func trailers(r daemon.RunStatus) []string {
	out := []string{tree.Trailer("Run", r.ID)}
	for _, st := range r.Steps {
		for _, g := range st.Gates {
			if g.Implicit || len(g.Rounds) == 0 {
				continue
			}
			q := g.Rounds[len(g.Rounds)-1]
			if q.State != engine.Approved {
				continue
			}
			who := q.ByKind
			if q.By != nil && q.By.Who != "" {
				who = q.By.Who
				if q.By.Trust != "" {
					who += " (" + q.By.Trust + ")"
				}
			}
			out = append(out, tree.Trailer("Gate", clean(fmt.Sprintf("%s %s by %s", g.ID, orWord(q.Outcome, "pass"), who))))
		}
	}
	return out
}

// landSubjects is how many subjects a message lists.
const landSubjects = 20

// landMessage names the run, and what its commits say of themselves.
func (a *app) landMessage(ctx context.Context, repo *git.Repo, r daemon.RunStatus, w tree.Landing) (string, error) {
	list, why, err := tree.Commits(ctx, repo, w.Base, w.Tip)
	if err != nil || why != "" {
		return "", errors.Join(err, landFault(why, r))
	}
	lines := []string{fmt.Sprintf("%s (%s)", clean(orWord(r.Name, r.Workflow)), r.ID), ""}
	for _, c := range list[:min(len(list), landSubjects)] {
		lines = append(lines, "- "+subject(c))
	}
	if more := len(list) - landSubjects; more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	return strings.Join(lines, "\n"), nil
}

func subject(c git.Commit) string {
	first, _, _ := strings.Cut(c.Message, "\n")
	return clean(first)
}

// landFault makes an error of what a person has to do.
func landFault(why string, r daemon.RunStatus) error {
	if why == "" {
		return nil
	}
	return failed("then `sluice land "+r.ID+"` again", "nothing was changed: %s", why)
}

// listCommits shows the commits that come with the work, and asks.
func (a *app) listCommits(ctx context.Context, repo *git.Repo, w tree.Landing) ([]string, error) {
	list, why, err := tree.Commits(ctx, repo, w.Base, w.Tip)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, landFault(why, daemon.RunStatus{ID: w.Run})
	}
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%.12s %s", c.SHA, subject(c)))
	}
	if a.json {
		return out, nil
	}
	a.print("Not judged one by one:")
	for _, line := range out {
		a.print("  %s", line)
	}
	if yes, err := a.ask(fmt.Sprintf("Bring %s of %s?", plural(len(list), "commit"), w.Run)); err != nil || !yes {
		return nil, errors.Join(err, notDone(err))
	}
	return out, nil
}

func (a *app) landOn(ctx context.Context, repo *git.Repo, w tree.Landing, out *landed) error {
	got, why, err := w.Do(ctx, repo)
	switch {
	case err != nil:
		return err
	case got.Already:
		out.Before = true
		if out.Commit, _, err = tree.LandedAs(ctx, repo, w.Run, w.Onto); err != nil {
			return err
		}
		return nil
	case why != "":
		return landFault(why, daemon.RunStatus{ID: w.Run})
	}
	out.Commit, out.Files = got.Commit, got.Files
	return nil
}

func (a *app) closeWorktree(ctx context.Context, p *place, repo *git.Repo, r daemon.RunStatus, out *landed) error {
	if live(r) {
		return failed("end it first: sluice abort "+r.ID, "the worktree stays: %s is at work", r.ID)
	}
	why, err := tree.Close(ctx, repo, filepath.Join(p.root, filepath.FromSlash(r.Workspace)))
	if err != nil {
		return err
	}
	if why != "" {
		return failed("then `sluice land "+r.ID+" --close` again", "landed, but the worktree stays: %s", why)
	}
	out.Closed = true
	return nil
}

func (a *app) tellLanded(r daemon.RunStatus, out landed) error {
	if a.json {
		return a.document(out)
	}
	switch {
	case out.URL != "":
		a.print("%s", out.URL)
	case out.Before && out.Commit != "":
		a.print("%s was landed before: %s has it as %.12s", r.ID, out.Branch, out.Commit)
	case out.Before:
		a.print("%s has the work of %s already", out.Branch, r.ID)
	default:
		a.print("%s landed on %s as %.12s: %s", r.ID, out.Branch, out.Commit, plural(out.Files, "file"))
	}
	if words := unheld(r); words != "" {
		a.print("%s", a.paint(yellow, words))
	}
	if out.Closed {
		a.print("removed %s; the branch %s stays", r.Workspace, r.Branch)
	}
	return nil
}
