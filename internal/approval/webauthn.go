package approval

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"strings"

	"sluice/internal/fault"
	"sluice/internal/strictjson"
	"sluice/internal/text"

	"golang.org/x/crypto/ssh"
)

// algoWebauthn is OpenSSH's name for a signature that a passkey made. Its key is of kind
// ssh.KeyAlgoSKECDSA256, with the site as its application.
const algoWebauthn = "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"

// Flags of an authenticator, beside touched.
const (
	userVerified  = 0x04 // by fingerprint, face or PIN
	AttestedKey   = 0x40 // its data has the key that it made
	hasExtensions = 0x80
)

// Bounds of a browser's answer.
const (
	maxClientData = 8 << 10
	MaxAuthData   = 4 << 10
	maxSPKI       = 4 << 10
	maxOrigin     = 300
)

// AuthHead is the length of the site's hash, the flags and the counter.
const AuthHead = sha256.Size + 1 + 4

// sshApplication begins the application of each key that ssh-keygen made in a token.
const sshApplication = "ssh:"

// Assertion is a passkey's signature, as the browser gives it.
type Assertion struct {
	AuthenticatorData []byte
	ClientData        []byte // clientDataJSON
	Signature         []byte // DER
}

// SiteOf returns the name that passkeys made at the origin belong to: its host. An origin is
// https://NAME[:PORT], or http:// with a name below localhost.
func SiteOf(origin string) (string, error) {
	bad := func(why string) (string, error) {
		return "", fault.New("give one such as https://sluice.example.org",
			"%q is not the address of a page for passkeys: %s", text.Clip(origin, 60), why)
	}
	u, err := url.Parse(origin)
	if err != nil || len(origin) > maxOrigin || u.Scheme+"://"+u.Host != origin {
		return bad("want https://NAME[:PORT]")
	}
	host := u.Hostname()
	if host == "" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.HasSuffix(host, ".") {
		return bad("its name has other characters than a-z, 0-9, - and .")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return bad("browsers make passkeys for names only, not for addresses")
	}
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return bad("browsers make passkeys at https only, and at http below localhost")
	}
	return host, nil
}

// PasskeyOf returns the key of a passkey that was made for the site. spki is the browser's
// getPublicKey(). It takes keys for ES256 only.
func PasskeyOf(spki []byte, site string) (Signer, error) {
	if len(spki) > maxSPKI {
		return Signer{}, fmt.Errorf("the passkey's public key has more than %d bytes", maxSPKI)
	}
	any, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return Signer{}, fmt.Errorf("the passkey's public key cannot be read: %w", err)
	}
	key, ok := any.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return Signer{}, fault.New("use another authenticator", "the passkey signs with %s: only ES256 counts",
			strings.TrimPrefix(fmt.Sprintf("%T", any), "*"))
	}
	point, err := key.Bytes()
	if err != nil {
		return Signer{}, fmt.Errorf("the passkey's public key cannot be used: %w", err)
	}
	blob := ssh.Marshal(skBlob{ssh.KeyAlgoSKECDSA256, "nistp256", point, site})
	public, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return Signer{}, fmt.Errorf("the passkey's public key cannot be used: %w", err)
	}
	return signerOf(public), nil
}

// skBlob is the wire form of an ECDSA key in a token, and of a passkey's.
type skBlob struct {
	Kind        string
	Curve       string
	Point       []byte
	Application string
}

// siteOf returns the site of a passkey's key; "" of any other key.
func siteOf(key ssh.PublicKey) string {
	var b skBlob
	if key.Type() != ssh.KeyAlgoSKECDSA256 || ssh.Unmarshal(key.Marshal(), &b) != nil ||
		strings.HasPrefix(b.Application, sshApplication) {
		return ""
	}
	return b.Application
}

// Challenge is what a passkey signs for the text: the same bytes that ssh-keygen -Y sign signs.
func Challenge(said []byte, namespace string) []byte {
	message, _ := toSign(said, namespace, "", "sha512") // the hash is known
	return message
}

// webauthn is what stands behind the two numbers of a passkey's signature.
type webauthn struct {
	Flags      byte
	Counter    uint32
	Origin     string
	ClientData []byte
	Extensions []byte
}

// Repack returns the text with the passkey's signature below it, in the form of ssh-keygen. It checks
// all that can be seen without the list; the error says what does not hold.
func Repack(key Signer, origin, namespace string, said []byte, a Assertion) ([]byte, error) {
	if key.Site == "" {
		return nil, fmt.Errorf("key %s is not a passkey", key.Key)
	}
	if len(a.AuthenticatorData) < AuthHead || len(a.AuthenticatorData) > MaxAuthData {
		return nil, fmt.Errorf("the authenticator's data has %d bytes: want %d to %d", len(a.AuthenticatorData), AuthHead,
			MaxAuthData)
	}
	if sum := sha256.Sum256([]byte(key.Site)); !bytes.Equal(sum[:], a.AuthenticatorData[:sha256.Size]) {
		return nil, fmt.Errorf("the passkey signed for another site than %s", key.Site)
	}
	var n struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(a.Signature, &n)
	if err != nil || len(rest) > 0 || !inField(n.R) || !inField(n.S) {
		return nil, errors.New("the passkey's signature cannot be read: want ECDSA in DER")
	}
	head := a.AuthenticatorData[sha256.Size:]
	w := webauthn{Flags: head[0], Counter: binary.BigEndian.Uint32(head[1:5]), Origin: origin, ClientData: a.ClientData,
		Extensions: head[5:]}
	sig := ssh.Signature{Format: algoWebauthn, Blob: ssh.Marshal(n), Rest: ssh.Marshal(w)}
	whole := append([]byte(sigMagic), ssh.Marshal(sshsig{1, string(key.blob), namespace, "", "sha512",
		string(ssh.Marshal(sig))})...)
	armored := pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: whole})
	read, err := parseSignature(armored)
	if err != nil {
		return nil, err
	}
	if err := read.check(said, namespace); err != nil {
		return nil, err
	}
	return Join(said, armored), nil
}

