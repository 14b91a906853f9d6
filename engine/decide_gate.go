package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// openGate opens a round at gate i of the step.
func (d *decider) openGate(r *Run, w *Spec, st *Step, i int) {
	g, a := w.Gate(st.Gates[i]), r.Current(st.ID)
	level := g.Reviewer.Level
	if r.Forced[g.ID] {
		level = LevelHuman
	}
	f := RoundOpened{of: Of(r.ID), Gate: g.ID, N: len(r.Rounds[g.ID]) + 1, Step: st.ID, Attempt: a.N, Level: level, Digest: a.Digest,
		VetoWindow: d.s.Config.VetoWindow, Trust: d.s.Config.Trust}
	if g.VetoWindow != nil {
		f.VetoWindow = *g.VetoWindow
	}
	if trustRank(g.Reviewer.Trust) > trustRank(f.Trust) {
		f.Trust = g.Reviewer.Trust
	}
	if len(g.Reviewer.Approvers) > 0 {
		f.Trust = TrustSigned
	}
	d.put(f)
	q := r.CurrentRound(g.ID)
	if i == 0 && d.settledBefore(r, g, q, a) {
		return
	}
	if ok, err := holds(g.When, func() *Env { return d.gateEnv(r, w, g, q) }); err != nil {
		d.fail(r, g, q, failure{outcome: OutcomeFail, target: g.OnFail, byKind: "criterion", feedback: "when: " + err.Error()})
		return
	} else if !ok {
		d.pass(r, g, q, "when", nil, g.When.Source+" is false")
		return
	}
	switch {
	case level == LevelHuman && r.Forced[g.ID]:
		d.ask(r, g, q, "forced", false)
	case level == LevelHuman:
		d.ask(r, g, q, "level", false)
	case g.Reviewer.FromStep:
		d.judge(r, g, q, ownWord(a), "step")
	}
}

// settledBefore decides a round that needs no reviewer (8-semantics 13), and reports whether it
// did.
func (d *decider) settledBefore(r *Run, g *Gate, q *Round, a *Attempt) bool {
	switch {
	case a.Broken != "":
		if to, ok := g.Route(OutcomeLost); ok && to != Human {
			d.fail(r, g, q, failure{outcome: OutcomeLost, target: to, route: true, byKind: "criterion", feedback: "no result: " + a.Broken})
			break
		}
		d.ask(r, g, q, "no result: "+a.Broken, false)
	case a.Failure != "":
		d.fail(r, g, q, failure{outcome: OutcomeFail, target: g.OnFail, byKind: "criterion", feedback: a.Failure})
	case a.Status == StatusBlocked:
		text := a.Summary
		if a.Question != "" {
			text = strings.TrimSpace(text + "\n\n" + a.Question)
		}
		to, ok := g.Route(OutcomeBlocked)
		if w := d.spec(r); w.Inline { // the list decides
			d.end(r, RunEnded{Phase: RunFailed, Step: g.Step, Why: "blocked: " + clip(text, MaxFeedback), Cause: causeBlocked})
			break
		}
		if !ok || to == Human {
			d.ask(r, g, q, "blocked: "+text, false)
			break
		}
		d.fail(r, g, q, failure{outcome: OutcomeBlocked, target: to, route: true, byKind: "step", feedback: text})
	default:
		files := r.unpassed(a)
		if len(files) == 0 {
			return false
		}
		d.askFor(r, g, q, HumanAsked{Why: whyProtect + strings.Join(files[:min(len(files), 10)], ", "), Protect: true})
	}
	return true
}

// ownWord returns the step's own report as a verdict.
func ownWord(a *Attempt) Judgement {
	if n := typed[Tally](a.Answer); a.List && (n.Done < n.Total || a.Status == StatusFailed) {
		return Judgement{Outcome: OutcomeFail, Answer: a.Answer, Feedback: cmp.Or(a.Summary, a.Failure)}
	}
	said := answerWord(a.Answer)
	return Judgement{Outcome: OutcomePass, Answer: a.Answer, Feedback: cmp.Or(said.Feedback, said.Summary, a.Summary), Score: said.Score, Scores: said.Scores, Findings: said.Findings}
}

