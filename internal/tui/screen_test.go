package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/render"
	"sluice/tools/conform"
)

// TestWhatWaitsIsFirst: what stands still for a person, then what goes on by itself soon, then offers and pauses; each with
// a sign, its run and its time.
func TestWhatWaitsIsFirst(t *testing.T) {
	s := newSit(t, 100, 30)
	window := func(id string, left time.Duration) daemon.RunStatus {
		g := daemon.GateStatus{ID: "N", Level: "notify", State: engine.OnWindow, Round: 1, Until: s.at.Add(left), Score: new(0.75)}
		return s.run(id, g)
	}
	old, late := s.run("w-1", human(1)), s.run("w-2", human(2))
	old.Steps[0].Summary = "wrote the first test"
	late.Waits[0].Since, late.Steps[0].Gates[0].Count, late.Steps[0].Summary = s.at.Add(-time.Second), 1, "all 12 tests pass"
	offer := s.run("w-5", daemon.GateStatus{ID: "X"})
	offer.Waits = []daemon.Wait{{Kind: "offer", Step: "A", Since: s.at}}
	paused := s.run("w-6", daemon.GateStatus{ID: "X"})
	paused.Paused, paused.Waits = "budget", []daemon.Wait{{Kind: "paused"}}
	s.repo1(true, paused, offer, window("w-3", 50*time.Second), window("w-4", 20*time.Second), late, old)
	want := []string{
		"sluice ? 4 for you · 6 live of 6 runs",
		"waits for you (6)",
		"› ? G review of w-1 asks you · 1m00s · “wrote the first test”",
		"  ? G review of w-2 asks you · 1s · failed 1/3",
		"  ‖ N of w-4 goes on in 20s unless you veto · score 0.75",
		"  ‖ N of w-3 goes on in 50s unless you veto · score 0.75",
		"  ? A write it of w-5 is on offer: `sluice next` · 0s",
		"  ‖ w-6 is paused: budget",
		"app · 6 live, 0 ended · trust file · /x/app",
	}
	got := strings.Split(s.shows(), "\n")
	for i := range want {
		if line := strings.TrimRight(got[i], " "); line != want[i] {
			t.Errorf("line %d: %q, want %q", i+1, line, want[i])
		}
	}
	s.types("<tab><tab>")
	s.sees(`^› ‖ N of w-4`)
	s.types("g<tab><tab><tab><tab><tab><tab>")
	s.sees(`^› \? G review of w-1`)
}

// TestReposOfOneName: repos whose folders have the same name are shown with different names.
func TestReposOfOneName(t *testing.T) {
	all := []string{"/home/ann/app", "/home/bob/app", "/srv/home/bob/app", "/home/ann/lib", "/app", "/home/ann/my-lib"}
	want := []string{"ann/app", "/home/bob/app", "srv/home/bob/app", "lib", "/app", "my-lib"}
	for i, root := range all {
		if got := nameOf(root, all); got != want[i] {
			t.Errorf("%s is called %q, want %q", root, got, want[i])
		}
	}
	s := newSit(t, 100, 30)
	s.tell(reposSeen{roots: []string{"/a/app"}})
	s.tell(reposSeen{roots: []string{"/a/app", "/b/app"}})
	if s.repos[0].name != "a/app" || s.repos[1].name != "b/app" {
		t.Errorf("%q and %q", s.repos[0].name, s.repos[1].name)
	}
}

