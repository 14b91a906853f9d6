package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
	"sluice/tools/oracle"
)

// told is an event with the truth about it, which the engine does not see.
type told struct {
	ev  Event
	saw int    // a person's answer: the round it was meant for
	key string // a step's signal: the launch that sent it
	who string // "person", "agent" or ""
}

// simProc is a process of the world: it outlives the daemon.
type simProc struct {
	key, kind, run, step, gate string
	n, k                       int
	tree                       string
	status                     string // the signal it will send, "" = none
	verdict                    string
	exit                       Exit
	said, exited, hung         bool
}

// line is one line of the journal.
type line struct {
	at    time.Time
	facts []Fact
	back  []Fact // the same, once written and read back
}

// sim plays one seed: a world of agents, reviewers, people, files and crashes around the pure
// engine.
type sim struct {
	g       *rand.Rand
	sh      shape
	st      *State
	specs   map[string]*Spec
	unread  string // digest of a spec that cannot be read now
	now     time.Time
	ticked  time.Time // when the last Ticked was decided
	journal []line
	procs   map[string]*simProc
	keys    []string
	files   []*told // the inbox: durable, may be seen twice
	commits []*told
	old     []*told
	calm    bool
	ids     int
	bad     string
	ev      *told // the current event
	pattern map[string][]string
	marks   map[string]int // when a step was last sent work, or superseded
	clock   int
	keySeen map[string]bool
	fates   fates // of triggers' keys
	offered int   // keys that sources have reported

	events, facts, crashes int
	knows                  known            // the observer of changed runs
	beside                 *beside          // the model with the same history; nil = not compared
	books                  map[string]*book // task files, by path
}

const simEpoch = 1_800_000_000

func newSim(seed uint64, sh shape) *sim {
	g := rand.New(rand.NewPCG(seed, 7))
	return &sim{g: g, sh: sh, st: NewState(), specs: map[string]*Spec{}, now: time.Unix(simEpoch, 0).UTC(), procs: map[string]*simProc{},
		pattern: map[string][]string{}, marks: map[string]int{}, keySeen: map[string]bool{}, fates: fates{oracle.Keys{}}, books: map[string]*book{}}
}

func (w *sim) spec(digest string) *Spec {
	return Specs(func(d string) *Spec { return w.specs[d] }).Of(digest)
}

// seen returns the spec for the engine: this release may be unable to read it.
func (w *sim) seen(digest string) *Spec {
	if base, _, _ := strings.Cut(digest, "/"); base == w.unread {
		return nil
	}
	return w.specs[digest]
}

func (w *sim) p(x float64) bool { return !w.calm && w.g.Float64() < x }

func (w *sim) fail(format string, args ...any) {
	if w.bad == "" {
		w.bad = fmt.Sprintf(format, args...)
	}
}

// handle passes one event to the engine; false = the daemon died before it was journaled.
func (w *sim) handle(t *told) bool {
	w.events++
	w.now = w.now.Add(time.Second)
	w.ev = t
	pre := w.before(t)
	facts := Decide(w.st, w.seen, t.ev, w.now)
	if !w.sh.adversary && w.p(0.01) {
		w.crash()
		return false
	}
	if len(facts) > 0 {
		w.journal = append(w.journal, line{at: w.now, facts: facts})
	}
	w.facts += len(facts)
	if w.beside != nil {
		w.beside.follow(w, t, facts, pre)
	}
	w.check(t, facts)
	if !w.sh.adversary && w.p(0.01) {
		w.same()
		w.crash()
	}
	return true
}

// replay replays the journal, as read back from its bytes, into a new state.
func (w *sim) replay() *State {
	st := NewState()
	for i := range w.journal {
		l := &w.journal[i]
		if l.back == nil {
			for _, f := range l.facts {
				raw, err := EncodeFact(f)
				if err == nil {
					f, err = DecodeFact(raw)
				}
				if err != nil {
					w.fail("a fact does not survive its writing: %v", err)
					return st
				}
				l.back = append(l.back, f)
			}
		}
		st.Apply(l.at, l.back...)
	}
	return st
}

// crash discards the state and restarts, perhaps after a while.
func (w *sim) crash() {
	w.crashes++
	from := w.now
	w.st, w.ticked = w.replay(), time.Time{}
	if w.crashes%2 == 0 { // there was a snapshot
		w.st = w.reread(w.st)
	}
	if !w.sh.oracle && w.g.IntN(2) == 0 {
		w.now = w.now.Add(time.Duration(w.g.IntN(300)) * time.Second)
	}
	w.unread = ""
	if !w.sh.oracle && w.p(0.1) && len(w.st.Order) > 0 {
		w.unread, _, _ = strings.Cut(w.st.Runs[pick(w.g, w.st.Order...)].Digest, "/")
	}
	w.woken(from)
	for _, id := range w.st.Order {
		if r := w.st.Runs[id]; r.Live() && r.Digest == w.unread { // and with it what is done for it
			w.after(&told{ev: SpecUnread{Run: id, Why: "a newer release"}})
		}
	}
}

