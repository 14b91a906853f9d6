//go:build linux

package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"sluice/engine"
	"sluice/tools/conform"
)

// plain stops the page's own scripts.
func (b *tab) plain() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// tabs presses Tab until an element has the focus.
func (b *tab) tabs(css string) {
	b.t.Helper()
	const most = 60 // elements of a page
	for range most {
		if b.is(fmt.Sprintf(`String(document.activeElement.matches(%q))`, css)) == "true" {
			return
		}
		b.do(chromedp.KeyEvent("\t"))
	}
	b.t.Fatalf("no Tab reaches %s; the page shows:\n%s", css, b.text())
}

// TestPageByKeyboardWithoutScripts: with Tab, Enter and letters, and no script of the page, a person finds what waits,
// sends it back with words, reads the next round and passes it after the second question.
func TestPageByKeyboardWithoutScripts(t *testing.T) {
	conform.Rule(t, "11-page looks", "It works on a phone (360 px wide), by keyboard, in dark and …")
	w, sluice, _ := paged(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	b := w.login()
	b.plain()
	b.open("/")
	b.sees("G review")
	if got := b.is(`document.getElementById("lamp").textContent`); got != "not live" {
		t.Fatalf("a script of the page runs: %s", got)
	}
	b.do(chromedp.KeyEvent("\t"))
	b.tabs(`article.ask a.btn`)
	b.do(chromedp.KeyEvent("\r"))
	b.sees("What you decide on")
	b.looks()
	b.tabs("#words")
	b.do(chromedp.KeyEvent("two lines, please"))
	b.tabs(`button[value="fail"]`)
	b.do(chromedp.KeyEvent("\r"))
	b.until(`location.pathname == "/r/work/w-1"`)
	w.until("failed 1/", "status")
	w.until("G for a person", "status")
	b.open("/r/work/w-1/g/G")
	b.sees("round 2")
	b.tabs(`details summary`)
	b.do(chromedp.KeyEvent("\r"))
	b.sees("two lines, please")
	b.looks()
	b.tabs(`button[value="pass"]`)
	b.do(chromedp.KeyEvent("\r"))
	b.sees("Back")
	b.looks()
	b.tabs(`button[value="pass"]`)
	b.do(chromedp.KeyEvent("\r"))
	b.sees("completed")
	b.quiet("a page without scripts")
	facts := w.factsOf()
	if !has(facts, func(f engine.RoundFailed) bool { return f.Feedback == "two lines, please" && byPage(f.By) }) ||
		!has(facts, func(f engine.RoundPassed) bool { return f.N == 2 && byPage(f.By) }) {
		t.Error("no facts tell the fail and the pass")
	}
}
