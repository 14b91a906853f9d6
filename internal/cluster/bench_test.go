package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sluice/journal"
	"sluice/tools/natstest"
)

// BenchmarkAppend appends records of about 1 kB, one after another, to the file alone, and to the file
// and a stream. Beside it, plain publishing of as much to a stream.
func BenchmarkAppend(b *testing.B) {
	entry := func(n int) journal.Entry {
		return journal.Entry{At: time.Now(), Event: fmt.Appendf(nil, `{"kind":"test","n":%d,"pad":%q}`, n, strings.Repeat("x", 700))}
	}
	run := func(b *testing.B, log *journal.Log) {
		b.Helper()
		for n := 0; b.Loop(); n++ {
			if _, _, err := log.Append(entry(n)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	}
	b.Run("file", func(b *testing.B) {
		log, _, err := journal.Open(b.TempDir(), journal.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer log.Close()
		run(b, log)
	})
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("servers=%d", n), func(b *testing.B) {
			servers := natstest.Start(b, n)
			m := newMachine(b, "a", servers.URL())
			d := m.mustLead(m.begin(n), false)
			run(b, d.log)
		})
		b.Run(fmt.Sprintf("plain=%d", n), func(b *testing.B) {
			servers := natstest.Start(b, n)
			c := newMachine(b, "a", servers.URL()).conn
			if _, err := c.create(b.Context(), jetstream.StreamConfig{Name: "PLAIN", Subjects: []string{"plain"}, Replicas: n}); err != nil {
				b.Fatal(err)
			}
			data := []byte(strings.Repeat("x", 1000))
			for b.Loop() {
				if _, err := c.js.Publish(b.Context(), "plain", data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}