func (w *sim) woken(from time.Time) { w.after(&told{ev: Woken{From: from, To: w.now}}) }

// after handles the daemon's own events after a start; it does not crash meanwhile.
func (w *sim) after(t *told) {
	facts := Decide(w.st, w.seen, t.ev, w.now)
	if len(facts) > 0 {
		w.journal = append(w.journal, line{at: w.now, facts: facts})
	}
	w.ev = t
	if w.beside != nil {
		w.beside.follow(w, t, facts, nil)
	}
	w.check(t, facts)
}

// start requests a run until the request is journaled.
func (w *sim) start(spec *Spec, parallel bool) {
	w.specs[spec.Digest] = spec
	ev := RunRequested{Workflow: spec.ID, Digest: spec.Digest, Parallel: parallel, By: Actor{Who: "person"}}
	if w.sh.oracle { // worktrees of its own: the model knows no files owed between two runs
		ev.Trees = map[string]string{}
		for _, t := range []string{"w0", "w1", "w2"} {
			ev.Trees[t] = fmt.Sprintf("%s@%d", t, len(w.st.Order))
		}
	}
	for range 20 {
		n := w.st.Numbers[spec.ID]
		if w.handle(&told{ev: ev}); w.st.Numbers[spec.ID] > n {
			return
		}
	}
}

func (w *sim) over() bool {
	for _, r := range w.st.Runs {
		if r.Live() || len(r.Procs) > 0 {
			return false
		}
	}
	for _, a := range w.st.Armed {
		if len(a.Firings) > 0 {
			return false
		}
	}
	return true
}

// asked reports whether a person is asked something: by a gate, or by a run that paused itself.
func (w *sim) asked(r *Run) bool {
	for gate := range r.Rounds {
		if q := r.CurrentRound(gate); q.Open() && q.State == OnHuman {
			return true
		}
	}
	return r.Paused || slices.ContainsFunc(r.kids, w.asked)
}

const (
	simTicks      = 250
	simTicksCalm  = 20_000
	simTicksAlone = 60_000
)

// history plays one seed; "" = all invariants held.
func history(seed uint64, oracle bool) (bad string, w *sim) {
	w = newSim(seed, newShape(seed, oracle))
	defer func() {
		if r := recover(); r != nil {
			bad = fmt.Sprint("panic: ", r)
			if os.Getenv("SEED") != "" {
				bad += "\n" + string(debug.Stack())
			}
		}
	}()
	if oracle {
		w.beside = newBeside()
	}
	w.configure()
	if w.sh.adversary {
		return w.alone(), w
	}
	for i := range 1 + w.g.IntN(2) {
		spec := genSpec(w.g, "wf"+strconv.Itoa(i), w.sh)
		w.start(spec, false)
		if w.g.IntN(3) == 0 {
			w.start(spec, w.g.IntN(2) == 0)
		}
	}
	for n := 0; n < simTicks; n++ {
		if w.tick(); w.bad != "" {
			return w.bad, w
		}
		if w.over() {
			n += 10 // not much more happens
		}
	}
	w.same()
	w.calm = true
	w.crash()
	for n := 0; !w.over() && w.bad == ""; n++ {
		if !w.tick() || n > simTicksCalm {
			return "stuck: all faults are over, people pass, and yet it does not end", w
		}
	}
	if w.bad == "" {
		w.same()
	}
	return w.bad, w
}

// alone plays a history without any person: it must come to rest, with the run over or somebody
// asked.
func (w *sim) alone() string {
	w.start(genSpec(w.g, "wf0", w.sh), false)
	for n := 0; w.tick(); n++ {
		if w.bad != "" {
			return w.bad
		}
		if n > simTicksAlone {
			return fmt.Sprintf("no counter trips: %d ticks without a person, %d facts", n, w.facts)
		}
	}
	for _, r := range w.st.Runs {
		if r.Live() && !w.asked(r) {
			return fmt.Sprintf("stuck: %s at rest, nobody is asked", r.ID)
		}
	}
	w.same()
	return w.bad
}

// same checks I11: replay reproduces the live state, and so does a snapshot.
func (w *sim) same() {
	live, _ := json.Marshal(w.st)
	again, _ := json.Marshal(w.replay())
	if string(live) != string(again) {
		w.fail("replay gives another state:\n%s\n%s", live, again)
	}
	var snap State
	if err := json.Unmarshal(live, &snap); err != nil {
		w.fail("snapshot: %v", err)
	}
	if back, _ := json.Marshal(&snap); string(back) != string(live) {
		w.fail("a snapshot does not read back as the state:\n%s\n%s", live, back)
	}
}

