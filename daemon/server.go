package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/internal/fault"
	"sluice/journal"
)

// SocketName is the API's socket in a repo's state folder, and in the daemon's.
const SocketName = "sock"

// reopenEvery is the longest pause between attempts to serve a repo.
const reopenEvery = 5 * time.Second

func pid() int { return os.Getpid() }
func uid() int { return os.Getuid() }

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
	opt, done, err := open(ctx, root, state)
	if err != nil {
		return err
	}
	if done != nil {
		defer done()
	}
	opt.Root, opt.State = root, state
	repo, rec, err := OpenRepo(opt)
	if err != nil {
		return err
	}
	l, err := listen(filepath.Join(state, SocketName))
	if err != nil {
		return errors.Join(err, repo.core.log.Close())
	}
	srv := serve(l, repo.handler())
	if ready != nil {
		ready(repo, rec)
	}
	err = repo.Run(ctx)
	stopServer(srv, filepath.Join(state, SocketName))
	return err
}

func serve(l net.Listener, h http.Handler) *served {
	s := &served{srv: &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = s.srv.Serve(l) // ends with stopServer
	}()
	return s
}

type served struct {
	srv  *http.Server
	done chan struct{}
}

func stopServer(s *served, socket string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.srv.Shutdown(ctx) != nil {
		s.srv.Close()
	}
	<-s.done
	_ = os.Remove(socket)
}

// Server is the daemon: it serves many repos, each with its own lock, loop and socket.
type Server struct {
	opt    ServerOptions
	mu     sync.Mutex
	repos  map[string]*hosted
	ctx    context.Context
	wg     sync.WaitGroup
	closed bool
	only   bool                    // the list has one repo
	exit   context.CancelCauseFunc // ends the whole daemon
	began  time.Time
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
}

type hosted struct {
	root   string
	repo   *Repo  // nil = not served now
	why    string // why not
	cancel context.CancelFunc
	done   chan struct{}
}

// RepoState is how a repo of the daemon is served.
type RepoState struct {
	Root   string   `json:"root"`
	Served bool     `json:"served"`
	Why    string   `json:"why,omitempty"`    // it is not served
	Health []string `json:"health,omitempty"` // what is wrong although it is served; from the API only
}

// NewServer returns a daemon that serves nothing yet.
func NewServer(opt ServerOptions) *Server {
	return &Server{opt: opt, repos: map[string]*hosted{}, began: time.Now()}
}

// Run serves the listed repos until ctx ends. It calls ready when each was tried once.
func (s *Server) Run(ctx context.Context, ready func()) error {
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	l, err := listen(filepath.Join(s.opt.Home, "daemon."+SocketName))
	if err != nil {
		return err
	}
	ctx, s.exit = context.WithCancelCause(ctx)
	defer s.exit(nil)
	s.ctx = ctx
	roots, err := s.load()
	if err != nil {
		l.Close()
		return err
	}
	srv := serve(l, s.handler())
	for _, root := range roots {
		s.host(root)
	}
	s.settle(ctx)
	if ready != nil && ctx.Err() == nil {
		ready()
	}
	<-ctx.Done()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wg.Wait()
	stopServer(srv, filepath.Join(s.opt.Home, "daemon."+SocketName))
	if err := context.Cause(ctx); ends(err) || damaged(err) {
		return err
	}
	return nil
}

// ends reports whether the error ends the whole process: only a new one can tell what is on the
// disk.
func ends(err error) bool { return errors.Is(err, journal.ErrSyncFailed) }

// damaged reports whether the error is a damaged journal, which a person must look at.
func damaged(err error) bool {
	var d *journal.Damage
	return errors.As(err, &d)
}

// lock makes this the only daemon of its home; a *Held if there is another.
func (s *Server) lock() (*Lock, error) {
	var held *Held
	for try := 0; ; try++ {
		lock, err := TakeLock(s.opt.Home)
		if !errors.As(err, &held) || try == answerTries {
			return lock, err
		}
		time.Sleep(answerPause)
	}
}

// A process killed while it starts another leaves it copies of its sockets and locks until the
// exec. Wait that long before reporting that someone else is there.
const (
	answerTries = 20
	answerPause = 50 * time.Millisecond
)

