package git

import (
	"context"
	"sync"
)

// Locks has a lock for each key in use. Waiting for one can be cancelled. The zero value is ready.
type Locks struct {
	mu sync.Mutex
	of map[string]*keyLock
}

type keyLock struct {
	held   chan struct{}
	wanted int // how many want it, its holder included
}

// Lock waits until nobody else has the lock of the key.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	if l.of == nil {
		l.of = map[string]*keyLock{}
	}
	k := l.of[key]
	if k == nil {
		k = &keyLock{held: make(chan struct{}, 1)}
		l.of[key] = k
	}
	k.wanted++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.wanted--; k.wanted == 0 {
			delete(l.of, key)
		}
	}
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
