package passkey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/ids"
)

// Life is how long a registration code counts.
const Life = 10 * time.Minute

const (
	folder      = "passkeys" // below a repo's state folder
	maxGuesses  = 5          // wrong codes for one invitation
	maxPending  = 20         // invitations at a time
	maxFile     = 64 << 10
	idDigits    = 8
	codeDigits  = idDigits + 32
	othersWrite = 0o022
)

// Desk takes the registrations and decisions of a repo.
type Desk struct {
	Repo     string // repo-id
	SignedAs string // what decisions name the repo by; "" = Repo
	State    string // its state folder
	Site     Site
	Now      func() time.Time
}

// invitation is what stands in ID.json.
type invitation struct {
	Names     []string  `json:"names"`
	Origin    string    `json:"origin"`
	Code      string    `json:"code"` // hex of its SHA-256
	Challenge base64url `json:"challenge"`
	User      base64url `json:"user"`
	Expires   time.Time `json:"expires"`
}

// registration is what stands in ID.key.
type registration struct {
	PublicKey  base64url `json:"public_key"`
	Credential base64url `json:"credential"`
	At         time.Time `json:"at"`
}

// Invitation is what a person is given to register a passkey.
type Invitation struct {
	ID      string
	Code    string // one use
	Link    string // with the code
	Expires time.Time
}

// Registered is a passkey that waits for a person to confirm it.
type Registered struct {
	ID    string // of the invitation
	Names []string
	Key   string // fingerprint

	signer approval.Signer
	about  approval.Passkey
}

func (d Desk) list() (approval.List, error) { return approval.Store{State: d.State}.Load() }

func (d Desk) dir() string { return filepath.Join(d.State, folder) }

// Invite makes a code for a passkey of the person with the names.
func (d Desk) Invite(names []string) (Invitation, error) {
	if err := approval.CheckNames(names); err != nil {
		return Invitation{}, err
	}
	if err := os.MkdirAll(d.dir(), 0o700); err != nil {
		return Invitation{}, err
	}
	if err := d.sweep(); err != nil {
		return Invitation{}, err
	}
	code := hex.EncodeToString(random(codeDigits / 2))
	out := Invitation{ID: code[:idDigits], Code: code, Link: d.Site.link(d.Repo, code), Expires: d.Now().Add(Life)}
	data, err := json.Marshal(invitation{Names: names, Origin: d.Site.origin, Code: hash(code), Challenge: random(32),
		User: random(16), Expires: out.Expires.UTC()})
	if err != nil {
		return Invitation{}, err
	}
	return out, atomicfile.WriteNew(filepath.Join(d.dir(), out.ID+".json"), data, 0o600)
}

// sweep removes invitations that are over, and says if too many wait.
func (d Desk) sweep() error {
	files, err := os.ReadDir(d.dir())
	if err != nil {
		return err
	}
	pending := 0
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || !ids.Hex(id, idDigits/2) {
			continue
		}
		if inv, err := d.invitation(id); err == nil && d.Now().Before(inv.Expires.Add(Life)) {
			pending++
			continue
		}
		if err := d.Withdraw(id); err != nil {
			return err
		}
	}
	if pending >= maxPending {
		return fault.New("finish one of them, or wait until it expires", "%d passkeys wait for registration", pending)
	}
	return nil
}

