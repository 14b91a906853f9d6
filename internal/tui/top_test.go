package tui

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/press"
)

// desk is a host whose contents the tests set.
type desk struct {
	mu      sync.Mutex
	asked   []engine.Event // what a person wanted
	done    daemon.Done
	err     error
	signErr error
	page    Page
	words   map[string]string
	tails   []string

	comments Comments
}

func (d *desk) Repos(context.Context) ([]string, string, error) { return nil, "", nil }
func (d *desk) Open(context.Context, string) (View, bool, error) {
	return nil, false, errors.New("not here")
}
func (d *desk) Served(context.Context, string) bool { return false }
func (d *desk) Do(_ context.Context, _ string, ev engine.Event) (daemon.Done, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, ev)
	return d.done, d.err
}
func (d *desk) Sign(_ context.Context, _ string, g daemon.GateStatus, ev engine.Answered) (string, error) {
	return "signed " + ev.Outcome + " over " + g.Reviewed, d.signErr
}
func (d *desk) Show(context.Context, string, string, string, bool) (Page, error) {
	return d.page, d.err
}
func (d *desk) Graph(context.Context, string, string) (func(daemon.RunStatus) string, error) {
	return func(r daemon.RunStatus) string { return "graph of " + r.ID }, nil
}
func (d *desk) Comment(_ context.Context, _, run, gate, outcome string) (Comments, error) {
	d.words["commented"] = run + " " + gate + " " + outcome
	return d.comments, d.err
}
func (d *desk) Pager(_ context.Context, _, run, what string, since bool) error {
	d.words["paged"] = fmt.Sprint(run, " ", what, " ", since)
	return d.err
}
func (d *desk) Words(_ context.Context, root, run, what string) string {
	return d.words[root+" "+run+" "+what]
}
func (d *desk) Tail(_ context.Context, _, _, _ string, say func(string)) error {
	for _, l := range d.tails {
		say(l)
	}
	return nil
}

// sit is a screen with its host and a clock that stands.
type sit struct {
	t *testing.T
	*Model
	desk *desk
	at   time.Time
	sent []any
}

// soon lets the time pass in which something is new on the screen.
func (s *sit) soon() { s.at = s.at.Add(press.Shown) }

func newSit(t *testing.T, width, height int) *sit {
	s := &sit{t: t, desk: &desk{words: map[string]string{}}, at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	s.Model = newModel(t.Context(), s.desk, func() time.Time { return s.at }, func(msg any) { s.sent = append(s.sent, msg) })
	s.wake = func(time.Duration) tea.Cmd { return nil }
	s.pace = 1 // nothing hurries it: the clock is the test's
	s.tell(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

// tell has messages taken in, and what they ask for carried out.
func (s *sit) tell(msgs ...tea.Msg) {
	s.t.Helper()
	for _, msg := range msgs {
		_, cmd := s.Update(msg)
		s.carry(cmd)
	}
	for len(s.sent) > 0 {
		msg := s.sent[0]
		s.sent = s.sent[1:]
		s.tell(msg)
	}
}

// carry carries out a command that is done at once.
func (s *sit) carry(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			s.carry(c)
		}
	case decided, pageSeen, lineSaid, wordsSeen:
		s.tell(msg)
	case tea.QuitMsg:
		s.leaving = true
	}
}

// types presses keys: names of keys in <>, all else a letter each.
func (s *sit) types(keys string) {
	s.t.Helper()
	for _, k := range regexp.MustCompile(`<[^>]+>|.`).FindAllString(keys, -1) {
		s.at = s.at.Add(press.Apart)
		s.tell(keyOf(strings.Trim(k, "<>"), k))
	}
}

// decides types keys as somebody does who looks at the screen before each.
func (s *sit) decides(keys string) {
	s.t.Helper()
	for _, k := range regexp.MustCompile(`<[^>]+>|.`).FindAllString(keys, -1) {
		s.soon()
		s.types(k)
	}
}

func keyOf(name, raw string) tea.KeyPressMsg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab, "backspace": tea.KeyBackspace,
		"left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "delete": tea.KeyDelete}
	if raw == name {
		return tea.KeyPressMsg{Code: []rune(raw)[0], Text: raw}
	}
	var mod tea.KeyMod
	if rest, ok := strings.CutPrefix(name, "alt+"); ok {
		mod, name = tea.ModAlt, rest
	}
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		mod, name = tea.ModCtrl, rest
	}
	if code, ok := special[name]; ok {
		return tea.KeyPressMsg{Code: code, Mod: mod}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Mod: mod}
}

// shows is the screen as plain text.
func (s *sit) shows() string { return ansi.Strip(strings.Join(s.screen(), "\n")) }