// judge handles a verdict.
func (d *decider) judge(r *Run, g *Gate, q *Round, j Judgement, byKind string) {
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
	f := Judged{of: Of(r.ID), Gate: g.ID, N: q.N, Outcome: outcome, Score: j.Score, Scores: j.Scores, Feedback: clip(j.Feedback, MaxFeedback), Findings: j.Findings, Answer: j.Answer, Read: j.Read}
	if j.Outcome != outcome {
		f.Word = j.Outcome
	}
	switch {
	case g.Reviewer.FromStep:
		f.ByKind = "step"
	case g.Reviewer.Run != nil:
		f.ByKind = "command"
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
		d.notice(Notice{ID: gateNotice(r.ID, g.ID, q.N), Kind: NoticeGate, Run: r.ID, Step: g.Step, Gate: g.ID, N: q.N, Text: clip(j.Feedback, 2000)})
	case outcome == OutcomePass:
		d.pass(r, g, q, byKind, nil, "")
	case outcome == Human || routed && to == Human:
		d.ask(r, g, q, "the verdict is "+outcome, false)
	case routed:
		d.fail(r, g, q, failure{outcome: outcome, target: to, route: true, byKind: byKind, feedback: j.Feedback})
	default:
		d.fail(r, g, q, failure{outcome: outcome, target: g.OnFail, byKind: byKind, feedback: j.Feedback})
	}
}

// addTasks adds the answer's new tasks if the list's own gate does not pass.
func (d *decider) addTasks(r *Run, w *Spec, g *Gate, outcome string, j Judgement) {
	if w.Step(g.Step).ForEach == nil || outcome == OutcomePass || r.List == nil || g.Reviewer.FromStep {
		return
	}
	more, why := addable(r.List, j.Answer, 0)
	if why != "" {
		d.notice(Notice{ID: fmt.Sprintf("%s/%s.tasks-%d", r.ID, g.ID, d.s.Clock), Kind: NoticeInfo, Run: r.ID, Gate: g.ID, Text: "its new tasks were not added: " + why})
	} else if len(more) > 0 {
		d.put(TasksAdded{of: Of(r.ID), Gate: g.ID, Added: more})
	}
}

// outcome derives the round's outcome from the reviewer's answer.
func (d *decider) outcome(r *Run, w *Spec, g *Gate, q *Round, j Judgement) (string, error) {
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
func (d *decider) inconclusive(r *Run, g *Gate, q *Round, why string) {
	why = clip(why, MaxFeedback)
	role := g.Reviewer.AgentType
	if q.Misses < d.s.Config.restarts(g.Restarts, role) && !g.Reviewer.FromStep {
		d.put(Inconclusive{of: Of(r.ID), Gate: g.ID, N: q.N, Why: why, NotBefore: d.at.Add(backoff(q.Misses, backoffFirst, backoffMost))})
		return
	}
	d.put(Inconclusive{of: Of(r.ID), Gate: g.ID, N: q.N, Why: why})
	d.ask(r, g, q, "inconclusive: "+why, false)
}

// ask has a person decide the round.
func (d *decider) ask(r *Run, g *Gate, q *Round, why string, forced bool) {
	d.askFor(r, g, q, HumanAsked{Why: why, Forced: forced})
}

// askFor asks a person about the round, for the reason in f.
func (d *decider) askFor(r *Run, g *Gate, q *Round, f HumanAsked) {
	why := f.Why
	f.of, f.Gate, f.N, f.Why = Of(r.ID), g.ID, q.N, clip(why, MaxFeedback)
	if g.Timeout > 0 {
		f.Due = d.at.Add(time.Duration(g.Timeout))
	}
	if d.s.Config.Remind > 0 {
		f.RemindAt = d.at.Add(time.Duration(d.s.Config.Remind))
	}
	d.put(f)
	d.notice(Notice{ID: r.ID + "/" + g.ID + "#" + strconv.Itoa(q.N) + ".human-" + strconv.FormatInt(d.s.Clock, 10), Kind: NoticeHuman, Run: r.ID, Step: g.Step, Gate: g.ID, N: q.N, Text: clip(why, 2000)})
}

// byExhausted is the ByKind of a round that on_exhausted passes.
const byExhausted = "exhausted"

// pass passes the round: the work moves to the step's next gate, or on.
func (d *decider) pass(r *Run, g *Gate, q *Round, byKind string, by *Actor, text string) {
	f := RoundPassed{ByKind: byKind, By: by}
	switch text = clip(text, MaxFeedback); byKind {
	case byExhausted:
		f.LetThrough, f.Route = r.Count(g.ID, q.Route), q.Route
	default:
		f.Text = text
	}
	d.letThrough(r, g, q, f)
}

// passBy is pass by a person, with their words and answer.
func (d *decider) passBy(r *Run, g *Gate, q *Round, ev Answered, answer json.RawMessage) {
	if len(answer) > 0 && len(g.Outputs) > 0 {
		d.put(OutputsOwed{of: Of(r.ID), Gate: g.ID, N: q.N})
	}
	d.letThrough(r, g, q, RoundPassed{ByKind: Human, By: &ev.By, Feedback: clip(ev.Text, MaxFeedback), Answer: answer})
}

// letThrough records a pass and moves the work on.
func (d *decider) letThrough(r *Run, g *Gate, q *Round, f RoundPassed) {
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
		d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.passed", r.ID, st.ID, n), Kind: NoticeInfo, Run: r.ID, Step: st.ID, Text: st.Name + " has passed"})
	}
	d.ends(r, st.ID, g.OnPass)
}