// inField reports whether n may be one of the two numbers of a signature.
func inField(n *big.Int) bool { return n != nil && n.Sign() > 0 && n.BitLen() <= 256 }

// byPasskey checks a passkey's signature of the message. OpenSSH makes the same checks, but for the
// flags and the site.
func (s *signature) byPasskey(message []byte) error {
	site := siteOf(s.key)
	if site == "" {
		return errors.New("it is signed as by a passkey, and its key is not one")
	}
	var w webauthn
	var n struct{ R, S *big.Int }
	if ssh.Unmarshal(s.sig.Rest, &w) != nil || ssh.Unmarshal(s.sig.Blob, &n) != nil || !inField(n.R) || !inField(n.S) {
		return errors.New("the passkey's signature cannot be read")
	}
	if err := w.flags(); err != nil {
		return err
	}
	if err := w.client(message, site); err != nil {
		return err
	}
	app, client := sha256.Sum256([]byte(site)), sha256.Sum256(w.ClientData)
	signed := append(bytes.Clone(app[:]), w.Flags)
	signed = binary.BigEndian.AppendUint32(signed, w.Counter)
	signed = append(append(signed, w.Extensions...), client[:]...)
	sum := sha256.Sum256(signed)
	holder, ok := s.key.(ssh.CryptoPublicKey)
	if !ok {
		return errors.New("the passkey's key cannot be used")
	}
	key, ok := holder.CryptoPublicKey().(*ecdsa.PublicKey)
	if !ok || !ecdsa.Verify(key, sum[:], n.R, n.S) {
		return fault.New("sign it again", "the signature is not the passkey's, or was changed after it was made")
	}
	return nil
}

// SawPerson returns why what an authenticator's flags say of the person, who made or used the passkey, is not enough.
func SawPerson(flags byte, did string) error {
	switch {
	case flags&touched == 0:
		return errors.New("the authenticator did not ask for a touch: nobody was seen to be there")
	case flags&userVerified == 0:
		return fault.New("set up a fingerprint, a face or a PIN for it",
			"the authenticator did not verify who %s the passkey", did)
	}
	return nil
}

// flags returns why what the authenticator says is not enough.
func (w webauthn) flags() error {
	if err := SawPerson(w.Flags, "used"); err != nil {
		return err
	}
	switch {
	case w.Flags&AttestedKey != 0:
		return errors.New("the authenticator's data is that of a registration")
	case w.Flags&hasExtensions == 0 != (len(w.Extensions) == 0) || len(w.Extensions) > MaxAuthData:
		return errors.New("the authenticator's data has extensions that its flags do not name, or none that they name")
	}
	return nil
}

// client returns why the browser's account of what was signed does not fit the message and the site.
func (w webauthn) client(message []byte, site string) error {
	c, err := ReadClientData(w.ClientData)
	if err != nil {
		return err
	}
	challenge := base64.RawURLEncoding.EncodeToString(message)
	head := `{"type":"webauthn.get","challenge":"` + challenge + `","origin":"` + w.Origin + `"`
	host, err := SiteOf(w.Origin)
	switch {
	case err != nil:
		return err
	case c.Type != "webauthn.get":
		return fmt.Errorf("the browser made it for %q, and webauthn.get is wanted", text.Clip(c.Type, 60))
	case c.Challenge != challenge:
		return fault.New("sign it again", "the signature does not match the text, which was changed after it was signed")
	case c.Origin != w.Origin:
		return fmt.Errorf("the passkey signed at %s, and %s is wanted", text.Clip(c.Origin, 100), w.Origin)
	case host != site:
		return fmt.Errorf("the passkey signed at %s and belongs to %s", w.Origin, site)
	case c.Framed:
		return errors.New("the passkey signed in a frame of another page")
	case !bytes.HasPrefix(w.ClientData, []byte(head)):
		return fault.New("use another browser", "the browser writes what is signed in another form than OpenSSH reads")
	}
	return nil
}

// ClientData is a browser's account of what a passkey was asked.
type ClientData struct {
	Type      string
	Challenge string // base64url
	Origin    string
	Framed    bool // in a frame of another page
}

// ReadClientData reads a clientDataJSON.
func ReadClientData(data []byte) (ClientData, error) {
	var c ClientData
	if err := strictjson.Object(data, maxClientData); err != nil {
		return c, fmt.Errorf("the browser's client data: %w", err)
	}
	var fields map[string]json.RawMessage // by their exact names
	if err := json.Unmarshal(data, &fields); err != nil {
		return c, fmt.Errorf("the browser's client data: %w", err)
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{"type", &c.Type}, {"challenge", &c.Challenge}, {"origin", &c.Origin}} {
		if err := json.Unmarshal(fields[f.name], f.to); err != nil {
			return c, fmt.Errorf("the browser's client data: %s is not a text", f.name)
		}
	}
	cross, top := string(fields["crossOrigin"]), fields["topOrigin"]
	c.Framed = cross != "" && cross != "false" || top != nil
	return c, nil
}
