package journal

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"

	"sluice/internal/fault"
)

// FileName is the journal's name in its folder.
const FileName = "journal.jsonl"

const (
	// markEvery is the number of records between two marks in memory. They save a Replay or a
	// snapshot from reading from the start.
	markEvery = 512
	// keepBufferBytes is the largest buffer kept for the next write.
	keepBufferBytes = 1 << 20
)

var (
	// ErrStalled is a write that the disk refused: full, read-only, over quota or failing. Nothing
	// of the batch is in the journal. The same call may be retried and succeeds once the disk
	// accepts it. The cause is wrapped too.
	ErrStalled = errors.New("stalled")
	// ErrSyncFailed is a failed sync. Only a new start can tell whether the written data is on the
	// disk, so the caller must exit. Every later call returns it again.
	ErrSyncFailed = errors.New("sync failed")
	// ErrForeign reports that someone else wrote to or cut the open journal. It is as final as
	// ErrSyncFailed.
	ErrForeign = errors.New("changed by somebody else")
	// ErrClosed is a call after Close.
	ErrClosed = errors.New("closed")
	// ErrApart is a write that the disk refused while Options.Copy may have taken it. Only a new start
	// can compare the two, so it is as final as ErrSyncFailed.
	ErrApart = errors.New("its copy may have what it has not")
	// ErrReading is a write to a journal that was opened with OpenRead.
	ErrReading = errors.New("opened to be read only")
)

// Log is an open journal. Its methods are safe for concurrent use.
type Log struct {
	fs   FS
	dir  string
	name string // full path of the journal
	logf func(format string, args ...any)
	file File
	copy Copy // nil: none

	reads bool  // opened with OpenRead
	from  point // where Open began to read; zero: at the first record

	requests sync.Pool

	mu      sync.Mutex
	idle    *sync.Cond // signaled when leading becomes false
	queue   []*request // waiting for a write; the first leads the next one
	leading bool       // a caller is writing for all
	closed  bool
	failed  error   // final
	head    point   // the last synced record
	marks   []point // ascending: every markEvery-th record, and where Open began
	snap    int64   // seq of the newest good snapshot; 0: none

	snapMu sync.Mutex // serializes SaveSnapshot

	// Used by the leader only.
	buf       []byte
	uncut     bool  // a failed write may have left bytes after head
	reserveAt int64 // reserve more once the journal's end reaches this offset
}

// request is one Append in the queue.
type request struct {
	bodies []byte
	ends   []int   // end of each body in bodies
	before point   // the record before the first
	points []point // of each record, once written
	err    error
	turn   chan bool // true: lead the next write; false: done
}

// Append writes the entries as the next records and returns the first and the last seq. On nil they
// are on the disk. On an error none of them is in the journal, except for ErrSyncFailed, where that
// is unknown. A crash in the middle may leave the first few.
//
// Concurrent callers share a sync: the first writes for all that wait.
func (l *Log) Append(entries ...Entry) (first, last int64, err error) {
	r, err := l.commit(entries)
	if err != nil {
		return 0, 0, err
	}
	first = r.before.seq + 1
	l.requests.Put(r)
	return first, first + int64(len(entries)) - 1, nil
}

// AppendRecords is Append for callers that need the records as written, with seq and sums.
func (l *Log) AppendRecords(entries ...Entry) ([]Record, error) {
	r, err := l.commit(entries)
	if err != nil {
		return nil, err
	}
	records := make([]Record, len(entries))
	prev := r.before
	for i, e := range entries {
		p := r.points[i]
		var facts []json.RawMessage
		for _, f := range e.Facts {
			facts = append(facts, oneLine(f))
		}
		records[i] = Record{
			Seq: p.seq, At: e.At.UTC().Round(0), Event: oneLine(e.Event), Facts: facts,
			Prev: hex.EncodeToString(prev.hash[:]), Sum: hex.EncodeToString(p.sum[:]),
		}
		prev = p
	}
	l.requests.Put(r)
	return records, nil
}

// commit encodes the entries and returns once they are synced, by this goroutine or another leader.
func (l *Log) commit(entries []Entry) (*request, error) {
	r := l.requests.Get().(*request)
	if err := r.encode(entries); err != nil {
		l.requests.Put(r)
		return nil, err
	}
	if l.reads {
		return nil, fmt.Errorf("%s: %w", l.name, ErrReading)
	}
	l.mu.Lock()
	if err := l.refusal(); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	l.queue = append(l.queue, r)
	if l.leading {
		l.mu.Unlock()
		if lead := <-r.turn; !lead {
			return r.result()
		}
		l.mu.Lock()
	}
	l.leading = true
	group := l.takeGroup()
	l.mu.Unlock()

	l.writeGroup(group)

	// Wake those that are done before passing the lead on, so that what they append next joins the
	// next group. With 16 writers this doubles the groups (7.6 to 14.3).
	for _, other := range group[1:] {
		other.turn <- false
	}
	runtime.Gosched()
	l.mu.Lock()
	if len(l.queue) > 0 {
		l.queue[0].turn <- true
	} else {
		l.leading = false
		l.idle.Broadcast()
	}
	l.mu.Unlock()
	return r.result()
}

func (r *request) result() (*request, error) {
	if r.err != nil {
		return nil, r.err
	}
	return r, nil
}

