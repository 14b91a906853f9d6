package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// fakeLead is a part in a cluster whose course the test sets.
type fakeLead struct {
	turn   chan struct{} // closed: this machine is to decide
	lost   chan struct{}
	holds  atomic.Bool
	asked  atomic.Int64 // how often Holds was
	copied atomic.Int64
	closed atomic.Bool

	renewed time.Time
	say     func(ctx context.Context, words []byte) (answer []byte, heard bool, err error)
	hears   chan func(ctx context.Context, words []byte) []byte
}

func newFakeLead() *fakeLead {
	return &fakeLead{turn: make(chan struct{}), lost: make(chan struct{})}
}

func (l *fakeLead) Take(ctx context.Context, _ string) error {
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *fakeLead) Copy(lines []byte, _ int64) func() error {
	l.copied.Add(int64(len(lines)))
	return func() error { return nil }
}
func (l *fakeLead) Holds() bool {
	l.asked.Add(1)
	return l.holds.Load()
}
func (l *fakeLead) Lost() <-chan struct{} { return l.lost }
func (l *fakeLead) Say(ctx context.Context, words []byte) (answer []byte, heard bool, err error) {
	if l.say == nil {
		return nil, false, nil
	}
	return l.say(ctx, words)
}
func (l *fakeLead) Hear(ctx context.Context, answer func(ctx context.Context, words []byte) []byte) error {
	select {
	case l.hears <- answer:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}
func (l *fakeLead) Close() { l.closed.Store(true) }
func (l *fakeLead) Report() Cluster {
	return Cluster{Epoch: 4, Leader: "the other", Leads: l.holds.Load(), Holds: l.holds.Load(), Renewed: l.renewed}
}

// A follower answers, and takes nothing in. A leader begins effects only while its lease lasts, and
// ends when another machine decides.
func TestLead(t *testing.T) {
	root := t.TempDir()
	state := filepath.Join(root, "state")
	lead, world := newFakeLead(), newStage()
	ctx := t.Context()
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- Serve(ctx, root, state, func(context.Context, string, string) (RepoOptions, func(), error) {
			l, _, err := journal.Open(state, journal.Options{}) // as Take would
			if err != nil {
				return RepoOptions{}, nil, err
			}
			return RepoOptions{World: world, Compile: twoGates, Config: engine.DefaultConfig, Lead: lead}, nil, l.Close()
		}, func(*Repo, journal.Recovery) { close(ready) })
	}()
	c := NewClient(state)
	defer c.Close()
	wait := func(what string, ok func() bool) {
		t.Helper()
		for until := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("never: %s", what)
			}
		}
	}
	wait("the follower answers", func() bool {
		st, err := c.Status(ctx, "")
		return err == nil && st.Cluster != nil && st.Cluster.Epoch == 4
	})
	if _, err := c.Do(ctx, engine.RunRequested{Source: "two"}, ""); err == nil || !strings.Contains(err.Error(), "the other decides") {
		t.Errorf("a follower takes a run in: %v", err)
	}

	close(lead.turn)
	<-ready
	if _, err := c.Do(ctx, engine.RunRequested{Source: "two"}, ""); err != nil {
		t.Fatal(err)
	}
	if l, _ := journal.Verify(state, journal.Options{}); lead.copied.Load() != l.Bytes || l.Records == 0 {
		t.Errorf("%d bytes of %d were copied", lead.copied.Load(), l.Bytes)
	}
	wait("an effect asks for the lease", func() bool { return lead.asked.Load() > 0 })
	if n := world.count(); n != 0 {
		t.Errorf("%d effects began without a lease", n)
	}
	lead.holds.Store(true)
	wait("effects begin", func() bool { return world.count() > 0 })

	close(lead.lost)
	select {
	case err := <-ended:
		if !errors.Is(err, errDeposed) || !strings.Contains(err.Error(), "the other") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it serves on, although another machine decides")
	}
	if !lead.closed.Load() {
		t.Error("its part in the cluster was not closed")
	}
}

