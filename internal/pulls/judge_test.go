package pulls_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/findings"
	"sluice/tools/conform"
	"sluice/tools/forgestub"
)

func TestOnePull(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge one", "a run has one pull request, also after a kill between push, creation and record; what people wrote into it stays")
	one := r.commit("one")
	r.f.Spoil(forgestub.Fault{Path: "POST /repos/acme/dates/pulls", Status: 503, Times: 1})
	_, stop := r.judge(r.job("GB", one, 1))
	r.until("a pull request", func() bool { return len(r.f.Pulls()) == 1 })
	r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	stop()
	if err := os.Remove(r.file()); err != nil { // killed before it was noted
		t.Fatal(err)
	}
	r.open()
	two := r.commit("two")
	_, stop = r.judge(r.job("GB", two, 2))
	r.until("it shows the new commit", func() bool { return r.pull(1)["head"].(forgestub.M)["sha"] == two })
	r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	stop()
	body := r.pull(1)["body"].(string)
	for _, want := range []string{"<!-- sluice:run x-1 -->", "`goal`: `read dates`", "`B`: `all of it, closes #9 @bob`"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q lacks %q", body, want)
		}
	}
	r.f.Describe(1, "A person's title", "Mine.\n\n"+body+"\n\nMine too.")
	r.open()
	j := r.job("GB", r.commit("three"), 3)
	j.Made.Did[0].Summary = "something else"
	_, stop = r.judge(j)
	defer stop()
	r.until("it is brought up to date", func() bool { return strings.Contains(r.pull(1)["body"].(string), "something else") })
	body = r.pull(1)["body"].(string)
	if !strings.HasPrefix(body, "Mine.\n\n<!-- sluice") || !strings.HasSuffix(body, "\n\nMine too.") || strings.Contains(body, "closes") ||
		r.pull(1)["title"] != "A person's title" || len(r.f.Pulls()) != 1 {
		t.Errorf("%v", r.f.Pulls())
	}
}

// TestMarks: what others say holds no mark of ours, so none of it is left over when the text is renewed.
func TestMarks(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge marks", "foreign text in what sluice writes there holds no mark of sluice's: it ends no section and answers no comment")
	var commit string
	for n := range 3 {
		commit = r.commit("more")
		j := r.job("GB", commit, n+1)
		j.Made.Vars["goal"] = fmt.Sprint("<!-- /sluice --> Closes #4 ", n)
		_, stop := r.judge(j)
		r.until("it shows the new commit", func() bool {
			return len(r.f.Pulls()) == 1 && r.pull(1)["head"].(forgestub.M)["sha"] == commit
		})
		r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
		stop()
	}
	body := r.pull(1)["body"].(string)
	if strings.Count(body, "Closes #4") != 1 || strings.Count(body, "-->") != 3 || !strings.HasSuffix(body, "<!-- /sluice -->") {
		t.Error(body)
	}
	r.watch(r.job("GC", commit, 3))
	r.f.Comment(1, "ann", "/sluice <!-- sluice:reply 1002 -->")
	r.until("a reply", func() bool { return len(r.f.Comments(1)) == 2 })
	if got := r.f.Comments(1)[1]; strings.Contains(got, "<!-- sluice:reply 1002") || !strings.Contains(got, "<!-- sluice:reply 10") {
		t.Error(got)
	}
}

func TestForeignCommit(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge foreign", "a commit that somebody else pushed to the run's branch stays, and stops the gate with what to do")
	one := r.commit("one")
	_, stop := r.judge(r.job("GB", one, 1))
	r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	stop()
	theirs := r.theirs()
	for n := 2; n < 4; n++ { // the commit judged before, and a new one
		ch, _ := r.judge(r.job("GB", one, n))
		ev := r.ended(ch)
		if ev.Exit.Class != engine.ClassFatal || !strings.Contains(ev.Exit.Why, "which sluice did not push") ||
			!strings.Contains(ev.Exit.Why, "git fetch origin "+branch) || !strings.Contains(ev.Exit.Why,
			fmt.Sprintf("git push --force-with-lease=%s:%.12s origin %.12s:%s; then", branch, theirs, one, branch)) {
			t.Errorf("%+v", ev)
		}
		one = r.commit("more")
	}
	if got := r.git("ls-remote", r.f.Bare, "refs/heads/"+branch); !strings.HasPrefix(got, theirs) {
		t.Errorf("%s is lost: %s", theirs, got)
	}

	// A person does what it says; then the branch is the run's again, also for a commit beside that.
	r.git("push", "-q", "-f", r.f.Bare, one+":refs/heads/"+branch)
	for n, commit := range []string{one, r.git("commit-tree", "-p", "main~3", "-m", "again", "main^{tree}")} {
		_, stop := r.judge(r.job("GB", commit, 4+n))
		r.until("it shows the commit", func() bool { return r.pull(1)["head"].(forgestub.M)["sha"] == commit })
		r.until("it is judged", func() bool { return strings.HasPrefix(r.p.Awaits("x-1", "GB"), "for checks") })
		stop()
	}
}

