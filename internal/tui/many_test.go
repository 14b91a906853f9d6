package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
)

// many are runs of five steps with a gate each, all of which wait for a person at one of them.
func (s *sit) many(n int) []daemon.RunStatus {
	var out []daemon.RunStatus
	for i := range n {
		r := s.run(fmt.Sprintf("w-%d", i), human(1))
		for j := range 4 {
			r.Steps = append(r.Steps, daemon.StepStatus{ID: fmt.Sprintf("B-%d", j), Name: "a step that waits", State: "waiting",
				Gates: []daemon.GateStatus{{ID: fmt.Sprintf("BG-%d", j), Name: "its gate", Level: "notify", Max: 3}}})
		}
		out = append(out, r)
	}
	return out
}

// TestAThousandRuns: all of them can be reached, each is one line, and the cursor stays where it is while they change.
func TestAThousandRuns(t *testing.T) {
	s := newSit(t, 80, 24)
	runs := s.many(1000)
	s.repo1(true, runs...)
	s.sees(`^sluice \? 1000 for you · 1000 live of 1000 runs`, `^waits for you \(1000\)`)
	if n := len(s.rows); n != 2002 {
		t.Errorf("%d rows", n)
	}
	s.types("G")
	s.sees(`^› ▸ w-0 +running`)
	s.types(" ")
	s.sees(`^› ▸ w-0 +running`, `^    ▸ A write it`)
	s.types("g")
	s.sees(`^› \? G review of w-0 asks you`)
	s.types("/w-77<enter>")
	s.sees(`^waits for you \(11\)`, `/w-77`)
	s.types("<esc>g")
	s.sees(`^waits for you \(1000\)`)
	for i := range 50 {
		s.types("<down>")
		s.repo1(false, s.run(fmt.Sprintf("w-%d", 999-i), human(2)))
	}
	s.sees(`^› \? G review of w-`)
	start := time.Now()
	const rounds = 100
	for i := range rounds {
		s.repo1(false, s.run(fmt.Sprintf("w-%d", i), human(3)))
		s.screen()
	}
	t.Logf("a refresh with 1,000 runs that all wait, laid out and drawn: %s", time.Since(start)/rounds)
}

// BenchmarkRefresh is what a changed run costs the screen beside 1,000 others.
func BenchmarkRefresh(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("runs=%d", n), func(b *testing.B) {
			s := &sit{desk: &desk{}, at: time.Now()}
			s.Model = newModel(b.Context(), s.desk, func() time.Time { return s.at }, func(any) {})
			s.Update(reposSeen{roots: []string{"/x/app"}})
			s.Update(repoSeen{root: "/x/app", served: true, whole: true, status: daemon.Status{Runs: s.many(n)}})
			b.ReportAllocs()
			for i := range b.N {
				s.Update(repoSeen{root: "/x/app", served: true, status: daemon.Status{Runs: []daemon.RunStatus{s.run(fmt.Sprintf("w-%d", i%n), human(i))}}})
				s.View()
			}
		})
	}
}

// ledger is a repo that facts come of, and that counts what it is asked.
type ledger struct {
	mu    sync.Mutex
	runs  map[string]daemon.RunStatus
	order []string
	asked []string // the runs that were asked for; "" = all
	seq   int64
	lines chan daemon.Line
	gone  chan struct{} // closed when nobody serves it any more
}

func newLedger(n int) *ledger {
	l := &ledger{runs: map[string]daemon.RunStatus{}, lines: make(chan daemon.Line, 10_000), gone: make(chan struct{})}
	for i := range n {
		l.add(fmt.Sprintf("w-%d", i))
	}
	return l
}

func (l *ledger) add(id string) {
	l.runs[id] = daemon.RunStatus{ID: id, Phase: engine.RunRunning}
	l.order = append(l.order, id)
}

// happens sends a fact of a run.
func (l *ledger) happens(run string) {
	l.mu.Lock()
	l.seq++
	seq := l.seq
	l.mu.Unlock()
	raw, _ := json.Marshal(map[string]string{"kind": "run_began", "run": run})
	l.lines <- daemon.Line{Seq: seq, Fact: raw}
}

