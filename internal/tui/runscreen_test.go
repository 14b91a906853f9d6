package tui

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/press"
)

// served is a host that only hears what is asked of it.
type served struct {
	RunHost
	events []engine.Event
	answer daemon.Done
	err    error
}

func (s *served) Do(_ context.Context, ev engine.Event) (daemon.Done, error) {
	s.events = append(s.events, ev)
	return s.answer, s.err
}

// Show has nothing to show.
func (s *served) Show(context.Context, daemon.RunStatus, string) (Page, error) {
	return Page{}, errors.New("no spec")
}

// at is a run that waits at gate G, of a kind.
func at(kind, state string) daemon.RunStatus {
	now := time.Now()
	return daemon.RunStatus{ID: "w-1", Workflow: "w", Name: "A workflow", Phase: engine.RunRunning, Started: now.Add(-time.Minute),
		Steps: []daemon.StepStatus{
			{ID: "X-1", Name: "write-tests", State: engine.Passed, Attempt: 2, Since: now, Role: "test-writer", Summary: strings.Repeat("long ", 50)},
			{ID: "X-2", Name: "implement", State: engine.Gating, Attempt: 1, Since: now, Role: "implementor", Gates: []daemon.GateStatus{
				{ID: "G", Name: "review", Level: "human", State: state, Round: 3, Why: "level", Count: 1, Max: 3, Feedback: "日本語のフィードバック", Until: now.Add(9 * time.Second)}}},
		},
		Waits: []daemon.Wait{{Kind: kind, Step: "X-2", Gate: "G", Since: now, Text: "G for a person"}}}
}

func newScreen(run daemon.RunStatus) (*screen, *served) {
	s := &served{}
	c := console.New(nil, nil, nil, nil)
	c.Colour = true
	return &screen{c: c, host: s, id: run.ID, run: run, rung: map[string]bool{}}, s
}

// bare is a line without its colours.
func bare(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\x1b' {
			i += strings.IndexByte(s[i:], 'm')
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// TestTheScreenFits: whatever the terminal's size, the screen has as many rows as it has, none is wider, and what one may
// type is always there.
func TestTheScreenFits(t *testing.T) {
	sc, _ := newScreen(at("human", engine.OnHuman))
	for i := range 60 {
		raw, _ := json.Marshal(map[string]any{"kind": "judged", "run": "w-1", "gate": "G", "n": i, "outcome": "fail", "feedback": strings.Repeat("日本 ", 40)})
		sc.lines = append(sc.lines, daemon.Line{Seq: int64(i), Fact: raw})
	}
	for _, size := range [][2]int{{200, 60}, {80, 24}, {60, 14}, {40, 10}, {20, 6}} {
		lines := sc.frame(size[0], size[1], time.Now())
		if len(lines) != size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if w := runewidth.StringWidth(bare(console.ClipPainted(l, size[0]-1))); w > size[0]-1 {
				t.Errorf("%v: a line of %d cells: %q", size, w, l)
			}
		}
		if last := bare(lines[len(lines)-1]); !strings.Contains(last, "p pass") {
			t.Errorf("%v: the last line is %q", size, last)
		}
	}
}

// TestNothingShownIsCutOff: a page that show fills has every word of it, in a narrow terminal too, and can be read to its end.
func TestNothingShownIsCutOff(t *testing.T) {
	sc, _ := newScreen(at("human", engine.OnHuman))
	sc.page = []string{"task", strings.Repeat("word ", 60) + "the very last"}
	seen := ""
	for range 40 {
		for _, l := range sc.frame(40, 10, time.Now())[:8] { // what is above the foot
			if w := runewidth.StringWidth(bare(l)); w > 39 {
				t.Errorf("a line of %d cells: %q", w, l)
			}
			seen += strings.TrimSuffix(strings.TrimSpace(bare(l)), "…")
		}
		sc.scroll("j")
	}
	if !strings.Contains(strings.ReplaceAll(seen, " ", ""), "theverylast") {
		t.Errorf("the end is not there: %q", seen)
	}
}

