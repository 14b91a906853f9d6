package daemon

import (
	"sync"
	"testing"
	"time"

	"sluice/engine"
)

// TestNewestSettings: settings count as they are when they are decided on. A change that was announced before a newer
// one was read does not put the older back.
func TestNewestSettings(t *testing.T) {
	var mu sync.Mutex
	cfg, changed := engine.DefaultConfig(), make(chan struct{}, 1)
	set := func(parallel int) {
		mu.Lock()
		defer mu.Unlock()
		cfg.MaxParallel = parallel
	}
	s := serveWith(t, t.TempDir(), newStage(), func(opt *RepoOptions) {
		opt.Changed, opt.Reread = changed, func() { set(8) }
		opt.Config = func() engine.Config {
			mu.Lock()
			defer mu.Unlock()
			return cfg
		}
	})
	q := s.repo.queue
	parallel := func() (n int) {
		if err := q.ask(t.Context(), func(c *core) { n = c.state.Config.MaxParallel }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	older := engine.Configured{Config: engine.DefaultConfig()}
	older.Config.MaxParallel = 7
	if err := s.repo.Reload(t.Context()); err != nil || parallel() != 8 {
		t.Errorf("%v: %d", err, parallel())
	}
	if _, err := q.take(t.Context(), older); err != nil || parallel() != 8 { // it waited in the queue
		t.Errorf("%v: %d", err, parallel())
	}
	set(9)
	changed <- struct{}{}
	for until := time.Now().Add(10 * time.Second); parallel() != 9; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a change is not looked at")
		}
	}
}
