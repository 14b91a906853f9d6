package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
	"sluice/tools/faultdisk"
)

// written returns the bytes of a journal of n records and the offset after each of them.
func written(t testing.TB, n int) (data []byte, ends []int64) {
	t.Helper()
	return writtenOf(t, n, entry)
}

func writtenOf(t testing.TB, n int, entry func(int) Entry) (data []byte, ends []int64) {
	t.Helper()
	ends = []int64{0}
	var at point
	for i := range n {
		body, err := appendBody(nil, entry(i+1))
		if err != nil {
			t.Fatal(err)
		}
		data, at = appendLine(data, at, body)
		ends = append(ends, at.end)
	}
	return data, ends
}

// with stores data on a disk as the journal, as if it had always been there.
func with(data []byte) *disk {
	d := newDisk(1)
	d.Names[filepath.Join(stateDir, FileName)] = &faultdisk.Inode{Data: bytes.Clone(data), Durable: bytes.Clone(data)}
	return d
}

func (d *disk) contents(name string) []byte {
	if ino := d.Names[filepath.Join(stateDir, name)]; ino != nil {
		return ino.Data
	}
	return nil
}

func TestTruncatedAtEveryByte(t *testing.T) {
	conform.Rule(t, "2-files journal torn", "a journal cut at any byte opens up to its last whole line")
	t.Parallel()
	data, ends := writtenOf(t, 100, func(n int) Entry { return Entry{Event: json.RawMessage(fmt.Sprint(n))} })
	whole := 0
	for n := range len(data) + 1 {
		if whole < 100 && int64(n) == ends[whole+1] {
			whole++
		}
		if n%thin != 0 {
			continue
		}
		d := with(data[:n])
		l, rec, err := Open(stateDir, Options{FS: d})
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		torn := int64(n) - ends[whole]
		if seq, _ := l.Last(); seq != int64(whole) || rec.Records != seq || rec.Bytes != ends[whole] || rec.TornBytes != torn {
			t.Fatalf("cut at %d: last %d, want %d; %+v", n, seq, whole, rec)
		}
		if !bytes.Equal(d.contents(FileName), data[:ends[whole]]) {
			t.Fatalf("cut at %d: the journal is not the whole records", n)
		}
		if torn > 0 {
			name := fmt.Sprintf("journal.torn-%d", ends[whole])
			if rec.TornFile != filepath.Join(stateDir, name) || !bytes.Equal(d.contents(name), data[ends[whole]:n]) {
				t.Fatalf("cut at %d: the torn bytes are not in %s: %+v", n, name, rec)
			}
		}
		if n%97 == 0 { // and it continues
			mustAppend(t, l, entry(1000))
			if rep, err := Verify(stateDir, Options{FS: d}); err != nil || rep.Records != int64(whole)+1 {
				t.Fatalf("cut at %d: %+v %v", n, rep, err)
			}
		}
		l.Close()
	}
}

// Open itself finds every flipped bit, also in the last line.
func TestEveryFlippedBitIsFound(t *testing.T) {
	conform.Rule(t, "2-files journal chain", "every flipped bit is found")
	conform.Rule(t, "2-files journal damage", "damage is refused, nothing changed")
	t.Parallel()
	data, ends := written(t, 17)
	if len(data) < 5000 {
		t.Fatalf("only %d bytes", len(data))
	}
	line := 0
	for i := range data {
		for int64(i) >= ends[line+1] {
			line++
		}
		if i%thin != 0 && data[i] != '\n' {
			continue
		}
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << bit
			d := with(bad)
			_, _, err := Open(stateDir, Options{FS: d})
			var damage *Damage
			if !errors.As(err, &damage) {
				t.Fatalf("byte %d (%q) bit %d: %v", i, data[i], bit, err)
			}
			if damage.Line != int64(line+1) || damage.Offset != ends[line] || damage.Good != int64(line) {
				t.Fatalf("byte %d bit %d: %v, want line %d, offset %d", i, bit, damage, line+1, ends[line])
			}
			if !bytes.Equal(d.contents(FileName), bad) || len(d.Names) != 1 {
				t.Fatalf("byte %d bit %d: open changed something", i, bit)
			}
			if bit > 0 {
				continue
			}
			if _, verr := Verify(stateDir, Options{FS: d}); !errors.As(verr, &damage) {
				t.Fatalf("byte %d bit %d: verify: %v", i, bit, verr)
			}
		}
	}
}