func (s *sit) sees(patterns ...string) {
	s.t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(s.shows()) {
			s.t.Errorf("the screen does not show %q:\n%s", p, s.shows())
		}
	}
}

func (s *sit) misses(pattern string) {
	s.t.Helper()
	if regexp.MustCompile("(?m)" + pattern).MatchString(s.shows()) {
		s.t.Errorf("the screen shows %q:\n%s", pattern, s.shows())
	}
}

// last is what the person wanted last.
func (s *sit) last() engine.Event {
	if n := len(s.desk.asked); n > 0 {
		return s.desk.asked[n-1]
	}
	return nil
}

// did reports whether the event was asked for last.
func (s *sit) did(ev engine.Event) bool { return reflect.DeepEqual(s.last(), ev) }

func (s *sit) run(id string, gate daemon.GateStatus) daemon.RunStatus {
	step := daemon.StepStatus{ID: "A", Name: "write it", State: engine.Gating, Attempt: 1, Since: s.at.Add(-time.Minute), Gates: []daemon.GateStatus{gate}}
	r := daemon.RunStatus{ID: id, Workflow: "w", Name: "w", Phase: engine.RunRunning, Started: s.at.Add(-2 * time.Minute), Steps: []daemon.StepStatus{step}}
	switch gate.State {
	case engine.OnHuman:
		r.Waits = []daemon.Wait{{Kind: "human", Step: "A", Gate: gate.ID, Since: s.at.Add(-time.Minute), Text: "for a person"}}
	case engine.OnWindow:
		r.Waits = []daemon.Wait{{Kind: "window", Step: "A", Gate: gate.ID, Since: s.at.Add(-time.Minute), Until: gate.Until, Text: "for a veto"}}
	}
	return r
}

func human(n int) daemon.GateStatus {
	return daemon.GateStatus{ID: "G", Name: "review", Level: "human", State: engine.OnHuman, Round: n, Why: "level", Max: 3}
}

func (s *sit) repo1(whole bool, runs ...daemon.RunStatus) {
	s.tell(reposSeen{roots: []string{"/x/app"}}, repoSeen{root: "/x/app", served: true, whole: whole, status: daemon.Status{Root: "/x/app", Trust: "file", Runs: runs}})
}

func answered(run string, round int, outcome, text string) engine.Answered {
	return engine.Answered{Gate: "G", Run: run, Round: round, Outcome: outcome, Text: text}
}

// TestDecisions: each key asks for the event that its command asks for, bound to the run and the round that are shown.
func TestDecisions(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(2)))
	s.at = s.at.Add(time.Second)
	s.sees(`^› \? G review of w-1 asks you`, `^sluice \? 1 for you · 1 live of 1 run`, `^p pass · f fail`)
	s.decides("p<enter>")
	if !s.did(answered("w-1", 2, "pass", "")) {
		t.Errorf("p: %+v", s.last())
	}
	s.sees(`^pass of G: taken in`)
	s.decides("f")
	s.types("no <alt+enter>way")
	s.decides("<enter>")
	if !s.did(answered("w-1", 2, "fail", "no \nway")) {
		t.Errorf("f: %+v", s.last())
	}
	s.types("v")
	s.sees(`G asks a person: there is no pass to veto here`)
	gate := human(3)
	gate.State, gate.Until = engine.OnWindow, s.at.Add(42*time.Second)
	s.repo1(false, s.run("w-1", gate))
	s.at = s.at.Add(time.Second)
	s.sees(`‖ G review of w-1 goes on in 41s unless you veto`, `^v veto`)
	s.decides("v")
	s.types("bad")
	s.decides("<enter>")
	if !s.did(answered("w-1", 3, "veto", "bad")) {
		t.Errorf("v: %+v", s.last())
	}
	s.decides("P")
	if !s.did((engine.PauseRequested{Run: "w-1"})) {
		t.Errorf("P: %+v", s.last())
	}
	n := len(s.desk.asked)
	s.types("an")
	s.sees("nothing was done")
	if len(s.desk.asked) != n {
		t.Errorf("a, n: %+v", s.last())
	}
	s.types("a")
	s.sees(`^End w-1 for good\? y yes`)
	s.decides("y")
	if !s.did((engine.AbortRequested{Run: "w-1"})) {
		t.Errorf("a, y: %+v", s.last())
	}
	r := s.run("w-1", gate)
	r.Paused = "user"
	s.repo1(false, r)
	s.decides("P")
	if !s.did((engine.ResumeRequested{Run: "w-1"})) {
		t.Errorf("P of a paused run: %+v", s.last())
	}
}

