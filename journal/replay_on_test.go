package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestReadOn reads a journal that another Log writes: what it gains, and never past a repair.
func TestReadOn(t *testing.T) {
	dir := t.TempDir()
	w := mustOpen(t, dir, nil)
	open := func() *Log {
		r, _, err := OpenRead(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	r, kept := open(), []int{}
	keep := func(rec Record) error {
		n, err := number(rec)
		kept = append(kept, n)
		return err
	}
	if err := r.ReadOn(keep); err != nil {
		t.Fatalf("it is empty still: %v", err)
	}
	mustAppend(t, w, entry(0), entry(1))
	for n := 2; n < 3*markEvery; n += 7 {
		mustAppend(t, w, entry(n))
		if n%5 > 0 {
			continue
		}
		err := r.ReadOn(keep)
		seq, sum := r.Last()
		if want, is := w.Last(); err != nil || seq != want || sum != is {
			t.Fatalf("it is at %d (%v), the journal at %d", seq, err, want)
		}
	}
	if got, want := numbers(t, r), numbers(t, w); !slices.Equal(got, want) || !slices.Equal(kept, want) {
		t.Errorf("it has read %v, and passed on %v; the journal has %v", got, kept, want)
	}

	// The last record is replaced by one of the same length: a file as long as before is another one.
	last, _ := w.Last()
	whole, err := os.ReadFile(filepath.Join(dir, FileName))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(dir, last-1, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadOn(keep); err == nil {
		t.Error("a shorter journal is read on")
	}
	w = mustOpen(t, dir, nil)
	again := entry(3*markEvery - 1)
	again.At = again.At.AddDate(1, 0, 0)
	mustAppend(t, w, again)
	for n := range 3 { // as long as before, or longer
		if err := r.ReadOn(keep); err == nil {
			t.Errorf("a journal with other records is read on, %d later", n)
		}
		mustAppend(t, w, entry(n))
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadOn(keep); err != nil {
		t.Errorf("the journal as it was: %v", err)
	}
}
