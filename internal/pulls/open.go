package pulls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/forge"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/tree"
)

// opening is what a pull request is to be.
type opening struct {
	job.Made
	commit string
	onto   string   // a branch's full name
	ref    string   // full name of a branch that has the commit; "" = none has
	said   string   // of a landing: what was committed, a line each
	names  []string // the trailers of who decided
	as     engine.PullAs
	ready  bool   // no draft any more
	again  string // how a person does this again
}

// shown has the run's pull request show a commit that a gate judges, and returns the branch that it is to go into.
// do is what a person can do where there is none.
func (p *Pulls) shown(ctx context.Context, j job.Job, g *engine.Gate, commit, again, do string) (pull forge.Pull,
	onto string, err error) {
	onto, err = p.opt.Onto(j.Run)
	switch {
	case err != nil:
		return pull, "", err
	case onto == "":
		return pull, "", stuck(do, "no pull request: no branch was checked out when the run began")
	}
	pull, err = p.opened(ctx, opening{Made: *j.Made, commit: commit, onto: onto, as: j.Spec.OnDone.Opens(),
		ready: last(g), again: again})
	return pull, git.ShortBranch(onto), err
}

// opened pushes the commit, and opens the run's pull request or brings it up to date.
func (p *Pulls) opened(ctx context.Context, o opening) (forge.Pull, error) {
	hub, address, err := p.at(ctx)
	if err != nil {
		return forge.Pull{}, err
	}
	rec, err := p.load(o.Run)
	if err != nil {
		return forge.Pull{}, err
	}
	if err := p.files(ctx, o); err != nil {
		return forge.Pull{}, err
	}
	if err := reached(ctx, hub, p.push(ctx, address, o, rec)); err != nil {
		return forge.Pull{}, err
	}
	title, body := titleOf(o.Made), bodyOf(o)
	pull, err := p.find(ctx, hub, o, rec)
	if err != nil {
		return pull, err
	}
	switch {
	case pull.Number == 0:
		pull, err = hub.Create(ctx, o.Branch, git.ShortBranch(o.onto), title, body, o.as.Draft && !o.ready)
		if forge.Is(err, forge.Refused) { // perhaps another call was quicker
			if found, ferr := p.find(ctx, hub, o, rec); ferr == nil && found.Number > 0 {
				pull, err = found, nil
			}
		}
		if err != nil {
			return pull, err
		}
		rec.Title = title
	case !pull.Open:
		return pull, p.note(o.Run, func(r *record) { r.Number, r.URL = pull.Number, pull.URL })
	default:
		if rec.Title != "" && rec.Title != pull.Title { // a person's title stays
			title = pull.Title
		} else {
			rec.Title = title
		}
		if body = within(pull.Body, body); body != pull.Body || title != pull.Title {
			if err := hub.Describe(ctx, pull.Number, title, body); err != nil {
				return pull, err
			}
		}
	}
	err = p.note(o.Run, func(r *record) {
		r.Number, r.URL, r.Title = pull.Number, pull.URL, rec.Title
		if !slices.Contains(r.Shown, o.commit) {
			r.Shown = append(r.Shown, o.commit)
		}
	})
	if err != nil {
		return pull, err
	}
	return pull, p.dress(ctx, hub, o, pull)
}

// files sends the files of Git LFS that the commit has.
func (p *Pulls) files(ctx context.Context, o opening) error {
	base, err := p.opt.Git.TipOf(ctx, git.Own("base", o.Run))
	if err != nil || base.SHA == "" {
		return err
	}
	return tree.SendLFS(ctx, p.opt.Git, base.SHA, o.commit, cmp.Or(o.ref, o.commit), p.opt.Env, o.again)
}

// find returns the run's pull request, Number 0 if there is none. One that was closed counts only
// if the record knows it: a branch of that name may be of an older repo.
func (p *Pulls) find(ctx context.Context, hub *forge.Hub, o opening, rec record) (forge.Pull, error) {
	if rec.Number > 0 {
		pull, err := hub.Pull(ctx, rec.Number)
		if err == nil && (pull.Fork || pull.From != o.Branch) {
			err = stuck("look at "+pull.URL, "pull request #%d is not of the branch %s of this repo", rec.Number, o.Branch)
		}
		return pull, err
	}
	all, err := hub.PullsFrom(ctx, o.Branch)
	if err != nil {
		return forge.Pull{}, err
	}
	for _, pull := range all {
		if pull.Open || strings.Contains(pull.Body, markOf(o.Run)) && slices.Contains(rec.Pushed, pull.Head) {
			return pull, nil
		}
	}
	return forge.Pull{}, nil
}

// askedReady is among a record's Asked once the pull request was made ready.
const askedReady = "ready"

// dress gives the pull request its labels and reviewers, and makes a draft ready.
func (p *Pulls) dress(ctx context.Context, hub *forge.Hub, o opening, pull forge.Pull) error {
	rec, err := p.load(o.Run)
	if err != nil {
		return err
	}
	if len(o.as.Labels) > 0 && !slices.Contains(rec.Asked, "labels") {
		if err := hub.Label(ctx, pull.Number, o.as.Labels); err != nil {
			return err
		}
		rec.Asked = append(rec.Asked, "labels")
	}
	if o.as.Draft && o.ready && !slices.Contains(rec.Asked, askedReady) {
		if pull.Draft {
			if err := hub.Ready(ctx, pull); err != nil {
				return err
			}
		}
		rec.Asked = append(rec.Asked, askedReady)
	}
	var who []string
	for _, w := range o.as.Reviewers {
		if !slices.Contains(rec.Asked, "@"+w) && !strings.EqualFold(w, pull.Author) {
			who = append(who, w)
			rec.Asked = append(rec.Asked, "@"+w)
		}
	}
	if len(who) > 0 {
		if err := hub.AskReview(ctx, pull.Number, who); err != nil {
			return err
		}
	}
	return p.note(o.Run, func(r *record) { r.Asked = rec.Asked })
}

