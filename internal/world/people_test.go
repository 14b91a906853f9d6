//go:build linux || darwin

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/tree"
	"sluice/notify"
)

// board is a desktop made of a list.
type board struct {
	mu        sync.Mutex
	shown     []notify.Notice
	dismissed []string
	sent      func(notify.Notice) // called while a notice is on its way; may be nil
}

func (*board) Name() string { return notify.DesktopChannel }

func (b *board) Send(_ context.Context, n notify.Notice) error {
	if b.sent != nil {
		b.sent(n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown = append(b.shown, n)
	return nil
}

func (b *board) Dismiss(slot string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dismissed = append(b.dismissed, slot)
}

func (b *board) all() []notify.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.shown)
}

func (b *board) gone() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.dismissed, ",")
}

// onBoard connects the bench's world to a desktop.
func onBoard(b *bench) *board {
	d := &board{}
	n := notify.New(notify.Options{Channels: []notify.Channel{d}})
	b.t.Cleanup(func() { _ = n.Close() })
	b.notifier = n
	return d
}

// asks is a notice that is owed, of gate G's round.
func (b *bench) asks(kind string) job.Job {
	j := b.reviewJob("G", 1)
	j.Kind, j.Key = engine.DoNotify, "w-1/G#1.x"
	j.Notice = &engine.Notice{ID: j.Key, Kind: kind, Run: run1, Step: "A", Gate: "G", N: 1}
	return j
}

func keysOf(n notify.Notice) string {
	var out []string
	for _, a := range n.Actions {
		out = append(out, a.Key)
	}
	return strings.Join(out, " ")
}

func TestButtonsOfEachRound(t *testing.T) {
	b := newBench(t, gateSpec)
	d := onBoard(b)
	for i, c := range []struct {
		kind, state string
		signed      bool
		keys        string
	}{
		{engine.NoticeHuman, engine.OnHuman, false, "approve reject show"},
		{engine.NoticeReminder, engine.OnHuman, false, "approve reject show"},
		{engine.NoticeHuman, engine.OnHuman, true, "reject show"},
		{engine.NoticeGate, engine.OnNotice, false, "veto show"},
		{engine.NoticeReminder, engine.OnWindow, true, "veto show"},
		{engine.NoticeInfo, engine.OnHuman, false, ""},
		{engine.NoticeHuman, "", false, ""}, // decided meanwhile
	} {
		var rounds []job.AskedRound
		if c.state != "" {
			rounds = []job.AskedRound{{Gate: "G", N: 1, State: c.state, Signed: c.signed, Owed: true}}
		}
		b.e.Asked(run1, rounds)
		j := b.asks(c.kind)
		j.Round.State = c.state
		if c.signed {
			j.Round.Trust = engine.TrustSigned
		}
		b.e.Carry(b.ctx(), j, nil)
		n := d.all()[i]
		if keysOf(n) != c.keys || (n.Slot == "w-1/G#1") != (c.keys != "") {
			t.Errorf("%+v: buttons %q, slot %q", c, keysOf(n), n.Slot)
		}
		if strings.Contains(n.Brief, "sluice pass") != (c.signed && c.state == engine.OnHuman) {
			t.Errorf("%+v: beside buttons stands:\n%s", c, n.Brief)
		}
	}
}

func TestNoticeGoesWithItsRound(t *testing.T) {
	b := newBench(t, gateSpec)
	d := onBoard(b)
	open := func(gates ...string) {
		var rounds []job.AskedRound
		for _, g := range gates {
			rounds = append(rounds, job.AskedRound{Gate: g, N: 1, State: engine.OnHuman, Owed: true})
		}
		b.e.Asked(run1, rounds)
	}
	b.e.Asked("other-1", []job.AskedRound{{Gate: "G", N: 1, State: engine.OnHuman, Owed: true}})
	open("G", "H")
	open("H")
	open("H")
	if got := d.gone(); got != "w-1/G#1" {
		t.Errorf("dismissed: %s", got)
	}
	open("G", "H")
	d.sent = func(notify.Notice) { open() } // decided while the notice is on its way
	b.e.Carry(b.ctx(), b.asks(engine.NoticeHuman), nil)
	if got := d.gone(); strings.Count(got, "w-1/G#1") != 3 || strings.Contains(got, "other") {
		t.Errorf("dismissed: %s", got)
	}
}

// hears runs Hear with a loop that answers each event with answer, and returns what it was asked.
func (b *bench) hears(answer func(engine.Answered) (daemon.Done, error)) (asked func() []daemon.Do) {
	ctx, cancel := context.WithCancel(b.ctx())
	var mu sync.Mutex
	var got []daemon.Do
	end := b.e.Hear(ctx, func(_ context.Context, do daemon.Do) (daemon.Done, error) {
		mu.Lock()
		got = append(got, do)
		mu.Unlock()
		var ev engine.Answered
		if err := json.Unmarshal(do.Event, &ev); err != nil {
			return daemon.Done{}, err
		}
		return answer(ev)
	}, nil)
	b.t.Cleanup(func() { cancel(); end() })
	return func() []daemon.Do { mu.Lock(); defer mu.Unlock(); return slices.Clone(got) }
}

