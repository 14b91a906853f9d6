package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

// signs makes an answer one that ann signed for the gate's round as it is now.
func (s *script) signs(gate string, more ...func(*Signed)) func(*Answered) {
	return func(a *Answered) {
		g := &Signed{Names: []string{"ann@example.org", "ann"}, Key: "SHA256:ann", Run: s.run, Gate: gate, Round: 1, Outcome: a.Outcome,
			Nonce: fmt.Sprintf("%032d", len(s.log)), Expires: s.now.Add(time.Hour)}
		if q := s.r().CurrentRound(gate); q != nil {
			g.Round, g.Digest = q.N, q.Digest
		}
		for _, m := range more {
			m(g)
		}
		a.Signed, a.Proof = g, "sluice approval 1 …"
		a.By = Actor{Who: g.Names[0], Via: "command", Trust: TrustSigned, Key: g.Key}
	}
}

// approved is a flow whose gate wants ann's or bob's signature.
func approved(more ...func(*Gate)) *Spec {
	return one(append([]func(*Gate){level(LevelHuman), func(g *Gate) {
		g.Reviewer.Approvers = []string{"ann@example.org", "bob@example.org"}
	}}, more...)...)
}

func TestRuleApprovers(t *testing.T) {
	s := begin(t, "4-trust approvers", "a gate that names approvers wants a signed answer, whatever the settings", approved())
	s.done("a")
	s.has(s.says("ga", OutcomePass), "trust level signed", "this one has file", "sluice pass ga signs it")
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.By.Trust = TrustSigned }), "the signer is unknown")
	s.want(s.says("ga", OutcomePass, s.signs("ga")), "", s.r().Phase, RunCompleted)
	s.want(s.r().Rounds["ga"][0].By.Who, "ann@example.org", s.r().Rounds["ga"][0].By.Key, "SHA256:ann", fmt.Sprint(count[SignatureUsed](s.log)), "1")
}

// Each way in which the signed content differs from what is asked.
func TestRuleSigned(t *testing.T) {
	s := begin(t, "4-trust signed", "a signed answer is bound to run, gate, round, outcome and content, for a time", approved(route("other", "a")))
	conform.Rule(t, "4-trust bound", "the signature says all of it")
	s.done("a")
	for _, c := range []struct {
		name string
		edit func(*Signed)
		says string
	}{
		{"run", func(g *Signed) { g.Run = "x-9" }, "signed for run x-9 and is not an answer for x-1"},
		{"gate", func(g *Signed) { g.Gate = "gb" }, "signed for gate gb and is not an answer for ga"},
		{"outcome", func(g *Signed) { g.Outcome = OutcomeFail }, "what was signed is fail, and it was handed in as pass"},
		{"round", func(g *Signed) { g.Round = 2 }, "signed for round 2 of ga; now it is round 1"},
		{"content", func(g *Signed) { g.Digest = "other" }, "signed over other content than round 1 of ga is about"},
		{"no content", func(g *Signed) { g.Digest = "" }, "signed over other content"},
		{"expired", func(g *Signed) { g.Expires = s.now }, "the signature expired at "},
		{"too long", func(g *Signed) { g.Expires = s.now.Add(MaxSigned + time.Second) }, "more than 30 days are too long"},
		{"another's", func(g *Signed) { g.Names = []string{"eve@example.org"} }, "accepts only answers of ann@example.org, bob@example.org, and this one is signed by eve@example.org"},
	} {
		s.has(s.says("ga", OutcomePass, s.signs("ga", c.edit)), c.says)
		s.want(s.gate("ga"), "1 human")
	}
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.Unproven = "key SHA256:x is not known"; a.By.Trust = TrustSigned }), "key SHA256:x is not known")
	s.has(s.says("ga", OutcomeFail, s.signs("ga", func(g *Signed) { g.Names = []string{"eve@example.org"} })), "accepts only answers of")
	s.want(s.gate("ga"), "1 human", fmt.Sprint(count[SignatureUsed](s.log)), "0")
	s.want(s.says("ga", OutcomePass, s.signs("ga", func(g *Signed) { g.Expires = s.now.Add(MaxSigned) })), "", s.r().Phase, RunCompleted)
}

func TestRuleSignedOnce(t *testing.T) {
	s := begin(t, "4-trust signed", "a signed answer counts once, also after a restart", approved())
	s.done("a")
	var kept Answered
	s.want(s.says("ga", OutcomeFail, s.signs("ga"), func(a *Answered) { kept = *a }), "")
	replay := func() string { return ignored(s.do(kept)) }
	s.has(replay(), "this signed answer was used already, on 2026-01-01")
	s.restart(0)
	s.has(replay(), "used already")
	// from a snapshot
	s.has(ignored(Decide(clone(t, s.st), func(digest string) *Spec { return s.specs[digest] }, kept, s.now)), "used already")
	s.writes()
	s.done("a")
	s.want(s.gate("ga"), "2 human")
	again := kept.Signed
	s.has(s.says("ga", OutcomePass, s.signs("ga", func(g *Signed) { g.Nonce = again.Nonce })), "used already")
	// It is remembered beyond its validity, in case the clock is set back.
	s.want(s.says("ga", OutcomeFail, s.signs("ga")), "")
	s.want(fmt.Sprint(len(s.st.Spent)), "2")
	s.writes()
	s.now = s.now.Add(24 * time.Hour)
	s.done("a")
	s.want(s.says("ga", OutcomeFail, s.signs("ga")), "", fmt.Sprint(len(s.st.Spent)), "3")
}

