//go:build linux

package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sluice/engine"
	"sluice/tools/conform"
)

// byPage reports whether a person decided it on the page.
func byPage(by *engine.Actor) bool { return by != nil && by.Via == "page" && by.Who != "" }

// stays marks the page, so that a load of it would be seen.
func (b *tab) stays() { b.t.Helper(); b.is(`window.mark = "here"`) }

// stayed checks that the page was not loaded again.
func (b *tab) stayed() {
	b.t.Helper()
	if got := b.is(`String(window.mark)`); got != "here" {
		b.t.Errorf("the page was loaded again: %s", got)
	}
}

// drafts keeps a comment below a line of the changes.
func (b *tab) drafts(row, text string) {
	b.t.Helper()
	b.click(fmt.Sprintf("#%s .n a", row))
	b.until(fmt.Sprintf("!!document.getElementById(%q)", "c-"+row))
	b.types(fmt.Sprintf("#c-%s textarea", row), text)
	b.click(fmt.Sprintf("#c-%s button", row))
	b.until(fmt.Sprintf("location.hash == %q && document.readyState == 'complete'", "#"+row))
}

// TestPageRoundTrip: a browser logs in by the link, starts a workflow by the form and watches it; words
// and comments on lines arrive at the next attempt, and a pass after the second question ends the run.
func TestPageRoundTrip(t *testing.T) {
	conform.Rule(t, "11-page comments", "they become findings with file and line in the retry context")
	w, _, _ := paged(t)
	b := w.login()
	b.click(`a[href="/start"]`)
	b.sees("An agent writes")
	b.click(`a[href="/start/work/agents"]`)
	b.sees("what about")
	b.types(`textarea[name="var.topic"]`, "the sea")
	b.do(chromedp.SetValue(chromedp.CSS(`select[name="var.mode"]`), "full"))
	b.click(`main button.go`)
	b.until(`location.pathname == "/r/work/agents-1"`)
	b.stays()
	b.sees("Waiting for you at H")
	b.stayed()
	watching := b.another()
	watching.open("/")
	watching.sees("H a person reads it")
	watching.stays()
	b.click(`#runwaits a.go`)
	at := "/r/work/agents-1/g/H"
	b.until(fmt.Sprintf("location.pathname == %q", at))
	b.sees("write about the sea")
	b.types("#words", "kept beside the comments")
	b.drafts("f1R3", "name the ships")
	if got := b.is(`document.querySelector("#words").value`); got != "kept beside the comments" {
		t.Errorf("after a comment the words are %q", got)
	}
	b.drafts("f1R5", "and the harbour")
	b.open(at)
	b.sees("2 comments on lines")
	b.is(`document.querySelector("#words").value = ""`)
	b.looks()
	b.types("#words", "say more about the wind")
	b.click(`button[value="fail"]`)
	b.sees("round 2")
	prompt := w.read("prompt-2.txt")
	for _, want := range []string{"the sea", "say more about the wind", "name the ships", "and the harbour",
		"prompt-1.txt"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the next attempt is not told %q:\n%s", want, prompt)
		}
	}
	b.open(at)
	b.looks()
	b.click(`button[value="pass"]`)
	b.sees("Back")
	b.looks()
	b.quiet("the round trip")
	b.click(`button[value="pass"]`)
	b.until(`location.pathname == "/r/work/agents-1"`)
	b.sees("completed")
	watching.sees("Nothing waits for you")
	watching.sees("Ended today")
	watching.until(`document.title == "Inbox · sluice"`)
	watching.stayed()
	watching.quiet("the inbox")
	if !has(w.factsOf(), func(f engine.RoundPassed) bool { return f.Gate == "H" && f.N == 2 && byPage(f.By) }) {
		t.Error("no fact tells the pass")
	}
}

// TestPageVetoes: a veto within its window counts, with its words.
func TestPageVetoes(t *testing.T) {
	conform.Rule(t, "11-page veto", "veto within its window")
	w, sluice, _ := paged(t)
	w.start(sluice, "n")
	b := w.login()
	b.sees("VG a look")
	b.click(`article.ask a.btn`)
	b.sees("unless somebody vetoes")
	b.looks()
	b.click(`button[value="veto"]`)
	b.sees("say what is wrong")
	b.looks()
	b.types("#words", "the tests miss it")
	b.click(`button[value="veto"]`)
	b.sees("round 2")
	if !has(w.factsOf(), func(f engine.RoundFailed) bool {
		return f.Gate == "VG" && f.N == 1 && f.Feedback == "the tests miss it" && byPage(f.By)
	}) {
		t.Error("no fact tells the veto")
	}
}

// TestPageTellsTheSecond: of two people at one gate the later one is told, and keeps the words.
func TestPageTellsTheSecond(t *testing.T) {
	conform.Rule(t, "11-page two people", "two people at one gate")
	w, sluice, _ := paged(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	ann, bob := w.login(), w.login()
	for _, b := range []*tab{ann, bob} {
		b.open("/r/work/w-1/g/G")
		b.sees("What you decide on")
	}
	ann.looks()
	ann.types("#words", "ann's words")
	bob.types("#words", "bob's words, which stay")
	bob.stays()
	ann.click(`button[value="fail"]`)
	ann.sees("round 2")
	bob.sees("round 2") // live, beside what he writes
	bob.stayed()
	if got := bob.is(`document.querySelector("#words").value`); got != "bob's words, which stay" {
		t.Errorf("what bob writes is %q", got)
	}
	bob.sees("This gate has changed since")
	bob.is(`document.querySelector('button[value="fail"]').click()`)
	if got := bob.is(`document.querySelector("#words").value`); got != "bob's words, which stay" {
		t.Errorf("bob's words are %q", got)
	}
	bob.click(`button[name="look"]`)
	bob.until(`document.querySelector("#newround").dataset.at.startsWith("2 ")`)
	bob.until(`document.querySelector("#words")?.value == "bob's words, which stay"`) // in round 2
	failed := 0
	for _, f := range w.factsOf() {
		if _, ok := f.(engine.RoundFailed); ok {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d answers counted", failed)
	}
}

// TestPageGoesBack: who goes back after a decision sees the gate as it is now, and what was sent is not kept as unsent.
func TestPageGoesBack(t *testing.T) {
	w, sluice, _ := paged(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	b := w.login()
	b.open("/r/work/w-1/g/G")
	b.looks()
	b.types("#words", "the words of round 1")
	b.click(`button[value="fail"]`)
	b.sees("round 2")
	b.do(chromedp.NavigateBack())
	b.until(`document.querySelector("#newround")?.dataset.at.startsWith("2 ")`)
	b.until(`document.readyState == "complete"`)
	if got := b.is(`document.querySelector("#words").value`); got != "" {
		t.Errorf("round 2 has the words %q", got)
	}
	b.looks()
	b.types("#words", "good,\nthe words of the pass")
	b.click(`button[value="pass"]`)
	b.sees("Back")
	b.looks()
	b.click(`button[value="pass"]`)
	b.sees("completed")
	b.is(`history.back()`)
	b.sees("resubmit")
	b.do(chromedp.Reload()) // it sends the form again
	b.sees("gate G does not ask a person now: it is passed")
	for range 2 {
		if shows := b.text(); strings.Contains(shows, "did not send") || !strings.Contains(shows, "the words of the pass") {
			t.Errorf("the page shows:\n%s", shows)
		}
		b.open("/r/work/w-1/g/G")
	}
}
