package approval

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/internal/fault"
	"sluice/internal/text"

	"golang.org/x/crypto/ssh"
)

// Bounds of a list.
const (
	maxList  = 1 << 20
	maxKeys  = 1000
	maxNames = 20
)

// Signer is a person with one of their keys.
type Signer struct {
	Names   []string // the principal, then the other names of the same person: accounts, e-mail addresses
	Key     string   // fingerprint, "SHA256:…"
	Kind    string   // ssh-ed25519, sk-ssh-ed25519@openssh.com, …
	Comment string
	Site    string // the name that a passkey belongs to; "" = it is no passkey
	blob    []byte
	spaces  []string // namespaces; none = all
}

// Hardware reports whether the key lies in a token which wants a touch.
func (s Signer) Hardware() bool { return strings.HasPrefix(s.Kind, "sk-") }

// KindWord returns what kind of key it is.
func (s Signer) KindWord() string {
	if s.Site != "" {
		return "passkey of " + text.Line(s.Site)
	}
	kind := strings.TrimSuffix(strings.TrimPrefix(s.Kind, "ssh-"), "@openssh.com")
	if s.Hardware() {
		return strings.TrimPrefix(strings.TrimPrefix(kind, "sk-"), "ssh-") + " on a security token, must be touched"
	}
	return kind
}

// Named reports whether one of the names is one of theirs, in whatever case.
func (s Signer) Named(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return slices.ContainsFunc(s.Names, func(o string) bool { return strings.EqualFold(o, n) })
	})
}

// Public is the key as a line of a .pub file has it.
func (s Signer) Public() (string, error) {
	key, err := ssh.ParsePublicKey(s.blob)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// Revoked is a key that was taken off the list.
type Revoked struct {
	Key   string    `json:"key"`
	Names []string  `json:"names"`
	At    time.Time `json:"at"`
	Why   string    `json:"why,omitempty"`
	By    string    `json:"by,omitempty"`
}

// List says whose signature counts.
type List struct {
	Signers  []Signer
	Revoked  []Revoked
	Passkeys map[string]Passkey // by fingerprint, also of revoked ones
}

// Passkey is what is known of a passkey beside its line in the list.
type Passkey struct {
	Origin     string `json:"origin"`     // of the page where it was made: it counts at no other
	Credential []byte `json:"credential"` // its id, by which a browser finds it
}

// ParseKey reads a public key as a .pub file or `ssh-add -L` has it.
func ParseKey(line []byte) (Signer, error) {
	key, comment, options, rest, err := ssh.ParseAuthorizedKey(line)
	switch {
	case err != nil:
		return Signer{}, fmt.Errorf("it is not an OpenSSH public key: %w", err)
	case len(options) > 0 || len(bytes.TrimSpace(rest)) > 0:
		return Signer{}, fmt.Errorf("want one public key, as in a .pub file, and nothing else")
	}
	if err := kindOf(key); err != nil {
		return Signer{}, err
	}
	s := signerOf(key)
	s.Comment = comment
	return s, nil
}

func signerOf(key ssh.PublicKey) Signer {
	return Signer{Key: ssh.FingerprintSHA256(key), Kind: key.Type(), Site: siteOf(key), blob: key.Marshal()}
}

// ParseList reads a list in the form of OpenSSH's allowed_signers. What is not understood is an error: it may take away
// what a line gives.
func ParseList(data []byte) ([]Signer, error) {
	if len(data) > maxList {
		return nil, fmt.Errorf("more than %d bytes", maxList)
	}
	var out []Signer
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		s, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if out = append(out, s); len(out) > maxKeys {
			return nil, fmt.Errorf("more than %d keys", maxKeys)
		}
	}
	return out, nil
}

func parseSigner(line string) (Signer, error) {
	names, rest, _ := strings.Cut(line, " ")
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(strings.TrimSpace(rest)))
	if err != nil {
		return Signer{}, fmt.Errorf("want NAME[,NAME] [namespaces=\"%s\"] KIND KEY: %w", GateNamespace, err)
	}
	s := signerOf(key)
	s.Names, s.Comment = strings.Split(names, ","), comment
	if err := kindOf(key); err != nil {
		return Signer{}, err
	}
	for _, n := range s.Names {
		if err := checkName(n); err != nil {
			return Signer{}, err
		}
	}
	for _, o := range options {
		value, ok := strings.CutPrefix(o, "namespaces=")
		if !ok {
			return Signer{}, fmt.Errorf("option %q is unknown: only namespaces is allowed", text.Clip(o, 60))
		}
		s.spaces = strings.Split(strings.Trim(value, `"`), ",")
	}
	return s, nil
}

// CheckNames returns what is wrong with the names that a key is to have.
func CheckNames(names []string) error {
	if len(names) == 0 || len(names) > maxNames {
		return fmt.Errorf("a key needs a name, and takes at most %d", maxNames)
	}
	for _, n := range names {
		if err := checkName(n); err != nil {
			return err
		}
	}
	return nil
}

