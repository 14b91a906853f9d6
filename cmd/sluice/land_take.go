package main

import (
	"context"
	"fmt"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/folders"
	"sluice/internal/git"
	"sluice/internal/tree"
)

// toTake says in a line what a run that is over has left to take over, and how; "" of one that worked in the checkout. What
// git cannot say is left out: this is a hint.
func toTake(ctx context.Context, root string, r daemon.RunStatus) string {
	if r.Workspace == "" || r.Child != nil || r.Stubbed || r.Live() {
		return ""
	}
	repo, err := git.Open(ctx, root)
	if err != nil {
		return ""
	}
	defer repo.Close()
	tip, err := repo.TipOf(ctx, "refs/heads/"+r.Branch)
	if err != nil || tip.SHA == "" {
		return ""
	}
	base, err := repo.TipOf(ctx, git.Own("base", r.ID))
	if err != nil || base.SHA == "" {
		return ""
	}
	if tip.SHA == base.SHA {
		if n := len(folders.WorkOf(root, r.Made()).Uncommitted(ctx, repo)); n > 0 {
			return fmt.Sprintf("to take: %s in %s, in no commit: commit there, then sluice land %s", plural(n, "file"), r.Workspace, r.ID)
		}
		return ""
	}
	if onto, err := branchOnto(ctx, repo, ""); err == nil {
		if commit, there, err := tree.LandedAs(ctx, repo, r.ID, onto); err == nil && there {
			return fmt.Sprintf("landed on %s as %.12s", shortBranch(onto), commit)
		}
	}
	changes, err := repo.ChangesBetween(ctx, base.SHA, tip.SHA)
	if err != nil {
		return ""
	}
	how := "sluice land " + r.ID
	if r.Phase != engine.RunCompleted {
		how += " --unfinished"
	}
	return fmt.Sprintf("to take: %s on %s: %s", plural(len(changes), "file"), r.Branch, how)
}
