package web

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"sluice/internal/fault"
	"sluice/internal/settings"
)

// TestNobodyElseListensAtTheName: browsers take a name below localhost for ::1 and for 127.0.0.1, and send
// the login to whoever listens there.
func TestNobodyElseListensAtTheName(t *testing.T) {
	other, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("kernel: no ::1: ", err)
	}
	defer other.Close()
	p := newSite(t)
	_, port, _ := net.SplitHostPort(other.Addr().String())
	s, err := New(Options{Console: p.con, Home: p.home, Log: zerolog.Nop(),
		Web: settings.Web{Listen: "127.0.0.1:" + port, Label: "k3v9q2xa"}})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := s.Start(t.Context()); err == nil {
		t.Errorf("it listens at %s, and another one at [::1]:%s", at, port)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_, port, _ = net.SplitHostPort(strings.TrimPrefix(p.base, "http://"))
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://[::1]:"+port+"/static/app.css", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = strings.TrimPrefix(p.base, "http://")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("at ::1: %s", res.Status)
	}
}

// TestNoNameNoPage: without its label the page would be at a name that anybody knows.
func TestNoNameNoPage(t *testing.T) {
	p := newSite(t)
	s, err := New(Options{Console: p.con, Home: p.home, Log: zerolog.Nop(), Web: settings.Web{Listen: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if at, err := s.Start(t.Context()); err == nil {
		t.Errorf("it listens at %s", at)
	}
}

// TestWhereItDoesNotListen: what is wrong with the page's address is said with what to do, before any port is open.
func TestWhereItDoesNotListen(t *testing.T) {
	p := newSite(t)
	taken := strings.TrimPrefix(p.base, "http://")
	_, port, _ := net.SplitHostPort(taken)
	for _, c := range []struct {
		web      settings.Web
		why, how string
	}{
		{settings.Web{Listen: "127.0.0.1:" + port, Label: "x"}, "cannot listen on 127.0.0.1:" + port, "ss -ltnp"},
		{settings.Web{Listen: "0.0.0.0:0", Label: "x"}, "is reached from other machines", "set web.name"},
		{settings.Web{Listen: "192.0.2.1:0", Label: "x"}, "is reached from other machines", "set web.name"},
		{settings.Web{Listen: "127.0.0.1:0", Name: "sluice.example.org"}, "needs TLS", "tailscale cert"},
		{settings.Web{Listen: "0.0.0.0:0", Name: "sluice.example.org", Cert: p.root}, "needs TLS", "tailscale cert"},
		{settings.Web{Listen: "nowhere", Label: "x"}, "web.listen", "host:port"},
	} {
		s, err := New(Options{Console: p.con, Home: p.home, Log: zerolog.Nop(), Web: c.web})
		if err != nil {
			t.Fatal(err)
		}
		link, err := s.Link(t.Context())
		var f *fault.Error
		if !errors.As(err, &f) || !strings.Contains(f.Cause, c.why) || !strings.Contains(f.Advice, c.how) {
			t.Errorf("%+v: %q %v", c.web, link, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestThroughAProxy: what a proxy hands on does not count as from this machine.
func TestThroughAProxy(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run
	if w := p.ask("POST", at+"/pause", url.Values{}, "X-Forwarded-For: 192.0.2.1"); w.Code == http.StatusSeeOther {
		t.Error("it steers")
	}
	form := p.form(at + "/g/G")
	form.Set("outcome", "fail")
	form.Set("text", "no")
	if w := p.ask("POST", at+"/g/G", form, "Forwarded: for=192.0.2.1"); w.Code == http.StatusSeeOther {
		t.Error("it decides")
	}
	if cookie := p.ask("GET", "/in?code="+p.code(), nil, "Via: 1.1 x").Result().Cookies(); len(cookie) != 1 {
		t.Fatal("it does not log in")
	} else if l, ok := p.s.logins.known(cookie[0].Value); !ok || l.Local {
		t.Errorf("its login: %+v", l)
	}
}

// TestCertificateThatCannotBeRead: the page says so, and does not print links to where nobody answers.
func TestCertificateThatCannotBeRead(t *testing.T) {
	p := newSite(t)
	s, err := New(Options{Console: p.con, Home: p.home, Log: zerolog.Nop(), Web: settings.Web{Listen: "127.0.0.1:0",
		Name: "sluice.example.org", Cert: p.root + "/no.pem", Key: p.root + "/no.key"}})
	if err != nil {
		t.Fatal(err)
	}
	if link, err := s.Link(t.Context()); err == nil {
		t.Errorf("it prints %s", link)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestEnterDecidesNothing: Enter in a field of an answer presses the first button of its form.
func TestEnterDecidesNothing(t *testing.T) {
	p := newSite(t)
	page := p.ask("GET", "/r/shop/"+p.run(asksSpec)+"/g/G", nil).Body.String()
	first, buttons := strings.Index(page, `<button form="decide" disabled`), strings.Index(page, `name="outcome"`)
	if first < 0 || buttons < first || strings.Index(page, `id="changes"`) < first {
		t.Errorf("the first button is at %d, those that decide from %d on", first, buttons)
	}
}

// TestLogOutAll: a login on a lost device ends, and so do links that nobody has used.
func TestLogOutAll(t *testing.T) {
	p := newSite(t)
	lost, code := p.enter(p.code()), p.code()
	if w := p.ask("POST", "/out", url.Values{"all": {"1"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("log out: %d", w.Code)
	}
	if p.enter(code) != "" {
		t.Error("a link still counts")
	}
	p.open() // from the file too
	for _, cookie := range []string{lost, p.cookie} {
		if w := p.ask("GET", "/", nil, "Cookie: "+cookieName+"="+cookie); w.Code != http.StatusUnauthorized {
			t.Errorf("still logged in: %d", w.Code)
		}
	}
}
