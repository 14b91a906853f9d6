package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// TestAStalledLoopBeats: a loop that waits for room on its disk does not hang. A watchdog that hears nothing would end
// the daemon, and with it what was not journaled.
func TestAStalledLoopBeats(t *testing.T) {
	disk := newSimDisk(1)
	var beats atomic.Int64
	r, _, err := OpenRepo(RepoOptions{State: "state", World: newStage(), Compile: twoGates, Config: engine.DefaultConfig,
		Rescan: 50 * time.Millisecond, Journal: journal.Options{FS: disk}, Beat: func() { beats.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	ask := func(within time.Duration) error {
		late, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := r.Do(late, Do{Kind: "run_requested", Event: []byte(`{"source":"two","parallel":true}`)})
		return err
	}
	if err := ask(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	disk.Mu.Lock()
	disk.Room = 0
	disk.Mu.Unlock()
	if err := ask(time.Second); err == nil {
		t.Fatal("the disk has room")
	}
	before := beats.Load()
	for until := time.Now().Add(2 * stallMost); beats.Load() == before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("no sign of life in %s", 2*stallMost)
		}
	}
	disk.Mu.Lock()
	disk.Room = -1
	disk.Mu.Unlock()
	if err := ask(10 * time.Second); err != nil {
		t.Error(err)
	}
	cancel()
	<-ended
}