// renew resets the counts of gates whose on_exhausted sent the work to the step, once it has
// passed.
func (d *decider) renew(r *Run, step string) {
	for _, gate := range slices.Sorted(maps.Keys(r.Renews)) {
		if r.Renews[gate] == step {
			d.put(CountRenewed{of: Of(r.ID), Gate: gate})
		}
	}
}

// ends ends the run if a pass leads to FAILED or ABORTED.
func (d *decider) ends(r *Run, step string, to []string) {
	for _, t := range to {
		switch t {
		case EndFailed:
			d.end(r, RunEnded{Phase: RunFailed, Step: step, Why: "a pass of " + step + " leads to FAILED"})
		case EndAborted:
			d.end(r, RunEnded{Phase: RunAborted, Step: step, Why: "a pass of " + step + " leads to ABORTED"})
		}
	}
}

// failure is why a round failed, or the route it takes.
type failure struct {
	outcome, target string
	route           bool // taken from `routes:`, not on_fail: not a failure
	byKind          string
	by              *Actor
	feedback        string
}

// fail sends the work back or elsewhere, counts it, and asks a person when the count is exhausted.
// A route by its own name is not a failure and has its own count.
func (d *decider) fail(r *Run, g *Gate, q *Round, f failure) {
	w := d.spec(r)
	f.feedback = clip(f.feedback, MaxFeedback)
	named, failures := "", r.Fails[g.ID]+1 // exhausted may reset the count
	if f.route {
		named = f.target
	} else if q.Counted {
		failures--
	}
	if !f.route || w.leadsBack(f.target, g.Step) {
		switch {
		case q.Counted:
		case f.route:
			d.put(routeCounted(r, g, q, f))
		default:
			d.put(d.gateFailed(r, g, q, f))
		}
		if f.byKind != "human" && d.exhausted(r, w, g, q, &f) {
			return
		}
	}
	out := RoundFailed{of: Of(r.ID), Gate: g.ID, N: q.N, Outcome: f.outcome, ByKind: f.byKind, By: f.by, Feedback: f.feedback, To: f.target}
	if w.passLeads(g.Step, f.target) || f.target == EndDone && named != EndDone {
		out.LetThrough = failures
	}
	out.Forced = f.byKind == "human" && d.forces(r, g, q, f.target)
	word := "failed"
	if f.route {
		word = ByRoute
		if q.Route == f.outcome {
			out.Times = q.Times
		}
		d.put(RoundRouted(out))
	} else {
		d.put(out)
	}
	if w.Notify {
		d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.%s", r.ID, g.ID, q.N, word), Kind: NoticeInfo, Run: r.ID, Step: g.Step, Gate: g.ID, N: q.N,
			Text: clip(fmt.Sprintf("%s: %s → %s. %s", g.Name, f.outcome, f.target, f.feedback), 2000)})
	}
	if !IsEnd(f.target) && !f.route {
		n := r.Files[g.ID] + 1
		d.put(RetryContextOwed{of: Of(r.ID), Gate: g.ID, N: q.N, File: n, Path: RetryPath(g.RetryContext, r.RetryDir, n)})
	}
	d.send(r, w, g, f)
}

// forces reports whether only a person may pass the next round, because the gate has now failed
// max_retries times and a person answered. The failure itself still takes effect. A run that it
// ends is excluded: a retry resets the count.
func (d *decider) forces(r *Run, g *Gate, q *Round, target string) bool {
	return r.Count(g.ID, q.Route) >= g.MaxRetries && g.Reviewer.Level != LevelHuman && !r.Forced[g.ID] && target != EndFailed && target != EndAborted
}

