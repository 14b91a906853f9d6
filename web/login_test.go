package web

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// in reports whether a cookie's value opens the page.
func (p *site) in(cookie string) bool {
	p.Helper()
	return p.ask("GET", "/", nil, "Cookie: "+cookieName+"="+cookie).Code == http.StatusOK
}

// TestLoginCode: a code counts once, within its time, and is no cookie.
func TestLoginCode(t *testing.T) {
	conform.Rule(t, "11-page code", "`sluice web` prints a link with a one-time code that is exchanged …")
	p := newSite(t)
	code := p.code()
	first := p.enter(code)
	if first == "" || !p.in(first) {
		t.Error("a new code does not count")
	}
	if p.enter(code) != "" {
		t.Error("a code counts twice")
	}
	if p.in(code) {
		t.Error("a code is a cookie")
	}
	w := p.ask("GET", "/in?code="+code, nil)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "is older than 10 minutes") {
		t.Errorf("a used code: %d", w.Code)
	}
	late, kept := p.code(), p.code()
	p.later(CodeLife - time.Second)
	if p.enter(kept) == "" {
		t.Error("a code is void before its time")
	}
	p.later(time.Second)
	if p.enter(late) != "" {
		t.Error("a code counts after its time")
	}
	for _, code := range []string{"", "x", strings.Repeat("A", 43), strings.Repeat("A", 9000)} {
		if p.enter(code) != "" {
			t.Errorf("%q counts", code)
		}
	}
}

// TestLoginGuesses: of wrong codes twenty a minute get a page, and more a short refusal. They void no
// code and end no login.
func TestLoginGuesses(t *testing.T) {
	p := newSite(t)
	code := p.code()
	for i := range 50 * wrongMost {
		w := p.ask("GET", "/in?code=guess", nil)
		want := http.StatusForbidden
		if i >= wrongMost {
			want = http.StatusTooManyRequests
		}
		if w.Code != want || want == http.StatusTooManyRequests && (w.Body.Len() > 200 || w.Header().Get("Retry-After") != "60") {
			t.Fatalf("wrong code %d: %d, %d bytes, %v", i+1, w.Code, w.Body.Len(), w.Header())
		}
	}
	if n := len(p.s.logins.wrong); n > wrongMost {
		t.Errorf("%d wrong codes are remembered", n)
	}
	if p.enter(code) == "" {
		t.Error("wrong codes void the link of somebody else")
	}
	if p.enter(p.code()) == "" {
		t.Error("after guesses no new code counts")
	}
	if !p.in(p.cookie) {
		t.Error("guesses end a login")
	}
	p.later(wrongIn)
	if w := p.ask("GET", "/in?code=guess", nil); w.Code != http.StatusForbidden {
		t.Errorf("a minute later: %d", w.Code)
	}
}

// TestLoginCodesAreFew: links that nobody opens give way.
func TestLoginCodesAreFew(t *testing.T) {
	p := newSite(t)
	first := p.code()
	for range codesMost {
		p.later(time.Millisecond)
		p.code()
	}
	if n := len(p.s.logins.codes); n != codesMost {
		t.Errorf("%d codes", n)
	}
	if p.enter(first) != "" {
		t.Error("the oldest code did not give way")
	}
}

