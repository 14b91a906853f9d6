package pulls

import (
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
	"sluice/internal/text"
	"sluice/internal/tree"
)

// finish is how long what was begun may take once the run has moved on.
const finish = 30 * time.Second

// watch follows one run's pull request.
type watch struct {
	p    *Pulls
	j    job.Job
	emit func(engine.Event)
	over bool // its end was reported
}

// Watch follows the run's pull request until ctx ends: people's words in its comments, its end by
// somebody, and the comment on the issue that the run was started for.
func (p *Pulls) Watch(ctx context.Context, j job.Job, emit func(engine.Event)) {
	w := &watch{p: p, j: j, emit: emit}
	defer p.opt.Notes.Note(j.Key, "")
	defer func() {
		for _, q := range w.asked() {
			p.say(j.Run, q.Gate, "")
		}
	}()
	c := pace{}
	for {
		err := w.look(ctx)
		if ctx.Err() != nil {
			return
		}
		why := ""
		var s *tree.Stuck
		switch {
		case errors.As(err, &s):
			why = s.Error()
		case err != nil:
			why = forge.Says(err)
		}
		p.opt.Notes.Note(j.Key, why)
		if !p.opt.Wait(ctx, c.after(err, p.opt.Poll())) {
			return
		}
	}
}

// asked returns the run's own rounds that a person may answer now.
func (w *watch) asked() (out []job.MadeRound) {
	for _, q := range w.j.Made.Rounds {
		if q.Own && q.Open() && w.j.Spec.Gate(q.Gate) != nil {
			out = append(out, q)
		}
	}
	return out
}

// look looks once.
func (w *watch) look(ctx context.Context) error {
	hub, _, err := w.p.at(ctx)
	if err != nil {
		return err
	}
	return errors.Join(w.show(ctx), w.follow(ctx, hub))
}

// follow looks for the pull request's end and for people's words, and tells the issue.
func (w *watch) follow(ctx context.Context, hub *forge.Hub) error {
	rec, err := w.p.load(w.j.Run)
	if err != nil {
		return err
	}
	if rec.Number > 0 && !w.over {
		pull, err := hub.Pull(ctx, rec.Number)
		if err != nil {
			return err
		}
		if !pull.Open {
			return w.ended(ctx, hub, pull, rec)
		}
		if err := w.words(ctx, hub, pull); err != nil {
			return err
		}
	}
	return w.p.tellIssue(ctx, hub, w.j)
}

// ended reports that somebody has merged or closed the pull request.
func (w *watch) ended(ctx context.Context, hub *forge.Hub, pull forge.Pull, rec record) error {
	ev := engine.PullEnded{Run: w.j.Run, Pull: fmt.Sprintf("pull request #%d", pull.Number), Merged: pull.Merged,
		Commit: pull.As, By: pull.By}
	if ev.By == "" {
		by, err := hub.ClosedBy(ctx, pull.Number)
		if err != nil {
			return err
		}
		if ev.By = by; by == "" {
			ev.By = "somebody"
		}
	}
	if pull.Merged {
		onto, err := w.p.opt.Onto(w.j.Run)
		if err != nil {
			return err
		}
		if pull.Base != git.ShortBranch(onto) { // somebody changed its target
			ev.Pull += " into " + text.Line(pull.Base)
		}
		if !slices.Contains(rec.Pushed, pull.Head) {
			ev.Pull += fmt.Sprintf(" with commit %.12s, which sluice did not push,", text.Line(pull.Head))
		}
	}
	w.over = true
	w.emit(ev)
	return nil
}

// show opens the pull request for a gate at which people at the forge are asked, if it does not
// show the gate's commit yet, and says there and here how to answer.
func (w *watch) show(ctx context.Context) error {
	for _, q := range w.asked() {
		g, commit := w.j.Spec.Gate(q.Gate), tree.CommitIn(q.Digest)
		if q.State != engine.OnHuman || !g.Reviewer.AtForge() || commit == "" {
			continue
		}
		rec, err := w.p.load(w.j.Run)
		if err != nil {
			return err
		}
		ready := !last(g) || !w.j.Spec.OnDone.Opens().Draft || slices.Contains(rec.Asked, askedReady)
		if !slices.Contains(rec.Shown, commit) || !ready {
			switch held, err := w.held(ctx, q, commit); {
			case err != nil:
				return err
			case held:
				continue
			}
			_, _, err := w.p.shown(ctx, w.j, g, commit, "it is looked at again by itself", "answer here: sluice show "+g.ID)
			if err != nil {
				return err
			}
			if rec, err = w.p.load(w.j.Run); err != nil {
				return err
			}
		}
		w.p.say(w.j.Run, g.ID, fmt.Sprintf("for a person: sluice show %s; or, as a comment on %s: /sluice pass %.12s",
			g.ID, rec.URL, commit))
	}
	return nil
}

