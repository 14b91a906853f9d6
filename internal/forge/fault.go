package forge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice/internal/text"
)

// Kind is why a call failed.
type Kind string

// The kinds of fault.
const (
	NoGH      Kind = "no gh"         // gh is not installed
	NoLogin   Kind = "not logged in" // 401, or gh knows no account for the host
	Forbidden Kind = "forbidden"     // 403
	Missing   Kind = "missing"       // 404, 410; a redirection that gh does not follow, as of a renamed repo
	Busy      Kind = "rate limit"    // 429, or a 403 that is one: see Fault.Wait
	Away      Kind = "away"          // 5xx, or no connection
	Hangs     Kind = "hangs"         // no answer in time
	Refused   Kind = "refused"       // another 4xx: the forge has its reasons
	TooMuch   Kind = "too much"      // more than what is read
	Odd       Kind = "unreadable"    // an answer that is none
)

// Fault is why a forge did not do what it was asked.
type Fault struct {
	Kind   Kind
	Host   string
	What   string // the method and path
	Status int    // of HTTP; 0 = there was no answer
	Said   string // what the forge or gh said, cleaned
	Wait   time.Duration
}

func (f *Fault) Error() string {
	why := ""
	switch f.Kind {
	case NoGH:
		return "gh is not installed"
	case NoLogin:
		why = fmt.Sprintf("%s does not accept gh's login", f.Host)
	case Forbidden:
		why = fmt.Sprintf("%s forbids %s", f.Host, f.What)
	case Missing:
		why = fmt.Sprintf("%s knows no %s, or hides it from this account", f.Host, f.What)
		if f.Status < http.StatusBadRequest {
			why = fmt.Sprintf("%s has something else for %s now: the repo was renamed", f.Host, f.What)
		}
	case Busy:
		why = fmt.Sprintf("%s has had enough requests for now", f.Host)
	case Away:
		why = fmt.Sprintf("%s is away", f.Host)
	case Hangs:
		why = fmt.Sprintf("%s did not answer %s in time", f.Host, f.What)
	case Refused:
		why = fmt.Sprintf("%s refused %s", f.Host, f.What)
	case TooMuch:
		why = fmt.Sprintf("%s has more for %s than is read", f.Host, f.What)
	default:
		why = fmt.Sprintf("%s gave an unreadable answer to %s", f.Host, f.What)
	}
	if f.Status != 0 {
		why += fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	if f.Said != "" {
		why += ": " + f.Said
	}
	return why
}

// Advice says what a person can do; "" = wait.
func (f *Fault) Advice() string {
	switch f.Kind {
	case NoGH:
		return "install gh (https://cli.github.com) and log in: gh auth login"
	case NoLogin:
		return "log in: gh auth login --hostname " + f.Host
	case Forbidden:
		return "`gh auth status` shows who you are there; that account needs write access, or the token its scopes: " +
			"gh auth refresh --hostname " + f.Host
	case Missing:
		return "check the remote's address (git remote get-url origin), and with `gh auth status` who you are there"
	case Refused:
		return "look at what it says"
	case TooMuch:
		return "look there yourself"
	}
	return ""
}

// Passes reports whether the fault may be gone later without anybody's doing.
func (f *Fault) Passes() bool {
	return f.Kind == Busy || f.Kind == Away || f.Kind == Hangs || f.Kind == Odd
}

// FaultOf returns the Fault in an error, or nil.
func FaultOf(err error) *Fault {
	f, _ := errors.AsType[*Fault](err)
	return f
}

// Says returns an error's words, with what a person can do about it.
func Says(err error) string {
	if f := FaultOf(err); f != nil && f.Advice() != "" {
		return err.Error() + ": " + f.Advice()
	}
	return err.Error()
}

// Is reports whether the error is a fault of the kind.
func Is(err error, kind Kind) bool {
	f := FaultOf(err)
	return f != nil && f.Kind == kind
}

// Bounds of the wait after a rate limit, and the wait if the forge names none.
const (
	waitLeast = time.Second
	waitMost  = time.Hour
	waitElse  = time.Minute
)

// faultOf classifies an answer that is no success.
func faultOf(host, what string, a answer, now time.Time) *Fault {
	f := &Fault{Kind: Refused, Host: host, What: what, Status: a.status, Said: saidIn(a.body)}
	limited := a.header.Get("Retry-After") != "" || a.header.Get("X-Ratelimit-Remaining") == "0" ||
		strings.Contains(strings.ToLower(f.Said), "rate limit")
	switch {
	case a.status == http.StatusTooManyRequests, a.status == http.StatusForbidden && limited:
		f.Kind, f.Wait = Busy, waitOf(a, now)
	case a.status == http.StatusUnauthorized:
		f.Kind = NoLogin
	case a.status == http.StatusForbidden:
		f.Kind = Forbidden
	case a.status == http.StatusNotFound, a.status == http.StatusGone, a.header.Get("Location") != "" && a.status < 400:
		f.Kind = Missing
	case a.status >= 500:
		f.Kind = Away
	case a.status < 400:
		f.Kind = Odd
	}
	return f
}

// waitOf returns how long the forge wants to be left alone.
func waitOf(a answer, now time.Time) time.Duration {
	wait := waitElse
	after := a.header.Get("Retry-After")
	if n, err := strconv.Atoi(after); err == nil {
		wait = time.Duration(min(n, int(waitMost/time.Second))) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		wait = at.Sub(now)
	} else if n, err := strconv.ParseInt(a.header.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
		wait = time.Unix(n, 0).Sub(now)
	}
	return min(max(wait, waitLeast), waitMost)
}

// maxSaid limits what is repeated of a forge's words.
const maxSaid = 500

func saidIn(body []byte) string {
	var m struct {
		Message string          `json:"message"`
		Errors  json.RawMessage `json:"errors"` // a text, or a list of texts or objects
	}
	if decode(body, &m) != nil {
		return ""
	}
	var all []json.RawMessage
	if json.Unmarshal(m.Errors, &all) != nil {
		all = []json.RawMessage{m.Errors}
	}
	why := []string{}
	for _, one := range all {
		var e struct{ Message, Field, Code string }
		said := ""
		if json.Unmarshal(one, &said) != nil && json.Unmarshal(one, &e) == nil {
			said = cmp.Or(e.Message, strings.TrimSpace(e.Field+" "+e.Code))
		}
		if said != "" {
			why = append(why, said)
		}
	}
	if len(why) > 0 {
		m.Message += ": " + strings.Join(why, "; ")
	}
	return text.Clean(m.Message, maxSaid)
}
