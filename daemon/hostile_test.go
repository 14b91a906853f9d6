package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/journal"
	"sluice/tools/conform"
)

// still is a World in which nothing comes to an end.
type still struct{ stage }

func (*still) Carry(ctx context.Context, _ job.Job, _ func(engine.Event)) engine.Event {
	<-ctx.Done()
	return nil
}

// byHand is a repo's loop that a test turns.
type byHand struct {
	*Repo
	t   *testing.T
	now time.Time
}

func handled(t *testing.T) *byHand {
	t.Helper()
	b := &byHand{t: t, now: time.Now()}
	r, _, err := OpenRepo(RepoOptions{State: t.TempDir(), World: &still{*newStage()}, Compile: twoGates, Config: engine.DefaultConfig,
		Log: zerolog.Nop(), Now: func() time.Time { return b.now }})
	if err != nil {
		t.Fatal(err)
	}
	b.Repo = r
	ctx, stop := context.WithCancel(context.Background())
	r.fl = newFlights(ctx, r.opt.World, r.spawn, r.queue.post)
	t.Cleanup(func() {
		r.land(stop)
		if err := r.core.log.Close(); err != nil {
			t.Error(err)
		}
	})
	b.turn(engine.RunRequested{Workflow: "two", Source: "two", Digest: digestOf("two")}, engine.FileWritten{Run: "two-1", ID: "two-1/sweep"})
	return b
}

func (b *byHand) turn(events ...engine.Event) {
	b.t.Helper()
	var batch []item
	for _, ev := range events {
		batch = append(batch, item{event: ev})
	}
	b.batch(batch...)
}

func (b *byHand) batch(batch ...item) {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	if err := b.Repo.turn(context.Background(), batch); err != nil {
		b.t.Fatal(err)
	}
}

func (b *byHand) run() *engine.Run { return b.core.state.Runs["two-1"] }

// gate takes the step from running to its gate's review.
func (b *byHand) gate(step string) {
	b.t.Helper()
	key := b.run().Current(step).Key
	b.turn(engine.FileSeen{Name: step + "-done.json", ID: step, Written: b.now, Sentinel: &engine.Sentinel{}}, engine.ProcessEnded{Run: "two-1", Key: key})
	for _, p := range b.run().Procs {
		b.turn(engine.ProcessEnded{Run: "two-1", Key: p.Key, Check: &engine.CheckResult{OK: true, Digest: "d"}})
	}
}

// passed takes step A to where its veto window is open.
func (b *byHand) window() *engine.Round {
	b.t.Helper()
	b.gate("A")
	for _, p := range b.run().Procs {
		b.turn(engine.ProcessEnded{Run: "two-1", Key: p.Key, Verdict: &engine.Judgement{Outcome: "pass"}})
	}
	for id := range b.core.state.Notices {
		b.turn(engine.Noticed{Run: "two-1", ID: id})
	}
	q := b.run().CurrentRound("GA")
	if q == nil || q.State != engine.OnWindow {
		b.t.Fatalf("GA: %+v", q)
	}
	return q
}

