package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/journal"
)

type hosted struct {
	root   string
	repo   *Repo  // nil = not served now
	why    string // why not
	cancel context.CancelFunc
	tried  chan struct{} // closed when it is served, or why not is known, for the first time
	done   chan struct{}
}

// RepoState is how a repo of the daemon is served.
type RepoState struct {
	Root   string   `json:"root"`
	Served bool     `json:"served"`
	Why    string   `json:"why,omitempty"`    // it is not served
	Health []string `json:"health,omitempty"` // what is wrong although it is served; from the API only
}

// ends reports whether the error ends the whole process: only a new one can tell what is on the
// disk.
func ends(err error) bool { return errors.Is(err, journal.ErrSyncFailed) }

// damaged reports whether the error is a damaged journal, or a stream that does not fit it. A person
// must look at it.
func damaged(err error) bool {
	var d *journal.Damage
	var f *fault.Error
	return errors.As(err, &d) || errors.As(err, &f) && f.Code == fault.ExitDamaged
}

// lock makes this the only daemon of its home; a *Held if there is another.
func (s *Server) lock() (*Lock, error) {
	var held *Held
	for try := 0; ; try++ {
		lock, err := TakeLock(s.opt.Home)
		if !errors.As(err, &held) {
			return lock, err
		}
		if held.all = true; try == answerTries {
			return nil, held
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
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.repos))
	s.mu.Unlock()
	for _, h := range all {
		select {
		case <-ctx.Done():
		case <-h.tried:
		case <-h.done:
		}
	}
}

// host serves a repo, and retries while it cannot.
func (s *Server) host(root string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.closed || s.repos[root] != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	h := &hosted{root: root, cancel: cancel, tried: make(chan struct{}), done: make(chan struct{})}
	s.repos[root] = h
	s.wg.Go(func() {
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
			if held := (*Held)(nil); errors.As(err, &held) && held.PID > 0 && !held.Repo {
				why = fmt.Sprintf("served by another process, pid %d; the daemon takes over when that ends", held.PID)
			}
			if s.note(h, nil, why) {
				s.opt.Log.Error().Str("repo", h.root).Str("why", why).Msg("this repo is not served")
			}
			health.Wait(ctx, pause)
			pause = min(2*pause, reopenEvery)
		}
	})
}

func (s *Server) serveOnce(ctx context.Context, h *hosted) error {
	select {
	case s.starts <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	started := sync.OnceFunc(func() { <-s.starts })
	defer started()
	defer time.AfterFunc(startMost, started).Stop()
	state, err := s.opt.StateOf(ctx, h.root)
	if err != nil {
		return err
	}
	open := func(ctx context.Context, root, state string) (RepoOptions, func(), error) {
		opt, done, err := s.opt.Open(ctx, root, state)
		if err == nil && opt.Lead != nil {
			s.note(h, nil, "it stands by")
			started()
		}
		return opt, done, err
	}
	return Serve(ctx, h.root, state, open, func(r *Repo, rec journal.Recovery) {
		s.note(h, r, "")
		started()
		s.opt.Log.Info().Str("repo", h.root).Int64("records", rec.Records).Int64("from_snapshot", rec.Snapshot).Msg("served")
		if rec.TornBytes > 0 {
			s.opt.Log.Warn().Str("repo", h.root).Int64("bytes", rec.TornBytes).Str("kept",
				rec.TornFile).Msg("the journal's last line was torn by a crash and was cut off; it was never acted on")
		}
	})
}

// note records a repo's status and reports whether its reason changed.
func (s *Server) note(h *hosted, repo *Repo, why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := h.why != why
	if h.repo == nil && h.why == "" && (repo != nil || why != "") {
		close(h.tried)
	}
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
	slices.SortFunc(out, func(a, b RepoState) int { return cmp.Compare(a.Root, b.Root) })
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

// Relist reads the list of repos again: new ones are served, and those that left it no longer.
func (s *Server) Relist() error {
	gone, err := s.relist()
	for _, h := range gone {
		h.cancel()
		<-h.done
	}
	return err
}

// relist returns the repos that left the list.
func (s *Server) relist() (gone []*hosted, err error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	roots, err := s.load()
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, root := range roots {
		want[root] = true
		s.host(root)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for root, h := range s.repos {
		if !want[root] {
			gone = append(gone, h)
			delete(s.repos, root)
		}
	}
	return gone, nil
}

// Reload reads the list of repos and every repo's settings again.
func (s *Server) Reload(ctx context.Context) error {
	if err := s.Relist(); err != nil {
		return err
	}
	s.mu.Lock()
	var here []*Repo
	for _, h := range s.repos {
		if h.repo != nil {
			here = append(here, h.repo)
		}
	}
	s.mu.Unlock()
	var err error
	for _, repo := range here {
		err = errors.Join(err, repo.Reload(ctx))
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
