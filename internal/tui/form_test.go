package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
)

func asks(n int, title string) daemon.GateStatus {
	g := human(n)
	g.AnswerRequired = true
	g.AnswerSchema = json.RawMessage(fmt.Sprintf(`{"required":["name"],"properties":{"name":{"type":"string","title":%q},"replicas":{"type":"integer","default":2}}}`, title))
	return g
}

// TestTheFormOfAPass: a pass of a gate that asks for an answer asks for each property and then whether it is meant.
func TestTheFormOfAPass(t *testing.T) {
	s := newSit(t, 100, 24)
	s.repo1(true, s.run("w-1", asks(1, "Its name")))
	s.decides("p")
	s.sees(`^G #1 of \S+ asks: name, Its name \(text\)$`, `^▸ ▏`)
	s.decides("<esc>")
	s.sees(`nothing was decided`)
	s.decides("p<enter>")
	s.sees(`name is required: want text`)
	s.decides("web<enter>")
	s.sees(`^G #1 of \S+ asks: replicas \(an integer\) \[2\]$`)
	s.types("x<enter>")
	s.sees(`replicas: want an integer, found "x"`, `^▸ x▏`)
	s.types("<backspace><enter>")
	s.sees(`with name=web, replicas=2\?`)
	if !s.did(nil) {
		t.Errorf("before it was confirmed: %+v", s.last())
	}
	s.decides("<enter>")
	want := answered("w-1", 1, "pass", "")
	want.Answer = json.RawMessage(`{"name":"web","replicas":2}`)
	if !s.did(want) {
		t.Errorf("%+v", s.last())
	}
	s.decides("d") // words first
	s.types("pass good enough")
	s.decides("<enter>")
	s.sees(`asks: name`)
	s.decides("api<enter><enter><enter>")
	if ev, ok := s.last().(engine.Answered); !ok || ev.Text != "good enough" || !strings.Contains(string(ev.Answer), "api") {
		t.Errorf("%+v", s.last())
	}
}

// The form stays on the screen, however large its words and however small the screen.
func TestTheFormFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 5}, {1, 1}} {
		s := newSit(t, size[0], size[1])
		s.repo1(true, s.run("w-1", asks(1, strings.Repeat("日本語 wide ", 40))))
		s.decides("p")
		s.types(strings.Repeat("many words ", 30))
		lines := s.screen()
		if len(lines) > max(size[1], 1) {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if w := ansi.StringWidth(l); w > size[0] {
				t.Errorf("%v: %d cells: %q", size, w, l)
			}
		}
	}
}

// TestCtrlCDropsWhatIsTyped: as in a shell, the first one leaves the words, the next one the screen.
func TestCtrlCDropsWhatIsTyped(t *testing.T) {
	s := newSit(t, 100, 24)
	s.repo1(true, s.run("w-1", human(1)))
	s.decides("d")
	s.types("not yet")
	s.sees(`not yet▏`)
	s.soon()
	if _, quit := s.Update(keyOf("ctrl+c", "")); quit != nil {
		t.Fatal("it left with the words")
	}
	s.sees(`nothing was decided`)
	s.soon()
	if _, quit := s.Update(keyOf("ctrl+c", "")); quit == nil {
		t.Error("it stayed")
	}
}
