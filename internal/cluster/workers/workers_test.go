package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/cluster"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

func TestMain(m *testing.M) {
	decide()
	os.Exit(m.Run())
}

const (
	testJournal = "0123456789abcdef0123456789abcdef"
	testCommit  = "0123456789abcdef0123456789abcdef01234567"
	testKey     = "far-1/A#1.1"
)

// testToken differs by key, as those of a real repo do.
func testToken(key string) string {
	shared, _ := secret(context.Background()) // never fails
	return layout.MakeToken(shared, key)
}

func sentFor(key string) launch.Sent {
	run, _, _ := strings.Cut(key, "/")
	return launch.Sent{Key: key, Token: testToken(key), Dir: ".workflow/runs/" + run + "/A.1", Run: run, Workflow: "far",
		Step: "A", N: 1, Role: "builder", Prompt: "Do it.", Head: testCommit, Start: testCommit}
}

// secret is what the machines that decide share.
func secret(context.Context) ([]byte, error) { return []byte("of the machines that decide"), nil }

// maker is a Maker whose launches end when the test says so.
type maker struct {
	mu      sync.Mutex
	made    map[string]int // how often each was begun
	cleared []string
	forgot  []string
	keeps   error         // of Forget
	ends    chan struct{} // closed: all launches end
	stopped map[string]chan struct{}
	lacks   bool
	words   []launch.Signal
	back    launch.Back // what launches come back with, but for their exit
}

func newMaker() *maker {
	return &maker{made: map[string]int{}, ends: make(chan struct{}), stopped: map[string]chan struct{}{}}
}

func (m *maker) Lacks(context.Context, launch.Sent) ([]string, bool, error) {
	return []string{testCommit}, m.lacks, nil
}

func (m *maker) Make(ctx context.Context, s launch.Sent, _ time.Time) (launch.Back, error) {
	m.mu.Lock()
	m.made[s.Key]++
	stop := m.stop(s.Key)
	m.mu.Unlock()
	back := m.back
	select {
	case <-m.ends:
		back.Exit.Code = 7
		return back, nil
	case <-stop:
		back.Exit = engine.Exit{Code: -1, Stopped: true}
		return back, nil
	case <-ctx.Done():
		return launch.Back{}, ctx.Err()
	}
}

func (m *maker) stop(key string) chan struct{} {
	if m.stopped[key] == nil {
		m.stopped[key] = make(chan struct{})
	}
	return m.stopped[key]
}

func (m *maker) Signals(launch.Sent) []launch.Signal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.words
}

func (m *maker) Stop(_ context.Context, s launch.Sent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.stop(s.Key))
}

func (m *maker) Clear(_ context.Context, s launch.Sent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleared = append(m.cleared, s.Key)
	return nil
}

func (m *maker) Forget(folder string, runs []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(runs)
	m.forgot = append(m.forgot, folder+": "+strings.Join(runs, " "))
	return m.keeps
}

func (m *maker) begun(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[key]
}

// log keeps what was logged.
type log struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *log) logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.all, format+"\n", args...)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// bench is a machine that decides.
type bench struct {
	*Desk
	t     *testing.T
	conn  *cluster.Conn
	log   *log
	epoch atomic.Int64
	keeps func(s launch.Sent, back launch.Back) (kept, why string, err error) // nil: nothing late is expected
}

func newBench(t *testing.T, s *natstest.Servers, epoch int64) *bench {
	t.Helper()
	return newBenchOver(t, connect(t, s), epoch)
}