func TestTheFootSaysWhatOneMayType(t *testing.T) {
	for _, c := range []struct {
		kind, state, want string
		ours              bool
		paused            string
	}{
		{"human", engine.OnHuman, "p pass · f fail with words · s show · q leave (it goes on)", false, ""},
		{"human", engine.OnHuman, "p pass · f fail with words · s show · q pause and leave", true, ""},
		{"human", engine.OnHuman, "p pass · f fail with words · s show · q leave", true, "user"},
		{"window", engine.OnWindow, "v veto with words · s show · q leave (it goes on)", false, ""},
		{"agent", "", "s show · q pause and leave", true, ""},
		{"agent", "", "r resume · q leave", false, "user"},
	} {
		sc, _ := newScreen(at(c.kind, c.state))
		sc.ours, sc.run.Paused = c.ours, c.paused
		foot := sc.foot(80, time.Now())
		if got := bare(foot[len(foot)-1]); got != c.want {
			t.Errorf("%s: %q", c.kind, got)
		}
	}
}

// typeKeys presses keys, one string at a time, as somebody who looks at what each does.
func (sc *screen) typeKeys(t *testing.T, keys ...string) error {
	t.Helper()
	var err error
	now := sc.c.Now()
	for _, k := range keys {
		sc.c.Now = func() time.Time { return now }
		sc.frame(100, 30, now)
		now = now.Add(2 * press.Shown)
		sc.frame(100, 30, now)
		err = errors.Join(err, sc.press(t.Context(), typed{[]byte(k), now}))
	}
	return err
}

// TestKeysDecide: what is typed becomes an answer to the round that the screen shows, and nothing else does.
func TestKeysDecide(t *testing.T) {
	for _, c := range []struct {
		kind string
		keys []string
		want string
	}{
		{"human", []string{"p"}, ""},
		{"human", []string{"p", "\r"}, "pass|"},
		{"human", []string{"p", "\x1b", "\r"}, ""},
		{"human", []string{"f", "n", "o", " ", "é", "x", "\x7f", "\r"}, "fail|no é"},
		{"human", []string{"f", "wrong", "\x15", "right", "\r"}, "fail|right"},
		{"human", []string{"f", "words", "\x1b"}, ""},
		{"human", []string{"f", "\r"}, ""},
		{"human", []string{"f", "p", "p", "\x1b[A", "\r"}, "fail|pp"},
		{"human", []string{"v"}, ""},
		{"window", []string{"v", "bad tests", "\r"}, "veto|bad tests"},
		{"window", []string{"p"}, ""},
		{"window", []string{"f"}, ""},
		{"agent", []string{"p", "f", "v"}, ""},
	} {
		state := map[string]string{"human": engine.OnHuman, "window": engine.OnWindow}[c.kind]
		sc, s := newScreen(at(c.kind, state))
		if err := sc.typeKeys(t, c.keys...); err != nil {
			t.Errorf("%v: %v", c.keys, err)
		}
		got := ""
		for _, ev := range s.events {
			an := ev.(engine.Answered)
			got = an.Outcome + "|" + an.Text
			if an.Gate != "G" || an.Run != "w-1" || an.Round != 3 {
				t.Errorf("%v: %+v", c.keys, an)
			}
		}
		if got != c.want || len(s.events) > 1 {
			t.Errorf("%s %v: %q, want %q", c.kind, c.keys, got, c.want)
		}
	}
}

func TestKeysLeave(t *testing.T) {
	sc, _ := newScreen(at("human", engine.OnHuman))
	if err := sc.typeKeys(t, "q"); !errors.Is(err, ErrLeft) {
		t.Errorf("q: %v", err)
	}
	for _, before := range []string{"f", ""} { // also while words are typed
		sc, _ := newScreen(at("human", engine.OnHuman))
		if before != "" {
			_ = sc.typeKeys(t, before)
		}
		if err := sc.typeKeys(t, "\x03"); !errors.Is(err, ErrInterrupt) {
			t.Errorf("Ctrl-C: %v", err)
		}
	}
}

// TestAnswersThatDoNotCountAreTold: the person learns why a key had no effect.
func TestAnswersThatDoNotCountAreTold(t *testing.T) {
	sc, s := newScreen(at("human", engine.OnHuman))
	s.answer = daemon.Done{Ignored: "it was decided by ann"}
	_ = sc.typeKeys(t, "p", "\r")
	if !strings.Contains(sc.note, "decided by ann") {
		t.Errorf("%q", sc.note)
	}
	s.answer, s.err = daemon.Done{}, errors.New("gone")
	_ = sc.typeKeys(t, "p", "\r")
	if !strings.Contains(sc.note, "gone") {
		t.Errorf("%q", sc.note)
	}
}
