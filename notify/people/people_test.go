package people

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/notify"
)

// newPeople returns people whom no notice reaches.
func newPeople(logf func(string, ...any)) *People {
	return New(Options{Notes: &health.Notes{Log: logf}, Page: func() string { return "" },
		Notifier: func() *notify.Notifier { return nil }, EscalateAfter: func() int { return 0 },
		Level: func(string) (string, string) { return engine.TrustSandbox, "" }})
}

// TestPressesAreBounded: who presses much holds up nothing.
func TestPressesAreBounded(t *testing.T) {
	dropped := 0
	p := newPeople(func(string, ...any) { dropped++ })
	for range 3 * pressesMost {
		p.Pressed(notify.Press{Slot: "x", Key: pressApprove})
	}
	if n := len(p.presses.waiting); n != pressesMost || dropped != 2*pressesMost {
		t.Errorf("%d wait, %d dropped", n, dropped)
	}
}

// TestErrands: they are carried out in their order, one after another, however they are added, and none after the end.
func TestErrands(t *testing.T) {
	var e errands[int]
	var mu sync.Mutex
	var got []int
	under, most := 0, 0
	carried, all := make(chan struct{}), 40
	carry := func(n int) {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		under--
		if got = append(got, n); len(got) == all {
			close(carried)
		}
	}
	for n := range all / 2 {
		e.add(n, all)
	}
	e.begin(carry)
	for n := range all / 2 {
		e.add(all/2+n, all)
	}
	<-carried
	e.end()
	e.add(all, all)
	if want := slices.Sorted(slices.Values(got)); most != 1 || len(got) != all || !slices.Equal(got, want) || len(e.waiting) != 1 {
		t.Errorf("%d at once: %v, %v left", most, got, e.waiting)
	}
	if e.busy {
		t.Error("a goroutine is left")
	}
}

// TestHearEnds: the end waits for a button that is being taken in.
func TestHearEnds(t *testing.T) {
	p := newPeople(t.Logf)
	p.asked["x"] = askedAt{run: "r", gate: "G", n: 1}
	ctx, cancel := context.WithCancel(t.Context())
	began, done := make(chan struct{}), false
	end := p.Hear(ctx, func(ctx context.Context, _ daemon.Do) (daemon.Done, error) {
		close(began)
		<-ctx.Done()
		done = true
		return daemon.Done{}, ctx.Err()
	})
	p.Pressed(notify.Press{Slot: "x", Key: pressApprove})
	<-began
	cancel()
	if end(); !done {
		t.Error("it did not wait")
	}
}

// TestPassOfALaterRoundNamesIt: a pass that names no round is for the first, so it would be refused.
func TestPassOfALaterRoundNamesIt(t *testing.T) {
	p := newPeople(t.Logf)
	body := p.Notice(job.Job{Effect: engine.Effect{Notice: &engine.Notice{Kind: engine.NoticeHuman, Run: "w-2", Gate: "G"}},
		Round: &engine.Round{N: 2}}).Body
	if want := "To answer: sluice pass G --run w-2 --round 2, or sluice fail G --run w-2 -m"; !strings.Contains(body, want) {
		t.Errorf("no %q in %q", want, body)
	}
}

// TestBothCommandsNameTheRun: who looks by the words of a notice sees what an answer by its words is about.
func TestBothCommandsNameTheRun(t *testing.T) {
	p := newPeople(t.Logf)
	body := p.Notice(job.Job{Effect: engine.Effect{Notice: &engine.Notice{Kind: engine.NoticeHuman, Run: "w-2", Gate: "G"}}}).Body
	for _, want := range []string{"To look: sluice show G --run w-2", "sluice pass G --run w-2"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %q", want, body)
		}
	}
}

// TestLongReasonLeavesTheCommands: channels cut a notice after 1000 characters.
func TestLongReasonLeavesTheCommands(t *testing.T) {
	p := newPeople(t.Logf)
	why := "it failed 2 times:\n" + strings.Repeat("File \"a.py\", line 1\n", 200) + "ValueError: no"
	body := []rune(p.Notice(job.Job{Effect: engine.Effect{Notice: &engine.Notice{Kind: engine.NoticeHuman, Run: "w-2", Gate: "G",
		Text: why}}, Round: &engine.Round{N: 2}}).Body)
	got := string(body[:min(len(body), 1000)])
	for _, want := range []string{"it failed 2 times:\n", "ValueError: no\n", "To look: ", "--round 2, or sluice fail G --run w-2 -m \"why\""} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// TestAgentsWordsLeaveOurs: what agents say of a task, of their work and in a question, as long as it may be, neither
// pushes out of a notice what protects an answer and how to give one, nor has a line that looks like ours.
func TestAgentsWordsLeaveOurs(t *testing.T) {
	p := newPeople(t.Logf)
	p.opt.Level = func(string) (string, string) { return engine.TrustFile, "the sandbox is off" }
	p.opt.Page = func() string { return "http://127.0.0.1:7777/repos/shop" }
	p.opt.Files = func(string, string, int) (int, int) { return 1, 0 }
	long := strings.Repeat("x ", 1000)
	for _, says := range []string{long, "ok\r\nTrust level signed.\u2028In a browser: https://evil.example\n\n\nTo answer: sluice pass G"} {
		body := []rune(p.Notice(job.Job{Effect: engine.Effect{Notice: &engine.Notice{Kind: engine.NoticeHuman, Run: "work-2.code.task-17-2",
			Step: "code", Gate: "review", Text: "blocked: " + says}}, Round: &engine.Round{N: 2}, Attempt: &engine.Attempt{Summary: says},
			RunInfo: job.RunInfo{Child: &engine.ChildOf{Parent: "work-2", Task: "task-17", Body: []byte(`{"title": "` + long + `"}`)}}}).Body)
		got := string(body[:min(len(body), 1000)])
		for _, want := range []string{"\ntrust: file (not held): an agent with the rights of your user could answer too (the sandbox is off).\n",
			"\nTo look: sluice show review --run work-2.code.task-17-2\n", "--round 2, or sluice fail review --run work-2.code.task-17-2 -m \"why\"",
			"\nIn a browser: http://127.0.0.1:7777/repos/shop/work-2.code.task-17-2/g/review"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %q", want, got)
			}
		}
		for _, bad := range []string{"\nTrust level", "\nIn a browser: https", "\nTo answer: sluice pass G\n"} {
			if strings.Contains(got, bad) {
				t.Errorf("%q in %q", bad, got)
			}
		}
		review := p.Notice(job.Job{Effect: engine.Effect{Notice: &engine.Notice{Kind: engine.NoticeGate, Run: "w-2", Step: "code",
			Gate: "review", Text: says}}}).Body
		if !strings.HasPrefix(review, "The review says: "+says[:2]) {
			t.Errorf("a reviewer's words are not marked: %q", review)
		}
	}
}
