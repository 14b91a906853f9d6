package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/journal"
)

// sim plays one seed: the real loop, in a world and on a disk that do what the seed says. All that
// is drawn is drawn by the one goroutine that drives, so that a seed is the same history each time.
type sim struct {
	lists bool // its workflows have task lists and child runs
	space bool // its runs have worktrees of their own
	fires bool // one of its workflows has triggers
	g     *rand.Rand
	disk  *simDisk
	w     *simWorld
	specs map[string]*engine.Spec // by source
	conf  engine.Config
	scan  time.Duration
	every int

	turn   sync.Mutex
	repo   *Repo
	port   *simPort
	cancel context.CancelFunc
	done   chan error
	asks   []*simAsk
	late   []*simAsk // answers that are given and not yet sent

	runsAsked, xAsked int
	hinted            bool      // a hint is to be sent
	over              time.Time // when the last life ended, by the steady clock
	window            bool      // a window was open then
	set, ticked       time.Time // what the clock was set back to in this life, and what was seen to be due before that

	led       *ledger
	asked     time.Time // when the clock was read last, and how often since it stands there
	askedHere int
	alive     time.Time // the mark a daemon leaves of being there
	calm      bool
	trace     func(format string, args ...any)
	lives     int
	counts    simCounts
	full      time.Time // since when the disk is full
	runs      int       // launches carried out when it stalled; below 0: it is not
}

// simCounts is what a history came to.
type simCounts struct{ events, facts, crashes, stalls, syncs, stops, ticks, children, tasks, rewinds, landings, fired, messages, late int }

// simAsk is something a person asked through the API.
type simAsk struct {
	ev    engine.Event
	word  *simWord
	reply doneReply
	err   error
	done  chan struct{}
}

func newSim(seed uint64) *sim {
	s := &sim{g: rand.New(rand.NewPCG(seed, 1)), disk: newSimDisk(seed), specs: map[string]*engine.Spec{}, led: newLedger(), conf: engine.DefaultConfig(), trace: func(string, ...any) {}}
	s.w = &simWorld{began: time.Now(), disk: s.disk, procs: map[string]*simProc{}, written: map[string]bool{}, branches: map[string]*simBranch{}, books: map[string]*simBook{}}
	if seed%7 == 3 {
		s.w.far = newSimFar()
	}
	s.lists, s.space, s.fires = seed%4 == 1, seed%5 == 2, seed%9 == 3 || seed%9 == 6
	s.conf.MaxParallel = 1 + s.g.IntN(3)
	s.conf.Timeout = engine.Duration(10 * time.Minute)
	s.conf.Remind = engine.Duration(pick(s.g, 0, 10*time.Minute, time.Hour))
	s.scan = pick(s.g, 5*time.Second, 5*time.Second, time.Minute) + 7
	s.every = pick(s.g, 3, 10, 40, snapshotEvery)
	return s
}

func (s *sim) fail(format string, args ...any) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.fail(format, args...)
}

func (s *sim) compile(source string) (*engine.Spec, error) {
	if w := s.specs[source]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("no spec %q", source)
}

// open starts a daemon on what the last one left.
func (s *sim) open() {
	s.disk.Revive()
	if !s.calm && s.g.IntN(3) == 0 {
		s.disk.DieAt = s.g.IntN(12)
	}
	if s.lives++; s.w.far != nil && !s.calm && s.g.IntN(4) == 0 {
		s.w.far.takeover()
	}
	s.w.napped, s.set = time.Time{}, time.Time{}
	s.runs = -1
	s.port = &simPort{w: s.w, scanned: time.Now(), hints: make(chan struct{}, 1), last: map[string]time.Time{}}
	repo, rec, err := OpenRepo(RepoOptions{State: simDir, ID: strings.Repeat("5", 32), World: s.port, Compile: s.compile, Config: func() engine.Config { return s.conf },
		Now: s.now, Rescan: s.scan, Log: zerolog.Nop(), Journal: journal.Options{FS: s.disk}})
	s.trace("---- life %d: %+v %v", s.lives, rec, err)
	switch {
	case s.disk.IsDead():
		if err == nil {
			repo.core.log.Close()
		}
		s.repo = nil
		s.crashed()
		return
	case errors.Is(err, journal.ErrStalled):
		s.disk.Room, s.full = -1, time.Time{}
		s.repo = nil
		return
	case err != nil:
		s.fail("the repo cannot be opened: %v", err)
		return
	}
	s.repo = repo
	repo.core.every = s.every
	repo.told, repo.served, repo.serve = s.told, func() time.Time { return s.alive }, func(at time.Time) { s.alive = at.Round(0) } // as a file keeps it
	s.restored()
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.done = make(chan error, 1)
	go func() { s.done <- repo.Run(ctx) }()
	synctest.Wait()
}

