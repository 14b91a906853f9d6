package passkey

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/approval"
	"sluice/tools/authenticator"
	"sluice/tools/conform"
)

const origin = "https://sluice.example.org:8443"

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newDesk(t *testing.T) (Desk, *clock) {
	t.Helper()
	site, err := At(origin)
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{time.Date(2026, 11, 24, 14, 0, 0, 0, time.UTC)}
	return Desk{Repo: "app-1a2b", State: t.TempDir(), Site: site, Now: c.now}, c
}

// register has a phone register a passkey, and confirms it.
func register(t *testing.T, d Desk, name string) *authenticator.Passkey {
	t.Helper()
	inv, err := d.Invite([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	options, err := d.BeginRegistration(inv.Code)
	if err != nil {
		t.Fatal(err)
	}
	phone := authenticator.New(t, origin, "sluice.example.org")
	shown, err := d.FinishRegistration(inv.Code, phone.Create(options.Challenge))
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Registered(inv.ID)
	if err != nil || got == nil || got.Key != shown.Key {
		t.Fatalf("%+v %v, want %s", got, err, shown.Key)
	}
	if err := d.Confirm(got); err != nil {
		t.Fatal(err)
	}
	if err := d.Withdraw(inv.ID); err != nil {
		t.Fatal(err)
	}
	return phone
}

func anAsk() Ask {
	return Ask{Run: "phase-4-2", Gate: "approve", Round: 3, Decision: "pass", Reviewed: strings.Repeat("d1", 20),
		Words: "well done", Approvers: []string{"ann"}}
}

// TestDecision: what a passkey signed is checked by ssh-keygen alone, in a folder with nothing but the
// list.
func TestDecision(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs: ssh-keygen (apt-get install openssh-client)")
	}
	d, _ := newDesk(t)
	phone := register(t, d, "ann")
	register(t, d, "bob")
	for name, set := range map[string]func(){
		"as a phone":      func() {},
		"as a token":      func() { phone.Flags, phone.Counter = authenticator.Present|authenticator.Verified, 41 },
		"with extensions": func() { phone.Extensions = []byte{0xa1, 0x61, 'x', 0xf5} },
		"more members":    func() { phone.More = `,"crossOrigin":false,"other_keys_can_be_added_here":"x"` },
	} {
		set()
		c, err := d.BeginDecision(anAsk())
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Options.Allow) != 1 || !bytes.Equal(c.Options.Allow[0].ID, phone.ID) || c.Options.RPID != "sluice.example.org" {
			t.Errorf("%s: %+v", name, c.Options)
		}
		ev, err := d.FinishDecision(anAsk(), c.Text, phone.Get(c.Options.Challenge))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if ev.Gate != "approve" || ev.Run != "phase-4-2" || ev.Round != 3 || ev.Outcome != "pass" || ev.Text != "well done" {
			t.Errorf("%s: %+v", name, ev)
		}
		said, armored, err := approval.Split([]byte(ev.Proof))
		if err != nil {
			t.Fatal(err)
		}
		good, out := verify(t, d, said, armored)
		if !good || !strings.Contains(out, `Good "sluice-gate" signature for ann with ECDSA-SK key`) {
			t.Errorf("%s: ssh-keygen: %s", name, out)
		}
		if good, out := verify(t, d, bytes.Replace(said, []byte("decision: pass"), []byte("decision: fail"), 1), armored); good {
			t.Errorf("%s: ssh-keygen took another decision: %s", name, out)
		}
	}
}

// verify has ssh-keygen check a signature by a copy of the list, alone in a folder.
func verify(t *testing.T, d Desk, said, armored []byte) (good bool, out string) {
	t.Helper()
	dir := t.TempDir()
	list, err := os.ReadFile(approval.Store{State: d.State}.ListFile())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"allowed_signers": list, "sig": armored} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("ssh-keygen", "-Y", "verify", "-n", "sluice-gate", "-f", "allowed_signers", "-I", "ann", "-s", "sig")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(said)
	said2, err := cmd.CombinedOutput()
	return err == nil, string(said2)
}

