package forge

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sluice/internal/fault"
)

// Repo names a repo at a forge.
type Repo struct{ Host, Owner, Name string }

// String returns owner/name.
func (r Repo) String() string { return r.Owner + "/" + r.Name }

// ParseRepo reads the address of a git remote: https://HOST/OWNER/NAME.git, ssh://git@HOST/… or
// git@HOST:OWNER/NAME. A path on this machine is no forge.
func ParseRepo(address string) (Repo, error) {
	bad := func() (Repo, error) {
		if u, err := url.Parse(address); err == nil {
			address = u.Redacted()
		}
		return Repo{}, fault.New("git remote set-url origin https://HOST/OWNER/NAME.git",
			"the remote origin is not a repo of a forge: %.200q", address)
	}
	var host, path string
	if u, err := url.Parse(address); err == nil && (u.Scheme == "https" || u.Scheme == "ssh") {
		host, path = u.Host, u.Path
		if u.Scheme == "ssh" { // its port is ssh's, not the API's
			host = u.Hostname()
		}
	} else if h, p, ok := strings.Cut(address, ":"); ok && !strings.ContainsAny(h, "/\\") && !strings.HasPrefix(p, "/") {
		_, host, _ = strings.Cut(h, "@")
		host = cmp.Or(host, h)
		path = p
	}
	if host == "ssh.github.com" {
		host = "github.com"
	}
	owner, name, ok := strings.Cut(strings.Trim(strings.TrimSuffix(path, ".git"), "/"), "/")
	if !ok || host == "" || !plain(owner) || !plain(name) {
		return bad()
	}
	return Repo{Host: strings.ToLower(host), Owner: owner, Name: name}, nil
}

// plain reports whether a text can be an owner or a repo: it becomes part of a path.
func plain(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// path returns the API's path of something in the repo.
func (h *Hub) path(format string, args ...any) string {
	return "repos/" + h.Owner + "/" + h.Name + "/" + fmt.Sprintf(format, args...)
}

// Limits of lists.
const (
	perPage  = 100
	fewer    = 50 // each of these is a multiple of the next
	least    = 10 // per page where more are too long for an answer: so many texts of the greatest length fit into one
	maxItems = 1000
	maxList  = 10 * maxAnswer // bytes of all pages
)

// list reads all pages of a list. of returns what one page has; nil = that is no list.
func list[T any](ctx context.Context, h *Hub, path string, of func(page []byte) ([]T, error)) ([]T, error) {
	var out []T
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	for page, per, size := 1, perPage, 0; ; page++ {
		at := fmt.Sprintf("%s%sper_page=%d&page=%d", path, sign, per, page)
		a, err := h.call(ctx, request{method: "GET", path: at})
		if Is(err, TooMuch) && per > least {
			per = map[int]int{perPage: fewer, fewer: least}[per] // the same again, in smaller pages
			page = len(out) / per
			continue
		}
		if err != nil {
			return nil, err
		}
		some, err := of(a.body)
		if err != nil || some == nil {
			return nil, h.odd("GET " + path)
		}
		out, size = append(out, some...), size+len(a.body)
		switch more := strings.Contains(strings.Join(a.header.Values("Link"), ","), `rel="next"`); {
		case len(some) < per && !more: // a page may be short of what was asked for
			return out, nil
		case len(out) >= maxItems, size >= maxList, page >= maxItems/least:
			return nil, &Fault{Kind: TooMuch, Host: h.Host, What: "GET " + path, Status: a.status}
		}
	}
}

// plainList reads a page that is a list.
func plainList[T any](page []byte) (out []T, err error) {
	err = decode(page, &out)
	return slices.Clip(out), err
}

// Me returns the login of the account that gh has at the forge now.
func (h *Hub) Me(ctx context.Context) (string, error) {
	var u user
	if err := h.get(ctx, "user", &u); err != nil {
		return "", err
	}
	if u.Login == "" {
		return "", h.odd("GET user")
	}
	return u.Login, nil
}

type user struct {
	Login string `json:"login"`
}
