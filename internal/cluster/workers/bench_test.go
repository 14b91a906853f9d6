package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/internal/cluster"
	"sluice/internal/layout"
	"sluice/tools/natstest"
)

func connected(b *testing.B, s *natstest.Servers) *cluster.Conn {
	b.Helper()
	c, err := cluster.Connect(cluster.Servers{URLs: s.URL()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

func benchDesk(b *testing.B, s *natstest.Servers) *Desk {
	b.Helper()
	c := connected(b, s)
	d, err := NewDesk(DeskOptions{Secret: secret, Conn: c, Packs: c.Packs(testJournal, 1), Layout: layout.Layout{Root: b.TempDir(), State: b.TempDir()},
		Journal: testJournal, By: "bench", Lead: func() int64 { return 1 }, Lease: func() time.Duration { return time.Minute },
		Logf: func(string, ...any) {}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return d
}

// BenchmarkLaunch has launches that end at once made by some workers, from the order to the signed
// result, as many at a time as they have slots. Beside it, a plain request and its reply.
func BenchmarkLaunch(b *testing.B) {
	const slots = 50
	s := natstest.Start(b, 1)
	b.Run("plain", func(b *testing.B) {
		from, to := connected(b, s), connected(b, s)
		calls := make(chan *nats.Msg, slots)
		if _, err := to.Listen("plain", calls); err != nil {
			b.Fatal(err)
		}
		go func() {
			for m := range calls {
				_ = m.Respond([]byte("{}")) // who asks sees it
			}
		}()
		ask := func(int) error { _, err := from.Ask(b.Context(), "plain", []byte("{}")); return err }
		for ask(0) != nil { // until it listens
			time.Sleep(time.Millisecond)
		}
		each(b, slots, ask)
	})
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			d, m := benchDesk(b, s), newMaker()
			close(m.ends)
			var run sync.WaitGroup
			ctx, stop := context.WithCancel(b.Context())
			defer func() { stop(); run.Wait() }()
			for range n {
				p, err := NewPost(PostOptions{Conn: connected(b, s), State: b.TempDir(), Journal: testJournal, Name: "w",
					Labels: []string{"linux"}, Slots: slots, Maker: m, Logf: func(string, ...any) {}, Now: time.Now})
				if err != nil {
					b.Fatal(err)
				}
				run.Go(func() { _ = p.Run(ctx, nil) }) // its launches show it
			}
			for len(d.Workers()) < n {
				time.Sleep(time.Millisecond)
			}
			w := launch.Watch{Waits: func(string) {}, Began: func() {}}
			each(b, n*slots, func(i int) error {
				key := fmt.Sprintf("far-%d/A#%d.1", i, b.N)
				back, err := d.Launch(ctx, key, []string{"linux"}, func() (launch.Sent, error) { return sentFor(key), nil }, w)
				if err == nil && back.Exit.Code != 7 {
					err = fmt.Errorf("it ended as %+v", back.Exit)
				}
				return err
			})
		})
	}
}

// each does something for each round of a benchmark, about so many at a time, and reports the rate.
func each(b *testing.B, most int, do func(i int) error) {
	b.Helper()
	var n atomic.Int64
	b.SetParallelism(max(most/runtime.GOMAXPROCS(0), 1))
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := do(int(n.Add(1))); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "launches/s")
}

// BenchmarkHeartbeats is the processor time of 1,000 workers' heartbeats, one a second each: read by a
// desk and, beside it, only received. What sending them takes is measured first, and left out.
func BenchmarkHeartbeats(b *testing.B) {
	const workers = 1000
	s := natstest.Start(b, 1)
	var beats [workers][]byte
	for i := range beats {
		var err error
		beats[i], err = json.Marshal(Beat{Worker: fmt.Sprintf("%016x", i), Name: "a-machine (pid 12345)", Journal: testJournal,
			Epoch: 1, Version: "v1.2.3", Versions: versions(), Labels: []string{"linux", "claude"}, Slots: 8, Since: time.Now()})
		if err != nil {
			b.Fatal(err)
		}
	}
	run := func(b *testing.B, came func() int) time.Duration {
		b.Helper()
		out := connected(b, s)
		runtime.GC()
		before, sent := used(b), 0
		for b.Loop() {
			began := time.Now()
			for i, data := range beats {
				if err := out.Say(prefix+fmt.Sprintf("%016x", i)+beatEnd, data); err != nil {
					b.Fatal(err)
				}
				sent++
				if i%10 == 9 { // evenly over the second
					time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Second / workers)))
				}
			}
		}
		for came != nil && came() < workers {
			time.Sleep(time.Millisecond)
		}
		return (used(b) - before) * workers / time.Duration(sent)
	}
	var sending time.Duration
	b.Run("sent", func(b *testing.B) {
		sending = run(b, nil)
		b.ReportMetric(100*sending.Seconds(), "%core")
	})
	b.Run("received", func(b *testing.B) {
		calls := make(chan *nats.Msg, beatsAhead)
		if _, err := connected(b, s).Listen(prefix+"*"+beatEnd, calls); err != nil {
			b.Fatal(err)
		}
		seen := map[string]bool{}
		var mu sync.Mutex
		go func() {
			for m := range calls {
				mu.Lock()
				seen[strings.Clone(m.Subject)] = true
				mu.Unlock()
			}
		}()
		took := run(b, func() int { mu.Lock(); defer mu.Unlock(); return len(seen) })
		b.ReportMetric(100*(took-sending).Seconds(), "%core")
	})
	b.Run("desk", func(b *testing.B) {
		d := benchDesk(b, s)
		took := run(b, func() int { return len(d.Workers()) })
		b.ReportMetric(100*(took-sending).Seconds(), "%core")
	})
}

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
