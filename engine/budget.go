package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nearly is the part of a budget, in percent, at which a person is told that it comes to its end.
const nearly = 80

// stopBudget begins the reason for which a process is ended that has used up what it, or its run, may cost.
const stopBudget = "budget: "

// Plus gives the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{Tokens: u.Tokens + v.Tokens, CostUSD: u.CostUSD + v.CostUSD}
}

// above gives by how much u is more than v, nothing where it is less.
func (u Usage) above(v Usage) Usage {
	return Usage{Tokens: max(u.Tokens-v.Tokens, 0), CostUSD: max(u.CostUSD-v.CostUSD, 0)}
}

// Mark is what tells the fact from those about another budget, or about the same one that was changed.
func (f DayBudgetNeared) Mark() string {
	if f.Used {
		return f.Budget + " used"
	}
	return f.Budget
}

// told says that a person was told so on this day.
func (t Day) told(f DayBudgetNeared) bool { return t.Day == f.Day && t.Told[f.Mark()] }

func (d *decider) usageSeen(ev UsageSeen) {
	r := d.s.Runs[ev.Run]
	if r == nil {
		return
	}
	if p := r.Proc(ev.Key); p != nil && ev.Usage.above(p.Usage) != (Usage{}) {
		d.put(UsageCounted{of: Of(r.ID), Key: ev.Key, Usage: ev.Usage, Day: ev.Day})
	}
}

func (d *decider) dayNeared(ev DayNeared) {
	f := DayBudgetNeared(ev)
	if d.s.Today.told(f) {
		return
	}
	d.put(f)
	d.notice(Notice{ID: "budget-" + ev.Day + "-" + f.Mark(), Kind: NoticeInfo, Text: clip(ev.Text, 2000)})
}

// liftBudget: the settings give another budget for the day. What waits for it looks again.
func (d *decider) liftBudget() {
	for _, r := range slices.Clone(d.s.index.live) {
		waits := slices.ContainsFunc(r.alive, func(a *Attempt) bool { return a.BudgetWait != "" }) ||
			slices.ContainsFunc(r.open, func(q *Round) bool { return q.BudgetWait != "" })
		if waits {
			d.put(BudgetLifted{Of(r.ID)})
		}
	}
}

// bound is what one attempt, or one round's reviewer, of the role may cost; 0 = no bound.
func (c Config) bound(role string) Usage {
	out := c.role(role).Usage
	if out.Tokens == 0 {
		out.Tokens = c.Attempt.Tokens
	}
	if out.CostUSD == 0 {
		out.CostUSD = c.Attempt.CostUSD
	}
	if role == "" {
		return Usage{} // a command tells no cost
	}
	return out
}

// Left is what the next launch of the role may cost at the most, by what its attempt or round has cost before and by the
// limits of its run: 0 = no bound, less = nothing is left.
func (c Config) Left(role string, before, run, limit Usage) Usage {
	out := Usage{}
	for _, x := range []struct{ most, used Usage }{{c.bound(role), before}, {limit, run}} {
		if m := x.most.Tokens; m > 0 {
			out.Tokens = least(out.Tokens, m-x.used.Tokens)
		}
		if m := x.most.CostUSD; m > 0 {
			out.CostUSD = least(out.CostUSD, m-x.used.CostUSD)
		}
	}
	return out
}

// least is the lesser of a bound, 0 = none, and of what is left of another.
func least[N int64 | float64](bound, left N) N {
	if left <= 0 {
		left = -1
	}
	if bound == 0 || left < bound {
		return left
	}
	return bound
}

// spentUp says that an attempt or round of the role has used up what it may cost, "" where it has not.
func (d *decider) spentUp(role string, u Usage) string {
	b := d.s.Config.bound(role)
	switch {
	case b.Tokens > 0 && u.Tokens >= b.Tokens:
		return fmt.Sprintf("it has used %d tokens of the %d that role %s may use for one (max_tokens)", u.Tokens, b.Tokens, role)
	case b.CostUSD > 0 && u.CostUSD >= b.CostUSD:
		return fmt.Sprintf("it has cost %s of the %s USD that role %s may cost for one (max_cost_usd)", dollars(u.CostUSD), dollars(b.CostUSD), role)
	}
	return ""
}

