package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/approval/passkey"
	"sluice/internal/workspace"
	"sluice/tools/authenticator"
	"sluice/tools/conform"
)

// signs decides with a passkey, as the page's script does.
func (p *site) signs(at string, phone *authenticator.Passkey, form url.Values, pairs ...string) heard {
	p.Helper()
	f := with(form, pairs...)
	asked := p.says(at+"/challenge", f)
	if asked.Fault != "" {
		return asked
	}
	if asked.Question != "" {
		f.Set("sure", "yes")
	}
	f.Set("said", asked.Said)
	f.Set("response", string(phone.Get(asked.challenge(p))))
	return p.says(at+"/signed", f)
}

// gateIs returns a gate of a run as it is now.
func (p *site) gateIs(run string) (out daemon.GateStatus) {
	p.Helper()
	r, err := p.client.Run(p.Context(), run)
	if err != nil {
		p.Fatal(err)
	}
	for _, g := range r.Gates() {
		if g.ID == "G" {
			out = g
		}
	}
	return out
}

// untilRound waits until a round of the run's gate asks a person.
func (p *site) untilRound(run string, n int) {
	p.Helper()
	p.until(run, "the next round", func(r daemon.RunStatus) bool {
		for _, g := range r.Gates() {
			if g.ID == "G" && g.Round == n && g.State == engine.OnHuman {
				return true
			}
		}
		return false
	})
}

