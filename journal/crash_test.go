package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

const stateDir = "/state/repo"

func entry(n int) Entry {
	return Entry{
		At:    time.Date(2026, 5, 1, 12, 0, 0, n, time.UTC),
		Event: json.RawMessage(fmt.Sprintf(`{"kind":"signal","n":%d,"pad":%q}`, n, strings.Repeat("x", n%90))),
		Facts: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"kind":"step_done","n":%d}`, n)), json.RawMessage(`{"kind":"round_opened"}`)},
	}
}

// number returns the n that entry put into a record.
func number(r Record) (int, error) {
	var e struct{ N int }
	err := json.Unmarshal(r.Event, &e)
	return e.N, err
}

// lives runs a journal through random lives, each ended by a power cut at a random operation, with
// full disks in between. It returns an error if an acknowledged record is lost or a refused one
// appears.
func lives(d *disk) error {
	var acked []int // the n of each record that must exist, in order
	next := 0
	for life := range 12 {
		if life < 11 {
			d.DieAt = d.Rand.IntN(120)
		}
		acked2, n, err := oneLife(d, acked, next)
		if err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
		acked, next = acked2, n
		d.crash()
	}
	return nil
}

func oneLife(d *disk, acked []int, next int) ([]int, int, error) {
	l, _, err := Open(stateDir, Options{FS: d})
	if d.Dead {
		return acked, next, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open: %w", err)
	}
	acked, err = atStart(d, l, acked, next)
	if err != nil || d.Dead {
		return acked, next, err
	}
	for range 30 {
		batch := make([]Entry, 1+d.Rand.IntN(3))
		for i := range batch {
			batch[i] = entry(next + i)
		}
		// Above 3, so that refused and running ones differ.
		from := next
		next += 10
		d.Room = -1
		if d.Rand.IntN(4) == 0 {
			d.Room = d.Rand.IntN(300)
		}
		_, last, err := l.Append(batch...)
		if d.Dead {
			next = from + 3
			return acked, next, nil
		}
		d.Room = -1
		switch {
		case err == nil:
			for i := range batch {
				acked = append(acked, from+i)
			}
			if last != int64(len(acked)) {
				return nil, 0, fmt.Errorf("last is %d, %d were acknowledged", last, len(acked))
			}
		case !errors.Is(err, ErrStalled) || !errors.Is(err, syscall.ENOSPC):
			return nil, 0, fmt.Errorf("append: %w", err)
		}
		if d.Rand.IntN(8) == 0 && len(acked) > 0 {
			err := l.SaveSnapshot(int64(len(acked)), fmt.Append(nil, acked))
			if d.Dead {
				return acked, next, nil
			}
			if err != nil {
				return nil, 0, fmt.Errorf("snapshot: %w", err)
			}
		}
	}
	return acked, next, nil
}

// atStart checks the journal at the start of a life against what was acknowledged.
func atStart(d *disk, l *Log, acked []int, next int) ([]int, error) {
	// A crash leaves the acknowledged records, followed by at most the first of the running ones.
	var found []int
	if err := l.Replay(1, func(r Record) error {
		n, err := number(r)
		found = append(found, n)
		return err
	}); err != nil {
		if d.Dead {
			return acked, nil
		}
		return nil, fmt.Errorf("replay: %w", err)
	}
	if len(found) < len(acked) {
		return nil, fmt.Errorf("%d records were acknowledged, %d are there", len(acked), len(found))
	}
	for i, n := range acked {
		if found[i] != n {
			return nil, fmt.Errorf("record %d is %d, acknowledged was %d", i+1, found[i], n)
		}
	}
	for i := len(acked); i < len(found); i++ {
		if found[i] < next-3 || i > len(acked) && found[i] != found[i-1]+1 {
			return nil, fmt.Errorf("record %d is %d, which was refused or never given", i+1, found[i])
		}
	}
	if seq, payload, ok := l.Snapshot(); ok && string(payload) != fmt.Sprint(found[:seq]) && !d.Dead {
		return nil, fmt.Errorf("the snapshot of %d is %q", seq, payload)
	}
	return found, nil
}

func TestCrashesLoseNothingAcknowledged(t *testing.T) {
	conform.Rule(t, "2-files journal sync", "what was acknowledged survives every crash")
	conform.Rule(t, "field ask 9", "a crash loses nothing")
	t.Parallel()
	for seed := range uint64(120 / thin) {
		if err := lives(newDisk(seed)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The mutant: without a sync the same test must fail, or it tests nothing.
func TestCrashesFindMissingSync(t *testing.T) {
	conform.Rule(t, "2-files journal sync", "without the sync the crashes lose lines")
	for seed := range uint64(50) {
		d := newDisk(seed)
		d.Lie = true
		if err := lives(d); err != nil {
			t.Logf("seed %d: %v", seed, err)
			return
		}
	}
	t.Fatal("a journal that never syncs was not found")
}

func mustOpen(t testing.TB, dir string, fsys FS) *Log {
	t.Helper()
	l, _, err := Open(dir, Options{FS: fsys, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func mustAppend(t testing.TB, l *Log, entries ...Entry) {
	t.Helper()
	if _, _, err := l.Append(entries...); err != nil {
		t.Fatal(err)
	}
}

func numbers(t testing.TB, l *Log) []int {
	t.Helper()
	var got []int
	if err := l.Replay(1, func(r Record) error {
		n, err := number(r)
		got = append(got, n)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// A full disk accepts part of a batch: none of it stays, and the same call succeeds once there is
// room.
func TestFullDiskStallsAndGoesOn(t *testing.T) {
	conform.Rule(t, "2-files journal full disk", "a batch cut back, stalled, going on by itself")
	for room := range 700 {
		d := newDisk(1)
		l := mustOpen(t, stateDir, d)
		mustAppend(t, l, entry(1))
		d.Room = room
		batch := []Entry{entry(2), entry(3)}
		_, _, err := l.Append(batch...)
		if !errors.Is(err, ErrStalled) || !errors.Is(err, syscall.ENOSPC) {
			if size, _ := l.file.Size(); err == nil && size == l.head.end && room > 500 {
				return // it fits
			}
			t.Fatalf("room for %d bytes: %v", room, err)
		}
		if seq, _ := l.Last(); seq != 1 {
			t.Fatalf("last is %d", seq)
		}
		rep, err := Verify(stateDir, Options{FS: d})
		if err != nil || rep.Records != 1 || rep.PartialBytes != 0 {
			t.Fatalf("room for %d bytes: %+v %v", room, rep, err)
		}
		d.Room = -1
		mustAppend(t, l, batch...)
		if got := numbers(t, l); fmt.Sprint(got) != "[1 2 3]" {
			t.Fatalf("room for %d bytes: %v", room, got)
		}
	}
	t.Fatal("the batch never fitted")
}

// If the cut after a failed write fails too, it is made before the next append. Otherwise half a
// line would stay in the middle.
func TestFailedCutIsTriedAgain(t *testing.T) {
	conform.Rule(t, "2-files journal full disk", "the cut back is made before the next append")
	d := newDisk(1)
	l := mustOpen(t, stateDir, d)
	mustAppend(t, l, entry(1))
	d.Room, d.TruncErr = 50, syscall.EIO
	for range 3 {
		if _, _, err := l.Append(entry(2)); !errors.Is(err, ErrStalled) {
			t.Fatal(err)
		}
	}
	d.Room = -1
	if _, _, err := l.Append(entry(2)); !errors.Is(err, ErrStalled) || !errors.Is(err, syscall.EIO) {
		t.Fatal("appended over half a line:", err)
	}
	d.TruncErr = nil
	mustAppend(t, l, entry(2))
	if rep, err := Verify(stateDir, Options{FS: d}); err != nil || rep.Records != 2 {
		t.Fatal(rep, err)
	}
}

// shortFS writes less than it was given without an error.
type shortFS struct{ *disk }

func (s shortFS) Create(name string) (File, error) {
	f, err := s.disk.Create(name)
	return shortFile{f}, err
}

type shortFile struct{ File }

func (f shortFile) WriteAt(p []byte, off int64) (int, error) {
	return f.File.WriteAt(p[:len(p)/2], off)
}

func TestSilentShortWriteIsAFailedWrite(t *testing.T) {
	l := mustOpen(t, stateDir, shortFS{newDisk(1)})
	if _, _, err := l.Append(entry(1)); !errors.Is(err, ErrStalled) || !errors.Is(err, io.ErrShortWrite) {
		t.Fatal(err)
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	conform.Rule(t, "2-files journal failed sync", "never tried again on the same file")
	d := newDisk(1)
	l := mustOpen(t, stateDir, d)
	mustAppend(t, l, entry(1))
	d.SyncErr = syscall.EIO
	if _, _, err := l.Append(entry(2)); !errors.Is(err, ErrSyncFailed) || !errors.Is(err, syscall.EIO) || errors.Is(err, ErrStalled) {
		t.Fatal(err)
	}
	before := d.Syncs
	if _, _, err := l.Append(entry(3)); !errors.Is(err, ErrSyncFailed) {
		t.Fatal("it went on after a failed sync:", err)
	}
	if err := l.SaveSnapshot(1, nil); !errors.Is(err, ErrSyncFailed) {
		t.Fatal(err)
	}
	if err := l.Replay(1, func(Record) error { return nil }); !errors.Is(err, ErrSyncFailed) {
		t.Fatal(err)
	}
	if d.Syncs != before {
		t.Fatal("the sync was tried again")
	}
	// Also if the sync of a cut fails.
	d = newDisk(2)
	l = mustOpen(t, stateDir, d)
	d.Room, d.SyncErr = 10, syscall.EIO
	if _, _, err := l.Append(entry(1)); !errors.Is(err, ErrSyncFailed) {
		t.Fatal(err)
	}
}

func TestSecondWriterIsNoticed(t *testing.T) {
	conform.Rule(t, "2-files journal one writer", "a second writer is noticed")
	d := newDisk(1)
	a := mustOpen(t, stateDir, d)
	b := mustOpen(t, stateDir, d)
	mustAppend(t, a, entry(1))
	if _, _, err := b.Append(entry(2)); !errors.Is(err, ErrForeign) {
		t.Fatal(err)
	}
	if _, _, err := b.Append(entry(2)); !errors.Is(err, ErrForeign) {
		t.Fatal(err)
	}
	mustAppend(t, a, entry(3))
	if rep, err := Verify(stateDir, Options{FS: d}); err != nil || rep.Records != 2 {
		t.Fatal(rep, err)
	}
}