// encode does the part of the work that does not depend on the place in the chain.
func (r *request) encode(entries []Entry) error {
	r.bodies, r.ends, r.points, r.err = r.bodies[:0], r.ends[:0], r.points[:0], nil
	if cap(r.bodies) > keepBufferBytes {
		r.bodies = nil
	}
	if len(entries) == 0 || len(entries) > MaxBatchEntries {
		return fmt.Errorf("append: %w: %d entries: a batch has 1 to %d", ErrRefused, len(entries), MaxBatchEntries)
	}
	for _, e := range entries {
		var err error
		if r.bodies, err = appendBody(r.bodies, e); err != nil {
			return err
		}
		r.ends = append(r.ends, len(r.bodies))
		if n := r.size(); n > MaxBatchBytes {
			return fault.New("append fewer at a time", "append: %w: a batch of %d bytes is over the limit of %d", ErrRefused,
				n, MaxBatchBytes)
		}
	}
	return nil
}

// size is an upper bound of the request's lines, in bytes.
func (r *request) size() int { return len(r.bodies) + len(r.ends)*lineRest }

// refusal returns the error for every further call, if any. The caller has l.mu locked.
func (l *Log) refusal() error {
	if l.failed != nil {
		return l.failed
	}
	if l.closed {
		return fault.New("open it again", "%s: %w", l.name, ErrClosed)
	}
	return nil
}

// takeGroup takes the requests for one write off the queue. The caller has l.mu locked.
func (l *Log) takeGroup() []*request {
	n, size := 1, l.queue[0].size()
	for n < len(l.queue) && size+l.queue[n].size() <= MaxBatchBytes {
		size += l.queue[n].size()
		n++
	}
	group := l.queue[:n:n]
	l.queue = append(make([]*request, 0, len(l.queue)), l.queue[n:]...)
	return group
}

// writeGroup writes the group with one write and one sync, and sets each request's result. Only the
// leader calls it.
func (l *Log) writeGroup(group []*request) {
	head, marks, err := l.writeLines(group)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !errors.Is(err, ErrStalled) && l.failed == nil {
			l.failed = err
		}
		for _, r := range group {
			r.err = err
		}
		return
	}
	l.head = head
	l.marks = append(l.marks, marks...)
}

func (l *Log) writeLines(group []*request) (head point, marks []point, err error) {
	if err := l.ready(); err != nil {
		return head, nil, err
	}
	head = l.head
	buf := l.buf[:0]
	for _, r := range group {
		r.before = head
		start := 0
		for _, end := range r.ends {
			buf, head = appendLine(buf, head, r.bodies[start:end])
			r.points = append(r.points, head)
			start = end
			if head.seq%markEvery == 0 {
				marks = append(marks, head)
			}
		}
	}
	if cap(buf) <= keepBufferBytes {
		l.buf = buf
	}
	if err := l.writeBoth(buf); err != nil {
		return head, nil, err
	}
	return head, marks, nil
}

// writeFile writes whole lines after the last record, and syncs them.
func (l *Log) writeFile(buf []byte) error {
	if n, err := l.file.WriteAt(buf, l.head.end); err != nil || n < len(buf) {
		if err == nil {
			err = io.ErrShortWrite
		}
		l.uncut = true
		if cutErr := l.cut(); cutErr != nil && !errors.Is(cutErr, ErrStalled) {
			return cutErr
		}
		return l.stalled("cannot be written", err)
	}
	if err := l.file.Sync(); err != nil {
		return l.syncFailed(err)
	}
	l.reserve()
	return nil
}

// ready checks that the file ends where the last record does.
func (l *Log) ready() error {
	l.mu.Lock()
	failed := l.failed
	l.mu.Unlock()
	if failed != nil {
		return failed
	}
	if l.uncut {
		return l.cut()
	}
	size, err := l.file.Size()
	if err != nil {
		return l.stalled("cannot be measured", err)
	}
	if size != l.head.end {
		return fault.New("end the other writer, then start again", "%s: %w: it has %d bytes where %d were written",
			l.name, ErrForeign, size, l.head.end)
	}
	return nil
}

// cut removes what a failed write left. It is retried before each write until it succeeds, because
// a line appended after half a line would be damage.
func (l *Log) cut() error {
	size, err := l.file.Size()
	if err == nil && size != l.head.end {
		l.reserveAt = 0 // the reserved room goes with it
		err = l.file.Truncate(l.head.end)
	}
	if err != nil {
		return l.stalled("cannot be cut back after a failed write", err)
	}
	// Synced, so that no part of the batch reappears after a power cut.
	if err := l.file.Sync(); err != nil {
		return l.syncFailed(err)
	}
	l.uncut = false
	return nil
}

func (l *Log) stalled(what string, cause error) error {
	return fault.New("make room or make the disk writable; it may then be tried again",
		"%s: %s: %w: %w: nothing was recorded", l.name, what, ErrStalled, cause)
}

func (l *Log) syncFailed(cause error) error {
	return fault.New("check the disk, then start again", "%s: %w: %w: what was written last may be lost", l.name,
		ErrSyncFailed, cause)
}

// Last returns the last synced record's seq and sum; 0 and "" before the first.
func (l *Log) Last() (seq int64, sum string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head.seq == 0 {
		return 0, ""
	}
	return l.head.seq, hex.EncodeToString(l.head.sum[:])
}

// Close waits for running appends and closes the file. A second Close does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for l.leading {
		l.idle.Wait()
	}
	return l.file.Close()
}

func path(dir, name string) string { return filepath.Join(dir, name) }
