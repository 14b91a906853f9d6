package daemon

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// TestAWordThatWaits: a word that waits in the queue of a loop that hangs is not answered before it is known what became
// of it, and then with that.
func TestAWordThatWaits(t *testing.T) {
	leader := newFakeLead()
	leader.hears = make(chan func(context.Context, []byte) []byte, 1)
	_, ready, _ := servedIn(t, leader, true)
	repo, answer := <-ready, <-leader.hears
	ctx := context.Background()
	if _, err := repo.Do(ctx, Do{Kind: "run_requested", Event: []byte(`{"source":"two"}`)}); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(word{ID: journal.NewID(), Epoch: 4, From: "b", Who: "ann", Trust: engine.TrustFile, At: time.Now(),
		Do: Do{Kind: "pause_requested", Event: []byte(`{"run":"two-1"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	hangs, goesOn := make(chan struct{}), make(chan struct{})
	repo.queue.post(item{ask: func(*core) { close(hangs); <-goesOn }})
	<-hangs
	for range 2 {
		soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if got := answer(soon, raw); got != nil {
			t.Errorf("nothing is decided, and it is answered with %s", got)
		}
		cancel()
	}
	close(goesOn)
	for range 2 {
		var a reply
		if err := json.Unmarshal(answer(ctx, raw), &a); err != nil || a.Error != "" || a.Done.Ignored != "" || len(a.Done.Facts) == 0 {
			t.Errorf("%+v, %v", a, err)
		}
	}
}
