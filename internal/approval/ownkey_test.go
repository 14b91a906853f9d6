package approval

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice/tools/conform"
)

// TestOwnKey: the daemon's key is made once, for its owner alone, and counts for evidence only.
func TestOwnKey(t *testing.T) {
	conform.Rule(t, "12-evidence key", `once, 0600, evidence only`)
	s := Store{State: t.TempDir()}
	var wg sync.WaitGroup
	keys := make([]OwnKey, 4)
	for i := range keys {
		wg.Go(func() {
			k, err := s.OwnKey()
			if err != nil {
				t.Error(err)
			}
			keys[i] = k
		})
	}
	wg.Wait()
	info, err := os.Stat(s.OwnKeyFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	for _, k := range keys {
		if k.Key == "" || k.Key != keys[0].Key {
			t.Errorf("%s and %s", k.Key, keys[0].Key)
		}
	}
	line, err := keys[0].Line("daemon@r-1")
	if err != nil || !strings.HasPrefix(line, `daemon@r-1 namespaces="sluice-evidence" ssh-ed25519 `) {
		t.Fatal(line, err)
	}
	signers, err := ParseList([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	list, message, sig := List{Signers: signers}, []byte("message"), keys[0].SignBare([]byte("message"))
	for _, c := range []struct {
		message, sig []byte
		key, space   string
		says         string
	}{
		{message, sig, keys[0].Key, EvidenceNamespace, ""},
		{message, sig, keys[0].Key, GateNamespace, "is not for sluice-gate"},
		{message, sig, "SHA256:x", EvidenceNamespace, "key SHA256:x is not known"},
		{[]byte("Message"), sig, keys[0].Key, EvidenceNamespace, "does not match"},
		{message, sig[1:], keys[0].Key, EvidenceNamespace, "a signature of 63 bytes"},
		{message, nil, keys[0].Key, EvidenceNamespace, "a signature of 0 bytes"},
		{message, []byte("SSHSIG"), keys[0].Key, EvidenceNamespace, "cannot be read"},
		{message, slicesOf("SSHSIG", sig), keys[0].Key, EvidenceNamespace, "cannot be read"},
	} {
		by, err := list.VerifyDetached(c.message, c.sig, c.key, c.space)
		if c.says == "" && (err != nil || by.Names[0] != "daemon@r-1") || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s %s: %v, want %q", c.key, c.space, err, c.says)
		}
	}
	list.Revoked = []Revoked{{Key: keys[0].Key, Names: []string{"daemon"}}}
	if _, err := list.VerifyDetached(message, sig, keys[0].Key, EvidenceNamespace); err == nil || !strings.Contains(err.Error(), "was revoked") {
		t.Error(err)
	}
}

func slicesOf(head string, rest []byte) []byte { return append([]byte(head), rest...) }

// TestOwnKeyRefused: a file that is no key of ours, or that others can read, signs nothing and is not replaced.
func TestOwnKeyRefused(t *testing.T) {
	conform.Rule(t, "12-evidence key", `once, 0600, evidence only`)
	for name, c := range map[string]struct {
		make func(file string) error
		says string
	}{
		"no key":        {func(f string) error { return os.WriteFile(f, []byte("x"), 0o600) }, "not an ed25519 key of ours"},
		"empty":         {func(f string) error { return os.WriteFile(f, nil, 0o600) }, "not an ed25519 key of ours"},
		"too long":      {func(f string) error { return os.WriteFile(f, bytes.Repeat([]byte("x"), maxKeyFile+1), 0o600) }, "daemon_key"},
		"a link":        {func(f string) error { return os.Symlink("/dev/zero", f) }, "daemon_key"},
		"others' right": {func(f string) error { return os.Chmod(f, 0o640) }, "others can read it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{State: t.TempDir()}
			if name == "others' right" {
				if _, err := s.OwnKey(); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Mkdir(filepath.Dir(s.OwnKeyFile()), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.make(s.OwnKeyFile()); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(s.OwnKeyFile())
			_, err := s.OwnKey()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
			if after, err := os.Lstat(s.OwnKeyFile()); err != nil || after.Mode() != before.Mode() {
				t.Error("it was replaced")
			}
		})
	}
}
