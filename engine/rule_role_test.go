package engine

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

// roleMay limits what a role may use over a run; hit is the action at the limit with the key.
func roleMay(role string, s Spend, key, hit string) func(*Spec) {
	return limits(func(l *Limits) {
		l.Roles = map[string]Spend{role: s}
		l.OnHit[roleLimit(role, key)] = hit
	})
}

// TestRoleOverARun: the use of a role's agents is counted over all their launches in the run. At
// the limit the role's work stops: agents are stopped, and the run ends or waits for a person, who
// may grant the same again.
func TestRoleOverARun(t *testing.T) {
	conform.Rule(t, "7-agents budgets", "a role has a budget over the run: what it uses is counted over all launches, and it ends what runs")
	w := one(level(LevelAuto))
	roleMay("dev", Spend{Usage: Usage{Tokens: 1000}}, maxTokens, Human)(w)
	s := begin(t, "", "", w)
	s.uses("a", 700, 0)
	s.exit("a", Exit{Code: 1, Class: ClassWork, Why: "bad", Usage: Usage{Tokens: 750}}) // attempt 1 failed
	s.checked()
	s.writes()
	s.want(s.step("a"), "2 running", fmt.Sprint(s.r().Roles["dev"].Tokens, len(s.r().Near)), "750 0")
	s.uses("a", 60, 0)
	s.want(fmt.Sprint(s.r().Near), "map[roles.dev.max_tokens:1000]")
	s.uses("a", 250, 0)
	s.want(s.r().PausedWhy, "limit:roles.dev.max_tokens", fmt.Sprint(s.owes(DoStop, s.run+"/a#2.1")), "true")
	s.exit("a", Exit{Stopped: true})
	s.want(s.step("a"), "2 ready", fmt.Sprint(s.r().Fails["ga"]), "1") // no failure is counted
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.step("a"), "2 running", fmt.Sprint(s.r().RoleLimits["dev"].Tokens), "2000")
	raw, err := json.Marshal(s.st)
	back := NewState()
	if err != nil || json.Unmarshal(raw, back) != nil || back.Runs[s.run].Roles["dev"] != s.r().Roles["dev"] || back.Runs[s.run].RoleLimits["dev"].Tokens != 2000 {
		t.Errorf("a snapshot forgets what a role has used: %+v", back.Runs[s.run].Roles)
	}
	s.exit("a", Exit{Usage: Usage{Tokens: 2000}})

	for hit, phase := range map[string]string{EndFailed: RunFailed, EndAborted: RunAborted, "": RunAborted} {
		w := one()
		roleMay("reviewer", Spend{Usage: Usage{CostUSD: 2}}, maxCost, hit)(w)
		s := begin(t, "", "", w)
		s.uses("a", 10, 9) // another role's
		s.done("a")
		s.want(s.gate("ga"), "1 reviewing")
		s.uses("ga", 10, 2.5)
		s.want(s.r().Phase, phase)
		s.has(s.r().EndWhy, "roles.reviewer.max_cost_usd")
	}
}

// TestRoleUsedUpAndDone: a used-up role that is no longer needed blocks nothing.
func TestRoleUsedUpAndDone(t *testing.T) {
	w := one()
	roleMay("dev", Spend{Usage: Usage{Tokens: 100}}, maxTokens, EndFailed)(w)
	s := begin(t, "", "", w)
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{Usage: Usage{Tokens: 5000}})
	s.checked()
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

// TestRoleLaunches: no agent of a role is launched more often than allowed; a failed start does not
// count, and running agents continue.
func TestRoleLaunches(t *testing.T) {
	conform.Rule(t, "7-agents budgets", "no agent of a role is launched more often in a run than it may")
	w := one()
	roleMay("dev", Spend{Launches: 2}, maxLaunches, Human)(w)
	s := begin(t, "", "", w)
	s.exit("a", Exit{Code: -1, NotStarted: "no such file"})
	s.later(time.Minute)
	s.want(fmt.Sprint(s.r().Roles["dev"].Launches), "1", s.step("a"), "1 running")
	s.exit("a", Exit{Code: 1, Class: ClassWork, Why: "bad"})
	s.checked()
	s.writes()
	s.want(fmt.Sprint(s.r().Roles["dev"].Launches), "2", s.step("a"), "2 running", fmt.Sprint(s.r().Paused), "false")
	s.exit("a", Exit{Code: 1, Class: ClassWork, Why: "bad"})
	s.checked()
	s.writes()
	s.want(s.step("a"), "3 ready", s.r().PausedWhy, "limit:roles.dev.max_launches")
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.step("a"), "3 running", fmt.Sprint(s.r().RoleLimits["dev"].Launches), "4")

	// two at once, of which one is allowed
	w = flow("x", aStep("a"), aGate("a", to(EndDone)), aStep("b", needs()), aGate("b", to(EndDone)))
	w.Step("b").Agent.Worktree = Text{Source: "b"}
	roleMay("dev", Spend{Launches: 1}, maxLaunches, Human)(w)
	s = begin(t, "", "", w)
	s.want(s.step("a"), "1 running", s.step("b"), "1 ready", s.r().PausedWhy, "limit:roles.dev.max_launches", fmt.Sprint(s.owes(DoStop, s.run+"/a#1.1")), "false")
}

