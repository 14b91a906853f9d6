package web

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"sluice/internal/settings"
)

// guard lets through only requests to the page's own name, and changes only from the page itself.
type guard struct {
	base, host string // http://LABEL.sluice.localhost:7467, and its host:port
	tls        bool   // other devices reach it, at web.name
}

func guardOf(base string) guard {
	u, err := url.Parse(base)
	if err != nil {
		panic("web: no address: " + base)
	}
	return guard{base: base, host: u.Host, tls: u.Scheme == "https"}
}

// policy allows nothing but the page's own files; one script may turn text into HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types sluice"

func (g guard) wrap(next, hooks http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	checked := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if g.tls {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		switch {
		case !strings.EqualFold(r.Host, g.host):
			g.elsewhere(w, r)
		case strings.HasPrefix(r.URL.Path, hookPath):
			hooks.ServeHTTP(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			http.Error(w, "this page accepts only GET and POST", http.StatusMethodNotAllowed)
		case r.Method == http.MethodPost && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "":
			http.Error(w, "a form counts only if the browser sends its origin: use a newer browser",
				http.StatusForbidden)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, bodyMost)
			checked.ServeHTTP(w, r)
		}
	})
}

// elsewhere answers a request to another name, such as a foreign one that resolves to this machine. The
// answer does not contain the page's own name: an agent that knew it could lure a person to a server of
// its own on another port of that name, and receive the login.
func (g guard) elsewhere(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "this address is not the page's: `sluice web` prints a link to it", http.StatusMisdirectedRequest)
}

// loopback reports whether a host is this machine alone.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), "."+settings.LocalName) {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