// checkName returns what is wrong with a principal.
func checkName(name string) error {
	if name == "" || len(name) > 200 ||
		strings.ContainsFunc(name,
			func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`*?!,"'\#`, c) }) {
		return fmt.Errorf("%q is not a name for an approver: want one such as ann@example.org, without spaces "+
			"and patterns", text.Clip(name, 60))
	}
	return nil
}

// line is the signer as a list has it.
func (s Signer) line() (string, error) {
	public, err := s.Public()
	if err != nil {
		return "", err
	}
	spaces := s.spaces // what a person wrote there stays
	if len(spaces) == 0 {
		spaces = []string{GateNamespace, AuditNamespace, EvidenceNamespace}
	}
	l := strings.Join(s.Names, ",") + ` namespaces="` + strings.Join(spaces, ",") + `" ` + public
	if s.Comment != "" {
		l += " " + strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return -1
			}
			return c
		}, s.Comment)
	}
	return l, nil
}

// Find returns the signer with the key.
func (l List) Find(fingerprint string) (Signer, bool) {
	for _, s := range l.Signers {
		if s.Key == fingerprint {
			return s, true
		}
	}
	return Signer{}, false
}

// WasRevoked returns what is recorded of a key that was taken off the list.
func (l List) WasRevoked(fingerprint string) (Revoked, bool) {
	for _, r := range slices.Backward(l.Revoked) {
		if r.Key == fingerprint {
			return r, true
		}
	}
	return Revoked{}, false
}

// checked takes a signed text apart, with a signature that is one over it.
func checked(data []byte, namespace string) (text []byte, sig *signature, err error) {
	text, armored, err := Split(data)
	if err == nil {
		sig, err = parseSignature(armored)
	}
	if err == nil {
		err = sig.check(text, namespace)
	}
	return text, sig, err
}

// Holds checks the signature of a text that counted once: by whose key it is, which may have been revoked since.
func (l List) Holds(data []byte, namespace string) (text []byte, key string, err error) {
	text, sig, err := checked(data, namespace)
	if err != nil {
		return nil, "", err
	}
	key = ssh.FingerprintSHA256(sig.key)
	_, known := l.Find(key)
	if _, was := l.WasRevoked(key); !known && !was {
		return nil, "", fault.New("sluice keys ls lists the known keys", "key %s is not known, and was not revoked", key)
	}
	if err := l.atItsPage(sig); err != nil {
		return nil, "", err
	}
	return text, key, nil
}

// Verify checks a signed text: it gives the text and who signed it. The error says why it does not
// count, and what to do.
func (l List) Verify(data []byte, namespace string) (text []byte, by Signer, err error) {
	text, sig, err := checked(data, namespace)
	if err != nil {
		return nil, by, err
	}
	by, err = l.counts(ssh.FingerprintSHA256(sig.key), namespace)
	if err != nil {
		return nil, by, err
	}
	if err := l.atItsPage(sig); err != nil {
		return nil, by, err
	}
	return text, by, nil
}

// UnknownKey is a key that is not on the list.
type UnknownKey struct{ Key string }

func (u *UnknownKey) Error() string { return "key " + u.Key + " is not known" }

// counts returns whose key it is, or why it does not count for the namespace.
func (l List) counts(finger, namespace string) (by Signer, err error) {
	if r, ok := l.WasRevoked(finger); ok {
		why := ""
		if r.Why != "" {
			why = " (" + r.Why + ")"
		}
		return by, fault.New("sign with another key", "key %s of %s was revoked on %s%s", finger, r.Names[0],
			r.At.UTC().Format("2006-01-02 15:04Z"), why)
	}
	by, ok := l.Find(finger)
	switch {
	case !ok && len(l.Signers) == 0:
		return by, fault.New("sluice keys add FILE.pub --name NAME",
			"%w: no approver is set up in this repo", &UnknownKey{finger})
	case !ok:
		return by, fault.New("sluice keys ls lists the known keys; sluice keys add adds one", "%w", &UnknownKey{finger})
	case len(by.spaces) > 0 && !slices.Contains(by.spaces, namespace):
		return by, fmt.Errorf("key %s of %s is not for %s: its line in the list names other namespaces", finger,
			by.Names[0], namespace)
	}
	return by, nil
}

// atItsPage returns why a passkey's signature was made at another page than the one where it was
// registered. A server on another port has the same name, and so the same passkeys.
func (l List) atItsPage(sig *signature) error {
	if sig.sig.Format != algoWebauthn {
		return nil
	}
	key := ssh.FingerprintSHA256(sig.key)
	var w webauthn
	if err := ssh.Unmarshal(sig.sig.Rest, &w); err != nil {
		return fmt.Errorf("the passkey's signature cannot be read: %w", err)
	}
	known, ok := l.Passkeys[key]
	switch {
	case !ok:
		return fault.New("remove it (sluice keys rm) and register it again (sluice keys add --passkey)",
			"the page of the passkey %s is not known", key)
	case known.Origin != w.Origin:
		return fault.New("decide there, or register a passkey here: sluice keys add --passkey",
			"the passkey signed at %s and was registered at %s", text.Clip(w.Origin, 100), known.Origin)
	}
	return nil
}
