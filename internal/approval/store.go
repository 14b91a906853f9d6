package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/strictjson"
)

// Names below a repo's state folder.
const (
	folder      = "approvers"
	listFile    = "allowed_signers"
	revokedFile = "revoked"
	placesFile  = "places"
	passkeyFile = "passkeys"
)

// othersWrite are the rights by which another user could add a key.
const othersWrite fs.FileMode = 0o022

// Store keeps the list of a repo in its state folder, out of the reach of agents that a sandbox holds.
type Store struct{ State string }

// ListFile is the list in OpenSSH's form: `ssh-keygen -Y verify -f` reads it too.
func (s Store) ListFile() string { return filepath.Join(s.State, folder, listFile) }

// Load reads the list; a repo without one has no approvers. What cannot be read is an error: a revocation may be in it.
func (s Store) Load() (List, error) {
	var l List
	data, err := s.read(listFile)
	if err == nil {
		l.Signers, err = ParseList(data)
	}
	if err != nil {
		return List{}, fault.New("fix it, or remove it and add the keys again (sluice keys add)", "%s: %w", s.ListFile(), err)
	}
	file := filepath.Join(s.State, folder, revokedFile)
	if data, err = s.read(revokedFile); err != nil {
		return List{}, fmt.Errorf("%s: %w", file, err)
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var r Revoked
		if err := json.Unmarshal(line, &r); err != nil || r.Key == "" || len(r.Names) == 0 {
			return List{}, fault.New("fix it",
				"%s: line %d cannot be read, so the revoked keys are unknown and no key counts", file, i+1)
		}
		l.Revoked = append(l.Revoked, r)
	}
	if l.Passkeys, err = s.passkeys(); err != nil {
		return List{}, fault.New("fix it, or remove it and register the passkeys again (sluice keys add --passkey)",
			"%s: %w", filepath.Join(s.State, folder, passkeyFile), err)
	}
	return l, nil
}

// passkeys reads where each passkey counts.
func (s Store) passkeys() (map[string]Passkey, error) {
	data, err := s.read(passkeyFile)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	if err := strictjson.Object(data, maxList); err != nil {
		return nil, err
	}
	var out map[string]Passkey
	return out, json.Unmarshal(data, &out)
}

// AddPasskey puts a passkey on the list, for gates only.
func (s Store) AddPasskey(key Signer, about Passkey) error {
	site, err := SiteOf(about.Origin)
	if err != nil {
		return err
	}
	if key.Site == "" || key.Site != site {
		return fmt.Errorf("key %s is not a passkey of %s", key.Key, site)
	}
	key.spaces = []string{GateNamespace}
	return s.change(func(l List) error {
		if _, was := l.WasRevoked(key.Key); !was { // of a revoked one what was known stays
			if l.Passkeys == nil {
				l.Passkeys = map[string]Passkey{}
			}
			l.Passkeys[key.Key] = about
		}
		data, err := json.Marshal(l.Passkeys)
		if err == nil {
			err = s.write(passkeyFile, append(data, '\n'))
		}
		if err != nil {
			return err
		}
		return s.add(l, key)
	})
}

func (s Store) read(name string) ([]byte, error) {
	dir := filepath.Join(s.State, folder)
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return nil, errors.New("its folder is not a folder")
	}
	data, st, err := atomicfile.OpenRegular(dir, name, maxList)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case st.Mode.Perm()&othersWrite != 0:
		return nil, fault.New("chmod 600", "others can write it (%s), so no key in it counts", st.Mode.Perm())
	}
	return data, nil
}

// Add puts a key on the list, or gives one that is there other names.
func (s Store) Add(key Signer) error {
	return s.change(func(l List) error { return s.add(l, key) })
}

func (s Store) add(l List, key Signer) error {
	if err := CheckNames(key.Names); err != nil {
		return err
	}
	if r, ok := l.WasRevoked(key.Key); ok {
		return fault.New("create a new one (ssh-keygen -t ed25519-sk)", "key %s was revoked on %s", key.Key,
			r.At.UTC().Format("2006-01-02"))
	}
	l.Signers = slices.DeleteFunc(l.Signers, func(o Signer) bool { return o.Key == key.Key })
	return s.save(append(l.Signers, key))
}

// Revoke takes a key off the list and records that. The record is written first: a crash between leaves no gap.
func (s Store) Revoke(r Revoked) error {
	return s.change(func(l List) error {
		key, ok := l.Find(r.Key)
		if !ok {
			return fault.New("sluice keys ls", "key %s is not on the list", r.Key)
		}
		r.Names = key.Names
		var out bytes.Buffer
		for _, o := range append(l.Revoked, r) {
			line, err := json.Marshal(o)
			if err != nil {
				return err
			}
			out.Write(append(line, '\n'))
		}
		if err := s.write(revokedFile, out.Bytes()); err != nil {
			return err
		}
		return s.save(slices.DeleteFunc(l.Signers, func(o Signer) bool { return o.Key == r.Key }))
	})
}

// change has do change the list as it is now.
func (s Store) change(do func(l List) error) error {
	return s.alone(func() error {
		l, err := s.Load()
		if err != nil {
			return err
		}
		return do(l)
	})
}

// alone keeps other processes from changing the files while change does: from what it read before, it could put a
// revoked key back.
func (s Store) alone(change func() error) error {
	if err := os.MkdirAll(filepath.Join(s.State, folder), 0o700); err != nil {
		return err
	}
	return atomicfile.Alone(s.ListFile(), change)
}

func (s Store) save(signers []Signer) error {
	var b strings.Builder
	b.WriteString("# keys that may sign at the gates of this repo; written by `sluice keys`, in the format of " +
		"ssh-keygen's allowed_signers\n")
	for _, k := range signers {
		line, err := k.line()
		if err != nil {
			return err
		}
		b.WriteString(line + "\n")
	}
	return s.write(listFile, []byte(b.String()))
}

func (s Store) write(name string, data []byte) error {
	return atomicfile.Write(filepath.Join(s.State, folder, name), data, 0o600)
}

// Places returns where the private halves of keys lay on this machine when they were added, by
// fingerprint. It is a help for who signs, and no proof of anything.
func (s Store) Places() map[string]string {
	out := map[string]string{}
	if data, err := s.read(placesFile); err == nil && json.Unmarshal(data, &out) != nil {
		return map[string]string{}
	}
	return out
}

// Place notes where the private half of a key lies.
func (s Store) Place(fingerprint, file string) error {
	return s.alone(func() error {
		at := s.Places()
		at[fingerprint] = file
		data, err := json.Marshal(at)
		if err != nil {
			return err
		}
		return s.write(placesFile, append(data, '\n'))
	})
}