// TestFoldAndFilter: a run folds and unfolds, and the filter looks in names of repos, runs, states, steps and gates.
func TestFoldAndFilter(t *testing.T) {
	s := newSit(t, 80, 24)
	done := s.run("old-1", daemon.GateStatus{ID: "Z", Name: "last look", State: engine.Approved, ByKind: "reviewer"})
	done.Phase, done.Ended, done.Steps[0].State = engine.RunCompleted, s.at.Add(-time.Hour), engine.Passed
	s.repo1(true, done, s.run("new-1", daemon.GateStatus{ID: "G"}))
	s.sees(`^› ▸ new-1`, `^    ▸ A write it`, `^  ✓ old-1 +completed 1/1 +1h00m ago`)
	s.types("<left>")
	s.misses(`A write it`)
	s.types("<right>")
	s.sees(`^    ▸ A write it`)
	s.types("G<right>")
	s.sees(`^    ✓ A write it`, `^      ✓ Z last look +passed +by its reviewer`)
	s.types("<down><down><left>")
	s.sees(`^› ✓ old-1`)
	s.misses(`Z last look`)
	s.types("/last COMPLETED")
	s.sees(`^/last COMPLETED▏`, `old-1`)
	s.misses(`new-1`)
	s.types("<enter>")
	s.sees(`· /last COMPLETED`)
	s.types("/zzz<enter>")
	s.sees(`no run matches the filter`)
	s.types("<esc>")
	s.sees(`new-1`, `old-1`)
}

// TestHostileText: what an agent, a file or a spec says is drawn as text, whatever is in it.
func TestHostileText(t *testing.T) {
	const evil = "\x1b]0;owned\a\x1b[2J\x1b[31mred\x1b[0m \u202egnp\u202c\u200b\x00\r\nfake ? line\tend\x9b2K\x7f"
	s := newSit(t, 100, 30)
	g := human(1)
	g.Name, g.Why, g.Feedback = evil, evil, evil
	r := s.run("w-1", g)
	r.Name, r.Paused, r.EndWhy, r.Near = evil, evil, evil, []string{evil}
	r.Waits = append(r.Waits, daemon.Wait{Kind: "paused", Text: evil})
	r.Steps[0].Name, r.Steps[0].Summary, r.Steps[0].Failure, r.Steps[0].Role = evil, evil, evil, evil
	r.Steps[0].State = engine.Running
	s.desk.words["/x/"+evil+" w-1 A"] = evil
	past := s.run("w-2", daemon.GateStatus{ID: "G", Name: evil, State: engine.Refused, ByKind: "human", By: &engine.Actor{Who: evil, Via: evil}, Feedback: evil})
	past.EndWhy, past.Steps[0].State, past.Steps[0].Summary, past.Steps[0].Role = evil, engine.Passed, evil, evil
	past.Waits = []daemon.Wait{{Kind: "offer", Step: "A", Text: evil}}
	s.tell(reposSeen{roots: []string{"/x/" + evil}, note: evil}, repoSeen{root: "/x/" + evil, served: true, whole: true,
		status: daemon.Status{Trust: "file", Health: []string{evil}, Stalled: evil, Runs: []daemon.RunStatus{r, past}}})
	s.desk.done.Ignored = evil
	s.at = s.at.Add(time.Minute)
	for _, keys := range []string{"", "p", "<enter>", "<esc>", "t", "<esc>", "a", "n", "f" + evil, "<esc>", "/" + evil, "<enter>"} {
		s.types(keys)
		for _, line := range s.screen() {
			text := line
			for _, style := range []string{"0", "1", "2", "7", "31", "32", "33", "36", "1;33"} {
				text = strings.ReplaceAll(text, "\x1b["+style+"m", "")
			}
			if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e || r == 0x200b }); i >= 0 {
				t.Fatalf("after %q: %q", keys, line)
			}
		}
	}
}

