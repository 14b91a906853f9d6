package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/engine"
)

// TestTakenAndEnded: a decision that ends who waits for it, or that was the loop's last, is what it returns.
func TestTakenAndEnded(t *testing.T) {
	type took struct {
		doneReply
		err error
	}
	for n := range 200 {
		q := newQueue(&troubles{opt: &RepoOptions{}})
		q.items = make(chan *item) // who waits for its room has not looked for the reply yet
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan took)
		go func() {
			d, err := q.take(ctx, engine.Ticked{})
			got <- took{d, err}
		}()
		time.Sleep(100 * time.Microsecond)
		it := <-q.items
		it.reply <- doneReply{facts: []engine.Fact{engine.Ignored{}}}
		if cancel(); n%2 == 0 {
			close(q.gone)
		}
		if d := <-got; d.err != nil || len(d.facts) != 1 {
			t.Fatalf("%+v, %v", d.facts, d.err)
		}
	}
}

// TestTakeAtAStall: at a stall the error says what became of an event, and an event whose sender gave up before the
// decision is never decided on.
func TestTakeAtAStall(t *testing.T) {
	q := newQueue(&troubles{opt: &RepoOptions{}, stall: "no room"})
	said := make(chan error, 1)
	take := func() *item {
		ctx, cancel := q.patience(t.Context(), 5*time.Millisecond)
		go func() {
			defer cancel()
			_, err := q.take(ctx, engine.Ticked{})
			said <- err
		}()
		return <-q.items
	}
	it := take()
	if err := <-said; err == nil || err.Error() != "stalled: no room: free some space, then repeat it" {
		t.Errorf("not decided on: %v", err)
	}
	r := &Repo{}
	if replies, _ := r.decide([]item{*it}, time.Now()); len(replies) != 0 { // or it would ask the core, which is not there
		t.Error("what was given up is decided on")
	}
	it = take()
	it.over.Store(true) // by the loop
	if err := <-said; err == nil || !strings.HasPrefix(err.Error(), "stalled: no room: free some space; it is carried out then: ") {
		t.Errorf("decided on: %v", err)
	}
	for range queueMost {
		q.post(item{})
	}
	ctx, cancel := q.patience(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := q.take(ctx, engine.Ticked{}); err == nil || !strings.HasSuffix(err.Error(), ", then repeat it") {
		t.Errorf("the queue is full: %v", err)
	}
}

// TestAsk: a question that was given up is not answered later, and one that is being answered is not given
// up, so that the caller alone reads what the answer wrote.
func TestAsk(t *testing.T) {
	q := newQueue(&troubles{opt: &RepoOptions{}})
	given, cancel := context.WithCancel(t.Context())
	said := make(chan error, 1)
	late := 0
	go func() { said <- q.ask(given, func(*core) { late++ }) }()
	it := <-q.items
	cancel()
	if err := <-said; !errors.Is(err, context.Canceled) {
		t.Fatalf("given up: %v", err)
	}
	if it.ask(nil); late != 0 {
		t.Error("a question that was given up is answered")
	}

	slow, cancel := context.WithCancel(t.Context())
	answer := 0
	go func() { said <- q.ask(slow, func(*core) { cancel(); answer = 1 }) }()
	it = <-q.items
	it.ask(nil)
	if err := <-said; err != nil || answer != 1 {
		t.Errorf("given up during the answer %d: %v", answer, err)
	}

	go func() { said <- q.ask(t.Context(), func(*core) { answer++ }) }()
	it = <-q.items
	it.ask(nil)
	close(q.gone)
	if err := <-said; err != nil || answer != 2 { // the end of the loop changes nothing about it
		t.Errorf("answered before the end: %d, %v", answer, err)
	}
	if err := q.ask(t.Context(), func(*core) {}); !errors.Is(err, ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}