func newBenchOver(t *testing.T, conn *cluster.Conn, epoch int64) *bench {
	t.Helper()
	b := &bench{t: t, conn: conn, log: &log{}}
	b.epoch.Store(epoch)
	var err error
	b.Desk, err = NewDesk(DeskOptions{Secret: secret, Conn: b.conn, Packs: b.conn.Packs(testJournal, 1), Layout: layout.Layout{Root: t.TempDir(), State: t.TempDir()},
		Journal: testJournal, By: "test", Lead: func() int64 { return b.epoch.Load() },
		Lease: func() time.Duration { return time.Second }, Logf: b.log.logf,
		Pack: func(context.Context, launch.Sent, []string) (string, error) { return strings.Repeat("0", 64), nil },
		Late: func(_ context.Context, s launch.Sent, back launch.Back) (kept, why string, err error) {
			return b.keeps(s, back)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func connect(t *testing.T, s *natstest.Servers) *cluster.Conn {
	t.Helper()
	return connectTo(t, cluster.Servers{URLs: s.URL()})
}

func connectTo(t *testing.T, s cluster.Servers) *cluster.Conn {
	t.Helper()
	c, err := cluster.Connect(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// hire starts a worker with a state folder; stop ends it as a restart does.
func hire(t *testing.T, s *natstest.Servers, state string, m Maker, slots int) (p *Post, out *log, stop func()) {
	t.Helper()
	out = &log{}
	p, stop = hireAs(t, PostOptions{Conn: connect(t, s), State: state, Slots: slots, Maker: m, Logf: out.logf}, nil)
	from := connect(t, s)
	until(t, "it listens", func() bool {
		_, err := from.Ask(t.Context(), prefix+p.ID()+orderEnd, nil)
		return err == nil
	})
	return p, out, stop
}

func hireAs(t *testing.T, o PostOptions, leave <-chan struct{}) (p *Post, stop func()) {
	t.Helper()
	o.Journal, o.Name, o.Labels, o.Now = testJournal, "w", []string{"linux"}, time.Now
	p, err := NewPost(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, leave) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return p, stop
}

// full checks that the worker takes no further launch.
func (b *bench) full(p *Post, key string) {
	b.t.Helper()
	sent := sentFor(key)
	if a, err := b.ask(b.t.Context(), p.ID(), call{Do: doLaunch, Key: key, Sent: &sent}); err != nil || a.Is != isFull {
		b.t.Errorf("%s: %+v, %v", key, a, err)
	}
}

// launches has a launch made in the background.
func (b *bench) launches(key string, w launch.Watch) <-chan launch.Back {
	out := make(chan launch.Back, 1)
	if w.Waits == nil {
		w.Waits = func(string) {}
	}
	if w.Began == nil {
		w.Began = func() {}
	}
	go func() {
		back, err := b.Launch(b.t.Context(), key, []string{"linux"}, func() (launch.Sent, error) { return sentFor(key), nil }, w)
		if err == nil {
			out <- back
		}
	}()
	return out
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func within(t *testing.T, back <-chan launch.Back) launch.Back {
	t.Helper()
	select {
	case b := <-back:
		return b
	case <-time.After(30 * time.Second):
		t.Fatal("the launch never ends")
		return launch.Back{}
	}
}

// An order that is sent again, also to a worker that was started anew, is answered with what it knows.
// The launch is made once, and its key stays used once it is over.
func TestOnceUnderItsKey(t *testing.T) {
	conform.Rule(t, "13-workers keys", "a repeated order, also after a restart, is answered and runs once")
	conform.Rule(t, "13-workers epochs", "a key that is over is refused")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m, state := newBench(t, s, 2), newMaker(), t.TempDir()
	if err := b.Close(); err != nil { // it would have the launch dropped, of which it has no record
		t.Fatal(err)
	}
	p, _, stop := hire(t, s, state, m, 1)
	again := func(want string) answer {
		t.Helper()
		sent := sentFor(testKey)
		a, err := b.ask(t.Context(), p.ID(), call{Do: doLaunch, Key: testKey, Sent: &sent})
		if err != nil || a.Is != want {
			t.Errorf("a repeat is answered %q %s, %v; want %q", a.Is, a.Why, err, want)
		}
		return a
	}
	again(isRunning)
	again(isRunning)
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	again(isRunning)
	if n := m.begun(testKey); n != 1 {
		t.Errorf("it was made %d times", n)
	}

	// a restart goes on with the one launch
	stop()
	p, _, _ = hire(t, s, state, m, 1)
	until(t, "it goes on", func() bool { return m.begun(testKey) == 2 })
	again(isRunning)
	close(m.ends)
	until(t, "it has ended", func() bool {
		a, err := b.ask(t.Context(), p.ID(), call{Do: doAsk, Key: testKey})
		return err == nil && a.Is == isEnded
	})
	again(isEnded)
	if n := m.begun(testKey); n != 2 {
		t.Errorf("it was begun %d times by two workers", n)
	}

	// what was told to forget it never makes it again
	if a, err := b.ask(t.Context(), p.ID(), call{Do: doDrop, Key: testKey}); err != nil || a.Is != isOver {
		t.Errorf("%+v, %v", a, err)
	}
	again(isOver)
	if n := m.begun(testKey); n != 2 {
		t.Errorf("it was begun %d times", n)
	}
	until(t, "it is cleared", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.cleared) == 1 })
}

// A launch comes back with its result, once, also to a machine that was started anew; then its worker
// forgets it.
func TestResultCountsOnce(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	_, _, _ = hire(t, s, t.TempDir(), m, 1)
	m.words = []launch.Signal{{Name: "A-done.json", Data: []byte("{}")}}
	heard, times := make(chan []launch.Signal, 10), 0
	back := b.launches(testKey, launch.Watch{Hear: func(w []launch.Signal) bool {
		heard <- w
		times++
		return times == 2 // the first could not be kept
	}})
	for range 2 {
		if w := <-heard; len(w) != 1 || w[0].Name != "A-done.json" {
			t.Errorf("heard while it works: %v", w)
		}
	}
	close(m.ends)
	if x := within(t, back).Exit; x.Code != 7 {
		t.Errorf("%+v", x)
	}
	until(t, "the worker forgets it", func() bool { return b.Workers()[0].Launches == nil })
	if x := within(t, b.launches(testKey, launch.Watch{})).Exit; x.Code != 7 {
		t.Errorf("asked again: %+v", x)
	}
	if n := m.begun(testKey); n != 1 {
		t.Errorf("it was made %d times", n)
	}
}

// A signal that was written under another name is heard again under its own: the first look may come between.
func TestRenamedSignalIsHeard(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	_, _, _ = hire(t, s, t.TempDir(), m, 1)
	say := func(name string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.words = []launch.Signal{{Name: name, Data: []byte("{}")}}
	}
	say("A-done.json.tmp")
	heard := make(chan string, 10)
	back := b.launches(testKey, launch.Watch{Hear: func(w []launch.Signal) bool { heard <- w[0].Name; return true }})
	for _, name := range []string{"A-done.json.tmp", "A-done.json"} {
		say(name)
		select {
		case got := <-heard:
			if got != name {
				t.Errorf("heard %s, want %s", got, name)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s is not heard", name)
		}
	}
	close(m.ends)
	within(t, back)
}

// A worker that falls silent has lost its launch. What it has when it comes back does not count: it is
// reported, and the launch is ended there.
func TestSilentWorkerHasLostIt(t *testing.T) {
	conform.Rule(t, "13-workers silent", "its launch is lost, and made anew under another key")
	conform.Rule(t, "13-workers late", "the result of one that was replaced does not count, and is reported")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, first, second, state := newBench(t, s, 1), newMaker(), newMaker(), t.TempDir()
	_, _, stop := hire(t, s, state, first, 1)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return first.begun(testKey) == 1 })
	stop()
	if x := within(t, back).Exit; !x.Lost || x.Class != engine.ClassInfrastructure || !strings.Contains(x.Why, ") was silent for 5s") {
		t.Fatalf("%+v", x)
	}
	if !strings.Contains(b.log.String(), "has been silent") {
		t.Errorf("not reported:\n%s", b.log)
	}

	anew := strings.TrimSuffix(testKey, "1") + "2"
	_, _, _ = hire(t, s, t.TempDir(), second, 1)
	back = b.launches(anew, launch.Watch{})
	until(t, "it is made anew", func() bool { return second.begun(anew) == 1 })
	_, _, _ = hire(t, s, state, first, 1)
	until(t, "the first is told to forget it", func() bool {
		first.mu.Lock()
		defer first.mu.Unlock()
		return len(first.cleared) == 1
	})
	if !strings.Contains(b.log.String(), "its result does not count") {
		t.Errorf("not reported:\n%s", b.log)
	}
	if x := within(t, b.launches(testKey, launch.Watch{})).Exit; !x.Lost {
		t.Errorf("the late one counts: %+v", x)
	}
	close(second.ends)
	if x := within(t, back).Exit; x.Code != 7 {
		t.Errorf("%+v", x)
	}
}

// A launch that waits for a worker is sent after a restart, and a key that a worker has used is given
// to no other.
func TestWaitingLaunchOutlivesARestart(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan string, 1)
	w := launch.Watch{Waits: func(why string) { said <- why }, Began: func() {}}
	order := func() (launch.Sent, error) { return sentFor(testKey), nil }
	ended := make(chan error, 1)
	go func() { _, err := b.Launch(ctx, testKey, []string{"linux"}, order, w); ended <- err }()
	<-said
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !b.Knows(testKey) {
		t.Fatalf("%v; it is known: %v", err, b.Knows(testKey))
	}
	if back, err := b.Stop(t.Context(), testKey); back != nil || err != nil {
		t.Errorf("one that was never sent is stopped: %+v, %v", back, err)
	}
	p, _, _ := hire(t, s, t.TempDir(), m, 1)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	close(m.ends)
	if x := within(t, back).Exit; x.Code != 7 {
		t.Errorf("%+v", x)
	}

	used := "far-2/A#1.1"
	if a, err := b.ask(t.Context(), p.ID(), call{Do: doLaunch, Key: used, Sent: new(sentFor(used))}); err != nil || a.Is != isRunning {
		t.Fatalf("%+v, %v", a, err)
	}
	until(t, "it is over", func() bool {
		a, err := b.ask(t.Context(), p.ID(), call{Do: doDrop, Key: used})
		return err == nil && a.Is == isOver
	})
	if x := within(t, b.launches(used, launch.Watch{})).Exit; !x.Lost {
		t.Errorf("%+v", x)
	}
}

// A machine that was deposed can do nothing any more with a worker that has heard of the one after it.
func TestOldEpochIsRefused(t *testing.T) {
	conform.Rule(t, "13-workers epochs", "each request of an epoch that is over is refused and reported")
	t.Parallel()
	s := natstest.Start(t, 1)
	m, state := newMaker(), t.TempDir()
	p, _, stop := hire(t, s, state, m, 2)
	newer := newBench(t, s, 3)
	if a, err := newer.ask(t.Context(), p.ID(), call{Do: doAsk, Key: testKey}); err != nil || a.Is != isUnknown {
		t.Fatalf("%+v, %v", a, err)
	}
	stop()
	p, out, _ := hire(t, s, state, m, 2)
	older := newBench(t, s, 2)
	sent := sentFor(testKey)
	for _, c := range []call{{Do: doLaunch, Key: testKey, Sent: &sent}, {Do: doAsk, Key: testKey},
		{Do: doStop, Key: testKey}, {Do: doDrop, Key: testKey}} {
		if a, err := older.ask(t.Context(), p.ID(), c); err != nil || a.Is != isRefused {
			t.Errorf("%s in an epoch that is over: %+v, %v", c.Do, a, err)
		}
	}
	if m.begun(testKey) != 0 {
		t.Error("it was made")
	}
	if !strings.Contains(older.log.String(), "another machine decides") || !strings.Contains(out.String(), "is refused") {
		t.Errorf("not reported:\n%s\n%s", older.log, out)
	}
}

// impostor answers in a worker's place.
func impostor(t *testing.T, s *natstest.Servers, worker string, beat Beat, reply func(call) answer) {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe(prefix+worker+orderEnd, func(m *nats.Msg) {
		c, err := readCall(m.Data)
		if err != nil {
			t.Errorf("the desk asks: %v", err)
			return
		}
		data, _ := json.Marshal(reply(c))
		_ = m.Respond(data)
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		data, _ := json.Marshal(beat)
		for {
			_ = nc.Publish(prefix+worker+beatEnd, data)
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { close(stop); done.Wait() })
}

// A result with another signature, or with what no result has, is refused and reported; the launch
// goes on, and the right one counts.
func TestForgedResultIsRefused(t *testing.T) {
	conform.Rule(t, "13-workers signed", "a result with another signature is refused and reported")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, worker := newBench(t, s, 1), "00112233445566ff"
	result := []byte(`{"exit":{"code":0}}`)
	var mu sync.Mutex
	asked := 0
	answers := []answer{
		{Is: isEnded, Result: result, Sign: sign(testToken("far-1/A#1.2"), testKey, result)},
		{Is: isEnded, Result: result, Sign: sign(testToken(testKey), "far-1/A#1.2", result)},
		{Is: isEnded, Result: []byte(`{"exit":{"code":9}}`), Sign: sign(testToken(testKey), testKey, result)},
		{Is: isEnded, Result: []byte(`{"exit":{"code":999}}`), Sign: sign(testToken(testKey), testKey, []byte(`{"exit":{"code":999}}`))},
		{Is: isEnded, Result: result, Sign: sign(testToken(testKey), testKey, result)},
	}
	impostor(t, s, worker, Beat{Worker: worker, Name: "w", Journal: testJournal, Versions: versions(), Labels: []string{"linux"}, Slots: 1,
		Launches: []Doing{}}, func(c call) answer {
		mu.Lock()
		defer mu.Unlock()
		if c.Do == doDrop || c.Do == doGreet {
			return answer{Is: isOver}
		}
		if asked++; asked == 1 {
			return answer{Is: isRunning}
		}
		return answers[min(asked-2, len(answers)-1)]
	})
	back := within(t, b.launches(testKey, launch.Watch{}))
	if back.Exit.Code != 0 || back.Exit.Lost {
		t.Errorf("%+v", back.Exit)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != 1+len(answers) {
		t.Errorf("the %d. answer counts, of %d", asked-1, len(answers))
	}
	for _, want := range []string{"not signed with the launch's token", "its exit cannot be used"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("not reported: %s:\n%s", want, b.log)
		}
	}
}

// A worker cannot fill the log of who decides.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	out := &log{}
	d := &Desk{opt: DeskOptions{Logf: out.logf}, odd: map[string]*oddity{}}
	for n := range 10 * oddMost {
		d.refuse("a", fmt.Sprintf("its heartbeat: launch %d", n%2))
	}
	d.refuse("b", "its answer")
	d.refuse("b", "its answer")
	if n := strings.Count(out.String(), "worker a"); n != oddMost || strings.Count(out.String(), "not reported for up to") != 1 {
		t.Errorf("%d lines:\n%s", n, out)
	}
	if n := strings.Count(out.String(), "worker b"); n != 1 {
		t.Errorf("another's: %d lines", n)
	}
	for n := range 2 * maxWorkers {
		d.refuse(fmt.Sprint(n), "its heartbeat")
	}
	if len(d.odd) != maxWorkers {
		t.Errorf("%d are kept", len(d.odd))
	}
	d.odd["a"].since = time.Now().Add(-2 * oddEvery)
	d.refuse("a", "again")
	if !strings.Contains(out.String(), "worker a: refused: again\n") {
		t.Error("later it is not reported any more")
	}
}

// A launch waits for a worker that has all labels and a free slot, and is ended there.
func TestAssignAndStop(t *testing.T) {
	conform.Rule(t, "13-workers assign", "a worker with all labels and a free slot; one that is gone or full is passed over")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	said := make(chan string, 10)
	one := b.launches(testKey, launch.Watch{Waits: func(why string) { said <- why }})
	if why := <-said; !strings.Contains(why, "no worker with the labels linux is there") {
		t.Error(why)
	}
	p, _, _ := hire(t, s, t.TempDir(), m, 1)
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	b.full(p, "far-3/A#1.1")
	also := make(chan string, 10) // the first may have waited for the worker's answer too
	_ = b.launches("far-2/A#1.1", launch.Watch{Waits: func(why string) { also <- why }})
	if why := <-also; !strings.Contains(why, "are busy") {
		t.Error(why)
	}
	if back, err := b.Stop(t.Context(), "far-9/A#1.1"); back != nil || err != nil {
		t.Errorf("one that was never sent: %+v, %v", back, err)
	}
	back, err := b.Stop(t.Context(), testKey)
	if err != nil || !back.Exit.Stopped {
		t.Errorf("%+v, %v", back, err)
	}
	if x := within(t, one).Exit; !x.Stopped {
		t.Errorf("%+v", x)
	}
	until(t, "the next has its slot", func() bool { return m.begun("far-2/A#1.1") == 1 })
}

// A worker whose clone is behind is sent a pack.
func TestLackingCommits(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	m.lacks = true
	p, _, _ := hire(t, s, t.TempDir(), m, 1)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	p.mu.Lock()
	sent := p.keys[testKey].Sent
	p.mu.Unlock()
	if sent.Pack != strings.Repeat("0", 64) || len(sent.Bases) != 1 {
		t.Errorf("%+v", sent)
	}
	close(m.ends)
	within(t, back)
}

// Nothing that comes from the network is used unless it is what it has to be.
func TestWire(t *testing.T) {
	t.Parallel()
	good, worker := sentFor(testKey), "00112233445566ff"
	edit := func(f func(*launch.Sent)) string {
		s := good
		f(&s)
		data, err := json.Marshal(call{Wire: versions().Newest, Do: doLaunch, Journal: testJournal, Epoch: 1, At: time.Now(), Key: testKey, Sent: &s})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if _, err := readCall([]byte(edit(func(*launch.Sent) {}))); err != nil {
		t.Fatal(err)
	}
	ask := `{"wire":2,"do":"ask","journal":"` + testJournal + `","epoch":1,"at":"2026-01-02T03:04:05Z","key":"` + testKey + `"}`
	if _, err := readCall([]byte(ask)); err != nil {
		t.Fatal(err)
	}
	beat := `{"wire":2,"wire_least":2,"worker":"` + worker + `","journal":"` + testJournal + `","labels":["linux"],"slots":1}`
	if b, err := readBeat([]byte(beat), worker); err != nil || b.Foreign != "" {
		t.Fatal(err, b.Foreign)
	}
	for what, text := range map[string]string{
		"no JSON":       `{"do":`,
		"twice":         `{"wire":2,"do":"ask","do":"drop","journal":"` + testJournal + `","epoch":1,"at":"2026-01-02T03:04:05Z","key":"` + testKey + `"}`,
		"unknown":       `{"wire":2,"do":"run","journal":"` + testJournal + `","epoch":1,"at":"2026-01-02T03:04:05Z","key":"` + testKey + `"}`,
		"no epoch":      `{"wire":2,"do":"ask","journal":"` + testJournal + `","at":"2026-01-02T03:04:05Z","key":"` + testKey + `"}`,
		"no journal":    `{"wire":2,"do":"ask","journal":"../x","epoch":1,"at":"2026-01-02T03:04:05Z","key":"` + testKey + `"}`,
		"key leads out": `{"wire":2,"do":"ask","journal":"` + testJournal + `","epoch":1,"at":"2026-01-02T03:04:05Z","key":"far-1/../../x#1.1"}`,
		"no order":      `{"wire":2,"do":"launch","journal":"` + testJournal + `","epoch":1,"at":"2026-01-02T03:04:05Z","key":"` + testKey + `"}`,
		"another key":   edit(func(s *launch.Sent) { s.Key = "far-1/A#1.2" }),
		"short token":   edit(func(s *launch.Sent) { s.Token = "ab" }),
		"dir":           edit(func(s *launch.Sent) { s.Dir = ".workflow/runs/../../../etc" }),
		"root":          edit(func(s *launch.Sent) { s.Dir = "/etc" }),
		"run":           edit(func(s *launch.Sent) { s.Run = "far-2" }),
		"step":          edit(func(s *launch.Sent) { s.Step = "../x" }),
		"role":          edit(func(s *launch.Sent) { s.Role = "a/b" }),
		"signal":        edit(func(s *launch.Sent) { s.Signal = "../x.json" }),
		"head":          edit(func(s *launch.Sent) { s.Head = "--upload-pack=x" }),
		"pack":          edit(func(s *launch.Sent) { s.Pack = "x" }),
		"base":          edit(func(s *launch.Sent) { s.Bases = []string{"-x"} }),
		"too long":      edit(func(s *launch.Sent) { s.Prompt = strings.Repeat("x", maxCall) }),
	} {
		if _, err := readCall([]byte(text)); err == nil {
			t.Errorf("a request is taken: %s", what)
		}
	}
	full := Beat{Worker: worker, Journal: testJournal, Versions: versions(), Labels: []string{"linux"}, Slots: MaxSlots}
	for n := range maxKeys {
		key := fmt.Sprintf("%s/%s#%039d", strings.Repeat("r", ids.MaxRun), strings.Repeat("s", ids.Max), n)
		full.Launches = append(full.Launches, Doing{Key: key, Ended: true, Since: time.Now(), Words: math.MinInt64,
			Mark: strings.Repeat("f", markLen)})
	}
	data, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := readBeat(data, worker); err != nil || len(b.Launches) != maxKeys {
		t.Errorf("a worker with all slots in use, %d bytes: %v", len(data), err)
	}
	for what, text := range map[string]string{
		"another worker": `{"wire":2,"wire_least":2,"worker":"ffffffffffffffff","journal":"` + testJournal + `","labels":["linux"],"slots":1}`,
		"no labels":      `{"wire":2,"wire_least":2,"worker":"` + worker + `","journal":"` + testJournal + `","labels":[],"slots":1}`,
		"label":          `{"wire":2,"wire_least":2,"worker":"` + worker + `","journal":"` + testJournal + `","labels":["a b"],"slots":1}`,
		"slots":          `{"wire":2,"wire_least":2,"worker":"` + worker + `","journal":"` + testJournal + `","labels":["linux"],"slots":1000000}`,
		"key": `{"wire":2,"wire_least":2,"worker":"` + worker + `","journal":"` + testJournal +
			`","labels":["linux"],"slots":1,"launches":[{"key":"../x","since":"2020-01-01T00:00:00Z"}]}`,
	} {
		if _, err := readBeat([]byte(text), worker); err == nil {
			t.Errorf("a heartbeat is taken: %s", what)
		}
	}
	for what, text := range map[string]string{
		"class":  `{"exit":{"code":0,"class":"good"}}`,
		"budget": `{"exit":{"code":0,"class":"limit","budget":"` + strings.Repeat("x", 1<<20) + `"}}`, // the journal has it
		"usage":  `{"exit":{"code":0,"usage":{"tokens":-1}}}`,
		"tokens": `{"exit":{"code":0,"usage":{"tokens":9000000000000000000}}}`,             // two of them are less than none
		"cost":   `{"exit":{"code":0,"usage":{"cost_usd":1e308}}}`,                         // two of them are no number of JSON
		"reset":  `{"exit":{"code":0,"class":"limit","resume_at":"9999-01-01T00:00:00Z"}}`, // the run would wait, and ask nobody
		"output": `{"exit":{"code":0},"output":"../x"}`,
		"commit": `{"exit":{"code":0},"commit":"` + testCommit + `"}`,
		"name":   `{"exit":{"code":0},"commit":"HEAD","tip":"HEAD","pack":"` + strings.Repeat("0", 64) + `"}`,
	} {
		if _, err := readResult([]byte(text)); err == nil {
			t.Errorf("a result is taken: %s", what)
		}
	}
	b, err := readResult([]byte(`{"exit":{"code":-1,"class":"limit","budget":"2026-01-02","signal":"\u001b[2JSIGKILL"}}`))
	if err != nil || strings.Contains(b.Exit.Signal, "\x1b") {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestNoLeader: a worker that no leader has ever greeted, as with the id of another journal, says so once. One that
// was greeted says who leads.
func TestNoLeader(t *testing.T) {
	out, now := &log{}, time.Now()
	p, err := NewPost(PostOptions{State: t.TempDir(), Journal: testJournal, Logf: out.logf, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	p.listen()
	if out.String() != "" {
		t.Errorf("at once: %s", out)
	}
	for range 2 {
		now = now.Add(greetIn)
		p.listen()
	}
	if got := out.String(); strings.Count(got, "no leader of journal "+testJournal) != 1 {
		t.Errorf("after %s: %s", greetIn, got)
	}
	greet := call{Do: doGreet, Journal: testJournal, Epoch: 1, At: now, By: "boss"}
	if _, err := p.do(t.Context(), greet); err != nil || !strings.Contains(out.String(), "boss leads now") {
		t.Errorf("%v %s", err, out)
	}
	p.alone = false
	p.listen()
	if got := out.String(); strings.Count(got, "no leader") != 1 {
		t.Errorf("once it was greeted: %s", got)
	}
}
