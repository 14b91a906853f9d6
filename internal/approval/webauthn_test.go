package approval

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sluice/tools/authenticator"
)

const pageOrigin, pageSite = "https://sluice.example.org", "sluice.example.org"

// passkeyOf makes a passkey, and a list on which it stands.
func passkeyOf(t testing.TB) (*authenticator.Passkey, Signer, List) {
	t.Helper()
	phone := authenticator.Fixed(t, pageOrigin, pageSite)
	key, err := PasskeyOf(phone.Public, pageSite)
	if err != nil {
		t.Fatal(err)
	}
	key.Names = []string{"ann"}
	return phone, key, List{Signers: []Signer{key}, Passkeys: map[string]Passkey{key.Key: {Origin: pageOrigin, Credential: phone.ID}}}
}

func signedBy(t testing.TB, phone *authenticator.Passkey, key Signer, said []byte) []byte {
	t.Helper()
	auth, client, sig := phone.Sign(Challenge(said, GateNamespace))
	proof, err := Repack(key, pageOrigin, GateNamespace, said, Assertion{auth, client, sig})
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// TestRepackRefuses: what no browser sends is refused before anything is compared.
func TestRepackRefuses(t *testing.T) {
	phone, key, list := passkeyOf(t)
	said := anApproval().Text()
	auth, client, sig := phone.Sign(Challenge(said, GateNamespace))
	token, _ := token(t, said, 1)
	for name, c := range map[string]struct {
		key  Signer
		a    Assertion
		says string
	}{
		"no passkey":        {token, Assertion{auth, client, sig}, "is not a passkey"},
		"short":             {key, Assertion{auth[:36], client, sig}, "has 36 bytes"},
		"long":              {key, Assertion{make([]byte, MaxAuthData+1), client, sig}, "has 4097 bytes"},
		"an unknown tail":   {key, Assertion{append(bytes.Clone(auth), 0xa0), client, sig}, "extensions that its flags do not name"},
		"no extensions":     {key, Assertion{flagged(auth, 0x80), client, sig}, "or none that they name"},
		"of a registration": {key, Assertion{flagged(auth, 0x40), client, sig}, "that of a registration"},
		"not DER":           {key, Assertion{auth, client, sig[1:]}, "want ECDSA in DER"},
		"a tail":            {key, Assertion{auth, client, append(bytes.Clone(sig), 0)}, "want ECDSA in DER"},
		"zero":              {key, Assertion{auth, client, []byte{0x30, 6, 2, 1, 0, 2, 1, 1}}, "want ECDSA in DER"},
		"no client data":    {key, Assertion{auth, nil, sig}, "the browser's client data"},
		"long client data":  {key, Assertion{auth, bytes.Repeat([]byte(" "), maxClientData+1), sig}, "the browser's client data"},
		"another order": {key, Assertion{auth, bytes.Replace(client, []byte(`{"type":"webauthn.get",`), []byte(`{ "type":"webauthn.get",`), 1), sig},
			"in another form than OpenSSH reads"},
		"a number":        {key, Assertion{auth, []byte(`{"type":1,"challenge":"","origin":""}`), sig}, "type is not a text"},
		"a like name":     {key, Assertion{auth, []byte(`{"Type":"webauthn.get","challenge":"","origin":""}`), sig}, "type is not a text"},
		"another counter": {key, Assertion{append(bytes.Clone(auth[:36]), 1), client, sig}, "the signature is not the passkey's"},
	} {
		if _, err := Repack(c.key, pageOrigin, GateNamespace, said, c.a); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, _, err := list.Verify(signedBy(t, phone, key, said), AuditNamespace); err == nil || !strings.Contains(err.Error(), "it was signed for") {
		t.Errorf("for the audit: %v", err)
	}
}

func flagged(auth []byte, flag byte) []byte {
	out := bytes.Clone(auth)
	out[32] |= flag
	return out
}

// TestPasskeyFormats: a passkey signs as one, and a token does not.
func TestPasskeyFormats(t *testing.T) {
	phone, key, list := passkeyOf(t)
	said := anApproval().Text()
	good := signedBy(t, phone, key, said)
	for name, c := range map[string]struct {
		change func(*sshsig, *ssh.Signature)
		says   string
	}{
		"as a token":     {func(_ *sshsig, s *ssh.Signature) { s.Format, s.Rest = ssh.KeyAlgoSKECDSA256, s.Rest[:5] }, "its key is the passkey of " + pageSite},
		"nothing behind": {func(_ *sshsig, s *ssh.Signature) { s.Rest = nil }, "the passkey's signature cannot be read"},
		"no numbers":     {func(_ *sshsig, s *ssh.Signature) { s.Blob = nil }, "the passkey's signature cannot be read"},
		"a tail":         {func(_ *sshsig, s *ssh.Signature) { s.Rest = append(s.Rest, 0) }, "the passkey's signature cannot be read"},
		"a token's key": {func(b *sshsig, _ *ssh.Signature) {
			b.PublicKey = string(ssh.Marshal(skBlob{ssh.KeyAlgoSKECDSA256, "nistp256", pointOf(t, key), "ssh:"}))
		}, "its key is not one"},
		"another site's": {func(b *sshsig, _ *ssh.Signature) {
			b.PublicKey = string(ssh.Marshal(skBlob{ssh.KeyAlgoSKECDSA256, "nistp256", pointOf(t, key), "example.org"}))
		}, "signed at https://sluice.example.org and belongs to example.org"},
	} {
		text, armored, err := Split(good)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseSignature(armored)
		if err != nil {
			t.Fatal(err)
		}
		c.change(&s.blob, &s.sig)
		s.blob.Signature = string(ssh.Marshal(s.sig))
		changed := pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte(sigMagic), ssh.Marshal(s.blob)...)})
		if _, _, err := list.Verify(Join(text, changed), GateNamespace); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func pointOf(t *testing.T, key Signer) []byte {
	t.Helper()
	var b skBlob
	if err := ssh.Unmarshal(key.blob, &b); err != nil {
		t.Fatal(err)
	}
	return b.Point
}

// TestPasskeyStore: the list is read back with the page of each passkey, for gates only; a list of
// pages that cannot be read counts for none.
func TestPasskeyStore(t *testing.T) {
	_, key, list := passkeyOf(t)
	about := list.Passkeys[key.Key]
	s := Store{State: t.TempDir()}
	other := about
	if other.Origin = "https://example.org"; s.AddPasskey(key, other) == nil {
		t.Error("a passkey was added for another site")
	}
	if err := s.AddPasskey(key, about); err != nil {
		t.Fatal(err)
	}
	l, err := s.Load()
	if err != nil || len(l.Signers) != 1 || l.Signers[0].Site != pageSite || l.Passkeys[key.Key].Origin != pageOrigin ||
		strings.Join(l.Signers[0].spaces, ",") != GateNamespace {
		t.Errorf("%+v %v", l, err)
	}
	if err := s.Revoke(Revoked{Key: key.Key}); err != nil {
		t.Fatal(err)
	}
	other.Origin = "https://" + pageSite + ":1"
	if err := s.AddPasskey(key, other); err == nil || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("%v", err)
	}
	if l, err = s.Load(); err != nil || l.Passkeys[key.Key].Origin != pageOrigin {
		t.Errorf("the page of a revoked passkey changed: %+v %v", l, err)
	}
	if err := s.write(passkeyFile, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), "register the passkeys again") {
		t.Errorf("%v", err)
	}
}

