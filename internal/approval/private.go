package approval

import (
	"errors"

	"golang.org/x/crypto/ssh"
)

// Plain says that a private key's file needs no passphrase: who can read it can sign. A key that wants a touch is never
// plain: its file is of no use without the token.
func Plain(private []byte) (bool, error) {
	_, err := ssh.ParseRawPrivateKey(private)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}
