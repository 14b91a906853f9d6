package passkey

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/internal/approval"
	"sluice/internal/fault"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// MaxResponse bounds what a browser sends of a passkey, in bytes.
const MaxResponse = 32 << 10

// askFor is how long the browser may ask the person.
const askFor = 5 * time.Minute

// maxCredential bounds a credential's id, in bytes, as the standard has it.
const maxCredential = 1023

// es256 is the number of the one algorithm that counts: ECDSA on P-256 with SHA-256.
const es256 = -7

// base64url is bytes as the browser's interface writes them in JSON.
type base64url []byte

// MarshalText writes base64url without padding.
func (b base64url) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(b)), nil
}

// UnmarshalText reads base64url, with padding or not.
func (b *base64url) UnmarshalText(in []byte) error {
	out, err := base64.RawURLEncoding.DecodeString(string(bytes.TrimRight(in, "=")))
	*b = out
	return err
}

// CreationOptions are for PublicKeyCredential.parseCreationOptionsFromJSON, as JSON.
type CreationOptions struct {
	RP struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"rp"`
	User struct {
		ID          base64url `json:"id"`
		Name        string    `json:"name"`
		DisplayName string    `json:"displayName"`
	} `json:"user"`
	Challenge base64url    `json:"challenge"`
	Kinds     []kind       `json:"pubKeyCredParams"`
	Exclude   []credential `json:"excludeCredentials"`
	Selection struct {
		ResidentKey      string `json:"residentKey"`
		UserVerification string `json:"userVerification"`
	} `json:"authenticatorSelection"`
	Attestation string `json:"attestation"`
	Timeout     int64  `json:"timeout"` // milliseconds
}

// RequestOptions are for PublicKeyCredential.parseRequestOptionsFromJSON, as JSON.
type RequestOptions struct {
	RPID             string       `json:"rpId"`
	Challenge        base64url    `json:"challenge"`
	Allow            []credential `json:"allowCredentials"`
	UserVerification string       `json:"userVerification"`
	Timeout          int64        `json:"timeout"` // milliseconds
}

type kind struct {
	Type string `json:"type"`
	Alg  int    `json:"alg"`
}

type credential struct {
	Type string    `json:"type"`
	ID   base64url `json:"id"`
}

const publicKey = "public-key"

// created is the result of navigator.credentials.create, by toJSON().
type created struct {
	ID       base64url `json:"rawId"`
	Type     string    `json:"type"`
	Response struct {
		ClientData base64url `json:"clientDataJSON"`
		AuthData   base64url `json:"authenticatorData"` // getAuthenticatorData()
		PublicKey  base64url `json:"publicKey"`         // getPublicKey()
		Algorithm  int       `json:"publicKeyAlgorithm"`
	} `json:"response"`
}

// asserted is the result of navigator.credentials.get, by toJSON().
type asserted struct {
	ID       base64url `json:"rawId"`
	Type     string    `json:"type"`
	Response struct {
		ClientData base64url `json:"clientDataJSON"`
		AuthData   base64url `json:"authenticatorData"`
		Signature  base64url `json:"signature"`
	} `json:"response"`
}

// read reads a browser's JSON into v. It ignores unknown members, which browsers add.
func read(data []byte, v any) error {
	if err := strictjson.Object(data, MaxResponse); err != nil {
		return fmt.Errorf("the browser's answer: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the browser's answer cannot be read: %w", err)
	}
	return nil
}

func readCreated(data []byte) (c created, err error) {
	if err = read(data, &c); err == nil {
		err = credentialOf(c.Type, c.ID)
	}
	return c, err
}

func readAsserted(data []byte) (a asserted, err error) {
	if err = read(data, &a); err == nil {
		err = credentialOf(a.Type, a.ID)
	}
	return a, err
}

// repack returns the text with the signature below it: see approval.Repack.
func (a asserted) repack(key approval.Signer, site Site, namespace, said string) ([]byte, error) {
	return approval.Repack(key, site.origin, namespace, []byte(said), approval.Assertion{
		AuthenticatorData: a.Response.AuthData, ClientData: a.Response.ClientData, Signature: a.Response.Signature})
}

func credentialOf(kind string, id []byte) error {
	if kind != publicKey || len(id) == 0 || len(id) > maxCredential {
		return errors.New("the browser's answer is not that of a passkey")
	}
	return nil
}

// key checks a registration for the challenge at the site, and returns its key.
func (c created) key(site Site, challenge []byte) (approval.Signer, error) {
	var none approval.Signer
	client, err := approval.ReadClientData(c.Response.ClientData)
	if err != nil {
		return none, err
	}
	switch {
	case client.Type != "webauthn.create":
		return none, fmt.Errorf("the browser made it for %q, and webauthn.create is wanted", text.Clip(client.Type, 60))
	case client.Challenge != base64.RawURLEncoding.EncodeToString(challenge):
		return none, errors.New("it answers another registration")
	case client.Origin != site.origin:
		return none, fmt.Errorf("the passkey was made at %s, and %s is wanted", text.Clip(client.Origin, 100), site.origin)
	case client.Framed:
		return none, errors.New("the passkey was made in a frame of another page")
	case c.Response.Algorithm != es256:
		return none, fault.New("use another authenticator", "the passkey signs with %s: only ES256 counts",
			algorithm(c.Response.Algorithm))
	}
	if err := c.authData(site); err != nil {
		return none, err
	}
	return approval.PasskeyOf(c.Response.PublicKey, site.id)
}

// authData checks what the authenticator says: site, flags, and which credential it made.
func (c created) authData(site Site) error {
	const idAt = approval.AuthHead + 16 + 2 // the authenticator's kind, the length of the credential's id
	data := []byte(c.Response.AuthData)
	if len(data) < idAt || len(data) > approval.MaxAuthData {
		return fmt.Errorf("the authenticator's data has %d bytes: want %d to %d", len(data), idAt, approval.MaxAuthData)
	}
	sum, flags := sha256.Sum256([]byte(site.id)), data[sha256.Size]
	if !bytes.Equal(sum[:], data[:sha256.Size]) {
		return fmt.Errorf("the passkey was made for another site than %s", site.id)
	}
	if err := approval.SawPerson(flags, "made"); err != nil {
		return err
	}
	if flags&approval.AttestedKey == 0 {
		return errors.New("the authenticator's data has no key")
	}
	n := int(binary.BigEndian.Uint16(data[idAt-2:]))
	if len(data) < idAt+n || !bytes.Equal(data[idAt:idAt+n], c.ID) {
		return errors.New("the authenticator's data is that of another passkey")
	}
	return nil
}

func algorithm(n int) string {
	switch n {
	case -8:
		return "EdDSA"
	case -257:
		return "RS256"
	}
	return fmt.Sprintf("algorithm %d", n)
}
