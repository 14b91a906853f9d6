package daemon

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/engine"
	"sluice/tools/conform"
)

// Bounds of a history.
const (
	simLives = 40    // lives of the daemon, most of which end in a crash
	simTicks = 14    // things that happen in a life, at most
	simCalm  = 20000 // things that may happen until all is over once the faults end
)

// acts is all that can happen now.
func (s *sim) acts() []act {
	s.w.mu.Lock()
	acts := append(s.calls(), s.scans()...)
	acts = append(append(acts, s.work()...), s.grow()...)
	acts = append(append(acts, s.wires()...), s.people()...)
	s.w.mu.Unlock()
	if s.calm {
		acts = append(acts, s.soothe()...)
		if len(acts) > 0 && s.g.IntN(20) > 0 {
			return acts
		}
		return append(acts, s.time()...)
	}
	acts = append(append(acts, s.trouble()...), s.faults()...)
	return append(acts, s.time()...)
}

// play plays the history; "" = nothing was wrong.
func (s *sim) play() string {
	for i := range 2 {
		spec := simSpec(s.g, "wf"+strconv.Itoa(i))
		for s.lists && !simChildren(s.g, spec) {
			spec = simSpec(s.g, "wf"+strconv.Itoa(i))
		}
		if s.space {
			simSpaces(spec)
			if spec.ID == "wf1" {
				spec.OnDone.Land = "squash"
			}
		}
		if s.fires && spec.ID == simFires {
			spec.On = simOn(s.g)
		}
		s.specs["spec of "+spec.ID] = spec
	}
	s.specs["spec of x"] = simExt()
	for range simLives {
		s.up()
		for range 1 + s.g.IntN(simTicks) {
			if !s.tick() {
				break
			}
		}
		if s.w.bad != "" {
			return s.w.bad
		}
		if s.repo != nil {
			s.end(pick(s.g, "crash", "crash", "crash", "crash", "stop"))
		}
		if s.down(); s.w.bad != "" {
			return s.w.bad
		}
	}
	return s.settle()
}

// up starts daemons until one lives.
func (s *sim) up() {
	for n := 0; s.repo == nil && s.w.bad == ""; n++ {
		s.open()
		if s.repo != nil && !s.dead() {
			s.level()
		}
		if n > 100 {
			s.fail("it does not come up")
		}
	}
}

// tick lets one thing happen; false = the life is over.
func (s *sim) tick() bool {
	s.step(s.acts())
	s.after()
	if s.w.bad != "" || s.dead() {
		return false
	}
	s.stalled()
	s.level()
	return s.w.bad == ""
}

// down lets the world go on without a daemon.
func (s *sim) down() {
	for range s.g.IntN(3) {
		s.w.mu.Lock()
		acts := append(append(s.work(), s.grow()...), s.wires()...)
		s.w.mu.Unlock()
		s.step(acts)
	}
	if s.g.IntN(8) == 0 || s.window && s.g.IntN(2) == 0 {
		time.Sleep(pick(s.g, time.Second, 20*time.Second, 40*time.Second, 40*time.Second, 5*time.Minute, 50*time.Hour))
	}
}

// settle ends all faults: everything has to come to its end.
func (s *sim) settle() string {
	s.calm = true
	s.disk.Room, s.full, s.late = -1, time.Time{}, nil
	s.trace("==== calm")
	s.up()
	for n := 0; s.w.bad == ""; n++ {
		why := s.unfinished()
		if why == "" {
			break
		}
		if n > simCalm {
			return "all faults are over, people pass, and yet it does not end: " + why
		}
		s.tick()
	}
	if s.w.bad == "" {
		s.end("stop")
	}
	return s.w.bad
}

// unfinished names something that is still to be done.
func (s *sim) unfinished() string {
	st := s.state()
	if st == nil {
		return "the journal is not written"
	}
	for _, id := range st.Order {
		if r := st.Runs[id]; r.Live() || len(r.Procs) > 0 {
			return id + " is " + r.Phase
		}
	}
	for _, e := range st.Owed(s.repo.core.spec) {
		if e.Kind != engine.DoListen { // that never ends
			return e.Name() + " is owed"
		}
	}
	if why := s.unfired(st); why != "" {
		return why
	}
	for _, key := range sortedKeys(s.w.procs) {
		if p := s.w.procs[key]; p.alive && !p.offered {
			return key + " is alive"
		}
	}
	for _, c := range s.port.calls {
		if c.job.Kind != engine.DoListen {
			return c.job.Name() + " is carried out"
		}
	}
	return s.left(st)
}

