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
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
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
and are signed where your own git settings say so. A branch that is not what a gate has passed, or that
has merged commits of others and undoes what they brought, takes --unjudged.`,
		Example: "sluice land last\nsluice land phase-4-1 --rebase --close\nsluice land phase-4-1 --pr",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Getenv("SLUICE_TOKEN") != "" {
				return fault.Failed("leave the landing to a person", "work is landed by a person, and this is the environment of an attempt (%s)", clean(a.Getenv("SLUICE_RUN")))
			}
			l.how = tree.Squash
			if count(append(ways[:], l.pr)) > 1 {
				return fault.Misused("name one of --ff, --merge, --rebase, --pr, or none for one commit", "work is landed in one way")
			}
			for i, way := range []string{tree.FF, tree.Merge, tree.Rebase} {
				if ways[i] {
					l.how = way
				}
			}
			if l.pr {
				l.how = tree.PR
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
				return landRun(cmd.Context(), &a.Console, p, r, l)
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
	f.BoolVar(&l.unjudged, "unjudged", false, "also what no gate has passed as it is, and what undoes commits of others")
	f.BoolVar(&l.close, "close", false, "remove the run's worktree then")
	return a.JSONFlag(cmd)
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

func landRun(ctx context.Context, con *console.Console, p *place, r daemon.RunStatus, l landing) error {
	if err := landable(r, l); err != nil {
		return err
	}
	repo, err := git.Open(ctx, p.root)
	if err != nil {
		return err
	}
	defer repo.Close()
	w := folders.WorkOf(p.root, r.Made())
	w.Unjudged, w.Shown = l.unjudged, typedPath(p, r)
	onto, err := branchOnto(ctx, repo, l.onto)
	if err != nil {
		return err
	}
	to, err := w.Landing(ctx, repo, onto, l.how, l.message)
	if err != nil {
		return landFault(err)
	}
	if files := w.Uncommitted(ctx, repo); len(files) > 0 {
		con.Note("not landed: %s of %s that no commit has: %s", plural(len(files), "file"), r.Workspace, text.JoinMost(files))
	}
	out := landed{Run: r.ID, Branch: shortBranch(onto), How: l.how, Trust: r.Trust}
	if l.how != tree.Squash {
		if out.Listed, err = listCommits(ctx, con, repo, to); err != nil {
			return err
		}
	}
	if l.pr {
		out.URL, err = w.Request(ctx, repo, to, con.Env)
	} else {
		var got tree.Landed
		got, err = w.Land(ctx, repo, to)
		out.Commit, out.Files, out.Before = got.Commit, got.Files, got.Already
	}
	if err != nil {
		return landFault(err)
	}
	if l.close {
		if err := closeWorktree(ctx, p, repo, r, &out); err != nil {
			return err
		}
	}
	return tellLanded(con, r, out)
}

// landable refuses what is no work to land, and what a person has to say outright.
func landable(r daemon.RunStatus, l landing) error {
	switch {
	case r.Child != nil:
		return fault.Failed("land that run", "%s is a part of %s", r.ID, r.Child.Parent)
	case r.Workspace == "":
		return fault.Failed("its work is there; `workspace: run` in the workflow gives runs a worktree of their own", "%s worked in your checkout: there is nothing to land", r.ID)
	case r.Stubbed:
		return fault.Failed("run the workflow for real", "%s is a run of stand-ins: nothing in it is real work", r.ID)
	case r.Phase != engine.RunCompleted && !l.unfinished:
		return fault.Failed("wait for its end, or say it: `sluice land "+r.ID+" --unfinished`", "%s has not completed: it is %s", r.ID, r.Phase)
	}
	return nil
}

// typedPath is a run's worktree as a person types it in a shell, from where they are.
func typedPath(p *place, r daemon.RunStatus) string {
	path := layout.ShortPath(filepath.Join(p.root, filepath.FromSlash(r.Workspace)))
	plain := func(c rune) bool {
		return strings.ContainsRune("/.-_", c) || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	if !strings.ContainsFunc(path, func(c rune) bool { return !plain(c) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// branchOnto is the full name of the branch that is named, or checked out.
func branchOnto(ctx context.Context, repo *git.Repo, name string) (string, error) {
	if name != "" {
		return "refs/heads/" + strings.TrimPrefix(name, "refs/heads/"), nil
	}
	branch, err := tree.CheckedOut(ctx, repo, repo.Top())
	if err == nil && branch == "" {
		err = fault.Failed("name one: --onto BRANCH", "no branch is checked out in %s", repo.Top())
	}
	return branch, err
}

func shortBranch(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// landFault makes an error of what a person has to do.
func landFault(err error) error {
	var s *tree.Stuck
	if errors.As(err, &s) {
		return fault.Failed(s.Do, "%s", clean(s.Why))
	}
	return err
}

// listCommits shows the commits that come with the work, and asks.
func listCommits(ctx context.Context, con *console.Console, repo *git.Repo, w tree.Landing) ([]string, error) {
	list, why, err := tree.Commits(ctx, repo, w.Base, w.Tip)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, fault.Failed("then `sluice land "+w.Run+"` again", "nothing was changed: %s", why)
	}
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%.12s %s", c.SHA, clean(tree.Subject(c))))
	}
	if con.JSON {
		return out, nil
	}
	con.Print("Not judged one by one:")
	for _, line := range out {
		con.Print("  %s", line)
	}
	if yes, err := con.Ask(fmt.Sprintf("Bring %s of %s?", plural(len(list), "commit"), w.Run)); err != nil || !yes {
		return nil, errors.Join(err, notDone(err))
	}
	return out, nil
}

func closeWorktree(ctx context.Context, p *place, repo *git.Repo, r daemon.RunStatus, out *landed) error {
	if r.Live() {
		return fault.Failed("end it first: sluice abort "+r.ID, "the worktree stays: %s is at work", r.ID)
	}
	why, err := tree.Close(ctx, repo, filepath.Join(p.root, filepath.FromSlash(r.Workspace)))
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
		con.Print("%s landed on %s as %.12s: %s", r.ID, out.Branch, out.Commit, plural(out.Files, "file"))
	}
	if words := render.Unheld(r); words != "" {
		con.Print("%s", con.Paint(console.Yellow, words))
	}
	if out.Closed {
		con.Print("removed %s; the branch %s stays", r.Workspace, r.Branch)
	}
	return nil
}
