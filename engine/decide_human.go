package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"sluice/internal/text"
)

// answer handles a person's answer at a gate. It returns why it does not count, or "" (8-semantics
// 21-23).
func (d *signalling) answer(ev Answered) string {
	r, g, why := d.meant(ev)
	if why != "" {
		return why
	}
	if why := d.unbound(ev, r, g); why != "" {
		return why
	}
	q := r.CurrentRound(g.ID)
	switch {
	case q == nil:
		return fmt.Sprintf("gate %s of %s asks nothing now", g.ID, r.ID)
	case ev.Round != 0 && ev.Round != q.N:
		return fmt.Sprintf("gate %s is at round %d, not %d", g.ID, q.N, ev.Round)
	case ev.Round == 0 && ev.Written.Add(mtimeSlack).Before(q.Opened) && q.Opened.After(d.at):
		return fmt.Sprintf("the clock was set back since round %d of %s opened, so it is unknown whether it was written "+
			"before: name the round in it", q.N, g.ID)
	case ev.Round == 0 && ev.Written.After(d.at.Add(mtimeSlack)):
		return fmt.Sprintf("its time is in the future, so it is unknown whether it was written before round %d of %s "+
			"opened: name the round in it", q.N, g.ID)
	case ev.Round == 0 && ev.Written.Add(mtimeSlack).Before(q.Opened):
		return fmt.Sprintf("it was written before round %d of %s opened: an old answer does not count for a new attempt",
			q.N, g.ID)
	case !q.takes(ev.Outcome):
		return decided(g, q)
	case !Trusted(ev.By.Trust, q.Trust) || !Trusted(ev.By.Trust, d.s.Config.Trust): // the stricter of then and now
		want, how := d.s.WantsTrust(q), ""
		if want == TrustSigned {
			how = ": " + Verb(g.ID, ev.Outcome) + " signs it"
		} else if want == TrustForge {
			how = ": one of " + strings.Join(g.Reviewer.Approvers, ", ") + " says it on the pull request, or signs it"
		}
		return fmt.Sprintf("gate %s wants an answer of trust level %s, this one has %s%s", g.ID, want,
			cmp.Or(ev.By.Trust, TrustFile), how)
	}
	if why := notApprover(ev, r, g, q); why != "" {
		return why
	}
	return d.decide(ev, r, g, q)
}

// decide applies a person's valid answer.
func (d *signalling) decide(ev Answered, r *Run, g *Gate, q *Round) string {
	by := ev.By
	to, routed := g.Route(ev.Outcome)
	answer, why := g.answered(ev)
	f := failure{outcome: OutcomeFail, target: g.OnFail, byKind: "human", by: &by, feedback: ev.Text,
		comments: ev.Findings, veto: ev.Outcome == OutcomeVeto}
	switch {
	case ev.Outcome == OutcomePass && q.State != OnHuman:
		return fmt.Sprintf("gate %s does not ask a person: it is %s (a person may veto it)", g.ID, stateWords(q))
	case why != "":
		return why
	case (ev.Outcome == OutcomePass || routed && q.State == OnHuman) && q.Digest != "" &&
		ev.DigestNow != q.Digest:
		d.used(r, g, q, ev)
		d.put(RoundVoided{of: Of(r.ID), Gate: g.ID, N: q.N, Why: "what was reviewed has changed since the gate opened",
			By: &by})
		d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.void", r.ID, g.ID, q.N), Kind: NoticeInfo, Run: r.ID, Step: g.Step,
			Gate: g.ID, N: q.N, Text: "your " + ev.Outcome +
				" does not count: what was reviewed has changed since; it will be checked and asked again"})
	case ev.Outcome == OutcomePass:
		d.used(r, g, q, ev)
		d.passBy(r, g, q, ev, answer)
	case Refuses(ev.Outcome):
		var vetoed []*Attempt
		if q.State == Approved {
			vetoed = r.onBranch(d.spec(r), g.Step)
		} else if f.feedback == "" && len(f.comments) == 0 { // a late veto does not repeat the feedback of the pass
			f.feedback = q.Feedback
		}
		d.used(r, g, q, ev)
		d.fail(r, g, q, f)
		d.takeBack(r, vetoed)
	case !routed || to == Human:
		return fmt.Sprintf("gate %s has no outcome %q: want %s", g.ID, ev.Outcome, strings.Join(g.Outcomes(), ", "))
	case q.State != OnHuman:
		return fmt.Sprintf("gate %s does not ask a person: it is %s (a person may veto it)", g.ID, stateWords(q))
	default:
		d.used(r, g, q, ev)
		f.outcome, f.target, f.route = ev.Outcome, to, true
		d.fail(r, g, q, f)
	}
	return ""
}

