package doctor

import (
	"context"
	"crypto/tls"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"sluice/internal/settings"
	"sluice/internal/text"
)

// Times of the checks of the page.
const (
	resolveIn = time.Second
	certSoon  = 14 * 24 * time.Hour // a certificate that ends within it is renewed now
)

// Page checks the address of the page: its certificate, if other devices reach it at a name, else
// whether local, its name on this machine, is this machine. resolve asks the machine's resolver.
func Page(ctx context.Context, w settings.Web, local string, now time.Time,
	resolve func(ctx context.Context, host string) ([]string, error)) Check {
	if w.Name != "" {
		return certificate(w, now)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveIn)
	defer cancel()
	found, err := resolve(ctx, local)
	for _, f := range found {
		if a, err := netip.ParseAddr(f); err != nil || !a.IsLoopback() {
			return Broken("page", "add `127.0.0.1 "+local+"` to /etc/hosts: a browser that asks the resolver would send "+
				"your login there", "%s is %s here, and not this machine", local, text.Line(f))
		}
	}
	switch {
	case err == nil && len(found) > 0:
		return Fine("page", "%s is this machine (%s)", local, text.Line(strings.Join(found, ", ")))
	case runtime.GOOS == "darwin":
		return Warned("page", "for Safari add `127.0.0.1 "+local+"` to /etc/hosts",
			"%s does not resolve on this machine; Chrome, Edge and Firefox open it anyway", local)
	}
	return Fine("page", "%s does not resolve on this machine; browsers open it anyway", local)
}

// certificate checks that of the page's name.
func certificate(w settings.Web, now time.Time) Check {
	renew := "renew it (`tailscale cert " + w.Name + "`, or your CA), and restart the daemon"
	pair, err := tls.LoadX509KeyPair(w.Cert, w.Key)
	if err != nil {
		return Broken("page", "set web.cert and web.key to a certificate in PEM and its key, readable by you",
			"its certificate cannot be used: %s", text.Line(err.Error()))
	}
	leaf := pair.Leaf
	if err := leaf.VerifyHostname(w.Name); err != nil {
		return Broken("page", "set web.cert to a certificate of "+w.Name+", or web.name to one of its names",
			"its certificate is for another name: %s", text.Line(err.Error()))
	}
	end := leaf.NotAfter.Local().Format("2006-01-02 15:04")
	switch {
	case now.Before(leaf.NotBefore):
		return Broken("page", "set the clock, or get another certificate", "its certificate does not count before %s",
			leaf.NotBefore.Local().Format("2006-01-02 15:04"))
	case !now.Before(leaf.NotAfter):
		return Broken("page", renew, "its certificate has expired (%s)", end)
	case leaf.NotAfter.Sub(now) < certSoon:
		return Warned("page", renew, "its certificate expires at %s", end)
	}
	return Fine("page", "https://%s, with a certificate until %s", w.Name, end)
}
