package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/journal"
)

// SocketName is the API's socket in a repo's state folder, and in the daemon's.
const SocketName = "sock"

// reopenEvery is the longest pause between attempts to serve a repo.
const reopenEvery = 5 * time.Second

// startsMost is how many repos start at once: each needs memory, and a thread while it waits for the disk. One that
// takes longer than startMost, because its disk does not answer, no longer counts.
const (
	startsMost = 16
	startMost  = time.Second
)

func digestOf(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}

// OpenFunc returns what a repo's loop needs. It is called with the state folder locked; close is
// called when the loop has ended.
type OpenFunc func(ctx context.Context, root, state string) (opt RepoOptions, close func(), err error)

// Serve serves one repo until ctx ends: it takes the lock, reads the journal, listens on the socket
// and runs the loop. It calls ready when the repo is served. It returns *Held and *journal.Damage
// unchanged.
func Serve(ctx context.Context, root, state string, open OpenFunc, ready func(*Repo, journal.Recovery)) error {
	lock, err := TakeLock(state)
	if err != nil {
		return err
	}
	defer lock.Release()
	own, err := lockRepo(filepath.Join(root, ".workflow"))
	if err != nil {
		return err
	}
	defer own.Release()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	opt, done, err := open(ctx, root, state)
	if err != nil {
		return err
	}
	if done != nil {
		defer done()
	}
	opt.Root, opt.State = root, state
	if opt.Lead != nil {
		defer opt.Lead.Close()
		led, stop, err := standBy(ctx, &opt, end)
		if err != nil {
			return err
		}
		defer stop()
		ctx = led
	}
	repo, rec, err := OpenRepo(opt)
	if err != nil {
		return err
	}
	l, err := listen(filepath.Join(state, SocketName), opt.Look)
	if err != nil {
		return errors.Join(err, repo.core.log.Close())
	}
	stop := serve(l, api{repo}, end)
	if ready != nil {
		ready(repo, rec)
	}
	deaf := hear(repo)
	err = repo.Run(ctx)
	deaf()
	stop()
	switch why := context.Cause(ctx); {
	case errors.Is(why, errDeposed):
		return fmt.Errorf("%w (%s)", errDeposed, opt.Lead.Report().Leader)
	case errors.Is(why, errUnreachable):
		return why
	}
	return err
}

// serve answers on a socket until stop, which removes it. It calls lost if the socket is removed by others.
func serve(l *socket, h http.Handler, lost func(error)) (stop func()) {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0)} // without descriptors it accepts later: no word for a person's screen
	var answering sync.WaitGroup
	answering.Go(func() {
		if err := srv.Serve(l); errors.Is(err, errUnreachable) { // else it ends with stop
			lost(err)
		}
	})
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		answering.Wait()
		if !l.gone() {
			_ = os.Remove(l.path)
		}
	}
}

// Server is the daemon: it serves many repos, each with its own lock, loop and socket.
type Server struct {
	opt ServerOptions
	mu  sync.Mutex
	// listing is held from the reading of the list until the repos are those of it.
	listing sync.Mutex
	repos   map[string]*hosted
	starts  chan struct{}   // has one of each repo that starts
	ctx     context.Context // nil: it does not run yet
	wg      sync.WaitGroup
	closed  bool
	only    bool                    // the list has one repo
	exit    context.CancelCauseFunc // ends the whole daemon
	began   time.Time
}

// ServerOptions configures a daemon.
type ServerOptions struct {
	Home    string // the state folder of all repos, 0700
	Version string
	Log     zerolog.Logger
	Open    OpenFunc
	// StateOf returns the state folder of the repo at root; an error if there is no repo.
	StateOf   func(ctx context.Context, root string) (string, error)
	ReposFile string // the list of repos, JSON
	// Web returns the page's address, with a code that logs a browser in once; nil: there is no page.
	Web func(context.Context) (string, error)
	// Look is the time between two looks whether the daemon's socket is still there; 0: a minute.
	Look time.Duration
}

// NewServer returns a daemon that serves nothing yet.
func NewServer(opt ServerOptions) *Server {
	return &Server{opt: opt, repos: map[string]*hosted{}, starts: make(chan struct{}, startsMost), began: time.Now()}
}

// Run serves the listed repos until ctx ends. It calls ready when each was tried once.
func (s *Server) Run(ctx context.Context, ready func()) error {
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	l, err := listen(filepath.Join(s.opt.Home, "daemon."+SocketName), s.opt.Look)
	if err != nil {
		return err
	}
	ctx, exit := context.WithCancelCause(ctx)
	defer exit(nil)
	s.mu.Lock()
	s.ctx, s.exit = ctx, exit
	s.mu.Unlock()
	if _, err := s.relist(); err != nil {
		l.Close()
		return err
	}
	stop := serve(l, s.handler(), exit)
	s.settle(ctx)
	if ready != nil && ctx.Err() == nil {
		ready()
	}
	<-ctx.Done()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wg.Wait()
	stop()
	if err := context.Cause(ctx); ends(err) || damaged(err) || errors.Is(err, errUnreachable) {
		return err
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	handle(mux, "GET /v1/ping", func(*http.Request) (any, error) {
		p := Ping{PID: os.Getpid(), Version: s.opt.Version, Started: s.began}
		for _, h := range s.States() {
			p.Repos = append(p.Repos, h.Root)
		}
		return p, nil
	})
	handle(mux, "GET /v1/repos", func(*http.Request) (any, error) { return s.healths(), nil })
	if s.opt.Web != nil {
		handle(mux, "POST /v1/web", func(req *http.Request) (any, error) {
			url, err := s.opt.Web(req.Context())
			return map[string]string{"url": url}, err
		})
	}
	handle(mux, "POST /v1/reload", func(*http.Request) (any, error) { return struct{}{}, s.Relist() })
	return mux
}