// TestAScanKnowsWhatItWasTold: a scan that began before a launch, or before a person was asked,
// does not know its token or its digest: such a file is for the next one.
func TestAScanKnowsWhatItWasTold(t *testing.T) {
	conform.Rule(t, "2-files signal 3", "a token is judged by a scan that knows the launch")
	b := handled(t)
	a := b.run().Current("A")
	word := engine.FileSeen{Name: "A-done.json", ID: "1", Written: b.now, TokenOf: "?", Sentinel: &engine.Sentinel{}}
	b.batch(item{scan: []engine.Event{word}, began: a.Launched.Add(-time.Millisecond)})
	if len(b.core.state.Moves) != 0 || !b.scans.reading {
		t.Fatalf("a launch's word was thrown out by a scan that began before it: %+v; another scan: %v", b.core.state.Moves, b.scans.reading)
	}
	word.TokenOf = a.Key
	b.batch(item{scan: []engine.Event{word}, began: b.now})
	if got := b.run().Current("A").State; got != engine.Signalled {
		t.Fatalf("A is %s", got)
	}
	b = handled(t)
	q := b.window()
	b.batch(item{began: q.WindowEnds.Add(time.Second)})
	b.gate("B")
	q = b.run().CurrentRound("GB")
	veto := engine.FileSeen{Name: "GA-veto", ID: "3", Written: b.now, Human: &engine.HumanSay{}}
	if newer(b.core.state, veto, q.Asked.Add(-time.Millisecond), b.now) {
		t.Error("a veto waits for another scan: this one may close its window")
	}
	pass := engine.FileSeen{Name: "GB-pass", ID: "2", Written: b.now, Human: &engine.HumanSay{}}
	if day := 24 * time.Hour; newer(b.core.state, pass, q.Asked.Add(-day), q.Asked.Add(-day)) {
		t.Error("a pass waits until the clock, which was set back, is where it was")
	}
	b.batch(item{scan: []engine.Event{pass}, began: q.Asked.Add(-time.Millisecond)})
	if q := b.run().CurrentRound("GB"); q == nil || q.N != 1 || q.State != engine.OnHuman {
		t.Fatalf("a pass was void because the scan did not know what to look at: %+v", q)
	}
	pass.DigestNow = "d"
	b.batch(item{scan: []engine.Event{pass}, began: b.now})
	if b.run().Phase != engine.RunCompleted {
		t.Error(b.run().Phase)
	}
}

// TestWhatPassedInASleepIsOpenedFirst: whatever comes first after the machine's sleep, it does not
// close what passed in it.
func TestWhatPassedInASleepIsOpenedFirst(t *testing.T) {
	conform.Rule(t, "8-semantics 36", "a window that passed while the machine slept is open again before any scan closes it")
	b := handled(t)
	b.window()
	b.steady = func(from, to time.Time) time.Duration { return time.Second }
	b.now = b.now.Add(time.Hour)
	b.batch(item{began: b.now})
	if q := b.run().CurrentRound("GA"); q.State != engine.OnWindow || !q.Reopened {
		t.Errorf("the window closed unseen: %+v", q)
	}
}

// TestAWordThatIsNotWholeKeepsAWindowOpen: a veto that was written before the window's end, and waits to be whole, counts.
// One that was written later keeps nothing open.
func TestAWordThatIsNotWholeKeepsAWindowOpen(t *testing.T) {
	b := handled(t)
	ends := b.window().WindowEnds
	b.now = ends.Add(time.Second)
	b.batch(item{scan: []engine.Event{engine.Scanned{Began: ends.Add(-time.Millisecond)}}, began: b.now})
	if q := b.run().CurrentRound("GA"); q.State != engine.OnWindow || !b.scans.left {
		t.Errorf("the window closed over it: %+v", q)
	}
	b.batch(item{scan: []engine.Event{engine.Scanned{Began: ends}}, began: b.now})
	if q := b.run().CurrentRound("GA"); q.State == engine.OnWindow {
		t.Errorf("what was written afterwards keeps it open: %+v", q)
	}
	b.batch(item{began: b.now})
	if b.scans.left {
		t.Error("something is left for ever")
	}
}

// TestTheInboxOfAPlainFolder: a worktree that is a plain folder of the root's checkout has an inbox
// too.
func TestTheInboxOfAPlainFolder(t *testing.T) {
	conform.Rule(t, "1-language rule 3 sentinel_file", "written below a worktree that is a plain folder of the root it counts too")
	b := handled(t)
	if in := inboxes(b.core.state, nil); len(in.Trees) != 0 {
		t.Errorf("%q: the root's own is read anyway", in.Trees)
	}
	b.run().Current("A").Worktree = "sub"
	if in := inboxes(b.core.state, nil); len(in.Trees) != 1 || in.Trees[0] != "." {
		t.Errorf("%q", in.Trees)
	}
}

// TestARefusedStartLeavesNothing: the spec of a run that was not started is not kept.
func TestARefusedStartLeavesNothing(t *testing.T) {
	b := handled(t)
	b.turn(engine.RunRequested{Workflow: "two", Source: "two of another kind", Digest: "other", Vars: map[string]any{"no": "such"}})
	if len(b.core.sources) != 1 || len(b.core.specs) != 1 {
		t.Errorf("%d sources, %d specs", len(b.core.sources), len(b.core.specs))
	}
}

