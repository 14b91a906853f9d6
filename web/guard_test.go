package web

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// TestGuardNames: only the page's own name is answered, and no answer says it.
func TestGuardNames(t *testing.T) {
	conform.Rule(t, "11-page host", "Before anything else a Host allow-list (421 otherwise)")
	p := newSite(t)
	name, port, _ := net.SplitHostPort(strings.TrimPrefix(p.base, "http://"))
	for _, c := range []struct {
		method, host string
		code         int
	}{
		{"GET", name + ":" + port, 200},
		{"GET", strings.ToUpper(name) + ":" + port, 200},
		{"GET", "127.0.0.1:" + port, 421},
		{"GET", "127.0.0.2:" + port, 421},
		{"GET", "[::1]:" + port, 421},
		{"GET", "localhost:" + port, 421},
		{"GET", "sluice.localhost:" + port, 421},
		{"POST", "127.0.0.1:" + port, 421},
		{"POST", "localhost:" + port, 421},
		{"GET", "127.0.0.1:1", 421},
		{"GET", "127.0.0.1", 421},
		{"GET", name, 421},
		{"GET", name + ":1", 421},
		{"GET", name + ".:" + port, 421},
		{"GET", "evil.example:" + port, 421},
		{"GET", "evil.example", 421},
		{"GET", "x." + name + ":" + port, 421},
		{"GET", name + ":" + port + ".evil.example", 421},
		{"GET", "127.0.0.1.evil.example:" + port, 421},
		{"GET", "0.0.0.0:" + port, 421},
		{"GET", name + "@evil.example:" + port, 421},
	} {
		w := p.ask(c.method, "/?x=1", nil, "Host: "+c.host)
		if w.Code != c.code {
			t.Errorf("%s %s: %d, want %d", c.method, c.host, w.Code, c.code)
		}
		if len(w.Result().Cookies()) > 0 {
			t.Errorf("%s %s: a cookie is set", c.method, c.host)
		}
		if label, _, _ := strings.Cut(name, "."); c.code == 421 && strings.Contains(w.Body.String(), label) {
			t.Errorf("%s %s says the page's name: %s", c.method, c.host, w.Body)
		}
	}
	if w := p.ask("GET", "/in?code="+p.code(), nil, "Host: 127.0.0.1:"+port, "Cookie:"); len(w.Result().Cookies()) > 0 {
		t.Error("a code counts at another name")
	}
}

// TestGuardForms: a form counts only if it comes from the page itself and the browser says so.
func TestGuardForms(t *testing.T) {
	conform.Rule(t, "11-page origin", "a POST without `Sec-Fetch-Site` and Origin is refused (the …")
	p := newSite(t)
	run := p.run(asksSpec)
	pause := "/r/shop/" + run + "/pause"
	for _, c := range []struct {
		what string
		head []string
		code int
	}{
		{"no word of where it comes from", []string{"Sec-Fetch-Site:", "Origin:"}, 403},
		{"cross-site", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"cross-site, without an origin", []string{"Sec-Fetch-Site: cross-site", "Origin:"}, 403},
		{"same-site: another port of the name", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"an unknown word", []string{"Sec-Fetch-Site: trust-me"}, 403},
		{"a foreign origin alone", []string{"Sec-Fetch-Site:", "Origin: http://evil.example"}, 403},
		{"another port's origin", []string{"Sec-Fetch-Site:", "Origin: http://sluice.localhost:1"}, 403},
		{"a null origin", []string{"Sec-Fetch-Site:", "Origin: null"}, 403},
		{"a foreign name", []string{"Host: evil.example"}, 421},
		{"no login", []string{"Cookie:"}, 401},
		{"a made-up login", []string{"Cookie: " + cookieName + "=" + strings.Repeat("A", 43)}, 401},
		{"an empty login", []string{"Cookie: " + cookieName + "="}, 401},
		{"a login under another name", []string{"Cookie: sluice=" + p.cookie}, 401},
		{"the page's own origin alone", []string{"Sec-Fetch-Site:"}, 303},
	} {
		if w := p.ask("POST", pause, url.Values{}, c.head...); w.Code != c.code {
			t.Errorf("%s: %d, want %d: %s", c.what, w.Code, c.code, w.Body)
		}
	}
	if w := p.ask("POST", "/r/shop/"+run+"/resume", url.Values{}); w.Code != 303 {
		t.Errorf("the page's own form: %d %s", w.Code, w.Body)
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"} {
		if w := p.ask(method, "/", nil); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// TestGuardHeaders: every answer has the headers that keep a browser from doing more with it.
func TestGuardHeaders(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	for _, c := range []struct {
		method, target string
		head           []string
		cache          string
	}{
		{"GET", "/", nil, "no-store"},
		{"GET", "/", []string{"Cookie:"}, "no-store"},
		{"GET", "/", []string{"Host: evil.example"}, "no-store"},
		{"GET", "/nowhere", nil, "no-store"},
		{"GET", "/static/app.css", nil, "no-cache"},
		{"GET", "/static/nothing.css", nil, "no-store"},
		{"GET", "/in?code=x", nil, "no-store"},
		{"GET", "/r/shop/" + run, nil, "no-store"},
		{"GET", "/r/shop/" + run + "/g/G", nil, "no-store"},
		{"POST", "/r/shop/" + run + "/g/G", nil, "no-store"},
		{"POST", "/", []string{"Sec-Fetch-Site: cross-site"}, "no-store"},
		{"PUT", "/", nil, "no-store"},
	} {
		h := p.ask(c.method, c.target, nil, c.head...).Header()
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "form-action 'self'", "base-uri 'none'",
			"frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s %s: the policy does not say %s: %q", c.method, c.target, want, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s %s: the policy allows too much: %q", c.method, c.target, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control": c.cache, "Access-Control-Allow-Origin": "", "Server": ""} {
			if got := h.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.target, name, got, want)
			}
		}
	}
}

