package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sluice/tools/authenticator"
)

// TestPasskeyLogin: a passkey logs in on another device, while it is on the list; a question counts
// once, within its time, at its page, and for a person who was verified.
func TestPasskeyLogin(t *testing.T) {
	p := newSite(t)
	p.named()
	phone, cookie := p.registers("ann")
	if cookie == "" || !p.lets(cookie) {
		t.Fatal("a registration that was confirmed does not log in")
	}
	if body := p.gets("/").Body.String(); !strings.Contains(body, "data-login") {
		t.Errorf("no login by passkey: %s", body)
	}
	in := p.logsIn(phone)
	if in.cookie == "" || !p.lets(in.cookie) {
		t.Fatalf("%+v", in)
	}
	asked := p.says("/login/begin", url.Values{"repo": {"shop"}})
	if len(asked.Options.Allow) != 0 {
		t.Errorf("a browser that is not logged in learns of passkeys: %+v", asked)
	}
	answer := url.Values{"said": {asked.Said}, "response": {string(phone.Get(asked.challenge(t)))}}
	if got := p.says("/login/finish", answer); got.cookie == "" {
		t.Fatalf("%+v", got)
	}
	refused := func(what, says string, got heard) {
		t.Helper()
		if !strings.Contains(got.Fault, says) || got.cookie != "" {
			t.Errorf("%s: %+v, want %q", what, got, says)
		}
	}
	refused("twice", "was used already", p.says("/login/finish", answer))
	asked = p.says("/login/begin", url.Values{})
	try := func() heard {
		return p.says("/login/finish", url.Values{"said": {asked.Said}, "response": {string(phone.Get(asked.challenge(t)))}})
	}
	phone.Flags = authenticator.Present
	refused("unverified", "did not verify", try())
	phone.Flags |= authenticator.Verified
	phone.Origin = "https://sluice.example.org:1"
	refused("another origin", "signed at https://sluice.example.org:1", try())
	phone.Origin = p.base
	refused("an unknown passkey", "no repo knows", p.says("/login/finish", url.Values{"said": {asked.Said},
		"response": {string(p.phone().Get(asked.challenge(t)))}}))
	later := strings.Replace(asked.Said, "expires: ", "expires: 9", 1)
	refused("a later end", "was not asked for", p.says("/login/finish", with(answer, "said", later)))
	p.later(loginIn)
	refused("too late", "took longer", try())
	p.revokes("ann")
	if p.lets(cookie) || p.lets(in.cookie) {
		t.Error("a login outlives its passkey")
	}
	refused("a removed passkey", "no repo knows", p.logsIn(phone))
}

// TestPasskeyLoginElsewhere: on this machine alone a link logs in, and no passkey.
func TestPasskeyLoginElsewhere(t *testing.T) {
	p := newSite(t)
	if w := p.posts("/login/begin", url.Values{}); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestPasskeyLoginsAreFew: questions cost the page nothing, and answers are bounded.
func TestPasskeyLoginsAreFew(t *testing.T) {
	p := newSite(t)
	p.named()
	phone, _ := p.registers("ann")
	for range usedMost {
		p.s.passkeys.used[p.s.passkeys.asking()] = p.con.Now().Add(loginIn)
	}
	if got := p.logsIn(phone); !strings.Contains(got.Fault, "too many logins") {
		t.Errorf("%+v", got)
	}
	p.later(loginIn)
	if got := p.logsIn(phone); got.cookie == "" || len(p.s.passkeys.used) != 1 {
		t.Errorf("%+v, %d kept", got, len(p.s.passkeys.used))
	}
}

// TestStrangersLoginsPushOutNone: however many logins strangers begin, the page keeps nothing of them, and
// one that a person has begun counts.
func TestStrangersLoginsPushOutNone(t *testing.T) {
	p := newSite(t)
	p.named()
	phone, _ := p.registers("ann")
	asked := p.says("/login/begin", url.Values{})
	for i := range 3 * usedMost {
		other := p.says("/login/begin", url.Values{})
		if i%100 == 0 {
			p.says("/login/finish", url.Values{"said": {other.Said}, "response": {"{}"}})
		}
	}
	if n := len(p.s.passkeys.used); n > 0 {
		t.Errorf("the page keeps %d of them", n)
	}
	answer := url.Values{"said": {asked.Said}, "response": {string(phone.Get(asked.challenge(t)))}}
	if got := p.says("/login/finish", answer); got.cookie == "" {
		t.Errorf("%+v", got)
	}
}

// lets reports whether a cookie's value opens the page.
func (p *site) lets(cookie string) bool {
	p.Helper()
	return p.ask("GET", "/", nil, "Host: "+p.host(), "Cookie: "+cookieName+"="+cookie).Code == http.StatusOK
}
