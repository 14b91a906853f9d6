package journal

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// benchEntry returns a line of about 300 bytes plus the two hashes.
func benchEntry() Entry {
	return Entry{
		At:    time.Now(),
		Event: json.RawMessage(`{"kind":"signal","file":"X-1-done.json","by":"agent","text":"` + strings.Repeat("a", 40) + `"}`),
		Facts: []json.RawMessage{json.RawMessage(`{"kind":"step_done","step":"X-1","attempt":1}`)},
	}
}

// BenchmarkAppend compares the group commit with a plain writer that syncs each line, on the same
// disk in the same run: quote the ratio, not the numbers.
func BenchmarkAppend(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "plain"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		body, err := appendBody(nil, benchEntry())
		if err != nil {
			b.Fatal(err)
		}
		line, _ := appendLine(nil, point{}, body)
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
			if err := syncData(f); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	})
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l, _, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			e := benchEntry()
			todo := make(chan struct{}, b.N)
			for range b.N {
				todo <- struct{}{}
			}
			close(todo)
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for range todo {
						if _, _, err := l.Append(e); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchmarkReplay is the cost of a start without a snapshot.
func BenchmarkReplay(b *testing.B) {
	l, _, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	batch := make([]Entry, 1000)
	for i := range batch {
		batch[i] = benchEntry()
	}
	for range 20 {
		if _, _, err := l.Append(batch...); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(l.head.end)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Replay(1, func(Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(20_000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
