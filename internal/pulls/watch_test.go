package pulls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/tools/conform"
	"sluice/tools/forgestub"
)

// asks has the gate GC ask about a commit, and returns it once the pull request shows it.
func (r *rig) asks(n int, more ...func(*job.Job)) string {
	r.t.Helper()
	commit := r.commit(fmt.Sprintf("work %d", n))
	j := r.job("GC", commit, n)
	for _, m := range more {
		m(&j)
	}
	r.watch(j)
	r.until("it says how to answer", func() bool {
		return strings.Contains(r.p.Awaits("x-1", "GC"), "/sluice pass "+commit[:12])
	})
	return commit
}

// told waits for the n-th comment, and returns it.
func (r *rig) told(n int) string {
	r.t.Helper()
	r.until(fmt.Sprintf("comment %d", n), func() bool { return len(r.f.Comments(1)) >= n })
	return r.f.Comments(1)[n-1]
}

func TestWords(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge words", "a comment counts of an approver, about the commit that is judged, once, and never once it was edited; sluice says so there")
	commit := r.asks(1)
	n := 0
	for _, c := range []struct{ who, says, reply string }{
		{"ann", "/sluice pass", "name the commit that you looked at: `/sluice pass " + commit[:12] + "`"},
		{"ann", "/sluice pass " + commit[:11], "is too short to name a commit"},
		{"ann", "/sluice pass " + strings.Repeat("0", 40), "is not what is judged now"},
		{"ann", "/sluice fail " + strings.Repeat("0", 12) + " words", "is not what is judged now"},
		{"ann", "/sluice ship " + commit, "has no outcome `ship`: want one of `pass`, `fail`, `veto`, `replan`"},
		{"ann", "/sluice", "has no outcome"},
		{"mallory", "/sluice pass " + commit, "mallory is not among the approvers"},
		{forgestub.Me, "/sluice pass " + commit, "gh is logged in as robot here, and agents may hold that login, so this counts only as `file`"},
	} {
		r.f.Comment(1, c.who, c.says)
		n += 2
		if got := r.told(n); !strings.HasPrefix(got, forgestub.Me+": > ") || !strings.Contains(got, "Not counted: ") || !strings.Contains(got, c.reply) {
			t.Errorf("%s: %s\n%s", c.who, c.says, got)
		}
	}
	r.f.Comment(1, "mallory", "/sluice fail this") // told before
	r.f.Comment(1, "ann", "I would say /sluice pass "+commit)
	r.f.Comment(1, "ann", "> /sluice pass "+commit)
	r.f.Comment(1, "ann", "/sluices pass "+commit)
	n += 4
	for _, after := range []time.Duration{0, time.Minute} { // the forge's times are in whole seconds
		edited := r.f.Comment(1, "ann", "fine")
		r.f.Edit(edited, "/sluice pass "+commit, after)
		n += 2
		if got := r.told(n); !strings.Contains(got, "an edited comment does not count") {
			t.Error(got)
		}
	}
	if all := r.emitted(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
	r.f.Comment(1, "Ann", "/sluice PASS "+strings.ToUpper(commit))
	if got := r.told(n + 2); !strings.Contains(got, "Counted: pass of gate `GC`, round 1, by Ann (trust `forge`)") {
		t.Error(got)
	}
	all := r.emitted()
	ev, ok := all[0].(engine.Answered)
	if len(all) != 1 || !ok || ev.Gate != "GC" || ev.Round != 1 || ev.Outcome != engine.OutcomePass || ev.By.Who != "Ann" ||
		ev.By.Trust != engine.TrustForge || ev.DigestNow != commit || ev.Run != "x-1" {
		t.Errorf("%+v", all)
	}
}

// TestWordsOfTwoCommits: an agent can make two commits that begin alike, and an approver's comment about the one that they
// looked at does not count for the other.
func TestWordsOfTwoCommits(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge words", "a comment names one commit of those that were shown")
	commit := r.asks(1)
	record, err := os.ReadFile(r.file())
	if err != nil {
		t.Fatal(err)
	}
	earlier := commit[:20] + strings.Repeat("0", 20)
	record = bytes.Replace(record, []byte(`"pushed":[`), []byte(`"pushed":["`+earlier+`",`), 1)
	if err := os.WriteFile(r.file(), record, 0o600); err != nil || !bytes.Contains(record, []byte(earlier)) {
		t.Fatal(err, string(record))
	}
	r.f.Comment(1, "ann", "/sluice pass "+commit[:20])
	if got := r.told(2); !strings.Contains(got, "Not counted: two commits that were shown here begin with "+commit[:20]+": name all of it: `/sluice pass "+commit+"`") {
		t.Error(got)
	}
	r.f.Comment(1, "ann", "/sluice pass "+commit)
	if got := r.told(4); !strings.Contains(got, "Counted: pass") || len(r.emitted()) != 1 {
		t.Error(got)
	}
}

// TestWordsHidden: a stranger cannot keep an approver's comment from being read.
func TestWordsHidden(t *testing.T) {
	r := newRig(t)
	commit := r.asks(1)
	for range 70 {
		r.f.Comment(1, "mallory", strings.Repeat("x", 65_000))
	}
	r.f.Comment(1, "ann", "/sluice pass "+commit)
	if got := r.told(72); !strings.Contains(got, "Counted: pass") || len(r.emitted()) != 1 {
		t.Errorf("%.200s %v", got, r.emitted())
	}
}

// A restart sees all comments again.
func TestWordsOnce(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge once", "a comment counts once, also after a restart")
	commit := r.asks(1)
	r.f.Comment(1, "ann", "/sluice fail "+commit[:12]+" Name it.\nAnd test it.")
	r.told(2)
	r.open()
	asked := len(r.f.Asked())
	r.watch(r.job("GC", commit, 1))
	r.until("it was read again", func() bool {
		return strings.Count(strings.Join(r.f.Asked()[asked:], "\n"), "GET /repos/acme/dates/issues/1/comments") > 3
	})
	all := r.emitted()
	if ev, ok := all[0].(engine.Answered); len(all) != 1 || !ok || ev.Text != "Name it.\nAnd test it." || ev.Outcome != engine.OutcomeFail {
		t.Errorf("%+v", all)
	}
	if len(r.f.Comments(1)) != 2 {
		t.Errorf("%v", r.f.Comments(1))
	}
}

// TestWordsOfALostEnd: nothing is said of a comment that a loop did not take in because it ended, or because its journal
// could not be written: the next start takes it in.
func TestWordsOfALostEnd(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := 0, make(chan struct{})
	r.decides = func(engine.Answered) (string, error) {
		heard++
		cancel() // the daemon ends
		return "", errors.New("stopped")
	}
	commit := r.commit("work 1")
	j := r.job("GC", commit, 1)
	go func() {
		defer close(ended)
		r.p.Watch(ctx, j, r.tell)
	}()
	r.until("it is asked at the forge", func() bool { return len(r.f.Pulls()) == 1 })
	r.f.Comment(1, "ann", "/sluice pass "+commit)
	<-ended
	if got := r.f.Comments(1); heard != 1 || len(got) != 1 {
		t.Errorf("heard %d times, and said %v", heard, got)
	}
	r.decides = nil
	r.open()
	r.watch(j) // the round is as open as before
	if got := r.told(2); !strings.Contains(got, "Counted: pass") || len(r.emitted()) != 1 {
		t.Errorf("%s %v", got, r.emitted())
	}
}

// TestWordsThatDoNotCount: the reply to a comment says what was decided on it, once.
func TestWordsThatDoNotCount(t *testing.T) {
	r := newRig(t)
	heard := 0
	r.decides = func(engine.Answered) (string, error) {
		heard++
		return "gate GC is decided already: pass by bob (command)", nil
	}
	commit := r.asks(1)
	r.f.Comment(1, "ann", "/sluice pass "+commit)
	if got := r.told(2); !strings.Contains(got, "Not counted: gate GC is decided already: pass by bob (command)") {
		t.Error(got)
	}
	looks := func() int {
		return strings.Count(strings.Join(r.f.Asked(), "\n"), "GET /repos/acme/dates/issues/1/comments")
	}
	before := looks()
	r.until("it was read again", func() bool { return looks() > before+2 })
	if got := r.f.Comments(1); heard != 1 || len(got) != 2 {
		t.Errorf("heard %d times: %v", heard, got)
	}
}

// TestWordsTogether: a second comment of the same seconds passes only the gate that both are about, also where this
// machine's clock is an hour behind. So does one of a minute later, if sluice was not there to answer the first.
func TestWordsTogether(t *testing.T) {
	for name, c := range map[string]struct{ behind, later time.Duration }{
		"together": {}, "the clock is behind": {time.Hour, 0}, "and a minute later": {time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) { wordsTogether(t, c.behind, c.later) })
	}
}