// TestLoginCookie: the cookie is the page's alone, and is kept as a hash.
func TestLoginCookie(t *testing.T) {
	conform.Rule(t, "11-page cookie", "cookie `__Host-sluice` (Secure, HttpOnly, SameSite=Strict; …")
	p := newSite(t)
	w := p.ask("GET", "/in?code="+p.code(), nil, "Cookie:")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" {
		t.Errorf("%d %q", w.Code, w.Header().Get("Location"))
	}
	set := w.Header().Get("Set-Cookie")
	for _, want := range []string{"__Host-", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Strict",
		"; Max-Age=2592000"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie has no %s: %s", want, set)
		}
	}
	if strings.Contains(set, "Domain") {
		t.Errorf("the cookie is for other names as well: %s", set)
	}
	value := w.Result().Cookies()[0].Value
	raw, err := os.ReadFile(filepath.Join(p.home, loginsFile))
	if err != nil || strings.Contains(string(raw), value) {
		t.Errorf("the cookie itself is in the file: %v", err)
	}
	if st, err := os.Stat(filepath.Join(p.home, loginsFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

// TestLoginEnds: at "Log out", and after thirty days.
func TestLoginEnds(t *testing.T) {
	p := newSite(t)
	other := p.enter(p.code())
	w := p.ask("POST", "/out", url.Values{})
	if set := w.Header().Get("Set-Cookie"); w.Code != http.StatusSeeOther || !strings.Contains(set, "Max-Age=0") ||
		!strings.Contains(set, cookieName+"=;") {
		t.Errorf("%d %q", w.Code, set)
	}
	if p.in(p.cookie) || !p.in(other) {
		t.Error("logging out ends its own login, and no other")
	}
	p.open()
	if p.in(p.cookie) || !p.in(other) {
		t.Error("a login that has ended is back after a restart")
	}
	w = p.ask("POST", "/out", url.Values{}, "Cookie: "+cookieName+"="+other, "Sec-Fetch-Site: cross-site")
	if w.Code != 403 || !p.in(other) {
		t.Error("another site logs a person out")
	}
	p.later(loginLife - time.Minute)
	if !p.in(other) {
		t.Error("a login ends before its time")
	}
	p.later(time.Minute)
	if p.in(other) {
		t.Error("a login has no end")
	}
}

// TestLoginsOutliveARestart: logins count after it, codes do not; a damaged file logs everybody out.
func TestLoginsOutliveARestart(t *testing.T) {
	p := newSite(t)
	code := p.code()
	p.open()
	if !p.in(p.cookie) {
		t.Error("a restart ends a login")
	}
	if p.enter(code) != "" {
		t.Error("a code counts after a restart")
	}
	for _, raw := range []string{"[{", `{"hash": 3}`, strings.Repeat(" ", 2<<20)} {
		if err := os.WriteFile(filepath.Join(p.home, loginsFile), []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		p.open()
		if p.in(p.cookie) || p.in("") {
			t.Error("a damaged file logs somebody in")
		}
		if p.cookie = p.enter(p.code()); !p.in(p.cookie) {
			t.Error("after a damaged file nobody can log in")
		}
	}
}

// TestLoginsAreFew: at most 64 browsers are logged in; the oldest gives way.
func TestLoginsAreFew(t *testing.T) {
	conform.Rule(t, "11-page bounds", "Bounds on every body, login and stream")
	p := newSite(t)
	second := p.enter(p.code())
	for range loginsMost - 1 {
		if p.enter(p.code()) == "" {
			t.Fatal("a code does not count")
		}
	}
	if p.in(p.cookie) || !p.in(second) {
		t.Error("the oldest login, and only that, gives way")
	}
	if n := len(p.s.logins.all); n != loginsMost {
		t.Errorf("%d logins", n)
	}
}

// TestWithoutALogin: each page answers with the way in, and shows nothing else.
func TestWithoutALogin(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	for _, target := range []string{"/", "/start", "/start/shop/w", "/history", "/r/shop/" + run,
		"/r/shop/" + run + "/g/G", "/r/shop/" + run + "/a/A.1", "/r/none/x"} {
		for _, accept := range []string{"text/html", "text/event-stream"} {
			w := p.ask("GET", target, nil, "Cookie:", "Accept: "+accept)
			body := w.Body.String()
			if w.Code != http.StatusUnauthorized || !strings.Contains(body, "sluice web") {
				t.Errorf("%s as %s: %d %s", target, accept, w.Code, body)
			}
			if strings.Contains(body, run) || strings.Contains(body, "shop") || strings.Contains(body, "lamp") {
				t.Errorf("%s as %s shows something: %s", target, accept, body)
			}
		}
	}
}

// TestFromAnotherSite: a link of another site comes without the cookie; the page leads to itself.
func TestFromAnotherSite(t *testing.T) {
	p := newSite(t)
	for target, want := range map[string]string{
		"/r/shop/w-1/g/G?x=1":           `href="/r/shop/w-1/g/G?x=1"`,
		"//evil.example/r":              "",
		`/x"><script>alert(1)</script>`: "",
	} {
		w := p.ask("GET", strings.ReplaceAll(target, `"`, "%22"), nil, "Cookie:", "Sec-Fetch-Site: cross-site")
		if want != "" && (w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), want)) {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "<script>alert") || strings.Contains(w.Body.String(), `href="//`) {
			t.Errorf("%s: %s", target, w.Body)
		}
	}
	if w := p.ask("GET", "/", nil, "Cookie:"); strings.Contains(w.Body.String(), "another site") {
		t.Error("a link to itself where that helps nobody")
	}
}
