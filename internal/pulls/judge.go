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
	"sluice/internal/job"
	"sluice/internal/text"
	"sluice/internal/tree"
)

const (
	readAt = "the forge" // where its verdicts are read
	// settles is how long checks must have been green without a new one: a forge makes some of a
	// commit's checks a little later than the others.
	settles = 10 * time.Second
	// giveUp is after how many looks in a row a fault that does not pass by itself ends the review.
	giveUp = 3
)

// review is one round's judging by the forge.
type review struct {
	p      *Pulls
	j      job.Job
	g      *engine.Gate
	commit string
	opened bool
	onto   string // the branch that the pull request is to go into
	number int
	green  string // the checks that were green at the look before, "" = not all were
	pace   pace
	fails  int // looks in a row with a fault that does not pass by itself
}

// Judge has the forge judge a round: it pushes the commit, opens the pull request or brings it up
// to date, and waits for the verdict. nil = ctx ended first. It can be begun again at any time.
func (p *Pulls) Judge(ctx context.Context, j job.Job) *engine.ProcessEnded {
	g := j.Spec.Gate(j.Proc.Gate)
	if play, ok := standIn(j, g); ok {
		return play
	}
	v := &review{p: p, j: j, g: g, commit: tree.CommitIn(j.Attempt.Digest)}
	defer p.say(j.Run, g.ID, "")
	defer p.opt.Notes.Note(j.Key, "")
	if v.commit == "" {
		return inconclusive("the work is in no commit, so there is nothing for a forge to judge")
	}
	for {
		verdict, says, err := v.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if verdict != nil {
			return &engine.ProcessEnded{Verdict: verdict}
		}
		wait := v.pace.after(err, p.opt.Poll())
		if end := v.ended(err); end != nil {
			return end
		}
		note := ""
		if err != nil {
			note = err.Error()
			says = fmt.Sprintf("for the forge: %s; it is asked again at %s", note,
				p.opt.Now().Add(wait).Local().Format("15:04:05"))
		} else if v.green != "" {
			wait = min(wait, settles)
		}
		p.opt.Notes.Note(j.Key, note)
		p.say(j.Run, g.ID, says)
		if !p.opt.Wait(ctx, wait) {
			return nil
		}
	}
}

// standIn plays the forge in a run with stubs.
func standIn(j job.Job, g *engine.Gate) (*engine.ProcessEnded, bool) {
	s, err := job.Script(j)
	if err != nil {
		return &engine.ProcessEnded{Exit: engine.Exit{Code: -1, NotStarted: err.Error()}}, true
	}
	if s == nil {
		return nil, false
	}
	t := job.Turn(j, j.Round.N, 0)
	t.Gate = g.ID
	play, _ := s.Play(t)
	v := engine.Judgement{Outcome: cmp.Or(play.Verdict, engine.OutcomePass), Feedback: play.Feedback, Read: job.StandIn}
	return &engine.ProcessEnded{Verdict: &v}, true
}

func inconclusive(why string) *engine.ProcessEnded {
	return &engine.ProcessEnded{Verdict: &engine.Judgement{Inconclusive: why}}
}

// ended returns how the review ends by a fault; nil = it goes on.
func (v *review) ended(err error) *engine.ProcessEnded {
	var s *tree.Stuck
	f := forge.FaultOf(err)
	if v.fails++; err == nil || f != nil && f.Passes() {
		v.fails = 0
	}
	switch {
	case errors.As(err, &s): // a person has to do something first
		return fatal(s.Error())
	case v.fails < giveUp:
		return nil
	case f != nil && (f.Kind == forge.NoGH || f.Kind == forge.NoLogin):
		return fatal(fmt.Sprintf("%v: %s; then sluice resume %s", err, f.Advice(), v.j.Run))
	case f != nil:
		return inconclusive(strings.TrimSuffix(fmt.Sprintf("%v: %s", err, f.Advice()), ": "))
	case errors.Is(err, errPush):
		return inconclusive(fmt.Sprintf("%v: check that you may push to %s there (is it protected?)", err, v.j.Made.Branch))
	}
	return inconclusive(err.Error())
}

// fatal pauses the run until a person has done something.
func fatal(why string) *engine.ProcessEnded {
	why = text.Clean(why, engine.MaxFeedback)
	return &engine.ProcessEnded{Exit: engine.Exit{Code: -1, Class: engine.ClassFatal, Why: why}}
}

// look looks once. Without a verdict, says is what the round waits for.
func (v *review) look(ctx context.Context) (verdict *engine.Judgement, says string, err error) {
	hub, _, err := v.p.at(ctx)
	if err != nil {
		return nil, "", err
	}
	if !v.opened {
		if verdict, err := v.skipped(ctx); err != nil || verdict != nil {
			return verdict, "", err
		}
		if why, err := v.p.forged(ctx, v.j.Run, v.commit); err != nil || why != "" {
			return sentBack(why), "", err
		}
		if err := v.open(ctx, hub); err != nil {
			return nil, "", err
		}
	}
	pull, err := hub.Pull(ctx, v.number)
	if err != nil {
		return nil, "", err
	}
	name := fmt.Sprintf("pull request #%d", v.number)
	if !pull.Open { // whoever follows the run ends it
		return nil, "for the end of the run: " + name + " is closed", nil
	}
	if err := v.ours(pull); err != nil {
		return nil, "", err
	}
	if pull.Head != v.commit {
		return nil, fmt.Sprintf("for %s to show commit %.12s", name, v.commit), nil
	}
	if pull.Base != v.onto {
		return nil, "for the target of " + name + ": " + otherTarget(pull, v.onto), nil
	}
	return v.weigh(ctx, hub, name, pull)
}

