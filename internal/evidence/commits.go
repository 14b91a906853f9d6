package evidence

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/tree"
)

// maxRebased is how many commits of a run are looked for behind a landing by rebase.
const maxRebased = 100

// made is the work of a run as commits.
type made struct {
	repo     *git.Repo
	run      string
	base     string // where the run's branch began; "" = it has none
	work     Digest
	commits  []git.Commit // of the run's branch, oldest first
	subjects []Subject
}

// workOf finds the newest commit that the run made: the tip of its own branch, else what its newest
// passed round judged.
func workOf(ctx context.Context, repo *git.Repo, r *record) (m *made, err error) {
	m = &made{repo: repo, run: r.run}
	if run := r.state.Runs[r.run]; run.Workspace != "" {
		tip, err := repo.TipOf(ctx, git.BranchRefs+engine.WorkspaceBranch(run.Workspace))
		if err != nil {
			return nil, err
		}
		base, err := repo.TipOf(ctx, git.Own("base", r.run))
		if err != nil {
			return nil, err
		}
		if tip.SHA != "" && base.SHA != "" {
			m.work.Commit, m.base = tip.SHA, base.SHA
		}
	}
	if m.work.Commit == "" {
		for _, q := range slices.Backward(r.rounds()) {
			if commit := tree.CommitIn(q.Digest); commit != "" && q.State == engine.Approved {
				m.work.Commit = commit
				break
			}
		}
	}
	if m.work.Commit == "" || m.work.Commit == m.base {
		return nil, fault.Failed("`sluice status "+r.run+"` shows how it went",
			"%s made no commit that could be attested", r.run)
	}
	if m.work.Tree, err = repo.TreeOf(ctx, m.work.Commit); err != nil {
		return nil, fault.Failed("restore the branch, or fetch the commit", "the work of %s, commit %.12s, is not here: %v",
			r.run, m.work.Commit, err)
	}
	if m.base == "" {
		return m, nil
	}
	if on, err := repo.Descends(ctx, m.work.Commit, m.base); err != nil || !on {
		return nil, cmp.Or(err, fault.Failed("set the branch back to the run's own commits",
			"the branch of %s is not built on %.12s any more, where the run began", r.run, m.base))
	}
	var cut bool
	if m.commits, cut, err = repo.Range(ctx, m.work.Commit, maxSubjects/2, m.base); err == nil && cut {
		err = fault.Failed("land it squashed: sluice land "+r.run+", then attest that commit alone",
			"%s made more than %d commits", r.run, maxSubjects/2)
	}
	return m, err
}

// add makes a commit a subject, once.
func (m *made) add(commit, tree, how string) {
	if slices.ContainsFunc(m.subjects, func(s Subject) bool { return s.Digest.Commit == commit }) {
		return
	}
	m.subjects = append(m.subjects, Subject{Name: m.run, Digest: Digest{commit, tree}, Annotations: Annotations{how}})
}

// find collects the commits that have the work: the landed ones, those that a person named, and
// those of the run's branch.
func (m *made) find(ctx context.Context, named []string) error {
	landed, err := m.repo.TipOf(ctx, git.Own("landed", m.run))
	if err != nil {
		return err
	}
	if landed.SHA != "" {
		if err := m.landed(ctx, landed.SHA); err != nil {
			return err
		}
	}
	for _, commit := range named {
		ok, err := m.has(ctx, commit)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Failed("name the commit that has the work of "+m.run+", and nothing else",
				"%.12s is neither the work of %s nor a merge of it with its parent", commit, m.run)
		}
	}
	along := landed.SHA == ""
	if !along {
		if along, err = m.repo.Descends(ctx, landed.SHA, m.work.Commit); err != nil {
			return err
		}
	}
	m.add(m.work.Commit, m.work.Tree, HowWork)
	if along {
		for _, c := range m.commits {
			m.add(c.SHA, c.Tree, m.howOf(c))
		}
	}
	if len(m.subjects) > maxSubjects {
		return fault.Failed("attest it after each landing", "%s has its work in more than %d commits", m.run, maxSubjects)
	}
	return nil
}

