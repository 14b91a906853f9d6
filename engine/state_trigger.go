package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Limits of triggers.
const (
	MaxArmed      = 200     // workflows whose triggers were ever armed
	MaxFirings    = 1000    // of a workflow that wait for their run to start
	MaxKeys       = 200_000 // that a workflow remembers: for ever, 12 bytes each
	MaxCaughtUp   = 100     // minutes of a schedule that catch_up: all fires
	MaxTips       = 1000    // branches
	MaxKey        = 1000    // bytes of a key
	DefaultPerDay = 100
)

// Why triggers take nothing in.
const (
	FullDay    = "day"    // max_per_day is reached
	FullQueue  = "queue"  // MaxFirings wait
	FullMemory = "memory" // MaxKeys are remembered
)

// Armed is the state of a workflow's triggers, also after they were disarmed.
type Armed struct {
	Digest string    `json:"digest"` // of the spec that they are of
	On     bool      `json:"on"`
	Seq    int64     `json:"seq"` // the clock of its arming or its last opening: names what listens
	At     time.Time `json:"at"`
	By     Actor     `json:"by"`

	Since time.Time `json:"since,omitzero"` // the day's first firing; the day ends 24 h later
	Count int       `json:"count,omitempty"`
	Full  string    `json:"full,omitempty"`
	Held  string    `json:"held,omitempty"`

	Turns   map[string]Turn    `json:"turns,omitempty"`   // of schedules, by Trigger.ID
	Last    map[string]Outcome `json:"last,omitempty"`    // by the trigger's name
	Skipped map[string]Outcome `json:"skipped,omitempty"` // the last that started no run, likewise
	Tips    map[string]string  `json:"tips,omitempty"`    // branch -> the commit that was decided on last
	Firings []*Firing          `json:"firings,omitempty"` // whose run is owed, oldest first
	Known   Keys               `json:"known,omitempty"`
}

// Firing is a key that starts a run.
type Firing struct {
	Trigger string         `json:"trigger"` // its name
	ID      string         `json:"id"`      // of the trigger
	Key     string         `json:"key"`
	At      time.Time      `json:"at"`
	Vars    map[string]any `json:"vars,omitempty"`
	Confirm string         `json:"confirm,omitempty"` // why a person is asked before its first step
}

// Outcome is what became of a key.
type Outcome struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
	Run string    `json:"run,omitempty"`
	Why string    `json:"why,omitempty"`
}

// day is how long max_per_day counts from the first firing.
const day = 24 * time.Hour

// today returns how many firings count at the moment. A clock that was set back opens no new day.
func (a *Armed) today(at time.Time) int {
	if !a.Since.IsZero() && at.Sub(a.Since) >= day {
		return 0
	}
	return a.Count
}

// moment sees when time alone changes something: a schedule's minute, or the end of a full day.
func (a *Armed) moment(m *soonest) {
	if !a.On {
		return
	}
	for _, t := range a.Turns {
		m.see(t.Next)
	}
	switch {
	case a.Full != FullDay:
	case a.Since.After(m.after): // the clock was set back
		m.see(m.after.Add(time.Second))
	default:
		m.see(a.Since.Add(day))
	}
}

// firing returns the waiting firing with the key, or nil.
func (a *Armed) firing(trigger, key string) *Firing {
	if a == nil {
		return nil
	}
	return find(a.Firings, func(f *Firing) bool { return f.Trigger == trigger && f.Key == key })
}

// keyBytes is the length of a remembered digest. Nobody gains by making two keys alike: the second
// starts no run.
const keyBytes = 12

// Keys remembers what has fired, by short digests of trigger and key.
type Keys map[[keyBytes]byte]struct{}

func digestKey(id, key string) (out [keyBytes]byte) {
	sum := sha256.Sum256([]byte(id + "\x00" + key))
	copy(out[:], sum[:])
	return out
}

// Has reports whether the key of the trigger with the id is remembered.
func (k Keys) Has(id, key string) bool {
	_, ok := k[digestKey(id, key)]
	return ok
}

func (k *Keys) add(id, key string) {
	if *k == nil {
		*k = Keys{}
	}
	(*k)[digestKey(id, key)] = struct{}{}
}

// MarshalText writes the digests, sorted, in one text.
func (k Keys) MarshalText() ([]byte, error) {
	var raw []byte
	for _, d := range slices.SortedFunc(maps.Keys(k), func(a, b [keyBytes]byte) int { return bytes.Compare(a[:], b[:]) }) {
		raw = append(raw, d[:]...)
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText reads what MarshalText wrote.
func (k *Keys) UnmarshalText(text []byte) error {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw)%keyBytes != 0 {
		return fmt.Errorf("keys: %d bytes are no digests of %d", len(raw), keyBytes)
	}
	*k = make(Keys, len(raw)/keyBytes)
	for d := range slices.Chunk(raw, keyBytes) {
		(*k)[[keyBytes]byte(d)] = struct{}{}
	}
	return nil
}
