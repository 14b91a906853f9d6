// Package authenticator stands in for a browser with a passkey, for tests: it makes a passkey, and
// signs, as navigator.credentials does, and gives what toJSON() gives.
package authenticator

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"
)

// Flags of an assertion: present, verified, and synced as a phone's passkeys are.
const (
	Present  = 0x01
	Verified = 0x04
	Synced   = 0x18
	attested = 0x40
)

// Passkey is one passkey, and the browser that uses it.
type Passkey struct {
	Origin     string // of the page that the browser shows
	Site       string // the passkey's
	ID         []byte
	Flags      byte
	Counter    uint32
	Extensions []byte // CBOR; their flag is set where there are any
	More       string // members of the client data behind the known ones, such as `,"x":1`
	Algorithm  int
	Public     []byte // SPKI in DER
	Type       string // of the client data; "" = that of the call

	t   testing.TB
	key *ecdsa.PrivateKey
}

// New makes a passkey at a page.
func New(t testing.TB, origin, site string) *Passkey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 20)
	_, _ = rand.Read(id) // on an error it ends the program
	return made(t, origin, site, key, id)
}

// Fixed is the same passkey in each process, for fuzzing.
func Fixed(t testing.TB, origin, site string) *Passkey {
	t.Helper()
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return made(t, origin, site, key, []byte("fixed"))
}

func made(t testing.TB, origin, site string, key *ecdsa.PrivateKey, id []byte) *Passkey {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return &Passkey{Origin: origin, Site: site, ID: id, Flags: Present | Verified | Synced, More: `,"crossOrigin":false`,
		Algorithm: -7, Public: public, t: t, key: key}
}

// Create answers navigator.credentials.create.
func (p *Passkey) Create(challenge []byte) []byte {
	data := p.authData(attested)
	data = append(data, make([]byte, 16)...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(p.ID)))
	data = append(append(data, p.ID...), 0xa0) // the key follows as CBOR, which nobody reads
	return p.answer(map[string]any{"clientDataJSON": text(p.client("webauthn.create", challenge)),
		"authenticatorData": text(data), "publicKey": text(p.Public), "publicKeyAlgorithm": p.Algorithm,
		"transports": []string{"internal"}})
}

// Get answers navigator.credentials.get.
func (p *Passkey) Get(challenge []byte) []byte {
	auth, client, sig := p.Sign(challenge)
	return p.answer(map[string]any{"clientDataJSON": text(client), "authenticatorData": text(auth), "signature": text(sig),
		"userHandle": nil})
}

// Sign returns the three parts of an assertion.
func (p *Passkey) Sign(challenge []byte) (auth, client, sig []byte) {
	auth, client = p.authData(0), p.client("webauthn.get", challenge)
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(append(append([]byte{}, auth...), hash[:]...))
	sig, err := ecdsa.SignASN1(rand.Reader, p.key, sum[:])
	if err != nil {
		p.t.Fatal(err)
	}
	return auth, client, sig
}

func (p *Passkey) authData(more byte) []byte {
	sum := sha256.Sum256([]byte(p.Site))
	flags := p.Flags | more
	if len(p.Extensions) > 0 && more == 0 {
		flags |= 0x80
	}
	data := binary.BigEndian.AppendUint32(append(sum[:], flags), p.Counter)
	if more == 0 {
		data = append(data, p.Extensions...)
	}
	return data
}

// client is the client data, byte for byte as browsers write it.
func (p *Passkey) client(kind string, challenge []byte) []byte {
	if p.Type != "" {
		kind = p.Type
	}
	return []byte(`{"type":"` + kind + `","challenge":"` + text(challenge) + `","origin":"` + p.Origin + `"` + p.More +
		`}`)
}

func (p *Passkey) answer(response map[string]any) []byte {
	data, err := json.Marshal(map[string]any{"id": text(p.ID), "rawId": text(p.ID), "type": "public-key",
		"authenticatorAttachment": "platform", "clientExtensionResults": map[string]any{}, "response": response})
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
