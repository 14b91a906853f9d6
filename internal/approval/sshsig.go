package approval

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/fault"
	"sluice/internal/text"

	"golang.org/x/crypto/ssh"
)

// The frame of a signature in a file.
const (
	beginSignature = "-----BEGIN SSH SIGNATURE-----"
	endSignature   = "-----END SSH SIGNATURE-----"
	sigMagic       = "SSHSIG"
)

// touched is the flag of a FIDO key's signature which says that a person touched it.
const touched = 1

// Looks reports whether a file is meant as something signed, or to be signed, in this package's form.
func Looks(data []byte) bool {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	return bytes.HasPrefix(data, []byte(headApproval)) || bytes.HasPrefix(data, []byte(headAnswer)) ||
		bytes.HasPrefix(data, []byte(headComments)) || bytes.HasPrefix(data, []byte(headCheckpoint))
}

// Join is a signed text: the text with the signature below it.
func Join(text, armored []byte) []byte {
	return slices.Concat(text, bytes.TrimSpace(armored), []byte("\n"))
}

// Split takes a signed text apart. What a mail program did to its line ends is undone.
func Split(data []byte) (text, armored []byte, err error) {
	if len(data) > MaxBytes {
		return nil, nil, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\r\n"), []byte("\n"))
	i := bytes.LastIndex(data, []byte(beginSignature))
	if i < 0 || i > 0 && data[i-1] != '\n' {
		return nil, nil, fault.New("sign it (sluice keys sign FILE) and hand in the result",
			"there is no signature below the text")
	}
	return data[:i], data[i:], nil
}

// SplitAll takes a file of signed texts, one after the other, apart; each is for Verify.
func SplitAll(data []byte) [][]byte {
	var out [][]byte
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	for len(data) > 0 {
		end := bytes.Index(data, []byte(endSignature))
		if end < 0 {
			break
		}
		end += len(endSignature)
		out = append(out, append(bytes.TrimLeft(bytes.Clone(data[:end]), "\n"), '\n'))
		data = data[end:]
	}
	return out
}

// sshsig is the blob within the frame.
type sshsig struct {
	Version   uint32
	PublicKey string
	Namespace string
	Reserved  string
	Hash      string
	Signature string
}

// signature is a signature as read, not yet checked.
type signature struct {
	blob sshsig
	key  ssh.PublicKey
	sig  ssh.Signature
}

func parseSignature(armored []byte) (*signature, error) {
	block, rest := pem.Decode(armored)
	if block == nil || block.Type != "SSH SIGNATURE" || len(bytes.TrimSpace(rest)) > 0 || len(block.Headers) > 0 {
		return nil, errors.New("the signature is not whole: it belongs between " + beginSignature + " and " + endSignature)
	}
	return parseBlob(block.Bytes)
}

// parseBlob reads what is within the frame.
func parseBlob(raw []byte) (*signature, error) {
	blob, ok := bytes.CutPrefix(raw, []byte(sigMagic))
	var s signature
	if !ok || ssh.Unmarshal(blob, &s.blob) != nil || s.blob.Version != 1 {
		return nil, fault.New("make it with ssh-keygen -Y sign", "the signature cannot be read")
	}
	var err error
	if s.key, err = ssh.ParsePublicKey([]byte(s.blob.PublicKey)); err != nil {
		return nil, fmt.Errorf("the signature's key cannot be read: %w", err)
	}
	if err := ssh.Unmarshal([]byte(s.blob.Signature), &s.sig); err != nil {
		return nil, fmt.Errorf("the signature cannot be read: %w", err)
	}
	return &s, nil
}

// check says whether the signature is one over what was signed in the namespace, by a key of a kind that counts.
func (s *signature) check(signed []byte, namespace string) error {
	if s.blob.Namespace != namespace {
		return fault.New(fmt.Sprintf("sign it with -n %s", namespace), "it was signed for %q, and %s is wanted",
			text.Clip(s.blob.Namespace, 60), namespace)
	}
	if err := kindOf(s.key); err != nil {
		return err
	}
	if s.key.Type() == ssh.KeyAlgoRSA && s.sig.Format != ssh.KeyAlgoRSASHA512 && s.sig.Format != ssh.KeyAlgoRSASHA256 {
		return fault.New("use a newer ssh-keygen, or an ed25519 key", "an RSA signature of kind %q is too weak",
			text.Clip(s.sig.Format, 60))
	}
	message, err := toSign(signed, s.blob.Namespace, s.blob.Reserved, s.blob.Hash)
	if err != nil {
		return err
	}
	if s.sig.Format == algoWebauthn {
		return s.byPasskey(message)
	}
	// the flags are signed too
	if strings.HasPrefix(s.key.Type(), "sk-") && (len(s.sig.Rest) == 0 || s.sig.Rest[0]&touched == 0) {
		return errors.New("the key was not touched when it signed: a key made with no-touch-required does not count")
	}
	if site := siteOf(s.key); site != "" {
		return fmt.Errorf("it is signed as by a token, and its key is the passkey of %s", text.Clip(site, 60))
	}
	if err := s.key.Verify(message, &s.sig); err != nil {
		return fault.New("sign it again", "the signature does not match the text, which was changed after it was signed")
	}
	return nil
}

// toSign is what is signed of a text: OpenSSH's PROTOCOL.sshsig.
func toSign(signed []byte, namespace, reserved, hash string) ([]byte, error) {
	var sum []byte
	switch hash {
	case "sha512":
		h := sha512.Sum512(signed)
		sum = h[:]
	case "sha256":
		h := sha256.Sum256(signed)
		sum = h[:]
	default:
		return nil, fault.New("use sha512", "its hash %q is not known", text.Clip(hash, 60))
	}
	return append([]byte(sigMagic),
		ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{namespace, reserved, hash, string(sum)})...), nil
}

// Kinds of key that count.
func kindOf(key ssh.PublicKey) error {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384,
		ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA:
		return nil
	}
	return fault.New("use ed25519, ed25519-sk, ecdsa or rsa", "a key of kind %s does not count", text.Clip(key.Type(), 60))
}