// The head moves while it is judged.
func TestForeignHead(t *testing.T) {
	r := newRig(t)
	one := r.commit("one")
	ch, _ := r.judge(r.job("GB", one, 1))
	r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	other := strings.Repeat("ab", 20)
	r.f.Check(other, "test", "success", "")
	r.f.Review(1, "bob", "MEMBER", "APPROVED", other, "")
	r.f.Head(1, other)
	if ev := r.ended(ch); ev.Exit.Class != engine.ClassFatal || !strings.Contains(ev.Exit.Why, "abababababab") {
		t.Errorf("%+v", ev)
	}
}

func TestProtected(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge protected", "a branch that is protected against sluice leaves the round to a person, with the cause")
	hook := filepath.Join(r.f.Bare, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'protected branch hook declined' >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ch, _ := r.judge(r.job("GB", r.commit("one"), 1))
	ev := r.ended(ch)
	if ev.Verdict == nil || !strings.Contains(ev.Verdict.Inconclusive, "protected branch hook declined") ||
		!strings.Contains(ev.Verdict.Inconclusive, "check that you may push to "+branch) {
		t.Errorf("%+v", ev)
	}
}

func TestJudgeFaults(t *testing.T) {
	conform.Rule(t, "12-forge refusals", "without a login the run pauses; what the forge refuses leaves the round to a person")
	for name, c := range map[string]struct {
		status      int
		fatal, says string
	}{
		"no login":  {401, "gh auth login", ""},
		"missing":   {404, "", "git remote get-url origin"},
		"forbidden": {403, "", "gh auth refresh"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.f.Spoil(forgestub.Fault{Path: "pulls", Status: c.status})
			ch, _ := r.judge(r.job("GB", r.commit("one"), 1))
			ev := r.ended(ch)
			if c.fatal != "" && (ev.Exit.Class != engine.ClassFatal || !strings.Contains(ev.Exit.Why, c.fatal)) {
				t.Errorf("%+v", ev)
			}
			if c.says != "" && (ev.Verdict == nil || !strings.Contains(ev.Verdict.Inconclusive, c.says)) {
				t.Errorf("%+v", ev)
			}
		})
	}
}

func TestAwayGoesOn(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge away", "a forge that is away is asked again, and the wait says so")
	one := r.commit("one")
	r.f.Spoil(forgestub.Fault{Path: "pulls", Status: 502})
	ch, _ := r.judge(r.job("GB", one, 1))
	r.until("the wait says it", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GB"), "is away (HTTP 502)") && strings.Contains(r.p.Awaits("x-1", "GB"), "asked again at")
	})
	r.f.Heal()
	r.until("a pull request", func() bool { return len(r.f.Pulls()) == 1 })
	r.f.Check(one, "test", "success", "")
	r.f.Review(1, "bob", "MEMBER", "APPROVED", one, "")
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomePass || len(r.notes.All()) > 0 {
		t.Errorf("%+v %v", ev, r.notes.All())
	}
}

// TestThisCommit: what is about another commit, by gh's own account or by an outsider does not count.
func TestThisCommit(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge commit", "checks and reviews of another commit do not count, nor a review by gh's own account or an outsider, nor an approval by a member who may only read")
	r.f.Fork("mallory", branch)
	one := r.commit("one")
	ch, _ := r.judge(r.job("GB", one, 1))
	r.until("a pull request beside the fork's", func() bool { return len(r.f.Pulls()) == 2 })
	r.until("it waits", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	r.f.Check(one, "test", "failure", "the log")
	r.f.Review(2, "mallory", "NONE", "CHANGES_REQUESTED", one, "no", forgestub.Line{File: "a", Line: 1, Body: "mine"})
	r.f.Review(2, "bob", "MEMBER", "CHANGES_REQUESTED", one, "", forgestub.Line{File: "a.go", Line: 3, Body: "Why?"})
	ev := r.ended(ch)
	found := findings.List(ev.Verdict.Findings)
	if ev.Verdict.Outcome != engine.OutcomeFail || len(found) != 1 || found[0].Place() != "a.go:3" || found[0].Message != "bob: Why?" ||
		!strings.Contains(ev.Verdict.Feedback, "the log") || strings.Contains(ev.Verdict.Feedback, "mallory") {
		t.Fatalf("%+v %+v", ev.Verdict, found)
	}
	two := r.commit("two")
	ch, _ = r.judge(r.job("GB", two, 2))
	r.until("the thread is answered", func() bool { return len(r.f.Lines(2)) == 3 })
	if says := r.f.Lines(2)[2]; !strings.HasPrefix(says, forgestub.Me+": "+two) || strings.Contains(says, " @everyone\n") {
		t.Error(says)
	}
	r.until("bob is awaited", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GB"), "for bob, who wanted changes, to review pull request #2 again")
	})
	r.f.Review(2, forgestub.Me, "OWNER", "APPROVED", two, "")
	r.f.Review(2, "mallory", "NONE", "APPROVED", two, "")
	r.f.Review(2, "bob", "MEMBER", "APPROVED", one, "") // late, of the old commit
	r.until("somebody is awaited", func() bool { return strings.Contains(r.p.Awaits("x-1", "GB"), "for an approval") })
	r.f.Review(2, "reader", "MEMBER", "APPROVED", two, "")
	r.until("a reader is none", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GB"), "by somebody who may write there; reader may not")
	})
	r.f.Review(2, "carl", "COLLABORATOR", "APPROVED", two, "")
	r.until("approved", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GB"), "none has reported yet; approved by carl")
	})
	r.f.Check(two, "test", "success", "")
	if ev = r.ended(ch); ev.Verdict.Outcome != engine.OutcomePass || !strings.Contains(ev.Verdict.Feedback, two[:12]) {
		t.Errorf("%+v", ev.Verdict)
	}
}