// FuzzSignature: no signature makes the reader fail otherwise than by an error, and none holds but the
// one that was made.
func FuzzSignature(f *testing.F) {
	phone, key, list := passkeyOf(f)
	said := anApproval().Text()
	good := signedBy(f, phone, key, said)
	_, armored, err := Split(good)
	if err != nil {
		f.Fatal(err)
	}
	block, _ := pem.Decode(armored)
	f.Add(block.Bytes)
	f.Fuzz(func(t *testing.T, data []byte) {
		changed := Join(said, pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: data}))
		if text, by, err := list.Verify(changed, GateNamespace); err == nil && (by.Key != key.Key || !bytes.Equal(text, said)) {
			t.Errorf("%q holds for %s", text, by.Key)
		}
	})
}

// FuzzAssertion: no assertion makes Repack fail otherwise than by an error, and what it gives is valid.
func FuzzAssertion(f *testing.F) {
	phone, key, list := passkeyOf(f)
	said := anApproval().Text()
	auth, client, sig := phone.Sign(Challenge(said, GateNamespace))
	f.Add(auth, client, sig)
	f.Fuzz(func(t *testing.T, auth, client, sig []byte) {
		proof, err := Repack(key, pageOrigin, GateNamespace, said, Assertion{auth, client, sig})
		if err != nil {
			return
		}
		if _, _, err := list.Verify(proof, GateNamespace); err != nil {
			t.Errorf("what was repacked does not hold: %v", err)
		}
	})
}
