package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sluice/internal/text"
)

// failure is why a round failed, or the route it takes.
type failure struct {
	outcome, target string
	route, veto     bool // taken from `routes:`, not on_fail: not a failure; a person's veto
	byKind          string
	by              *Actor
	feedback        string
	comments        json.RawMessage // a person's, by file and line
}

// fail sends the work back or elsewhere, counts it, and asks a person when the count is exhausted.
// A route by its own name is not a failure and has its own count.
func (d *judging) fail(r *Run, g *Gate, q *Round, f failure) {
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
	out := RoundFailed{of: Of(r.ID), Gate: g.ID, N: q.N, Outcome: f.outcome, ByKind: f.byKind, By: f.by,
		Veto: f.veto, Feedback: f.feedback, To: f.target, Findings: f.comments}
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
		d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.%s", r.ID, g.ID, q.N, word), Kind: NoticeInfo, Run: r.ID, Step: g.Step,
			Gate: g.ID, N: q.N,
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
func (d *judging) forces(r *Run, g *Gate, q *Round, target string) bool {
	return r.Count(g.ID, q.Route) >= g.MaxRetries && g.Reviewer.Level != LevelHuman && !r.Forced[g.ID] &&
		target != EndFailed && target != EndAborted
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
func (d *judging) gateFailed(r *Run, g *Gate, q *Round, f failure) GateFailed {
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
	out := RouteCounted{of: Of(r.ID), Gate: g.ID, N: q.N, Route: f.outcome, Count: r.Count(g.ID, f.outcome) + 1,
		Feedback: f.feedback}
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

// byExhausted is the ByKind of a round that on_exhausted passes.
const byExhausted = "exhausted"

// exhausted applies on_exhausted and max_same_failure. It reports whether that settled the round;
// otherwise it may have changed f's target.
func (d *judging) exhausted(r *Run, w *Spec, g *Gate, q *Round, f *failure) bool {
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
		d.askFor(r, g, q, HumanAsked{Why: withWords(what+" "+text.Plural(n, "time"), f.feedback), Forced: true})
		return true
	case OutcomePass:
		d.letThrough(r, g, q, RoundPassed{ByKind: byExhausted, LetThrough: n, Route: q.Route})
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
func (d *judging) noProgress(r *Run, w *Spec, g *Gate, q *Round) bool {
	most := cmp.Or(w.Limits.MaxSameFailure, DefaultMaxSameFailure)
	if s := r.Same[g.ID]; s == nil || s.Count < most {
		return false
	}
	why := withWords(fmt.Sprintf("no progress: the same failure came %d times over an unchanged tree", most), q.Feedback)
	switch hit := w.Limits.OnHit["max_same_failure"]; hit {
	case EndFailed, EndAborted:
		d.end(r, RunEnded{Phase: endPhase(hit), Step: g.Step, Why: why})
	default:
		d.ask(r, g, q, why)
	}
	return true
}

// withWords appends words to a text, if there are any.
func withWords(text, words string) string {
	if words == "" {
		return text
	}
	return text + ": " + words
}
