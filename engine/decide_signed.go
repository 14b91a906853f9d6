package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxSigned is the longest validity of a signed answer.
const MaxSigned = 30 * 24 * time.Hour

// spentFor is how long after its expiry a used signature is remembered, in case the clock is set
// back.
const spentFor = 30 * 24 * time.Hour

// unbound returns why a signed answer does not apply to the gate's current round; "" if it does or
// is not signed.
func (d *signalling) unbound(ev Answered, r *Run, g *Gate) string {
	s := ev.Signed
	if ev.Unproven != "" {
		return ev.Unproven
	}
	if s == nil {
		return ""
	}
	q, again := r.CurrentRound(g.ID), "sign again: "+Verb(g.ID, ev.Outcome)
	used, spent := d.s.Spent[s.Nonce]
	switch {
	case spent:
		return fmt.Sprintf("this signed answer was used already, on %s: each counts once: %s",
			used.At.UTC().Format("2006-01-02 15:04:05Z"), again)
	case s.Run != r.ID:
		return fmt.Sprintf("it was signed for run %s and is not an answer for %s: %s --run %s", s.Run, r.ID, again, r.ID)
	case s.Gate != g.ID:
		return fmt.Sprintf("it was signed for gate %s and is not an answer for %s: %s", s.Gate, g.ID, again)
	case s.Outcome != ev.Outcome:
		return fmt.Sprintf("what was signed is %s, and it was handed in as %s: hand it in as what it is, or %s",
			s.Outcome, ev.Outcome, again)
	case q == nil:
		return ""
	case s.Round != q.N:
		return fmt.Sprintf("it was signed for round %d of %s; now it is round %d: look again (sluice show %s), then %s",
			s.Round, g.ID, q.N, g.ID, again)
	case !d.at.Before(s.Expires):
		return fmt.Sprintf("the signature expired at %s: look again (sluice show %s), then %s",
			s.Expires.UTC().Format("2006-01-02 15:04:05Z"), g.ID, again)
	case s.Expires.After(d.at.Add(MaxSigned)):
		return fmt.Sprintf("the signature is good until %s, and more than %d days are too long: %s",
			s.Expires.UTC().Format("2006-01-02"), int(MaxSigned/(24*time.Hour)), again)
	case s.Digest != q.Digest:
		return fmt.Sprintf("it was signed over other content than round %d of %s is about: look again (sluice show "+
			"%s), then %s", q.N, g.ID, g.ID, again)
	}
	return ""
}

// notApprover returns why the signer may not decide here, or "".
func notApprover(ev Answered, r *Run, g *Gate, q *Round) string {
	want := g.Reviewer.Approvers
	if ev.Signed == nil && ev.By.Trust == TrustSigned {
		return fmt.Sprintf("it claims to be signed, but the signer is unknown: %s signs it", Verb(g.ID, ev.Outcome))
	}
	if len(want) == 0 && ev.By.Trust != TrustForge {
		return ""
	}
	names, how := ev.names()
	is := func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	}
	if !slices.ContainsFunc(want, is) {
		return fmt.Sprintf("gate %s accepts only answers of %s, and this one is %s %s: have one of them decide",
			g.ID, cmp.Or(strings.Join(want, ", "), "people here"), how, names[0])
	}
	if Refuses(ev.Outcome) {
		return "" // refusing one's own work is no self-approval
	}
	for _, a := range r.Attempts[q.Step] {
		if i := slices.IndexFunc(a.Doers, func(n string) bool { return is(n) || is(accountOf(n)) }); i >= 0 {
			return fmt.Sprintf("%s worked on %s.%d (as %s), and nobody approves their own work at gate %s: have another "+
				"of its approvers decide (%s)",
				names[0], q.Step, a.N, a.Doers[i], g.ID, strings.Join(want, ", "))
		}
	}
	return ""
}

// WantsTrust returns the lowest trust level that the round accepts: the stricter of its own and the
// current setting.
func (s *State) WantsTrust(q *Round) string {
	if trustRank(s.Config.Trust) > trustRank(q.Trust) {
		return s.Config.Trust
	}
	return q.Trust
}

// Verb returns the command that answers a gate with the outcome.
func Verb(gate, outcome string) string {
	if outcome == OutcomePass || Refuses(outcome) {
		return "sluice " + outcome + " " + gate
	}
	return "sluice decide " + gate + " " + outcome
}

// used records the use of a signed answer.
func (d *signalling) used(r *Run, g *Gate, q *Round, ev Answered) {
	if s := ev.Signed; s != nil {
		d.put(SignatureUsed{of: Of(r.ID), Gate: g.ID, N: q.N, Outcome: ev.Outcome, By: ev.By, Nonce: s.Nonce,
			Expires: s.Expires, Proof: ev.Proof})
	}
}
