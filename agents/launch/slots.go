package launch

import (
	"context"
	"sync"
	"time"

	"sluice/internal/health"
)

// Slots limit how many agents run over all repos of a daemon. The zero value is ready; nil means no
// limit.
type Slots struct {
	mu   sync.Mutex
	used int
}

// SlotPace is how often a waiting launch looks again: the limit may have been raised.
const SlotPace = 100 * time.Millisecond

// Take waits for one of most slots and returns the function that frees it. It calls waits once if
// it must wait.
func (s *Slots) Take(ctx context.Context, most int, waits func()) (func(), error) {
	if s == nil || most <= 0 {
		return func() {}, ctx.Err()
	}
	for first := true; ; first = false {
		s.mu.Lock()
		if s.used < most {
			s.used++
			s.mu.Unlock()
			return s.free, nil
		}
		s.mu.Unlock()
		if first {
			waits()
		}
		if !health.Wait(ctx, SlotPace) {
			return nil, ctx.Err()
		}
	}
}

// Adopt counts an agent that runs already.
func (s *Slots) Adopt() func() {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
	return s.free
}

func (s *Slots) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
}

// slot is one launch's: taken at most once, however often the launch is tried, and left at its end.
// It is not safe for concurrent use.
type slot struct {
	of   *Slots
	free func() // nil: not taken
}

// take waits for the slot as Slots.Take does.
func (s *slot) take(ctx context.Context, most int, waits func()) (err error) {
	if s.free == nil {
		s.free, err = s.of.Take(ctx, most, waits)
	}
	return err
}

// keep takes the slot at once, for an agent that runs already.
func (s *slot) keep() {
	if s.free == nil {
		s.free = s.of.Adopt()
	}
}

func (s *slot) leave() {
	if s.free != nil {
		s.free()
	}
}

// InUse returns how many agents run.
func (s *Slots) InUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
