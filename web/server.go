package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/internal/console"
	"sluice/internal/settings"
	"sluice/web/colour"
)

// Options configure a page.
type Options struct {
	Console *console.Console // its environment and clock; nothing is printed
	Home    string           // the folder of all state folders
	Web     settings.Web     // where it is; without an address settings.DefaultListen
	Log     zerolog.Logger
}

//go:embed page/*.html static/*
var files embed.FS

// Server is the page of all repos of a daemon.
type Server struct {
	opt     Options
	con     *console.Console
	guard   guard // without an address it does not listen
	logins  *logins
	repos   *repos
	hub     *hub
	pages   *pages
	drafts  *drafts
	painter *colour.Painter

	passkeys *passkeys
	hooks    *hooks
	mac      []byte // seals forms and logins, for the life of the process

	mu   sync.Mutex
	srv  *http.Server
	done sync.WaitGroup
}

// New returns a page that does not listen yet.
func New(o Options) (*Server, error) {
	o.Web.Listen = cmp.Or(o.Web.Listen, settings.DefaultListen)
	con := quiet(o.Console)
	s := &Server{opt: o, con: con, repos: newRepos(con), mac: make([]byte, 32),
		drafts: &drafts{dir: filepath.Join(o.Home, draftsDir)}, painter: colour.New()}
	_, _ = rand.Read(s.mac) // never fails
	s.hub, s.passkeys, s.hooks = newHub(s.repos), newPasskeys(s), newHooks(s)
	s.logins = openLogins(o.Home, con.Now)
	var err error
	if s.pages, err = parsePages(con.Now); err != nil {
		return nil, err
	}
	if err := s.drafts.tidy(con.Now()); err != nil { // what is left there holds up nothing
		o.Log.Error().Err(err).Msg("old drafts are not removed")
	}
	return s, nil
}

// Limits of a request and of a connection.
const (
	headMost = 32 << 10
	bodyMost = 512 << 10
	headIn   = 10 * time.Second
	formIn   = 30 * time.Second // with the head
	pageIn   = time.Minute      // made and read; a stream has its own limit
	idleMost = 2 * time.Minute
)

// Start listens, once. It returns the page's address.
func (s *Server) Start(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard.base != "" {
		return s.guard.base, nil
	}
	all, at, err := s.listen(ctx)
	if err != nil {
		return "", err
	}
	s.guard = guardOf(at)
	s.srv = s.serving()
	for _, l := range all {
		s.done.Go(func() { serve(s, limit(l, s.opt.Web.Cert == "")) })
	}
	s.opt.Log.Info().Str("url", at).Msg("the page listens")
	return at, nil
}

func serve(s *Server, l net.Listener) {
	var err error
	if s.opt.Web.Cert != "" {
		err = s.srv.ServeTLS(l, s.opt.Web.Cert, s.opt.Web.Key)
	} else {
		err = s.srv.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		s.opt.Log.Error().Err(err).Msg("the page has stopped")
	}
}

// serving returns the server, with its limits.
func (s *Server) serving() *http.Server {
	return &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headIn, ReadTimeout: formIn, WriteTimeout: pageIn,
		IdleTimeout: idleMost, MaxHeaderBytes: headMost, ErrorLog: nil}
}

// Link returns the page's address with a code that logs a browser in, once, within CodeLife.
func (s *Server) Link(ctx context.Context) (string, error) {
	at, err := s.Start(ctx)
	if err != nil {
		return "", err
	}
	return at + "/in?code=" + s.logins.code(), nil
}

// Close ends all streams and stops listening.
func (s *Server) Close() error {
	s.mu.Lock()
	srv := s.srv
	s.mu.Unlock()
	s.hub.close()
	if srv == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // what is left hangs
	}
	s.done.Wait()
	return nil
}

// Handler returns all pages, behind the guard.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /in", s.enter)
	mux.HandleFunc("POST /out", s.leave)
	mux.HandleFunc("GET /static/{file}", s.static)
	s.page(mux, "GET /{$}", s.inbox)
	s.page(mux, "GET /start", s.startList)
	s.page(mux, "GET /start/{repo}/{workflow}", s.startForm)
	s.post(mux, "POST /start/{repo}/{workflow}", s.passkeys.proved(s.startRun))
	s.page(mux, "GET /history", s.history)
	s.page(mux, "GET /r/{repo}/{run}", s.run)
	s.post(mux, "POST /r/{repo}/{run}/{what}", s.passkeys.proved(s.steer))
	s.page(mux, "GET /r/{repo}/{run}/a/{attempt}", s.attempt)
	s.page(mux, "GET /r/{repo}/{run}/g/{gate}", s.gate)
	s.post(mux, "POST /r/{repo}/{run}/g/{gate}", s.decide)
	s.post(mux, "POST /r/{repo}/{run}/g/{gate}/draft", s.draft)
	s.passkeys.pages(mux)
	return s.guard.wrap(mux, s.hooks)
}