// TestWhatCameOfIt: the second person is informed, and so is one whose decision was not taken in.
func TestWhatCameOfIt(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.soon()
	s.desk.done.Ignored = "round 1 of G was passed by ann (desktop)"
	s.decides("p<enter>")
	s.sees(`pass of G did not count: round 1 of G was passed by ann`)
	s.desk.err = errors.New("no sluice process answers")
	s.decides("p<enter>")
	s.sees(`pass of G was not accepted: no sluice process answers`)
	s.tell(repoLost{"/x/app", "the process that served it is gone"})
	n := len(s.desk.asked)
	s.types("p")
	s.sees(`! app: no answer for 0s, trying again`, `nobody serves app now, so nothing was done`)
	if len(s.desk.asked) != n {
		t.Error("a decision was sent to nobody")
	}
}

// TestWordsOutliveTheDaemon: what was typed while the daemon went stays, and counts when one is there again.
func TestWordsOutliveTheDaemon(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.soon()
	s.types("f")
	s.types("no tests")
	s.tell(repoLost{"/x/app", "the process that served it is gone"})
	s.waits(time.Minute).types("<enter>")
	s.sees("nobody serves app now, so nothing was done", "^  no tests")
	s.repo1(true, s.run("w-1", human(1)))
	s.waits(time.Minute).types("<enter>")
	if !s.did(answered("w-1", 1, "fail", "no tests")) {
		t.Errorf("%+v", s.last())
	}
}

// TestWordsThatDidNotCount are there again at the same gate, and gone once they have counted.
func TestWordsThatDidNotCount(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.soon()
	s.types("f")
	s.types("no tests")
	s.decides("<esc>")
	s.sees("nothing was decided; your words are kept")
	s.desk.done.Ignored = "round 1 of G was failed by ann (desktop)"
	s.decides("f<enter>")
	s.sees("did not count: round 1 of G was failed by ann")
	s.desk.done.Ignored = ""
	s.repo1(false, s.run("w-1", human(2)))
	s.soon()
	s.decides("f")
	s.sees("^  no tests")
	s.decides("<enter>")
	if !s.did(answered("w-1", 2, "fail", "no tests")) {
		t.Errorf("%+v", s.last())
	}
	s.decides("f<enter>")
	s.sees("write a few words")
	s.decides("<esc>n")
	if screen := s.shows(); strings.Contains(screen, "no tests") {
		t.Errorf("words of a fail in a note:\n%s", screen)
	}
}

// TestARowThatJustChanged takes no decision: what is under the cursor was not read yet.
func TestARowThatJustChanged(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)), s.run("w-2", human(1)))
	s.types("<down>")
	s.sees(`^› \? G review of w-2`)
	s.repo1(false, s.run("w-2", human(2)))
	s.types("p")
	s.sees("it has only just appeared: look at it, then press p once")
	if !s.did(nil) {
		t.Errorf("it was taken: %+v", s.last())
	}
	s.decides("p<enter>")
	if !s.did(answered("w-2", 2, "pass", "")) {
		t.Errorf("%+v", s.last())
	}
	s.repo1(true, s.run("w-0", human(1)), s.run("w-00", human(1)), s.run("w-2", human(2)), s.run("w-3", human(1))) // new ones above: the cursor stays with its own
	s.sees(`^› \? G review of w-2`)
	s.at = s.at.Add(time.Second)
	s.repo1(true, s.run("w-0", human(1))) // it is gone: what is there now is another
	s.types("p")
	s.sees("it has only just appeared", `^› \? G review of w-0`)
	working := s.run("w-0", daemon.GateStatus{ID: "G"})
	s.repo1(true, working)
	s.sees(`^› ▸ w-0`)
	s.repo1(true, s.run("w-0", human(2))) // nothing waited, and now something does: the cursor is there
	s.sees(`^› \? G review of w-0`)
}

// TestAPauseThatJustCame: P, pressed to pause a run that pauses by itself at that moment, does not resume it.
func TestAPauseThatJustCame(t *testing.T) {
	for _, open := range []string{"", "<enter>"} {
		s := newSit(t, 80, 24)
		s.repo1(true, s.run("w-1", human(1)))
		s.desk.page = Page{Lines: []string{"task  write it"}, Gate: "G", Round: 1}
		s.types(open)
		s.at = s.at.Add(time.Hour)
		paused := s.run("w-1", human(1))
		paused.Paused = "budget"
		s.repo1(false, paused)
		s.types("P")
		s.sees("it has only just appeared: look at it, then press P once")
		if !s.did(nil) {
			t.Errorf("%q: %+v", open, s.last())
		}
		s.decides("P")
		if !s.did(engine.ResumeRequested{Run: "w-1"}) {
			t.Errorf("%q: %+v", open, s.last())
		}
	}
}

