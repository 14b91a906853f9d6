package passkey

import (
	"net/url"
	"strings"

	"sluice/internal/approval"
)

// RegisterPath is where a page takes registrations: RegisterPath + repo-id. The code stands behind a #,
// so that no server log and no other page sees it.
const RegisterPath = "/register/"

// Site is a page, by the one address at which its passkeys count.
type Site struct{ origin, id string }

// At returns the site of a page's address: https://NAME[:PORT], or http:// with a name below
// localhost.
func At(address string) (Site, error) {
	address = strings.TrimSuffix(address, "/")
	if u, err := url.Parse(address); err == nil { // as browsers write it
		u.Host = strings.ToLower(u.Host)
		if port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; port != "" {
			u.Host = strings.TrimSuffix(u.Host, port)
		}
		address = u.String()
	}
	id, err := approval.SiteOf(address)
	return Site{address, id}, err
}

// Origin is the address as browsers write it.
func (s Site) Origin() string { return s.origin }

// ID is the name that passkeys belong to: the rpId of the browser's interface.
func (s Site) ID() string { return s.id }

func (s Site) link(repo, code string) string {
	return s.origin + RegisterPath + url.PathEscape(repo) + "#" + code
}