func (l *ledger) Status(_ context.Context, run string) (daemon.Status, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gone:
		return daemon.Status{}, errors.New("no sluice process answers")
	default:
	}
	l.asked = append(l.asked, run)
	st := daemon.Status{Root: "/x/app", Seq: l.seq}
	for _, id := range l.order {
		if run == "" || run == id {
			st.Runs = append(st.Runs, l.runs[id])
		}
	}
	if run != "" && len(st.Runs) == 0 {
		return st, errors.New("no run is known here")
	}
	return st, nil
}

func (l *ledger) Facts(ctx context.Context, _ string, _ int64, _ bool, fn func(daemon.Line) error) error {
	for {
		select {
		case line := <-l.lines:
			if err := fn(line); err != nil {
				return err
			}
		case <-l.gone:
			return errors.New("the connection was closed")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *ledger) Close() {}

func (l *ledger) questions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.asked...)
}

// shelf is a host with ledgers.
type shelf struct {
	desk
	mu  sync.Mutex
	now *ledger // nil = nobody serves it
}

func (s *shelf) Repos(context.Context) ([]string, string, error) { return []string{"/x/app"}, "", nil }
func (s *shelf) Open(context.Context, string) (View, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil, false, errors.New("it starts or ends just now")
	}
	return s.now, true, nil
}
func (s *shelf) Served(context.Context, string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now != nil
}
func (s *shelf) serve(l *ledger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = l
}

// TestFollowing: a repo is read whole once, then only its runs with facts, together if these come
// together; the loss of a service is shown, and the repo is read whole again on its return.
func TestFollowing(t *testing.T) {
	first := newLedger(1000)
	s := &shelf{now: first}
	msgs := make(chan any, 1000)
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{host: s, send: func(m any) { msgs <- m }}
	ended := make(chan struct{})
	go func() { defer close(ended); f.run(ctx) }()
	next := func(what string, ok func(any) bool) any {
		t.Helper()
		for until := time.After(30 * time.Second); ; {
			select {
			case m := <-msgs:
				if ok(m) {
					return m
				}
			case <-until:
				t.Fatalf("never told: %s", what)
			}
		}
	}
	whole := func(m any) bool { x, ok := m.(repoSeen); return ok && x.whole && len(x.status.Runs) == 1000 }
	next("all runs", whole)
	first.happens("w-7")
	got := next("w-7", func(m any) bool { x, ok := m.(repoSeen); return ok && !x.whole }).(repoSeen)
	if len(got.status.Runs) != 1 || got.status.Runs[0].ID != "w-7" {
		t.Errorf("told of %d runs", len(got.status.Runs))
	}
	if q := first.questions(); len(q) != 2 || q[0] != "" || q[1] != "w-7" {
		t.Errorf("asked %q", q)
	}
	for i := range 1000 { // a burst, of one run
		first.happens(fmt.Sprintf("w-%d", i%2))
	}
	next("w-0 or w-1", func(m any) bool { x, ok := m.(repoSeen); return ok && !x.whole })
	if q := first.questions(); len(q) > 8 {
		t.Errorf("1,000 facts of two runs cost %d questions", len(q))
	}
	for i := range 1000 { // of all runs
		first.happens(fmt.Sprintf("w-%d", i))
	}
	next("all at once", whole)
	if q := first.questions(); len(q) > 8+2*aloneMost {
		t.Errorf("%d questions", len(q))
	}
	first.happens("w-gone")
	next("that one is known no more", func(m any) bool {
		x, ok := m.(repoSeen)
		if ok && len(x.dropped) == 0 { // it came with the end of the burst, and all runs were read
			first.happens("w-gone")
		}
		return ok && slices.Equal(x.dropped, []string{"w-gone"})
	})
	s.serve(nil)
	close(first.gone)
	next("it is lost", func(m any) bool { x, ok := m.(repoLost); return ok && x.root == "/x/app" })
	s.serve(newLedger(1000))
	next("it is back", whole)
	stop()
	<-ended
}
