package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// TestHoldEndsARunAndLaunchesNothing: two runs were launched, and the service is gone; with Hold
// neither is adopted or launched again, the one is aborted and ended, and the next service goes on
// with the other.
func TestHoldEndsARunAndLaunchesNothing(t *testing.T) {
	root, ctx := t.TempDir(), context.Background()
	world := &patient{stage: newStage(), alive: map[string]bool{}, end: make(chan struct{})}
	s := serveTest(t, root, world)
	if _, err := s.client.Do(ctx, engine.RunRequested{Source: "two"}, ""); err != nil {
		t.Fatal(err)
	}
	world.waits(t)
	if _, err := s.client.Do(ctx, engine.RunRequested{Source: "two", Parallel: true}, ""); err != nil {
		t.Fatal(err)
	}
	s.stop()
	before, joined := world.list(&world.started), world.joins()

	var repo *Repo
	ready := make(chan struct{})
	inner, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- Serve(inner, root, s.state, func(context.Context, string, string) (RepoOptions, func(), error) {
			return RepoOptions{World: world, Compile: twoGates, Config: engine.DefaultConfig, Hold: true}, nil, nil
		}, func(r *Repo, _ journal.Recovery) { repo = r; close(ready) })
	}()
	<-ready
	client := NewClient(s.state)
	defer client.Close()
	for range 10 { // turns in which something could begin
		if _, err := client.Status(ctx, ""); err != nil {
			t.Fatal(err)
		}
	}
	if quiet, err := repo.Quiet(ctx, "two-1"); err != nil || quiet {
		t.Errorf("a live run is quiet: %v %v", quiet, err)
	}
	if d, err := client.Do(ctx, engine.AbortRequested{Run: "two-1"}, ""); err != nil || d.Ignored != "" {
		t.Fatalf("abort: %+v %v", d, err)
	}
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		quiet, err := repo.Quiet(ctx, "two-1")
		if err != nil || time.Now().After(until) {
			t.Fatalf("not all of it has ended: %v", err)
		}
		if quiet {
			break
		}
	}
	if got := world.list(&world.stopped); got != "two-1/A#1.1" {
		t.Errorf("ended: %q", got)
	}
	if r, err := client.Run(ctx, "two-2"); err != nil || r.Steps[0].State != engine.Ready {
		t.Errorf("the other run, whose worktree is free now: %+v %v", r.Steps, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := world.joins(); n != joined {
		t.Errorf("%d launches were taken up", n-joined)
	}
	if got := world.list(&world.started); got != before {
		t.Errorf("launched meanwhile: %s, before: %s", got, before)
	}
	s = serveTest(t, root, world)
	close(world.end)
	s.until("two-2", "the other run goes on", func(r RunStatus) bool { return len(r.Waits) == 1 && r.Waits[0].Kind == "human" })
}

// TestClientIsToldThatTheServiceHasStopped: a request that comes while the service ends is told so
// as what it is.
func TestClientIsToldThatTheServiceHasStopped(t *testing.T) {
	root := t.TempDir()
	var repo *Repo
	state, ready := filepath.Join(root, "state"), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, root, state, func(context.Context, string, string) (RepoOptions, func(), error) {
			return RepoOptions{World: newStage(), Compile: twoGates, Config: engine.DefaultConfig}, nil, nil
		}, func(r *Repo, _ journal.Recovery) { repo = r; close(ready) })
	}()
	<-ready
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l, err := listen(filepath.Join(state, SocketName), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer serve(l, api{repo}, nil)()
	c := NewClient(state)
	defer c.Close()
	if _, err := c.Do(context.Background(), engine.AbortRequested{Run: "two-1"}, ""); !errors.Is(err, ErrStopped) {
		t.Errorf("%v, want ErrStopped", err)
	}
}