// settle waits until each repo is served or known not to be.
func (s *Server) settle(ctx context.Context) {
	for ctx.Err() == nil {
		waiting := false
		for _, h := range s.States() {
			waiting = waiting || !h.Served && h.Why == ""
		}
		if !waiting {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// host serves a repo, and retries while it cannot.
func (s *Server) host(root string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.repos[root] != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	h := &hosted{root: root, cancel: cancel, done: make(chan struct{})}
	s.repos[root] = h
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer close(h.done)
		defer cancel()
		pause := answerPause
		for ctx.Err() == nil {
			err := s.serveOnce(ctx, h)
			// a daemon with only a damaged repo has nothing to wait for
			if ends(err) || damaged(err) && s.single() {
				s.exit(err)
			}
			if ctx.Err() != nil {
				return
			}
			why := "it ended"
			if err != nil {
				why = err.Error()
			}
			if s.note(h, nil, why) {
				s.opt.Log.Error().Str("repo", h.root).Str("why", why).Msg("this repo is not served")
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, reopenEvery)
		}
	}()
}

func (s *Server) serveOnce(ctx context.Context, h *hosted) error {
	state, err := s.opt.StateOf(ctx, h.root)
	if err != nil {
		return err
	}
	return Serve(ctx, h.root, state, s.opt.Open, func(r *Repo, rec journal.Recovery) {
		s.note(h, r, "")
		s.opt.Log.Info().Str("repo", h.root).Int64("records", rec.Records).Int64("from_snapshot", rec.Snapshot).Msg("served")
		if rec.TornBytes > 0 {
			s.opt.Log.Warn().Str("repo", h.root).Int64("bytes", rec.TornBytes).Str("kept", rec.TornFile).Msg("the journal's last line was torn by a crash and was cut off; it was never acted on")
		}
	})
}

// note records a repo's status and reports whether its reason changed.
func (s *Server) note(h *hosted, repo *Repo, why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := h.why != why
	h.repo, h.why = repo, why
	return news
}

// States returns how each repo is served, sorted by root.
func (s *Server) States() []RepoState {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []RepoState{}
	for _, h := range s.repos {
		out = append(out, RepoState{Root: h.root, Served: h.repo != nil, Why: h.why})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Root < out[j].Root })
	return out
}

func (s *Server) healths() []RepoState {
	out := s.States()
	for i, state := range out {
		s.mu.Lock()
		var repo *Repo
		if h := s.repos[state.Root]; h != nil {
			repo = h.repo
		}
		s.mu.Unlock()
		if repo != nil {
			out[i].Health = repo.health()
		}
	}
	return out
}

// Reload reads the list of repos and every repo's settings again.
func (s *Server) Reload(ctx context.Context) error {
	roots, err := s.load()
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for _, root := range roots {
		want[root] = true
		s.host(root)
	}
	s.mu.Lock()
	var gone, here []*hosted
	for root, h := range s.repos {
		if want[root] {
			here = append(here, h)
			continue
		}
		gone = append(gone, h)
		delete(s.repos, root)
	}
	s.mu.Unlock()
	for _, h := range gone {
		h.cancel()
		<-h.done
	}
	for _, h := range here {
		s.mu.Lock()
		repo := h.repo
		s.mu.Unlock()
		if repo != nil {
			err = errors.Join(err, repo.Reload(ctx))
		}
	}
	return err
}

func (s *Server) load() ([]string, error) {
	roots, err := LoadRepos(s.opt.ReposFile)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.only = len(roots) == 1
	return roots, err
}

func (s *Server) single() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.only
}

// LoadRepos reads the list of the repos the daemon serves; without a list there are none.
func LoadRepos(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var roots []string
	if err == nil {
		err = json.Unmarshal(b, &roots)
	}
	if err != nil {
		return nil, fault.New("fix or remove it, then `sluice watch add` each repo again", "list of repos: %s: %w", file, err)
	}
	return roots, nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	handle(mux, "GET /v1/ping", func(*http.Request) (any, error) {
		p := Ping{PID: pid(), Version: s.opt.Version, Started: s.began}
		for _, h := range s.States() {
			p.Repos = append(p.Repos, h.Root)
		}
		return p, nil
	})
	handle(mux, "GET /v1/repos", func(*http.Request) (any, error) { return s.healths(), nil })
	handle(mux, "POST /v1/reload", func(req *http.Request) (any, error) { return struct{}{}, s.Reload(req.Context()) })
	return mux
}
