package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"

	"sluice/internal/fault"
	"sluice/internal/settings"
)

// listen opens the address and returns the page's base URL.
func (s *Server) listen(ctx context.Context) ([]net.Listener, string, error) {
	host, port, err := net.SplitHostPort(s.opt.Web.Listen)
	if err != nil {
		return nil, "", fault.New("write host:port, as in "+settings.DefaultListen, "web.listen: %w", err)
	}
	local := loopback(host)
	switch {
	case !local && s.opt.Web.Name == "":
		return nil, "", fault.New("set web.name to the domain name that other devices use, or listen on "+
			settings.DefaultListen,
			"web.listen: %s is reached from other machines, and no name is set", s.opt.Web.Listen)
	case s.opt.Web.Name != "" && (s.opt.Web.Cert == "" || s.opt.Web.Key == ""):
		return nil, "", fault.New("set web.cert and web.key to a certificate for the name that your devices trust "+
			"(`tailscale cert`, a CA of your own)", "web.name: %s needs TLS, and no certificate is set", s.opt.Web.Name)
	case s.opt.Web.Name == "" && s.opt.Web.Label == "":
		return nil, "", fault.New("start the daemon again; its log says what is wrong",
			"the page has no name on this machine")
	}
	if s.opt.Web.Cert != "" {
		if _, err := tls.LoadX509KeyPair(s.opt.Web.Cert, s.opt.Web.Key); err != nil {
			return nil, "", fault.New("set web.cert and web.key to a certificate and its private key, in PEM",
				"the certificate of %s cannot be used: %w", s.opt.Web.Name, err)
		}
	}
	all := make([]net.Listener, 1, 2)
	if s.opt.Web.Name == "" {
		all, err = listenHere(ctx, port)
	} else {
		all[0], err = new(net.ListenConfig).Listen(ctx, "tcp", s.opt.Web.Listen)
	}
	if err != nil {
		return nil, "", fault.New("end what listens there (`ss -ltnp`), or set web.listen to another port",
			"the page cannot listen on %s: %w", s.opt.Web.Listen, err)
	}
	_, port, err = net.SplitHostPort(all[0].Addr().String())
	return all, s.opt.Web.At(port), err
}

// listenHere listens at both addresses that a browser takes a name below localhost for, and tries ::1
// first: whoever else listened there would receive the login.
func listenHere(ctx context.Context, port string) ([]net.Listener, error) {
	const free = 10 // free ports that are tried
	var lc net.ListenConfig
	for n := 1; ; n++ {
		four, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			return nil, err
		}
		_, at, _ := net.SplitHostPort(four.Addr().String())
		six, err := lc.Listen(ctx, "tcp6", net.JoinHostPort("::1", at))
		switch {
		case err == nil:
			return []net.Listener{four, six}, nil
		case without6(err):
			return []net.Listener{four}, nil
		}
		if err = errors.Join(err, four.Close()); strings.Trim(port, "0") != "" || n == free {
			return nil, err
		}
	}
}

// without6 reports whether the machine has no ::1, so that nobody else can listen there.
func without6(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) ||
		errors.Is(err, syscall.EPROTONOSUPPORT)
}