// TestSignedDecision: at a gate that wants signatures a passkey sends work back with words and passes
// it, and the page says without one what to type.
func TestSignedDecision(t *testing.T) {
	p := newSite(t)
	p.proves()
	run := p.run(signedSpec)
	at := "/r/shop/" + run + "/g/G"
	if body := p.gets(at).Body.String(); !strings.Contains(body, "<code>sluice pass G --run "+run+"</code> in a terminal") || strings.Contains(body, "data-passkey") {
		t.Errorf("without a passkey: %s", body)
	}
	if got := p.says(at+"/challenge", with(p.looks(at), "outcome", "pass")); !strings.Contains(got.Fault, "no passkey of ann is registered") {
		t.Errorf("%+v", got)
	}
	p.registers("bob")
	if body := p.gets(at).Body.String(); strings.Contains(body, "data-passkey") {
		t.Error("a passkey of somebody who may not decide is offered")
	}
	phone, _ := p.registers("ann")
	form := p.looks(at)
	if body := p.gets(at).Body.String(); !strings.Contains(body, "data-passkey") || !strings.Contains(body, "needs JavaScript") {
		t.Errorf("with a passkey: %s", body)
	}
	asked := p.says(at+"/challenge", with(form, "outcome", "fail", "text", "say more"))
	if asked.Question != "" || len(asked.Options.Allow) != 1 {
		t.Errorf("a fail: %+v", asked)
	}
	if got := p.signs(at, phone, form, "outcome", "fail", "text", "say more"); got.To != strings.TrimSuffix(at, "/g/G") {
		t.Fatalf("fail: %+v", got)
	}
	p.untilRound(run, 2)
	r, err := p.client.Run(p.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Gates() {
		if q := g.Rounds[0]; q.Feedback != "say more" || q.By.Who != "ann" || q.By.Trust != engine.TrustSigned {
			t.Errorf("%+v", q)
		}
	}
	if got := p.signs(at, phone, form, "outcome", "fail", "text", "once more"); !strings.Contains(got.Fault, "round 1, and round 2 is open now") {
		t.Errorf("an old form: %+v", got)
	}
	form = p.looks(at)
	asked = p.says(at+"/challenge", with(form, "outcome", "pass", "text", "well done"))
	if !strings.Contains(asked.Question, "round 2 of "+run) || !strings.HasPrefix(asked.Label, "Pass") {
		t.Errorf("the question before a pass: %+v", asked)
	}
	if unsent := p.says(at+"/challenge", with(form, "outcome", "pass", "at", "a.go:1", "c", "why?")); asked.Unsent != 0 || unsent.Unsent != 1 {
		t.Errorf("comments that a pass does not send: %d, %d", asked.Unsent, unsent.Unsent)
	}
	unasked := with(form, "outcome", "pass", "text", "well done", "said", asked.Said, "response", string(phone.Get(asked.challenge(t))))
	if got := p.says(at+"/signed", unasked); !strings.Contains(got.Fault, "second question was not asked") {
		t.Errorf("without the question: %+v", got)
	}
	if got := p.signs(at, phone, form, "outcome", "pass", "text", "well done"); got.To != strings.TrimSuffix(at, "/g/G") {
		t.Fatalf("pass: %+v", got)
	}
	p.until(run, "it is over", func(r daemon.RunStatus) bool { return !r.Live() })
}

// TestSignedRefuses: what was signed for something else, by somebody else, too late, or without a
// verified person does not count, and neither does the same answer twice.
func TestSignedRefuses(t *testing.T) {
	conform.Rule(t, "11-page checked", "Checked: origin, rpID, user verification (`required`), round, …")
	p := newSite(t)
	p.proves()
	run := p.run(signedSpec)
	at := "/r/shop/" + run + "/g/G"
	phone, _ := p.registers("ann")
	bob, _ := p.registers("bob")
	fields := with(p.looks(at), "outcome", "fail", "text", "say more")
	asked := p.says(at+"/challenge", fields)
	answer := func() url.Values {
		return with(fields, "said", asked.Said, "response", string(phone.Get(asked.challenge(t))))
	}
	refused := func(what, says string, f url.Values) {
		t.Helper()
		if got := p.says(at+"/signed", f); !strings.Contains(got.Fault, says) {
			t.Errorf("%s: %+v, want %q", what, got, says)
		}
	}
	for what, c := range map[string]struct {
		f    url.Values
		says string
	}{
		"another decision": {with(answer(), "outcome", "pass", "sure", "yes"), "signed for another decision"},
		"other words":      {with(answer(), "text", "say less"), "other words"},
		"a comment more":   {with(answer(), "at", "a.go:1", "c", "why?"), "other comments"},
		"another commit":   {with(answer(), "said", strings.Replace(asked.Said, "reviewed: d", "reviewed: e", 1)), "signed for another content"},
		"a changed text":   {with(answer(), "said", strings.Replace(asked.Said, "nonce: ", "nonce: 0", 1)), ""},
		"another digest":   {with(answer(), "digest", "e"), "has changed since this page was made"},
		"no stamp":         {with(answer(), "shown", ""), "of an earlier page"},
		"nothing signed":   {with(answer(), "response", ""), "the browser's answer"},
		"a login's text":   {with(answer(), "said", "sluice login 1\n"), "sluice"},
	} {
		refused(what, c.says, c.f)
	}
	phone.Flags = authenticator.Present
	refused("unverified", "did not verify", answer())
	phone.Flags |= authenticator.Verified
	phone.Origin = "http://sluice.localhost:1"
	refused("another origin", "signed at http://sluice.localhost:1", answer())
	phone.Origin = p.base
	refused("bob's", "signed by bob", with(fields, "said", asked.Said, "response", string(bob.Get(asked.challenge(t)))))
	p.later(passkey.Valid)
	refused("expired", "it expired", answer())
	if g := p.gateIs(run); g.Round != 1 || g.State != engine.OnHuman {
		t.Errorf("something was decided: %+v", g)
	}
	asked = p.says(at+"/challenge", fields)
	good := answer()
	if got := p.says(at+"/signed", good); got.To != strings.TrimSuffix(at, "/g/G") {
		t.Fatalf("%+v", got)
	}
	p.untilRound(run, 2)
	refused("twice", "round 1, and round 2 is open now", good)
	refused("twice, in the new round", "signed for another round", with(p.looks(at), "outcome", "fail", "text", "say more",
		"said", good.Get("said"), "response", good.Get("response")))
	w := p.ask("POST", at+"/challenge", fields, "Cookie:")
	if w.Code == http.StatusOK || !strings.Contains(w.Body.String(), "not logged in") {
		t.Errorf("without a login: %d %s", w.Code, w.Body)
	}
}

// TestAnotherDevice: it reads everything, decides by passkey only, and steers within five minutes of
// the use of one.
func TestAnotherDevice(t *testing.T) {
	conform.Rule(t, "11-page device", "From another device it is worth a named person, by a passkey …")
	p := newSite(t)
	p.proves()
	p.named()
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	link, err := p.s.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.cookie = cookieIn(p.gets(strings.TrimPrefix(link, p.base)))
	if body := p.gets(at).Body.String(); !strings.Contains(body, "On this device a passkey decides") || strings.Contains(body, `name="outcome"`) {
		t.Errorf("a gate without a passkey: %s", body)
	}
	form := p.looks(at)
	for _, outcome := range []string{"pass", "fail", "later"} {
		w := p.posts(at, with(form, "outcome", outcome, "text", "my words", "sure", "yes"))
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "only if your passkey signs it") ||
			!strings.Contains(w.Body.String(), "my words") {
			t.Errorf("%s without a passkey: %d %s", outcome, w.Code, w.Body)
		}
	}
	steer := func() []string {
		return []string{"/r/shop/" + run + "/pause", "/r/shop/" + run + "/note", "/r/shop/" + run + "/abort", "/start/shop/w"}
	}
	held := func(when string) {
		t.Helper()
		for _, target := range steer() {
			w := p.posts(target, url.Values{"text": {"<my> words"}, "sure": {run}})
			if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `data-prove="shop"`) ||
				!strings.Contains(w.Body.String(), `value="&lt;my&gt; words"`) {
				t.Errorf("%s, %s: %d %s", target, when, w.Code, w.Body)
			}
		}
	}
	held("by a link")
	p.cookie = ""
	p.cookie = p.logsIn(p.ofAnother("bob")).cookie
	if !p.lets(p.cookie) {
		t.Fatal("a passkey of another repo does not log in")
	}
	held("by a passkey of another repo")
	p.cookie = ""
	phone, cookie := p.registers("ann")
	p.cookie = cookie
	held("by a registration")
	if asked := p.says("/login/begin", url.Values{"repo": {"shop"}}); len(asked.Options.Allow) != 1 {
		t.Errorf("%+v", asked)
	}
	in := p.logsIn(phone)
	if p.lets(cookie) {
		t.Error("the old cookie still counts")
	}
	p.cookie = in.cookie
	p.later(provedFor)
	held("five minutes later")
	p.cookie = p.logsIn(phone).cookie
	if w := p.posts("/r/shop/"+run+"/pause", url.Values{}); w.Code != http.StatusSeeOther {
		t.Errorf("pause: %d %s", w.Code, w.Body)
	}
	if r, err := p.client.Run(t.Context(), run); err != nil || r.Paused == "" {
		t.Errorf("it is not paused: %v", err)
	}
	if w := p.posts("/r/shop/"+run+"/resume", url.Values{}); w.Code != http.StatusSeeOther {
		t.Errorf("resume: %d %s", w.Code, w.Body)
	}
	form = p.looks(at)
	if got := p.signs(at, phone, form, "outcome", "fail", "text", "from afar"); got.To != strings.TrimSuffix(at, "/g/G") {
		t.Fatalf("%+v", got)
	}
	p.untilRound(run, 2)
	r, err := p.client.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Gates() {
		if g.ID == "G" && (g.Rounds[0].By.Who != "ann" || g.Rounds[0].By.Trust != engine.TrustSigned || g.Rounds[0].Feedback != "from afar") {
			t.Errorf("%+v", g.Rounds[0])
		}
	}
	p.revokes("ann")
	if p.lets(p.cookie) {
		t.Error("a login outlives its passkey")
	}
}

