package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// openGate opens a round at gate i of the step.
func (d *judging) openGate(r *Run, w *Spec, st *Step, i int) {
	g, a := w.Gate(st.Gates[i]), r.Current(st.ID)
	level := g.Reviewer.Level
	if r.Forced[g.ID] {
		level = LevelHuman
	}
	f := RoundOpened{of: Of(r.ID), Gate: g.ID, N: len(r.Rounds[g.ID]) + 1, Step: st.ID, Attempt: a.N, Level: level,
		Digest:     a.Digest,
		VetoWindow: d.s.Config.VetoWindow, Trust: d.s.Config.Trust}
	if g.VetoWindow != nil {
		f.VetoWindow = *g.VetoWindow
	}
	if trustRank(g.Reviewer.Trust) > trustRank(f.Trust) {
		f.Trust = g.Reviewer.Trust
	}
	if least := g.Reviewer.leastTrust(); trustRank(least) > trustRank(f.Trust) {
		f.Trust = least
	}
	d.put(f)
	q := r.CurrentRound(g.ID)
	if i == 0 && d.settledBefore(r, g, q, a) {
		return
	}
	if ok, err := holds(g.When, func() *Env { return d.gateEnv(r, w, g, q) }); err != nil {
		d.fail(r, g, q, failure{outcome: OutcomeFail, target: g.OnFail, byKind: "criterion",
			feedback: "when: " + err.Error()})
		return
	} else if !ok {
		d.pass(r, g, q, "when", g.When.Source+" is false")
		return
	}
	switch {
	case level == LevelHuman && r.Forced[g.ID]:
		d.ask(r, g, q, "forced")
	case level == LevelHuman:
		d.ask(r, g, q, "level")
	case g.Reviewer.FromStep:
		d.judge(r, g, q, ownWord(a), "step")
	}
}

// settledBefore decides a round that needs no reviewer (8-semantics 13), and reports whether it
// did.
func (d *judging) settledBefore(r *Run, g *Gate, q *Round, a *Attempt) bool {
	switch {
	case a.Broken != "":
		if to, ok := g.Route(OutcomeLost); ok && to != Human {
			d.fail(r, g, q, failure{outcome: OutcomeLost, target: to, route: true, byKind: "criterion",
				feedback: "no result: " + a.Broken})
			break
		}
		d.askFor(r, g, q, HumanAsked{Why: "no result: " + a.Broken}, r.unpassed(a)...)
	case a.Failure != "":
		d.fail(r, g, q, failure{outcome: OutcomeFail, target: g.OnFail, byKind: "criterion", feedback: a.Failure})
	case a.Status == StatusBlocked:
		text := strings.TrimSpace(a.Summary + "\n\n" + a.Question)
		to, ok := g.Route(OutcomeBlocked)
		if w := d.spec(r); w.Inline { // the list decides
			d.end(r, RunEnded{Phase: RunFailed, Step: g.Step, Why: "blocked: " + clip(text, MaxFeedback), Cause: causeBlocked})
			break
		}
		if !ok || to == Human {
			d.askFor(r, g, q, HumanAsked{Why: "blocked: " + text}, r.unpassed(a)...)
			break
		}
		d.fail(r, g, q, failure{outcome: OutcomeBlocked, target: to, route: true, byKind: "step", feedback: text})
	default:
		files := r.unpassed(a)
		if len(files) == 0 {
			return false
		}
		d.askFor(r, g, q, HumanAsked{}, files...)
	}
	return true
}

// ownWord returns the step's own report as a verdict.
func ownWord(a *Attempt) Judgement {
	if n := typed[Tally](a.Answer); a.List && (n.Done < n.Total || a.Status == StatusFailed) {
		return Judgement{Outcome: OutcomeFail, Answer: a.Answer, Feedback: cmp.Or(a.Summary, a.Failure)}
	}
	said := answerWord(a.Answer)
	return Judgement{Outcome: OutcomePass, Answer: a.Answer, Feedback: cmp.Or(said.Feedback, said.Summary, a.Summary),
		Score: said.Score, Scores: said.Scores, Findings: said.Findings}
}

