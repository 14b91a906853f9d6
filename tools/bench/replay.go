//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// The aims of row 6.
const (
	aimSnapshot = 2 * time.Second
	aimReplay   = 2 // times a plain read and decode
)

// A run of the past has so many steps, and is paused and resumed so often in each: so its records have about 300 bytes
// beside their two digests.
const (
	pastSteps  = 40
	pastPauses = 4
)

// longHistory measures a start on a long journal with many live runs, with a snapshot and without.
func longHistory(ctx context.Context, b *bench) (out []figure, err error) {
	records, live := int64(b.count(1_000_000, 2000)), b.count(1000, 3)
	s, err := b.newSite(ctx, b.work, "row6", map[string]string{"ask": gatesSpec("ask", 1)}, "repo")
	if err != nil {
		return nil, err
	}
	defer s.close(&err)
	like, err := likenessOf(ctx, s, "ask", 1)
	if err != nil {
		return nil, err
	}
	file, err := b.writeHistory(ctx, s, like, records, live)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	inbox := filepath.Join(s.repos[0], ".workflow", "signals")
	var with, without, floor samples
	for range b.count(3, 1) {
		d, err := plainRead(file)
		if err != nil {
			return nil, err
		}
		floor = append(floor, d)
		for _, to := range []*samples{&without, &with} {
			d, err := s.untilWatching(ctx, inbox)
			if err == nil {
				err = s.waitHumans(ctx, s.repos[0], live)
			}
			if err = errors.Join(err, s.stop()); err != nil {
				return nil, err
			}
			*to = append(*to, d)
		}
		if err := dropSnapshots(filepath.Dir(file)); err != nil {
			return nil, err
		}
	}
	what := fmt.Sprintf("start with %d records and %d live runs, ", records, live)
	note := fmt.Sprintf("the middle of %d; a journal of %.0f MB, %d bytes a record with its two digests; plain = read, decode the lines and their facts, one goroutine",
		len(with), float64(st.Size())/1e6, st.Size()/records)
	return []figure{
		{what: what + "with a snapshot", got: seconds(with.p50()), beside: seconds(floor.p50()) + " a plain read and decode", ratio: over(with.p50(), floor.p50()),
			aim: "<= " + seconds(aimSnapshot), met: holds(with.p50() <= aimSnapshot)},
		{what: what + "without", got: seconds(without.p50()), beside: seconds(floor.p50()) + " a plain read and decode", ratio: over(without.p50(), floor.p50()),
			aim: fmt.Sprintf("<= %d.0x", aimReplay), met: holds(over(without.p50(), floor.p50()) <= aimReplay), notes: []string{note}},
	}, nil
}

// writeHistory writes the journal: runs that have ended, and at the end those that live.
func (b *bench) writeHistory(ctx context.Context, s *site, like likeness, records int64, live int) (file string, err error) {
	h, err := newHistory(s, like, records)
	if err != nil {
		return "", err
	}
	h.pauses = pastPauses
	past, ask := flowSpec("past", pastSteps), gatesSpec("ask", 1)
	began := time.Now()
	first, err := h.start(ask)
	live1 := h.n // how many records a live run has
	for past1 := int64(0); err == nil && h.n+past1+live1*int64(live-1) < records && ctx.Err() == nil; {
		before := h.n
		_, err = h.start(past)
		past1 = h.n - before
	}
	for i := 1; i < live && err == nil && ctx.Err() == nil; i++ {
		_, err = h.start(ask)
	}
	h.pauses = 1
	for err == nil && h.n < records && ctx.Err() == nil { // the rest
		err = h.pause(first)
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return "", err
	}
	fmt.Fprintf(b.progress, "  a history of %d records was made in %s\n", h.n, seconds(time.Since(began)))
	dir, err := s.state(s.repos[0])
	return filepath.Join(dir, journal.FileName), errors.Join(err, h.end(s))
}

func dropSnapshots(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "snapshot*"))
	for _, f := range old {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// plainRead is the least that a start without a snapshot does: it reads the journal and decodes its facts. It checks nothing
// and keeps nothing.
func plainRead(file string) (time.Duration, error) {
	began := time.Now()
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), journal.MaxLineBytes)
	for lines.Scan() {
		var rec struct {
			Seq       int64             `json:"seq"`
			At        time.Time         `json:"at"`
			Event     json.RawMessage   `json:"event"`
			Facts     []json.RawMessage `json:"facts"`
			Prev, Sum string
		}
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return 0, err
		}
		for _, raw := range rec.Facts {
			if _, err := engine.DecodeFact(raw); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(began), lines.Err()
}
