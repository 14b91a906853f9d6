package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
)

// listed is a daemon whose list of repos grows.
type listed struct {
	*Server
	t     *testing.T
	roots []string
}

func newListed(t *testing.T, open func(root string) RepoOptions) *listed {
	home := t.TempDir()
	return &listed{t: t, Server: NewServer(ServerOptions{Home: home, ReposFile: filepath.Join(home, "repos.json"),
		StateOf: func(_ context.Context, root string) (string, error) { return filepath.Join(root, "state"), nil },
		Open: func(_ context.Context, root, _ string) (RepoOptions, func(), error) {
			opt := open(root)
			opt.World, opt.Compile = newStage(), twoGates
			return opt, nil, nil
		}})}
}

// add puts n new repos on the list, in folders of this name.
func (s *listed) add(name string, n int) {
	s.t.Helper()
	for range n {
		root := filepath.Join(s.t.TempDir(), name)
		for _, dir := range []string{"state", ".workflow"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
				s.t.Fatal(err)
			}
		}
		s.roots = append(s.roots, root)
	}
	raw, err := json.Marshal(s.roots)
	if err == nil {
		err = atomicfile.Write(s.opt.ReposFile, raw, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// serves runs the daemon until the test ends, and returns when each repo was tried once.
func (s *listed) serves() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	<-ready
	return ctx
}

// TestListIsReadAlone: a repo that is added to the daemon's list is served, and no other repo's settings are read for it;
// with 1,000 repos that took a second and a half. Reload reads all.
func TestListIsReadAlone(t *testing.T) {
	var mu sync.Mutex
	read := map[string]int{}
	note := func(root string, n int) {
		mu.Lock()
		defer mu.Unlock()
		read[root] += n
	}
	s := newListed(t, func(root string) RepoOptions {
		began := sync.OnceFunc(func() { note(root, 1) }) // after it says that it is served
		return RepoOptions{Config: func() engine.Config { began(); return engine.DefaultConfig() },
			Reread: func() { note(root, 1) }}
	})
	s.add("repo", 3)
	ctx := s.serves()
	expect := func(times int) {
		t.Helper()
		for ctx.Err() == nil {
			mu.Lock()
			got := maps.Clone(read)
			mu.Unlock()
			if len(got) == len(s.roots) {
				for root, n := range got {
					if n != times {
						t.Errorf("the settings of %s were read %d times, want %d", root, n, times)
					}
				}
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("not every repo is served")
	}
	expect(1)
	s.add("repo", 1)
	if err := s.Relist(); err != nil {
		t.Fatal(err)
	}
	expect(1)
	if err := s.Reload(ctx); err != nil {
		t.Error(err)
	}
	expect(2)
}

// TestGoroutinesOfIdleRepos: a repo in which nothing happens has its loop, and one that waits at its socket.
func TestGoroutinesOfIdleRepos(t *testing.T) {
	const repos, each = 20, 2
	s := newListed(t, func(string) RepoOptions { return RepoOptions{Config: engine.DefaultConfig} })
	s.add("repo", repos)
	before := runtime.NumGoroutine()
	s.serves()
	most := before + each*repos + 3 // of the daemon, and of its own socket
	for until := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > most && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > most {
		t.Errorf("%d goroutines for %d repos, at most %d", n-before, repos, most-before)
	}
}

// TestStartsTakeTurns: few repos start at once, and those whose disk does not answer do not keep others from starting.
func TestStartsTakeTurns(t *testing.T) {
	var mu sync.Mutex
	opening, most := 0, 0
	hang := make(chan struct{})
	s := newListed(t, func(root string) RepoOptions {
		mu.Lock()
		opening++
		most = max(most, opening)
		mu.Unlock()
		if filepath.Base(root) == "hangs" {
			<-hang
		} else {
			time.Sleep(time.Millisecond)
		}
		mu.Lock()
		opening--
		mu.Unlock()
		return RepoOptions{Config: engine.DefaultConfig}
	})
	served := func() (n int) {
		for _, state := range s.States() {
			if state.Served {
				n++
			}
		}
		return n
	}
	s.add("fine", 3*startsMost)
	ctx := s.serves()
	if n := served(); n != 3*startsMost || most > startsMost {
		t.Errorf("%d are served, and %d started at once", n, most)
	}
	s.add("hangs", startsMost)
	defer close(hang)
	if err := s.Relist(); err != nil {
		t.Fatal(err)
	}
	for hanging := 0; hanging != startsMost && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		mu.Lock()
		hanging = opening
		mu.Unlock()
	}
	s.add("fine", 1)
	if err := s.Relist(); err != nil {
		t.Fatal(err)
	}
	for served() != 3*startsMost+1 {
		if ctx.Err() != nil {
			t.Fatal("the others keep it from starting")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestReloadBeforeRun: a SIGHUP can come while the daemon waits for its lock.
func TestReloadBeforeRun(t *testing.T) {
	s := newListed(t, func(string) RepoOptions { return RepoOptions{Config: engine.DefaultConfig} })
	s.add("repo", 1)
	if err := s.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(s.States()); n != 0 {
		t.Errorf("%d repos are hosted by a daemon that has no lock", n)
	}
	s.serves()
	if all := s.States(); len(all) != 1 || !all[0].Served {
		t.Errorf("%+v", all)
	}
}

// TestTwoRelist: of two readings of the list at once, the older one takes no repo off that the newer one has found.
func TestTwoRelist(t *testing.T) {
	s := newListed(t, func(string) RepoOptions { return RepoOptions{Config: engine.DefaultConfig} })
	s.add("repo", 3)
	s.serves()
	s.add("new", 1)
	with := s.roots
	list := func(roots []string) {
		t.Helper()
		raw, err := json.Marshal(roots)
		if err == nil {
			err = atomicfile.Write(s.opt.ReposFile, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for try := range 2000 {
		list(with[:3])
		if err := s.Relist(); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _ = s.Relist() })
		}
		list(with)
		if err := s.Relist(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if n := len(s.States()); n != len(with) {
			t.Fatalf("try %d: %d repos are hosted, %d are on the list", try, n, len(with))
		}
	}
}
