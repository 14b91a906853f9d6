package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/internal/approval/passkey"
	"sluice/internal/fault"
	"sluice/internal/text"
)

// Times and limits of passkeys at the page.
const (
	// provedFor is how long after a login or a confirmation by a passkey another device may steer.
	provedFor   = 5 * time.Minute
	loginIn     = 5 * time.Minute // from the question of a login to its answer
	usedMost    = 1024            // logins within that time
	waitingMost = 64              // registrations that wait for the terminal
	keyBodyMost = passkey.MaxResponse * 2
)

// passkeys takes registrations, logins and decisions by passkey.
type passkeys struct {
	s *Server

	mu      sync.Mutex           // held while a passkey is checked, which browsers without a login may request
	used    map[string]time.Time // answered questions -> until when they would count
	waiting map[string]waiting   // by the hash of the registration's code
}

// waiting is a registered passkey that waits for a yes in the terminal.
type waiting struct {
	repo, invitation, key string
	until                 time.Time
}

func newPasskeys(s *Server) *passkeys {
	return &passkeys{s: s, used: map[string]time.Time{}, waiting: map[string]waiting{}}
}

// desk takes the registrations and decisions of a repo, at the page's address.
func (k *passkeys) desk(at repo) (passkey.Desk, error) {
	site, err := passkey.At(k.s.guard.base)
	return passkey.Desk{Repo: at.ID, SignedAs: at.SignedAs(), State: at.State, Site: site, Now: k.s.con.Now}, err
}

// repoOf returns the repo with the id.
func (k *passkeys) repoOf(ctx context.Context, id string) (repo, error) {
	known, err := k.s.repos.all(ctx)
	if err != nil {
		return repo{}, err
	}
	if i := slices.IndexFunc(known, func(at repo) bool { return at.ID == id }); i >= 0 {
		return known[i], nil
	}
	return repo{}, errNotFound{"no such repo is known here"}
}

// counts reports whether the passkey of a login still counts in its repo.
func (k *passkeys) counts(ctx context.Context, l login) bool {
	at, err := k.repoOf(ctx, l.Repo)
	if err != nil {
		return false
	}
	d, err := k.desk(at)
	if err != nil {
		return false
	}
	who, err := d.Person(l.Key)
	return err == nil && who != nil
}

// asking returns a text for a passkey to sign at a login. The page stores none of these texts: it
// recognises its own by their seal.
func (k *passkeys) asking() string {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails
	said := fmt.Sprintf("sluice login 1\npage: %s\nnonce: %x\nexpires: %d\n", k.s.guard.base, nonce,
		k.s.con.Now().Add(loginIn).Unix())
	return said + k.seal(said)
}

func (k *passkeys) seal(said string) string {
	h := hmac.New(sha256.New, k.s.mac)
	h.Write([]byte("login\x00" + said))
	return "seal: " + hex.EncodeToString(h.Sum(nil)) + "\n"
}

// open checks the text of a login, and returns until when it counts.
func (k *passkeys) open(said string) (until time.Time, err error) {
	again := "log in again"
	i := strings.LastIndex(said, "seal: ")
	if i < 0 || !hmac.Equal([]byte(said[i:]), []byte(k.seal(said[:i]))) {
		return until, fault.New(again, "this login was not asked for by the page, or the daemon has restarted since")
	}
	_, rest, _ := strings.Cut(said[:i], "\nexpires: ")
	var unix int64
	if _, err := fmt.Sscanf(rest, "%d\n", &unix); err != nil {
		return until, fault.New(again, "this login has no expiry time")
	}
	until = time.Unix(unix, 0)
	if _, ok := k.used[said]; ok {
		return until, fault.New(again, "this login was used already")
	}
	if !k.s.con.Now().Before(until) {
		return until, fault.New(again, "this login took longer than %s", loginIn)
	}
	return until, nil
}

