package pulls_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/pulls"
	"sluice/tools/forgestub"
)

// hurried has waits be short.
func hurried(o *pulls.Options) {
	o.Wait = func(ctx context.Context, _ time.Duration) bool {
		time.Sleep(10 * time.Millisecond)
		return ctx.Err() == nil
	}
}

// TestGitAway: a push that fails while the forge is away is made again, however often. If only git fails, a person
// looks.
func TestGitAway(t *testing.T) {
	r := newRig(t)
	r.open(hurried, func(o *pulls.Options) {
		o.Remote = func(context.Context) (string, error) { return filepath.Join(r.dir, "gone"), nil }
	})
	r.f.Spoil(forgestub.Fault{Path: "user", Status: 503})
	ch, _ := r.judge(r.job("GB", r.commit("one"), 1))
	r.until("it is asked often", func() bool { return len(r.f.Asked()) > 5 || len(ch) > 0 })
	if says := r.p.Awaits("x-1", "GB"); !strings.Contains(says, "is away (HTTP 503)") {
		t.Errorf("%q", says)
	}
	r.f.Heal()
	if ev := r.ended(ch); ev.Verdict == nil || !strings.Contains(ev.Verdict.Inconclusive, "check that you may push to "+branch) {
		t.Errorf("%+v", ev)
	}
}

// TestFaultsInARow: what failed by an outage is no refusal by the forge.
func TestFaultsInARow(t *testing.T) {
	r := newRig(t)
	r.open(hurried)
	one := r.commit("one")
	for range 2 {
		r.f.Spoil(forgestub.Fault{Path: "pulls", Status: 502, Times: 4})
		r.f.Spoil(forgestub.Fault{Path: "pulls", Status: 401, Times: 2})
	}
	ch, _ := r.judge(r.job("GB", one, 1))
	r.until("a pull request", func() bool { return len(r.f.Pulls()) == 1 || len(ch) > 0 })
	r.f.Check(one, "test", "success", "")
	r.f.Review(1, "bob", "MEMBER", "APPROVED", one, "")
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomePass {
		t.Errorf("%+v", ev)
	}
}

// TestLogNeverComes: a failed check counts without its log.
func TestLogNeverComes(t *testing.T) {
	r := newRig(t)
	r.open(hurried)
	one := r.commit("one")
	r.f.Spoil(forgestub.Fault{Path: "actions/jobs", Status: 503})
	r.f.Check(one, "test", "failure", "the log")
	ch, _ := r.judge(r.job("GB", one, 1))
	if ev := r.ended(ch); ev.Verdict == nil || !strings.HasPrefix(ev.Verdict.Feedback, "The check test failed (failure)") ||
		strings.Contains(ev.Verdict.Feedback, "the log") {
		t.Errorf("%+v", ev)
	}
}

// TestIssueGone: where somebody has removed sluice's comment there is a new one; where the issue is gone, the rest of the
// run goes on as before.
func TestIssueGone(t *testing.T) {
	r := newRig(t)
	commit := r.asks(1)
	stands := func(words string) {
		j := r.job("GC", commit, 1)
		j.Vars, j.Made.Stands = map[string]any{"issue": map[string]any{"number": 5.0}}, []string{words}
		r.watch(j)
	}
	stands("one")
	r.until("a comment", func() bool { return len(r.f.Comments(5)) == 1 })
	r.f.Spoil(forgestub.Fault{Path: "PATCH /repos/acme/dates/issues/comments", Status: 404, Times: 1})
	stands("two")
	r.until("a new comment", func() bool { return len(r.f.Comments(5)) == 2 })
	r.f.Spoil(forgestub.Fault{Path: "issues/comments", Status: 410})
	r.f.Spoil(forgestub.Fault{Path: "issues/5/", Status: 410})
	for _, words := range []string{"three", "four"} { // four finds no comment of its own to edit
		stands(words)
		for asked := len(r.f.Asked()); len(r.f.Asked()) < asked+10; time.Sleep(50 * time.Millisecond) {
			if all := r.notes.All(); len(all) > 0 {
				t.Fatal(words, all)
			}
		}
	}
}

// TestReadyAtTheLastGate: a draft is ready once people are asked at the last gate, and it stays a draft that a person
// makes of it again.
func TestReadyAtTheLastGate(t *testing.T) {
	r := newRig(t)
	commit := r.commit("one")
	draft := func(j *engine.Spec) { j.OnDone = engine.OnDone{Land: engine.LandPR, Pull: &engine.PullAs{Draft: true}} }
	j := r.job("GB", commit, 1)
	draft(j.Spec)
	_, stop := r.judge(j)
	r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	stop()
	if r.pull(1)["draft"] != true {
		t.Fatal(r.pull(1))
	}
	j = r.job("GC", commit, 1)
	draft(j.Spec)
	r.watch(j)
	r.until("it is ready", func() bool { return r.pull(1)["draft"] == false })
}

