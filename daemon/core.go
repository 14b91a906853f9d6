package daemon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// A start reads the last snapshot and the records after it: at most snapshotEvery, or, with a large
// state, one per snapshotShare bytes of snapshot. Both parts then take about as long to read, and
// signal bursts over a large state do not wait for one snapshot after another.
const (
	snapshotEvery = 2000
	snapshotShare = 1 << 10
)

// Compile compiles a spec's source. Within a release it must return the same result for the same
// source. An error means that this release cannot load it.
type Compile func(source string) (*engine.Spec, error)

// core decides and journals. It has no goroutine and no clock; the loop and the simulation drive
// it.
type core struct {
	log     *journal.Log
	id      string // for the first record of a new journal; "": it has records
	state   *engine.State
	compile Compile
	sources map[string]string       // digest -> source, of every run in the state
	specs   map[string]*engine.Spec // digest -> compiled; nil: this release cannot load it
	unread  map[string]string       // digest -> why
	since   int                     // records since the last snapshot
	every   int                     // minimum records between two snapshots
	saved   int                     // bytes of the last snapshot
	pending []entry                 // decided, not journaled yet
	lastAt  time.Time               // of the last record read back
	led     int64                   // the epoch of the newest lead that no machine has left since
	ahead   time.Duration           // the own clock of that record's, as the leads after it say
}

type entry struct {
	at    time.Time
	event engine.Event
	facts []engine.Fact
	rec   journal.Record // as written
}

// snapshot is a snapshot's payload.
type snapshot struct {
	Led     int64             `json:"led,omitempty"`
	State   *engine.State     `json:"state"`
	Sources map[string]string `json:"sources"`
}

func openCore(dir string, opt journal.Options, compile Compile) (*core, journal.Recovery, error) {
	log, rec, err := journal.Open(dir, opt)
	if err != nil {
		return nil, rec, err
	}
	c, err := coreOf(log, compile)
	return c, rec, err
}

// coreOf restores the state from an open journal. On an error it closes the journal.
func coreOf(log *journal.Log, compile Compile) (*core, error) {
	c := newCore(log, compile)
	if err := c.restore(); err != nil {
		log.Close()
		return nil, err
	}
	return c, nil
}

func newCore(log *journal.Log, compile Compile) *core {
	return &core{log: log, compile: compile, every: snapshotEvery}
}

// restore applies the newest snapshot and the records after it to a new state. On a *Unread the state is
// that before its record.
func (c *core) restore() error {
	c.state, c.sources = engine.NewState(), map[string]string{}
	c.specs, c.unread, c.pending, c.since = map[string]*engine.Spec{}, map[string]string{}, nil, 0
	from := int64(1)
	if seq, payload, ok := c.log.Snapshot(); ok {
		snap := snapshot{State: engine.NewState()}
		if err := json.Unmarshal(payload, &snap); err != nil {
			return fmt.Errorf("snapshot after record %d: it is whole but cannot be read by this release: %w", seq, err)
		}
		c.state, c.led, c.saved, from = snap.State, snap.Led, len(payload), seq+1
		for digest, source := range snap.Sources {
			c.learn(digest, source)
		}
	}
	return c.log.Replay(from, c.replayed)
}

// replayed applies a record. On a *Unread it applies nothing.
func (c *core) replayed(rec journal.Record) error {
	facts, err := decodeFacts(rec)
	if err != nil {
		return err
	}
	c.since++
	if l, ok := rec.Lead(); ok {
		c.led, c.ahead = l.Epoch, c.ahead+time.Duration(l.Ahead)*time.Millisecond
	} else if rec.Left() {
		c.led = 0
	} else if len(facts) > 0 { // decided after the times were shifted
		c.lastAt, c.ahead = rec.At, 0
	}
	c.fold(rec.At, facts)
	return nil
}

func (c *core) fold(at time.Time, facts []engine.Fact) {
	for _, f := range facts {
		switch f := f.(type) {
		case engine.RunStarted:
			if f.Child == nil {
				c.learn(f.Digest, f.Source)
			}
		case engine.TriggersArmed:
			c.learn(f.Digest, f.Source)
		}
		c.state.Apply(at, f)
		switch f.(type) {
		case engine.RunForgotten, engine.TriggersArmed:
			c.unlearn()
		}
	}
}

// sourceOf returns the source of a run's top run; "" if it is unknown.
func (c *core) sourceOf(r *engine.Run) string {
	digest, _, _ := strings.Cut(r.Digest, "/")
	return c.sources[digest]
}

// learn keeps a spec's source and compiles it.
func (c *core) learn(digest, source string) {
	if _, ok := c.sources[digest]; ok {
		return
	}
	c.sources[digest] = source
	spec, err := c.compile(source)
	if err != nil {
		c.unread[digest] = err.Error()
		return
	}
	spec.Digest = digest
	c.specs[digest] = spec
}

