package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/internal/fault"
)

const (
	streamPrefix  = "SLUICE_" // with the journal's id: its stream
	subjectPrefix = "sluice.journal."
	leaseKey      = "sluice.lease" // in the stream's metadata: the lease, as time.ParseDuration reads it
	rootKey       = "sluice.root"  // in the stream's metadata: a first commit of the repo's history
	leaseLeast    = 500 * time.Millisecond
	leaseMost     = 10 * time.Minute
)

// stream is the stream of a journal: each message is one or more whole lines of it, in order.
type stream struct {
	js     jetstream.JetStream
	id     string // of the journal
	s      jetstream.Stream
	lease  time.Duration
	begins bool // it may be empty
	joins  bool // this machine has no record, from which `init` would begin another journal
	absent int  // how many requests in a row have found no stream
}

// absentMost is how many answers in a row must say that there is no stream before that is believed: a
// server that has just started may not know its streams yet.
const absentMost = 5

func (c *Conn) streamOf(id string) *stream { return &stream{js: c.js, id: id} }

func (s *stream) name() string    { return streamPrefix + s.id }
func (s *stream) subject() string { return subjectPrefix + s.id }

// config returns the stream's configuration. Nothing in it ever drops a message.
func (s *stream) config(n New) jetstream.StreamConfig {
	about := map[string]string{leaseKey: n.Lease.String()}
	if n.Root != "" {
		about[rootKey] = n.Root
	}
	return jetstream.StreamConfig{Name: s.name(), Subjects: []string{s.subject()}, Description: "a journal of sluice",
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, Replicas: n.Replicas, DenyDelete: true, DenyPurge: true,
		Metadata: about}
}

// found is what is known about a message.
type found int

const (
	unknown found = iota // the servers gave no answer that says anything
	there
	none // it is not there now; another answer may be newer
)

// look reads the stream's state and checks it. An error is a fault of the stream, for people; with
// unknown, and what for the status, nothing was learned.
func (s *stream) look(ctx context.Context) (info *jetstream.StreamInfo, what string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestIn)
	defer cancel()
	if s.s == nil {
		st, err := s.js.Stream(ctx, s.name())
		if err != nil {
			return nil, why(err), s.gone(err)
		}
		s.s = st
	}
	info, err = s.s.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return nil, why(err), s.gone(err)
	}
	s.absent = 0
	return info, "", s.check(info)
}

// gone returns an error once it is certain that there is no stream.
func (s *stream) gone(err error) error {
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		s.absent = 0
		return nil
	}
	if s.absent++; s.absent < absentMost {
		return nil
	}
	advice := "compare the servers with a copy; `sluice cluster init` begins it again from this machine's record"
	if s.joins {
		advice = "check the id and the addresses: `sluice cluster init` has printed both"
	}
	return refusal(advice,
		"the servers have no record of this repo (stream %s): they were emptied, or are others", s.name())
}

// refusal is an error that only a person can resolve: exit code 78.
func refusal(advice, format string, args ...any) error {
	e := fault.New(advice, format, args...)
	e.Code = fault.ExitDamaged
	return e
}

// check reports what makes the stream unfit: it was never begun, or something of it was removed.
func (s *stream) check(info *jetstream.StreamInfo) error {
	st, c := info.State, info.Config
	if st.LastSeq == 0 && !s.begins {
		return refusal("`sluice cluster init` begins it", "stream %s is empty: a daemon never begins a record", s.name())
	}
	if st.LastSeq > 0 && (st.FirstSeq != 1 || st.NumDeleted > 0) {
		return refusal("restore it from a copy of the servers' data, or remove it and run `sluice cluster init` on the "+
			"machine with the longest journal", "stream %s was edited: it begins with message %d, and %d of its messages "+
			"are gone", s.name(), st.FirstSeq, st.NumDeleted)
	}
	drops := ""
	switch {
	case c.Retention != jetstream.LimitsPolicy:
		drops = "retention"
	case c.MaxAge != 0:
		drops = "max_age"
	case c.Discard != jetstream.DiscardNew && (c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0):
		drops = "discard"
	case !slices.Equal(c.Subjects, []string{s.subject()}) || c.Mirror != nil || len(c.Sources) > 0:
		drops = "subjects"
	case c.AllowDirect: // any replica would answer, however late it is
		drops = "allow_direct"
	}
	if drops != "" {
		return refusal("set it back with `nats stream edit`", "stream %s has another %s than sluice gave it: it may lose "+
			"records or take in others", s.name(), drops)
	}
	lease, err := time.ParseDuration(c.Metadata[leaseKey])
	if err != nil || lease < leaseLeast || lease > leaseMost {
		return refusal("set it back with `nats stream edit`", "stream %s: %s in its metadata is no lease: %q", s.name(),
			leaseKey, c.Metadata[leaseKey])
	}
	s.lease = lease
	return nil
}

// get reads a message. A message that is missing before the end is an error: the stream was edited.
func (s *stream) get(ctx context.Context, seq uint64) (data []byte, is found, what string, err error) {
	within, cancel := context.WithTimeout(ctx, requestIn)
	defer cancel()
	msg, err := s.s.GetMsg(within, seq)
	if err == nil {
		s.absent = 0
		if msg.Subject != s.subject() {
			return nil, unknown, "", s.foreign(seq, "its subject is "+fmt.Sprintf("%.100q", msg.Subject))
		}
		return msg.Data, there, "", nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, unknown, why(err), s.gone(err)
	}
	if info, what, err := s.look(ctx); err != nil || info == nil {
		return nil, unknown, what, err
	}
	return nil, none, "", nil
}

// foreign is the error for a message that no sluice has written.
func (s *stream) foreign(seq uint64, what string) error {
	return refusal("see who may write to it; then restore it, or remove it and run `sluice cluster init` on the machine "+
		"with the longest journal", "stream %s: message %d is no part of this record: %s", s.name(), seq, what)
}

// publish appends lines after message `last`. Only nil says anything: they are in the stream then.
func (s *stream) publish(ctx context.Context, lines []byte, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requestIn)
	defer cancel()
	ack, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: s.subject(), Data: lines},
		jetstream.WithExpectLastSequence(last), jetstream.WithExpectStream(s.name()), jetstream.WithRetryAttempts(0))
	if err == nil && (ack.Sequence != last+1 || ack.Duplicate) {
		err = fmt.Errorf("it is said to be message %d, not %d", ack.Sequence, last+1)
	}
	return err
}
