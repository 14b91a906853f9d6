package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// uses reports what the process of the step, or of the gate's reviewer, has cost so far.
func (s *script) uses(id string, tokens int64, usd float64) {
	s.t.Helper()
	key := ""
	if a := s.r().Current(id); a != nil {
		key = a.Key
	} else if q := s.r().CurrentRound(id); q != nil {
		key = q.Key
	}
	s.do(UsageSeen{Run: s.run, Key: key, Usage: Usage{Tokens: tokens, CostUSD: usd}, Day: "2027-01-15"})
}

func (s *script) config(change func(*Config)) {
	c := s.st.Config
	change(&c)
	s.do(Configured{Config: c})
}

// roleOf limits what one attempt of a role may cost.
func roleOf(role string, u Usage) func(*Config) {
	return func(c *Config) { c.Roles = map[string]RoleLimits{role: {Usage: u}} }
}

// TestBudgetCountsOnce: what a process reports during its work, and again at its end, is counted
// once: for its attempt, its run and the day. A lower number takes nothing back.
func TestBudgetCountsOnce(t *testing.T) {
	s := begin(t, "7-agents spend", "what a process tells while it works and at its end is counted once: of its attempt, its run and the day", one())
	s.uses("a", 100, 0)
	s.uses("a", 70, 0)
	s.uses("a", 250, 0.5)
	s.want(fmt.Sprint(s.r().Usage, s.r().Attempts["a"][0].Usage, s.st.Today.Usage.Usage), "{250 0.5} {250 0.5} {250 0.5}")
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Day: "2027-01-16", Exit: Exit{Signal: "killed", Usage: Usage{Tokens: 300, CostUSD: 0.5}}})
	s.want(fmt.Sprint(s.r().Usage, " ", s.st.Today.Day, " ", s.st.Today.Usage.Usage), "{300 0.5} 2027-01-16 {50 0}")
	s.later(time.Minute)
	s.uses("a", 40, 0) // the next launch counts from 0
	s.want(fmt.Sprint(s.r().Usage, s.r().Attempts["a"][0].Usage), "{340 0.5} {340 0.5}")
	raw, err := json.Marshal(s.st)
	back := NewState()
	if err != nil || json.Unmarshal(raw, back) != nil || back.Today.Usage != s.st.Today.Usage {
		t.Errorf("a snapshot forgets what was used today: %v", back.Today)
	}
}

// TestBudgetOfAnAttempt: an attempt that uses up its role's budget is stopped and fails, which
// counts, and is not launched again.
func TestBudgetOfAnAttempt(t *testing.T) {
	conform.Rule(t, "7-agents budgets", "an attempt is ended where it has used what one of its role may; that counts")
	for name, bound := range map[string]func(*Config){
		"its role's":      roleOf("dev", Usage{Tokens: 1000}),
		"every role's":    roleOf(AnyRole, Usage{Tokens: 1000}),
		"an attempt's":    func(c *Config) { c.Attempt.Tokens = 1000 },
		"the role's goes": func(c *Config) { roleOf("dev", Usage{Tokens: 1000})(c); c.Attempt.Tokens = 10 },
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, "", "", one())
			s.config(bound)
			s.uses("a", 799, 0)
			s.want(fmt.Sprint(len(s.r().Near), s.owes(DoStop, s.run)), "0 false")
			s.uses("a", 800, 0)
			s.uses("a", 900, 0)
			s.want(fmt.Sprint(count[BudgetNeared](s.log), len(s.owed(DoNotify)), s.owes(DoStop, s.run)), "1 1 false")
			s.uses("a", 1000, 0)
			s.want(fmt.Sprint(s.owes(DoStop, s.run+"/a#1.1")), "true")
			s.exit("a", Exit{Stopped: true, Usage: Usage{Tokens: 1010}})
			s.checked()
			s.writes()
			s.want(s.step("a"), "2 running", fmt.Sprint(s.r().Fails["ga"]), "1", fmt.Sprint(s.r().Attempts["a"][0].K), "1")
			s.has(s.r().Attempts["a"][0].Failure, "1010 tokens of the 1000", "max_tokens")
			s.want(fmt.Sprint(s.r().Current("a").Usage), "{0 0}")
		})
	}
}

