package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents"
	"sluice/agents/program"
)

// readOnce is what it takes to read a piece at the end: where its last line begins is looked for first.
const readOnce = MaxBytes + MaxBytes/4 + 1

// counter counts what is read of a file.
type counter struct {
	io.ReaderAt
	bytes *int64
}

func (c counter) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	*c.bytes += int64(n)
	return n, err
}

// counted returns a follower, and how many bytes it has read.
func counted(o Output) (*Follower, *int64) {
	f, n := o.Follow(), new(int64)
	open := f.open
	f.open = func() ([]file, func(), error) {
		files, done, err := open()
		for i := range files {
			files[i].f = counter{files[i].f, n}
		}
		return files, done, err
	}
	return f, n
}

func appendTo(t *testing.T, dir, name, s string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(s)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFollows: a follower reads the end once, and then only what has come, with the words of one who
// reads it all.
func TestFollows(t *testing.T) {
	dir := t.TempDir()
	o := Output{Dir: dir, Name: "stdout"}
	f, read := counted(o)
	if _, err := f.More(false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no output: %v", err)
	}
	write(t, dir, "stdout", numbered(0, 100_000))
	p, err := f.More(false)
	if err != nil || len(p.Lines) != MaxLines || p.Gap || p.Earlier == nil || *read > readOnce {
		t.Fatalf("%d lines, gap %v, %d bytes read: %v", len(p.Lines), p.Gap, *read, err)
	}
	got := texts(p)
	*read = 0
	for i := range 50 {
		appendTo(t, dir, "stdout", fmt.Sprintf("line %d\nhal", 100_000+i))
		if p, err = f.More(false); err != nil || p.Gap {
			t.Fatal(p.Gap, err)
		}
		got = append(got, texts(p)...)
		appendTo(t, dir, "stdout", "f\n")
	}
	if p, err = f.More(true); err != nil {
		t.Fatal(err)
	}
	got = append(got, texts(p)...)
	end, err := Output{Dir: dir, Name: "stdout", Ended: true}.End()
	if err != nil {
		t.Fatal(err)
	}
	if want := texts(end); strings.Join(got[len(got)-len(want):], "\n") != strings.Join(want, "\n") {
		t.Errorf("it does not read what the end has: %q", got[len(got)-5:])
	}
	if *read > 2048 {
		t.Errorf("for 50 lines %d bytes are read", *read)
	}
}

// TestFollowsFar: what is more than a piece is left out, and said; so is what has gone.
func TestFollowsFar(t *testing.T) {
	dir := t.TempDir()
	f, read := counted(Output{Dir: dir, Name: "stdout"})
	more := func(ended, gap bool, last string) {
		t.Helper()
		p, err := f.More(ended)
		if got := texts(p); err != nil || p.Gap != gap || len(got) == 0 || got[len(got)-1] != last {
			t.Fatalf("gap %v, %d lines: %.80q %v", p.Gap, len(got), got[max(0, len(got)-1):], err)
		}
	}
	write(t, dir, "stdout", "one\n")
	more(false, false, "one")
	appendTo(t, dir, "stdout", numbered(0, 100_000))
	*read = 0
	more(false, true, "line 99999")
	if *read > readOnce {
		t.Errorf("%d bytes are read", *read)
	}
	write(t, dir, "stdout"+agents.TailSuffix, "two\n")
	more(false, false, "two")
	if err := os.Rename(filepath.Join(dir, "stdout"+agents.TailSuffix), filepath.Join(dir, "stdout"+agents.OldSuffix)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "stdout"+agents.TailSuffix, "three\n")
	more(false, false, "three")
	for _, name := range []string{"stdout" + agents.OldSuffix, "stdout" + agents.TailSuffix} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	appendTo(t, dir, "stdout", "two\nthree\nfour")
	more(true, true, "four")
}

// TestFollowsALongLine: a line that does not end is read again and again, and shown once.
func TestFollowsALongLine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stdout", "one\n"+strings.Repeat("x", 2*MaxBytes))
	f, _ := counted(Output{Dir: dir, Name: "stdout"})
	for i, want := range []int{1, 0, 0} {
		appendTo(t, dir, "stdout", "x")
		if p, err := f.More(false); err != nil || len(p.Lines) != want || p.Gap {
			t.Errorf("time %d: %d lines, gap %v: %v", i+1, len(p.Lines), p.Gap, err)
		}
	}
	appendTo(t, dir, "stdout", "\n")
	if p, err := f.More(false); err != nil || len(p.Lines) != 1 {
		t.Errorf("%d lines: %v", len(p.Lines), err)
	}
}

// TestFollowsPrograms: line by line an output says what it says at once.
func TestFollowsPrograms(t *testing.T) {
	for _, format := range program.Names() {
		dir := t.TempDir()
		raw, err := os.ReadFile("../../agents/program/testdata/" + format + "-done.json")
		var recorded struct{ Stdout []string }
		if err = errors.Join(err, json.Unmarshal(raw, &recorded)); err != nil {
			t.Fatal(err)
		}
		o := Output{Dir: dir, Name: "stdout", Format: format, Ended: true}
		f, _ := counted(o)
		var got []string
		for _, line := range recorded.Stdout {
			appendTo(t, dir, "stdout", line+"\n")
			p, err := f.More(false)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, texts(p)...)
		}
		all, err := o.End()
		if want := texts(all); err != nil || len(want) == 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: line by line %q, at once %q: %v", format, got, want, err)
		}
	}
}
