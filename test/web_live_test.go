//go:build linux

package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
)

// TestPageLetsWrite: while the page follows a busy run, and over a daemon that ends and comes back,
// what somebody writes, the caret, the focus and an open fold stay.
func TestPageLetsWrite(t *testing.T) {
	conform.Rule(t, "11-page keep", "50 morphs while typing in two boxes, a fold open, focus in the …")
	w, sluice, stop := paged(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	c := daemon.NewClient(w.stateDir())
	defer c.Close()
	b := w.login()
	b.open("/r/work/w-1/g/G")
	b.sees("What you decide on")
	b.do(chromedp.Click(chromedp.CSS("details summary")))
	b.until(`document.querySelector("details").open`)
	b.types("#words", "the first words")
	b.is(`document.querySelector("#words").setSelectionRange(4, 9)`)
	b.is(`(() => { window.morphs = 0; new MutationObserver((l) => window.morphs += l.length)
		.observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true}) })()`)
	b.stays()
	run := b.another()
	run.open("/r/work/w-1")
	run.sees("What happened")
	run.stays()
	run.is(`(() => { window.morphs = 0; new MutationObserver((l) => window.morphs += l.length)
		.observe(document.getElementById("lines"), {subtree: true, childList: true, characterData: true}) })()`)
	picture := b.another()
	picture.open("/r/work/w-1")
	picture.sees("What happened")
	picture.stays()
	picture.is(`(() => { window.morphs = 0; new MutationObserver((l) => window.morphs += l.length)
		.observe(document.getElementById("graph"), {subtree: true, childList: true, characterData: true})
		const a = document.querySelector("#graph a"); a.mark = "kept"; a.focus() })()`)
	for i := range 50 {
		run.types("#notetext", string(rune('a'+i%26)))
		if _, err := c.Do(t.Context(), engine.NoteGiven{Run: "w-1", Text: fmt.Sprintf("note %d", i)}, "command"); err != nil {
			t.Fatal(err)
		}
	}
	run.until(`document.getElementById("lines").innerText.includes("note 49")`)
	kept := func(when string) {
		t.Helper()
		for what, want := range map[string]string{
			`document.querySelector("#words").value`:          "the first words",
			`document.querySelector("#words").selectionStart`: "4", `document.querySelector("#words").selectionEnd`: "9",
			`document.activeElement.id`: "words", `document.querySelector("details").open`: "true"} {
			if got := b.is(what); got != want {
				t.Errorf("%s: %s is %q, want %q", when, what, got, want)
			}
		}
		typed := run.is(`document.querySelector("#notetext").value`)
		if want := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 2)[:50]; typed != want {
			t.Errorf("%s: what was typed is %q", when, typed)
		}
		if got := run.is(`document.activeElement.id`); got != "notetext" {
			t.Errorf("%s: the focus is at %q", when, got)
		}
		if got := picture.is(`String(document.activeElement.mark)`); got != "kept" {
			t.Errorf("%s: the focus has left its node of the picture", when)
		}
		b.stayed()
		run.stayed()
		picture.stayed()
	}
	picture.until(`window.morphs > 0`) // ages change in it
	kept("after 50 notes")
	if run.is("window.morphs") == "0" {
		t.Error("the page did not follow")
	}
	b.quiet("the gate")
	run.quiet("the run")
	stop()
	for _, x := range []*tab{b, run, picture} {
		x.until(`document.getElementById("lamp").textContent.includes("not connected")`)
	}
	kept("while no daemon runs")
	sends := func(when, want string) {
		t.Helper()
		for x, button := range map[*tab]string{b: `button[value="fail"]`, run: "#note button"} {
			if got := x.is(fmt.Sprintf("String(!document.querySelector(%q).disabled)", button)); got != want {
				t.Errorf("%s: %s can be pressed: %s, want %s", when, button, got, want)
			}
		}
	}
	sends("while no daemon runs", "false")
	w.serve(sluice)
	for _, x := range []*tab{b, run, picture} {
		x.until(`document.getElementById("lamp").textContent == "live"`)
	}
	kept("with a new daemon")
	sends("with a new daemon", "true")
	c = daemon.NewClient(w.stateDir())
	defer c.Close()
	if _, err := c.Do(t.Context(), engine.NoteGiven{Run: "w-1", Text: "a last note"}, "command"); err != nil {
		t.Fatal(err)
	}
	run.until(`document.getElementById("lines").innerText.includes("a last note")`)
	kept("after a last note")
	if _, err := c.Do(t.Context(), engine.PauseRequested{Run: "w-1"}, "command"); err != nil {
		t.Fatal(err)
	}
	run.until(`document.querySelector("#control form[action$='/resume']")`)
	kept("after a pause")
}

// TestPageInTenTabs: ten tabs at once are shown, and the last of them is live.
func TestPageInTenTabs(t *testing.T) {
	conform.Rule(t, "11-page tabs", "a tenth tab opens")
	w, sluice, _ := paged(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	b := w.login()
	last := b
	for range 9 {
		last = b.another(chromedp.WithNewWindow(false))
		last.open("/r/work/w-1/g/G")
		last.sees("What you decide on")
	}
	last.until(`document.getElementById("lamp").textContent == "live"`)
	last.quiet("the tenth tab")
}