// answered returns the person's structured answer as the gate reads it, or why it does not count.
func (g *Gate) answered(ev Answered) (answer json.RawMessage, why string) {
	if ev.Signed != nil { // the signed answer alone counts
		ev.Answer = ev.Signed.Answer
	}
	switch {
	case len(ev.Findings) > 0 && !Refuses(ev.Outcome):
		return nil, fmt.Sprintf("comments go with a fail or a veto, and this is %s: leave them out, or `%s`",
			ev.Outcome, Verb(g.ID, OutcomeFail))
	case len(ev.Answer) > 0 && ev.Outcome != OutcomePass:
		return nil, fmt.Sprintf("an answer goes with a pass, and this is %s: leave the answer out, or `%s`", ev.Outcome,
			Verb(g.ID, OutcomePass))
	case len(ev.Answer) > 0 && g.ReadAnswer == nil:
		return nil, fmt.Sprintf("gate %s asks for no answer: `%s` without one", g.ID, Verb(g.ID, OutcomePass))
	case ev.Outcome != OutcomePass || len(ev.Answer) == 0 && !g.AsksAnswer():
		return nil, ""
	case len(ev.Answer) > MaxAnswer:
		return nil, fmt.Sprintf("the answer has more than %d bytes: give a shorter one", MaxAnswer)
	}
	answer, err := g.ReadAnswer(ev.Answer)
	switch {
	case err != nil:
		return nil, err.Error()
	case ev.Signed != nil && string(answer) != string(ev.Signed.Answer):
		return nil, fmt.Sprintf("what was signed is not the whole answer, which is %s: sign again: %s",
			clip(string(answer), 1000), Verb(g.ID, OutcomePass))
	}
	return answer, ""
}

// Outcomes returns what a person may answer at the gate.
func (g *Gate) Outcomes() []string {
	out := []string{OutcomePass, OutcomeFail, OutcomeVeto}
	for _, r := range g.Routes {
		if r.To != Human {
			out = append(out, r.Outcome)
		}
	}
	return out
}

// meant finds the run and gate an answer is for.
func (d *signalling) meant(ev Answered) (*Run, *Gate, string) {
	if ev.Run != "" {
		r := d.s.Runs[ev.Run]
		if why := notLive(r, ev.Run); why != "" {
			return nil, nil, why
		}
		w := d.spec(r)
		if w == nil || w.Gate(ev.Gate) == nil {
			return nil, nil, fmt.Sprintf("run %s has no gate %s", r.ID, ev.Gate)
		}
		return r, w.Gate(ev.Gate), ""
	}
	var run *Run
	var gate *Gate
	n, known, over := 0, []string{}, ""
	for _, id := range d.s.Order {
		if d.s.Runs[id].Phase != RunPending && !d.s.Runs[id].Live() && len(d.s.Runs[id].Rounds[ev.Gate]) > 0 {
			over = id
		}
		r, w := d.live(id)
		if r == nil {
			continue
		}
		for _, g := range w.Gates {
			known = append(known, g.ID)
		}
		g := w.Gate(ev.Gate)
		if g == nil {
			continue
		}
		if takes := r.CurrentRound(g.ID).takes(ev.Outcome); n == 0 || takes {
			if takes {
				n++
			}
			run, gate = r, g
		}
	}
	switch {
	case n > 1:
		return nil, nil, fmt.Sprintf("%d runs wait at gate %s: say which (--run RUN)", n, ev.Gate)
	case run != nil:
		return run, gate, ""
	case over != "":
		return nil, nil, notLive(d.s.Runs[over], over)
	}
	why := fmt.Sprintf("no live run has a gate %s", ev.Gate)
	if near := text.Nearest(ev.Gate, known); near != "" {
		why += fmt.Sprintf(": did you mean %s?", near)
	}
	return nil, nil, why
}

// decided returns the refusal of a second answer, with who decided first.
func decided(g *Gate, q *Round) string {
	who := q.ByKind
	if q.By != nil && q.By.Who != "" {
		who = q.By.Who
		if q.By.Via != "" {
			who += " (" + q.By.Via + ")"
		}
	}
	return fmt.Sprintf("gate %s is decided already: %s by %s at %s", g.ID, q.Outcome, who,
		q.Ended.UTC().Format("2006-01-02 15:04:05Z"))
}

func stateWords(q *Round) string {
	switch q.State {
	case OnReview:
		return "under review"
	case OnNotice, OnWindow:
		return "passed by its reviewer, the veto window is open"
	}
	return q.State
}
