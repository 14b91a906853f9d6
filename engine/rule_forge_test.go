package engine

import (
	"fmt"
	"testing"
	"time"
)

// atForge has the forge judge, which is never an agent.
func atForge(g *Gate) {
	g.Reviewer = Reviewer{Level: LevelAuto, Forge: []string{ForgeChecks, ForgeReviews}}
}

func people(who ...string) func(*Gate) {
	return func(g *Gate) { g.Reviewer.Level, g.Reviewer.Approvers = LevelHuman, who }
}

// atGate has ann answer by a comment.
func atGate(who, trust string) func(*Answered) {
	return func(a *Answered) { a.By = Actor{Who: who, Via: "comment 7", Trust: trust} }
}

func TestRuleForgeWaits(t *testing.T) {
	w := one(atForge)
	limits(func(l *Limits) { l.MaxDuration = Duration(time.Hour) })(w)
	s := begin(t, "12-forge waits", "a review by the forge takes no slot, holds no worktree, and its wait reaches no limit", w, flow("y", aStep("b"), aGate("b", to(EndDone))))
	s.config(func(c *Config) { c.MaxParallel = 1 })
	x := s.run
	s.start("y") // waits for the slot, and has it before the review is due
	s.run = x
	s.done("a")
	q := s.r().CurrentRound("ga")
	if s.r().Procs.Of(q.Key) == nil {
		t.Fatalf("it waits for a slot: %s", s.gate("ga"))
	}
	taken := s.st.Taken(s.spec)
	s.want(s.gate("ga"), "1 reviewing", s.r().Procs.Of(q.Key).Tree, "", fmt.Sprint(taken.Slots), "1")
	holder, _ := taken.Holder("w-b")
	s.want(holder.Run, "y-1", holder.Step, "b")
	s.run = "y-1"
	s.done("b")
	s.judged("gb", OutcomePass)
	s.start("y")
	s.want(s.step("b"), "1 running")
	s.config(func(c *Config) { c.MaxParallel = 9 })
	s.run = x
	s.later(90 * 24 * time.Hour)
	s.want(s.gate("ga"), "1 reviewing", s.r().Phase, RunRunning)
	s.restart(time.Hour)
	s.judged("ga", OutcomeFail)
	s.want(s.r().Rounds["ga"][0].Outcome, OutcomeFail, s.r().Rounds["ga"][0].ByKind, "forge")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

func TestRuleForgeTimeout(t *testing.T) {
	w := one(atForge, func(g *Gate) { g.Timeout, g.Restarts = Duration(time.Hour), new(int) })
	s := begin(t, "12-forge timeout", "after the gate's timeout a person is asked", w)
	s.done("a")
	s.later(time.Hour)
	s.stopped()
	s.want(s.gate("ga"), "1 human")
}

func TestRuleForgeWord(t *testing.T) {
	s := begin(t, "12-forge word", "an account at the forge counts where the gate names it, at trust forge; the same words at trust file do not", one(people("forge:ann", "bob@example.org")))
	s.done("a")
	s.has(s.says("ga", OutcomePass), "trust level forge", "this one has file: one of forge:ann, bob@example.org says it on the pull request")
	s.has(s.says("ga", OutcomePass, atGate("ann", TrustFile)), "trust level forge")
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.By.Trust = TrustSandbox }), "trust level forge")
	s.has(s.says("ga", OutcomePass, atGate("mallory", TrustForge)), "accepts only answers of forge:ann, bob@example.org")
	s.has(s.says("ga", OutcomePass, atGate("bob@example.org", TrustForge)), "accepts only answers of")
	s.has(s.says("ga", OutcomePass, atGate("ann", "better")), "trust level forge")
	s.want(s.says("ga", OutcomePass, atGate("Ann", TrustForge)), "", s.r().Phase, RunCompleted)
	s.want(s.r().Rounds["ga"][0].By.Who, "Ann")
}