// passLeads reports whether a pass of the step also leads to the target, directly or later.
func (s *Spec) passLeads(step, target string) bool {
	return slices.ContainsFunc(s.LastGate(s.Step(step)).OnPass, func(to string) bool {
		return to == target && !IsEnd(to) || s.graph.down[to][target]
	})
}

// retryContext is the folder of all retry context.
const retryContext = ".workflow/retry-context/"

// RetryPath returns the path of a gate's n-th retry-context file, in a run whose files are in dir.
func RetryPath(pattern, dir string, n int) string {
	return InRetryDir(strings.ReplaceAll(pattern, "{n}", strconv.Itoa(n)), dir)
}

// InRetryDir resolves a path or glob of the spec for a run whose retry context is in dir.
func InRetryDir(path, dir string) string {
	if rest, ok := strings.CutPrefix(path, retryContext); ok && dir != "" {
		return retryContext + dir + "/" + rest
	}
	return path
}

// gateFailed counts a failure, and how often it recurred over an unchanged tree.
func (d *decider) gateFailed(r *Run, g *Gate, q *Round, f failure) GateFailed {
	out := GateFailed{of: Of(r.ID), Gate: g.ID, N: q.N, Count: r.Fails[g.ID] + 1, Outcome: f.outcome, Feedback: f.feedback}
	if f.byKind == "human" {
		out.ByKind = f.byKind
		return out
	}
	if q.Digest == "" {
		return out
	}
	out.Digest, out.Failure, out.Same = q.Digest, likeness(f.outcome, f.feedback), 1
	if a := r.Current(g.Step); a != nil && a.N == q.Attempt && a.Content != "" {
		out.Digest = a.Content
	}
	if s := r.Same[g.ID]; s != nil && s.Digest == out.Digest && s.Failure == out.Failure {
		out.Same = s.Count + 1
	}
	return out
}

// routeCounted counts a route back by its name. Routes do not count as repeated failures.
func routeCounted(r *Run, g *Gate, q *Round, f failure) RouteCounted {
	out := RouteCounted{of: Of(r.ID), Gate: g.ID, N: q.N, Route: f.outcome, Count: r.Count(g.ID, f.outcome) + 1, Feedback: f.feedback}
	if f.byKind == "human" {
		out.ByKind = f.byKind
	}
	return out
}

// likeness returns a digest of the outcome and the feedback's letters only: numbers, such as times,
// addresses and line counts, differ between runs of the same broken build.
func likeness(outcome, feedback string) string {
	norm := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, feedback)
	sum := sha256.Sum256([]byte(outcome + "\x00" + norm))
	return hex.EncodeToString(sum[:8])
}

// exhausted applies on_exhausted and max_same_failure. It reports whether that settled the round;
// otherwise it may have changed f's target.
func (d *decider) exhausted(r *Run, w *Spec, g *Gate, q *Round, f *failure) bool {
	n := r.Count(g.ID, q.Route)
	if n < g.MaxRetries {
		return q.Route == "" && d.noProgress(r, w, g, q)
	}
	exh := g.OnExhausted
	personal := g.Reviewer.Level == LevelHuman || r.Forced[g.ID] || q.State == OnHuman
	if personal && exh != EndFailed && exh != EndAborted {
		exh = Human
	}
	if w.Step(exh) != nil && r.Exhausted[g.ID] {
		exh = Human
	}
	switch exh {
	case Human, "":
		what := "it failed"
		if q.Route != "" {
			what = "it said " + q.Route
		}
		d.ask(r, g, q, withWords(fmt.Sprintf("exhausted: %s %s: asked after %d", what, times(n), g.MaxRetries), f.feedback), true)
		return true
	case OutcomePass:
		d.pass(r, g, q, byExhausted, nil, "")
		return true
	case EndDone, EndFailed, EndAborted:
		f.target = exh
	default:
		d.put(ExhaustedTo{of: Of(r.ID), Gate: g.ID, To: exh, Renew: true})
		if exh == g.Step { // the step passes by this gate alone
			d.renew(r, exh)
		}
		f.target = exh
	}
	return false
}

