package passkey

import (
	"bytes"

	"sluice/internal/approval"
)

// pageNamespace keeps what a passkey signs to log in apart from what it signs at gates.
const pageNamespace = "sluice-page"

// Person is the owner of a passkey.
type Person struct {
	Name string // the first on the list
	Key  string // fingerprint
}

// AskWho returns the options of navigator.credentials.get that identify the person at the browser by
// any passkey of the site. The passkey signs the text, which decides nothing.
func (s Site) AskWho(said string) RequestOptions {
	return s.request([]byte(said), pageNamespace, []credential{})
}

// request returns the options that have a passkey of those allowed sign a text.
func (s Site) request(said []byte, namespace string, allow []credential) RequestOptions {
	return RequestOptions{RPID: s.id, Challenge: approval.Challenge(said, namespace), Allow: allow,
		UserVerification: "required", Timeout: askFor.Milliseconds()}
}

// AskWho does what Site.AskWho does, with the passkeys of the repo only.
func (d Desk) AskWho(said string) (RequestOptions, error) {
	list, err := d.list()
	return d.Site.request([]byte(said), pageNamespace, d.credentials(list, nil)), err
}

// Who checks the result of navigator.credentials.get, as toJSON() writes it, for the text of AskWho. It
// returns nil for a passkey that the repo does not have. The caller ensures that the text is new.
func (d Desk) Who(said string, response []byte) (*Person, error) {
	r, err := readAsserted(response)
	if err != nil {
		return nil, err
	}
	list, err := d.list()
	if err != nil {
		return nil, err
	}
	for _, s := range list.Signers {
		if about, ok := list.Passkeys[s.Key]; !ok || !bytes.Equal(about.Credential, r.ID) {
			continue
		}
		who := d.person(list, s.Key)
		if who == nil {
			return nil, nil
		}
		if _, err = r.repack(s, d.Site, pageNamespace, said); err != nil {
			return nil, err
		}
		return who, nil
	}
	return nil, nil
}

// Person returns the owner of the passkey with the fingerprint; nil if it does not count at the site.
func (d Desk) Person(key string) (*Person, error) {
	list, err := d.list()
	if err != nil {
		return nil, err
	}
	return d.person(list, key), nil
}

func (d Desk) person(list approval.List, key string) *Person {
	s, ok := list.Find(key)
	_, revoked := list.WasRevoked(key)
	if !ok || revoked || list.Passkeys[key].Origin != d.Site.origin {
		return nil
	}
	return &Person{Name: s.Names[0], Key: key}
}

// Has reports whether one of the names has a passkey at the site; without names, whether anybody has.
func (d Desk) Has(names []string) (bool, error) {
	list, err := d.list()
	return len(d.credentials(list, names)) > 0, err
}

// Pending reports whether a registration for the invitation waits for its confirmation.
func (d Desk) Pending(id string) bool {
	reg, err := d.Registered(id)
	return err == nil && reg != nil
}