// judge handles a verdict.
func (d *judging) judge(r *Run, g *Gate, q *Round, j Judgement, byKind string) {
	if j.Inconclusive != "" {
		d.inconclusive(r, g, q, j.Inconclusive)
		return
	}
	w := d.spec(r)
	outcome, err := d.outcome(r, w, g, q, j)
	if err == nil && outcome == "" {
		err = fmt.Errorf("no verdict was given")
	}
	if err != nil {
		d.inconclusive(r, g, q, err.Error())
		return
	}
	f := Judged{of: Of(r.ID), Gate: g.ID, N: q.N, Outcome: outcome, Score: j.Score, Scores: j.Scores,
		Feedback: clip(j.Feedback, MaxFeedback), Findings: j.Findings, Answer: j.Answer, Read: j.Read}
	if j.Outcome != outcome {
		f.Word = j.Outcome
	}
	switch {
	case g.Reviewer.FromStep:
		f.ByKind = "step"
	case g.Reviewer.Run != nil:
		f.ByKind = "command"
	case len(g.Reviewer.Forge) > 0:
		f.ByKind = byForge
	}
	d.put(f)
	if len(g.Outputs) > 0 {
		d.put(OutputsOwed{of: Of(r.ID), Gate: g.ID, N: q.N})
	}
	d.addTasks(r, w, g, outcome, j)
	to, routed := g.Route(outcome)
	switch {
	case outcome == OutcomePass && q.Level == LevelNotify:
		d.put(Agreed{of: Of(r.ID), Gate: g.ID, N: q.N})
		d.notice(Notice{ID: gateNotice(r.ID, g.ID, q.N), Kind: NoticeGate, Run: r.ID, Step: g.Step, Gate: g.ID, N: q.N,
			Text: clip(j.Feedback, 2000)})
	case outcome == OutcomePass:
		d.pass(r, g, q, byKind, "")
	case outcome == Human || routed && to == Human:
		d.ask(r, g, q, "the verdict is "+outcome)
	case routed:
		d.fail(r, g, q, failure{outcome: outcome, target: to, route: true, byKind: byKind, feedback: j.Feedback})
	default:
		d.fail(r, g, q, failure{outcome: outcome, target: g.OnFail, byKind: byKind, feedback: j.Feedback})
	}
}

// addTasks adds the answer's new tasks if the list's own gate does not pass.
func (d *judging) addTasks(r *Run, w *Spec, g *Gate, outcome string, j Judgement) {
	if w.Step(g.Step).ForEach == nil || outcome == OutcomePass || r.List == nil || g.Reviewer.FromStep {
		return
	}
	more, why := addable(r.List, j.Answer, "", 0)
	if why != "" {
		d.notice(Notice{ID: fmt.Sprintf("%s/%s.tasks-%d", r.ID, g.ID, d.s.Clock), Kind: NoticeInfo, Run: r.ID, Gate: g.ID,
			Text: "its new tasks were not added: " + why})
	} else if len(more) > 0 {
		d.put(TasksAdded{of: Of(r.ID), Gate: g.ID, Added: more})
	}
}

// outcome derives the round's outcome from the reviewer's answer.
func (d *judging) outcome(r *Run, w *Spec, g *Gate, q *Round, j Judgement) (string, error) {
	v := g.Verdict
	if len(v.Rules) == 0 && v.Name == nil {
		return j.Outcome, nil
	}
	env := d.gateEnv(r, w, g, q)
	env.setAnswer(j)
	if v.Name != nil {
		name, err := v.Name.String(env)
		if err != nil {
			return "", fmt.Errorf("verdict: %w", err)
		}
		return name, nil
	}
	for _, rule := range v.Rules {
		ok := true
		if rule.When.Eval != nil {
			var err error
			if ok, err = rule.When.Eval(env); err != nil {
				return "", fmt.Errorf("verdict %s: %w", rule.Outcome, err)
			}
		}
		if ok {
			return rule.Outcome, nil
		}
	}
	return j.Outcome, nil
}