// noProgress asks a person early, or applies the limit's own action, when the same failure recurs
// over an unchanged tree.
func (d *decider) noProgress(r *Run, w *Spec, g *Gate, q *Round) bool {
	most := w.Limits.MaxSameFailure
	if most == 0 {
		most = DefaultMaxSameFailure
	}
	if s := r.Same[g.ID]; s == nil || s.Count < most {
		return false
	}
	why := withWords(fmt.Sprintf("no progress: the same failure came %d times over an unchanged tree", most), q.Feedback)
	switch w.Limits.OnHit["max_same_failure"] {
	case EndFailed:
		d.end(r, RunEnded{Phase: RunFailed, Step: g.Step, Why: why})
	case EndAborted:
		d.end(r, RunEnded{Phase: RunAborted, Step: g.Step, Why: why})
	default:
		d.ask(r, g, q, why, false)
	}
	return true
}

// send moves the work of g's step to the target: back, which undoes what is downstream, or
// elsewhere.
func (d *decider) send(r *Run, w *Spec, g *Gate, f failure) {
	why := g.ID + ": " + f.outcome
	switch {
	case f.target == EndFailed:
		d.end(r, RunEnded{Phase: RunFailed, Step: g.Step, Why: why, By: f.by})
	case f.target == EndAborted:
		d.end(r, RunEnded{Phase: RunAborted, Step: g.Step, Why: why, By: f.by})
	case f.target != EndDone && w.leadsBack(f.target, g.Step):
		d.listBack(r, w, g, f)
		d.undo(r, w, f.target, g.Step, false, why)
		if !r.led(w, f.target) {
			d.put(WorkSent{of: Of(r.ID), Step: f.target, From: g.Step})
		}
	default:
		d.undo(r, w, g.Step, "", true, why)
		d.put(StepRouted{of: Of(r.ID), Step: g.Step, N: r.Current(g.Step).N, To: f.target})
		if !IsEnd(f.target) { // an earlier route may have led there, or to a successor
			d.undo(r, w, f.target, "", false, why)
		}
	}
}

// listBack records that a gate sends the list's work back.
func (d *decider) listBack(r *Run, w *Spec, g *Gate, f failure) {
	st := w.List()
	if st == nil || r.List == nil || r.List.To != "" || r.Current(st.ID) == nil || f.target != st.ID && !r.follows(w, f.target)[st.ID] {
		return
	}
	out := ListSentBack{of: Of(r.ID), Gate: g.ID, Feedback: f.feedback}
	if qs := r.Rounds[g.ID]; len(qs) > 0 {
		out.Words = reviewWords(g, qs[len(qs)-1], f.feedback)
	}
	d.put(out)
}

// undo supersedes root (unless keep) with its successors, origin with its successors, and the
// fixing steps that any of these requested. It resets the counts of gates strictly upstream of
// origin that must pass again (8-semantics 15, 17).
func (d *decider) undo(r *Run, w *Spec, root, origin string, keep bool, why string) {
	in := map[string]bool{root: true}
	grow := func(id string) {
		in[id] = true
		maps.Copy(in, r.follows(w, id))
	}
	feeds := func(t string) bool { return t == root || r.follows(w, t)[root] }
	grow(root)
	if origin != "" {
		grow(origin)
	}
	for more := true; more; {
		more = false
		for _, t := range w.graph.order {
			from, sent := r.Sent[t]
			if !sent || feeds(t) { // the predecessors of root stay
				continue
			}
			if in[from] && from != root || in[t] {
				more = true
				d.put(WorkUnsent{of: Of(r.ID), Step: t})
				grow(t)
			}
		}
	}
	if st := w.List(); st != nil && r.List != nil && in[st.ID] && !(keep && st.ID == root) {
		if t := r.List.To; t != "" && !feeds(t) { // the reason for the list's visit is undone
			d.put(ListUnsent{of: Of(r.ID)})
		}
	}
	for _, st := range w.graph.topo {
		id := st.ID
		if !in[id] || keep && id == root {
			continue
		}
		if a := r.Current(id); a != nil {
			d.put(StepSuperseded{of: Of(r.ID), Step: id, N: a.N, Why: why})
		}
		if origin != "" && w.graph.down[id][origin] {
			d.reset(r, st)
		}
	}
}

// reset sets the step's gate counts to 0, including routes.
func (d *decider) reset(r *Run, st *Step) {
	for _, g := range st.Gates {
		if r.Fails[g] > 0 || len(r.Routes[g]) > 0 || r.Exhausted[g] {
			d.put(CountReset{of: Of(r.ID), Gate: g})
		}
	}
}

// withWords appends words to a text, if there are any.
func withWords(text, words string) string {
	if words == "" {
		return text
	}
	return text + ": " + words
}

func times(n int) string {
	if n == 1 {
		return "1 time"
	}
	return fmt.Sprintf("%d times", n)
}
