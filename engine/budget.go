package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nearly is the percentage of a budget at which a person is warned.
const nearly = 80

// stopBudget is the prefix of the reason when a process is stopped for a used-up budget.
const stopBudget = "budget: "

// Plus returns the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{Tokens: u.Tokens + v.Tokens, CostUSD: u.CostUSD + v.CostUSD}
}

// Plus returns the sum.
func (s Spend) Plus(t Spend) Spend {
	return Spend{Usage: s.Usage.Plus(t.Usage), Launches: s.Launches + t.Launches, Time: s.Time + t.Time}
}

// only returns s reduced to the one bound with this key.
func (s Spend) only(bound string) Spend {
	switch bound {
	case maxTokens:
		return Spend{Usage: Usage{Tokens: s.Tokens}}
	case maxCost:
		return Spend{Usage: Usage{CostUSD: s.CostUSD}}
	case maxLaunches:
		return Spend{Launches: s.Launches}
	case maxDuration:
		return Spend{Time: s.Time}
	}
	return Spend{}
}

// Keys of a role's limits over a run.
const (
	maxTokens   = "max_tokens"
	maxCost     = "max_cost_usd"
	maxLaunches = "max_launches"
	maxDuration = "max_duration"
)

// roleLimit returns the key, below `limits`, of a role's limit over a run.
func roleLimit(role, bound string) string { return "roles." + role + "." + bound }

