package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/internal/strictjson"
	"sluice/journal"
)

const (
	leaseStream  = "SLUICE_LEASES"
	leaseSubject = "sluice.lease."
	leaseBytes   = 1 << 10 // of a renewal
	renewals     = 6       // in the time of one lease
)

// Clocks. A renewal carries its sender's time. Read soon after it was written, it shows how far the
// own clock is ahead of the sender's.
const (
	soonAfter  = time.Second     // between two reads
	clockSlack = 2 * time.Second // clocks that differ by less are as good as one
)

// renewal says that a machine leads and is alive. It proves nothing about the journal.
type renewal struct {
	Epoch int64     `json:"epoch"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Left  bool      `json:"left,omitempty"` // it has ended by itself
}

// leases is the stream of renewals; the newest of each journal is kept.
type leases struct {
	js jetstream.JetStream
	id string
	s  jetstream.Stream
}

func leaseConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: leaseStream, Subjects: []string{leaseSubject + "*"}, Replicas: replicas,
		Description: "which machines lead in sluice", MaxMsgsPerSubject: 1, Storage: jetstream.FileStorage}
}

// read returns the newest renewal and its revision; 0 = there was never one. An error means that it
// is not known.
func (l *leases) read(ctx context.Context) (r renewal, rev uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestIn/2)
	defer cancel()
	if l.s == nil {
		if l.s, err = l.js.Stream(ctx, leaseStream); err != nil {
			l.s = nil
			return r, 0, err
		}
	}
	msg, err := l.s.GetLastMsgForSubject(ctx, leaseSubject+l.id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return r, 0, nil
	}
	if err != nil {
		return r, 0, err
	}
	if state, err := strictjson.Check(msg.Data, leaseBytes); err != nil || state != strictjson.Whole {
		return r, msg.Sequence, nil // whoever wrote it is alive
	}
	_ = json.Unmarshal(msg.Data, &r) // as above
	return r, msg.Sequence, nil
}

// write replaces the renewal of a revision.
func (l *leases) write(ctx context.Context, r renewal, rev uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestIn/2)
	defer cancel()
	data, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	ack, err := l.js.PublishMsg(ctx, &nats.Msg{Subject: leaseSubject + l.id, Data: data},
		jetstream.WithExpectLastSequencePerSubject(rev), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// silence measures how long a leader has been silent, by the own clock.
type silence struct {
	rev     uint64
	last    renewal
	changed time.Time // when the newest renewal was first seen, or the watch began
	answers time.Time // since when every read was answered; zero: the last was not

	read, wall time.Time     // the newest read, by the monotonic clock and by that for records
	ahead      time.Duration // the own clock of the leader's, as of its newest renewal that shows it
}

// saw notes what was read at a time of the monotonic clock, and of the clock for records.
func (q *silence) saw(r renewal, rev uint64, err error, now, wall time.Time) {
	if err != nil {
		q.answers = time.Time{}
		return
	}
	wall = wall.Round(0)
	between := max(now.Sub(q.read), wall.Sub(q.wall)) // a machine that sleeps stops only the first
	if rev != q.rev && q.rev != 0 && between <= soonAfter && !r.At.IsZero() {
		q.ahead = wall.Sub(r.At).Truncate(time.Millisecond)
		if by := q.ahead.Abs(); by < clockSlack || by > journal.MaxAhead {
			q.ahead = 0
		}
	}
	q.read, q.wall = now, wall
	if q.answers.IsZero() {
		q.answers = now
	}
	if rev != q.rev {
		q.rev, q.last, q.changed = rev, r, now
	}
}

// over reports whether this machine may try to lead: nobody leads, and a standby has left the others
// a lease; or the leader was silent for a lease. After an outage of the servers the leader has a
// moment to renew.
func (q *silence) over(now time.Time, lease time.Duration, standby bool) bool {
	if q.answers.IsZero() {
		return false
	}
	if free := q.rev == 0 || q.last.Left; free && !standby {
		return true
	}
	return now.Sub(q.changed) >= lease && now.Sub(q.answers) >= lease/3
}