func (w *sim) configure() {
	c := DefaultConfig()
	c.MaxParallel = 1 + w.g.IntN(4)
	c.Timeout = Duration(time.Duration(100+w.g.IntN(300)) * time.Second)
	c.Remind = 0
	if w.sh.oracle {
		c.MaxParallel, c.Timeout = 1000, Duration(10000*time.Hour)
	} else if !w.sh.adversary {
		c.Remind = Duration(time.Duration(w.g.IntN(2)*100) * time.Second)
		c.Trust = pick(w.g, TrustFile, TrustFile, TrustSandbox)
		c.VetoWindow = Duration(time.Duration(w.g.IntN(40)) * time.Second)
	}
	for !w.handle(&told{ev: Configured{Config: c}}) { // died before it was journaled
	}
}

// seeds returns how many histories to play: SEEDS, else n.
func seeds(n int) uint64 {
	if v, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		return uint64(v)
	}
	if testing.Short() || raceOn {
		n /= 4
	}
	return uint64(n)
}

// play runs the histories from seed 1 on and prints the seeds that fail; SEED=n plays only that
// one.
func play(t *testing.T, n int, oracle bool) {
	t.Helper()
	first, last := uint64(1), seeds(n)
	if v, err := strconv.Atoi(os.Getenv("SEED")); err == nil {
		first, last = uint64(v), uint64(v)
	}
	events, facts, crashes, bad := 0, 0, 0, 0
	lists := map[string]int{}
	for seed := first; seed <= last; seed++ {
		why, w := history(seed, oracle)
		events, facts, crashes = events+w.events, facts+w.facts, crashes+w.crashes
		for kind, n := range w.lists() {
			lists[kind] += n
		}
		if why == "" {
			continue
		}
		t.Errorf("seed %d: %s (again: SEED=%d go test -run %s ./engine)", seed, why, seed, t.Name())
		if first == last {
			w.print(t)
		}
		if bad++; bad >= 5 || os.Getenv("SLUICE_MUTANT") != "" {
			break
		}
	}
	t.Logf("%d histories, %d events, %d facts, %d crashes; of lists: %v", last-first+1, events, facts, crashes, lists)
	for _, kind := range []string{"child runs", "tasks done", "tasks tried again", "children of children", "sent to missing", "sent to invalid", "sent to exhausted", "tasks added", "runs of triggers"} {
		if !oracle && last-first > 100 && bad == 0 && lists[kind] == 0 {
			t.Errorf("lists: %s: no history has that", kind)
		}
	}
}

// print shows the history's journal.
func (w *sim) print(t *testing.T) {
	for i, l := range w.journal {
		for _, f := range l.facts {
			raw, _ := EncodeFact(f)
			t.Logf("%4d %5d %s", i, l.at.Unix()-simEpoch, raw[:min(len(raw), 300)])
		}
	}
	for _, e := range w.st.Owed(w.spec) {
		t.Logf("owed: %s", e.Name())
	}
	for _, id := range w.st.Order {
		if r := w.st.Runs[id]; r.Live() {
			raw, _ := json.Marshal(r)
			spec, _ := json.Marshal(w.spec(r.Digest))
			t.Logf("live: %s\nspec: %s", raw, spec)
		}
	}
}

// TestHistories plays random histories and checks the invariants of 8-semantics after every event.
func TestHistories(t *testing.T) {
	for _, inv := range [][2]string{
		{"I1", "one current attempt per step; numbers never return"},
		{"I2", "no step has a current attempt while anything upstream of it is active"},
		{"I3", "at most one process per worktree and per step, counting those being stopped"},
		{"I4", "a gate that is human or forced passes only by a person's answer to that very round"},
		{"I5", "a step is done only by the signal of its live launch"},
		{"I6", "a passed step's needs are passed"},
		{"I7", "an ended run has nothing live and owes only stops; a completed one has no process"},
		{"I8", "no window ends in a pause"},
		{"I9", "without humans every history comes to rest, and then the run is over or somebody is asked"},
		{"I10", "when faults end and humans pass, every run ends"},
		{"I11", "replay gives the live state"},
		{"I12", "a run fails as blocked only for a step that work was led to"},
		{"I13", "side steps stand only while what sent them stands"},
	} {
		conform.Rule(t, "8-semantics "+inv[0], inv[1])
	}
	conform.Rule(t, "12-triggers end", "a key is decided on once: one run, or a reason; until then it waits")
	play(t, 240, false)
}
