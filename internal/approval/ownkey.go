package approval

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"

	"golang.org/x/crypto/ssh"
)

// ownFile is the private key of the repo's daemon, beside the list.
const ownFile = "daemon_key"

// OwnKey is the key of a repo's daemon. It says that this sluice wrote something, and nothing about
// a person.
type OwnKey struct {
	Signer
	private ed25519.PrivateKey
}

// OwnKeyFile is where the private half is.
func (s Store) OwnKeyFile() string { return filepath.Join(s.State, folder, ownFile) }

// OwnKey reads the daemon's key, and makes one if there is none. One that others can read counts for
// nothing, and is an error.
func (s Store) OwnKey() (OwnKey, error) {
	k, err := s.readOwnKey()
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return OwnKey{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "sluice daemon")
	if err != nil {
		return OwnKey{}, err
	}
	if err := os.MkdirAll(filepath.Dir(s.OwnKeyFile()), 0o700); err != nil {
		return OwnKey{}, err
	}
	err = atomicfile.WriteNew(s.OwnKeyFile(), pem.EncodeToMemory(block), 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
		return OwnKey{}, err
	}
	return s.readOwnKey()
}

func (s Store) readOwnKey() (OwnKey, error) {
	file := s.OwnKeyFile()
	data, st, err := atomicfile.OpenRegular(filepath.Dir(file), filepath.Base(file), maxKeyFile)
	if err != nil {
		return OwnKey{}, err
	}
	if st.Mode.Perm()&0o077 != 0 {
		return OwnKey{}, fault.Failed("remove it, so that a new one is made, and replace its line in your policies",
			"%s: others can read it (%s), so its signatures prove nothing", file, st.Mode.Perm())
	}
	raw, err := ssh.ParseRawPrivateKey(data)
	private, ok := raw.(*ed25519.PrivateKey)
	if err != nil || !ok {
		return OwnKey{}, fault.Failed("restore it, or remove it so that a new one is made",
			"%s: not an ed25519 key of ours", file)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return OwnKey{}, err
	}
	return OwnKey{Signer: signerOf(public), private: *private}, nil
}

// SignBare returns the ed25519 signature over the message itself, for VerifyDetached.
func (k OwnKey) SignBare(message []byte) []byte { return ed25519.Sign(k.private, message) }

// Line is the key's line for a list of whose evidence counts.
func (k OwnKey) Line(name string) (string, error) {
	k.Names, k.spaces = []string{name}, []string{EvidenceNamespace}
	return k.line()
}
