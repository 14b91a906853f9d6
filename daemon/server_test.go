package daemon

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"sluice/engine"
)

// TestListIsReadAlone: a repo that is added to the daemon's list is served, and no other repo's settings are read for it;
// with 1,000 repos that took a second and a half. Reload reads all.
func TestListIsReadAlone(t *testing.T) {
	home := t.TempDir()
	var read atomic.Int64
	s := NewServer(ServerOptions{Home: home, ReposFile: filepath.Join(home, "repos.json"),
		StateOf: func(_ context.Context, root string) (string, error) { return filepath.Join(root, "state"), nil },
		Open: func(context.Context, string, string) (RepoOptions, func(), error) {
			return RepoOptions{World: newStage(), Compile: twoGates, Config: func() engine.Config {
				read.Add(1)
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
	for range 3 {
		list()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-ready
	before := read.Load()
	list()
	if err := s.Relist(); err != nil {
		t.Fatal(err)
	}
	s.settle(ctx)
	if n := read.Load() - before; len(s.States()) != 4 || n > before/3 {
		t.Errorf("%d repos are served, and settings were read %d times, at most %d for a new one", len(s.States()), n, before/3)
	}
	before = read.Load()
	if err := s.Reload(ctx); err != nil || read.Load()-before != 4 {
		t.Errorf("Reload reads %d settings, want 4 (%v)", read.Load()-before, err)
	}
}
