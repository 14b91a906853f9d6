package web

import (
	"maps"
	"net/http"

	"sluice/internal/approval/passkey"
	"sluice/internal/fault"
)

// register is the page on which a person creates a passkey. It does not name the repo until the code,
// which only the script sees, was accepted.
func (k *passkeys) register(w http.ResponseWriter, r *http.Request) {
	k.s.show(w, r, http.StatusOK, view{title: "Register a passkey", body: "register"})
}

// invited returns the repo of a registration, and its desk.
func (k *passkeys) invited(r *http.Request) (at repo, d passkey.Desk, err error) {
	if at, err = k.repoOf(r.Context(), r.PathValue("id")); err == nil {
		d, err = k.desk(at)
	}
	if err != nil {
		err = fault.New("ask for a new one: sluice keys add --passkey",
			"this registration code is not known: it may have expired")
	}
	return at, d, err
}

func (k *passkeys) beginRegistration(_ http.ResponseWriter, r *http.Request) (any, error) {
	at, d, err := k.invited(r)
	if err != nil {
		return nil, err
	}
	options, err := d.BeginRegistration(r.PostForm.Get("code"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"repo": at.Name, "options": options}, nil
}

func (k *passkeys) finishRegistration(_ http.ResponseWriter, r *http.Request) (any, error) {
	at, d, err := k.invited(r)
	if err != nil {
		return nil, err
	}
	code := r.PostForm.Get("code")
	reg, err := d.FinishRegistration(code, []byte(r.PostForm.Get("response")))
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.waiting, func(_ string, x waiting) bool { return !k.s.con.Now().Before(x.until) })
	if len(k.waiting) < waitingMost { // beyond that, browsers log in by passkey
		k.waiting[hashOf(code)] = waiting{at.ID, reg.ID, reg.Key, k.s.con.Now().Add(passkey.Life)}
	}
	return map[string]any{"key": reg.Key, "names": reg.Names}, nil
}

// registered says whether the terminal has confirmed a registration. If so, and where other devices
// reach the page, the browser is logged in, once.
func (k *passkeys) registered(w http.ResponseWriter, r *http.Request) (any, error) {
	_, d, err := k.invited(r)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	hash := hashOf(r.PostForm.Get("code"))
	x, ok := k.waiting[hash]
	if !ok || !k.s.con.Now().Before(x.until) {
		return nil, fault.New("log in with the passkey if it was added", "this registration is over")
	}
	pending := d.Pending(x.invitation) // before the list: a yes adds first and ends the invitation then
	who, err := d.Person(x.key)
	switch {
	case err != nil:
		return nil, err
	case who == nil && pending:
		return map[string]bool{"waits": true}, nil
	case who == nil:
		delete(k.waiting, hash)
		return nil, fault.New("start again: sluice keys add --passkey", "the terminal did not confirm it: nothing was added")
	}
	delete(k.waiting, hash)
	_, in := k.s.login(r)
	if !in && k.s.guard.tls {
		in, err = true, k.admit(w, login{Repo: x.repo, Key: who.Key, Name: who.Name})
	}
	return map[string]bool{"added": true, "in": in}, err
}