// TestWordsAreEdited: the cursor moves, lines are many, what is pasted is text, and there is a most.
func TestWordsAreEdited(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.soon()
	s.decides("f<enter>")
	s.sees("write a few words")
	s.types("tow<left><backspace><backspace>xo<right><right>!<home>Go <end><ctrl+j>second q ? lien<left><left><delete><right>e<up>^<ctrl+e>")
	s.types("<down><down>.")
	s.tell(tea.PasteMsg{Content: "\x1b[31mpasted\r\np q\x07"})
	s.decides("<enter>")
	if !s.did(answered("w-1", 1, "fail", "Go xow!^\nsecond q ? line.[31mpasted\np q")) {
		t.Errorf("%+q", s.last())
	}
	s.decides("f")
	s.types("one two  three<ctrl+w><ctrl+w>" + "é日本")
	s.decides("<enter>")
	if !s.did(answered("w-1", 1, "fail", "one é日本")) {
		t.Errorf("%+q", s.last())
	}
	s.decides("f")
	s.types("gone<ctrl+u>kept<esc>")
	s.sees("nothing was decided")
	n := len(s.desk.asked)
	s.decides("f<ctrl+u>")
	s.tell(tea.PasteMsg{Content: strings.Repeat("x", engine.MaxFeedback+1)}, tea.PasteMsg{Content: "fits"})
	s.decides("<enter>")
	if len(s.desk.asked) != n+1 || !s.did(answered("w-1", 1, "fail", "fits")) {
		t.Errorf("%d events; %.40q", len(s.desk.asked)-n, s.last().(engine.Answered).Text)
	}
	s.tell(tea.PasteMsg{Content: "p\ny\n"}) // at the list: no keys
	if len(s.desk.asked) != n+1 {
		t.Errorf("what was pasted at the list decided: %+v", s.last())
	}
}

// TestDecideByName: a gate with routes of its own takes them, and no others.
func TestDecideByName(t *testing.T) {
	s := newSit(t, 100, 24)
	g := human(1)
	g.Outcomes = []string{"pass", "fail", "veto", "replan"}
	s.repo1(true, s.run("w-1", g))
	s.soon()
	s.sees(`^p pass · f fail · c comment · d decide`)
	s.decides("d")
	s.types("replna why")
	s.decides("<enter>")
	s.sees(`the gate has no outcome replna: it takes pass, fail, veto, replan`)
	s.types("<esc>")
	s.decides("d<ctrl+u>")
	s.types("replan the plan misses it")
	s.decides("<enter>")
	if !s.did(answered("w-1", 1, "replan", "the plan misses it")) {
		t.Errorf("%+v", s.last())
	}
}

// TestLateVeto: a reviewer's pass can be vetoed only at its gate, while its run is live.
func TestLateVeto(t *testing.T) {
	s := newSit(t, 80, 24)
	r := s.run("w-1", daemon.GateStatus{ID: "G", State: engine.Approved, Round: 4, ByKind: "window"})
	s.repo1(true, r)
	s.soon()
	s.types("v")
	s.sees("there is no pass to veto here")
	s.types("<down><down>")
	s.sees(`^›     ✓ G`, `^v veto`)
	s.decides("v")
	s.types("late")
	s.decides("<enter>")
	if !s.did(answered("w-1", 4, "veto", "late")) {
		t.Errorf("%+v", s.last())
	}
	r.Phase = engine.RunCompleted
	s.repo1(false, r)
	n := len(s.desk.asked)
	s.decides("v")
	s.types("foo")
	s.decides("<enter>")
	if len(s.desk.asked) != n {
		t.Errorf("of a run that has ended: %+v", s.last())
	}
}

// TestLastWords: an agent that works is heard in its row, and on a page of its own.
func TestLastWords(t *testing.T) {
	s := newSit(t, 80, 12)
	r := s.run("w-1", daemon.GateStatus{ID: "G", State: engine.OnReview, Round: 1})
	r.Steps[0].State = engine.Running
	s.desk.words["/x/app w-1 A"], s.desk.words["/x/app w-1 G"] = "reading main.go", "judging"
	s.repo1(true, r)
	s.tell(tick{s.ticks})
	s.sees(`A write it .*“reading main.go”`, `G .*“judging”`)
	s.desk.tails = []string{"\x1b[36m▸ Bash\x1b[0m " + strings.Repeat("long ", 40), "the end"}
	s.types("t")
	s.sees(`^▸ Bash long`, `^the end`, `^── output of A in w-1`)
	for range 40 {
		s.desk.tails = append(s.desk.tails, "more")
	}
	s.types("<esc>t")
	s.sees(`^more`)
	s.types("g")
	s.sees(`^▸ Bash long`)
	s.desk.err = errors.New("no output yet of w-1 A")
	s.types("<esc>")
	s.sees(`^› ▸ w-1`)
}