// errPush is a push that failed.
var errPush = errors.New("not pushed")

// reached returns why a push failed: git's words do not tell a refusal from a forge that is away; the API does.
func reached(ctx context.Context, hub *forge.Hub, err error) error {
	if !errors.Is(err, errPush) {
		return err
	}
	if _, away := hub.Me(ctx); forge.FaultOf(away) != nil && forge.FaultOf(away).Passes() {
		return away
	}
	return err
}

// push moves the run's branch at the remote to the commit. What somebody else pushed there stays.
func (p *Pulls) push(ctx context.Context, address string, o opening, rec record) error {
	repo := p.opt.Git
	was, err := git.RemoteHead(ctx, repo, address, o.Branch)
	if err != nil {
		return fmt.Errorf("%w: %w", errPush, err)
	}
	if was == o.commit && slices.Contains(rec.Pushed, was) {
		return nil
	}
	if was != "" && was != o.commit && !slices.Contains(rec.Pushed, was) {
		ours := false
		if has, err := repo.HasCommit(ctx, was); err == nil && has {
			ours, err = repo.Descends(ctx, o.commit, was)
			if err != nil {
				return err
			}
		}
		if !ours {
			return foreign(o.Branch, was, o.commit, o.again)
		}
	}
	if err := p.note(o.Run, func(r *record) { r.Pushed = append(r.Pushed, o.commit) }); err != nil || was == o.commit {
		return err
	}
	if err := repo.Push(ctx, address, o.commit, o.Branch, was); err != nil {
		return fmt.Errorf("%w: %w", errPush, err)
	}
	return nil
}

// foreign is about a commit on the run's branch that is somebody else's. To remove the branch would
// close its pull request, and so end the run.
func foreign(branch, theirs, ours, again string) error {
	return stuck(fmt.Sprintf("look: git fetch origin %[1]s && git log FETCH_HEAD; keep it elsewhere if it is wanted, and "+
		"put the run's commit back: git push --force-with-lease=%[1]s:%.12[2]s origin %.12[3]s:%[1]s; then %[4]s",
		branch, theirs, ours, again),
		"branch %s at the remote has commit %.12s, which sluice did not push: somebody else works there", branch, theirs)
}

// Landing of a run's work: how often it is tried while the forge is away.
const landTries = 5

// Land opens the run's pull request for its landing, or brings it up to date. It waits for a forge
// that is away, but not forever: then the error says what to do.
func (p *Pulls) Land(ctx context.Context, j job.Job, w tree.Work, l tree.Landing) error {
	key := j.Key + "/pull"
	defer p.opt.Notes.Note(key, "")
	c := pace{}
	for {
		_, err := p.request(ctx, j.Made, w, l, j.Spec.OnDone.Opens())
		f := forge.FaultOf(err)
		if err == nil || ctx.Err() != nil || f == nil || !f.Passes() || c.fails+1 >= landTries {
			return p.landFault(err, w.Run)
		}
		wait := min(c.after(err, 0), time.Minute)
		p.opt.Notes.Note(key, err.Error())
		if !p.opt.Wait(ctx, wait) {
			return ctx.Err()
		}
	}
}

// Request opens the run's pull request, or brings it up to date, at a person's command. It returns
// its address.
func (p *Pulls) Request(ctx context.Context, m job.Made, w tree.Work, l tree.Landing) (string, error) {
	pull, err := p.request(ctx, &m, w, l, engine.PullAs{})
	return pull.URL, p.landFault(err, w.Run)
}

func (p *Pulls) request(ctx context.Context, m *job.Made, w tree.Work, l tree.Landing,
	as engine.PullAs) (forge.Pull, error) {
	again := "`sluice land " + w.Run + " --pr` again"
	hub, _, err := p.at(ctx)
	if err != nil {
		return forge.Pull{}, err
	}
	rec, err := p.load(w.Run)
	if err != nil {
		return forge.Pull{}, err
	}
	if rec.Number > 0 { // perhaps it was merged meanwhile: nothing is left to do
		pull, err := hub.Pull(ctx, rec.Number)
		if err != nil || pull.Merged && pull.Head == l.Tip {
			return pull, err
		}
	}
	title, said, _ := strings.Cut(l.Message, "\n")
	o := opening{Made: *m, commit: l.Tip, onto: l.Onto, as: as, ready: true, again: again, said: said,
		ref: git.BranchRefs + w.Branch, names: l.Trailers}
	o.Title = cmp.Or(rec.Title, title)
	pull, err := p.opened(ctx, o)
	if err == nil && !pull.Open && !pull.Merged {
		err = stuck("open it again there, then "+again, "pull request #%d is closed", pull.Number)
	}
	return pull, err
}

// landFault says what a person can do about a landing that failed.
func (p *Pulls) landFault(err error, run string) error {
	var s *tree.Stuck
	f := forge.FaultOf(err)
	switch {
	case err == nil, errors.As(err, &s):
		return err
	case errors.Is(err, errPush):
		return stuck("check that you may push there, then `sluice land "+run+" --pr` again", "no pull request: %v", err)
	case f != nil && f.Kind == forge.NoGH:
		return stuck(f.Advice(), "no pull request: %v", err)
	case f != nil:
		do := f.Advice()
		if do != "" {
			do += "; "
		}
		return stuck(do+"then this can be done again: sluice land "+run+" --pr",
			"the pull request could not be opened, or not be brought up to date: %v", err)
	}
	return err
}
