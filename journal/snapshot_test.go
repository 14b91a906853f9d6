package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/tools/conform"
)

// snapped returns a disk with a journal of 30 records and snapshots of 10 and 20.
func snapped(t *testing.T) *disk {
	t.Helper()
	d := newDisk(1)
	l := mustOpen(t, stateDir, d)
	for i := range 30 {
		mustAppend(t, l, entry(i+1))
	}
	for _, seq := range []int64{5, 10, 20} {
		if err := l.SaveSnapshot(seq, fmt.Appendf(nil, "state after %d", seq)); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	return d
}

func TestStartCostsWhatFollowsTheSnapshot(t *testing.T) {
	conform.Rule(t, "2-files journal snapshot", "a start reads what follows it")
	d := snapped(t)
	l, rec, err := Open(stateDir, Options{FS: d})
	if err != nil || rec.Snapshot != 20 || rec.Checked != 10 || rec.Records != 30 || len(rec.Ignored) > 0 {
		t.Fatalf("%+v %v", rec, err)
	}
	seq, payload, ok := l.Snapshot()
	if seq != 20 || string(payload) != "state after 20" || !ok {
		t.Fatal(seq, string(payload), ok)
	}
	for _, from := range []int64{-1, 0, 1, 2, 19, 20, 21, 22, 30, 31, 99} {
		var got []int64
		if err := l.Replay(from, func(r Record) error { got = append(got, r.Seq); return nil }); err != nil {
			t.Fatal(err)
		}
		first := max(from, 1)
		if want := max(31-first, 0); int64(len(got)) != want || want > 0 && got[0] != first {
			t.Fatalf("replay from %d: %v", from, got)
		}
	}
	names, _ := d.ReadDir(stateDir)
	if seqs := snapshotSeqs(names); fmt.Sprint(seqs) != "[20 10]" {
		t.Fatal("the newest two should be kept:", seqs)
	}
	// A start checks what follows a snapshot; what precedes it is for Verify.
	bad := func(at int) error {
		d := snapped(t)
		d.contents(FileName)[at] ^= 1
		_, _, err := Open(stateDir, Options{FS: d})
		return err
	}
	var damage *Damage
	if err := bad(int(rec.Bytes) - 50); !errors.As(err, &damage) || damage.Line != 30 || damage.Good != 29 {
		t.Fatal(err)
	}
	if err := bad(50); err != nil {
		t.Fatal(err)
	}
}

func TestReplayEndsWithTheCallersError(t *testing.T) {
	l := mustOpen(t, stateDir, snapped(t))
	stop := errors.New("enough")
	if err := l.Replay(3, func(Record) error { return stop }); err != stop {
		t.Fatal(err)
	}
	l.Close()
	if err := l.Replay(3, func(Record) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// Any flipped bit makes a snapshot unused; the older one is used instead.
func TestDamagedSnapshotIsPassedOver(t *testing.T) {
	conform.Rule(t, "2-files journal snapshot", "a damaged one is passed over")
	d := snapped(t)
	data := d.contents(snapshotName(20))
	for i := range data {
		if i%thin != 0 {
			continue
		}
		for bit := range 8 {
			data[i] ^= 1 << bit
			l, rec, err := Open(stateDir, Options{FS: d})
			if err != nil || rec.Snapshot != 10 || rec.Checked != 20 || len(rec.Ignored) != 1 || rec.Records != 30 {
				t.Fatalf("byte %d bit %d: %+v %v", i, bit, rec, err)
			}
			l.Close()
			data[i] ^= 1 << bit
		}
	}
	for _, name := range []string{snapshotName(20), snapshotName(10)} {
		ino := d.Names[filepath.Join(stateDir, name)]
		ino.Data = ino.Data[:len(ino.Data)/2]
	}
	l, rec, err := Open(stateDir, Options{FS: d})
	if err != nil || rec.Snapshot != 0 || rec.Checked != 30 || len(rec.Ignored) != 2 {
		t.Fatalf("%+v %v", rec, err)
	}
	if _, _, ok := l.Snapshot(); ok {
		t.Fatal("a damaged snapshot was given out")
	}
	if rep, err := Verify(stateDir, Options{FS: d}); err != nil || len(rep.Ignored) != 2 {
		t.Fatal(rep, err)
	}
}

// A journal that does not fit the snapshot is damage, however whole it is; after a look, Repair
// accepts it.
func TestSnapshotOfAnotherJournal(t *testing.T) {
	other := func(n int) []byte {
		var data []byte
		var at point
		for i := range n {
			body, err := appendBody(nil, entry(500+i))
			if err != nil {
				t.Fatal(err)
			}
			data, at = appendLine(data, at, body)
		}
		return data
	}
	whole := snapped(t).contents(FileName)
	cases := []struct {
		name string
		data []byte
		why  string
		good int64
	}{
		{"another journal", other(30), "not the one", 30},
		{"another journal of the same lengths", sameLengths(t), "not the one", 30},
		{"another journal, shorter", other(7), "records were lost", 7},
		{"cut between two records", whole[:bytes.LastIndexByte(whole[:len(whole)/2], '\n')+1], "records were lost", 15},
		{"cut in a record", whole[:len(whole)/2], "records were lost", 15},
		{"empty", nil, "records were lost", 0},
		{"a flipped bit in the snapshot's record", flipped(whole, len(whole)*65/100), "the sum does not match", 19},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := snapped(t)
			ino := d.Names[filepath.Join(stateDir, FileName)]
			ino.Data = bytes.Clone(c.data)
			var damage *Damage
			if _, _, err := Open(stateDir, Options{FS: d}); !errors.As(err, &damage) || !strings.Contains(damage.Why, c.why) {
				t.Fatalf("open: %v, want %s", err, c.why)
			}
			if damage.Good < c.good-2 || damage.Good > c.good+2 {
				t.Fatalf("good %d, want about %d", damage.Good, c.good)
			}
			if !bytes.Equal(ino.Data, c.data) {
				t.Fatal("open changed the journal")
			}
			if _, err := Verify(stateDir, Options{FS: d}); !errors.As(err, new(*Damage)) {
				t.Fatal("verify:", err)
			}
			if _, err := Repair(stateDir, damage.Good, Options{FS: d}); err != nil {
				t.Fatal(err)
			}
			l := mustOpen(t, stateDir, d)
			if seq, _ := l.Last(); seq != damage.Good {
				t.Fatal("after the repair the last record is", seq)
			}
			mustAppend(t, l, entry(1))
		})
	}
	t.Run("gone", func(t *testing.T) {
		d := snapped(t)
		if err := d.Remove(filepath.Join(stateDir, FileName)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(stateDir, Options{FS: d}); !errors.As(err, new(*Damage)) || d.contents(FileName) != nil {
			t.Fatal("a new journal was begun beside the snapshot of an old one:", err)
		}
		if rep, err := Repair(stateDir, 0, Options{FS: d}); err != nil || len(rep.Snapshots) != 2 {
			t.Fatal(rep, err)
		}
		mustAppend(t, mustOpen(t, stateDir, d), entry(1))
	})
}

// sameLengths is a journal like that of snapped, a year later.
func sameLengths(t *testing.T) []byte {
	t.Helper()
	data, _ := writtenOf(t, 30, func(n int) Entry {
		e := entry(n)
		e.At = e.At.AddDate(1, 0, 0)
		return e
	})
	return data
}

// The name of an unreadable snapshot still tells how long the journal was.
func TestDamagedSnapshotOfALongerJournal(t *testing.T) {
	d := snapped(t)
	d.contents(snapshotName(20))[9] ^= 1
	ino := d.Names[filepath.Join(stateDir, FileName)]
	ino.Data = ino.Data[:len(ino.Data)/2]
	if _, _, err := Open(stateDir, Options{FS: d}); !errors.As(err, new(*Damage)) || !strings.Contains(err.Error(), "records were lost") {
		t.Fatal(err)
	}
}

func TestReplayedRecordsAreTheCallers(t *testing.T) {
	data, _ := writtenOf(t, 1500, entry) // more than a buffer
	if len(data) < readBufferBytes {
		t.Fatal("too short")
	}
	l := mustOpen(t, stateDir, with(data))
	var kept []Record
	if err := l.Replay(1, func(r Record) error { kept = append(kept, r); return nil }); err != nil {
		t.Fatal(err)
	}
	for i, r := range kept {
		if n, err := number(r); err != nil || n != i+1 || string(r.Facts[1]) != `{"kind":"round_opened"}` {
			t.Fatalf("record %d became %s %s", i+1, r.Event, r.Facts)
		}
	}
}

func flipped(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 1
	return data
}

func TestSnapshotThatCannotBeSaved(t *testing.T) {
	d := snapped(t)
	l := mustOpen(t, stateDir, d)
	for _, seq := range []int64{-1, 0, 31} {
		if err := l.SaveSnapshot(seq, nil); !errors.Is(err, ErrRefused) {
			t.Fatalf("snapshot of %d: %v", seq, err)
		}
	}
	if err := l.SaveSnapshot(30, make([]byte, MaxSnapshotBytes+1)); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	d.Room = 100
	if err := l.SaveSnapshot(30, []byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	d.Room, d.SyncErr = -1, syscall.EIO
	if err := l.SaveSnapshot(30, []byte("x")); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	// None of it touches the journal or the older snapshots.
	mustAppend(t, l, entry(31))
	if seq, _, ok := l.Snapshot(); seq != 20 || !ok || d.contents(snapshotTemp) != nil {
		t.Fatal(seq, ok)
	}
	if err := l.SaveSnapshot(15, []byte("older")); err != nil || d.contents(snapshotName(15)) != nil {
		t.Fatal("an older snapshot took the place of a newer one:", err)
	}
	if err := l.SaveSnapshot(31, nil); err != nil {
		t.Fatal(err)
	}
	if d.Durable[filepath.Join(stateDir, snapshotName(31))] == nil {
		t.Fatal("the name of a saved snapshot is not synced")
	}
	if seq, payload, ok := l.Snapshot(); seq != 31 || len(payload) != 0 || !ok {
		t.Fatal(seq, payload, ok)
	}
}

func TestLimits(t *testing.T) {
	conform.Rule(t, "style 5", "what the journal takes")
	d := newDisk(1)
	l := mustOpen(t, stateDir, d)
	text := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	longest := MaxLineBytes - lineOverhead
	mustAppend(t, l, Entry{Event: text(longest)})
	mustAppend(t, l, Entry{Event: text(longest - 3), Facts: []json.RawMessage{json.RawMessage(`{}`)}})
	four := []Entry{{Event: text(longest)}, {Event: text(longest)}, {Event: text(longest)}, {Event: text(longest - 100)}}
	many := make([]Entry, MaxBatchEntries+1)
	for i := range many {
		many[i] = entry(i)
	}
	mustAppend(t, l, many[:MaxBatchEntries]...)
	refused := map[string][]Entry{
		"line":       {{Event: text(longest + 1)}},
		"facts":      {{Event: text(longest - 3), Facts: []json.RawMessage{json.RawMessage(`{"":1}`)}}},
		"one fact":   {{Event: text(10), Facts: []json.RawMessage{text(MaxLineBytes + 1)}}},
		"bytes":      append(four, four...),
		"entries":    many,
		"no entries": {},
		"no event":   {{}},
		"no fact":    {{Event: text(3), Facts: []json.RawMessage{nil}}},
		"not JSON":   {entry(1), {Event: json.RawMessage(`{"a":1}}`)}},
		"two values": {{Event: json.RawMessage(`1,"facts":[]`)}},
		"not UTF-8":  {{Event: json.RawMessage("\"\xff\"")}},
		"year":       {{At: entry(1).At.AddDate(9000, 0, 0), Event: text(3)}},
	}
	before, _ := l.Last()
	for name, entries := range refused {
		if _, _, err := l.Append(entries...); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, _ := l.Last(); after != before {
		t.Fatal("something refused was written")
	}
	mustAppend(t, l, four...)
	l.Close()
	if _, rec, err := Open(stateDir, Options{FS: d}); err != nil || rec.Records != before+4 {
		t.Fatal(rec, err)
	}
}