// TestForgedTrailer: a commit that says who has passed which gate is sent back before it is pushed, or held where people
// are asked at the forge. What is on the target at the remote may say so.
func TestForgedTrailer(t *testing.T) {
	r := newRig(t)
	r.git("update-ref", "refs/sluice/base/x-1", "HEAD")
	r.git("switch", "-q", "-c", "work")
	one := r.commit("work\n\nsluice-gate: GC pass by ann (forge)")
	ch, _ := r.judge(r.job("GB", r.commit("more"), 1))
	if ev := r.ended(ch); ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomeFail ||
		!strings.HasPrefix(ev.Verdict.Feedback, "commit "+one[:12]+` contains "sluice-gate: GC pass by ann (forge)", which only sluice may write`) {
		t.Fatalf("%+v", ev)
	}
	r.watch(r.job("GC", r.commit("even more"), 2))
	r.until("it is held", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GC"), "its commit is not pushed: commit "+one[:12])
	})
	if n := len(r.f.Pulls()); n > 0 {
		t.Fatalf("%d pull requests", n)
	}
	r.git("push", "-q", r.f.Bare, one+":main") // by somebody's landing
	ch, _ = r.judge(r.job("GB", r.git("rev-parse", "HEAD"), 3))
	r.until("a pull request", func() bool { return len(r.f.Pulls()) == 1 || len(ch) > 0 })
}

// TestNotShown: a commit that could not be pushed for people at the forge is pushed again, and nobody is told meanwhile
// to answer there. What keeps it away does not hide the end of the pull request.
func TestNotShown(t *testing.T) {
	r := newRig(t)
	r.open(hurried)
	_, stop := r.judge(r.job("GB", r.commit("one"), 1))
	r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	stop()
	hook := filepath.Join(r.f.Bare, "hooks", "pre-receive")
	refuses := func() {
		if err := os.WriteFile(hook, []byte("#!/bin/sh\necho x >>refused\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	refused := func() int {
		says, _ := os.ReadFile(filepath.Join(r.f.Bare, "refused")) // none yet
		return len(says)
	}
	refuses()
	two := r.commit("two")
	j := r.job("GC", two, 2)
	r.watch(j)
	r.until("it is tried again", func() bool { return refused() > 4 })
	if says := r.p.Awaits("x-1", "GC"); strings.Contains(says, "/sluice") || !strings.Contains(strings.Join(r.notes.All(), "\n"), "not pushed") {
		t.Errorf("%q %v", says, r.notes.All())
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	r.until("people are asked", func() bool { return strings.Contains(r.p.Awaits("x-1", "GC"), "/sluice pass "+two[:12]) })
	refuses()
	r.watch(r.job("GC", r.commit("three"), 3))
	r.until("it is tried", func() bool { return refused() > 6 })
	r.f.Merge(1, "bob")
	r.until("the end", func() bool { return len(r.emitted()) == 2 }) // each watch has seen it
}

// TestMarkRemoved: what a person wrote into the description stays, also where the mark went that ends sluice's part.
func TestMarkRemoved(t *testing.T) {
	r := newRig(t)
	_, stop := r.judge(r.job("GB", r.commit("one"), 1))
	r.until("it is judged", func() bool { return r.p.Awaits("x-1", "GB") != "" })
	stop()
	body := r.pull(1)["body"].(string)
	r.f.Describe(1, "T", "Above.\n"+strings.ReplaceAll(body, "<!-- /sluice -->", "Mine."))
	for n := 2; n < 4; n++ {
		two := r.commit("more")
		_, stop = r.judge(r.job("GB", two, n))
		r.until("it is judged", func() bool {
			return strings.HasPrefix(r.p.Awaits("x-1", "GB"), "for checks") && r.pull(1)["head"].(forgestub.M)["sha"] == two
		})
		stop()
	}
	if got := r.pull(1)["body"].(string); !strings.HasPrefix(got, "Above.\n") || strings.Count(got, "Mine.") != 1 ||
		strings.Count(got, "<!-- sluice:run x-1 -->") != 1 || strings.Count(got, "What was asked") != 2 {
		t.Error(got)
	}
}