// skipped is the failure of a commit whose message keeps the forge from checking it: what else reports there would pass
// it alone.
func (v *review) skipped(ctx context.Context) (*engine.Judgement, error) {
	if !slices.Contains(v.g.Reviewer.Forge, engine.ForgeChecks) {
		return nil, nil
	}
	list, _, err := v.p.opt.Git.NewCommits(ctx, map[string]string{"": v.commit}, nil, 1)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if says := skips(c.Message); says != "" {
			return sentBack(fmt.Sprintf("The message of commit %.12s has %s, and the forge may run no checks for that: "+
				"give your last commit another message, as by git commit --amend.", v.commit, says)), nil
		}
	}
	return nil, nil
}

// sentBack is a failure for the message of a commit; nil without a why.
func sentBack(why string) *engine.Judgement {
	if why == "" {
		return nil
	}
	return &engine.Judgement{Outcome: engine.OutcomeFail, Read: "the commit's message", Feedback: why}
}

// open has the pull request show the commit, and answers the threads that it was made for.
func (v *review) open(ctx context.Context, hub *forge.Hub) error {
	pull, onto, err := v.p.shown(ctx, v.j, v.g, v.commit, "sluice resume "+v.j.Run,
		"start it again with the branch checked out that the work is for")
	if err != nil {
		return err
	}
	if err := v.p.answer(ctx, hub, v.j, pull, v.commit); err != nil {
		return err
	}
	v.opened, v.number, v.onto = true, pull.Number, onto
	return nil
}

// ours refuses a head that sluice did not push.
func (v *review) ours(pull forge.Pull) error {
	rec, err := v.p.load(v.j.Run)
	if err != nil || pull.Head == v.commit || slices.Contains(rec.Pushed, pull.Head) {
		return err
	}
	return foreign(v.j.Made.Branch, pull.Head, v.commit, "sluice resume "+v.j.Run)
}

// weigh asks for what the gate wants, and decides if that is enough.
func (v *review) weigh(ctx context.Context, hub *forge.Hub, name string, pull forge.Pull) (*engine.Judgement, string,
	error) {
	var c checksSeen
	var r reviewsSeen
	if slices.Contains(v.g.Reviewer.Forge, engine.ForgeChecks) {
		checks, err := hub.Checks(ctx, v.commit)
		if err != nil {
			return nil, "", err
		}
		c = seeChecks(checks)
	}
	if slices.Contains(v.g.Reviewer.Forge, engine.ForgeReviews) {
		me, err := hub.Me(ctx)
		if err != nil {
			return nil, "", err
		}
		all, err := hub.Reviews(ctx, v.number)
		if err != nil {
			return nil, "", err
		}
		r = seeReviews(all, v.commit, me, v.g.Reviewer.Approvers)
	}
	if len(c.red) > 0 || len(r.wants) > 0 {
		judged, err := v.refused(ctx, hub, c, r)
		return judged, "", err
	}
	if !names(v.g.Reviewer.Approvers) {
		may := func(login string) (bool, error) { return hub.MayWrite(ctx, login) }
		if err := r.writers(may); err != nil {
			return nil, "", err
		}
	}
	wanted := len(v.g.Reviewer.Forge)
	met := 0
	if c.settled() && slices.Contains(v.g.Reviewer.Forge, engine.ForgeChecks) {
		met++
	}
	if len(r.approved) > 0 && len(r.stale) == 0 {
		met++
	}
	was := v.green
	if v.green = ""; c.settled() {
		v.green = c.names()
	}
	says := waiting(v.g.Reviewer.Forge, name, c, r)
	if met < wanted || v.green != was {
		return nil, says, nil
	}
	if pull.Conflicts && len(c.green) > 0 { // GitHub runs no workflow of pull requests then
		why := fmt.Sprintf("%s conflicts with %s, and the forge may have run only some of its checks", name,
			text.Line(pull.Base))
		return &engine.Judgement{Inconclusive: why}, "", nil
	}
	return &engine.Judgement{Outcome: engine.OutcomePass, Feedback: passWords(name, v.commit, c, r), Read: readAt}, "", nil
}

// refused is the failure by red checks and wanted changes.
func (v *review) refused(ctx context.Context, hub *forge.Hub, c checksSeen, r reviewsSeen) (*engine.Judgement, error) {
	var words []string
	for i, red := range c.red {
		if i == maxLogs {
			words = append(words, fmt.Sprintf("and %d more failing checks", len(c.red)-i))
			break
		}
		log := red.Said
		if red.Job > 0 {
			end, err := hub.JobLog(ctx, red.Job, maxLog)
			switch f := forge.FaultOf(err); {
			case err == nil:
				log = end
			case f == nil || f.Passes() && v.pace.fails < giveUp: // one that never comes holds up nothing
				return nil, err
			}
		}
		words = append(words, redWords(red, log))
	}
	var lines []forge.Comment
	if len(r.wants) > 0 {
		var err error
		if lines, err = hub.LineComments(ctx, v.number); err != nil {
			return nil, err
		}
	}
	found, threads, said := changes(r.wants, lines, v.commit)
	words = append(words, said...)
	if err := v.p.note(v.j.Run, func(rec *record) { rec.Threads = merged(rec.Threads, threads) }); err != nil {
		return nil, err
	}
	return &engine.Judgement{Outcome: engine.OutcomeFail, Feedback: strings.Join(words, "\n\n"), Findings: found,
		Read: readAt}, nil
}
