package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/text/hostile"
	"sluice/tools/conform"
)

// markup are texts that a browser would obey, with what hides or turns text.
func markup() []string {
	return append(hostile.Texts(),
		"<script>alert(1)</script>", `"><script src=http://evil.example/x.js></script>`, "</textarea><script>x</script>",
		"</pre><img src=http://evil.example/p.png onerror=x>", `' autofocus onfocus='x`, "javascript:alert(1)",
		"<a href=javascript:alert(1)>click</a>", "<svg onload=x>", "</title><script>x</script>", "<!--",
		"--><script>x</script>",
		"[link](http://evil.example/)", "![p](http://evil.example/p.png)", "http://evil.example/ //evil.example",
		"\x1b]8;;http://evil.example/\x1b\\link\x1b]8;;\x1b\\", "\x1b]1338;url=http://evil.example/p.png\x07",
		"\x1b_Gf=100;AAAA\x1b\\", "a\u202ecod.exe", "a\u2066b\u2069", "\u200b\u200f\u061c",
		"\ufeff", "\u0085\u009d", "\xff\xfe\x80",
		"data: x\n\nid: 1\nevent: y\n\n", "\r\n\r\ndata: <script>x</script>")
}

// hostileSpec has every kind of gate, with names as an agent could have written them.
const hostileSpec = `workflow:
  id: h
  name: "<script>alert(1)</script>\u202e evil"
  vars: {topic: {required: true, description: "<img src=x onerror=y>"}}
steps:
  - {id: A, name: "</b><script>x</script>", agent: {type: "writer", prompt: "write ${{vars.topic}} <script>"}, gate: G}
gates:
  - id: G
    name: "\"><script>alert(1)</script>"
    reviewer: {level: human}
    on_pass: {next_step: DONE}
    on_fail: {next_step: A}
    max_retries: 9
`

// judgedSpec has a gate that a reviewer passes, with a window.
const judgedSpec = `workflow: {id: j}
steps:
  - {id: A, agent: {type: writer, prompt: "write"}, gate: G}
gates:
  - {id: G, reviewer: {level: notify, agent_type: judge}, veto_window: 10m, on_pass: {next_step: DONE},
     on_fail: {next_step: A}}
`

// ours are the elements and the addresses that pages have of their own.
const ourTags = " html head meta title link script body a header div svg path nav span form button main section " +
	"h1 h2 p b aside dl dt dd details summary pre code ul ol li table thead tbody tr th td textarea label input " +
	"select option time meter progress small article i g rect text line polyline circle polygon marker defs footer desc "

// unseen are characters that hide or turn text, or control a terminal.
var unseen = regexp.MustCompile("[\\x00-\\x08\\x0b-\\x1f\\x7f\\x{80}-\\x{9f}\\x{200b}\\x{200e}\\x{200f}\\x{61c}" +
	"\\x{2028}-\\x{202e}\\x{2060}-\\x{206f}\\x{feff}\\x{e0000}-\\x{e0fff}]")