func TestTails(t *testing.T) {
	conform.Rule(t, "2-files journal torn", "which tails are torn and which are damage")
	data, ends := written(t, 3)
	last := data[ends[2]:]
	cases := []struct {
		name   string
		data   []byte
		last   int64 // -1: damage
		kept   string
		reason string
	}{
		{"zeros after the last line", append(bytes.Clone(data), make([]byte, 5000)...), 3, "", ""},
		{"more zeros than a line may have", append(bytes.Clone(data), make([]byte, MaxLineBytes+70_000)...), 3, "", ""},
		{"half a line, then zeros", append(bytes.Clone(data[:ends[2]+50]), make([]byte, 600)...), 2, string(last[:50]), ""},
		{"zeros in the place of the newline", append(bytes.Clone(data[:ends[3]-1]), 0, 0), 2, string(last[:len(last)-1]), ""},
		{"only zeros", make([]byte, 4096), 0, "", ""},
		{"zeros in the middle of half a line", append(append(bytes.Clone(data[:ends[2]+50]), make([]byte, 600)...), "x"...), 2, string(last[:50]) + strings.Repeat("\x00", 600) + "x", ""},
		{"an empty line at the end", append(bytes.Clone(data), '\n'), -1, "", "too short"},
		{"zeros, then a newline", append(bytes.Clone(data), 0, 0, '\n'), -1, "", "too short"},
		{"zeros, then a line", append(append(bytes.Clone(data[:ends[2]]), make([]byte, 99)...), last...), -1, "", "the sum does not match"},
		{"the newline of the last line but one is gone", append(bytes.Clone(data[:ends[2]-1]), last[:80]...), -1, "", "something else than a newline"},
		{"half a line over the limit", append(bytes.Clone(data), bytes.Repeat([]byte("x"), MaxLineBytes+1)...), -1, "", "longer than"},
		{"a whole line over the limit", append(append(bytes.Clone(data), bytes.Repeat([]byte("x"), MaxLineBytes)...), '\n'), -1, "", "longer than"},
		{"a line missing in the middle", append(bytes.Clone(data[:ends[1]]), last...), -1, "", "seq 3 where 2 should be"},
		{"the first line missing", data[ends[1]:], -1, "", "seq 2 where 1 should be"},
		{"a line twice", append(bytes.Clone(data), last...), -1, "", "seq 3 where 4 should be"},
		{"carriage returns", bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), -1, "", "does not end in a sum"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := with(c.data)
			l, rec, err := Open(stateDir, Options{FS: d})
			var damage *Damage
			if c.last < 0 {
				if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.reason) {
					t.Fatalf("got %v, want damage: %s", err, c.reason)
				}
				return
			}
			if err != nil || rec.Records != c.last {
				t.Fatal(rec, err)
			}
			if got := string(d.contents(filepath.Base(rec.TornFile))); got != c.kept {
				t.Fatalf("kept %q, want %q", got, c.kept)
			}
			mustAppend(t, l, entry(9))
		})
	}
}