// TestBudgetOfAnAttemptWord: a report before the end counts, and so does a process that ended by
// itself.
func TestBudgetOfAnAttemptWord(t *testing.T) {
	s := begin(t, "", "", one())
	s.config(roleOf("dev", Usage{Tokens: 1000}))
	s.sentinel("a", StatusDone)
	s.uses("a", 2000, 0)
	s.exit("a", Exit{Stopped: true})
	s.checked()
	s.want(s.step("a"), "1 gating", s.r().Current("a").Status, StatusDone)

	w := one()
	w.Steps[0].Signal = Signal{Type: SignalExit}
	for _, before := range []int64{0, 4000} { // the order to stop came too late
		s = begin(t, "", "", w)
		s.config(roleOf("dev", Usage{Tokens: 1000}))
		s.uses("a", before, 0)
		s.exit("a", Exit{Usage: Usage{Tokens: 5000}})
		s.checked()
		s.want(s.step("a"), "1 gating", s.r().Current("a").Status, StatusDone)
	}
}

// TestBudgetOfAReview: a reviewer that uses up its budget never passes; a person is asked, and no
// other reviewer is paid.
func TestBudgetOfAReview(t *testing.T) {
	s := begin(t, "", "", one())
	s.config(roleOf("reviewer", Usage{CostUSD: 2}))
	s.done("a")
	s.uses("ga", 10, 2.5)
	q := s.r().CurrentRound("ga")
	s.want(fmt.Sprint(s.owes(DoStop, q.Key)), "true")
	s.do(ProcessEnded{Run: s.run, Key: q.Key, Exit: Exit{Stopped: true}, Verdict: &Judgement{Inconclusive: "no verdict"}})
	s.want(s.gate("ga"), "1 human", fmt.Sprint(q.K), "1")
	s.has(q.Why, "2.5 of the 2 USD", "role reviewer")
}

// TestBudgetOfARun: a run's limit stops what is running. If a person is asked, nothing is lost: the
// same attempt continues when the person grants more, without a failure counted.
func TestBudgetOfARun(t *testing.T) {
	w := two(nil, nil)
	limits(func(l *Limits) { l.MaxTokens, l.OnHit["max_tokens"] = 1000, Human })(w)
	s := begin(t, "8-semantics 32", "a usage limit is kept while an agent works", w)
	s.uses("a", 850, 0)
	s.want(fmt.Sprint(s.r().Near, s.r().Paused), "map[max_tokens:1000] false")
	s.uses("a", 1000, 0)
	s.want(s.r().PausedWhy, "limit:max_tokens", fmt.Sprint(s.owes(DoStop, s.run+"/a#1.1")), "true")
	s.exit("a", Exit{Stopped: true})
	s.later(time.Hour)
	s.want(s.step("a"), "1 ready", fmt.Sprint(len(s.r().Fails)), "0")
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.step("a"), "1 running", fmt.Sprint(s.r().Current("a").K, s.r().Current("a").Restarts), "2 0")
	s.uses("a", 700, 0)
	s.want(fmt.Sprint(s.r().Near, s.r().Usage.Tokens), "map[max_tokens:2000] 1700") // warned again after the grant
	s.exit("a", Exit{Signal: "killed"})

	w = two(nil, nil) // of a reviewer: not an inconclusive review
	limits(func(l *Limits) { l.MaxTokens, l.OnHit["max_tokens"] = 1000, Human })(w)
	s = begin(t, "", "", w)
	s.done("a")
	s.uses("ga", 1000, 0)
	q := s.r().CurrentRound("ga")
	s.want(s.r().PausedWhy, "limit:max_tokens", fmt.Sprint(s.owes(DoStop, q.Key)), "true")
	s.do(ProcessEnded{Run: s.run, Key: q.Key, Exit: Exit{Stopped: true}, Verdict: &Judgement{Inconclusive: "ended"}})
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.gate("ga"), "1 reviewing", fmt.Sprint(q.K, " ", q.Misses), "2 0")
	s.judged("ga", OutcomePass)

	w = two(nil, nil)
	limits(func(l *Limits) { l.MaxCostUSD = 1 })(w)
	s = begin(t, "", "", w)
	s.uses("a", 1, 1.25)
	s.want(s.r().Phase, RunAborted, fmt.Sprint(s.owes(DoStop, s.run+"/a#1.1")), "true")
	s.has(s.r().EndWhy, "max_cost_usd")
}