// TestDecisionRefused has each way in which an assertion is none told by its reason.
func TestDecisionRefused(t *testing.T) {
	conform.Rule(t, "11-page checked", "Checked: origin, rpID, user verification (`required`), round, …")
	type change struct {
		ask   func(*Ask)                   // what the gate asks when the answer comes
		phone func(*authenticator.Passkey) // how the phone signs
		text  func(string) string          // what the browser sends back as signed
		data  func(response []byte) []byte // what the browser sends of the passkey
		later time.Duration                // between the two requests
		list  func(Desk, approval.List)    // what happens to the list meanwhile
	}
	swap := func(old, new string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, new, 1) }
	}
	for name, c := range map[string]struct {
		change
		says string
	}{
		"another commit now":   {change{ask: func(a *Ask) { a.Reviewed = "d2" }}, "signed for another content"},
		"another round now":    {change{ask: func(a *Ask) { a.Round = 4 }}, "signed for another round (3; now it is 4)"},
		"another run":          {change{ask: func(a *Ask) { a.Run = "phase-4-3" }}, "signed for another run"},
		"another gate":         {change{ask: func(a *Ask) { a.Gate = "ship" }}, "signed for another gate"},
		"another decision":     {change{ask: func(a *Ask) { a.Decision = "fail" }}, "signed for another decision (pass; now it is fail)"},
		"other words":          {change{ask: func(a *Ask) { a.Words = "no" }}, "has other words"},
		"an answer":            {change{ask: func(a *Ask) { a.Answer = `{"n":1}` }}, "another answer"},
		"another repo":         {change{text: swap("app-1a2b", "app-1a2c")}, "signed for another repo"},
		"commit changed":       {change{text: swap("d1d1", "d1d2")}, "signed for another content"},
		"commit changed, both": {change{text: swap("d1d1", "d1d2"), ask: func(a *Ask) { a.Reviewed = strings.Replace(a.Reviewed, "d1d1", "d1d2", 1) }}, "was changed after it was signed"},
		"decision changed, both": {change{text: swap("decision: pass", "decision: fail"), ask: func(a *Ask) { a.Decision = "fail" }},
			"was changed after it was signed"},
		"nonce changed": {change{text: func(s string) string {
			i := strings.Index(s, "nonce: ") + 7
			return s[:i] + strings.Map(func(r rune) rune { return 'a' }, s[i:i+1]) + strings.Repeat("0", 31) + s[i+32:]
		}}, "was changed after it was signed"},
		"expired":            {change{later: Valid}, "it expired at 2026-11-24 14:10:00Z"},
		"longer than asked":  {change{text: swap("14:10:00Z", "14:20:00Z")}, "it is valid for longer than 10m0s"},
		"no approval":        {change{text: func(string) string { return "yes" }}, `it begins with "yes"`},
		"another page":       {change{phone: func(p *authenticator.Passkey) { p.Origin = "https://evil.example.org" }}, "the passkey signed at https://evil.example.org, and https://sluice.example.org:8443 is wanted"},
		"another port":       {change{phone: func(p *authenticator.Passkey) { p.Origin = "https://sluice.example.org:8444" }}, "the passkey signed at https://sluice.example.org:8444"},
		"another site":       {change{phone: func(p *authenticator.Passkey) { p.Site = "example.org" }}, "the passkey signed for another site than sluice.example.org"},
		"nobody there":       {change{phone: func(p *authenticator.Passkey) { p.Flags = authenticator.Verified }}, "did not ask for a touch"},
		"nobody verified":    {change{phone: func(p *authenticator.Passkey) { p.Flags = authenticator.Present }}, "did not verify who used the passkey"},
		"another call":       {change{phone: func(p *authenticator.Passkey) { p.Type = "webauthn.create" }}, `made it for "webauthn.create"`},
		"in a frame":         {change{phone: func(p *authenticator.Passkey) { p.More = `,"crossOrigin":true` }}, "in a frame of another page"},
		"below another page": {change{phone: func(p *authenticator.Passkey) { p.More = `,"topOrigin":"https://evil.example.org"` }}, "in a frame of another page"},
		"origin twice":       {change{phone: func(p *authenticator.Passkey) { p.More = `,"origin":"https://evil.example.org"` }}, "the browser's client data"},
		"another passkey":    {change{phone: func(p *authenticator.Passkey) { p.ID = []byte("another") }}, "this passkey is not known"},
		"another's key": {change{phone: func(p *authenticator.Passkey) {
			other := authenticator.New(t, p.Origin, p.Site)
			other.ID = p.ID
			*p = *other
		}}, "the signature is not the passkey's"},
		"one verified bit changed": {change{phone: func(p *authenticator.Passkey) { p.Flags = authenticator.Present }, data: flags(t, 0x05)},
			"the signature is not the passkey's"},
		"removed": {change{list: func(d Desk, l approval.List) {
			if err := (approval.Store{State: d.State}).Revoke(approval.Revoked{Key: l.Signers[0].Key, At: d.Now()}); err != nil {
				t.Fatal(err)
			}
		}}, "this passkey is not known, or was removed"},
		"no JSON":     {change{data: func([]byte) []byte { return []byte("x") }}, "the browser's answer"},
		"much":        {change{data: func([]byte) []byte { return bytes.Repeat([]byte(" "), MaxResponse+1) }}, "the browser's answer"},
		"no passkey":  {change{data: func(b []byte) []byte { return bytes.Replace(b, []byte("public-key"), []byte("password"), 1) }}, "is not that of a passkey"},
		"a short one": {change{data: func([]byte) []byte { return []byte(`{"rawId":"AA","type":"public-key","response":{}}`) }}, "this passkey is not known"},
	} {
		d, clock := newDesk(t)
		phone := register(t, d, "ann")
		began, err := d.BeginDecision(anAsk())
		if err != nil {
			t.Fatal(err)
		}
		ask, said := anAsk(), began.Text
		if c.phone != nil {
			c.phone(phone)
		}
		response := phone.Get(began.Options.Challenge)
		if c.ask != nil {
			c.ask(&ask)
		}
		if c.text != nil {
			said = c.text(said)
		}
		if c.data != nil {
			response = c.data(response)
		}
		if c.list != nil {
			list, err := approval.Store{State: d.State}.Load()
			if err != nil {
				t.Fatal(err)
			}
			c.list(d, list)
		}
		clock.at = clock.at.Add(c.later)
		if ev, err := d.FinishDecision(ask, said, response); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v %v, want %q", name, ev, err, c.says)
		}
	}
}

