package daemon

import (
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/job"
)

// asks reports to RepoOptions.Asked which rounds a person may decide.
type asks struct {
	opt    *RepoOptions
	orders *orders
	last   map[string][]askedRound // what Asked last received, by run
}

func (a *asks) report(changed []engine.Debtor) {
	if a.opt.Asked == nil {
		return
	}
	c := a.orders.core
	for _, who := range changed {
		if who.Kind != "" {
			continue
		}
		run := c.state.Runs[who.ID]
		rounds := askedOf(run)
		if slices.Equal(rounds, a.last[who.ID]) {
			continue
		}
		out := make([]job.AskedRound, len(rounds))
		for i, q := range rounds {
			out[i] = job.AskedRound{Gate: q.gate, N: q.n, State: q.state, Owed: owesNotice(c.state, who.ID, q)}
			out[i].Signed = c.state.WantsTrust(run.CurrentRound(q.gate)) == engine.TrustSigned
			if w := c.spec(run.Digest); w != nil && w.Gate(q.gate) != nil {
				out[i].Asks = w.Gate(q.gate).AsksAnswer()
			}
			if !out[i].Owed {
				out[i].Job = a.orders.job(q.reminder(run))
			}
		}
		if a.last[who.ID] = rounds; len(rounds) == 0 {
			delete(a.last, who.ID)
		}
		a.opt.Asked(who.ID, out)
	}
}

func owesNotice(s *engine.State, run string, q askedRound) bool {
	for _, n := range s.Notices {
		if n.Run == run && n.Gate == q.gate && n.N == q.n && n.Kind != engine.NoticeInfo {
			return true
		}
	}
	return false
}

// askedRound is a round and what it waits for.
type askedRound struct {
	gate, state string
	n           int
}

// askedOf returns the rounds of a run that a person may decide, by gate.
func askedOf(run *engine.Run) []askedRound {
	if !run.Live() {
		return nil
	}
	var out []askedRound
	for gate := range run.Rounds {
		if q := run.CurrentRound(gate); q.Open() && q.State != engine.OnReview {
			out = append(out, askedRound{gate, q.State, q.N})
		}
	}
	slices.SortFunc(out, func(a, b askedRound) int { return strings.Compare(a.gate, b.gate) })
	return out
}

// reminder returns the effect that reminds of the round.
func (q askedRound) reminder(run *engine.Run) engine.Effect {
	n := engine.Notice{Kind: engine.NoticeReminder, Run: run.ID, Gate: q.gate, N: q.n}
	if round := run.CurrentRound(q.gate); round != nil {
		n.Step, n.Text = round.Step, round.Why
	}
	return engine.Effect{Kind: engine.DoNotify, Key: run.ID, Run: n.Run, Step: n.Step, Gate: n.Gate, N: n.N, Notice: &n}
}
