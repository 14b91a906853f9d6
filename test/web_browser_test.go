//go:build linux

package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium is the browser that all tests of this package share.
type chromium struct {
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
}

var theChromium chromium

func (c *chromium) start() {
	ctx, end := context.WithCancel(context.Background())
	alloc, _ := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU)...)
	c.ctx, _ = chromedp.NewContext(alloc)
	c.end = func() {
		within, cancel := context.WithTimeout(c.ctx, 5*time.Second)
		_ = chromedp.Cancel(within) // what does not close by itself is killed
		cancel()
		end()
	}
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(c.ctx) }()
	select {
	case c.err = <-started:
	case <-time.After(waitMost):
		c.err = errors.New("chromium does not start in time")
		end()
	}
}

// close ends the browser, if there is one.
func (c *chromium) close() {
	if c.end != nil {
		c.end()
	}
}

// tab is a page in a browser.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // of the page

	mu   sync.Mutex
	said []string // errors that the browser reported
}

// profile opens a browser with cookies of its own.
func profile(t *testing.T) *tab {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("needs: chromium (apt-get install chromium)")
	}
	theChromium.once.Do(theChromium.start)
	if theChromium.err != nil {
		t.Fatal(theChromium.err)
	}
	return opened(t, theChromium.ctx, chromedp.WithNewBrowserContext())
}

func opened(t *testing.T, parent context.Context, o ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t}
	var end context.CancelFunc
	b.ctx, end = chromedp.NewContext(parent, o...)
	t.Cleanup(end)
	started := make(chan error, 1)
	go func() { started <- chromedp.Listen(b.ctx, b.hear) }()
	select {
	case err := <-started:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(waitMost):
		t.Fatal("no tab opens in time")
	}
	return b
}

// another opens one more window of the same browser, or a tab that hides the one before.
func (b *tab) another(o ...chromedp.ContextOption) *tab {
	b.t.Helper()
	n := opened(b.t, b.ctx, o...)
	n.base = b.base
	return n
}

// hear keeps what the browser reports as an error: of scripts, of the policy, of what is not loaded.
func (b *tab) hear(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *log.EventEntryAdded:
		if ev.Entry.Level != log.EntryLevelInfo && ev.Entry.Level != log.EntryLevelVerbose {
			e := ev.Entry
			b.said = append(b.said, fmt.Sprintf("%s %s: %s %s", e.Level, e.Source, e.Text, e.URL))
		}
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, fmt.Sprintf("exception: %s", ev.ExceptionDetails.Text))
	case *runtime.EventConsoleAPICalled:
		switch ev.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			b.said = append(b.said, fmt.Sprintf("console: %v", ev.Args))
		}
	}
}

// quiet checks that the browser has reported nothing since it was asked last.
func (b *tab) quiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.said {
		b.t.Errorf("%s: the browser reports: %s", where, s)
	}
	b.said = nil
}

// forget drops what the browser has reported.
func (b *tab) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = nil
}

// do carries out what a person does, within its time. A live page may replace what was found before it is touched, and
// a page that is still loading may end the load of another: then a single step is made again.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waitMost)
	defer cancel()
	err := chromedp.Do(ctx, steps...)
	again := func() bool {
		return strings.Contains(err.Error(), "Could not find node with given id") || strings.Contains(err.Error(), "net::ERR_ABORTED")
	}
	for err != nil && len(steps) == 1 && again() {
		err = chromedp.Do(ctx, steps...)
	}
	if err != nil {
		b.t.Fatalf("the browser: %v\n%s", err, b.text())
	}
}

// js returns the value of an expression in the page, in JSON.
func (b *tab) js(expression string) (string, error) {
	ctx, cancel := context.WithTimeout(b.ctx, waitMost)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise,
		chromedp.EvalAsValue))
	return string(raw), err
}