// TestTheExportHoldsNobodyUp: records that find no place are read from the journal later.
func TestTheExportHoldsNobodyUp(t *testing.T) {
	conform.Rule(t, "2-files journal export", "an export that lags delays nothing, and is completed from the journal")
	b := handled(t)
	root := t.TempDir()
	b.exp = newExporter(root, t.TempDir(), zerolog.New(zerolog.NewTestWriter(t)), func(why string) { t.Error(why) })
	b.exp.most = 1
	lagging := make(chan struct{})
	go func() {
		b.turn(engine.PauseRequested{Run: "two-1"})
		b.turn(engine.ResumeRequested{Run: "two-1"})
		b.turn(engine.PauseRequested{Run: "two-1"})
		close(lagging)
	}()
	select {
	case <-lagging:
	case <-time.After(30 * time.Second):
		t.Fatal("the loop waits for the export")
	}
	b.exp.begin(b.core.log.Replay)
	b.turn(engine.ResumeRequested{Run: "two-1"})
	b.exp.end()
	b.exp = nil
	last, _ := b.core.log.Last()
	rep, err := journal.VerifyExport(filepath.Join(root, ExportName("two")), b.opt.State, KeepAudit("two"), journal.Options{})
	if err != nil || rep.Behind != 0 {
		t.Errorf("of %d records: %+v %v", last, rep, err)
	}
	if st, err := os.Stat(filepath.Join(root, ".workflow", "runs", "two-1")); err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("the run's folder is others' to read: %v %v", st.Mode(), err)
	}
}

// TestTheExportIsWholeThoughNothingComesAfter: the last records of a burst are those that find no
// place; no other may come for days.
func TestTheExportIsWholeThoughNothingComesAfter(t *testing.T) {
	b := handled(t)
	root := t.TempDir()
	b.exp = newExporter(root, t.TempDir(), zerolog.New(zerolog.NewTestWriter(t)), func(why string) { t.Error(why) })
	b.exp.most = 1
	read, burst := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.exp.begin(func(from int64, fn func(journal.Record) error) error {
		err := b.core.log.Replay(from, fn)
		once.Do(func() { close(read); <-burst })
		return err
	})
	<-read
	b.turn(engine.PauseRequested{Run: "two-1"})
	b.turn(engine.ResumeRequested{Run: "two-1"})
	b.turn(engine.PauseRequested{Run: "two-1"})
	close(burst)
	last, _ := b.core.log.Last()
	untilAudited(t, root, b.opt.State, fmt.Sprintf("%d records", last), func(rep journal.ExportReport) bool { return rep.Behind == 0 })
	b.exp.end()
	b.exp = nil
}

// TestAnExportIsNotWholeByARetryThatReadNothing: the journal may not be read, or be closed, by then.
func TestAnExportIsNotWholeByARetryThatReadNothing(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	said := "nothing yet"
	x := newExporter(root, state, zerolog.Nop(), func(why string) { said = why })
	fact := json.RawMessage(`{"kind":"run_started","run":"w-1","workflow":"w"}`)
	recs := []journal.Record{{Seq: 1, Sum: "a"}, {Seq: 2, Sum: "b", Facts: []json.RawMessage{fact}}, {Seq: 3, Sum: "c", Facts: []json.RawMessage{fact}}}
	closed := false
	x.replay = func(from int64, fn func(journal.Record) error) error {
		if closed {
			return errors.New("closed")
		}
		for _, r := range recs[from-1:] {
			if err := fn(r); err != nil {
				return err
			}
		}
		return nil
	}
	audit := filepath.Join(root, ".workflow", "audit")
	if err := errors.Join(os.MkdirAll(filepath.Dir(audit), 0o755), os.WriteFile(audit, nil, 0o644)); err != nil { // no folder
		t.Fatal(err)
	}
	_ = x.fill()
	why := said
	closed = true
	x.retry()
	x.leave()
	if _, err := os.Lstat(filepath.Join(state, markFile)); said != why || why == "" || err == nil {
		t.Errorf("%q after %q, a mark: %t", said, why, err == nil)
	}
	closed = false
	if err := os.Remove(audit); err != nil {
		t.Fatal(err)
	}
	x.retry()
	if x.leave(); said != "" || x.upTo != 3 {
		t.Errorf("%q, up to %d", said, x.upTo)
	}
}