// dollars is an amount for people.
func dollars(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// role is who works in the process, "" for a command.
func (w *Spec) role(p *Proc) string {
	switch p.Kind {
	case ProcStep:
		if st := w.Step(p.Step); st != nil && st.Run == nil {
			return st.Role()
		}
	case ProcReview:
		if g := w.Gate(p.Gate); g != nil && g.Reviewer.Run == nil {
			return g.Reviewer.AgentType
		}
	}
	return ""
}

// nearMoment is how long something of a run is under way until a person is told that its time comes to an end.
func nearMoment(limit Duration) time.Duration {
	return time.Duration(limit/100*nearly) + time.Millisecond // near counts in floats
}

// overBudget ends the processes that have used up what their attempt or round may cost.
func (d *decider) overBudget(r *Run, w *Spec) {
	for _, p := range slices.Clone(r.Procs) {
		role := w.role(p)
		if role == "" || p.Usage == (Usage{}) || p.Stop != "" || !r.wanted(p) {
			continue
		}
		used := Usage{}
		if p.Kind == ProcStep {
			used = r.Current(p.Step).Usage
		} else {
			used = r.CurrentRound(p.Gate).Usage
		}
		if why := d.spentUp(role, used); why != "" {
			d.put(StopOrdered{of: Of(r.ID), Key: p.Key, Why: stopBudget + why})
			continue
		}
		b, who := d.s.Config.bound(role), p.Step+p.Gate
		if near(used.Tokens, b.Tokens) {
			d.neared(r, "max_tokens of role "+role, strconv.FormatInt(b.Tokens, 10), fmt.Sprintf("%s of %s has used %d tokens of the %d that role %s may use for one", who, r.ID, used.Tokens, b.Tokens, role))
		}
		if near(used.CostUSD, b.CostUSD) {
			d.neared(r, "max_cost_usd of role "+role, dollars(b.CostUSD), fmt.Sprintf("%s of %s has cost %s of the %s USD that role %s may cost for one", who, r.ID, dollars(used.CostUSD), dollars(b.CostUSD), role))
		}
	}
}

// stopSpending ends the agents of a run that a usage limit has paused: what goes on costs.
func (d *decider) stopSpending(r *Run, w *Spec, why string) {
	for _, p := range slices.Clone(r.Procs) {
		if w.role(p) != "" && p.Stop == "" && r.wanted(p) {
			d.put(StopOrdered{of: Of(r.ID), Key: p.Key, Why: stopBudget + why})
		}
	}
}

// endedForBudget says that the process was ended as a budget was used up, and did not come to its end by itself before.
func endedForBudget(p Proc, exit Exit) bool {
	return strings.HasPrefix(p.Stop, stopBudget) && !endedFirst(p, exit)
}

// endedFirst says that a process which was to be ended for a budget or a person had come to its end by itself: that counts.
func endedFirst(p Proc, exit Exit) bool {
	return (p.Stop == stopTakeover || strings.HasPrefix(p.Stop, stopBudget)) && !exit.Stopped && exit.Signal == "" && !exit.Lost
}

// overUsage ends or pauses a run that has spent what it may.
func (d *decider) overUsage(r *Run, w *Spec) bool {
	if r.Paused {
		return false
	}
	key := ""
	if m := r.UsageLimit.Tokens; m > 0 && r.Usage.Tokens >= m {
		key = "max_tokens"
	} else if m := r.UsageLimit.CostUSD; m > 0 && r.Usage.CostUSD >= m {
		key = "max_cost_usd"
	}
	if key == "" {
		return false
	}
	d.limit(r, w, key, "")
	return true
}

// nearLimits tells a person of what comes near its limit in the run, each once.
func (d *decider) nearLimits(r *Run) {
	tell := func(key, used, limit string) {
		d.neared(r, key, limit, fmt.Sprintf("%s has used %s of its %s %s", r.ID, used, key, limit))
	}
	if m := r.UsageLimit.Tokens; near(r.Usage.Tokens, m) {
		tell("max_tokens", strconv.FormatInt(r.Usage.Tokens, 10), strconv.FormatInt(m, 10))
	}
	if m := r.UsageLimit.CostUSD; near(r.Usage.CostUSD, m) {
		tell("max_cost_usd", dollars(r.Usage.CostUSD), dollars(m))
	}
	if near(r.Begun, r.Allowance) {
		tell("max_steps", strconv.Itoa(r.Begun), strconv.Itoa(r.Allowance))
	}
}

// nearTime tells a person that the time of a run comes to its end. Only the clock says so.
func (d *decider) nearTime(r *Run) {
	if spent := Duration(d.spent(r)); near(spent, r.TimeLimit) {
		d.neared(r, "max_duration", r.TimeLimit.String(), fmt.Sprintf("%s has used %s of its max_duration %s", r.ID, time.Duration(spent).Round(time.Second), r.TimeLimit))
	}
}

// neared tells a person once that a budget of the run comes to its end; again where it was given more.
func (d *decider) neared(r *Run, budget, limit, text string) {
	if r.Near[budget] == limit {
		return
	}
	d.put(BudgetNeared{of: Of(r.ID), Budget: budget, Limit: limit, Text: text})
	d.notice(Notice{ID: fmt.Sprintf("%s.near-%s-%s", r.ID, budget, limit), Kind: NoticeInfo, Run: r.ID, Text: text})
}

// near says that it is time to tell that the limit comes near; 0 = there is none.
func near[N int | int64 | float64 | Duration](used, limit N) bool {
	return limit > 0 && used < limit && float64(used)*100 >= float64(limit)*nearly
}
