package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/daemon"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/text"
	"sluice/journal"
)

// ErrDeposed ends the service of a repo when another machine decides for it.
var ErrDeposed = errors.New("another machine has taken over")

// errCut means that the local file was cut: it has to be opened again.
var errCut = errors.New("the local journal was cut")

// Options configures a Member.
type Options struct {
	ID      string // of the journal
	By      string // this machine, for people
	Standby bool   // leave it to the others to lead first
	Logf    func(format string, args ...any)
	Now     func() time.Time // for records; nil: the machine's clock
}

// Member is this machine's part in a journal. See the package's doc.
type Member struct {
	opt    Options
	nc     *nats.Conn
	str    *stream
	leases *leases
	packs  *Packs

	// Of the goroutine that calls Take and Copy.
	ctx  context.Context // of Take
	last uint64          // the last message that the local file has whole
	upTo int64           // the last record of that message
	quit context.CancelFunc
	wg   sync.WaitGroup

	lost chan struct{} // closed when another machine decides

	lease atomic.Int64 // of the epoch that this machine leads, in nanoseconds

	mu     sync.Mutex // guards what follows
	report daemon.Cluster
	until  time.Time // effects may begin before this time: see leased
	gone   bool      // lost is closed

	secretMu sync.Mutex // guards what follows
	secret   []byte     // nil = not known yet
}

// Member returns this machine's part in a journal.
func (c *Conn) Member(o Options) *Member {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Member{opt: o, nc: c.nc, str: c.streamOf(o.ID), leases: &leases{js: c.js, id: o.ID}, lost: make(chan struct{}),
		packs: c.Packs(o.ID, 0), report: daemon.Cluster{Journal: o.ID, Machine: o.By}}
}

// Take follows the stream into the journal in the state folder, which the caller has locked. It
// returns nil when this machine leads, which it never does after a record that its release cannot read.
// Its error is that of ctx, or final.
func (m *Member) Take(ctx context.Context, state string) error {
	m.ctx = ctx
	for {
		if err := m.take(ctx, state); !errors.Is(err, errCut) {
			return err
		}
	}
}

func (m *Member) take(ctx context.Context, state string) (err error) {
	log, rec, err := journal.Open(state, journal.Options{Logf: m.opt.Logf, Copy: m.Copy})
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, log.Close())
		}
	}()
	if rec.TornBytes > 0 {
		m.opt.Logf("the journal's last line was torn by a crash; it was never acted on")
	}
	if err := m.scan(log, false); err != nil {
		return err
	}
	if err := m.align(ctx, log); err != nil {
		return err
	}
	watch := silence{changed: time.Now()}
	for {
		moved, err := m.advance(ctx, log)
		if d, ok := errors.AsType[differs](err); ok {
			closed = true
			return m.cut(state, log, d)
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if moved {
			continue
		}
		r, rev, err := m.leases.read(ctx)
		watch.saw(r, rev, err, time.Now(), m.opt.Now())
		m.heard(watch, err)
		if m.stalled() != "" || m.unread() != nil || !watch.over(time.Now(), m.str.lease, m.opt.Standby) {
			if !health.Wait(ctx, m.poll()) {
				return ctx.Err()
			}
			continue
		}
		switch led, err := m.lead(ctx, log, watch); {
		case errors.Is(err, ErrDeposed): // somebody else was faster
			return errCut
		case err != nil:
			return err
		case led:
			return nil
		}
	}
}

// scan reads the whole local journal: whose it is, the newest epoch, and what cannot be read. A journal
// of an older release has no id up to its first lead; the records themselves show whose it is. With
// strict it needs one.
func (m *Member) scan(log *journal.Log, strict bool) error {
	past, err := historyOf(log)
	id := past.id
	m.led(past.newest)
	m.reads(past.unread)
	seq, _ := log.Last()
	if foreign := id != m.opt.ID && (id != "" || strict); err == nil && seq > 0 && foreign {
		advice := "`sluice journal repair --to 0` moves this machine's records aside; then `sluice cluster join` again"
		if !strict {
			advice = "`sluice cluster leave`; " + advice
		}
		err = refusal(advice, "the journal of this machine is not that of stream %s: its id is %q", m.str.name(), id)
	}
	return err
}

// align finds the message that has the local file's last record.
func (m *Member) align(ctx context.Context, log *journal.Log) error {
	m.last, m.upTo = 0, 0
	head, _ := log.Last()
	info, what, err := m.str.look(ctx)
	for ; err == nil && info == nil; info, what, err = m.str.look(ctx) {
		m.stuck(what)
		if !health.Wait(ctx, retryAfter) {
			return ctx.Err()
		}
	}
	if err != nil || head == 0 {
		return err
	}
	low, high := uint64(1), info.State.LastSeq // the message is one of these
	for low < high {
		mid := low + (high-low+1)/2
		data, is, what, err := m.str.get(ctx, mid)
		if err != nil {
			return err
		}
		if is != there { // as if the stream ended before it; advance goes on from an earlier one
			if m.stuck(what); !health.Wait(ctx, retryAfter) {
				return ctx.Err()
			}
			continue
		}
		records, err := journal.ParseLines(data)
		if err != nil {
			return m.str.foreign(mid, err.Error())
		}
		if records[0].Seq <= head {
			low = mid
		} else {
			high = mid - 1
		}
	}
	m.last = low - 1
	return nil
}

// differs is a local record that is not the stream's.
type differs struct {
	seq     int64
	earlier bool // an earlier one differs too
}

