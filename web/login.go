package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"sluice/internal/atomicfile"
)

// Times and limits of logins.
const (
	// CodeLife is how long the code of a link can be used.
	CodeLife  = 10 * time.Minute
	loginLife = 30 * 24 * time.Hour
	codesMost = 16
	// loginsMost is how many browsers may be logged in. One more logs out the oldest.
	loginsMost = 64
	// Of wrong codes within wrongIn, more than wrongMost get a short answer. The right ones count all the
	// same: nobody guesses one, and a stranger must not shut others out.
	wrongMost = 20
	wrongIn   = time.Minute
)

// cookieName has the prefix that keeps other ports and names of a host from setting it.
const cookieName = "__Host-sluice"

// loginsFile has the hashes of the cookies that count, in the folder of all state folders.
const loginsFile = "web-logins.json"

// login is one browser.
type login struct {
	Hash  string    `json:"hash"` // hex SHA-256 of its cookie
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`

	// Local logins were made by a link at LocalName. Any other decides by passkey only.
	Local bool `json:"local,omitempty"`
	// Of a login by passkey: its repo, fingerprint and person, and when it was last used for that.
	Repo   string    `json:"repo,omitempty"`
	Key    string    `json:"key,omitempty"`
	Name   string    `json:"name,omitempty"`
	Proved time.Time `json:"proved,omitzero"`
}

// logins knows which browsers may use the page.
type logins struct {
	file string
	now  func() time.Time

	mu    sync.Mutex
	all   []login
	codes map[string]time.Time // hash -> until
	wrong []time.Time
}

func openLogins(home string, now func() time.Time) *logins {
	l := &logins{file: filepath.Join(home, loginsFile), now: now, codes: map[string]time.Time{}}
	raw, _, err := atomicfile.OpenRegular(home, loginsFile, 1<<20)
	if err != nil || json.Unmarshal(raw, &l.all) != nil { // everybody logs in again
		l.all = nil
	}
	return l
}

// secret returns 256 random bits for a URL or a cookie, and their hash.
func secret() (text, hash string) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	text = base64.RawURLEncoding.EncodeToString(b)
	return text, hashOf(text)
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// code returns a new code for a link.
func (l *logins) code() string {
	text, hash := secret()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy()
	for len(l.codes) >= codesMost { // the oldest gives way
		delete(l.codes, slices.MinFunc(slices.Collect(maps.Keys(l.codes)),
			func(a, b string) int { return l.codes[a].Compare(l.codes[b]) }))
	}
	l.codes[hash] = l.now().Add(CodeLife)
	return text
}

// tidy removes what has expired.
func (l *logins) tidy() {
	now := l.now()
	maps.DeleteFunc(l.codes, func(_ string, until time.Time) bool { return !now.Before(until) })
	l.all = slices.DeleteFunc(l.all, func(x login) bool { return !now.Before(x.Until) })
	l.wrong = slices.DeleteFunc(l.wrong, func(at time.Time) bool { return now.Sub(at) >= wrongIn })
}

// exchange uses up a code, and reports whether it counted, or else whether too many wrong ones came.
func (l *logins) exchange(code string) (ok, tooMany bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy()
	hash := hashOf(code)
	if _, ok := l.codes[hash]; ok {
		delete(l.codes, hash)
		return true, false
	}
	if len(l.wrong) >= wrongMost {
		return false, true
	}
	l.wrong = append(l.wrong, l.now())
	return false, false
}

// add keeps a new login, and returns its cookie's value.
func (l *logins) add(x login) (string, error) {
	text, hash := secret()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy()
	x.Hash, x.Since, x.Until = hash, l.now(), l.now().Add(loginLife)
	l.all = append(l.all, x)
	if n := len(l.all) - loginsMost; n > 0 {
		l.all = l.all[n:]
	}
	return text, l.save()
}

func (l *logins) save() error {
	raw, err := json.Marshal(l.all)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(l.file, raw, 0o600); err != nil {
		return fmt.Errorf("keep the login: %w", err)
	}
	return nil
}

// known returns the login of a cookie's value.
func (l *logins) known(cookie string) (login, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hash := hashOf(cookie)
	for _, x := range l.all {
		if x.Hash == hash && l.now().Before(x.Until) {
			return x, true
		}
	}
	return login{}, false
}

// end forgets a login.
func (l *logins) end(hash string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.all, func(x login) bool { return x.Hash == hash })
	if i < 0 {
		return nil
	}
	l.all = slices.Delete(l.all, i, i+1)
	return l.save()
}

// endAll forgets all logins, and the codes of links that were not used.
func (l *logins) endAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.codes = nil, map[string]time.Time{}
	return l.save()
}

// enter exchanges the code of a link for a cookie.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	ok, tooMany := s.logins.exchange(r.URL.Query().Get("code"))
	if tooMany {
		w.Header().Set("Retry-After", strconv.Itoa(int(wrongIn.Seconds())))
		http.Error(w, "too many wrong links were tried in the last minute: `sluice web` prints a new one, which works",
			http.StatusTooManyRequests)
		return
	}
	if !ok {
		s.show(w, r, http.StatusForbidden, view{title: "Not logged in", body: "login",
			data: loginPage{Why: fmt.Sprintf("This link was used before, or is older than %d minutes.",
				int(CodeLife.Minutes())), Passkey: s.guard.tls}})
		return
	}
	if err := s.passkeys.admit(w, login{Local: s.passkeys.here(r)}); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// leave ends a login, or all of them: a lost device may have one that came by a link.
func (s *Server) leave(w http.ResponseWriter, r *http.Request) {
	if l, ok := s.login(r); ok {
		var err error
		if r.PostFormValue("all") != "" {
			err = s.logins.endAll()
		} else {
			err = s.logins.end(l.Hash)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
	}
	setCookie(w, "", -1)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// setCookie sets the login cookie, valid for this many seconds; -1 removes it.
func setCookie(w http.ResponseWriter, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, MaxAge: seconds})
}

// loginPage is shown to browsers without a login.
type loginPage struct {
	Why   string
	Again string // where a link from another site leads, if this is one

	Passkey bool // a passkey logs in
}

func (s *Server) login(r *http.Request) (login, bool) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return login{}, false
	}
	l, ok := s.logins.known(c.Value)
	if ok && l.Key != "" && !s.passkeys.counts(r.Context(), l) {
		return login{}, false
	}
	return l, ok
}

// loggedIn calls next for browsers that are logged in. A browser does not send its cookie
// when it follows a link from another site, so such a request gets a link to the same page.
func (s *Server) loggedIn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.login(r); ok {
			next(w, r)
			return
		}
		p := loginPage{Passkey: s.guard.tls}
		if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" {
			p.Again = r.URL.RequestURI()
		}
		s.show(w, r, http.StatusUnauthorized, view{title: "Not logged in", body: "login", data: p})
	}
}