// ofAnother registers a phone with another repo, named depot.
func (p *site) ofAnother(name string) *authenticator.Passkey {
	p.Helper()
	root := filepath.Join(filepath.Dir(p.root), "depot")
	if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		p.Fatalf("git: %v %s", err, out)
	}
	other, err := workspace.At(p.Context(), p.con, root)
	if err == nil {
		err = workspace.MakeState(other.State)
	}
	if err == nil {
		err = workspace.LeaveRoot(root, other.State)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.later(knownFor)
	shop := p.at
	p.at = other
	defer func() { p.at = shop }()
	at, inv := p.invites(name)
	phone := p.phone()
	began := p.says(at+"/begin", url.Values{"code": {inv.Code}})
	done := p.says(at+"/finish", url.Values{"code": {inv.Code}, "response": {string(phone.Create(began.challenge(p)))}})
	if began.Repo != "depot" {
		p.Fatalf("%+v", began)
	}
	p.confirms(inv.ID, done.Key)
	return phone
}

// TestLocalIsNotTheCookieAlone: a login of this machine that comes from another address, or was made
// elsewhere, is none of this machine.
func TestLocalIsNotTheCookieAlone(t *testing.T) {
	p := newSite(t)
	for from, full := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true, "192.0.2.1:1": false,
		"": false} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RemoteAddr = from
		r.Header.Set("Cookie", cookieName+"="+p.cookie)
		if p.s.passkeys.full(r) != full {
			t.Errorf("from %q: full is %v", from, !full)
		}
	}
	elsewhere, err := p.s.logins.add(login{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Cookie", cookieName+"="+elsewhere)
	if p.s.passkeys.full(r) {
		t.Error("a login of another device is full on this machine")
	}
	cookie := p.cookie
	p.named()
	r, err = http.NewRequestWithContext(t.Context(), "GET", p.base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Cookie", cookieName+"="+cookie)
	if p.s.passkeys.full(r) {
		t.Error("at the name for other devices a login of this machine is full")
	}
}

// TestStreamEndsWithTheLogin: what follows the journal stops when its login has ended.
func TestStreamEndsWithTheLogin(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", strings.Replace(p.s.guard.host, strings.Split(p.s.guard.host, ":")[0], "127.0.0.1", 1))
	}}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/r/shop/"+run, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", cookieName+"="+p.cookie)
	r.Header.Set("Accept", "text/event-stream")
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	p.posts("/out", url.Values{})
	if _, err := p.client.Do(t.Context(), engine.PauseRequested{Run: run}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the stream goes on: %v", err)
	}
}