// TestAShortLifeKeepsTheMark: an exporter that could not read the journal knows less than the one before it.
func TestAShortLifeKeepsTheMark(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	before := []byte(`{"form":2,"seq":13,"sum":"a","ends":{}}` + "\n")
	if err := os.WriteFile(filepath.Join(state, markFile), before, 0o600); err != nil {
		t.Fatal(err)
	}
	x := newExporter(root, state, zerolog.Nop(), func(string) {})
	x.begin(func(int64, func(journal.Record) error) error { return journal.ErrClosed })
	x.give(journal.Record{Seq: 14, Sum: "b"})
	x.end()
	if after, err := os.ReadFile(filepath.Join(state, markFile)); err != nil || string(after) != string(before) {
		t.Errorf("the mark is %s %v, was %s", after, err, before)
	}
}

// TestTheExporterReadsToTheEnd: the journal is open until a repo's exports are complete, also in a life that
// ends as it begins.
func TestTheExporterReadsToTheEnd(t *testing.T) {
	root := t.TempDir()
	for range 20 {
		state := filepath.Join(root, "state")
		s := serveTest(t, root, newStage())
		s.stop()
		var m mark
		data, err := os.ReadFile(filepath.Join(state, markFile))
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		c, _, openErr := openCore(state, journal.Options{}, twoGates)
		if err = errors.Join(err, openErr); err != nil {
			t.Fatal(err)
		}
		last, _ := c.log.Last()
		if c.log.Close(); m.Seq != last {
			t.Fatalf("the mark is of record %d, the last is %d", m.Seq, last)
		}
	}
}

// TestOnlyAWholeScanCloses: who read some of the inboxes cannot say that no veto lies in the
// others.
func TestOnlyAWholeScanCloses(t *testing.T) {
	b := handled(t)
	q := b.window()
	late := q.WindowEnds.Add(time.Second)
	b.now = late
	b.batch(item{began: late, part: true})
	if got := b.run().CurrentRound("GA").State; got != engine.OnWindow {
		t.Fatalf("GA is %s after a look into some inboxes", got)
	}
	b.batch(item{began: late})
	if got := b.run().CurrentRound("GA").State; got == engine.OnWindow {
		t.Fatal("GA is open after a whole scan")
	}
}

// TestALookKnowsTheRunsConcerned: what is read of one run's inbox is judged by that run alone; what
// may be anybody's by all.
func TestALookKnowsTheRunsConcerned(t *testing.T) {
	b := handled(t)
	b.turn(engine.RunRequested{Workflow: "two", Source: "two", Digest: digestOf("two"), Parallel: true})
	for _, c := range []struct {
		only []job.Place
		want int
	}{{nil, 2}, {[]job.Place{{Dir: "x", Run: "two-1"}}, 1}, {[]job.Place{{Run: "two-1"}, {Run: "two-2"}}, 2}, {[]job.Place{{Run: "two-1"}, {Dir: "root"}}, 2}} {
		if in := inboxes(b.core.state, c.only); len(in.Runs) != c.want || len(in.Only) != len(c.only) {
			t.Errorf("%v: %+v", c.only, in)
		}
	}
}

// TestAScanInPartsIsAsOldAsItsFirst: what came behind the place where the first part stopped and
// before the second began was read by neither.
func TestAScanInPartsIsAsOldAsItsFirst(t *testing.T) {
	b := handled(t)
	q := b.window()
	before, after := q.WindowEnds.Add(-time.Second), q.WindowEnds.Add(time.Second)
	b.now = after
	b.batch(item{began: before, part: true, more: true})
	b.batch(item{began: after})
	if got := b.run().CurrentRound("GA").State; got != engine.OnWindow {
		t.Fatalf("GA is %s: the first part began before the window's end", got)
	}
	b.batch(item{began: after})
	if got := b.run().CurrentRound("GA").State; got == engine.OnWindow {
		t.Fatal("GA is open after a scan that began after the window's end")
	}
}