// A journal rewritten from some record on, with valid sums, is found by the chain, a snapshot or a
// checkpoint.
func TestForgedRecord(t *testing.T) {
	conform.Rule(t, "2-files journal chain", "a record forged with all sums right")
	data, ends := written(t, 5)
	body, err := appendBody(nil, entry(77))
	if err != nil {
		t.Fatal(err)
	}
	file, err := with(data).Open(filepath.Join(stateDir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	first := newScanner(file, "journal", point{}, ends[5])
	for range 2 {
		if _, err := first.next(); err != nil {
			t.Fatal(err)
		}
	}
	forged, _ := appendLine(bytes.Clone(data[:ends[2]]), first.at, body)
	_, err = Verify(stateDir, Options{FS: with(append(forged, data[ends[3]:]...))})
	var damage *Damage
	if !errors.As(err, &damage) || damage.Line != 4 || !strings.Contains(damage.Why, "prev") {
		t.Fatal(err)
	}
	d := with(data)
	rep, err := Verify(stateDir, Options{FS: d})
	if err != nil {
		t.Fatal(err)
	}
	note := Checkpoint{5, rep.LastSum}
	if _, err := Verify(stateDir, Options{FS: d}, note); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(stateDir, Options{FS: d}, note, Checkpoint{3, note.Sum}); !errors.As(err, &damage) || damage.Line != 3 {
		t.Fatal("a checkpoint with another sum passed:", err)
	}
	if _, err := Verify(stateDir, Options{FS: d}, note, Checkpoint{5, strings.Repeat("0", 64)}); err == nil {
		t.Fatal("two checkpoints of one record passed")
	}
	for _, bad := range [][]byte{forged, data[:ends[4]], nil} {
		if _, err := Verify(stateDir, Options{FS: with(bad)}, note); !errors.As(err, &damage) {
			t.Fatal("a journal without the checkpoint's record passed:", err)
		}
	}
}

func TestRepair(t *testing.T) {
	conform.Rule(t, "2-files journal damage", "repair cuts back, after a look")
	data, ends := written(t, 20)
	dir := t.TempDir()
	name := filepath.Join(dir, FileName)
	bad := bytes.Clone(data)
	bad[ends[12]+40] ^= 1
	if err := os.WriteFile(name, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []int64{13, 20, 99, -1} {
		if _, err := Repair(dir, to, Options{}); !errors.Is(err, ErrNoRecord) {
			t.Fatalf("to %d: %v", to, err)
		}
	}
	if got, _ := os.ReadFile(name); !bytes.Equal(got, bad) {
		t.Fatal("a refused repair changed the journal")
	}
	var damage *Damage
	if _, _, err := Open(dir, Options{}); !errors.As(err, &damage) || damage.Good != 12 || !strings.Contains(err.Error(), "repair --to 12") {
		t.Fatal(err)
	}
	rep, err := Repair(dir, damage.Good, Options{})
	if err != nil || rep.Last != 12 || rep.CutBytes != ends[20]-ends[12] {
		t.Fatal(rep, err)
	}
	if got, err := os.ReadFile(rep.CutFile); err != nil || !bytes.Equal(got, bad[ends[12]:]) {
		t.Fatal("what was cut is not kept:", err)
	}
	l := mustOpen(t, dir, nil)
	mustAppend(t, l, entry(99))
	l.Close()
	again, err := Repair(dir, 13, Options{})
	if err != nil || again.CutBytes != 0 || again.CutFile != "" {
		t.Fatal(again, err)
	}
	if again, err = Repair(dir, 12, Options{}); err != nil || again.CutFile == rep.CutFile {
		t.Fatal("a second cut in the same second wrote over the first:", again, err)
	}
	if again, err = Repair(dir, 0, Options{}); err != nil || again.CutBytes != ends[12] {
		t.Fatal(again, err)
	}
}

// Beside a working writer, Verify never reports damage.
func TestVerifyBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, nil)
	done := make(chan error)
	go func() {
		for i := range 400 {
			if _, _, err := l.Append(entry(i), entry(i)); err != nil {
				done <- err
				return
			}
			if i%50 == 49 {
				if err := l.SaveSnapshot(int64(i), nil); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if rep, err := Verify(dir, Options{}); err != nil || rep.Records != 800 || len(rep.Snapshots) != KeptSnapshots {
				t.Fatal(rep, err)
			}
			return
		default:
			if rep, err := Verify(dir, Options{}); err != nil {
				t.Fatal(rep, err)
			}
		}
	}
}

func TestRecordComesBackAsItWas(t *testing.T) {
	d := newDisk(1)
	l := mustOpen(t, stateDir, d)
	zone := time.FixedZone("east", 7200)
	entries := []Entry{
		{At: time.Date(2026, 12, 31, 23, 59, 59, 7, zone), Event: json.RawMessage(`{"a":"},\"sum\":\"x\"}\\"}`)},
		{At: time.Unix(0, 0), Event: json.RawMessage(" {\"b\": [1,\n\t{\"c\":\"\u2028 ü\"}]}\n"), Facts: []json.RawMessage{json.RawMessage(`[]`), json.RawMessage(`"],\"prev\":\""`), json.RawMessage(`-1.5e3`), json.RawMessage(`null`), json.RawMessage(`{"x":[{}, {}]}`)}},
		{At: time.Time{}, Event: json.RawMessage(`12`), Facts: []json.RawMessage{json.RawMessage(`true`)}},
	}
	records, err := l.AppendRecords(entries...)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(records[1].Event); got != "{\"b\":[1,{\"c\":\"\u2028 ü\"}]}" {
		t.Fatalf("event %q", got)
	}
	var back []Record
	if err := l.Replay(1, func(r Record) error { back = append(back, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, records) {
		t.Fatalf("replayed\n%+v\nwritten\n%+v", back, records)
	}
	if !back[0].At.Equal(entries[0].At) || back[0].At.Location() != time.UTC {
		t.Fatal(back[0].At)
	}
	if back[0].Prev != strings.Repeat("0", 64) {
		t.Fatal(back[0].Prev)
	}
	if seq, sum := l.Last(); seq != 3 || sum != back[2].Sum {
		t.Fatal(seq, sum)
	}
}