func TestRuleForgeBelowSigned(t *testing.T) {
	s := begin(t, "12-forge below signed", "forge is below signed, and counts at no gate that names nobody at the forge", one(people("ann@example.org")))
	s.done("a")
	s.has(s.says("ga", OutcomePass, atGate("ann@example.org", TrustForge)), "trust level signed")
	s = begin(t, "", "", one(level(LevelHuman)))
	s.done("a")
	s.has(s.says("ga", OutcomePass, atGate("ann", TrustForge)), "accepts only answers of people here")
	s = begin(t, "", "", one(people("forge:ann")))
	s.config(func(c *Config) { c.Trust = TrustSigned })
	s.done("a")
	s.has(s.says("ga", OutcomePass, atGate("ann", TrustForge)), "trust level signed")
}

// A commit that was made on the forge's pages, or by who hides their address, has the account's own address.
func TestRuleForgeSelfApproval(t *testing.T) {
	for address, refused := range map[string]bool{
		"ann@users.noreply.github.com": true, "1234567+Ann@users.noreply.github.com": true, "7+ann@users.noreply.git.example.org": true,
		"1234567+joann@users.noreply.github.com": false, "ann@example.org": false, "ann": false,
	} {
		w := one(people("forge:ann", "forge:bob"))
		w.Steps[0].Agent.Launch, w.Steps[0].Signal = LaunchInteractive, Signal{Type: SignalCommit, Value: "[a]"}
		s := begin(t, "4-trust self-approval", "an account at the forge whose commit says that an offered step is done does not approve it", w)
		a := s.r().Current("a")
		s.do(CommitSeen{Run: s.run, Step: "a", N: 1, K: a.K, SHA: "abc", Author: "x", Makers: []string{"A. Nn", address}})
		s.checked()
		if why := s.says("ga", OutcomePass, atGate("ann", TrustForge)); (why != "") != refused {
			t.Errorf("%s: %q", address, why)
		}
	}
}

func TestRulePullEnded(t *testing.T) {
	w := flow("x", aStep("a"), aGate("a", to("b", "c"), atForge), aStep("b"), aGate("b", to(EndDone)), aStep("c"), aGate("c", to(EndDone), people("forge:ann")))
	s := begin(t, "12-forge ends", "a merge ends the run as completed whatever is under way, a close aborts it; both once", w)
	s.want(s.wanted(DoForge), "x-1/forge a.1")
	s.done("a")
	s.want(s.wanted(DoForge), "x-1/forge a.1 ga#1 reviewing")
	s.judged("ga", OutcomePass)
	s.done("c")
	ev := PullEnded{Run: "x-1", Pull: "pull request #7", Merged: true, By: "bob", Commit: "0123456789abcdef"}
	s.do(ev)
	s.want(s.r().Phase, RunCompleted, s.r().EndWhy, "pull request #7 was merged by bob as 0123456789ab, before gc had passed")
	s.stopped()
	s.want(s.step("b"), "-", s.wanted(DoForge), "")
	if facts := s.do(ev); len(facts) > 0 {
		t.Errorf("again: %v", facts)
	}
	s = begin(t, "", "", w)
	s.do(PullEnded{Run: "x-1", Pull: "pull request #7", By: "bob"})
	s.want(s.r().Phase, RunAborted, s.r().EndWhy, "pull request #7 was closed by bob")
	s.do(PullEnded{Run: "x-9", Pull: "pull request #7", By: "bob"})
}

// wanted returns the key of the only effect of its kind, "" if there is none.
func (s *script) wanted(kind string) (key string) {
	for _, e := range s.owed(kind) {
		key += e.Key
	}
	return key
}

func TestIssueOf(t *testing.T) {
	for _, n := range []any{7, int64(7), 7.0} {
		if got := IssueOf(map[string]any{"issue": map[string]any{"number": n}}); got != 7 {
			t.Errorf("%T: %d", n, got)
		}
	}
	for _, vars := range []map[string]any{nil, {"issue": 7}, {"issue": map[string]any{}}, {"issue": map[string]any{"number": -7}}} {
		if got := IssueOf(vars); got != 0 {
			t.Errorf("%v: %d", vars, got)
		}
	}
}