func (m *made) howOf(c git.Commit) string {
	if c.Tree == m.work.Tree {
		return HowWork
	}
	return HowCarried
}

// landed adds the commit that a branch got, and those that a rebase made before it. A commit that
// git would not make of the work again is passed over: the ref that names it may have been moved.
func (m *made) landed(ctx context.Context, commit string) error {
	chain, err := m.chain(ctx, commit)
	if err != nil {
		return err
	}
	for i, c := range slices.Backward(chain) { // the longest row of commits that the work makes
		if len(c.Parents) != 1 || i == 0 {
			continue
		}
		if ok, err := m.merges(ctx, c.Parents[0], chain[0].Tree); err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		for _, earlier := range slices.Backward(chain[1 : i+1]) {
			m.add(earlier.SHA, earlier.Tree, HowCarried)
		}
		break
	}
	_, err = m.has(ctx, commit)
	return err
}

// chain is a commit and its first ancestors in a row, newest first: as many as the run made.
func (m *made) chain(ctx context.Context, commit string) (out []git.Commit, err error) {
	for range min(max(len(m.commits), 1), maxRebased) {
		c, err := oneCommit(ctx, m.repo, commit)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		if len(c.Parents) != 1 {
			break
		}
		commit = c.Parents[0]
	}
	return out, nil
}

// has adds the commit as a subject if it has the work and nothing else: it is what git makes of the
// work and the commit's parent. The same tree is not enough: on another parent it takes back what
// others did there.
func (m *made) has(ctx context.Context, commit string) (bool, error) {
	if commit == m.work.Commit {
		m.add(commit, m.work.Tree, HowWork)
		return true, nil
	}
	c, err := oneCommit(ctx, m.repo, commit)
	if err != nil {
		return false, err
	}
	other := ""
	switch {
	case len(c.Parents) == 1:
		other = c.Parents[0]
	case len(c.Parents) == 2 && c.Parents[1] == m.work.Commit:
		other = c.Parents[0]
	case len(c.Parents) == 2 && c.Parents[0] == m.work.Commit:
		other = c.Parents[1]
	default:
		return false, nil
	}
	ok, err := m.merges(ctx, other, c.Tree)
	if ok && c.Tree == m.work.Tree {
		m.add(c.SHA, c.Tree, HowWork)
	} else if ok {
		m.add(c.SHA, c.Tree, HowMerged)
	}
	return ok, err
}

// merges reports whether git makes the tree of a commit and the run's work, as a landing does.
func (m *made) merges(ctx context.Context, onto, want string) (bool, error) {
	if m.base == "" {
		return m.again(ctx, onto, want)
	}
	got, _, err := tree.Merged(ctx, m.repo, m.base, m.work.Commit, onto)
	if errors.Is(err, git.ErrConflict) {
		return false, nil
	}
	return err == nil && got == want, err
}

// again reports whether a tree is the work, on the content that the work was built on. It is for a
// run that worked in a person's checkout, of which no more is known.
func (m *made) again(ctx context.Context, onto, tree string) (bool, error) {
	c, err := oneCommit(ctx, m.repo, m.work.Commit)
	if err != nil || tree != m.work.Tree || len(c.Parents) != 1 {
		return false, err
	}
	before, err := m.repo.TreeOf(ctx, c.Parents[0])
	if err != nil {
		return false, err
	}
	now, err := m.repo.TreeOf(ctx, onto)
	return err == nil && now == before, err
}

// oneCommit reads a commit.
func oneCommit(ctx context.Context, repo *git.Repo, sha string) (git.Commit, error) {
	list, _, err := repo.NewCommits(ctx, map[string]string{"": sha}, nil, 1)
	if err == nil && (len(list) != 1 || list[0].SHA != sha) {
		err = fault.Failed("fetch it", "commit %.12s is not here", sha)
	}
	if err != nil {
		return git.Commit{}, err
	}
	return list[0], nil
}
