package launch

import (
	"context"
	"math"
	"sync"
	"time"

	"sluice/internal/health"
)

// Slots count the agents that run over all repos of a daemon, to limit them. The zero value is ready;
// nil means no limit.
type Slots struct {
	mu   sync.Mutex
	used int
}

// SlotPace is how often a waiting launch looks again: the limit may have been raised.
const SlotPace = 100 * time.Millisecond

// take counts another agent, unless most run already.
func (s *Slots) take(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= most {
		return false
	}
	s.used++
	return true
}

// InUse returns how many agents run.
func (s *Slots) InUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// slot is one launch's: taken at most once, however often the launch is tried, and left at its end.
// It is not safe for concurrent use.
type slot struct {
	of    *Slots
	taken bool
}

// take waits for one of most slots; 0 = no limit. It calls waits once if it must wait.
func (s *slot) take(ctx context.Context, most int, waits func()) error {
	if s.of == nil || s.taken {
		return ctx.Err()
	}
	if most <= 0 {
		most = math.MaxInt // it counts: a limit may be set while it runs
	}
	for first := true; !s.of.take(most); first = false {
		if first {
			waits()
		}
		if !health.Wait(ctx, SlotPace) {
			return ctx.Err()
		}
	}
	s.taken = true
	return nil
}

// keep takes the slot at once, for an agent that runs already.
func (s *slot) keep() {
	if s.of != nil && !s.taken {
		s.taken = s.of.take(math.MaxInt)
	}
}

func (s *slot) leave() {
	if s.taken {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		s.of.used--
	}
}