// TestSpend: usage and limits of each run and of the day, whichever repo reported last.
func TestSpend(t *testing.T) {
	s := newSit(t, 110, 24)
	r := s.run("w-1", daemon.GateStatus{ID: "G"})
	r.Usage, r.Budget, r.Near = engine.Usage{Tokens: 1200, CostUSD: 0.5}, engine.Usage{CostUSD: 2}, []string{"cost 90%"}
	day := func(day string, tokens int64) daemon.Today {
		return daemon.Today{Day: day, All: engine.Spend{Usage: engine.Usage{Tokens: tokens, CostUSD: 3.4}}, Budget: engine.Spend{Usage: engine.Usage{CostUSD: 20}}}
	}
	s.tell(reposSeen{roots: []string{"/x/lib", "/x/app", "/x/old"}},
		repoSeen{root: "/x/old", served: true, whole: true, status: daemon.Status{Today: day("2026-11-21", 10)}},
		repoSeen{root: "/x/lib", served: true, whole: true, status: daemon.Status{Today: day("2026-11-20", 9_000_000)}},
		repoSeen{root: "/x/app", served: true, whole: true, status: daemon.Status{Today: day("2026-11-21", 5000), Runs: []daemon.RunStatus{r}}})
	s.sees(`^sluice 1 live of 1 run · 3 repos · today 3.40 of 20.00 USD, 5000 tokens`, `▸ w-1 +running +0/1 +2m00s +0.50 of 2.00 USD, 1200 tokens  near its budget: cost 90%`)
}

// TestColours: sixteen colours, none of them alone; on a light background those that can be read there.
func TestColours(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)), s.run("w-2", daemon.GateStatus{ID: "G"}))
	s.types("<down>")
	dark := strings.Join(s.screen(), "\n")
	if !strings.Contains(dark, "\x1b[33m? ") || !strings.Contains(dark, "\x1b[7m› ") {
		t.Errorf("%q", dark)
	}
	s.tell(tea.BackgroundColorMsg{Color: white{}})
	light := strings.Join(s.screen(), "\n")
	if strings.Contains(light, "33m") || strings.Contains(light, "36m") || !strings.Contains(light, "\x1b[35m? ") {
		t.Errorf("%q", light)
	}
	if ansi.Strip(dark) != ansi.Strip(light) {
		t.Error("the words differ")
	}
	signs := map[string]string{}
	for _, state := range []string{engine.OnHuman, engine.OnWindow, engine.Running, engine.Passed, engine.RunFailed, engine.Skipped, engine.Superseded} {
		sign, _ := render.Mark(state)
		if other := signs[sign]; other != "" {
			t.Errorf("%s and %s have one sign: they differ by colour alone", state, other)
		}
		signs[sign] = state
	}
}

// white is a light background.
type white struct{}

func (white) RGBA() (r, g, b, a uint32) { return 0xffff, 0xffff, 0xffff, 0xffff }

