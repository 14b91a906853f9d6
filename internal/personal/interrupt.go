package personal

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

type lentKey struct{}

// Interrupted returns a context that ends at the first Ctrl-C or termination. The second ends the
// process at once. While a program of the person has the terminal, Ctrl-C is for that alone.
func Interrupted(parent context.Context) (ctx context.Context, stop func()) {
	lent := new(atomic.Int32)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, lentKey{}, lent))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case got := <-signals:
				if got != os.Interrupt || lent.Load() == 0 {
					cancel(ended{got})
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// ended is the cause of an end by a signal. It counts as the context's own error does.
type ended struct{ os.Signal }

func (e ended) Error() string { return e.String() + " signal received" }

func (ended) Is(target error) bool { return target == context.Canceled }

// lend gives Ctrl-C to a program until back is called.
func lend(ctx context.Context) (back func()) {
	lent, ok := ctx.Value(lentKey{}).(*atomic.Int32)
	if !ok {
		return func() {}
	}
	lent.Add(1)
	return func() { lent.Add(-1) }
}
