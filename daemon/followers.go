package daemon

import (
	"sync"

	"sluice/journal"
)

// followers are the readers of the journal as it grows. Any goroutine may call.
type followers struct {
	mu   sync.Mutex
	subs map[chan journal.Record]bool // nil: the loop has ended
	seq  int64                        // of the last record
}

// publish passes journaled records on.
func (f *followers) publish(done []entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq = done[len(done)-1].rec.Seq
	for ch := range f.subs {
		for _, e := range done {
			if !offer(ch, e.rec) { // too slow: it resumes from the journal
				delete(f.subs, ch)
				close(ch)
				break
			}
		}
	}
}

func offer(ch chan journal.Record, rec journal.Record) bool {
	select {
	case ch <- rec:
		return true
	default:
		return false
	}
}

// follow returns the records from now on. The channel is closed when its reader lags or the loop
// ends.
func (f *followers) follow() (chan journal.Record, int64) {
	ch := make(chan journal.Record, 1024)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs == nil {
		close(ch)
	} else {
		f.subs[ch] = true
	}
	return ch, f.seq
}

func (f *followers) unfollow(ch chan journal.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, ch)
}

// end closes all channels: nothing more is published.
func (f *followers) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.subs {
		close(ch)
	}
	f.subs = nil
}