// TestRoleInChildRuns: what a role does in child runs counts in the run's budget for it, which holds there too.
func TestRoleInChildRuns(t *testing.T) {
	atWork := func(s Spend, key string) *listed {
		l := twoStepList(t, "", "", "A B", List{Attempts: 1, MaxParallel: 2}, Limits{}, roleMay("dev", s, key, Human))
		for len(l.launches()) < 2 {
			l.drive(1)
		}
		return l
	}
	stops := func(l *listed) string {
		return fmt.Sprint(l.r().PausedWhy, l.owes(DoStop, "x-1.A.1/a#1.1"), l.owes(DoStop, "x-1.B.1/a#1.1"))
	}
	l := atWork(Spend{Launches: 3}, maxLaunches)
	l.drive(5000)
	l.want(stops(l), "limit:roles.dev.max_launchesfalse false", fmt.Sprint(l.r().Roles["dev"].Launches), "3")
	l.do(ResumeRequested{Run: "x-1", By: ann})
	l.all()
	l.want(l.r().Phase, RunCompleted, fmt.Sprint(l.r().Roles["dev"].Launches), "4")

	l = atWork(Spend{Usage: Usage{Tokens: 1000}}, maxTokens)
	l.do(UsageSeen{Run: "x-1.A.1", Key: "x-1.A.1/a#1.1", Usage: Usage{Tokens: 600}})
	l.want(stops(l), "false false")
	l.do(UsageSeen{Run: "x-1.B.1", Key: "x-1.B.1/a#1.1", Usage: Usage{Tokens: 400}})
	l.want(stops(l), "limit:roles.dev.max_tokenstrue true")

	l = atWork(Spend{Time: Duration(10 * time.Minute)}, maxDuration)
	l.later(4*time.Minute + time.Second)
	l.want(fmt.Sprint(l.r().Near), "map[roles.dev.max_duration:10m0s]")
	l.want(l.r().nextMoment(l.now).Sub(l.now).Round(time.Minute).String(), "1m0s")
	l.later(time.Minute)
	l.want(stops(l), "limit:roles.dev.max_durationtrue true")

	// The run's own budget ends what its child runs do, too.
	l = twoStepList(t, "", "", "A", List{Attempts: 1}, Limits{}, limits(func(l *Limits) {
		l.MaxTokens, l.OnHit[maxTokens] = 1000, Human
	}))
	for len(l.launches()) < 1 {
		l.drive(1)
	}
	l.do(UsageSeen{Run: "x-1.A.1", Key: "x-1.A.1/a#1.1", Usage: Usage{Tokens: 1000}})
	l.want(stops(l), "limit:max_tokenstrue false")
}

// TestRoleTime: the running time of a role's agents is counted, concurrent ones added, but not the
// wait for a slot; the clock alone ends it.
func TestRoleTime(t *testing.T) {
	conform.Rule(t, "7-agents budgets", "the time that a role's agents run is bounded over the run")
	w := flow("x", aStep("a"), aGate("a", to(EndDone)), aStep("b", needs()), aGate("b", to(EndDone)))
	w.Step("b").Agent.Worktree = Text{Source: "b"}
	roleMay("dev", Spend{Time: Duration(10 * time.Minute)}, maxDuration, Human)(w)
	s := begin(t, "", "", w)
	s.do(SlotAwaited{Run: s.run, Key: s.r().Current("b").Key})
	s.later(4 * time.Minute) // a alone
	s.do(SlotTaken{Run: s.run, Key: s.r().Current("b").Key})
	s.want(fmt.Sprint(len(s.r().Near), s.r().Paused), "0 false")
	s.want(s.r().nextMoment(s.now).Sub(s.now).Round(time.Second).String(), "2m0s") // 4 + 2*2 = 8 of 10
	s.later(2*time.Minute + time.Second)
	s.want(fmt.Sprint(s.r().Near), "map[roles.dev.max_duration:10m0s]")
	s.want(s.r().nextMoment(s.now).Sub(s.now).Round(time.Second).String(), "59s")
	s.later(58 * time.Second)
	s.want(fmt.Sprint(s.r().Paused), "false")
	s.later(2 * time.Second)
	s.want(s.r().PausedWhy, "limit:roles.dev.max_duration", fmt.Sprint(s.owes(DoStop, s.run+"/a#1.1"), s.owes(DoStop, s.run+"/b#1.1")), "true true")
	s.exit("a", Exit{Stopped: true})
	s.exit("b", Exit{Stopped: true})
	s.want(fmt.Sprint(time.Duration(s.r().Roles["dev"].Time).Round(time.Second)), "10m2s")
}

// TestDayCountsLaunches: agents' launches and time count for the day in which they end; commands
// and failed starts do not.
func TestDayCountsLaunches(t *testing.T) {
	conform.Rule(t, "7-agents day", "launches of agents and the time they run are counted for the day")
	s := begin(t, "", "", one())
	end := func(exit Exit) {
		s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Day: "2027-01-15", Exit: exit})
		s.later(time.Minute)
	}
	s.later(time.Minute)
	end(Exit{Signal: "killed"})
	s.want(fmt.Sprint(s.st.Today.Usage.Launches, time.Duration(s.st.Today.Usage.Time)), "1 1m0s")
	end(Exit{Code: -1, NotStarted: "the day's budget is used up", Class: ClassLimit, Budget: "2027-01-15", ResumeAt: s.now.Add(time.Second)})
	s.want(fmt.Sprint(s.st.Today.Usage.Launches), "1")
}