// simHistory plays one seed in a bubble of its own.
func simHistory(t *testing.T, seed uint64, trace func(string, ...any)) (bad, hash string, c simCounts) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(seed)
		if trace != nil {
			s.trace = trace
		}
		bad = s.play()
		if s.repo != nil { // leave no goroutine behind
			s.disk.Die()
			s.cancel()
			s.port.close()
			time.Sleep(time.Minute)
		}
		sum := sha256.Sum256(s.disk.journalBytes())
		hash, c = hex.EncodeToString(sum[:8]), s.counts
	})
	return bad, hash, c
}

// budget is a number from the environment, else n.
func budget(name string, n int) int {
	if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return v
	}
	return n
}

// total adds up what the workers did.
type total struct {
	mu    sync.Mutex
	next  uint64
	seeds int
	bad   int
	simCounts
}

func (a *total) add(c simCounts) {
	a.seeds++
	a.events += c.events
	a.facts += c.facts
	a.crashes += c.crashes
	a.stalls += c.stalls
	a.syncs += c.syncs
	a.stops += c.stops
	a.ticks += c.ticks
	a.children += c.children
	a.tasks += c.tasks
	a.rewinds += c.rewinds
	a.landings += c.landings
	a.fired += c.fired
	a.messages += c.messages
	a.late += c.late
}

// oldSeeds are the seeds that once failed.
func oldSeeds(t *testing.T) (seeds []uint64) {
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		text, _, _ := strings.Cut(in.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, n)
	}
	return seeds
}

func runSeed(t *testing.T, seed uint64, all *total) {
	bad, _, c := simHistory(t, seed, nil)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.add(c)
	if bad != "" {
		all.bad++
		t.Errorf("seed %d: %s (again: SIM_SEED=%d go test -run TestSimulation -v ./daemon)", seed, bad, seed)
	}
}

// TestSimulation plays random histories of the real loop with crashes at every operation of its
// disk and between its effects.
func TestSimulation(t *testing.T) {
	conform.Rule(t, "3-engine level", "crashes at every operation of disk and effects: no history is stuck")
	conform.Rule(t, "field asks 9", "crashes between an event and its effects lose nothing")
	conform.Rule(t, "9-one-tree I14", "branches of runs over crashes, vetoes and landings")
	conform.Rule(t, "12-triggers simulation", "crashes between a firing's record and its run, duplicates, clocks back and forth: each key one run")
	conform.Rule(t, "12-triggers end", "none is lost once it is acknowledged")
	conform.Rule(t, "13-cluster messages", "launches on workers: a share of the histories")
	conform.Rule(t, "3-engine keys", "an effect begun again after a crash counts once")
	if seed, err := strconv.ParseUint(os.Getenv("SIM_SEED"), 10, 64); err == nil {
		bad, hash, c := simHistory(t, seed, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
		t.Logf("seed %d: %q, journal %s, %+v", seed, bad, hash, c)
		if bad != "" {
			t.Fail()
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	all, began, want := &total{next: 1}, time.Now(), budget("SIM_CRASHES", 20_000/thin)
	seeds, faults := budget("SIM_SEEDS", math.MaxInt), 3
	if os.Getenv("SLUICE_MUTANT") != "" {
		faults = 1
	}
	for _, seed := range oldSeeds(t) {
		runSeed(t, seed, all)
	}
	t.Run("workers", func(t *testing.T) {
		for i := range 2 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for {
					all.mu.Lock()
					seed, over := all.next, all.crashes >= want || all.seeds >= seeds || all.bad >= faults
					all.next++
					all.mu.Unlock()
					if over {
						return
					}
					runSeed(t, seed, all)
				}
			})
		}
	})
	t.Logf("%d seeds, %d crash-restarts, %d clean stops, %d stalls, %d failed syncs, %d things happened, %d records, %d facts, %d child runs, %d tries at tasks, %d branches taken back, %d landings, %d runs of triggers, %d messages, %d of them too late, %s",
		all.seeds, all.crashes, all.stops, all.stalls, all.syncs, all.ticks, all.events, all.facts, all.children, all.tasks, all.rewinds, all.landings, all.fired, all.messages, all.late, time.Since(began).Round(time.Millisecond))
}

// TestSimulationIsTheSameAgain: a seed replays a failure only if it is one history.
func TestSimulationIsTheSameAgain(t *testing.T) {
	for seed := range 1 + uint64(12/thin) {
		_, a, x := simHistory(t, seed, nil)
		_, b, y := simHistory(t, seed, nil)
		if a != b || x != y {
			t.Errorf("seed %d: journal %s and %s, %+v and %+v", seed, a, b, x, y)
		}
	}
}