// TestGuardBodies: a form over the limit is refused, whether or not it says how long it is.
func TestGuardBodies(t *testing.T) {
	conform.Rule(t, "11-page bounds", "Bounds on every body, login and stream")
	p := newSite(t)
	run := p.run(asksSpec)
	for _, long := range []bool{false, true} {
		n := bodyMost - len("text=")
		if long {
			n++
		}
		w := p.ask("POST", "/r/shop/"+run+"/g/G", url.Values{"text": {strings.Repeat("a", n)}})
		if refused := strings.Contains(w.Body.String(), "the form cannot be read"); refused != long {
			t.Errorf("a form of %d bytes: %d, refused: %v", n+5, w.Code, refused)
		}
	}
}

// TestGuardPaths: a path cannot name what is not the page's, however it is written.
func TestGuardPaths(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	p.put("secret.txt", "the secret of the repo")
	for _, path := range []string{
		"/../etc/passwd", "/static/../server.go", "/static/..%2fserver.go", "/static/%2e%2e/page/frame.html",
		"/static/..%2fpage%2fframe.html", "/static/%00", "/static/app.css%00.html", "/static/", "/static/.", "/static/..",
		"/static//etc/passwd", "/r/../r/shop", "/r/..%2f..%2fetc/" + run, "/r/shop/..", "/r/shop/%2e%2e",
		"/r/shop/..%2fsecret.txt", "/r/shop/" + run + "%00", "/r/shop/" + run + "/g/..%2fG", "/r/shop/" + run + "/g/G%00",
		"/r/shop/" + run + "/g/..", "/r/shop/" + run + "/a/..%2f..%2fsecret.txt", "/r/shop/" + run + "/a/A.1%00",
		"/r/shop/" + strings.Repeat("a", 5000), "/start/shop/..%2f..%2fsecret.txt", "/start/shop/..%2fspecs%2fw",
		"/start/shop/%2e%2e%2f%2e%2e%2fsecret.txt", "/start/shop/w%00", "/start/..%2fshop/w", "/start/shop/%2fetc%2fpasswd",
		"//evil.example/", "/%5cevil.example", "/r/shop%2f" + run, "/r/shop/%ff%fe", "/r/shop/" + run + "/g/%e2%80%ae",
	} {
		code, head, body := p.raw("GET " + path + " HTTP/1.1\r\n")
		to := head.Get("Location")
		if code != 400 && code != 404 && (code/100 != 3 || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
			t.Errorf("%s: %d %q", path, code, to)
		}
		for _, leak := range []string{"the secret", "root:", "{{define", "package web", p.root, p.home} {
			if strings.Contains(body, leak) {
				t.Errorf("%s shows %q", path, leak)
			}
		}
		if strings.ContainsAny(body, "\x00\u202e") {
			t.Errorf("%s is shown raw", path)
		}
	}
}

// raw sends a request line with the page's name and the cookie, as it is.
func (p *site) raw(line string) (code int, head http.Header, body string) {
	p.Helper()
	host := strings.TrimPrefix(p.base, "http://")
	_, port, _ := net.SplitHostPort(host)
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		p.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		p.Fatal(err)
	}
	fmt.Fprintf(c, "%sHost: %s\r\nConnection: close\r\nCookie: %s=%s\r\n\r\n", line, host, cookieName, p.cookie)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		p.Fatalf("%s: %v", line, err)
	}
	defer r.Body.Close()
	w := httptest.NewRecorder()
	if _, err := w.Body.ReadFrom(r.Body); err != nil {
		p.Fatal(err)
	}
	return r.StatusCode, r.Header, w.Body.String()
}