// flags sets the flags in an assertion, after it was signed.
func flags(t *testing.T, to byte) func([]byte) []byte {
	return func(data []byte) []byte {
		var whole map[string]any
		if err := json.Unmarshal(data, &whole); err != nil {
			t.Fatal(err)
		}
		response := whole["response"].(map[string]any)
		auth, err := base64.RawURLEncoding.DecodeString(response["authenticatorData"].(string))
		if err != nil {
			t.Fatal(err)
		}
		auth[32] = to
		response["authenticatorData"] = base64.RawURLEncoding.EncodeToString(auth)
		if data, err = json.Marshal(whole); err != nil {
			t.Fatal(err)
		}
		return data
	}
}

// TestDecisionNobody: without a passkey of an approver there is nothing to ask the browser.
func TestDecisionNobody(t *testing.T) {
	d, _ := newDesk(t)
	register(t, d, "bob")
	if _, err := d.BeginDecision(anAsk()); err == nil || !strings.Contains(err.Error(), "no passkey of ann is registered at "+origin) {
		t.Errorf("%v", err)
	}
	anybody := anAsk()
	anybody.Approvers = nil
	if c, err := d.BeginDecision(anybody); err != nil || len(c.Options.Allow) != 1 {
		t.Errorf("%+v %v", c, err)
	}
	anybody.Answer = "{"
	if _, err := d.BeginDecision(anybody); err == nil || !strings.Contains(err.Error(), "cannot be written for signing") {
		t.Errorf("%v", err)
	}
	other, err := At("https://other.example.org")
	if err != nil {
		t.Fatal(err)
	}
	d.Site = other
	if _, err := d.BeginDecision(anAsk()); err == nil || !strings.Contains(err.Error(), "registered at https://other.example.org") {
		t.Errorf("another page offers this one's passkeys: %v", err)
	}
}

// TestDecisionOnRecord: the proof carries its page, and counts for no other.
func TestDecisionOnRecord(t *testing.T) {
	d, _ := newDesk(t)
	phone := register(t, d, "ann")
	c, err := d.BeginDecision(anAsk())
	if err != nil {
		t.Fatal(err)
	}
	ev, err := d.FinishDecision(anAsk(), c.Text, phone.Get(c.Options.Challenge))
	if err != nil {
		t.Fatal(err)
	}
	list, err := approval.Store{State: d.State}.Load()
	if err != nil {
		t.Fatal(err)
	}
	key := list.Signers[0]
	if key.KindWord() != "passkey of sluice.example.org" {
		t.Errorf("%s", key.KindWord())
	}
	for name, about := range map[string]map[string]approval.Passkey{
		"was registered at https://sluice.example.org:1": {key.Key: {Origin: "https://sluice.example.org:1"}},
		"the page of the passkey":                        nil,
	} {
		other := list
		other.Passkeys = about
		if _, _, err := other.Verify([]byte(ev.Proof), approval.GateNamespace); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("verified: %v, want %q", err, name)
		}
		if _, _, err := other.Holds([]byte(ev.Proof), approval.GateNamespace); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("held: %v, want %q", err, name)
		}
	}
	if err := (approval.Store{State: d.State}).Revoke(approval.Revoked{Key: key.Key, At: d.Now(), Why: "lost"}); err != nil {
		t.Fatal(err)
	}
	if list, err = (approval.Store{State: d.State}).Load(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := list.Verify([]byte(ev.Proof), approval.GateNamespace); err == nil || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("%v", err)
	}
	if _, _, err := list.Holds([]byte(ev.Proof), approval.GateNamespace); err != nil {
		t.Errorf("what counted once does not hold: %v", err)
	}
}

// TestDecisionCarries: the answer of a pass and the comments of a fail are signed, and handed in as they
// were.
func TestDecisionCarries(t *testing.T) {
	d, _ := newDesk(t)
	phone := register(t, d, "ann")
	for name, set := range map[string]func(*Ask){
		"nothing":  func(*Ask) {},
		"answer":   func(a *Ask) { a.Answer = `{"replicas":3}` },
		"findings": func(a *Ask) { a.Decision, a.Findings = "fail", `[{"file":"a.go","line":3,"message":"why?"}]` },
	} {
		ask := anAsk()
		set(&ask)
		c, err := d.BeginDecision(ask)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := d.FinishDecision(ask, c.Text, phone.Get(c.Options.Challenge))
		if err != nil || string(ev.Answer) != ask.Answer || string(ev.Findings) != ask.Findings ||
			(ev.Answer == nil) != (ask.Answer == "") || (ev.Findings == nil) != (ask.Findings == "") {
			t.Errorf("%s: %+v %v", name, ev, err)
		}
	}
}