// TestLeaving: q waits for a decision that is on its way; Ctrl-C does not.
func TestLeaving(t *testing.T) {
	s := newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.soon()
	s.decides("p")
	s.soon()
	_, cmd := s.Update(keyOf("enter", "<enter>")) // not carried out yet
	s.soon()
	if _, quit := s.Update(keyOf("q", "q")); quit != nil {
		t.Error("it left before the decision was taken in")
	}
	s.sees("a decision is on its way")
	if _, quit := s.Update(cmd()); quit == nil {
		t.Error("it stayed")
	}
	s = newSit(t, 80, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.decides("p")
	s.soon()
	s.Update(keyOf("enter", "<enter>"))
	if _, quit := s.Update(keyOf("ctrl+c", "")); quit == nil {
		t.Error("Ctrl-C was held up")
	}
}

// TestTheBellRingsOnce for each round that asks a person.
func TestTheBellRingsOnce(t *testing.T) {
	s := newSit(t, 80, 24)
	s.tell(reposSeen{roots: []string{"/x/app"}})
	rings := func(runs ...daemon.RunStatus) bool {
		_, cmd := s.Update(repoSeen{root: "/x/app", served: true, whole: true, status: daemon.Status{Runs: runs}})
		return slices.ContainsFunc(told(cmd), func(m tea.Msg) bool { _, ok := m.(tea.RawMsg); return ok })
	}
	for i, c := range []struct {
		runs []daemon.RunStatus
		want bool
	}{
		{[]daemon.RunStatus{s.run("w-1", human(1))}, true},
		{[]daemon.RunStatus{s.run("w-1", human(1))}, false},
		{[]daemon.RunStatus{s.run("w-1", human(1)), s.run("w-2", human(1))}, true},
		{[]daemon.RunStatus{s.run("w-1", human(2)), s.run("w-2", human(1))}, true},
		{[]daemon.RunStatus{s.run("w-2", human(1))}, false},
	} {
		if got := rings(c.runs...); got != c.want {
			t.Errorf("%d: rings %v", i, got)
		}
	}
}

// told returns the messages that a command sends at once.
func told(cmd tea.Cmd) []tea.Msg {
	if cmd == nil {
		return nil
	}
	msg := cmd()
	batch, ok := msg.(tea.BatchMsg)
	if !ok {
		return []tea.Msg{msg}
	}
	var out []tea.Msg
	for _, c := range batch {
		out = append(out, told(c)...)
	}
	return out
}

// TestTheClockHurries: the time is updated each second as soon as something runs, by one clock
// alone.
func TestTheClockHurries(t *testing.T) {
	s := newSit(t, 80, 24)
	s.Init()
	if s.pace != tickIdle {
		t.Errorf("with nothing known: %s", s.pace)
	}
	before := s.ticks
	is := func(whole bool, id string) {
		s.Update(repoSeen{root: "/x/app", served: true, whole: whole, status: daemon.Status{Runs: []daemon.RunStatus{s.run(id, daemon.GateStatus{ID: "G"})}}})
	}
	s.Update(reposSeen{roots: []string{"/x/app"}})
	is(true, "w-1")
	if s.pace != tickLive || s.ticks != before+1 {
		t.Errorf("with a run: %s, %d", s.pace, s.ticks-before)
	}
	is(false, "w-2")
	s.Update(tick{before}) // overtaken
	if s.ticks != before+1 {
		t.Errorf("%d clocks", s.ticks-before)
	}
	s.Update(tick{s.ticks})
	if s.ticks != before+2 {
		t.Errorf("it stopped: %d", s.ticks-before)
	}
}

// TestWrappedLinesKeepTheirStyle: each part of a painted line is painted whole, and none runs into what comes after it.
func TestWrappedLinesKeepTheirStyle(t *testing.T) {
	got := Wrap("\x1b[32m+abcdef\x1b[0m gh", 4)
	want := []string{"\x1b[32m+abc\x1b[0m", "\x1b[32mdef\x1b[0m ", "gh"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestAPageBreaksBetweenWords: the text of a page breaks between words and stays in its column, in its style;
// the changes below it break anywhere, so that they keep their blanks, and go on beside the column of + and -.
func TestAPageBreaksBetweenWords(t *testing.T) {
	p := &pageView{run: "w-1", text: 3, lines: []string{"G review of w-1, round 1: asks you",
		"  \x1b[2mtask      \x1b[0m  write \x1b[33mtests for search\x1b[0m now", "  \x1b[2m          \x1b[0m  second", "+one two three four five six seven"}}
	p.fit(29)
	want := []string{"G review of w-1, round 1:", "asks you", "  task        write tests for", "              search now",
		"              second", "+one two three four five s", " ↳ ix seven"}
	if got := ansi.Strip(strings.Join(p.wrapped, "\n")); got != strings.Join(want, "\n") || !strings.Contains(p.wrapped[3], "\x1b[33msearch\x1b[0m") {
		t.Errorf("%q", p.wrapped)
	}
	p.fit(20) // too narrow for a column
	if want := []string{"  task        write", "tests for search now"}; ansi.Strip(p.wrapped[2]) != want[0] || ansi.Strip(p.wrapped[3]) != want[1] {
		t.Errorf("%q", p.wrapped)
	}
	for width := 1; width < 60; width++ {
		p.fit(width)
		for _, l := range p.wrapped {
			if ansi.StringWidth(l) > width {
				t.Errorf("%d columns of %d: %q", ansi.StringWidth(l), width, l)
			}
		}
	}
}

// TestStubbedIsSaid: a run with stand-ins is marked where it waits for a person, in the list, and
// when it is over.
func TestStubbedIsSaid(t *testing.T) {
	conform.Rule(t, "6-seeds stub.shown", "top: in what waits and in the list")
	s := newSit(t, 100, 30)
	played, real, over := s.run("w-1", human(1)), s.run("w-2", human(1)), s.run("w-3", daemon.GateStatus{ID: "Z", State: engine.Approved})
	played.Stubbed, over.Stubbed = true, true
	over.Phase, over.Ended, over.Steps[0].State = engine.RunCompleted, s.at.Add(-time.Hour), engine.Passed
	s.repo1(true, over, played, real)
	s.sees(`\? G review of w-1 asks you · .*stubbed`, `▸ w-1 .*stubbed`, `✓ w-3 .*stubbed`)
	s.misses(`w-2 .*stubbed`)
}

// TestUnheldIsSaid: a run that no sandbox holds is marked where it waits and in the list.
func TestUnheldIsSaid(t *testing.T) {
	conform.Rule(t, "9-one-tree unheld", "top says it in what waits and in the list, and of a held run nothing")
	s := newSit(t, 110, 30)
	open, held := s.run("w-1", human(1)), s.run("w-2", human(1))
	open.Trust, held.Trust = engine.TrustFile, engine.TrustSandbox
	s.repo1(true, open, held)
	s.sees(`\? G review of w-1 asks you · .*trust: file \(not held\)`, `▸ w-1 .*trust: file \(not held\)`)
	s.misses(`w-2 .*not held`)
}

// TestNotPassedIsSaid: a run in which work continued without a pass is marked.
func TestNotPassedIsSaid(t *testing.T) {
	s := newSit(t, 100, 30)
	clear, through := s.run("w-1", human(1)), s.run("w-2", daemon.GateStatus{ID: "Z", State: engine.Approved})
	through.Phase, through.Ended = engine.RunCompleted, s.at.Add(-time.Hour)
	through.Unpassed, through.More = []daemon.LetThrough{{Gate: "Z"}}, 2
	s.repo1(true, through, clear)
	s.sees(`w-2 +completed.* 3 not passed$`)
	s.misses(`w-1 .*not passed`)
}

// TestARouteIsNamed: the row of a gate that sent work back names the route, as a status does.
func TestARouteIsNamed(t *testing.T) {
	s := newSit(t, 100, 30)
	s.repo1(true, s.run("w-1", daemon.GateStatus{ID: "G", Level: "auto", State: engine.ByRoute, Outcome: "replan", ByKind: "reviewer", Max: 3, Routes: map[string]int{"replan": 1}}))
	s.sees(`↷ G +replan +auto · replan 1/3 · by its reviewer$`)
}
