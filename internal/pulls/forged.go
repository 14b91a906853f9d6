package pulls

import (
	"cmp"
	"context"
	"fmt"

	"sluice/internal/git"
	"sluice/internal/tree"
)

// forged says which commit of the work has a line that only sluice may write, such as who has passed a gate: people
// would read it in the pull request, and merge it; "" = none has. What the target has, here or at the remote, is not
// the work's.
func (p *Pulls) forged(ctx context.Context, run, commit string) (string, error) {
	base, err := p.opt.Git.TipOf(ctx, git.Own("base", run))
	if err != nil || base.SHA == "" {
		return "", err
	}
	onto, err := p.opt.Onto(run)
	if err != nil || onto == "" {
		return "", err
	}
	has, err := p.opt.Git.TipOf(ctx, onto)
	if err != nil {
		return "", err
	}
	work := tree.Landing{Tip: commit, Base: cmp.Or(has.SHA, base.SHA)}
	why, err := work.Forged(ctx, p.opt.Git, base.SHA)
	if err != nil || why == "" {
		return "", err
	}
	_, address, err := p.at(ctx)
	if err != nil {
		return "", err
	}
	there, err := git.RemoteHead(ctx, p.opt.Git, address, git.ShortBranch(onto))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errPush, err)
	}
	if here, err := p.opt.Git.HasCommit(ctx, there); there == "" || err != nil || !here {
		return why, err
	}
	return work.Forged(ctx, p.opt.Git, there)
}
