package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"sluice/daemon"
	"sluice/engine"
)

// eachKey is every key that a terminal can send here, by the name that `press` knows.
func eachKey() (out []tea.KeyPressMsg) {
	for r := ' '; r <= '~'; r++ {
		out = append(out, tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	for _, name := range strings.Fields("enter esc tab backspace up down left right home end pgup pgdown delete alt+enter") {
		out = append(out, keyOf(name, "<"+name+">"))
	}
	for r := 'a'; r <= 'z'; r++ {
		out = append(out, tea.KeyPressMsg{Code: r, Mod: tea.ModCtrl})
	}
	return append(out, tea.KeyPressMsg{Code: 'é', Text: "é"}, tea.KeyPressMsg{Code: '日', Text: "日"})
}

// presses presses a key at the screen, and says what came of it; "" = nothing.
func (s *sit) presses(k tea.KeyPressMsg) string {
	s.t.Helper()
	before, mode, page, asked := s.shows(), s.mode, s.page, len(s.desk.asked)
	_, cmd := s.Update(k)
	var out []string
	if cmd != nil {
		switch msg := cmd().(type) {
		case decided, pageSeen, lineSaid:
			s.tell(msg)
		case tea.QuitMsg:
			out = append(out, "leaves")
		case tea.SuspendMsg:
			out = append(out, "suspends")
		default:
			if name := fmt.Sprintf("%T", msg); name == "tea.execMsg" {
				out = append(out, "lends the terminal")
			}
		}
	}
	for _, ev := range s.desk.asked[asked:] {
		out = append(out, strings.TrimPrefix(fmt.Sprintf("SENDS %T", ev), "engine.")+outcomeOf(ev))
	}
	switch {
	case s.mode == asking && mode != asking:
		out = append(out, "asks: "+s.ask.text)
	case s.mode == writing && mode != writing:
		out = append(out, "asks for words: "+strings.Join(strings.Fields(s.input.verb+" "+s.input.what.gate), " "))
	case s.mode == filtering && mode != filtering:
		out = append(out, "asks for a filter")
	case s.mode == reading && s.page != page:
		out = append(out, "shows "+s.page.title)
	case s.mode != mode:
		out = append(out, "goes back")
	}
	if s.said != "" && s.saidAt.Equal(s.now()) {
		out = append(out, "says: "+s.said)
	}
	if len(out) == 0 && s.shows() != before {
		out = append(out, "moves")
		if mode == writing || mode == filtering {
			out[0] = "edits"
		}
	}
	return strings.Join(out, "; ")
}

func outcomeOf(ev engine.Event) string {
	if a, ok := ev.(engine.Answered); ok {
		return " " + a.Outcome
	}
	return ""
}

// keyStates is every state in which the screen can be, as somebody comes to it.
func keyStates() (out []struct {
	name string
	come func(t *testing.T) *sit
}) {
	add := func(name string, come func(t *testing.T) *sit) {
		out = append(out, struct {
			name string
			come func(t *testing.T) *sit
		}{name, come})
	}
	list := func(change func(r *daemon.RunStatus)) func(t *testing.T) *sit {
		return func(t *testing.T) *sit {
			s := newSit(t, 80, 24)
			r := s.run("w-1", human(1))
			change(&r)
			s.repo1(true, r)
			return s
		}
	}
	gate := func(g daemon.GateStatus) func(r *daemon.RunStatus) {
		return func(r *daemon.RunStatus) { r.Steps[0].Gates[0], r.Waits[0].Kind = g, g.State }
	}
	window, routes := human(1), human(1)
	window.State, window.Until = engine.OnWindow, time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	routes.Outcomes = []string{"pass", "fail", "veto", "replan"}
	page := func(change func(s *sit)) func(t *testing.T) *sit {
		return func(t *testing.T) *sit {
			s := list(func(*daemon.RunStatus) {})(t)
			s.desk.page = Page{Lines: strings.Split(strings.Repeat("a line\n", 60), "\n"), Gate: "G", Round: 1}
			s.desk.tails = []string{"working"}
			s.types("<enter>")
			s.soon()
			change(s)
			return s
		}
	}
	then := func(come func(t *testing.T) *sit, keys string) func(t *testing.T) *sit {
		return func(t *testing.T) *sit {
			s := come(t)
			s.decides(keys)
			return s
		}
	}
	one := func(ours bool) func(t *testing.T) *sit {
		return func(t *testing.T) *sit {
			s := newOne(t, 80, 24, ours)
			s.repo1(true, s.oneRun(human(1)))
			return s
		}
	}
	asked := list(func(*daemon.RunStatus) {})
	add("the list of no repo", func(t *testing.T) *sit { s := newSit(t, 80, 24); s.tell(reposSeen{}); return s })
	add("a gate that asks", asked)
	add("a gate with routes that asks", list(gate(routes)))
	add("a veto window", list(func(r *daemon.RunStatus) { gate(window)(r); r.Waits[0].Kind = "window" }))
	add("a step that works", then(list(func(r *daemon.RunStatus) {
		gate(daemon.GateStatus{ID: "G"})(r)
		r.Steps[0].State, r.Waits = engine.Running, nil
	}), "j"))
	add("a paused run", list(func(r *daemon.RunStatus) { gate(daemon.GateStatus{ID: "G"})(r); r.Waits, r.Paused = nil, "user" }))
	add("an ended run", list(func(r *daemon.RunStatus) {
		gate(daemon.GateStatus{ID: "G", State: engine.Approved, Round: 1, ByKind: "human"})(r)
		r.Phase, r.Waits, r.Ended = engine.RunCompleted, nil, r.Started.Add(time.Minute)
	}))
	add("a gate that asks, in a repo that nobody serves", func(t *testing.T) *sit {
		s := asked(t)
		s.tell(repoLost{"/x/app", "gone"})
		return s
	})
	add("the filter", then(asked, "/w"))
	add("the words of a fail, none yet", then(asked, "f"))
	add("the words of a fail", then(asked, "fno"))
	add("the words of a veto", then(list(func(r *daemon.RunStatus) { gate(window)(r); r.Waits[0].Kind = "window" }), "vno"))
	add("the words of an outcome that is a pass", then(asked, "dpass"))
	add("the words of a note", then(asked, "nkeep"))
	add("the question before a pass, just asked", then(asked, "p"))
	add("the question before a pass", func(t *testing.T) *sit { s := then(asked, "p")(t); s.soon(); return s })
	add("the question before an abort", func(t *testing.T) *sit { s := then(asked, "a")(t); s.soon(); return s })
	add("the form of a pass", func(t *testing.T) *sit {
		s := newSit(t, 80, 24)
		s.repo1(true, s.run("w-1", asks(1, "Its name")))
		s.decides("pweb")
		return s
	})
	add("the page of a gate that asks", page(func(*sit) {}))
	add("the page of a veto window", page(func(s *sit) {
		r := s.run("w-1", window)
		s.repo1(false, r)
		s.types("r")
	}))
	add("the page of a round that is over", page(func(s *sit) { s.repo1(false, s.run("w-1", human(2))) }))
	add("the page of a step without a gate", page(func(s *sit) { s.desk.page.Gate = ""; s.types("r") }))
	add("the output of an agent", page(func(s *sit) { s.types("t") }))
	add("the keys", page(func(s *sit) { s.types("?") }))
	add("the words of a fail, at a page", then(page(func(*sit) {}), "fno"))
	add("one run, served by another process", one(false))
	add("one run, served by this one", one(true))
	add("the page of `sluice show`", newPage)
	return out
}

// TestEachKeyOfEachState presses each key in each state. testdata/keys.txt has what comes of it, to be read. In each
// state: a pass is sent by Enter at its question alone, an abort by y at its question, a fail or a veto by Enter after
// words, and no key sends anything else but the pause of a run; every key that the last lines offer does something.
func TestEachKeyOfEachState(t *testing.T) {
	var table strings.Builder
	for _, state := range keyStates() {
		fmt.Fprintf(&table, "== %s\n", state.name)
		effects, order := map[string][]string{}, []string(nil)
		for _, k := range eachKey() {
			s := state.come(t)
			if !strings.Contains(state.name, "just asked") {
				s.soon()
			}
			s.tell(tea.FocusMsg{})
			words := s.mode == writing && s.input.words() != ""
			shown := s.shows()
			did := s.presses(k)
			s.holds(state.name, k.String(), did, shown, words)
			if did == "" {
				did = "-"
			}
			if effects[did] == nil {
				order = append(order, did)
			}
			effects[did] = append(effects[did], k.String())
		}
		for _, did := range order {
			if did != "-" {
				fmt.Fprintf(&table, "%s: %s\n", named(effects[did]), did)
			}
		}
	}
	file := filepath.Join("testdata", "keys.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != table.String() {
		t.Errorf("%s is not what the keys do (%v): go test ./internal/tui -run EachKey -rewrite, and read the diff", file, err)
	}
}

// named lists keys. If most characters are among them, it lists those that are not.
func named(keys []string) string {
	var characters, others, not []string
	for _, k := range eachKey() {
		switch k := k.String(); {
		case !slices.Contains(keys, k) && len([]rune(k)) == 1:
			not = append(not, k)
		case slices.Contains(keys, k) && len([]rune(k)) == 1:
			characters = append(characters, k)
		case slices.Contains(keys, k):
			others = append(others, k)
		}
	}
	if len(characters) > len(not) {
		characters = []string{"characters"}
		if len(not) > 0 {
			characters[0] += " but " + strings.Join(not, " ") + ","
		}
	}
	return strings.Join(append(characters, others...), " ")
}

// holds checks what a key did in a state against what any key may do.
func (s *sit) holds(state, k, did, shown string, words bool) {
	s.t.Helper()
	wrong := func(what string) { s.t.Errorf("%s: %s: %s %s at\n%s", state, k, did, what, shown) }
	for sent := range strings.SplitSeq(did, "; ") {
		kind, ok := strings.CutPrefix(sent, "SENDS ")
		switch {
		case !ok:
		case kind == "engine.Answered pass" && (k != "enter" || !strings.Contains(shown, "Enter passes it")):
			wrong("passes without its question")
		case strings.HasPrefix(kind, "engine.Answered ") && kind != "engine.Answered pass" && (k != "enter" || !words):
			wrong("decides without words")
		case kind == "engine.NoteGiven" && (k != "enter" || !words):
			wrong("sends a note without words")
		case kind == "engine.AbortRequested" && (!strings.EqualFold(k, "y") || !strings.Contains(shown, "End w-1 for good?")):
			wrong("aborts without its question")
		case strings.Contains(state, "nobody serves"):
			wrong("goes to nobody")
		case (kind == "engine.PauseRequested" || kind == "engine.ResumeRequested") && k != "P":
			wrong("pauses")
		}
	}
	if strings.Contains(state, "nobody serves") && strings.HasPrefix(did, "asks") && k != "/" {
		wrong("asks what nobody can do")
	}
	lines := strings.Split(strings.TrimRight(shown, "\n"), "\n")
	offers := regexp.MustCompile(`(?m)(?:^| · )(\S+) (?:pass|fail|veto|comment|decide|show|tail|note|pause|resume|abort|fold|filter|help|quit|leave|back|again|since)\b`)
	names := map[string]string{"⏎": "enter"}
	for _, m := range offers.FindAllStringSubmatch(strings.Join(lines[max(len(lines)-2, 0):], "\n"), -1) {
		name := m[1]
		if n, special := names[name]; special {
			name = n
		}
		if name == k && did == "" {
			wrong("is offered, and does nothing")
		}
	}
}
