package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A group of lines goes to the copy and to the file at once, and is acknowledged by both.
func TestCopyReceivesEachGroup(t *testing.T) {
	dir := t.TempDir()
	var other bytes.Buffer
	var before []int64
	began := make(chan []byte, 1)
	l, _, err := Open(dir, Options{Copy: func(lines []byte, at int64) func() error {
		before = append(before, at)
		began <- bytes.Clone(lines)
		return func() error {
			file, err := os.ReadFile(filepath.Join(dir, FileName))
			if err != nil || !bytes.HasSuffix(file, lines) {
				t.Errorf("waited for before the file has it: %v", err)
			}
			other.Write(<-began)
			return nil
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		mustAppend(t, l, entry(2*i), entry(2*i+1))
	}
	file, _ := os.ReadFile(filepath.Join(dir, FileName))
	if !bytes.Equal(file, other.Bytes()) || len(before) != 5 || before[4] != 8 {
		t.Errorf("file and copy differ, or %v", before)
	}
}

// What only one of the two may have is final: nothing is appended after it.
func TestCopyThatFailsIsFinal(t *testing.T) {
	errOther := errors.New("another decides")
	for _, c := range []struct {
		name string
		full bool
		wait error
		want error
	}{{"the copy", false, errOther, errOther}, {"the disk", true, nil, ErrApart}} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(1)
			fail := false
			l, _, err := Open("state", Options{FS: fullAt{d, &fail}, Copy: func([]byte, int64) func() error {
				return func() error {
					if !fail {
						return nil
					}
					return c.wait
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, entry(0))
			fail = true
			if !c.full {
				l.file = l.file.(fullFile).File
			}
			_, _, err = l.Append(entry(1))
			if !errors.Is(err, c.want) || errors.Is(err, ErrStalled) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			fail = false
			if _, _, again := l.Append(entry(2)); !errors.Is(again, c.want) {
				t.Errorf("then %v, want %v", again, c.want)
			}
			if seq, _ := l.Last(); seq != 1 {
				t.Errorf("the last record is %d, want 1", seq)
			}
		})
	}
}

// fullAt is a disk that is full while *fail.
type fullAt struct {
	*disk
	fail *bool
}

func (d fullAt) Create(name string) (File, error) {
	f, err := d.disk.Create(name)
	return fullFile{f, d.fail}, err
}

type fullFile struct {
	File
	fail *bool
}

func (f fullFile) WriteAt(p []byte, off int64) (int, error) {
	if *f.fail {
		return 0, errors.New("no space")
	}
	return f.File.WriteAt(p, off)
}

// A follower's file is the leader's, byte for byte.
func TestAppendLines(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	l, f := mustOpen(t, from, nil), mustOpen(t, to, nil)
	for i := range 3 * markEvery {
		mustAppend(t, l, entry(i))
	}
	for seq := int64(1); ; {
		lines, last, err := l.Lines(seq, 3000)
		if err != nil {
			t.Fatal(err)
		}
		if lines == nil {
			break
		}
		records, err := ParseLines(lines)
		if err != nil || records[0].Seq != seq || records[len(records)-1].Seq != last || len(lines) > 3000 && len(records) > 1 {
			t.Fatalf("lines from %d to %d: %d bytes, %v", seq, last, len(lines), err)
		}
		if err := f.AppendLines(lines); err != nil {
			t.Fatal(err)
		}
		seq = last + 1
	}
	want, _ := os.ReadFile(filepath.Join(from, FileName))
	got, _ := os.ReadFile(filepath.Join(to, FileName))
	if !bytes.Equal(want, got) {
		t.Fatal("the two files differ")
	}
	mustAppend(t, f, entry(3*markEvery)) // and goes on
	if n := len(numbers(t, f)); n != 3*markEvery+1 {
		t.Errorf("%d records", n)
	}
}

// Lines that do not continue the journal are damage, and nothing of them is written.
func TestAppendLinesRefuses(t *testing.T) {
	l := mustOpen(t, t.TempDir(), nil)
	mustAppend(t, l, entry(0), entry(1), entry(2))
	whole, _, err := l.Lines(1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	end := bytes.IndexByte(whole, '\n') + 1
	first, rest := whole[:end], whole[end:]
	for what, bad := range map[string][]byte{
		"a gap":            rest,
		"changed":          bytes.Replace(first, []byte(`"seq":1`), []byte(`"seq":2`), 1),
		"no newline":       first[:len(first)-1],
		"half of the next": whole[:end+20],
		"empty":            nil,
		"doubled":          append(bytes.Clone(first), first...),
		"no line":          []byte("\n"),
	} {
		f := mustOpen(t, t.TempDir(), nil)
		var damage *Damage
		if err := f.AppendLines(bad); !errors.As(err, &damage) {
			t.Errorf("%s: %v", what, err)
		}
		if seq, _ := f.Last(); seq != 0 {
			t.Errorf("%s: %d records", what, seq)
		}
		if err := f.AppendLines(whole); err != nil {
			t.Errorf("%s: then %v", what, err)
		}
	}
}

func TestID(t *testing.T) {
	for _, event := range []string{`{"kind":"configured","n":1}`, `{}`, " {\"a\":2} \n"} {
		dir, id := t.TempDir(), NewID()
		l := mustOpen(t, dir, nil)
		mustAppend(t, l, Entry{At: time.Now(), Event: WithID(json.RawMessage(event), id)})
		if got, err := l.ID(); got != id || err != nil {
			t.Errorf("%s: %q, %v, want %q", event, got, err, id)
		}
	}
	l := mustOpen(t, t.TempDir(), nil)
	if got, err := l.ID(); got != "" || err != nil {
		t.Errorf("empty: %q, %v", got, err)
	}
	mustAppend(t, l, entry(1))
	if got, err := l.ID(); got != "" || err != nil {
		t.Errorf("of an older release: %q, %v", got, err)
	}
	for _, bad := range []string{"", "1", strings.Repeat("A", 32), strings.Repeat("a", 31) + "g", strings.Repeat("a", 34)} {
		if IsID(bad) {
			t.Errorf("%q is an id", bad)
		}
	}
}

func TestLeadRecord(t *testing.T) {
	l := mustOpen(t, t.TempDir(), nil)
	want := Lead{Kind: leadKind, Epoch: 3, By: `a "host"`, Journal: NewID()}
	mustAppend(t, l, want.Entry(time.Now()), entry(1), Entry{At: time.Now(), Event: json.RawMessage(`{"kind":"lead_taken"}`)},
		Entry{At: time.Now(), Event: json.RawMessage(`{"kind":"x","by":"lead_taken","epoch":4}`)})
	var got []Lead
	if err := l.Replay(1, func(r Record) error {
		if lead, ok := r.Lead(); ok {
			got = append(got, lead)
		}
		return nil
	}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v", got, err)
	}
}
