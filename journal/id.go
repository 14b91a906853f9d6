package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"sluice/internal/ids"
)

// A journal's id is random, and stays the same wherever the journal is kept. It is the member
// "journal" of the event of the first record. A journal of an older release has none there; it gets
// one in a later record, once several machines keep it.

const idBytes = 16

// errFound ends a Replay that has found what it looked for.
var errFound = errors.New("found")

// NewID returns an id for a new journal.
func NewID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// IsID reports whether s is an id as NewID returns them.
func IsID(s string) bool { return ids.Hex(s, idBytes) }

// WithID returns an event, a JSON object, with the journal's id as its first member.
func WithID(event json.RawMessage, id string) json.RawMessage {
	rest := bytes.TrimSpace(event)[1:]
	out := append([]byte(`{"journal":"`+id+`"`), ","...)
	if len(bytes.TrimSpace(rest)) == 1 { // "}"
		out = out[:len(out)-1]
	}
	return append(out, rest...)
}

// ID returns the journal's id if the record has it; "" = it has not.
func (r Record) ID() string {
	if !bytes.Contains(r.Event, []byte(`"journal"`)) {
		return ""
	}
	var e struct {
		Journal string `json:"journal"`
	}
	if json.Unmarshal(r.Event, &e) != nil || !IsID(e.Journal) {
		return ""
	}
	return e.Journal
}

// ID returns the id in the journal's first record; "" = it has none.
func (l *Log) ID() (id string, err error) {
	err = l.Replay(1, func(r Record) error {
		id = r.ID()
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return id, err
}

// Lead is the event of a record, without facts, that a machine appends when it begins to decide for
// a journal that several machines keep. Epochs count from 1, upwards.
type Lead struct {
	Kind    string `json:"kind"` // leadKind
	Epoch   int64  `json:"epoch"`
	By      string `json:"by"`                // the machine, for people
	Journal string `json:"journal,omitempty"` // the id, where the first record has none
	// how far its clock is ahead of that of the machine before, in milliseconds; 0: not known, or little
	Ahead int64 `json:"ahead_ms,omitempty"`
}

// MaxAhead is the most that the clocks of two machines may differ.
const MaxAhead = 365 * 24 * time.Hour

// Left is the event of a record, without facts, that a machine appends to its own file when it goes
// on alone: the lead before it holds no more.
type Left struct {
	Kind  string `json:"kind"`  // leftKind
	Epoch int64  `json:"epoch"` // of that lead
	By    string `json:"by"`
}

const (
	leadKind = "lead_taken"
	leftKind = "left"
)

// Entry returns the entry of a lead that begins now.
func (l Lead) Entry(now time.Time) Entry {
	l.Kind = leadKind
	return entryOf(l, now)
}

// Entry returns the entry of a machine that leaves now.
func (l Left) Entry(now time.Time) Entry {
	l.Kind = leftKind
	return entryOf(l, now)
}

func entryOf(event any, now time.Time) Entry {
	raw, err := json.Marshal(event)
	if err != nil {
		panic("journal: an event cannot be encoded: " + err.Error())
	}
	return Entry{At: now, Event: raw}
}

// Left reports whether a machine has left with this record.
func (r Record) Left() bool {
	var l Left
	return len(r.Facts) == 0 && bytes.Contains(r.Event, []byte(leftKind)) && json.Unmarshal(r.Event, &l) == nil &&
		l.Kind == leftKind && l.Epoch > 0
}

// Lead returns the lead that the record begins; ok is false for any other record.
func (r Record) Lead() (l Lead, ok bool) {
	if len(r.Facts) > 0 || !bytes.Contains(r.Event, []byte(leadKind)) {
		return l, false
	}
	const most = int64(MaxAhead / time.Millisecond)
	return l, json.Unmarshal(r.Event, &l) == nil && l.Kind == leadKind && l.Epoch > 0 &&
		-most <= l.Ahead && l.Ahead <= most
}

// IDIn returns the id at the beginning of the journal in a state folder, without opening it; "" = it
// has none there, or there is no journal.
func IDIn(dir string) string {
	f, err := os.Open(path(dir, FileName))
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 128)
	n, _ := io.ReadFull(f, head) // a shorter one has no id
	_, rest, _ := bytes.Cut(head[:n], []byte(`Z","event":{"journal":"`))
	if !bytes.HasPrefix(head, []byte(`{"seq":1,"at":"`)) || len(rest) < 2*idBytes || !IsID(string(rest[:2*idBytes])) {
		return ""
	}
	return string(rest[:2*idBytes])
}