// held reports whether only a person pushes a round's commit, and says so: the push may start at the forge what the
// step has changed.
func (w *watch) held(ctx context.Context, q job.MadeRound, commit string) (bool, error) {
	if why, err := w.p.forged(ctx, w.j.Run, commit); err != nil || why != "" {
		w.p.say(w.j.Run, q.Gate, fmt.Sprintf("for a person: sluice show %s; its commit is not pushed: %s", q.Gate, why))
		return true, err
	}
	if !q.Protect {
		return false, nil
	}
	_, address, err := w.p.at(ctx)
	if err != nil {
		return true, err
	}
	was, err := git.RemoteHead(ctx, w.p.opt.Git, address, w.j.Made.Branch)
	if err != nil || was == commit {
		return err != nil, err
	}
	w.p.say(w.j.Run, q.Gate, fmt.Sprintf("for a person: sluice show %s; its commit is not pushed, because the step "+
		"changed protected files, which a push can start at the forge; once you have looked at them: git push "+
		"--force-with-lease=%[2]s:%.12[3]s origin %.12[4]s:refs/heads/%[2]s", q.Gate, w.j.Made.Branch, was,
		commit))
	return true, nil
}

// words takes in the comments that speak to sluice.
func (w *watch) words(ctx context.Context, hub *forge.Hub, pull forge.Pull) error {
	all, err := hub.Comments(ctx, pull.Number)
	if err != nil {
		return err
	}
	rec, err := w.p.load(w.j.Run)
	if err != nil {
		return err
	}
	onto, err := w.p.opt.Onto(w.j.Run)
	if err != nil {
		return err
	}
	t := talk{watch: w, hub: hub, pull: pull, all: all,
		shown: shown{pushed: rec.Pushed, onto: git.ShortBranch(onto)}}
	for _, c := range all {
		said, ok := parse(c.Body)
		if !ok || slices.Contains(rec.Taken, c.ID) {
			continue
		}
		if t.me == "" {
			if t.me, err = hub.Me(ctx); err != nil {
				return err
			}
		}
		if answerTo(all, c.ID, t.me) > 0 || w.decided(c) != nil { // before a restart
			err = w.p.note(w.j.Run, func(r *record) { r.Taken = append(r.Taken, c.ID) })
		} else {
			err = t.word(ctx, c, said)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decided returns the round that the comment decided already, nil = none: its taking was not noted before
// a kill.
func (w *watch) decided(c forge.Comment) *job.MadeRound {
	i := slices.IndexFunc(w.j.Made.Rounds, func(q job.MadeRound) bool {
		return q.Own && q.By != nil && strings.EqualFold(q.By.Who, c.Author) && q.By.Via == viaOf(c) && !q.Open()
	})
	if i < 0 {
		return nil
	}
	return &w.j.Made.Rounds[i]
}

// talk is what a pull request says at one look.
type talk struct {
	*watch
	hub  *forge.Hub
	pull forge.Pull
	all  []forge.Comment
	me   string // the account that sluice uses
	shown
}

// shown is what sluice has a pull request show.
type shown struct {
	pushed []string // commits
	onto   string   // the branch against which it shows them
}

// otherTarget is about a pull request that somebody has retargeted: it shows its changes against a branch that may
// have some of them.
func otherTarget(pull forge.Pull, onto string) string {
	return fmt.Sprintf("the pull request goes into %s, and the run's work is for %s, so it may not show all changes: "+
		"give it its target back", text.Code(pull.Base), text.Code(onto))
}

// word answers one comment: it counts, or a reply says why not. What counts is on the record first.
func (t talk) word(ctx context.Context, c forge.Comment, said word) error {
	ev, why, outsider := t.means(c, said)
	passes := !engine.Refuses(ev.Outcome)
	if why == "" && passes {
		switch edited, err := t.hub.WasEdited(ctx, c); {
		case err != nil:
			return err
		case edited:
			why = noEdits
		}
	}
	if why == "" {
		var err error
		if passes {
			q := t.round(ev.Gate)
			ev.DigestNow, err = t.p.opt.Digest(ctx, job.Reviewed{Run: t.j.Run, Gate: ev.Gate, Step: q.Step,
				Attempt: q.Attempt, Digest: q.Digest})
			if err != nil {
				return err
			}
		}
		if why, err = t.p.take(ev); err != nil {
			return err // the next look reads the comment again, or the next start
		}
	}
	reply := why
	if why == "" {
		reply = fmt.Sprintf("%s of gate `%s`, round %d, by %s (trust `%s`), about commit %.12s.", ev.Outcome, ev.Gate,
			ev.Round, c.Author, ev.By.Trust, tree.CommitIn(t.round(ev.Gate).Digest))
	}
	// The answer may have moved the run on, and so ended ctx.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finish)
	defer cancel()
	rec, err := t.p.load(t.j.Run)
	if err != nil {
		return err
	}
	if !outsider || !slices.Contains(rec.Told, c.Author) {
		if _, err := t.hub.Say(ctx, t.pull.Number, replyTo(c, why != "", reply)); err != nil {
			return err
		}
	}
	return t.p.note(t.j.Run, func(r *record) {
		r.Taken = append(r.Taken, c.ID)
		if outsider && !slices.Contains(r.Told, c.Author) {
			r.Told = append(r.Told, c.Author)
		}
	})
}

func (w *watch) round(gate string) job.MadeRound {
	for _, q := range w.asked() {
		if q.Gate == gate {
			return q
		}
	}
	return job.MadeRound{}
}