func TestPressedButtons(t *testing.T) {
	b := newBench(t, gateSpec)
	d := onBoard(b)
	asked := b.hears(func(ev engine.Answered) (daemon.Done, error) {
		switch ev.Gate {
		case "LATE":
			return daemon.Done{Ignored: "gate LATE is decided already: pass by ann (command)"}, nil
		case "LOST":
			return daemon.Done{}, errors.New("the disk is full")
		}
		return daemon.Done{Seq: 7}, nil
	})
	var rounds []job.AskedRound
	for _, g := range []string{"G", "LATE", "LOST"} {
		rounds = append(rounds, job.AskedRound{Gate: g, N: 2, State: engine.OnHuman, Owed: true})
	}
	b.e.Asked(run1, rounds)
	press := func(slot, key string, want int) []daemon.Do {
		b.e.Pressed(notify.Press{Slot: slot, Key: key, At: time.Now()})
		eventually(t, "it is taken in", func() bool { return len(asked()) == want })
		return asked()
	}
	for i, c := range []struct{ key, event string }{
		{"approve", `{"gate":"G","run":"w-1","round":2,"outcome":"pass"`},
		{"veto", `{"gate":"G","run":"w-1","round":2,"outcome":"veto","text":"vetoed from the desktop, no words given"`},
	} {
		do := press("w-1/G#2", c.key, i+1)[i]
		if do.Kind != "answered" || do.Via != "desktop" || !strings.HasPrefix(string(do.Event), c.event) {
			t.Errorf("%s: %+v %s", c.key, do, do.Event)
		}
	}
	if n := d.all(); len(n) != 0 {
		t.Errorf("told of what counted: %+v", n)
	}
	told := func(want int, words ...string) {
		t.Helper()
		eventually(t, "a person is told", func() bool { return len(d.all()) == want })
		n := d.all()[want-1]
		wantText(t, "the follow-up", n.Title+"\n"+n.Body, words...)
		if n.Slot != "" || n.Kind != notify.KindInfo {
			t.Errorf("%+v", n)
		}
	}
	press("w-1/LATE#2", "approve", 3)
	told(1, "LATE of w-1", "did not count", "decided already: pass by ann")
	press("w-1/LOST#2", "veto", 4)
	told(2, "LOST of w-1", "could not be delivered", "disk is full")
	press("w-1/G#1", "approve", 4) // a round of before
	told(3, "did not count", "w-1/G#1 was decided already")

	press("w-1/G#2", "reject", 4)
	told(4, "Your reason is needed", "sluice fail G --run w-1 --round 2", "In "+b.e.Root)
	var ran []string
	b.terminal = func(_ context.Context, dir string, args []string) error {
		ran = append(ran, fmt.Sprint(dir == b.e.Root, args))
		if len(ran) > 1 {
			return errors.New("no display")
		}
		return nil
	}
	press("w-1/G#2", "reject", 4)
	press("w-1/G#2", "show", 4)
	told(5, "To look", "sluice show G --run w-1")
	b.e.Asked(run1, []job.AskedRound{{Gate: "G", N: 2, State: engine.OnWindow, Signed: true, Owed: true}})
	press("w-1/G#2", "veto", 4)
	told(6, "Your reason is needed", "sluice veto G --run w-1 --round 2")
	b.e.Asked(run1, []job.AskedRound{{Gate: "G", N: 2, State: engine.OnHuman, Asks: true, Owed: true}})
	press("w-1/G#2", "approve", 4)
	told(7, "Your answer is needed", "sluice pass G --run w-1 --round 2")
	if got := strings.Join(ran, "; "); got != "true [fail G --run w-1 --round 2]; true [show G --run w-1]; true [veto G --run w-1 --round 2]; true [pass G --run w-1 --round 2]" {
		t.Errorf("terminals: %s", got)
	}
}

// TestNoticesOfBefore: an earlier process's notices are shown on the screen again, and nobody else
// gets them twice.
func TestNoticesOfBefore(t *testing.T) {
	b := newBench(t, gateSpec)
	d := onBoard(b)
	j := b.asks(engine.NoticeReminder)
	b.e.Asked(run1, []job.AskedRound{{Gate: "G", N: 1, State: engine.OnHuman, Job: j}, {Gate: "H", N: 1, State: engine.OnHuman, Owed: true}})
	b.e.Asked(run1, []job.AskedRound{{Gate: "G", N: 1, State: engine.OnHuman, Job: j}}) // known now
	b.hears(nil)
	eventually(t, "it stands there again", func() bool { return len(d.all()) > 0 })
	if n := d.all(); len(n) != 1 || n[0].Slot != "w-1/G#1" || keysOf(n[0]) != "approve reject show" || !n[0].Again {
		t.Errorf("%+v", n)
	}
}

