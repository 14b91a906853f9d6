package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
)

// counted counts the syncs of a real file.
type counted struct {
	FS
	mu    sync.Mutex
	syncs int
}

type countedFile struct {
	File
	c *counted
}

func (c *counted) Create(name string) (File, error) {
	f, err := c.FS.Create(name)
	return countedFile{f, c}, err
}

func (f countedFile) Sync() error {
	f.c.mu.Lock()
	f.c.syncs++
	f.c.mu.Unlock()
	return f.File.Sync()
}

func TestSixteenWritersShareSyncs(t *testing.T) {
	const writers, each = 16, 120
	dir := t.TempDir()
	c := &counted{FS: OSFS()}
	l := mustOpen(t, dir, c)
	var mu sync.Mutex
	given := map[int64]int{} // seq to what was appended there
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				n := (w*each + i) * 10
				batch := []Entry{entry(n), entry(n + 1)}[:1+i%2]
				first, last, err := l.Append(batch...)
				if err != nil || last != first+int64(len(batch))-1 {
					t.Error(first, last, err)
					return
				}
				mu.Lock()
				for k := range batch {
					given[first+int64(k)] = n + k
				}
				mu.Unlock()
				if seq, _ := l.Last(); seq < last {
					t.Errorf("last is %d after %d was acknowledged", seq, last)
				}
				if i%40 == 39 {
					if err := l.SaveSnapshot(last, fmt.Append(nil, last)); err != nil {
						t.Error(err)
					}
					if err := l.Replay(last-3, func(Record) error { return nil }); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	got := numbers(t, l)
	if len(got) != writers*each*3/2 || len(given) != len(got) {
		t.Fatalf("%d records, %d acknowledged", len(got), len(given))
	}
	for i, n := range got {
		if given[int64(i)+1] != n {
			t.Fatalf("record %d is %d, acknowledged there was %d", i+1, n, given[int64(i)+1])
		}
	}
	if rep, err := Verify(dir, Options{}); err != nil || rep.Records != int64(len(got)) {
		t.Fatal(rep, err)
	}
	t.Logf("%d appends, %d syncs", writers*each, c.syncs)
	if c.syncs > writers*each/2 {
		t.Fatalf("%d syncs for %d appends: no sync is shared", c.syncs, writers*each)
	}
}

// Sixteen writers, on a disk that is full now and then, retry: everything is there once, in whole
// batches.
func TestWritersOnAFullDisk(t *testing.T) {
	const writers, each = 16, 40
	d := newDisk(7)
	l := mustOpen(t, stateDir, d)
	var wg sync.WaitGroup
	for w := range writers {
		rng := rand.New(rand.NewPCG(7, uint64(w)))
		wg.Go(func() {
			for i := range each {
				n := (w*each + i) * 10
				for {
					_, _, err := l.Append(entry(n), entry(n+1), entry(n+2))
					if err == nil {
						break
					}
					if !errors.Is(err, ErrStalled) || !errors.Is(err, syscall.ENOSPC) {
						t.Error(err)
						return
					}
					d.SetRoom(rng.IntN(40_000))
				}
				if rng.IntN(8) == 0 {
					d.SetRoom(rng.IntN(4000))
				}
			}
		})
	}
	wg.Wait()
	got := numbers(t, l)
	seen := map[int]bool{}
	for i, n := range got {
		if seen[n] || n%10 != i%3 || n%10 > 0 && got[i-1] != n-1 {
			t.Fatalf("record %d is %d: doubled, or its batch is torn apart", i+1, n)
		}
		seen[n] = true
	}
	if len(got) != writers*each*3 {
		t.Fatal(len(got), "records")
	}
}

func TestCloseWaitsAndRefuses(t *testing.T) {
	d := newDisk(1)
	l := mustOpen(t, stateDir, d)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for {
				if _, _, err := l.Append(entry(w)); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	for {
		if seq, _ := l.Last(); seq > 50 {
			break
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := Verify(stateDir, Options{FS: d}); err != nil || rep.PartialBytes != 0 {
		t.Fatal(rep, err)
	}
}