// inconclusive handles a missing verdict. It never passes and never counts; it is retried, then a
// person is asked.
func (d *judging) inconclusive(r *Run, g *Gate, q *Round, why string) {
	why = clip(why, MaxFeedback)
	if at, ok := d.relaunchAt(q.Misses, g.Restarts, g.Reviewer.AgentType); ok && !g.Reviewer.FromStep {
		d.put(Inconclusive{of: Of(r.ID), Gate: g.ID, N: q.N, Why: why, NotBefore: at})
		return
	}
	d.put(Inconclusive{of: Of(r.ID), Gate: g.ID, N: q.N, Why: why})
	d.ask(r, g, q, "inconclusive: "+why)
}

// ask has a person decide the round.
func (d *judging) ask(r *Run, g *Gate, q *Round, why string) {
	d.askFor(r, g, q, HumanAsked{Why: why})
}

// askFor asks a person about the round, for the reason in f, and about protected files that the step changed.
func (d *judging) askFor(r *Run, g *Gate, q *Round, f HumanAsked, files ...string) {
	if f.Protect = len(files) > 0; f.Protect {
		f.Why = strings.TrimSuffix(r.Attempt(q.Step, q.Attempt).protectWords(files)+"; "+f.Why, "; ")
	}
	why := f.Why
	f.of, f.Gate, f.N, f.Why = Of(r.ID), g.ID, q.N, clip(why, MaxFeedback)
	if g.Timeout > 0 {
		f.Due = d.at.Add(time.Duration(g.Timeout))
	}
	if d.s.Config.Remind > 0 {
		f.RemindAt = d.at.Add(time.Duration(d.s.Config.Remind))
	}
	d.put(f)
	d.notice(Notice{ID: r.ID + "/" + g.ID + "#" + strconv.Itoa(q.N) + ".human-" + strconv.FormatInt(d.s.Clock, 10),
		Kind: NoticeHuman, Run: r.ID, Step: g.Step, Gate: g.ID, N: q.N, Text: clip(why, 2000)})
}

// pass passes the round: the work moves to the step's next gate, or on.
func (d *judging) pass(r *Run, g *Gate, q *Round, byKind, text string) {
	d.letThrough(r, g, q, RoundPassed{ByKind: byKind, Text: clip(text, MaxFeedback)})
}

// passBy is pass by a person, with their words and answer.
func (d *judging) passBy(r *Run, g *Gate, q *Round, ev Answered, answer json.RawMessage) {
	if len(answer) > 0 && len(g.Outputs) > 0 {
		d.put(OutputsOwed{of: Of(r.ID), Gate: g.ID, N: q.N})
	}
	d.letThrough(r, g, q, RoundPassed{ByKind: Human, By: &ev.By, Feedback: clip(ev.Text, MaxFeedback), Answer: answer})
}

// letThrough records a pass and moves the work on.
func (d *judging) letThrough(r *Run, g *Gate, q *Round, f RoundPassed) {
	f.of, f.Gate, f.N = Of(r.ID), g.ID, q.N
	d.put(f)
	w := d.spec(r)
	st := w.Step(g.Step)
	if i := slices.Index(st.Gates, g.ID); i+1 < len(st.Gates) {
		d.openGate(r, w, st, i+1)
		return
	}
	n := r.Current(st.ID).N
	d.put(StepPassed{of: Of(r.ID), Step: st.ID, N: n, To: g.OnPass})
	d.renew(r, st.ID)
	if r.taken(r.Current(st.ID)) {
		d.put(AdvanceOwed{of: Of(r.ID), Step: st.ID, N: n})
	}
	if w.Notify {
		d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.passed", r.ID, st.ID, n), Kind: NoticeInfo, Run: r.ID, Step: st.ID,
			Text: st.Name + " has passed"})
	}
	d.ends(r, st.ID, g.OnPass)
}

// renew resets the counts of gates whose on_exhausted sent the work to the step, once it has
// passed.
func (d *judging) renew(r *Run, step string) {
	for _, gate := range slices.Sorted(maps.Keys(r.Renews)) {
		if r.Renews[gate] == step {
			d.put(CountRenewed{of: Of(r.ID), Gate: gate})
		}
	}
}

// ends ends the run if a pass leads to FAILED or ABORTED.
func (d *judging) ends(r *Run, step string, to []string) {
	for _, t := range to {
		if t == EndFailed || t == EndAborted {
			d.end(r, RunEnded{Phase: endPhase(t), Step: step, Why: "a pass of " + step + " leads to " + t})
		}
	}
}