// restored holds that all that was ever told is in the journal, and takes in what only the crash
// has told.
func (s *sim) restored() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	last, _ := s.repo.core.log.Last()
	if known := int64(len(s.led.sums)); last < known {
		s.w.fail("record %d was told and is gone: the journal ends with %d", known, last)
		return
	}
	from := max(int64(len(s.led.sums)), 1)
	err := s.repo.core.log.Replay(from, func(rec journal.Record) error {
		if rec.Seq <= int64(len(s.led.sums)) {
			if s.led.sums[rec.Seq-1] != rec.Sum {
				s.w.fail("record %d is not what was told", rec.Seq)
			}
			return nil
		}
		ev, err := noted(rec.Event)
		if err != nil {
			return err
		}
		facts, err := decodeFacts(rec)
		if err != nil {
			return err
		}
		s.take(entry{at: rec.At, event: ev, facts: facts, rec: rec})
		return nil
	})
	if err != nil {
		s.w.fail("the journal cannot be read back: %v", err)
	}
	if !s.over.IsZero() {
		s.away()
	}
}

// noted returns the event of a record, if signalled looks at such events.
func noted(raw json.RawMessage) (engine.Event, error) {
	var head struct{ Kind string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	switch head.Kind {
	case engine.FileSeen{}.EventKind():
		var ev engine.FileSeen
		err := json.Unmarshal(raw, &ev)
		return ev, err
	case engine.CommitSeen{}.EventKind():
		var ev engine.CommitSeen
		err := json.Unmarshal(raw, &ev)
		return ev, err
	}
	return nil, nil
}

// away notes the windows that ended while no daemon was there for long: they have to be opened
// again. How long it was is said by the steady clock. Only where the clock was set back and the
// daemon died before it saw that, nothing tells it.
func (s *sim) away() {
	long, now := time.Since(s.over), s.wall()
	if left := now.Add(-long).Round(0); long > engine.GapAllowed && !s.alive.Round(0).After(left) {
		s.led.passedBetween(s.repo.core.state, left, now)
	}
}

// crashed counts a crash and draws what the machine keeps of it.
func (s *sim) crashed() {
	s.counts.crashes++
	s.disk.Die()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.g.IntN(3) > 0 {
		s.trace("kill")
		return
	}
	s.trace("power cut")
	s.disk.PowerCut()
	for _, key := range sortedKeys(s.w.procs) {
		p := s.w.procs[key]
		if p.alive && !p.offered && !p.far {
			s.exit(p, engine.Exit{Lost: true})
			if s.g.IntN(3) == 0 { // what was kept of its start is gone, too
				delete(s.w.procs, key)
			}
		}
	}
	for _, l := range s.w.letters { // files nobody synced
		if !l.gone && s.g.IntN(8) == 0 {
			l.gone = true
		}
	}
}

// end ends the life: the loop has to be gone when it returns.
func (s *sim) end(how string) {
	s.trace("end: %s", how)
	s.over = time.Now()
	if st := s.state(); st != nil {
		s.window = openWindow(st)
	}
	if how == "crash" {
		s.disk.Die()
	}
	s.now()
	s.cancel()
	synctest.Wait()
	s.port.close()
	synctest.Wait()
	var err error
	select {
	case err = <-s.done:
	default:
		time.Sleep(2 * stallMost) // an end while the disk is full
		synctest.Wait()
		select {
		case err = <-s.done:
		default:
			s.fail("Run does not end (%s)", how)
			return
		}
	}
	s.after()
	if how == "crash" || s.disk.IsDead() || s.disk.Failed {
		s.crashed()
	} else {
		s.counts.stops++
		if err != nil && s.disk.Room < 0 {
			s.fail("a clean stop gives %v", err)
		} else if err == nil && (s.calm || s.g.IntN(3) == 0) {
			s.same()
		}
	}
	s.asks = nil
	s.repo = nil
}

// after looks at what has come of the last thing that happened. It says whether the daemon lives.
func (s *sim) after() {
	synctest.Wait()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.asks = slices.DeleteFunc(s.asks, func(a *simAsk) bool {
		select {
		case <-a.done:
			s.answered(a)
			return true
		default:
			return false
		}
	})
	if s.disk.After {
		s.w.fail("the journal was appended to after its sync had failed")
	}
}

// level holds that all that is owed is under way, whatever happened or did not: but for what rests
// after it came to nothing, or waits for the one before it.
func (s *sim) level() {
	st := s.state()
	if st == nil {
		return
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	lanes := map[string]bool{}
	for _, c := range s.port.calls {
		lanes[lane(c.job.Effect)] = true
	}
	if at := s.due(st); !at.IsZero() && s.wall().After(at.Add(time.Second)) && time.Since(s.w.napped) > simSight {
		s.w.fail("the deadline %s passed unseen", at)
	}
	if len(s.port.scans) == 0 && time.Since(s.port.scanned) > simSight {
		s.w.fail("the inboxes were not read for %s", time.Since(s.port.scanned))
	}
	for _, e := range st.Owed(s.repo.core.spec) {
		if at, rests := s.port.last[e.Name()]; !lanes[lane(e)] && (!rests || time.Since(at) > simAgain+simTick) {
			s.w.fail("%s is owed and not under way", e.Name())
		}
	}
}

// due is the first deadline that the loop has not seen, whatever it takes for seen: what it saw
// before the clock was set back is not what is due from there on.
func (s *sim) due(st *engine.State) time.Time {
	if s.set.IsZero() || s.repo.ticked != s.ticked || !s.set.Before(s.ticked.Round(0)) {
		return st.Wake(s.repo.ticked)
	}
	raw, err := json.Marshal(st) // who asks the loop's own state helps it
	if err != nil {
		s.w.fail("the state cannot be written: %v", err)
	}
	again := engine.NewState()
	if err := json.Unmarshal(raw, again); err != nil {
		s.w.fail("the state cannot be read back: %v", err)
	}
	at := again.Wake(s.set)
	if at.Equal(s.ticked) { // the clock is where it was, and it was seen again, to the same moment
		at = again.Wake(at)
	}
	return at
}

// answered holds that what a person was told is in the journal. Under mu.
func (s *sim) answered(a *simAsk) {
	if a.err != nil || len(a.reply.facts) == 0 {
		return
	}
	rec := a.reply.rec
	if rec.Seq < 1 || rec.Seq > int64(len(s.led.sums)) || s.led.sums[rec.Seq-1] != rec.Sum {
		s.w.fail("%s was acknowledged as record %d, which is not in the journal", a.ev.EventKind(), rec.Seq)
	}
}

// dead reports whether the daemon has died at an operation of its disk, or ended by itself; then the life
// is over.
func (s *sim) dead() bool {
	if s.disk.IsDead() {
		s.end("crash")
		return true
	}
	if s.disk.Failed { // it waits for what is under way before it ends
		s.port.close()
		synctest.Wait()
	}
	select {
	case err := <-s.done:
		s.done <- err
		if !s.disk.Failed {
			s.fail("Run ended by itself: %v", err)
		} else if !errors.Is(err, journal.ErrSyncFailed) {
			s.fail("a failed sync ended Run with %v", err)
		}
		s.counts.syncs++
		s.end("crash")
		return true
	default:
		if s.disk.Failed {
			s.fail("the loop goes on after a failed sync")
		}
		return false
	}
}

// same holds that what was written gives what was in memory: the whole journal, and the snapshot
// with what came after.
func (s *sim) same() {
	live, err := json.Marshal(s.repo.core.state)
	if err != nil {
		s.fail("the state cannot be written: %v", err)
		return
	}
	s.disk.Revive()
	c, _, err := openCore(simDir, journal.Options{FS: s.disk}, s.compile)
	if err != nil {
		s.fail("after a clean stop: %v", err)
		return
	}
	defer c.log.Close()
	tail, _ := json.Marshal(c.state)
	whole := &core{log: c.log, compile: s.compile, state: engine.NewState(), sources: map[string]string{}, specs: map[string]*engine.Spec{}, unread: map[string]string{}}
	err = c.log.Replay(1, func(rec journal.Record) error {
		facts, err := decodeFacts(rec)
		whole.fold(rec.At, facts)
		return err
	})
	all, _ := json.Marshal(whole.state)
	switch {
	case err != nil:
		s.fail("the journal cannot be replayed: %v", err)
	case !bytes.Equal(live, all):
		s.fail("replay gives another state: %s", differ(live, all))
	case !bytes.Equal(live, tail):
		s.fail("the snapshot and what came after give another state: %s", differ(live, tail))
	case len(c.specs) != len(c.sources) || len(whole.sources) != len(c.sources):
		s.fail("of %d specs %d came back", len(whole.sources), len(c.specs))
	}
}

// differ shows where two texts part.
func differ(a, b []byte) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	cut := func(x []byte) []byte { return x[max(n-200, 0):min(n+200, len(x))] }
	return fmt.Sprintf("\n… %s …\n… %s …", cut(a), cut(b))
}