// TestThePageBindsTheRound: what is decided on a page is about what the page shows; of a round that is over nothing is.
func TestThePageBindsTheRound(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.desk.page = Page{Lines: []string{"task  write it", "\x1b[32m+hello\x1b[0m"}, Gate: "G", Round: 1}
	s.types("<enter>")
	s.sees(`^task  write it`, `^\+hello`, `^p pass · f fail`)
	s.repo1(false, s.run("w-1", human(2)))
	s.sees(`! G is at round 2 by now: r shows it`)
	s.decides("p")
	s.sees(`^G is at round 2 by now, so nothing was decided: r shows it`)
	if !s.did(nil) {
		t.Errorf("%+v", s.last())
	}
	s.desk.page.Round = 2
	s.types("r")
	s.decides("p<enter>")
	if !s.did(answered("w-1", 2, "pass", "")) {
		t.Errorf("%+v", s.last())
	}
	s.types("<esc>")
	s.sees(`^› \? G review`)
}

// TestSizes: whatever the size, the screen is as tall as the terminal at most, and no line is wider.
func TestSizes(t *testing.T) {
	long := strings.Repeat("日本語 wide ", 30)
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 5}, {1, 1}, {0, 0}, {300, 100}} {
		s := newSit(t, size[0], size[1])
		var runs []daemon.RunStatus
		for i := range 30 {
			g := human(1)
			g.Name, g.Feedback = long, long
			r := s.run(fmt.Sprintf("w-%d", i), g)
			r.Steps[0].Name, r.Steps[0].Summary, r.EndWhy = long, long, long
			runs = append(runs, r)
		}
		s.repo1(true, runs...)
		s.desk.page = Page{Lines: slices.Repeat([]string{"\x1b[32m" + long + "\x1b[0m"}, 50), Gate: "G", Round: 1}
		for _, keys := range []string{"", "<down><down>", "G", "g", "<pgdown>", "<enter>", "G", "f" + long + "<alt+enter>" + long, "<esc>", "<esc>", "?", "G", "<esc>", "/w-2", "<esc>", "a", "n", "p", "<esc>", "d", "<esc>"} {
			s.soon()
			s.types(keys)
			lines := s.screen()
			if len(lines) > max(size[1], 1) {
				t.Errorf("%v after %q: %d lines", size, keys, len(lines))
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > max(size[0], 0) {
					t.Errorf("%v after %q: %d cells: %q", size, keys, w, l)
				}
			}
		}
	}
}

// TestSigned: at a gate that wants it, an answer goes out with its proof, and not without.
func TestSigned(t *testing.T) {
	s := newSit(t, 80, 24)
	g := human(1)
	g.Trust, g.Reviewed = engine.TrustSigned, "sha256:12"
	s.repo1(true, s.run("w-1", g))
	s.soon()
	sign := func() {
		t.Helper()
		s.decides("p")
		s.soon()
		_, cmd := s.Update(keyOf("enter", "<enter>"))
		if cmd == nil || s.pending != 0 || !s.did(nil) {
			t.Fatalf("it was sent before it was signed: %+v", s.last())
		}
		proof, err := s.desk.Sign(t.Context(), "", g, engine.Answered{Outcome: "pass"})
		s.tell(signed{root: "/x/app", what: "pass of G", ev: engine.Answered{Gate: "G", Run: "w-1", Round: 1, Outcome: "pass", Proven: engine.Proven{Proof: proof}}, err: err})
	}
	s.desk.signErr = errors.New("no key is at hand")
	sign()
	s.sees("pass of G was not signed: no key is at hand")
	s.desk.signErr = nil
	sign()
	if ev, ok := s.last().(engine.Answered); !ok || ev.Proof != "signed pass over sha256:12" {
		t.Errorf("%+v", s.last())
	}
	s.sees("pass of G: taken in")
}

// TestChildRunsAreNamed: what a task's run waits for, and the run itself, say whose task it is.
func TestChildRunsAreNamed(t *testing.T) {
	s := newSit(t, 140, 30)
	kid := daemon.RunStatus{ID: "goal-1.T2.2", Workflow: "task", Phase: engine.RunRunning, Started: s.at, Child: &engine.ChildOf{Parent: "goal-1", Step: "work", Task: "T2", Try: 2},
		Steps: []daemon.StepStatus{{ID: "code", State: engine.Gating, Gates: []daemon.GateStatus{{ID: "G", Level: "human", State: engine.OnHuman, Why: "level", Round: 1}}}},
		Waits: []daemon.Wait{{Kind: "human", Step: "code", Gate: "G", Since: s.at}}}
	s.tell(reposSeen{roots: []string{"/r"}}, repoSeen{root: "/r", served: true, whole: true, status: daemon.Status{Runs: []daemon.RunStatus{kid}}})
	if n := strings.Count(s.shows(), "T2 of goal-1, try 2"); n != 2 {
		t.Errorf("it is named %d times:\n%s", n, s.shows())
	}
}
