package cluster

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"sluice/internal/fault"
)

const (
	signHeader = "Sluice-Sign"
	keyLen     = 56       // of a public key; the decoder takes more too
	maxSeed    = 16 << 10 // bytes of a seed's file that are read: nk and nsc write less than one KiB
	// signedAs begins all that is signed: who logs in signs what a server sends, which must not be that.
	signedAs = "sluice request\n"
)

// key is the nkey that a connection logs in with. It signs what the connection asks.
type key struct {
	pair   nkeys.KeyPair
	public string
}

// readKey reads the file of a user's seed; no file is no key.
func readKey(file string) (*key, error) {
	if file == "" {
		return nil, nil
	}
	k, err := parseKey(file)
	if err != nil {
		return nil, fault.Failed("give the file of a user's seed (nk -gen user)", "--nkey: %s: %w", file, err)
	}
	return k, nil
}

func parseKey(file string) (*key, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSeed))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	pair, err := nkeys.ParseDecoratedUserNKey(data)
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	return &key{pair, public}, err
}

// PublicKey returns the public key of the seed in a file.
func PublicKey(file string) (string, error) {
	k, err := readKey(file)
	if err != nil || k == nil {
		return "", err
	}
	return k.public, nil
}

// login signs what a server sends to have a connection prove its key.
func (k *key) login(nonce []byte) ([]byte, error) {
	if bytes.HasPrefix(nonce, []byte(signedAs)) {
		return nil, errors.New("the server wants a request signed in place of a login")
	}
	return k.pair.Sign(nonce)
}

// IsKey reports whether a text can be the public key that signs requests.
func IsKey(s string) bool { return len(s) == keyLen && nkeys.IsValidPublicUserKey(s) }

// signedBytes are those of a request: where it goes, where it is answered, and what it says. So it
// counts for nobody else, and its answer goes to who has asked.
func signedBytes(subject, reply string, data []byte) []byte {
	return slices.Concat([]byte(signedAs+subject+"\n"+reply+"\n"), data)
}

func (k *key) sign(m *nats.Msg) error {
	sum, err := k.pair.Sign(signedBytes(m.Subject, m.Reply, m.Data))
	if err == nil {
		m.Header.Set(signHeader, base64.StdEncoding.EncodeToString(sum))
	}
	return err
}

// Signed reports whether a request to a subject is signed by one of these public keys. What a message
// says of its own subject does not count: the servers deliver a stored one under that of its stream.
func Signed(m *nats.Msg, subject string, by []string) bool {
	sum, err := base64.StdEncoding.DecodeString(m.Header.Get(signHeader))
	return err == nil && slices.ContainsFunc(by, func(public string) bool {
		k, err := nkeys.FromPublicKey(public)
		return err == nil && k.Verify(signedBytes(subject, m.Reply, m.Data), sum) == nil
	})
}