func wordsTogether(t *testing.T, behind, later time.Duration) {
	r := newRig(t)
	commit := r.commit("work 1")
	first := r.f.Comment(1, "ann", "/sluice pass "+commit)
	r.f.Now = func() time.Time { return time.Now().Add(later) }
	r.f.Comment(1, "ann", "/sluice pass "+commit)
	r.f.Comment(1, forgestub.Me, fmt.Sprintf("Counted: pass <!-- sluice:reply %d -->", first))
	j := r.job("GC", commit, 1)
	j.Made.Rounds[0].Opened = time.Now().Add(-behind)
	before := engine.Round{N: 1, Step: "A", Attempt: 1, State: engine.OutcomePass, Digest: commit, Ended: j.Made.Rounds[0].Opened,
		By: &engine.Actor{Who: "ann", Via: fmt.Sprintf("comment %d", first), Trust: engine.TrustForge}}
	j.Made.Rounds = append(j.Made.Rounds, job.MadeRound{Round: before, Gate: "GA", Own: true})
	r.watch(j)
	if got := r.told(4); !strings.Contains(got, "it was written before round 1 of gate `GC` opened") || len(r.emitted()) > 0 {
		t.Errorf("%s %v", got, r.emitted())
	}
}

func TestWordsRoute(t *testing.T) {
	r := newRig(t)
	commit := r.asks(1)
	r.f.Comment(1, "ann", "/sluice replan "+commit[:16]+" too large")
	r.told(2)
	if ev, ok := r.emitted()[0].(engine.Answered); !ok || ev.Outcome != "replan" || ev.Text != "too large" || ev.DigestNow != commit {
		t.Errorf("%+v", ev)
	}
}

