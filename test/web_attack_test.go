//go:build linux

package test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"sluice/engine"
	"sluice/tools/conform"
)

// trap is a server on another port, as an agent could start one, with a page that attacks.
type trap struct {
	*httptest.Server
	mu  sync.Mutex
	got []string // cookies
}

func newTrap(t *testing.T, target string) *trap {
	t.Helper()
	p := &trap{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.got = append(p.got, r.Header.Values("Cookie")...)
		p.mu.Unlock()
		for _, name := range []string{"__Host-sluice", "sluice"} {
			for _, more := range []string{"; Path=/", "; Path=/; Secure", "; Path=/; Domain=localhost",
				"; Path=/; Domain=sluice.localhost; Secure"} {
				w.Header().Add("Set-Cookie", name+"=planted"+more)
			}
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>trap</title><form id="f" method="post" action="%s/r/work/w-1/g/G">
<input name="round" value="1"><input name="outcome" value="fail"><input name="text" value="by the trap"></form>
<form id="a" method="post" action="%s/r/work/w-1/abort"><input name="sure" value="w-1"></form>
<a id="l" href="%s/r/work/w-1/g/G">a link</a><iframe id="i" src="%s/r/work/w-1/g/G"></iframe>`,
			target, target, target, target)
	}))
	t.Cleanup(p.Close)
	return p
}

// cookies are what the trap has received.
func (p *trap) cookies() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// TestPageBesideATrap: a server on another port, opened in the same browser, sees no cookie, plants
// none, and its forms decide nothing.
func TestPageBesideATrap(t *testing.T) {
	conform.Rule(t, "11-page ports", "a server on another port, opened in the same browser, sees no …")
	w, sluice, _ := paged(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	b := w.login()
	b.sees("G review")
	trap := newTrap(t, b.base)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(trap.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "x.localhost"} {
		at := "http://" + host + ":" + port + "/"
		for _, form := range []string{"f", "a"} {
			b.do(chromedp.Navigate(at))
			b.is(fmt.Sprintf(`document.getElementById(%q).submit()`, form))
			b.until(`location.port != "` + port + `" && document.readyState == "complete"`)
			if shows := b.text(); strings.Contains(shows, "by the trap") || strings.Contains(shows, "What you decide on") {
				t.Errorf("the form of %s arrived:\n%s", at, shows)
			}
		}
		b.do(chromedp.Navigate(at))
		got := b.is(fmt.Sprintf(`fetch(%q, {credentials: "include"}).then((r) => r.text()).catch(() => "refused")`,
			b.base+"/r/work/w-1"))
		if got != "refused" {
			t.Errorf("%s reads the page: %s", at, got)
		}
		got = b.is(fmt.Sprintf(`fetch(%q, {method: "POST", mode: "no-cors", credentials: "include",
			body: new URLSearchParams({sure: "w-1"})}).then(() => "sent").catch(() => "refused")`,
			b.base+"/r/work/w-1/abort"))
		t.Logf("a post of a script of %s: %s", at, got)
		if framed := b.is(`(() => { try { return document.getElementById("i").contentDocument ? "read" : "kept out" }
			catch { return "kept out" } })()`); framed != "kept out" {
			t.Errorf("%s reads a frame with the page", at)
		}
		b.click("#l")
		b.sees("You followed a link from another site")
		b.click("a.go")
		b.sees("What you decide on")
	}
	if got := trap.cookies(); slices.ContainsFunc(got, func(c string) bool {
		return strings.Contains(c, "sluice") && !strings.Contains(c, "planted")
	}) {
		t.Errorf("the trap has received %q", got)
	}
	b.open("/")
	b.sees("G review")
	facts := w.factsOf()
	if has(facts, func(engine.RoundFailed) bool { return true }) || has(facts, func(engine.RunEnded) bool { return true }) {
		t.Error("the trap decided something")
	}
}

// holds holds a key down, as a keyboard repeats it.
func (b *tab) holds(key string, code int64, times int) {
	b.t.Helper()
	again := false
	for i := range times {
		again = i > 0
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeKeyDown, Key: key, Code: key, Text: "\r", AutoRepeat: &again,
			WindowsVirtualKeyCode: code, NativeVirtualKeyCode: code}); err != nil {
			b.t.Fatal(err)
		}
		<-time.After(pollEvery)
	}
	if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyUp, Key: key, Code: key, WindowsVirtualKeyCode: code,
		NativeVirtualKeyCode: code}); err != nil {
		b.t.Fatal(err)
	}
}

// inBackground opens a page in a tab that is hidden until it has been there for a while, and looks at it.
func (b *tab) inBackground(at string) {
	b.t.Helper()
	hidden, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `Object.defineProperty(document, "hidden", { get: () => !window.looked })`})
	if err != nil {
		b.t.Fatal(err)
	}
	b.open(at)
	time.Sleep(1500 * time.Millisecond)
	b.is(`(window.looked = true, document.dispatchEvent(new Event("visibilitychange", { bubbles: true })), "")`)
	if _, err := chromedp.Call(b.ctx, page.RemoveScriptToEvaluateOnNewDocument,
		page.RemoveScriptToEvaluateOnNewDocumentParams(hidden)); err != nil {
		b.t.Fatal(err)
	}
}

// TestPageByAccident: a key that is held down, double clicks, and keys typed ahead pass nothing.
func TestPageByAccident(t *testing.T) {
	conform.Rule(t, "11-page accidents", "No key, paste or type-ahead may decide what has not been on the …")
	w, sluice, _ := paged(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	b := w.login()
	at := "/r/work/w-1/g/G"
	undecided := func(what string) {
		t.Helper()
		if has(w.factsOf(), func(engine.RoundPassed) bool { return true }) ||
			has(w.factsOf(), func(engine.RoundFailed) bool { return true }) {
			t.Fatalf("%s decides", what)
		}
	}
	b.open(at)
	if early := b.is(`(() => { const b = document.querySelector('button[value="pass"]'); const off = b.disabled; b.click();
		return off })()`); early == "true" {
		b.until(`!document.querySelector('button[value="pass"]').disabled`) // it is still the gate's page
	}
	undecided("a click as the page appears")
	b.inBackground(at)
	if b.is(`document.querySelector('button[value="pass"]').disabled`) != "true" {
		t.Error("a page that nobody has seen can be passed")
	}
	b.open(at)
	b.looks()
	b.do(chromedp.DoubleClick(chromedp.CSS(`button[value="pass"]`)))
	b.sees("Back")
	undecided("a double click")
	b.open(at)
	b.looks()
	b.do(chromedp.Focus(chromedp.CSS(`button[value="pass"]`)))
	b.holds("Enter", 13, 40)
	undecided("Enter, held down")
	b.open(at)
	b.do(chromedp.KeyEvent("pass\r\r y\r"))
	undecided("keys typed ahead")
	b.types("#words", "wrong\r\rand more\r")
	b.until(`document.querySelector("#words").value.includes("and more")`)
	undecided("Enter in the words")
	b.looks()
	b.do(chromedp.DoubleClick(chromedp.CSS(`button[value="fail"]`)))
	w.until("failed 1/", "status")
	failed := 0
	for _, f := range w.factsOf() {
		if _, ok := f.(engine.RoundFailed); ok {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("a double click on fail decides %d times", failed)
	}
}
