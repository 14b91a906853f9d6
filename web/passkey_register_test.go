package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sluice/internal/approval"
	"sluice/internal/approval/passkey"
	"sluice/tools/authenticator"
	"sluice/tools/conform"
)

// TestRegister: a passkey is registered at the page without a login; the page alone says nothing.
func TestRegister(t *testing.T) {
	conform.Rule(t, "11-page register", "it is registered on the phone at the name it will use, with a …")
	p := newSite(t)
	p.cookie = ""
	for _, id := range []string{p.at.ID, "other-1a2b3c4d"} {
		w := p.gets("/register/" + id)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "shop") || !strings.Contains(w.Body.String(), "needs JavaScript") {
			t.Errorf("%s: %d %s", id, w.Code, w.Body)
		}
	}
	_, cookie := p.registers("ann")
	if cookie != "" {
		t.Error("on this machine a registration logs in")
	}
	l, err := approval.Store{State: p.at.State}.Load()
	if err != nil || len(l.Signers) != 1 || l.Signers[0].Names[0] != "ann" {
		t.Errorf("%+v %v", l, err)
	}
}

// TestRegisterRefuses: guesses, another repo's path, another site's page, a phone that verified nobody.
func TestRegisterRefuses(t *testing.T) {
	p := newSite(t)
	p.cookie = ""
	at, inv := p.invites("ann")
	phone := p.phone()
	began := p.says(at+"/begin", url.Values{"code": {inv.Code}})
	refused := func(what, says string, got heard) {
		t.Helper()
		if got.Status == http.StatusOK || !strings.Contains(got.Fault, says) || got.cookie != "" {
			t.Errorf("%s: %+v, want %q", what, got, says)
		}
	}
	finish := func() heard {
		return p.says(at+"/finish", url.Values{"code": {inv.Code}, "response": {string(phone.Create(began.challenge(t)))}})
	}
	refused("no code", "is not known", p.says(at+"/begin", url.Values{}))
	refused("another repo", "is not known", p.says("/register/other-1a2b3c4d/begin", url.Values{"code": {inv.Code}}))
	refused("before it is finished", "is over", p.says(at+"/in", url.Values{"code": {inv.Code}}))
	phone.Flags = authenticator.Present
	refused("without verification", "did not verify", finish())
	phone.Flags |= authenticator.Verified
	phone.Origin = "http://127.0.0.1:1"
	refused("another origin", "was made at http://127.0.0.1:1", finish())
	phone.Origin = p.base
	long := url.Values{"code": {inv.Code}, "response": {strings.Repeat("x", keyBodyMost)}}
	refused("a long answer", "cannot be read", p.says(at+"/finish", long))
	w := p.ask("POST", at+"/begin", url.Values{"code": {inv.Code}}, "Sec-Fetch-Site: cross-site", "Origin: http://evil.example")
	if w.Code != http.StatusForbidden {
		t.Errorf("from another site: %d", w.Code)
	}
	wrong := inv.Code[:8] + strings.Repeat("0", 32)
	for range 5 {
		refused("a guess", "is not known", p.says(at+"/begin", url.Values{"code": {wrong}}))
	}
	refused("the right code after five guesses", "no longer counts", finish())
}

// TestRegisterNotConfirmed: a no in the terminal, and time, end what waits.
func TestRegisterNotConfirmed(t *testing.T) {
	p := newSite(t)
	p.named()
	register := func() (at string, inv passkey.Invitation) {
		at, inv = p.invites("ann")
		phone := p.phone()
		began := p.says(at+"/begin", url.Values{"code": {inv.Code}})
		p.says(at+"/finish", url.Values{"code": {inv.Code}, "response": {string(phone.Create(began.challenge(t)))}})
		return at, inv
	}
	at, inv := register()
	if err := p.deskOf().Withdraw(inv.ID); err != nil {
		t.Fatal(err)
	}
	if got := p.says(at+"/in", url.Values{"code": {inv.Code}}); !strings.Contains(got.Fault, "did not confirm") || got.cookie != "" {
		t.Errorf("after a no: %+v", got)
	}
	at, inv = register()
	p.later(passkey.Life)
	if got := p.says(at+"/in", url.Values{"code": {inv.Code}}); !strings.Contains(got.Fault, "is over") || got.cookie != "" {
		t.Errorf("after its time: %+v", got)
	}
}