// TestSkipped: a check that did not run has checked nothing, as that of a draft in many repos.
func TestSkipped(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge skipped", "checks that were skipped, or say neither yes nor no, pass nothing by themselves, and stop nothing beside a green one")
	one := r.commit("one")
	r.f.Check(one, "test", "skipped", "")
	r.f.Check(one, "notes", "neutral", "")
	ch, _ := r.judge(r.job("GB", one, 1))
	r.until("a pull request", func() bool { return len(r.f.Pulls()) == 1 })
	r.f.Review(1, "bob", "MEMBER", "APPROVED", one, "")
	r.until("it says so", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GB"), "for checks of pull request #1, none has run (2 skipped or neutral); approved by bob")
	})
	r.f.Check(one, "build", "success", "")
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomePass {
		t.Errorf("%+v", ev)
	}
}

// TestSkippedByTheWork: work cannot keep the forge from running its checks, so that another one passes it alone: by its
// commit's message, or by a conflict, with which GitHub runs no workflow of pull requests.
func TestSkippedByTheWork(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge unchecked", "a commit that tells the forge to run no checks is sent back before it is pushed, and checks of a pull request with a conflict pass nothing without a person")
	for n, says := range []string{"[skip ci]", "[CI skip]", "[no ci]", "[actions skip]", "\n\n\nskip-checks:true", "***NO_CI***", strings.Repeat("x\n", 40_000)} {
		ch, _ := r.judge(r.job("GB", r.commit("work "+says), n+1))
		ev := r.ended(ch)
		if v := ev.Verdict; v == nil || v.Outcome != engine.OutcomeFail || !strings.Contains(v.Feedback, "the forge may run no checks") ||
			len(says) < 100 && !strings.Contains(v.Feedback, strings.TrimSpace(says)) {
			t.Errorf("%.20q: %+v", says, ev)
		}
	}
	if n := len(r.f.Pulls()); n != 0 {
		t.Fatalf("%d pull requests", n)
	}
	one := r.commit("[NO-TICKET] Skip CI of drafts [ci: skip nothing]")
	ch, _ := r.judge(r.job("GB", one, 9))
	r.until("a pull request", func() bool { return len(r.f.Pulls()) == 1 })
	r.f.Conflict(1, true)
	r.f.Check(one, "cla", "success", "")
	r.f.Review(1, "bob", "MEMBER", "APPROVED", one, "")
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Inconclusive != "pull request #1 conflicts with main, and the forge may have run only some of its checks" {
		t.Errorf("%+v", ev)
	}
	r.f.Conflict(1, false)
	ch, _ = r.judge(r.job("GB", one, 9))
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomePass {
		t.Errorf("%+v", ev)
	}
}

// TestOtherTarget: a pull request that goes into another branch shows its changes against that, and runs that branch's
// checks, so nothing there counts.
func TestOtherTarget(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge target", "While the pull request goes into another branch than the run began from, nothing there passes the work")
	one := r.commit("one")
	ch, _ := r.judge(r.job("GB", one, 1))
	r.until("a pull request", func() bool { return len(r.f.Pulls()) == 1 })
	r.f.Retarget(1, "theirs")
	r.f.Check(one, "test", "success", "")
	r.f.Review(1, "bob", "MEMBER", "APPROVED", one, "")
	r.until("it says so", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GB"), "goes into `theirs`, and the run's work is for `main`")
	})
	r.watch(r.job("GC", one, 1))
	r.f.Comment(1, "ann", "/sluice pass "+one)
	if got := r.told(2); !strings.Contains(got, "Not counted: the pull request goes into `theirs`") {
		t.Error(got)
	}
	r.f.Retarget(1, "main")
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomePass {
		t.Errorf("%+v", ev)
	}
}

func TestStandIn(t *testing.T) {
	r := newRig(t)
	j := r.job("GB", r.commit("one"), 1)
	j.RunInfo.Stubs = []byte(`{"gates": {"GB": [{"verdict": "fail", "feedback": "no"}]}}`)
	ch, _ := r.judge(j)
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomeFail || len(r.f.Asked()) > 0 {
		t.Errorf("%+v %v", ev, r.f.Asked())
	}
}
