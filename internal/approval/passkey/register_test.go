package passkey

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/internal/approval"
	"sluice/tools/authenticator"
)

func invited(t *testing.T, d Desk) (Invitation, *CreationOptions, *authenticator.Passkey) {
	t.Helper()
	inv, err := d.Invite([]string{"ann@example.org", "ann"})
	if err != nil {
		t.Fatal(err)
	}
	options, err := d.BeginRegistration(inv.Code)
	if err != nil {
		t.Fatal(err)
	}
	return inv, options, authenticator.New(t, origin, "sluice.example.org")
}

func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want %q", what, err, says)
	}
}

func TestRegister(t *testing.T) {
	d, _ := newDesk(t)
	inv, options, phone := invited(t, d)
	if want := origin + "/register/app-1a2b#" + inv.Code; inv.Link != want || len(inv.Code) != 40 {
		t.Errorf("%s, want %s", inv.Link, want)
	}
	if options.RP.ID != "sluice.example.org" || options.User.DisplayName != "ann@example.org" ||
		options.Selection.UserVerification != "required" || len(options.Kinds) != 1 || options.Kinds[0].Alg != -7 {
		t.Errorf("%+v", options)
	}
	if reg, err := d.Registered(inv.ID); reg != nil || err != nil {
		t.Errorf("%+v %v", reg, err)
	}
	if _, err := d.FinishRegistration(inv.Code, phone.Create(options.Challenge)); err != nil {
		t.Fatal(err)
	}
	if l, err := (approval.Store{State: d.State}).Load(); err != nil || len(l.Signers) != 0 {
		t.Errorf("it counts before it is confirmed: %+v %v", l, err)
	}
	reg, err := d.Registered(inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Confirm(reg); err != nil {
		t.Fatal(err)
	}
	if err := d.Withdraw(inv.ID); err != nil {
		t.Fatal(err)
	}
	l, err := approval.Store{State: d.State}.Load()
	if err != nil || len(l.Signers) != 1 || l.Signers[0].Key != reg.Key || l.Signers[0].Site != "sluice.example.org" ||
		strings.Join(l.Signers[0].Names, ",") != "ann@example.org,ann" || l.Passkeys[reg.Key].Origin != origin {
		t.Errorf("%+v %v", l, err)
	}
	if left, err := os.ReadDir(filepath.Join(d.State, "passkeys")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if inv, err = d.Invite([]string{"ann@example.org"}); err != nil {
		t.Fatal(err)
	}
	if options, err = d.BeginRegistration(inv.Code); err != nil || len(options.Exclude) != 1 {
		t.Errorf("the same phone may register twice: %+v %v", options, err)
	}
}

// TestRegisterRefused has each way in which a registration is none told by its reason.
func TestRegisterRefused(t *testing.T) {
	for name, c := range map[string]struct {
		phone func(*authenticator.Passkey)
		says  string
	}{
		"another page":     {func(p *authenticator.Passkey) { p.Origin = "https://evil.example.org" }, "the passkey was made at https://evil.example.org"},
		"another site":     {func(p *authenticator.Passkey) { p.Site = "example.org" }, "made for another site"},
		"another call":     {func(p *authenticator.Passkey) { p.Type = "webauthn.get" }, `made it for "webauthn.get"`},
		"in a frame":       {func(p *authenticator.Passkey) { p.More = `,"crossOrigin":true` }, "in a frame"},
		"nobody there":     {func(p *authenticator.Passkey) { p.Flags = authenticator.Verified }, "did not ask for a touch"},
		"nobody verified":  {func(p *authenticator.Passkey) { p.Flags = authenticator.Present }, "did not verify who made the passkey"},
		"RS256":            {func(p *authenticator.Passkey) { p.Algorithm = -257 }, "the passkey signs with RS256: only ES256 counts"},
		"EdDSA":            {func(p *authenticator.Passkey) { p.Algorithm = -8 }, "the passkey signs with EdDSA: only ES256 counts"},
		"an RSA key":       {func(p *authenticator.Passkey) { p.Public = spki(t, "rsa") }, "the passkey signs with rsa.PublicKey"},
		"an Ed25519 key":   {func(p *authenticator.Passkey) { p.Public = spki(t, "ed25519") }, "the passkey signs with ed25519.PublicKey"},
		"a P-384 key":      {func(p *authenticator.Passkey) { p.Public = spki(t, "p384") }, "only ES256 counts"},
		"no key":           {func(p *authenticator.Passkey) { p.Public = []byte{0x30, 0} }, "the passkey's public key cannot be read"},
		"much":             {func(p *authenticator.Passkey) { p.Public = make([]byte, 5000) }, "has more than 4096 bytes"},
		"a credential too": {func(p *authenticator.Passkey) { p.ID = make([]byte, 1024) }, "is not that of a passkey"},
	} {
		d, _ := newDesk(t)
		inv, options, phone := invited(t, d)
		good := *phone
		c.phone(phone)
		_, err := d.FinishRegistration(inv.Code, phone.Create(options.Challenge))
		refused(t, name, err, c.says)
		if _, err := d.FinishRegistration(inv.Code, good.Create([]byte("another"))); err == nil {
			t.Errorf("%s: an answer to another challenge was taken", name)
		}
		if _, err := d.FinishRegistration(inv.Code, good.Create(options.Challenge)); err != nil {
			t.Errorf("%s: what was refused used the code up: %v", name, err)
		}
	}
}

func spki(t *testing.T, kind string) []byte {
	t.Helper()
	var public any
	var err error
	switch kind {
	case "rsa":
		var key *rsa.PrivateKey
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err == nil {
			public = key.Public()
		}
	case "ed25519":
		public, _, err = ed25519.GenerateKey(rand.Reader)
	case "p384":
		var key *ecdsa.PrivateKey
		if key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader); err == nil {
			public = key.Public()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCode: a code counts once, for its time, at its page, and bears few guesses.
func TestCode(t *testing.T) {
	d, clock := newDesk(t)
	inv, options, phone := invited(t, d)
	if _, err := d.FinishRegistration(inv.Code, phone.Create(options.Challenge)); err != nil {
		t.Fatal(err)
	}
	thief := authenticator.New(t, origin, "sluice.example.org")
	_, err := d.FinishRegistration(inv.Code, thief.Create(options.Challenge))
	refused(t, "used", err, "this registration code was used already")
	_, err = d.BeginRegistration(inv.Code)
	refused(t, "used", err, "this registration code was used already")
	if err := d.Withdraw(inv.ID); err != nil {
		t.Fatal(err)
	}
	_, err = d.BeginRegistration(inv.Code)
	refused(t, "withdrawn", err, "this registration code is not known")

	inv, options, phone = invited(t, d)
	other := d
	if other.Site, err = At("https://other.example.org"); err != nil {
		t.Fatal(err)
	}
	_, err = other.BeginRegistration(inv.Code)
	refused(t, "at another page", err, "is for "+origin)
	clock.at = clock.at.Add(Life)
	_, err = d.FinishRegistration(inv.Code, phone.Create(options.Challenge))
	refused(t, "expired", err, "the registration code expired at 2026-11-24 14:10:00Z")
	_, err = d.Registered(inv.ID)
	refused(t, "expired", err, "the registration code expired")

	inv, _, _ = invited(t, d)
	wrong := inv.ID + strings.Repeat("0", 32)
	for range maxGuesses {
		_, err = d.BeginRegistration(wrong)
		refused(t, "wrong", err, "this registration code is not known")
	}
	_, err = d.BeginRegistration(inv.Code)
	refused(t, "guessed at", err, "was guessed at 5 times and no longer counts")
	_, err = d.Registered(inv.ID)
	refused(t, "guessed at", err, "was guessed at 5 times")
	for _, code := range []string{"", "../../x", inv.Code[1:], strings.ToUpper(inv.Code), inv.Code + "0", "0000000/" + inv.Code[8:]} {
		_, err = d.BeginRegistration(code)
		refused(t, code, err, "this registration code is not known")
	}
}

// TestCodeAtOnce: of many that use a code at the same time one registers.
func TestCodeAtOnce(t *testing.T) {
	d, _ := newDesk(t)
	inv, options, _ := invited(t, d)
	var wait sync.WaitGroup
	results := make(chan error, 4)
	for range cap(results) {
		phone := authenticator.New(t, origin, "sluice.example.org")
		wait.Go(func() {
			_, err := d.FinishRegistration(inv.Code, phone.Create(options.Challenge))
			results <- err
		})
	}
	wait.Wait()
	close(results)
	good := 0
	for err := range results {
		if err == nil {
			good++
		}
	}
	if good != 1 {
		t.Errorf("%d registered with one code", good)
	}
}

func TestInvite(t *testing.T) {
	d, clock := newDesk(t)
	for _, names := range [][]string{nil, {"a b"}, slices.Repeat([]string{"ann"}, 21)} {
		if _, err := d.Invite(names); err == nil {
			t.Errorf("%v was invited", names)
		}
	}
	for range maxPending {
		if _, err := d.Invite([]string{"ann"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.Invite([]string{"ann"})
	refused(t, "too many", err, "20 passkeys wait for registration")
	clock.at = clock.at.Add(2 * Life)
	if _, err := d.Invite([]string{"ann"}); err != nil {
		t.Errorf("what is over is in the way: %v", err)
	}
	if left, err := os.ReadDir(d.dir()); err != nil || len(left) != 1 {
		t.Errorf("left: %v %v", left, err)
	}
	if err := d.Withdraw("../x"); err == nil {
		t.Error("a path was taken for an invitation")
	}
}

func TestAt(t *testing.T) {
	for address, want := range map[string]string{
		"https://sluice.example.org":      "https://sluice.example.org sluice.example.org",
		"https://Sluice.example.org:443/": "https://sluice.example.org sluice.example.org",
		"http://sluice.localhost:7070":    "http://sluice.localhost:7070 sluice.localhost",
		"http://localhost:80":             "http://localhost localhost",
	} {
		if s, err := At(address); err != nil || s.Origin()+" "+s.ID() != want {
			t.Errorf("%s: %+v %v, want %s", address, s, err, want)
		}
	}
	for _, address := range []string{"", "sluice.example.org", "http://sluice.example.org", "https://192.0.2.1", "https://[::1]:7",
		"https://a@sluice.example.org", "https://sluice.example.org/x", "https://sluice.example.org?x", "https://slü.example.org",
		"https://sluice.example.org.", "ftp://sluice.example.org", "http://localhost.example.org", `https://a"b.example.org`} {
		if s, err := At(address); err == nil {
			t.Errorf("%s: taken as %+v", address, s)
		}
	}
}

// TestInvitationOfOthers: a file that others can write is no invitation.
func TestInvitationOfOthers(t *testing.T) {
	d, _ := newDesk(t)
	inv, _, _ := invited(t, d)
	if err := os.Chmod(filepath.Join(d.dir(), inv.ID+".json"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := d.BeginRegistration(inv.Code)
	refused(t, "others", err, "others can write it")
}