// TestBudgetNear: a person is warned once of each limit of a run, at four fifths.
func TestBudgetNear(t *testing.T) {
	w := two(nil, nil)
	limits(func(l *Limits) { l.MaxDuration, l.MaxSteps = Duration(10*time.Minute), 3 })(w)
	s := begin(t, "", "", w)
	s.later(7 * time.Minute)
	s.want(fmt.Sprint(s.r().Near), "map[]")
	s.later(90 * time.Second)
	s.want(fmt.Sprint(s.r().Near), "map[max_duration:10m0s]")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(fmt.Sprint(s.r().Near), "map[max_duration:10m0s]")
	s.later(30 * time.Second)
	s.want(fmt.Sprint(count[BudgetNeared](s.log)), "1")
	s.later(10 * time.Minute)
	s.want(s.r().Phase, RunAborted)
}

// TestBudgetOfTheDay: what reaches the day's budget waits for the next day without a failure
// counted, and continues by itself, or when the settings grant more.
func TestBudgetOfTheDay(t *testing.T) {
	up := func(s *script) Exit {
		return Exit{Code: -1, NotStarted: "used up", Class: ClassLimit, Why: "used up", Budget: "2027-01-15", ResumeAt: s.now.Add(5 * time.Hour)}
	}
	s := begin(t, "7-agents day", "what meets the end of the day's budget waits for the next day, or for other settings, and counts as nothing", one())
	s.exit("a", up(s))
	s.later(4 * time.Hour)
	s.want(s.step("a"), "1 ready", s.r().Current("a").BudgetWait, "2027-01-15")
	s.config(func(c *Config) { c.MaxParallel = 7 })
	s.want(s.step("a"), "1 ready")
	s.later(2 * time.Hour)
	s.want(s.step("a"), "1 running", s.r().Current("a").BudgetWait, "")
	s.exit("a", up(s))
	s.config(func(c *Config) { c.Day.Tokens = 5 })
	s.want(s.step("a"), "1 running", fmt.Sprint(s.r().Current("a").K), "3")
	s.done("a")
	q := s.r().CurrentRound("ga")
	s.do(ProcessEnded{Run: s.run, Key: q.Key, Exit: up(s), Verdict: &Judgement{Inconclusive: "x"}})
	s.later(time.Hour)
	s.want(s.gate("ga"), "1 reviewing", fmt.Sprint(q.K, " ", q.BudgetWait, " ", q.Misses), "1 2027-01-15 0")
	s.config(func(c *Config) { c.Day.Tokens = 6 })
	s.want(fmt.Sprint(q.K, " ", q.BudgetWait), "2 ")

	near := DayNeared{Day: "2027-01-15", Budget: "max_tokens 6", Text: "nearly"}
	s.do(near)
	s.do(near)
	near.Used = true
	s.do(near)
	s.want(fmt.Sprint(count[DayBudgetNeared](s.log)), "2")
	said := ""
	for _, e := range s.owed(DoNotify) {
		said += e.Notice.Text + ";"
	}
	if strings.Count(said, "nearly") != 2 {
		t.Errorf("told %q", said)
	}
	near.Day = "2027-01-16"
	s.do(near)
	s.want(fmt.Sprint(count[DayBudgetNeared](s.log)), "3")
}