// inert checks that a page has no markup, address or hidden character but its own.
func inert(t *testing.T, where, page string) {
	t.Helper()
	if at := unseen.FindStringIndex(page); at != nil {
		t.Errorf("%s has %q raw: %q", where, page[at[0]:at[1]], page[max(0, at[0]-40):min(len(page), at[1]+40)])
	}
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			return
		}
		tok := z.Token()
		if kind == html.CommentToken || kind != html.TextToken && kind != html.DoctypeToken &&
			!strings.Contains(ourTags, " "+tok.Data+" ") {
			t.Errorf("%s has what is not ours: %s", where, tok)
		}
		for _, a := range tok.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc", a.Key == "autofocus",
				a.Key == "src" && !strings.HasPrefix(a.Val, "/static/"):
				t.Errorf("%s has an attribute that is not ours: %s", where, tok)
			case slices.Contains([]string{"href", "action", "formaction", "xlink:href", "srcset", "poster"}, a.Key):
				if !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "//") ||
					strings.HasPrefix(a.Val, `/\`) {
					t.Errorf("%s leads elsewhere: %s", where, tok)
				}
			}
		}
		if tok.Data == "script" && kind == html.StartTagToken && len(tok.Attr) == 0 {
			t.Errorf("%s has a script in it", where)
		}
	}
}

// shows checks every page of a run, and what their streams send.
func (p *site) shows(run string) {
	p.Helper()
	for _, target := range []string{"/", "/start", "/start/shop/h", "/history", "/r/shop/" + run,
		"/r/shop/" + run + "/g/G", "/r/shop/" + run + "/a/A.1"} {
		inert(p.T, target, p.ask("GET", target, nil).Body.String())
	}
	for _, v := range []struct {
		target, last string
	}{{"/", "ended"}, {"/r/shop/" + run, "lines"}, {"/r/shop/" + run + "/g/G", "newround"}} {
		inert(p.T, "the stream of "+v.target, p.listen(v.target).until(p.T, `id="`+v.last+`"`))
	}
}

// hostileFindings are findings with a text in each field.
func hostileFindings(s string) json.RawMessage {
	raw, err := json.Marshal([]map[string]any{{"file": s, "line": 3, "severity": s, "message": s}})
	if err != nil {
		panic(err)
	}
	return raw
}

// TestHostileTexts: whatever agents, reviewers and checks write is shown, and does nothing.
func TestHostileTexts(t *testing.T) {
	conform.Rule(t, "11-page markup", "markup in everything an agent wrote (names, diff, transcript, …")
	p := newSite(t)
	p.put(".workflow/specs/h.yaml", hostileSpec)
	texts := markup()
	for i := 0; i < len(texts); i += 12 {
		s := strings.Join(texts[i:min(i+12, len(texts))], "\n")
		p.world.mu.Lock()
		p.world.said = s
		p.world.check = engine.CheckResult{OK: true, Digest: "d", Protected: []string{s}}
		p.world.judge = engine.Judgement{Outcome: engine.OutcomePass, Feedback: s, Findings: hostileFindings(s), Read: s}
		p.world.mu.Unlock()
		run := p.run(hostileSpec, "topic", strings.ReplaceAll(s, "\x00", "")) // which the daemon refuses
		if d, err := p.client.Do(t.Context(), engine.NoteGiven{Run: run, Text: s}, via); err != nil {
			t.Logf("a note was not taken: %+v %v", d, err)
		}
		at := "/r/shop/" + run + "/g/G"
		form := p.form(at)
		inert(t, "a refused answer", p.answer(at, form, "outcome", s, "text", s).Body.String())
		inert(t, "the second question", p.answer(at, form, "outcome", "pass", "text", s).Body.String())
		p.ask("POST", at+"/draft", url.Values{"round": {"1"}, "at": {s + ":1"}, "c": {s}, "text": {s}, "row": {s}})
		w := p.ask("POST", at+"/draft", url.Values{"round": {"9"}, "at": {s + ":1"}, "c": {s}, "text": {s}})
		inert(t, "a lost comment", w.Body.String())
		p.shows(run)
		if w := p.answer(at, form, "outcome", "fail", "text", s+" is wrong"); w.Code != 303 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		p.until(run, "the second round", func(r daemon.RunStatus) bool { return gateOf(r, "G").Round == 2 })
		p.shows(run)
		p.shows(p.run(judgedSpec))
	}
}

// TestHostileAddresses: what a link names is shown as text.
func TestHostileAddresses(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	for _, s := range markup() {
		e := url.PathEscape(s)
		if e == "" || len(e) > 3000 {
			continue
		}
		for _, target := range []string{"/r/" + e + "/x", "/r/shop/" + e, "/r/shop/" + run + "/g/" + e,
			"/r/shop/" + run + "/a/" + e, "/start/shop/" + e, "/start/" + e + "/w", "/history?repo=" + url.QueryEscape(s),
			"/in?code=" + url.QueryEscape(s)} {
			inert(t, target, p.ask("GET", target, nil).Body.String())
		}
		inert(t, "an order", p.ask("POST", "/r/shop/"+run+"/"+e, url.Values{"text": {s}}).Body.String())
		inert(t, "a start", p.ask("POST", "/start/shop/w", url.Values{"var.x": {s}, "beside": {""}}).Body.String())
	}
}

// TestVisible: each character that hides or turns text, or makes a tower, becomes its number, and nothing else changes.
func TestVisible(t *testing.T) {
	for _, r := range []rune{0, 7, 8, 0xb, 0xc, '\r', 0x1b, 0x7f, 0x85, 0x9b, 0x200b, 0x200e, 0x200f, 0x061c, 0x202a,
		0x202e, 0x2028, 0x2029, 0x2060, 0x2066, 0x2069, 0xfeff, 0xfff9,
		0xe0001, 0xe0061, 0xe0100, 0xe01ef, 0x10ffff, 0xe000} {
		if got, want := string(revealed([]byte("a"+string(r)+"b"))), fmt.Sprintf("a⟨U+%04X⟩b", r); got != want {
			t.Errorf("%U is shown as %q", r, got)
		}
	}
	for _, s := range []string{"", "plain", "a\nb\tc", "é 漢字 \U0001f469\u200d\U0001f467 ✓ — “x”", "<b>&amp;</b>", "\u00a0", "\u0645\u06cc\u200c\u062e"} {
		if got := string(revealed([]byte(s))); got != s {
			t.Errorf("%q is shown as %q", s, got)
		}
	}
	const tower = "e\u0301\u0302\u0303\u0304"
	for in, want := range map[string]string{
		tower + "\u0305\u0306 e\u0301": tower + "⟨U+0305⟩⟨U+0306⟩ e\u0301",
		tower + tower + "\u20dd":       tower + tower + "⟨U+20DD⟩",
	} {
		if got := string(revealed([]byte(in))); got != want {
			t.Errorf("a tower of accents is shown as %q", got)
		}
	}
	if got := string(revealed([]byte("a\xff\xc0b"))); got != "a\ufffd\ufffdb" {
		t.Errorf("broken text is shown as %q", got)
	}
}
