package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/journal"
)

// Limits of the queue.
const (
	queueMost = 64  // queued items; more block the sender
	batchMost = 512 // items per sync
)

// queue brings to the loop what other goroutines have for it. Any goroutine may call post, take and ask;
// only the loop calls drain.
type queue struct {
	items    chan *item    // pointers: the empty queue is most of the memory of an idle repo
	gone     chan struct{} // closed when the loop has ended
	troubles *troubles
}

// item is one thing in the queue: an event, a question, or an effect's landing.
type item struct {
	event  engine.Event
	scan   []engine.Event // what a finished scan saw
	began  time.Time      // when it began
	part   bool           // it covered some folders only
	more   bool           // it did not reach the end
	landed *flight
	ask    func(*core)      // run on the loop's goroutine
	reply  chan<- doneReply // told when the event is journaled
	over   *atomic.Bool     // the event is decided on, or nobody waits for that any more; nil: decide on it
}

type doneReply struct {
	facts []engine.Fact
	rec   journal.Record
	err   error
}

// ErrStopped is returned to callers of a loop that has ended.
var ErrStopped = errors.New("the service for this repo has stopped")

func newQueue(t *troubles) *queue {
	return &queue{items: make(chan *item, queueMost), gone: make(chan struct{}), troubles: t}
}

// post queues an item. It waits while the queue is full and gives up when the loop has ended.
func (q *queue) post(it item) {
	select {
	case q.items <- &it:
	case <-q.gone:
	}
}

// take queues an event and waits until the decision is journaled. If ctx ends before the loop has decided on the
// event, it never will. A decision that is not journaled by then still will be, and the error says so.
func (q *queue) take(ctx context.Context, ev engine.Event) (doneReply, error) {
	reply, over := make(chan doneReply, 1), new(atomic.Bool)
	select {
	case q.items <- &item{event: ev, reply: reply, over: over}:
	case <-q.gone:
		return doneReply{}, ErrStopped
	case <-ctx.Done():
		return doneReply{}, q.late(ctx, notTaken)
	}
	why := ErrStopped
	select {
	case d := <-reply:
		return d, d.err
	case <-q.gone:
	case <-ctx.Done():
		why = q.late(ctx, taken)
		if over.CompareAndSwap(false, true) {
			why = q.late(ctx, notTaken)
		}
	}
	select {
	case d := <-reply: // the turn that took it was the last, or has ended ctx
		return d, d.err
	default:
		return doneReply{}, why
	}
}

// ask runs fn on the loop's goroutine, which owns the state, once earlier decisions are journaled. If it
// returns an error, fn did not run and never will.
func (q *queue) ask(ctx context.Context, fn func(*core)) error {
	var over atomic.Bool // fn has begun, or nobody waits for it any more
	done := make(chan struct{})
	ask := func(c *core) {
		if over.CompareAndSwap(false, true) {
			fn(c)
			close(done)
		}
	}
	select {
	case q.items <- &item{ask: ask}:
	case <-q.gone:
		return ErrStopped
	case <-ctx.Done():
		return q.late(ctx, notTaken)
	}
	why := ErrStopped
	select {
	case <-done:
		return nil
	case <-q.gone:
	case <-ctx.Done():
		why = q.late(ctx, notTaken)
	}
	if over.CompareAndSwap(false, true) {
		return why
	}
	<-done
	return nil
}

// What follows the advice at a stall.
const (
	notTaken = ", then repeat it"
	taken    = "; it is carried out then: look with `sluice status` before you repeat it"
)

// late returns why a question was not answered in time.
func (q *queue) late(ctx context.Context, then string) error {
	if why, advice := q.troubles.stalled(); why != "" {
		return fault.New(advice+then, "stalled: %s", why)
	}
	return context.Cause(ctx)
}

// patience returns a context that ends at a stall too: it looks for one whenever the time given has passed.
func (q *queue) patience(ctx context.Context, each time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for health.Wait(ctx, each) {
			if why, _ := q.troubles.stalled(); why != "" { // it may be over when the cause is read
				cancel(fault.New("look with `sluice status`, then repeat it", "stalled: %s", why))
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// drain adds the queued items to the batch: one sync serves them all.
func (q *queue) drain(batch []item) []item {
	for len(batch) < batchMost && len(q.items) > 0 {
		batch = append(batch, *<-q.items)
	}
	return batch
}