// The time in which nobody served a repo is counted from the last renewal, of whichever machine, and
// not from when this one served it; the record of the lead itself does not end it.
func TestLeadAwayTime(t *testing.T) {
	state, now := t.TempDir(), time.Now().Round(0)
	log, _, err := journal.Open(state, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fact, err := engine.EncodeFact(engine.SettingsTaken{Config: engine.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	if _, _, err := log.Append(journal.Entry{At: ago(3 * time.Hour), Event: []byte(`{"kind":"configured"}`), Facts: []json.RawMessage{fact}},
		journal.Lead{Epoch: 5, By: "this"}.Entry(now)); err != nil {
		t.Fatal(err)
	}
	log.Close()
	for _, c := range []struct{ renewed, want time.Time }{
		{ago(time.Minute), ago(time.Minute)},
		{time.Time{}, ago(3 * time.Hour)},
		{now.Add(time.Hour), ago(3 * time.Hour)}, // its clock is ahead
	} {
		lead := newFakeLead()
		lead.renewed = c.renewed
		r, _, err := OpenRepo(RepoOptions{State: state, World: newStage(), Compile: twoGates, Config: engine.DefaultConfig, Lead: lead})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.left(now); !got.Equal(c.want) {
			t.Errorf("renewed %s: nobody served it since %s, want %s", c.renewed, got, c.want)
		}
		r.core.log.Close()
	}
}

// The work of live runs is asked for by all results that the journal names, those of child runs too,
// the newest first. A run whose work does not come is paused, once.
func TestLeadBringsWork(t *testing.T) {
	c := &core{state: engine.NewState()}
	add := func(id, phase string, child *engine.ChildOf, paused bool, attempts ...*engine.Attempt) {
		c.state.Order = append(c.state.Order, id)
		c.state.Runs[id] = &engine.Run{ID: id, Phase: phase, Child: child, Paused: paused,
			Attempts: map[string][]*engine.Attempt{"a": attempts}}
	}
	made := func(since int64, digest string) *engine.Attempt {
		return &engine.Attempt{N: 1, Since: since, Digest: digest}
	}
	add("w-1", engine.RunRunning, nil, false, made(3, "old"), made(9, "new"), made(12, ""))
	add("w-1.t.1", engine.RunCompleted, &engine.ChildOf{Parent: "w-1"}, false, made(5, "task"))
	add("w-2", engine.RunCompleted, nil, false, made(1, "over"))
	add("w-3", engine.RunRunning, nil, true, made(1, "paused"))
	c.state.Runs["w-1"].Moved, c.state.Runs["w-1.t.1"].Moved = []string{"A", "B"}, []string{"C"}
	var asked []string
	r := &Repo{core: c, opt: RepoOptions{Brought: func(_ context.Context, run string, w Work) string {
		asked = append(asked, run+": "+strings.Join(append(w.Digests, w.Moved...), " "))
		return "not here"
	}}}
	batch := r.brought(context.Background())
	if got := strings.Join(asked, ", "); got != "w-1: new task old A B C, w-3: paused" {
		t.Errorf("asked for %s", got)
	}
	want := engine.SpecUnread{Run: "w-1", Why: "not here", Lacks: engine.PausedWork}
	if len(batch) != 1 || batch[0].event != want {
		t.Errorf("%+v", batch)
	}
}

// The times of runs are moved once, by what the leads say of the clocks since the last decision, also
// where a machine led and decided nothing.
func TestLeadShiftsTimes(t *testing.T) {
	b := handled(t)
	launched := b.run().Current("A").Launched
	if err := b.core.log.Close(); err != nil {
		t.Fatal(err)
	}
	led := func(leads ...journal.Lead) {
		t.Helper()
		log, _, err := journal.Open(b.opt.State, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for _, l := range leads {
			if _, _, err := log.Append(l.Entry(b.now)); err != nil {
				t.Fatal(err)
			}
		}
	}
	lead := newFakeLead() // of epoch 4
	ahead := func(d time.Duration) journal.Lead { return journal.Lead{Epoch: 4, By: "x", Ahead: d.Milliseconds()} }
	for i, c := range []struct {
		leads []journal.Lead
		want  time.Duration // in all
	}{
		{[]journal.Lead{ahead(time.Hour), ahead(0), ahead(-20 * time.Minute)}, 40 * time.Minute},
		{nil, 40 * time.Minute},
		{[]journal.Lead{ahead(0)}, 40 * time.Minute},
		{[]journal.Lead{ahead(-40 * time.Minute)}, 0},
	} {
		led(c.leads...)
		now := b.now.Add(c.want)
		lead.renewed = now.Add(-time.Second)
		r, _, err := OpenRepo(RepoOptions{State: b.opt.State, World: newStage(), Compile: twoGates, Config: engine.DefaultConfig, Lead: lead,
			Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		first := r.start(t.Context())[0].event
		if woken, ok := first.(engine.Woken); !ok || woken.Epoch != 4 || woken.To.Sub(woken.From) > time.Second {
			t.Errorf("start %d: %+v", i, first)
		}
		r.core.take(first, now)
		if _, err := r.core.commit(); err != nil {
			t.Fatal(err)
		}
		if got := r.core.state.Runs["two-1"].Current("A").Launched.Sub(launched); got != c.want {
			t.Errorf("start %d: the times have moved by %s, want %s", i, got, c.want)
		}
		if err := r.core.log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A journal that several machines keep is not served by one alone, whatever files lie beside it, and
// also where only a snapshot says so; it is once a machine has left.
func TestLedIsNotServedAlone(t *testing.T) {
	b := handled(t)
	state := b.opt.State
	if err := b.core.log.Close(); err != nil {
		t.Fatal(err)
	}
	open := func(lead Lead) error {
		r, _, err := OpenRepo(RepoOptions{State: state, World: newStage(), Compile: twoGates, Config: engine.DefaultConfig, Lead: lead})
		if err != nil {
			return err
		}
		if lead != nil { // what is in the journal is in the snapshot alone
			r.core.since = 1
			err = r.core.save()
		}
		return errors.Join(err, r.core.log.Close())
	}
	add := func(e journal.Entry) {
		t.Helper()
		log, _, err := journal.Open(state, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := log.Append(e); err != nil {
			t.Fatal(err)
		}
		log.Close()
	}
	if err := open(nil); err != nil {
		t.Fatal(err)
	}
	add(journal.Lead{Epoch: 7, By: "x"}.Entry(b.now))
	for range 2 {
		if err := open(nil); err == nil || !strings.Contains(err.Error(), "was not left after epoch 7") {
			t.Fatal(err)
		}
		if err := open(newFakeLead()); err != nil {
			t.Fatal(err)
		}
	}
	add(journal.Left{Epoch: 7, By: "x"}.Entry(b.now))
	if err := open(nil); err != nil {
		t.Fatal(err)
	}
}
