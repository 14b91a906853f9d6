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
)

// TestListIsReadAlone: a repo that is added to the daemon's list is served, and no other repo's settings are read for it;
// with 1,000 repos that took a second and a half. Reload reads all.
func TestListIsReadAlone(t *testing.T) {
	home := t.TempDir()
	var mu sync.Mutex
	read := map[string]int{}
	s := NewServer(ServerOptions{Home: home, ReposFile: filepath.Join(home, "repos.json"),
		StateOf: func(_ context.Context, root string) (string, error) { return filepath.Join(root, "state"), nil },
		Open: func(_ context.Context, root, _ string) (RepoOptions, func(), error) {
			return RepoOptions{World: newStage(), Compile: twoGates, Config: func() engine.Config {
				mu.Lock()
				defer mu.Unlock()
				read[root]++
				return engine.DefaultConfig()
			}}, nil, nil
		}})
	var roots []string
	list := func() {
		t.Helper()
		root := t.TempDir()
		for _, dir := range []string{"state", ".workflow"} {
			if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		roots = append(roots, root)
		raw, err := json.Marshal(roots)
		if err == nil {
			err = os.WriteFile(s.opt.ReposFile, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// a repo reads its settings as it starts, after it says that it is served
	expect := func(times int) {
		t.Helper()
		for ctx.Err() == nil {
			mu.Lock()
			got := maps.Clone(read)
			mu.Unlock()
			if len(got) == len(roots) {
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
	for range 3 {
		list()
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-ready
	expect(1)
	list()
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
	home := t.TempDir()
	var roots []string
	for range repos {
		root := t.TempDir()
		for _, dir := range []string{"state", ".workflow"} {
			if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		roots = append(roots, root)
	}
	list := filepath.Join(home, "repos.json")
	raw, err := json.Marshal(roots)
	if err == nil {
		err = os.WriteFile(list, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(ServerOptions{Home: home, ReposFile: list,
		StateOf: func(_ context.Context, root string) (string, error) { return filepath.Join(root, "state"), nil },
		Open: func(context.Context, string, string) (RepoOptions, func(), error) {
			return RepoOptions{World: newStage(), Compile: twoGates, Config: engine.DefaultConfig}, nil, nil
		}})
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	<-ready
	most := before + each*repos + 3 // of the daemon, and of its own socket
	for until := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > most && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > most {
		t.Errorf("%d goroutines for %d repos, at most %d", n-before, repos, most-before)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestStartsTakeTurns: few repos start at once, and those whose disk does not answer do not keep others from starting.
func TestStartsTakeTurns(t *testing.T) {
	home := t.TempDir()
	var mu sync.Mutex
	var roots []string
	opening, most := 0, 0
	hang := make(chan struct{})
	s := NewServer(ServerOptions{Home: home, ReposFile: filepath.Join(home, "repos.json"),
		StateOf: func(_ context.Context, root string) (string, error) { return filepath.Join(root, "state"), nil },
		Open: func(_ context.Context, root, _ string) (RepoOptions, func(), error) {
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
			return RepoOptions{World: newStage(), Compile: twoGates, Config: engine.DefaultConfig}, nil, nil
		}})
	add := func(name string, n int) {
		for range n {
			root := filepath.Join(t.TempDir(), name)
			for _, dir := range []string{"state", ".workflow"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			roots = append(roots, root)
		}
		raw, err := json.Marshal(roots)
		if err == nil {
			err = os.WriteFile(s.opt.ReposFile, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	served := func() (n int) {
		for _, state := range s.States() {
			if state.Served {
				n++
			}
		}
		return n
	}
	add("fine", 3*startsMost)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-ready
	if n := served(); n != 3*startsMost || most > startsMost {
		t.Errorf("%d are served, and %d started at once", n, most)
	}
	add("hangs", startsMost)
	defer close(hang)
	if err := s.Relist(); err != nil {
		t.Fatal(err)
	}
	for hanging := 0; hanging != startsMost && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		mu.Lock()
		hanging = opening
		mu.Unlock()
	}
	add("fine", 1)
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