// TestForeignHeadAtPerson: what the person saw is not what is judged.
func TestForeignHeadAtPerson(t *testing.T) {
	r := newRig(t)
	commit := r.asks(1)
	r.f.Head(1, strings.Repeat("ab", 20))
	r.f.Comment(1, "ann", "/sluice pass "+commit)
	if got := r.told(2); !strings.Contains(got, "the pull request shows commit abababababab") || len(r.emitted()) > 0 {
		t.Errorf("%s %v", got, r.emitted())
	}
}

func TestSignedGateAtForge(t *testing.T) {
	r := newRig(t)
	commit := r.asks(1, func(j *job.Job) { j.Config.Trust = engine.TrustSigned })
	r.f.Comment(1, "ann", "/sluice pass "+commit)
	if got := r.told(2); !strings.Contains(got, "wants `signed`, and a comment is `forge`: answer where sluice runs: `sluice pass GC`") {
		t.Error(got)
	}
}

func TestEnds(t *testing.T) {
	conform.Rule(t, "12-forge ended", "a merge or a close by somebody is seen once, with who it was")
	for name, c := range map[string]struct {
		end  func(f *forgestub.Forge)
		want engine.PullEnded
	}{
		"merged": {func(f *forgestub.Forge) { f.Merge(1, "bob") }, engine.PullEnded{Merged: true, By: "bob"}},
		"merged elsewhere": {func(f *forgestub.Forge) { f.Retarget(1, "old"); f.Merge(1, "bob") },
			engine.PullEnded{Pull: " into old", Merged: true, By: "bob"}},
		"merged with what somebody else pushed": {func(f *forgestub.Forge) { f.Head(1, strings.Repeat("ab", 20)); f.Merge(1, "bob") },
			engine.PullEnded{Pull: " with commit abababababab, which sluice did not push,", Merged: true, By: "bob"}},
		"closed": {func(f *forgestub.Forge) { f.Reject(1, "carl") }, engine.PullEnded{By: "carl"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			commit := r.asks(1)
			c.end(r.f)
			r.until("the end", func() bool { return len(r.emitted()) > 0 })
			c.want.Run, c.want.Pull = "x-1", "pull request #1"+c.want.Pull
			if c.want.Merged {
				c.want.Commit = commit
			}
			if got := r.emitted(); len(got) != 1 || got[0] != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWatchSaysWhatIsWrong(t *testing.T) {
	r := newRig(t)
	r.f.Spoil(forgestub.Fault{Status: 401})
	r.watch(r.job("GC", r.commit("one"), 1))
	r.until("a note", func() bool { return strings.Contains(strings.Join(r.notes.All(), "\n"), "gh auth login --hostname") })
	r.f.Heal()
	r.until("it is well again", func() bool { return len(r.notes.All()) == 0 })
}

// TestIssue: one comment on the issue, edited, also after a kill before it was noted.
func TestIssue(t *testing.T) {
	r := newRig(t)
	conform.Rule(t, "12-forge issue", "the issue has one comment that says where the run stands, and it is edited")
	ofIssue := func(j *job.Job) {
		j.Vars, j.Made.Stands = map[string]any{"issue": map[string]any{"number": 5.0}}, []string{"GC for a person"}
		j.Made.Vars = j.Vars
	}
	commit := r.asks(1, ofIssue)
	r.until("a comment", func() bool { return len(r.f.Comments(5)) == 1 })
	if got := r.f.Comments(5)[0]; !strings.Contains(got, "`x-1`") || !strings.Contains(got, "waits: `GC for a person`") || !strings.Contains(got, "#1") {
		t.Error(got)
	}
	if body := fmt.Sprint(r.pull(1)["body"]); !strings.Contains(body, "\n\nCloses #5\n\n") {
		t.Error(body)
	}
	r.state = t.TempDir()
	r.open()
	j := r.job("GC", commit, 1)
	ofIssue(&j)
	j.RunInfo.Phase, j.RunInfo.EndWhy = engine.RunFailed, "GC: no"
	r.f.Spoil(forgestub.Fault{Path: "/comments", Status: 502, Times: 2}) // at its end the forge is away for a moment
	r.p.Ended(t.Context(), j)
	if got := r.f.Comments(5); len(got) != 1 || !strings.Contains(got[0], "It has failed: `GC: no`") {
		t.Error(got)
	}
}
