package approval

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// bareBytes is the length of an ed25519 signature without a frame.
const bareBytes = 64

// VerifyDetached checks a signature that is kept apart from its message, and returns whose it is. It
// has one of two forms: the content of an OpenSSH signature made for the namespace, or the 64 bytes
// of an ed25519 signature over the message itself, of the key with the fingerprint key. The bare
// form has no namespace, so the message must say what it is.
func (l List) VerifyDetached(message, sig []byte, key, namespace string) (Signer, error) {
	if !bytes.HasPrefix(sig, []byte(sigMagic)) {
		return l.verifyBare(message, sig, key, namespace)
	}
	s, err := parseBlob(sig)
	if err != nil {
		return Signer{}, err
	}
	by, err := l.counts(ssh.FingerprintSHA256(s.key), namespace)
	if err != nil {
		return Signer{}, err
	}
	if err := s.check(message, namespace); err != nil {
		return Signer{}, err
	}
	return by, l.atItsPage(s)
}

func (l List) verifyBare(message, sig []byte, key, namespace string) (Signer, error) {
	by, err := l.counts(key, namespace)
	if err != nil {
		return Signer{}, err
	}
	public, err := ssh.ParsePublicKey(by.blob)
	if err != nil {
		return Signer{}, err
	}
	if public.Type() != ssh.KeyAlgoED25519 || len(sig) != bareBytes {
		return Signer{}, fmt.Errorf("a signature of %d bytes is none of key %s (%s)", len(sig), key, by.KindWord())
	}
	if public.Verify(message, &ssh.Signature{Format: ssh.KeyAlgoED25519, Blob: sig}) != nil {
		return Signer{}, errors.New("the signature does not match: what was signed was changed afterwards")
	}
	return by, nil
}

// SignDetached has ssh-keygen sign a message, and returns the signature for VerifyDetached with the
// fingerprint of its key.
func (r Keyring) SignDetached(ctx context.Context, key SigningKey, message []byte,
	namespace string) (sig []byte, finger string, err error) {
	whole, err := r.Sign(ctx, key, message, namespace)
	if err != nil {
		return nil, "", err
	}
	block, _ := pem.Decode(whole[len(message):])
	if block == nil {
		return nil, "", errors.New("ssh-keygen printed no signature")
	}
	s, err := parseBlob(block.Bytes)
	if err != nil {
		return nil, "", err
	}
	return block.Bytes, ssh.FingerprintSHA256(s.key), nil
}
