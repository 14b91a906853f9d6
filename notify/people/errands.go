package people

import "sync"

// errands are carried out one after another, in a goroutine that lives only while there are some.
type errands[T any] struct {
	mu      sync.Mutex
	waiting []T
	carry   func(T) // nil: nobody carries them out
	busy    bool
	under   sync.WaitGroup
}

// add adds one unless most are waiting.
func (e *errands[T]) add(t T, most int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) >= most {
		return false
	}
	e.waiting = append(e.waiting, t)
	e.wake()
	return true
}

func (e *errands[T]) begin(carry func(T)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.carry = carry
	e.wake()
}

// end waits for the one under way; the others stay.
func (e *errands[T]) end() {
	e.mu.Lock()
	e.carry = nil
	e.mu.Unlock()
	e.under.Wait()
}

// wake starts the goroutine if it is needed. The caller holds mu.
func (e *errands[T]) wake() {
	if e.carry != nil && len(e.waiting) > 0 && !e.busy {
		e.busy = true
		e.under.Go(e.work)
	}
}

func (e *errands[T]) work() {
	for {
		e.mu.Lock()
		carry := e.carry
		if e.busy = carry != nil && len(e.waiting) > 0; !e.busy {
			e.mu.Unlock()
			return
		}
		next := e.waiting[0]
		if e.waiting = e.waiting[1:]; len(e.waiting) == 0 {
			e.waiting = nil
		}
		e.mu.Unlock()
		carry(next)
	}
}