func TestRuleSignedVoid(t *testing.T) {
	s := begin(t, "4-trust signed", "it is void when what was reviewed has changed, also on the way of a route, and used up by that", approved(route("other", "a")))
	s.done("a")
	s.want(s.says("ga", OutcomePass, s.signs("ga"), func(a *Answered) { a.DigestNow = "changed" }), "")
	s.want(s.r().Rounds["ga"][0].State, Undone, fmt.Sprint(count[SignatureUsed](s.log)), "1")
	s.checked()
	s.want(s.gate("ga"), "2 human")
	s.want(s.says("ga", "other", s.signs("ga"), func(a *Answered) { a.DigestNow = "changed" }), "")
	s.want(s.r().Rounds["ga"][1].State, Undone)
	s.checked()
	s.want(s.says("ga", "other", s.signs("ga")), "", s.step("a"), "2 running")
}

func TestRuleSelfApproval(t *testing.T) {
	s := begin(t, "4-trust self-approval", "who had a hand in the step does not approve it; another approver does, and anybody may refuse", approved())
	s.do(TakeoverRequested{Run: s.run, Step: "a", By: Actor{Who: "Ann"}})
	s.exit("a", Exit{Stopped: true})
	s.do(HandbackRequested{Run: s.run, Step: "a", Done: true, By: Actor{Who: "carl"}})
	s.checked()
	s.has(s.says("ga", OutcomePass, s.signs("ga")), "ann@example.org worked on a.1 (as Ann)", "nobody approves their own work")
	s.has(s.says("ga", OutcomePass, s.signs("ga", func(g *Signed) { g.Names = []string{"bob@example.org", "Carl"} })), "bob@example.org worked on a.1 (as carl)")
	s.want(s.says("ga", OutcomeFail, s.signs("ga")), "")
	s.writes()
	s.done("a")
	s.has(s.says("ga", OutcomePass, s.signs("ga")), "worked on a.1") // what was done then is still in it
	bob := func(g *Signed) { g.Names = []string{"bob@example.org"} }
	s.want(s.says("ga", OutcomePass, s.signs("ga", bob)), "", s.r().Phase, RunCompleted)
}

// Whoever signals an interactive step drove it, claimed or not; a subagent's signal is an agent's.
func TestRuleSelfApprovalSignalled(t *testing.T) {
	for launch, refused := range map[string]bool{LaunchInteractive: true, LaunchSubagent: false} {
		w := approved()
		w.Steps[0].Agent.Launch = launch
		s := begin(t, "4-trust self-approval", "who signals an interactive step does not approve it", w)
		s.do(FileSeen{Name: "a-done.json", Dir: s.run, ID: "f1", Written: s.now, Sentinel: &Sentinel{}, By: Actor{Who: "ann", Via: "file"}})
		s.checked()
		s.want(s.gate("ga"), "1 human")
		if why := s.says("ga", OutcomePass, s.signs("ga")); (why != "") != refused {
			t.Errorf("%s: %q", launch, why)
		}
	}
}

func TestRuleSelfApprovalOffered(t *testing.T) {
	w := approved()
	w.Steps[0].Agent.Launch, w.Steps[0].Signal = LaunchInteractive, Signal{Type: SignalCommit, Value: "[a]"}
	s := begin(t, "4-trust self-approval", "who claimed an offered step, or whose commit says that it is done, does not approve it", w)
	a := s.r().Current("a")
	s.do(Claimed{Run: s.run, Step: "a", N: 1, By: Actor{Who: "agents", Via: ViaMCP}})
	s.want(fmt.Sprint(len(a.Doers)), "0")
	s.do(CommitSeen{Run: s.run, Step: "a", N: 1, K: a.K, SHA: "abc", Author: "Ann|ANN@example.org|1", Makers: []string{"Ann", "ANN@example.org", "Carl"}})
	s.checked()
	s.has(s.says("ga", OutcomePass, s.signs("ga", func(g *Signed) { g.Names = []string{"ann@example.org"} })), "as ANN@example.org")
	s.want(s.says("ga", OutcomePass, s.signs("ga", func(g *Signed) { g.Names = []string{"bob@example.org"} })), "", s.r().Phase, RunCompleted)
}
