package web

import (
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/approval/passkey"
	"sluice/internal/fault"
)

// pages serves registrations, logins and decisions by passkey.
func (k *passkeys) pages(mux *http.ServeMux) {
	mux.HandleFunc("GET "+passkey.RegisterPath+"{id}", k.register)
	k.asked(mux, "POST "+passkey.RegisterPath+"{id}/begin", keyBodyMost, k.beginRegistration)
	k.asked(mux, "POST "+passkey.RegisterPath+"{id}/finish", keyBodyMost, k.finishRegistration)
	k.asked(mux, "POST "+passkey.RegisterPath+"{id}/in", keyBodyMost, k.registered)
	if k.s.guard.tls { // on this machine a link logs in
		k.asked(mux, "POST /login/begin", keyBodyMost, k.beginLogin)
		k.asked(mux, "POST /login/finish", keyBodyMost, k.finishLogin)
	}
	k.asked(mux, "POST /r/{repo}/{run}/g/{gate}/challenge", bodyMost, k.signer(k.challenge))
	k.asked(mux, "POST /r/{repo}/{run}/g/{gate}/signed", bodyMost, k.signer(k.signed))
}

// signing sets whether a passkey signs the answer at a gate.
func (k *passkeys) signing(r *http.Request, at repo, p *gatePage) error {
	p.Remote = !k.full(r)
	if !p.Open || !p.Signed && !p.Remote {
		return nil
	}
	d, err := k.desk(at)
	if err != nil {
		return err
	}
	p.Passkey, err = d.Has(p.Gate.Approvers)
	return err
}

// signer serves a request about an answer at a gate. do gets the answer of the form once it has passed
// the checks of every answer.
func (k *passkeys) signer(do func(r *http.Request, at repo, p *gatePage, ask passkey.Ask,
	ev engine.Answered) (any, error)) func(http.ResponseWriter, *http.Request) (any, error) {
	return func(_ http.ResponseWriter, r *http.Request) (out any, err error) {
		if _, ok := k.s.login(r); !ok {
			return nil, fault.New("open the page again", "you are not logged in any more")
		}
		err = atGate(k.s, r, func(at repo, p *gatePage) error {
			if p.Drafts, err = merged(p.Drafts, r.PostForm); err != nil {
				return err
			}
			ev, why := k.s.answer(r, p, strings.TrimSpace(r.PostForm.Get("text")))
			if why != "" {
				return errors.New(why)
			}
			ask := passkey.Ask{Run: p.Run, Gate: p.Gate.ID, Round: p.Gate.Round, Decision: ev.Outcome,
				Reviewed: p.Form.Digest, Words: ev.Text, Answer: string(ev.Answer), Findings: string(ev.Findings),
				Approvers: p.Gate.Approvers}
			out, err = do(r, at, p, ask, ev)
			return err
		})
		return out, err
	}
}

// challenge returns the text for a passkey to sign and, before a pass, the second question.
func (k *passkeys) challenge(r *http.Request, at repo, p *gatePage, ask passkey.Ask, ev engine.Answered) (any, error) {
	d, err := k.desk(at)
	if err != nil {
		return nil, err
	}
	c, err := d.BeginDecision(ask)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"said": c.Text, "options": c.Options}
	if !engine.Refuses(ev.Outcome) {
		if err := k.s.changes(r, at, p); err != nil {
			return nil, err
		}
		q := sureOf(p, ev)
		out["question"], out["label"], out["words"] = q.Question, q.Label, ev.Text
		out["commit"], out["changes"] = q.Commit, q.Changes
		out["unsent"] = len(p.Drafts) // comments go with a fail
	}
	return out, nil
}

// signed hands in an answer that a passkey has signed.
func (k *passkeys) signed(r *http.Request, at repo, p *gatePage, ask passkey.Ask, ev engine.Answered) (any, error) {
	if !engine.Refuses(ev.Outcome) && r.PostForm.Get("sure") != "yes" {
		return nil, fault.New("decide again", "the second question was not asked")
	}
	d, err := k.desk(at)
	if err != nil {
		return nil, err
	}
	proven, err := d.FinishDecision(ask, r.PostForm.Get("said"), []byte(r.PostForm.Get("response")))
	if err != nil {
		return nil, err
	}
	why, err := hand(r.Context(), k.s.drafts, at, p, proven)
	if why != "" {
		return nil, errors.New(why)
	}
	return map[string]string{"to": p.RunURL}, err
}

// here reports whether a request comes from this machine, to the page's name on it. What a proxy hands
// on may come from anywhere.
func (k *passkeys) here(r *http.Request) bool {
	for _, mark := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(mark) != "" {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return !k.s.guard.tls && err == nil && from.Addr().Unmap().IsLoopback()
}

// full reports whether a browser may do all that a command of this user may.
func (k *passkeys) full(r *http.Request) bool {
	l, ok := k.s.login(r)
	return ok && l.Local && k.here(r)
}

// writer names whose drafts a browser sees: those of this machine, of a person, or its own.
func (k *passkeys) writer(r *http.Request) string {
	switch l, _ := k.s.login(r); {
	case k.full(r):
		return ""
	case l.Key != "":
		return l.Repo + "\x00" + l.Name
	default:
		return l.Hash
	}
}

// via names the page, and the passkey of the login, for the record.
func (k *passkeys) via(r *http.Request) string {
	if l, ok := k.s.login(r); ok && l.Name != "" {
		return via + ", with the passkey of " + l.Name
	}
	return via
}

// provePage asks for a passkey before a form counts, and repeats the fields of the form.
type provePage struct {
	URL, Repo string
	Minutes   int // how long it counts
	Fields    []field
}

type field struct{ Name, Value string }

// proved accepts a form from this machine, or from a device that used a passkey of the repo within
// provedFor. Others are asked for a passkey.
func (k *passkeys) proved(do func(*http.Request) (string, *view, error)) func(*http.Request) (string, *view, error) {
	return func(r *http.Request) (string, *view, error) {
		if k.full(r) {
			return do(r)
		}
		at, err := k.s.repos.named(r.Context(), r.PathValue("repo"))
		if err != nil {
			return "", nil, err
		}
		l, _ := k.s.login(r)
		if since := k.s.con.Now().Sub(l.Proved); l.Repo == at.ID && l.Key != "" && since >= 0 && since < provedFor {
			return do(r)
		}
		p := provePage{URL: r.URL.EscapedPath(), Repo: at.Name, Minutes: int(provedFor / time.Minute)}
		for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
			for _, v := range r.PostForm[name] {
				p.Fields = append(p.Fields, field{name, v})
			}
		}
		return "", &view{title: "Confirm that it is you", nav: "inbox", body: "prove", data: p}, nil
	}
}