func TestEscalation(t *testing.T) {
	b := newBench(t, gateSpec)
	b.settings.Notify.Escalate = settings.Escalate{After: 2, To: []string{"command"}}
	for reminders, want := range map[int]bool{0: false, 1: false, 2: true, 5: true} {
		j := b.asks(engine.NoticeReminder)
		j.Round.Reminders = reminders
		if n := b.e.Notice(j); n.Escalated != want || strings.HasPrefix(n.Title, "Unanswered: ") != want || n.Urgency != notify.UrgencyCritical {
			t.Errorf("%d reminders: %+v", reminders, n)
		}
	}
	j := b.asks(engine.NoticeHuman)
	j.Round.Reminders = 5
	if b.e.Notice(j).Escalated {
		t.Error("a first question has escalated")
	}
}

func TestWhatWasReviewedIsTold(t *testing.T) {
	b := newBench(t, gateSpec)
	j := b.asks(engine.NoticeHuman)
	j.Attempt = &engine.Attempt{N: 1, Summary: "wrote\x1b[31m the index " + strings.Repeat("x", 1000)}
	score := 82.5
	j.Round.Score = &score
	j.Round.Due = b.e.opt.Now().Add(26 * time.Hour)
	if err := layout.Save(b.e.AttemptFile(run1, "A", 1, "files"), tree.Covered{Files: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	n := b.e.Notice(j)
	wantText(t, "the notice", n.Title+"\n"+n.Body, "2 files changed, score 82.5 of 100.", "Its summary: wrote the index", "Until ", "(26h left)")
	if len(n.Body) > 1000 {
		t.Errorf("%d bytes", len(n.Body))
	}
	j = b.asks(engine.NoticeGate)
	j.Round.VetoWindow = engine.Duration(20 * time.Minute)
	wantText(t, "the veto's", b.e.Notice(j).Body, "It goes on by itself in 20m.")
	j = b.asks(engine.NoticeReminder) // a window that is open again
	j.Round.State, j.Round.WindowEnds = engine.OnWindow, time.Now().Add(time.Minute)
	n = b.e.Notice(j)
	wantText(t, "the window's", n.Title+n.Body, "the review passed", "goes on by itself at", "sluice veto G")
}

func TestWebhookSettings(t *testing.T) {
	for want, change := range map[string]func(*settings.Notify){
		"notify.webhook.url: http to":                     func(n *settings.Notify) { n.Webhook.URL = "http://example.org" },
		"notify.webhook.body: ":                           func(n *settings.Notify) { n.Webhook = settings.Webhook{URL: "https://x", Body: "{{"} },
		"notify.webhook.url: empty":                       func(n *settings.Notify) { n.Webhook.SecretEnv = "X" },
		"notify.terminal: the name":                       func(n *settings.Notify) { n.Terminal = []string{""} },
		"notify.escalate.after: -1":                       func(n *settings.Notify) { n.Escalate.After = -1 },
		"notify.escalate.to: empty":                       func(n *settings.Notify) { n.Escalate.After = 3 },
		"did you mean webhook?":                           func(n *settings.Notify) { n.Escalate = settings.Escalate{After: 3, To: []string{"webhok"}} },
		"notify.escalate.after: missing":                  func(n *settings.Notify) { n.Escalate.To = []string{"desktop"} },
		"notify.escalate.to: webhook: it is not set up":   func(n *settings.Notify) { n.Escalate = settings.Escalate{After: 3, To: []string{"webhook"}} },
		"notify.webhook.method: \"GET\": want POST, PUT ": func(n *settings.Notify) { n.Webhook = settings.Webhook{URL: "https://x", Method: "GET"} },
	} {
		s := settings.Default()
		change(&s.Notify)
		if err := errors.Join(s.Check()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// TestNoticesNameTheTask: a child run's question names its task and its parent, and below them the
// run.
func TestNoticesNameTheTask(t *testing.T) {
	b := newBench(t, gateSpec)
	j := b.asks(engine.NoticeHuman)
	j.RunInfo.Child = &engine.ChildOf{Parent: "goal-1", Step: "work", Task: "T2", Try: 1, Body: []byte(`{"id": "T2", "title": "mend the \u001b[31mindex"}`)}
	n := b.e.Notice(j)
	wantText(t, "the notice", n.Title+"\n"+n.Body, "decision on A of T2 of goal-1 is needed", "It is the run w-1, for the task: mend the index", "--run w-1")
	j.Notice.Kind, j.Notice.Step, j.Notice.Gate = engine.NoticePaused, "", ""
	j.RunInfo.Child.Task, j.RunInfo.Child.Step = "", "call"
	n = b.e.Notice(j)
	wantText(t, "the notice", n.Title+"\n"+n.Body, "call of goal-1 is paused", "It is the run w-1.", "sluice resume w-1")
	j.RunInfo.Child = nil
	wantText(t, "the notice", b.e.Notice(j).Title, "w-1 is paused")
}
