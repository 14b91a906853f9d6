package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/approval/passkey"
	"sluice/internal/press"
	"sluice/internal/settings"
	"sluice/tools/authenticator"
)

// signedSpec has a gate that wants the signature of ann.
const signedSpec = `workflow: {id: s}
steps:
  - {id: A, agent: {type: writer, prompt: "write"}, gate: G}
gates:
  - {id: G, reviewer: {level: human, approvers: [ann]}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 9}
`

// heard is what the page's script gets.
type heard struct {
	Status   int
	Fault    string
	Said     string
	Question string
	Commit   string
	Label    string
	To       string
	Repo     string
	Key      string
	Waits    bool
	Added    bool
	In       bool
	Unsent   int
	Options  struct {
		Challenge string
		Allow     []struct{ ID string } `json:"allowCredentials"`
	}

	cookie string
}

func (s heard) challenge(t testing.TB) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s.Options.Challenge)
	if err != nil || len(b) == 0 {
		t.Fatalf("no challenge: %+v", s)
	}
	return b
}

// says asks as the page's script does.
func (p *site) says(target string, form url.Values, head ...string) heard {
	p.Helper()
	w := p.ask("POST", target, form, append([]string{"Host: " + p.host(), "Origin: " + p.base}, head...)...)
	var out heard
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		p.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	if out.Status = w.Code; (w.Code == http.StatusOK) != (out.Fault == "") {
		p.Errorf("%s: %d %s", target, w.Code, w.Body)
	}
	out.cookie = cookieIn(w)
	return out
}

func cookieIn(w *httptest.ResponseRecorder) string {
	for _, c := range w.Result().Cookies() {
		if c.Name == cookieName {
			return c.Value
		}
	}
	return ""
}

func (p *site) host() string { _, host, _ := strings.Cut(p.base, "://"); return host }

// gets opens a page at its own name.
func (p *site) gets(target string) *httptest.ResponseRecorder {
	p.Helper()
	return p.ask("GET", target, nil, "Host: "+p.host())
}

// posts sends a form from the page.
func (p *site) posts(target string, form url.Values) *httptest.ResponseRecorder {
	p.Helper()
	return p.ask("POST", target, form, "Host: "+p.host(), "Origin: "+p.base)
}

// named has the page listen for other devices, at a name.
func (p *site) named() {
	p.Helper()
	if err := p.s.Close(); err != nil {
		p.Fatal(err)
	}
	cert, key := certificate(p.T, "sluice.example.org")
	s, err := New(Options{Console: p.con, Home: p.home, Log: zerolog.Nop(),
		Web: settings.Web{Listen: "127.0.0.1:0", Name: "sluice.example.org", Cert: cert, Key: key}})
	if err != nil {
		p.Fatal(err)
	}
	if p.base, err = s.Start(p.Context()); err != nil {
		p.Fatal(err)
	}
	p.s, p.cookie = s, ""
	p.Cleanup(func() {
		if err := s.Close(); err != nil {
			p.Error(err)
		}
	})
}