// unlearn drops the specs that no run in the state uses.
func (c *core) unlearn() {
	used := map[string]bool{}
	for _, r := range c.state.Runs {
		base, _, _ := strings.Cut(r.Digest, "/") // of a child: its top run's
		used[base] = true
	}
	for _, a := range c.state.Armed {
		used[a.Digest] = true
	}
	for digest := range c.sources {
		if !used[digest] {
			delete(c.sources, digest)
			delete(c.specs, digest)
			delete(c.unread, digest)
		}
	}
}

func (c *core) spec(digest string) *engine.Spec {
	return engine.Specs(func(d string) *engine.Spec { return c.specs[d] }).Of(digest)
}

// take decides on an event. The decision stays in pending until commit.
func (c *core) take(ev engine.Event, at time.Time) []engine.Fact {
	digest, source := specOf(ev)
	if digest != "" {
		c.learn(digest, source)
	}
	facts := engine.Decide(c.state, c.spec, ev, at)
	if _, armed := ev.(engine.ArmRequested); digest != "" && (armed ||
		!slices.ContainsFunc(facts, func(f engine.Fact) bool { _, ok := f.(engine.RunStarted); return ok })) {
		c.unlearn() // no run was started with it, or others are armed no more
	}
	if len(facts) > 0 {
		c.pending = append(c.pending, entry{at: at.UTC(), event: ev, facts: facts})
	}
	return facts
}

// specOf returns the spec that an event brings; "" if it brings none.
func specOf(ev engine.Event) (digest, source string) {
	switch ev := ev.(type) {
	case engine.RunRequested:
		return ev.Digest, ev.Source
	case engine.ArmRequested:
		return ev.Digest, ev.Source
	case engine.FiringRead:
		return ev.Run.Digest, ev.Run.Source
	}
	return "", ""
}

// commit journals what is pending and returns the records as written, with their events. On
// journal.ErrStalled call it again; act on nothing before it succeeds. Any other error is final.
func (c *core) commit() ([]entry, error) {
	var done []entry
	for len(c.pending) > 0 {
		batch, err := c.batch()
		if err != nil {
			return done, err
		}
		records, err := c.log.AppendRecords(batch...)
		if err != nil {
			return done, err
		}
		for i, rec := range records {
			c.pending[i].rec = rec
		}
		done = append(done, c.pending[:len(records)]...)
		c.since += len(records)
		c.pending = c.pending[len(records):]
	}
	return done, nil
}

// batch encodes as many pending entries as one append takes.
func (c *core) batch() ([]journal.Entry, error) {
	var out []journal.Entry
	size := 0
	for _, e := range c.pending {
		ev, err := engine.EncodeEvent(slim(e.event))
		if err != nil {
			return nil, err
		}
		if seq, _ := c.log.Last(); seq == 0 && len(out) == 0 && c.id != "" {
			ev = journal.WithID(ev, c.id)
		}
		one := journal.Entry{At: e.at, Event: ev}
		size += len(ev)
		for _, f := range e.facts {
			raw, err := engine.EncodeFact(f)
			if err != nil {
				return nil, err
			}
			one.Facts = append(one.Facts, raw)
			size += len(raw)
		}
		if len(out) > 0 && (size > journal.MaxBatchBytes/2 || len(out) == journal.MaxBatchEntries) {
			break
		}
		out = append(out, one)
	}
	return out, nil
}

// slim drops from an event what its facts repeat: a run's first line would hold its spec twice.
func slim(ev engine.Event) engine.Event {
	switch ev := ev.(type) {
	case engine.RunRequested:
		ev.Source, ev.Stubs = "", nil
		return ev
	case engine.FileSeen: // what counts is in the facts; the file itself is kept
		ev.Sentinel, ev.Human = nil, nil
		return ev
	case engine.Answered:
		ev.Proof = ""
		return ev
	case engine.TasksSeen:
		ev.Tasks = nil
		return ev
	case engine.ProcessEnded:
		ev.Output, ev.Answer = "", nil
		return ev
	case engine.ArmRequested:
		ev.Source, ev.Known = "", nil
		return ev
	case engine.Fired:
		ev.Values = nil
		return ev
	case engine.FiringRead:
		ev.Run.Source = ""
		return ev
	}
	return ev
}

// snapshotDue reports whether a snapshot is worth its cost. It covers the whole state, so a larger
// state may have more records to read at a start.
func (c *core) snapshotDue() bool { return c.since >= max(c.every, c.saved/snapshotShare) }

// save writes a snapshot of the journaled state. It does nothing while entries are pending.
func (c *core) save() error {
	if len(c.pending) > 0 || c.since == 0 {
		return nil
	}
	payload, err := json.Marshal(snapshot{Led: c.led, State: c.state, Sources: c.sources})
	if err != nil {
		return err
	}
	seq, _ := c.log.Last()
	if err := c.log.SaveSnapshot(seq, payload); err != nil {
		return err
	}
	c.since, c.saved = 0, len(payload)
	return nil
}