func (d differs) Error() string { return fmt.Sprintf("record %d is not that of the stream", d.seq) }

// advance takes the next message into the local file. moved is false at the end of the stream, or
// while the servers do not answer.
func (m *Member) advance(ctx context.Context, log *journal.Log) (moved bool, err error) {
	data, is, what, err := m.str.get(ctx, m.last+1)
	m.stuck(what)
	if err != nil || is != there {
		return false, err
	}
	records, err := journal.ParseLines(data)
	if err != nil {
		return false, m.str.foreign(m.last+1, err.Error())
	}
	first, last := records[0].Seq, records[len(records)-1].Seq
	head, _ := log.Last()
	if first > head+1 || m.upTo > 0 && first != m.upTo+1 || last-first+1 != int64(len(records)) {
		return false, m.str.foreign(m.last+1, fmt.Sprintf("it begins with record %d", first))
	}
	if first <= head {
		err := same(log, records, min(last, head))
		if d, ok := errors.AsType[differs](err); ok && d.earlier && m.last > 0 { // find the first
			m.last, m.upTo = m.last-1, 0
			return true, nil
		} else if err != nil {
			return false, err
		}
	}
	if last > head {
		for range head + 1 - first { // these are there
			data = data[bytes.IndexByte(data, '\n')+1:]
		}
		var damage *journal.Damage
		if err := log.AppendLines(data); errors.As(err, &damage) {
			return false, m.str.foreign(m.last+1, damage.Why)
		} else if err != nil {
			return false, err
		}
	}
	for _, r := range records {
		if l, ok := r.Lead(); ok {
			m.led(l)
		}
		if m.unread() == nil {
			m.reads(daemon.Reads(r))
		}
	}
	m.last, m.upTo = m.last+1, last
	m.progress(last)
	return true, nil
}

// same compares records of the stream, in their order, with those of the local file, up to record `to`. A record's
// sum stands for all of it and, by the chain, for all before it.
func same(log *journal.Log, records []journal.Record, to int64) error {
	end := errors.New("compared")
	err := log.Replay(records[0].Seq, func(r journal.Record) error {
		if r.Seq > to {
			return end
		}
		if is := records[r.Seq-records[0].Seq]; r.Sum != is.Sum {
			return differs{r.Seq, r.Prev != is.Prev}
		}
		return nil
	})
	if errors.Is(err, end) {
		return nil
	}
	return err
}

// cut cuts off the local file what the stream has other records for, and keeps it aside. Only the
// last append can differ rightly, because none begins before the one before it is acknowledged; its
// records have one time. It closes the log.
func (m *Member) cut(state string, log *journal.Log, d differs) error {
	var at time.Time
	times, n := 0, 0
	err := log.Replay(d.seq, func(r journal.Record) error {
		if n++; !r.At.Equal(at) {
			at, times = r.At, times+1
		}
		return nil
	})
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	if times > 1 {
		return refusal("compare both with `sluice audit verify` and copies; to take the stream's, run `sluice journal "+
			fmt.Sprintf("repair --to %d` here", d.seq-1), "the journal of this machine and stream %s have different "+
			"records from %d on: %s here are not in the stream", m.str.name(), d.seq, text.Plural(n, "record"))
	}
	repaired, err := journal.Repair(state, d.seq-1, journal.Options{Logf: m.opt.Logf})
	if err != nil {
		return err
	}
	m.opt.Logf("%s from record %d on were never acknowledged, and another machine has decided since; they are kept in %s",
		text.Plural(n, "record"), d.seq, repaired.CutFile)
	return errCut
}

// refill sends a part of what the stream lacks of the local file; false: it lacks nothing. What
// became of the part is seen by reading on.
func (m *Member) refill(ctx context.Context, log *journal.Log) (lacked bool, err error) {
	head, _ := log.Last()
	if head <= m.upTo {
		return false, nil
	}
	lines, last, err := log.Lines(m.upTo+1, partMost)
	if err != nil {
		return false, err
	}
	if !m.str.begins {
		m.opt.Logf("the stream lacks records %d to %d: they are sent from the file of this machine", m.upTo+1, last)
	}
	if err := m.str.publish(ctx, lines, m.last); err != nil {
		m.stuck(why(err))
		health.Wait(ctx, retryAfter) // ctx is looked at by the caller
	}
	return true, nil
}

// lead begins a new epoch, once the stream has all of the local file. led is false while the stream
// has to be read again.
func (m *Member) lead(ctx context.Context, log *journal.Log, watch silence) (led bool, err error) {
	if lacked, err := m.refill(ctx, log); lacked || err != nil {
		return false, err
	}
	next := journal.Lead{Epoch: m.Report().Epoch + 1, By: m.opt.By, Ahead: watch.ahead.Milliseconds()}
	if _, _, err := log.Append(next.Entry(m.opt.Now())); err != nil {
		return false, err
	}
	m.upTo, _ = log.Last()
	m.led(next)
	m.opt.Logf("this machine leads: epoch %d", next.Epoch)
	m.keep(ctx, next.Epoch, watch.rev)
	return true, nil
}

// poll is the time between two looks for a new message.
func (m *Member) poll() time.Duration {
	return min(max(m.str.lease/24, 20*time.Millisecond), 250*time.Millisecond)
}

// deposed is the error for people.
func (m *Member) deposed() error {
	return fault.New("look at it there: `sluice status`", "%w (%s): this one only follows now", ErrDeposed,
		text.Line(m.Report().Leader))
}