// Withdraw makes an invitation void, with what was registered for it.
func (d Desk) Withdraw(id string) error {
	if !ids.Hex(id, idDigits/2) {
		return fmt.Errorf("%q is not an invitation", id)
	}
	names := []string{id + ".json", id + ".key"} // the invitation first: without it nothing else counts
	for n := range maxGuesses {
		names = append(names, try(id, n))
	}
	var errs []error
	for _, name := range names {
		if err := os.Remove(filepath.Join(d.dir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// BeginRegistration returns what navigator.credentials.create is to be asked. The error says why the
// code does not count.
func (d Desk) BeginRegistration(code string) (*CreationOptions, error) {
	inv, err := d.open(code)
	if err != nil {
		return nil, err
	}
	list, err := d.list()
	if err != nil {
		return nil, err
	}
	var o CreationOptions
	o.RP.ID, o.RP.Name = d.Site.id, "sluice"
	o.User.ID, o.User.Name, o.User.DisplayName = inv.User, inv.Names[0]+" ("+d.Repo+")", inv.Names[0]
	o.Challenge, o.Kinds = inv.Challenge, []kind{{publicKey, es256}}
	o.Exclude = d.credentials(list, inv.Names)
	o.Selection.ResidentKey, o.Selection.UserVerification = "preferred", "required"
	o.Attestation, o.Timeout = "none", askFor.Milliseconds()
	return &o, nil
}

// FinishRegistration takes what navigator.credentials.create gave, as toJSON() writes it, and uses the
// code up. The passkey does not count before it is confirmed.
func (d Desk) FinishRegistration(code string, response []byte) (*Registered, error) {
	inv, err := d.open(code)
	if err != nil {
		return nil, err
	}
	c, err := readCreated(response)
	if err != nil {
		return nil, err
	}
	key, err := c.key(d.Site, inv.Challenge)
	if err != nil {
		return nil, err
	}
	if err := d.fresh(key.Key); err != nil {
		return nil, err
	}
	reg := registration{PublicKey: c.Response.PublicKey, Credential: c.ID, At: d.Now().UTC()}
	data, err := json.Marshal(reg)
	if err != nil {
		return nil, err
	}
	err = atomicfile.WriteNew(filepath.Join(d.dir(), code[:idDigits]+".key"), data, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, used()
	}
	if err != nil {
		return nil, err
	}
	return inv.with(code[:idDigits], reg)
}

// fresh returns an error for a key that is listed or revoked. A browser proves no possession of the key
// that it registers: anybody could send the public key of another person.
func (d Desk) fresh(key string) error {
	list, err := d.list()
	if err != nil {
		return err
	}
	_, listed := list.Find(key)
	if _, revoked := list.WasRevoked(key); listed || revoked {
		return fault.New("make a new passkey", "the passkey %s is listed or revoked already", key)
	}
	return nil
}

// with is the passkey that was registered for the invitation with the id.
func (inv invitation) with(id string, reg registration) (*Registered, error) {
	site, err := At(inv.Origin)
	if err != nil {
		return nil, err
	}
	key, err := approval.PasskeyOf(reg.PublicKey, site.id)
	if err != nil {
		return nil, err
	}
	key.Names, key.Comment = inv.Names, "passkey"
	return &Registered{ID: id, Names: inv.Names, Key: key.Key, signer: key,
		about: approval.Passkey{Origin: inv.Origin, Credential: reg.Credential}}, nil
}

// Registered returns what was registered for an invitation; nil while it waits. The error says why
// nothing can come any more.
func (d Desk) Registered(id string) (*Registered, error) {
	inv, err := d.invitation(id)
	if err != nil {
		return nil, err
	}
	var reg registration
	switch err := d.read(id+".key", &reg); {
	case err == nil:
		return inv.with(id, reg)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !d.Now().Before(inv.Expires):
		return nil, expired(inv)
	case d.guessed(id):
		return nil, tried()
	}
	return nil, nil
}

// Confirm puts a registered passkey on the list: from now on it counts.
func (d Desk) Confirm(r *Registered) error {
	return approval.Store{State: d.State}.AddPasskey(r.signer, r.about)
}

// open returns the invitation that the code is for. A wrong code is counted before it is compared,
// so that requests at the same time make no more guesses than are allowed.
func (d Desk) open(code string) (inv invitation, err error) {
	unknown := fault.New("ask for a new one: sluice keys add --passkey",
		"this registration code is not known: it may have expired")
	if !ids.Hex(code, codeDigits/2) {
		return inv, unknown
	}
	id := code[:idDigits]
	if inv, err = d.invitation(id); errors.Is(err, fs.ErrNotExist) {
		return inv, unknown
	} else if err != nil {
		return inv, err
	}
	slot, err := d.guess(id)
	if err != nil {
		return inv, err
	}
	if subtle.ConstantTimeCompare([]byte(hash(code)), []byte(inv.Code)) != 1 {
		return invitation{}, unknown
	}
	if err := os.Remove(slot); err != nil {
		return invitation{}, err
	}
	if inv.Origin != d.Site.origin {
		return invitation{}, fault.New("open the link as it is", "this registration code is for %s", inv.Origin)
	}
	if !d.Now().Before(inv.Expires) {
		return invitation{}, expired(inv)
	}
	if _, err := atomicfile.Lstat(d.dir(), id+".key"); !errors.Is(err, fs.ErrNotExist) {
		return invitation{}, errors.Join(err, used())
	}
	return inv, nil
}

// guess takes one of the guesses that an invitation allows.
func (d Desk) guess(id string) (slot string, err error) {
	for n := range maxGuesses {
		slot = filepath.Join(d.dir(), try(id, n))
		if err = atomicfile.WriteNew(slot, nil, 0o600); !errors.Is(err, fs.ErrExist) {
			return slot, err
		}
	}
	return "", tried()
}

// guessed reports whether the guesses are used up.
func (d Desk) guessed(id string) bool {
	for n := range maxGuesses {
		if _, err := atomicfile.Lstat(d.dir(), try(id, n)); err != nil {
			return false
		}
	}
	return true
}

func try(id string, n int) string { return fmt.Sprintf("%s.try.%d", id, n+1) }

func used() error {
	return fault.New("if it was not you, answer the question in the terminal with no",
		"this registration code was used already")
}

func tried() error {
	return fault.New("ask for a new one: sluice keys add --passkey",
		"the registration code was guessed at %d times and no longer counts", maxGuesses)
}

func expired(inv invitation) error {
	return fault.New("ask for a new one: sluice keys add --passkey", "the registration code expired at %s",
		inv.Expires.UTC().Format("2006-01-02 15:04:05Z"))
}

func (d Desk) invitation(id string) (inv invitation, err error) {
	if err = d.read(id+".json", &inv); err == nil && (len(inv.Names) == 0 || len(inv.Challenge) == 0) {
		err = fmt.Errorf("%s: it is not an invitation", filepath.Join(d.dir(), id+".json"))
	}
	return inv, err
}

func (d Desk) read(name string, v any) error {
	data, st, err := atomicfile.OpenRegular(d.dir(), name, maxFile)
	if err == nil && st.Mode.Perm()&othersWrite != 0 {
		err = errors.New("others can write it")
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(d.dir(), name), err)
	}
	return nil
}

// credentials returns the passkeys of this site that are of one of the names; of anybody if there is
// none.
func (d Desk) credentials(list approval.List, names []string) []credential {
	out := []credential{}
	for _, s := range list.Signers {
		if about, ok := list.Passkeys[s.Key]; ok && about.Origin == d.Site.origin && (len(names) == 0 || s.Named(names)) {
			out = append(out, credential{publicKey, slices.Clone(about.Credential)})
		}
	}
	return out
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // on an error it ends the program
	return b
}

func hash(code string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(code))) }
