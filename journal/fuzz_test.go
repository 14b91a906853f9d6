package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"

	"sluice/internal/strictjson"
)

// FuzzJournalBytes opens a journal of any bytes. Nothing panics; what is accepted is an exact
// prefix of the bytes in which every sum and prev is right; and a damaged journal is left as it
// was.
func FuzzJournalBytes(f *testing.F) {
	data, ends := written(f, 4)
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add(data[:ends[2]+30])
	f.Add(append(bytes.Clone(data), 0, 0, 0))
	f.Add(bytes.ToUpper(data))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		d := with(data)
		l, rec, err := Open(stateDir, Options{FS: d})
		if err != nil {
			if !errors.As(err, new(*Damage)) || !bytes.Equal(d.contents(FileName), data) {
				t.Fatal(err)
			}
			return
		}
		good := d.contents(FileName)
		if !bytes.HasPrefix(data, good) || int64(len(data)) != rec.Bytes+rec.TornBytes {
			t.Fatal("what is left is not a prefix")
		}
		var prev [sha256.Size]byte
		var rest = good
		if err := l.Replay(1, func(r Record) error {
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			rest = after
			var raw map[string]json.RawMessage
			if err := json.Unmarshal(line, &raw); err != nil || len(raw) != 6 {
				t.Fatalf("%q: %v", line, err)
			}
			at := bytes.LastIndex(line, []byte(`,"sum":"`))
			sum := sha256.Sum256(line[:at])
			if r.Sum != hex.EncodeToString(sum[:]) || r.Prev != hex.EncodeToString(prev[:]) {
				t.Fatalf("accepted with a wrong sum: %q", line)
			}
			prev = sha256.Sum256(line)
			return nil
		}); err != nil || len(rest) > 0 {
			t.Fatal(err, rest)
		}
	})
}

// FuzzLine puts any bytes between a valid head and end, with valid sums. What is accepted is
// exactly what would be written for it.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`1,"at":"2026-05-01T12:00:00.000000001Z","event":{"a":[1,"x"]},"facts":[{"b":1},2`))
	f.Add([]byte(`1,"at":"2026-05-01T12:00:00.000000001Z","event":"","facts":[`))
	f.Add([]byte(`1,"at":"2026-05-01T12:00:00.000000001Z","event":1 ,"facts":[ 1, 2`))
	f.Add([]byte(`1,"at":"2026-05-01T12:00:00.000000001Z","event":{},"facts":[1],"x":[2`))
	f.Add([]byte(`01,"at":"2026-05-01T12:00:00,000000001Z","event":{},"facts":[1`))
	f.Add([]byte(`1,"at":"2026-05-01T12:00:00,000000001Z","event":{},"facts":[1`))
	f.Add([]byte("1,\"at\":\"2026-05-01T12:00:00.000000001Z\",\"event\":\"\xff\",\"facts\":["))
	f.Fuzz(func(t *testing.T, middle []byte) {
		line := append([]byte(headSeq), middle...)
		line = append(line, tailPrev...)
		line = hex.AppendEncode(line, make([]byte, sha256.Size))
		line = append(line, '"')
		sum := sha256.Sum256(line)
		line = append(hex.AppendEncode(append(line, tailSum[1:]...), sum[:]), tailEnd...)
		p, err := parseLine(line, nil)
		if err != nil {
			return
		}
		r := p.record()
		body, err := appendBody(nil, Entry{At: r.At, Event: r.Event, Facts: r.Facts})
		if err != nil {
			t.Fatalf("accepted what would not be written: %q: %v", line, err)
		}
		again, _ := appendLine(nil, point{seq: r.Seq - 1}, body)
		if !bytes.Equal(again[:len(again)-1], line) {
			t.Fatalf("read  %q\nwrote %q", line, again)
		}
	})
}

// FuzzSnapshot reads a snapshot of any bytes.
func FuzzSnapshot(f *testing.F) {
	d := newDisk(1)
	l := mustOpen(f, stateDir, d)
	mustAppend(f, l, entry(1))
	if err := l.SaveSnapshot(1, []byte("state")); err != nil {
		f.Fatal(err)
	}
	f.Add(d.contents(snapshotName(1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseSnapshot(data)
		if err != nil {
			return
		}
		if digest := sha256.Sum256(s.payload); s.Payload != hex.EncodeToString(digest[:]) || s.Seq < 1 {
			t.Fatal("accepted with a wrong sum")
		}
	})
}

// FuzzExportLine reads any bytes as an export line. What is accepted is exactly what would be
// written for it, except for JSON written before it was plain.
func FuzzExportLine(f *testing.F) {
	const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
	line := func(head, fact, sum string) []byte {
		return []byte(head + `"at":"2026-05-01T12:00:00.000000000Z","fact":` + fact + `,"sum":"` + sum + `"}`)
	}
	for _, good := range [][]byte{line(`{"seq":1,"n":0,`, `{}`, zeros), line(`{"seq":1,"n":0,`, "\"a\u2028b\"", zeros)} {
		if _, err := parseExportLine(good); err != nil {
			f.Fatalf("%s: %v", good, err)
		}
		f.Add(good)
	}
	for _, bad := range [][]byte{line(`{"seq":0,"n":0,`, `{}`, zeros), line(`{"seq":1,"n":-1,`, `{}`, zeros), line(`{"seq":1,"n":0,`, `{}`, zeros[1:]),
		line(`{"seq": 1,"n":0,`, `{}`, zeros), line(`{"seq":1,"n":0,"x":1,`, `{}`, zeros), line(`{"seq":1,"n":0,`, `{`, zeros)} {
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseExportLine(data)
		if err != nil {
			return
		}
		if l.Seq < 1 || l.N < 0 || len(l.Sum) != hexLen {
			t.Fatalf("accepted %q", data)
		}
		if again := appendExportLine(nil, l); !bytes.Equal(again[:len(again)-1], strictjson.Plain(data)) {
			t.Fatalf("read  %q\nwrote %q", data, again)
		}
	})
}