// beginLogin asks for a passkey: any, or one of the repo that a logged-in browser names.
func (k *passkeys) beginLogin(_ http.ResponseWriter, r *http.Request) (any, error) {
	site, err := passkey.At(k.s.guard.base)
	if err != nil {
		return nil, err
	}
	said := k.asking()
	options := site.AskWho(said)
	if _, ok := k.s.login(r); ok && r.PostForm.Get("repo") != "" {
		at, err := k.s.repos.named(r.Context(), r.PostForm.Get("repo"))
		if err != nil {
			return nil, err
		}
		d, err := k.desk(at)
		if err != nil {
			return nil, err
		}
		if options, err = d.AskWho(said); err != nil {
			return nil, err
		}
		if len(options.Allow) == 0 {
			return nil, fault.New("register one: sluice keys add --passkey", "no passkey of %s is registered at %s",
				text.Line(at.Name), k.s.guard.base)
		}
	}
	return map[string]any{"said": said, "options": options}, nil
}

// finishLogin logs a browser in by a passkey of any known repo.
func (k *passkeys) finishLogin(w http.ResponseWriter, r *http.Request) (any, error) {
	said := r.PostForm.Get("said")
	k.mu.Lock()
	defer k.mu.Unlock()
	until, err := k.open(said)
	if err != nil {
		return nil, err
	}
	at, who, err := k.whose(r.Context(), said, []byte(r.PostForm.Get("response")))
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(k.used, func(_ string, until time.Time) bool { return !k.s.con.Now().Before(until) })
	if len(k.used) >= usedMost {
		return nil, fault.New("try again in a few minutes", "too many logins")
	}
	k.used[said] = until
	if l, ok := k.s.login(r); ok {
		if err := k.s.logins.end(l.Hash); err != nil {
			return nil, err
		}
	}
	return map[string]bool{"in": true}, k.admit(w, login{Repo: at.ID, Key: who.Key, Name: who.Name, Proved: k.s.con.Now()})
}

// whose returns the passkey's repo and owner.
func (k *passkeys) whose(ctx context.Context, said string, response []byte) (repo, *passkey.Person, error) {
	known, err := k.s.repos.all(ctx)
	if err != nil {
		return repo{}, nil, err
	}
	for _, at := range known {
		d, failed := k.desk(at)
		var who *passkey.Person
		if failed == nil {
			who, failed = d.Who(said, response)
		}
		if who != nil {
			return at, who, nil
		}
		if err == nil { // another repo may know it all the same
			err = failed
		}
	}
	if err == nil {
		err = fault.New("register it: sluice keys add --passkey --name NAME",
			"no repo knows this passkey, or it was removed")
	}
	return repo{}, nil, err
}

// admit gives the browser the cookie of a new login.
func (k *passkeys) admit(w http.ResponseWriter, l login) error {
	cookie, err := k.s.logins.add(l)
	if err != nil {
		return err
	}
	setCookie(w, cookie, int(loginLife.Seconds()))
	return nil
}

// asked serves a request of the page's script. The result of do is written as JSON.
func (k *passkeys) asked(mux *http.ServeMux, pattern string, most int64,
	do func(http.ResponseWriter, *http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		err := r.ParseForm()
		if err != nil {
			err = fault.New("send less", "the request cannot be read: %w", err)
		}
		var out any
		if err == nil {
			out, err = do(w, r)
		}
		status := http.StatusOK
		if err != nil {
			status, out = k.refusal(r, err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out) // the browser may have gone
	})
}

// refusal is an error as the script shows it.
func (k *passkeys) refusal(r *http.Request, err error) (status int, out any) {
	var gone errNotFound
	var file *fs.PathError
	status, words := http.StatusConflict, err.Error()
	switch {
	case errors.As(err, &gone):
		status = http.StatusNotFound
	case errors.As(err, &file): // the browser need not know its path
		k.s.opt.Log.Error().Err(err).Str("page", r.URL.Path).Msg("the page failed")
		status, words = http.StatusInternalServerError, "a file cannot be read or written: see the daemon's log"
	}
	return status, map[string]string{"fault": text.Message(words)}
}