// certificate makes a certificate of a name.
func certificate(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for file, b := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// deskOf is the desk of the repo, as the terminal has it.
func (p *site) deskOf() passkey.Desk {
	p.Helper()
	at, err := passkey.At(p.base)
	if err != nil {
		p.Fatal(err)
	}
	return passkey.Desk{Repo: p.at.ID, State: p.at.State, Site: at, Now: p.con.Now}
}

// phone makes a passkey, and its browser, at the page.
func (p *site) phone() *authenticator.Passkey {
	p.Helper()
	return authenticator.New(p.T, p.base, p.deskOf().Site.ID())
}

// invites makes a link in the terminal.
func (p *site) invites(name string) (at string, inv passkey.Invitation) {
	p.Helper()
	inv, err := p.deskOf().Invite([]string{name})
	if err != nil {
		p.Fatal(err)
	}
	return "/register/" + p.at.ID, inv
}

// registers registers a phone of a person at the page, and has the terminal confirm it. It returns the
// browser's cookie, if it got one.
func (p *site) registers(name string) (phone *authenticator.Passkey, cookie string) {
	p.Helper()
	at, inv := p.invites(name)
	phone = p.phone()
	began := p.says(at+"/begin", url.Values{"code": {inv.Code}})
	done := p.says(at+"/finish", url.Values{"code": {inv.Code}, "response": {string(phone.Create(began.challenge(p)))}})
	if began.Repo != "shop" || !strings.HasPrefix(done.Key, "SHA256:") || done.cookie != "" {
		p.Fatalf("%+v\n%+v", began, done)
	}
	if now := p.says(at+"/in", url.Values{"code": {inv.Code}}); !now.Waits || now.cookie != "" {
		p.Fatalf("before the terminal's yes: %+v", now)
	}
	p.confirms(inv.ID, done.Key)
	now := p.says(at+"/in", url.Values{"code": {inv.Code}})
	if !now.Added {
		p.Fatalf("after the terminal's yes: %+v", now)
	}
	if again := p.says(at+"/in", url.Values{"code": {inv.Code}}); again.cookie != "" || again.Fault == "" {
		p.Errorf("a registration logs in twice: %+v", again)
	}
	return phone, now.cookie
}

// confirms is the terminal's yes.
func (p *site) confirms(id, key string) {
	p.Helper()
	d := p.deskOf()
	reg, err := d.Registered(id)
	if err != nil || reg == nil || reg.Key != key {
		p.Fatalf("%+v %v, want %s", reg, err, key)
	}
	if err := d.Confirm(reg); err != nil {
		p.Fatal(err)
	}
	if err := d.Withdraw(id); err != nil {
		p.Fatal(err)
	}
}

// logsIn logs a phone in by its passkey, and returns the answer.
func (p *site) logsIn(phone *authenticator.Passkey) heard {
	p.Helper()
	asked := p.says("/login/begin", url.Values{})
	return p.says("/login/finish", url.Values{"said": {asked.Said}, "response": {string(phone.Get(asked.challenge(p)))}})
}

// looks returns the form at a gate, as a browser has it after a second of looking.
func (p *site) looks(gate string) url.Values {
	p.Helper()
	w := p.gets(gate)
	if w.Code != http.StatusOK {
		p.Fatalf("%s: %d %s", gate, w.Code, w.Body)
	}
	p.later(press.Shown)
	return fieldsOf(w.Body.String())
}

// with returns a form with other values.
func with(form url.Values, pairs ...string) url.Values {
	f := url.Values{}
	maps.Copy(f, form)
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return f
}

// revokes takes a person's passkeys off the list.
func (p *site) revokes(name string) {
	p.Helper()
	store := approval.Store{State: p.at.State}
	l, err := store.Load()
	if err != nil {
		p.Fatal(err)
	}
	for _, s := range l.Signers {
		if s.Names[0] == name {
			if err := store.Revoke(approval.Revoked{Key: s.Key, At: p.con.Now()}); err != nil {
				p.Fatal(err)
			}
		}
	}
}

// proves has the world check what is signed, as the real one does.
func (p *site) proves() {
	p.world.proven = func(proof string) (engine.Proven, string) {
		out := engine.Proven{Proof: proof}
		list, err := approval.Store{State: p.at.State}.Load()
		var by approval.Signer
		var text []byte
		var a approval.Approval
		if err == nil {
			text, by, err = list.Verify([]byte(proof), approval.GateNamespace)
		}
		if err == nil {
			a, err = approval.ParseApproval(text)
		}
		if err != nil {
			out.Unproven = err.Error()
			return out, ""
		}
		out.Signed = &engine.Signed{Names: by.Names, Key: by.Key, Run: a.Run, Gate: a.Gate, Round: a.Round,
			Outcome: a.Decision, Digest: a.Reviewed, Nonce: a.Nonce, Expires: a.Expires, Findings: json.RawMessage(a.Findings)}
		return out, a.Words
	}
}
