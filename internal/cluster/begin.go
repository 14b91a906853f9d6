package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sluice/daemon"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/text"
	"sluice/journal"
)

const (
	createIn = 15 * time.Second
	sendIn   = 10 * time.Minute // of a whole journal
	// noPeers is the servers' code for too few of them, which they also send just after their start.
	noPeers = 10005
)

// New is a stream that Begin creates.
type New struct {
	Replicas int           // how many servers have it, 1 to 5
	Lease    time.Duration // a leader that is silent for so long is replaced
	Root     string        // a first commit of the repo's history, by which Join knows its clones; "" = any may join
}

// Begun is what Begin did.
type Begun struct {
	ID      string // of the journal
	Records int64  // that the stream has now
}

// Begin creates the stream of a repo's journal and sends the whole journal to it. The caller has
// locked the state folder. After a crash or an error, a repeated Begin does the rest.
func (c *Conn) Begin(ctx context.Context, o Options, state string, n New) (Begun, error) {
	if n.Lease < leaseLeast || n.Lease > leaseMost {
		return Begun{}, fault.Misused(fmt.Sprintf("give a time from %s to %s", leaseLeast, leaseMost), "--lease %s", n.Lease)
	}
	log, _, err := journal.Open(state, journal.Options{Logf: o.Logf})
	if err != nil {
		return Begun{}, err
	}
	b, err := c.begin(ctx, o, log, state, n)
	return b, errors.Join(err, log.Close())
}

func (c *Conn) begin(ctx context.Context, o Options, log *journal.Log, state string, n New) (b Begun, err error) {
	past, err := historyOf(log)
	if err != nil {
		return b, err
	}
	if past.unread != nil {
		return b, past.unread
	}
	marked, err := Marked(state)
	if err != nil {
		return b, err
	}
	if b.ID = past.id; past.newest.Epoch == 0 || past.id == "" || past.left { // the record that begins it
		lead := journal.Lead{Epoch: past.newest.Epoch + 1, By: o.By}
		if past.id == "" {
			b.ID = journal.NewID()
			lead.Journal = b.ID
		}
		if _, _, err := log.Append(lead.Entry(o.Now())); err != nil {
			return b, err
		}
	}
	o.ID = b.ID
	m := c.Member(o)
	m.str.begins = true
	if _, err := c.create(ctx, leaseConfig(n.Replicas)); err != nil {
		return b, err
	}
	exists, err := c.create(ctx, m.str.config(n))
	if err != nil {
		return b, err
	}
	if exists && marked != "" {
		return b, fault.Failed("start `sluice daemon --cluster` here; on another machine, `sluice cluster join "+b.ID+"`",
			"this repo has a stream already")
	}
	if err := m.send(ctx, log); err != nil {
		return b, err
	}
	b.Records, _ = log.Last()
	return b, writeMark(state, b.ID)
}

// create creates a stream, unless it exists. Servers that are still starting are waited for.
func (c *Conn) create(ctx context.Context, config jetstream.StreamConfig) (exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, createIn)
	defer cancel()
	for {
		exists, err = c.tryCreate(ctx, config)
		var api *jetstream.APIError
		starting := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &api) && api.ErrorCode == noPeers
		if !starting || !health.Wait(ctx, retryAfter) {
			break
		}
	}
	if err == nil {
		return exists, nil
	}
	advice := fmt.Sprintf("have %s up, with JetStream; for fewer servers give --replicas",
		text.Plural(config.Replicas, "server"))
	return false, fault.Failed(advice, "the servers do not create stream %s: %s", config.Name, why(err))
}

func (c *Conn) tryCreate(ctx context.Context, config jetstream.StreamConfig) (exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestIn)
	defer cancel()
	if _, err = c.js.Stream(ctx, config.Name); errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateStream(ctx, config)
		return false, err
	}
	return err == nil, err
}

// history is what a journal says of its id and its leads.
type history struct {
	id     string // "" = it has none
	newest journal.Lead
	left   bool           // this machine has left since the newest lead
	unread *daemon.Unread // the first record that this release cannot read; nil: there is none
}

func historyOf(log *journal.Log) (h history, err error) {
	err = log.Replay(1, func(r journal.Record) error {
		l, ok := r.Lead()
		if h.id == "" && (ok || r.Seq == 1) {
			h.id = cmp.Or(r.ID(), l.Journal)
		}
		if ok && l.Epoch > h.newest.Epoch {
			h.newest, h.left = l, false
		}
		h.left = h.left || r.Left()
		if h.unread == nil {
			h.unread = daemon.Reads(r)
		}
		return nil
	})
	return h, err
}

// send sends what the stream lacks of the journal. What it has must be the journal's.
func (m *Member) send(ctx context.Context, log *journal.Log) error {
	ctx, cancel := context.WithTimeout(ctx, sendIn)
	defer cancel()
	if err := m.align(ctx, log); err != nil {
		return m.unsent(err)
	}
	for {
		moved, err := m.advance(ctx, log)
		lacks := false
		if err == nil && !moved && m.stalled() == "" {
			if lacks, err = m.refill(ctx, log); err == nil && !lacks {
				return nil
			}
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return m.unsent(err)
		}
	}
}

func (m *Member) unsent(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Failed("fix that, then run `sluice cluster init` again: it sends the rest",
			"the stream does not take the whole journal: %s", cmp.Or(m.stalled(), "it takes too long"))
	}
	return err
}

// Join makes a repo, whose journal is empty or that of the stream, one that this machine may serve. It
// returns the error of clone, if any, for New's Root. The caller has locked the state folder.
func (c *Conn) Join(ctx context.Context, o Options, state string, clone func(root string) error) error {
	if !journal.IsID(o.ID) {
		return fault.Misused("`sluice cluster init` has printed it", "%.80q is no journal's id", o.ID)
	}
	log, _, err := journal.Open(state, journal.Options{Logf: o.Logf})
	if err != nil {
		return err
	}
	m := c.Member(o)
	head, _ := log.Last()
	m.str.joins = head == 0
	err = errors.Join(m.scan(log, true), log.Close())
	for err == nil {
		var info *jetstream.StreamInfo
		var what string
		if info, what, err = m.str.look(ctx); info != nil && err == nil {
			if root := info.Config.Metadata[rootKey]; root != "" {
				if err := clone(root); err != nil {
					return err
				}
			}
			return writeMark(state, o.ID)
		}
		if err == nil && m.str.absent == 0 {
			err = fault.Failed("try again when they answer", "the servers: %s", what)
		}
	}
	return err
}