// is returns the value of an expression, a text or a number as it is.
func (b *tab) is(expression string) string {
	b.t.Helper()
	raw, err := b.js(expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil {
		return s
	}
	return raw
}

// until waits until an expression is true in the page, over loads of it.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(waitMost); time.Now().Before(end); <-time.After(pollEvery) {
		if got, err := b.js("!!(" + expression + ")"); err == nil && got == "true" {
			return
		}
	}
	b.t.Fatalf("never: %s; the page shows:\n%s", expression, b.text())
}

// sees waits until the page shows a text.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body && document.body.innerText.includes(%q)", text))
}

// text is what the page shows.
func (b *tab) text() string {
	got, err := b.js("location.pathname + '\\n' + document.body.innerText")
	if err != nil {
		return err.Error()
	}
	var s string
	_ = json.Unmarshal([]byte(got), &s) // it is for a person
	return s
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// click clicks where an element is once it has stayed there: a live page may grow above it.
func (b *tab) click(css string) {
	b.t.Helper()
	quoted, err := json.Marshal(css)
	if err != nil {
		b.t.Fatal(err)
	}
	b.is(`(async () => {
		for (let at = "", n = 0; n < 50; n++) {
			const el = document.querySelector(` + string(quoted) + `)
			const now = el ? JSON.stringify(el.getBoundingClientRect()) : ""
			if (now && now === at) return "still"
			at = now
			await new Promise((next) => setTimeout(next, 100))
		}
		return "moving"
	})()`)
	b.do(chromedp.Click(chromedp.CSS(css)))
}

func (b *tab) types(css, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(css), text))
}

// looks lets a second pass, and a little, since the page was made.
func (b *tab) looks() { (&terminalWindow{}).looks() }

// view sets the width of the window, and which colours the person prefers.
func (b *tab) view(width int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 800), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

// shot keeps a picture of the whole page where SLUICE_SHOTS names a folder.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("SLUICE_SHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, waitMost)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// paged is a world whose daemon shows its page at a port that stays the same.
func paged(t *testing.T) (w *playground, sluice string, stop func()) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("needs: chromium (apt-get install chromium)")
	}
	t.Parallel()
	w, sluice = gated(t)
	w.env = append(w.env, "SLUICE_CONFIG_WEB_LISTEN=127.0.0.1:"+freePort(t))
	w.own(`notify: {desktop: false}
roles: {"*": {agent: judge}}
agents:
  judge: {command: [sh, -c, 'cp "$SLUICE_PROMPT" "prompt-$SLUICE_ATTEMPT.txt"; echo "{\"verdict\": \"pass\"}"']}
`)
	w.write(".workflow/specs/agents.yaml", `workflow:
  id: agents
  name: An agent writes
  vars: {topic: {required: true, description: what about}, mode: {default: fast, one_of: [fast, full]}}
steps:
  - {id: T, name: draft, agent: {type: writer, prompt: "write about ${{vars.topic}}"}, gate: H}
gates:
  - {id: H, name: a person reads it, reviewer: {level: human}, on_pass: {next_step: DONE}, max_retries: 9,
     on_fail: {next_step: T}}
`)
	w.write(".workflow/specs/n.yaml", `workflow: {id: n, name: Passed unless vetoed}
steps:
  - {id: V, run: "echo hello >> out.txt", gate: VG}
gates:
  - {id: VG, name: a look, reviewer: {level: notify, agent_type: r}, veto_window: 10m, on_pass: {next_step: DONE},
     on_fail: {next_step: V}, max_retries: 9}
`)
	return w, sluice, w.serve(sluice)
}

// link returns the page's address with a code.
func (w *playground) link() string {
	w.t.Helper()
	code, out, errs := w.sluice("web")
	if code != 0 {
		w.t.Fatal(out + errs)
	}
	return strings.TrimSpace(out)
}

// login opens a browser and logs it in by a link.
func (w *playground) login() *tab {
	w.t.Helper()
	b := profile(w.t)
	link := w.link()
	b.base = link[:strings.Index(link, "/in?")]
	b.do(chromedp.Navigate(link))
	b.until(`location.pathname == "/" && document.querySelector("nav")`)
	return b
}