// roleKey splits a key that roleLimit made.
func roleKey(key string) (role, bound string, ok bool) {
	rest, ok := strings.CutPrefix(key, "roles.")
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// above returns by how much u exceeds v; 0 where it does not.
func (u Usage) above(v Usage) Usage {
	return Usage{Tokens: max(u.Tokens-v.Tokens, 0), CostUSD: max(u.CostUSD-v.CostUSD, 0)}
}

// Mark identifies a warning, so that the same one is not repeated on the same day.
func (f DayBudgetNeared) Mark() string {
	if f.Used {
		return f.Budget + " used"
	}
	return f.Budget
}

// told reports whether a person received this warning today.
func (t Day) told(f DayBudgetNeared) bool { return t.Day == f.Day && t.Told[f.Mark()] }

func (d *budgeting) usageSeen(ev UsageSeen) {
	r := d.s.Runs[ev.Run]
	if r == nil {
		return
	}
	if p := r.Procs.Of(ev.Key); p != nil && ev.Usage.above(p.Usage) != (Usage{}) {
		d.put(UsageCounted{of: Of(r.ID), Key: ev.Key, Usage: ev.Usage, Day: ev.Day})
	}
}

func (d *budgeting) dayNeared(ev DayNeared) {
	f := DayBudgetNeared(ev)
	if d.s.Today.told(f) {
		return
	}
	d.put(f)
	d.notice(Notice{ID: "budget-" + ev.Day + "-" + f.Mark(), Kind: NoticeInfo, Text: clip(ev.Text, 2000)})
}

// liftBudget wakes what waits for the day's budget after the settings changed it.
func (d *budgeting) liftBudget() {
	for _, r := range slices.Clone(d.s.index.live) {
		waits := slices.ContainsFunc(r.alive, func(a *Attempt) bool { return a.BudgetWait != "" }) ||
			slices.ContainsFunc(r.open, func(q *Round) bool { return q.BudgetWait != "" })
		if waits {
			d.put(BudgetLifted{Of(r.ID)})
		}
	}
}

// bound returns what one attempt, or one round's reviewer, of the role may cost; 0 means no limit.
func (c Config) bound(role string) Usage {
	if role == "" {
		return Usage{} // commands report no cost
	}
	own := c.role(role).Usage
	return Usage{Tokens: cmp.Or(own.Tokens, c.Attempt.Tokens), CostUSD: cmp.Or(own.CostUSD, c.Attempt.CostUSD)}
}

// Bound is a budget and its use.
type Bound struct{ Most, Used Usage }

// Left returns what the role's next launch may cost, after what its attempt or round has cost
// before and within the other budgets. 0 means no limit, a negative value that nothing is left.
func (c Config) Left(role string, before Usage, others ...Bound) Usage {
	out := Usage{}
	for _, x := range append(others, Bound{c.bound(role), before}) {
		if m := x.Most.Tokens; m > 0 {
			out.Tokens = least(out.Tokens, m-x.Used.Tokens)
		}
		if m := x.Most.CostUSD; m > 0 {
			out.CostUSD = least(out.CostUSD, m-x.Used.CostUSD)
		}
	}
	return out
}

// least returns the smaller of a bound (0 means none) and what is left of another.
func least[N int64 | float64](bound, left N) N {
	if left <= 0 {
		left = -1
	}
	if bound == 0 || left < bound {
		return left
	}
	return bound
}

// spentUp returns why an attempt or round of the role has no budget left, or "".
func (d *budgeting) spentUp(role string, u Usage) string {
	b := d.s.Config.bound(role)
	switch {
	case b.Tokens > 0 && u.Tokens >= b.Tokens:
		return fmt.Sprintf("it has used %d tokens of the %d that role %s may use for one (max_tokens)", u.Tokens,
			b.Tokens, role)
	case b.CostUSD > 0 && u.CostUSD >= b.CostUSD:
		return fmt.Sprintf("it has cost %s of the %s USD that role %s may cost for one (max_cost_usd)",
			dollars(u.CostUSD), dollars(b.CostUSD), role)
	}
	return ""
}

// dollars formats an amount for people.
func dollars(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// agentRole returns the role of the step's agent, or "" for a command.
func (st *Step) agentRole() string {
	if st.Run != nil {
		return ""
	}
	return st.Role()
}

// agentRole returns the role of the reviewing agent, or "" for a command.
func (g *Gate) agentRole() string {
	if g.Reviewer.Run != nil {
		return ""
	}
	return g.Reviewer.AgentType
}

// nearMoment returns after how much time under way a person is warned of a time limit.
func nearMoment(limit Duration) time.Duration {
	return time.Duration(limit/100*nearly) + time.Millisecond // near uses floats; the millisecond covers rounding
}

// overBudget stops processes that have used up the budget of their attempt or round, and warns of
// those that come near it.
func (d *running) overBudget(r *Run) {
	for _, p := range slices.Clone(r.Procs) {
		role := p.Role
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
			d.neared(r, "max_tokens of role "+role, strconv.FormatInt(b.Tokens, 10),
				fmt.Sprintf("%s of %s has used %d tokens of the %d that role %s may use for one", who, r.ID, used.Tokens,
					b.Tokens, role))
		}
		if near(used.CostUSD, b.CostUSD) {
			d.neared(r, "max_cost_usd of role "+role, dollars(b.CostUSD),
				fmt.Sprintf("%s of %s has cost %s of the %s USD that role %s may cost for one", who, r.ID,
					dollars(used.CostUSD), dollars(b.CostUSD), role))
		}
	}
}

// stopSpending stops the agents of a run that a usage limit has paused: all of them, or those of one role.
func (d *budgeting) stopSpending(r *Run, role, why string) {
	for _, k := range r.withKids() {
		for _, p := range slices.Clone(k.Procs) {
			if p.Role != "" && (role == "" || p.Role == role) && p.Stop == "" && k.wanted(p) {
				d.put(StopOrdered{of: Of(k.ID), Key: p.Key, Why: stopBudget + why})
			}
		}
	}
}

// endedForBudget reports whether a used-up budget ended the process, and it had not ended by itself before.
func endedForBudget(p Proc, exit Exit) bool {
	return strings.HasPrefix(p.Stop, stopBudget) && !endedFirst(p, exit)
}

// endedFirst reports whether a process ended by itself before a stop for a budget or a takeover
// reached it; then its result counts.
func endedFirst(p Proc, exit Exit) bool {
	return (p.Stop == stopTakeover || strings.HasPrefix(p.Stop, stopBudget)) && !exit.Stopped && exit.Signal == "" &&
		!exit.Lost
}

// overUsage ends or pauses a run that has used up its usage limit.
func (d *running) overUsage(r *Run, w *Spec) bool {
	switch u, m := r.Usage, r.UsageLimit; {
	case r.Paused:
		return false
	case m.Tokens > 0 && u.Tokens >= m.Tokens:
		d.limit(r, w, maxTokens, "")
	case m.CostUSD > 0 && u.CostUSD >= m.CostUSD:
		d.limit(r, w, maxCost, "")
	default:
		return false
	}
	return true
}

// playing returns the processes of a role's agents in the run and its child runs.
func (r *Run) playing(role string) (out []*Proc) {
	for _, k := range r.withKids() {
		out = append(out, k.Procs...)
	}
	return slices.DeleteFunc(out, func(p *Proc) bool { return p.Role != role })
}

// roleSpent returns what a role has used in the run so far.
func (d *budgeting) roleSpent(r *Run, role string) Spend {
	used := r.Roles[role]
	for _, p := range r.playing(role) {
		used.Time += Duration(p.ran(d.at))
	}
	return used
}

// launchesUp reports whether the run's launches of the role are used up.
func (r *roles) launchesUp(role string) bool {
	limit := r.RoleLimits[role].Launches
	return limit > 0 && r.Roles[role].Launches >= limit
}

// launchesUp reports whether those of the run, or of one whose child it is, are used up.
func (s *State) launchesUp(r *Run, role string) bool {
	for ; r != nil && !r.launchesUp(role); r = s.Parent(r) {
	}
	return r != nil
}

// overRoles ends or pauses a run in which a role has used up a limit, or needs a launch beyond one.
func (d *running) overRoles(r *Run, w *Spec) bool {
	if r.Paused {
		return false
	}
	for _, role := range slices.Sorted(maps.Keys(r.RoleLimits)) {
		used, limit, bound := d.roleSpent(r, role), r.RoleLimits[role], ""
		switch {
		case limit.Tokens > 0 && used.Tokens >= limit.Tokens:
			bound = maxTokens
		case limit.CostUSD > 0 && used.CostUSD >= limit.CostUSD:
			bound = maxCost
		case limit.Time > 0 && used.Time >= limit.Time:
			bound = maxDuration
		case r.launchesUp(role) && d.awaits(r, role):
			bound = maxLaunches
		}
		if bound == "" || !d.plays(r, role) { // the work that remains does not use the role
			continue
		}
		d.limit(r, w, roleLimit(role, bound), "")
		return true
	}
	return false
}

// plays reports whether an agent of the role is at work in the run or its child runs, or is to be launched now.
func (d *running) plays(r *Run, role string) bool {
	return d.awaits(r, role) || slices.ContainsFunc(r.withKids(), func(k *Run) bool {
		return slices.ContainsFunc(k.Procs, func(p *Proc) bool { return p.Role == role && p.Stop == "" && k.wanted(p) })
	})
}

// awaits reports whether an agent of the role is to be launched now in the run or its child runs.
func (d *running) awaits(r *Run, role string) bool {
	return slices.ContainsFunc(r.withKids(), func(k *Run) bool {
		w := d.spec(k)
		return w != nil && slices.ContainsFunc(d.collect(k, w, nil), func(c candidate) bool {
			return c.role(w) == role && (c.kind == ProcReview || c.a.Held == nil)
		})
	})
}

// nearLimits warns a person, once per limit, of limits of the run that come near.
func (d *budgeting) nearLimits(r *Run) {
	tell := func(is bool, key string, used, limit any) {
		if is {
			d.neared(r, key, fmt.Sprint(limit), fmt.Sprint(r.ID, " has used ", used, " of its ", key, " ", limit))
		}
	}
	u, m := r.Usage, r.UsageLimit
	if m == (Usage{}) && len(r.RoleLimits) == 0 && !near(r.Begun, r.Allowance) {
		return // as most runs do, at each decision
	}
	tell(near(u.Tokens, m.Tokens), maxTokens, u.Tokens, m.Tokens)
	tell(near(u.CostUSD, m.CostUSD), maxCost, dollars(u.CostUSD), dollars(m.CostUSD))
	for _, role := range slices.Sorted(maps.Keys(r.RoleLimits)) {
		u, m := d.roleSpent(r, role), r.RoleLimits[role]
		tell(near(u.Tokens, m.Tokens), roleLimit(role, maxTokens), u.Tokens, m.Tokens)
		tell(near(u.CostUSD, m.CostUSD), roleLimit(role, maxCost), dollars(u.CostUSD), dollars(m.CostUSD))
		tell(near(u.Launches, m.Launches), roleLimit(role, maxLaunches), u.Launches, m.Launches)
		tell(near(u.Time, m.Time), roleLimit(role, maxDuration), time.Duration(u.Time).Round(time.Second), m.Time)
	}
	tell(near(r.Begun, r.Allowance), "max_steps", r.Begun, r.Allowance)
}

// nearTime warns of the run's time limit. Only the clock calls it.
func (d *budgeting) nearTime(r *Run) {
	if spent := Duration(r.spent(d.at)); near(spent, r.TimeLimit) {
		d.neared(r, "max_duration", r.TimeLimit.String(),
			fmt.Sprintf("%s has used %s of its max_duration %s", r.ID, time.Duration(spent).Round(time.Second), r.TimeLimit))
	}
}

// neared warns a person once per budget of the run; again after the budget was raised.
func (d *budgeting) neared(r *Run, budget, limit, text string) {
	if r.Near[budget] == limit {
		return
	}
	d.put(BudgetNeared{of: Of(r.ID), Budget: budget, Limit: limit, Text: text})
	d.notice(Notice{ID: fmt.Sprintf("%s.near-%s-%s", r.ID, budget, limit), Kind: NoticeInfo, Run: r.ID, Text: text})
}

// near reports whether to warn of the limit; 0 means none.
func near[N int | int64 | float64 | Duration](used, limit N) bool {
	return limit > 0 && used < limit && float64(used)*100 >= float64(limit)*nearly
}
