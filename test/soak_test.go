//go:build linux

package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/retention"
	"sluice/internal/serve"
	"sluice/internal/setup"
	"sluice/internal/workspace"
	"sluice/watcher"
)

// The soak lets a week pass in the real daemon, wired as the binary wires it, in this process: real journal, real inotify,
// real git, real sockets, real processes (through the real binary's shim), and a clock that runs faster. What was taken for
// a run has to be given back when it is over and forgotten: descriptors, goroutines, memory, watches, files.
// SLUICE_SOAK says how many runs, SLUICE_SOAK_SEED which, SLUICE_SOAK_PROFILES a folder for a heap profile at each checkpoint.
const (
	soakRuns   = 480                   // of the short form
	soakRepos  = 3                     // that the daemon serves
	soakFast   = 600                   // seconds of the soak's clock in one of the machine's, in the short form
	soakSlow   = 250                   // and in the long one
	soakAlive  = 40                    // runs of a repo that are alive at the same time
	soakHands  = 4                     // people and agents of a repo
	soakStuck  = 60 * time.Second      // without a run that ends
	soakChecks = 3                     // checkpoints of the short form after its warm-up
	soakEvery  = 2000                  // runs between two checkpoints of the long form
	soakPause  = 20 * time.Millisecond // at least, between two rescans
	soakKeep   = 5                     // runs whose transcripts stay when a person cleans up
)

// soakSettings are long by the soak's clock, so that they are some time by the machine's.
const soakSettings = `notify: {desktop: false, remind: 15m}
rescan: 2m
settle: 1s
grace: 2h
linger: 2h
timeout: 48h
kill_after: 1s
veto_window: 10m
max_parallel: 8
roles: {"*": {agent: acts}}
agents: {acts: {command: [sh, "@WORK@/agent.sh"], prompt_via: file, env: [E2E_WORK]}}
`

// soakAgent is every agent and reviewer of the soak.
const soakAgent = `case "${SLUICE_GATE:-$SLUICE_STEP}.$SLUICE_ATTEMPT" in
GR.1) echo '{"verdict": "fail", "feedback": "once more"}' ;;
G*) echo '{"verdict": "pass"}' ;;
W.*) exec sleep 300 ;;
*) # by rename: the file's time is the machine's, and by the soak's clock an empty file has settled long ago
  dir=${SLUICE_SIGNAL%/*}
  printf '{"status": "done", "token": "%s"}' "$SLUICE_TOKEN" >"$dir/.$SLUICE_TOKEN" && mv "$dir/.$SLUICE_TOKEN" "$SLUICE_SIGNAL"
  ;;
esac
`

// soakKind is a workflow of the soak.
type soakKind struct {
	id, spec string
	share    int // of 100 runs
}

// soakKinds are the workflows: what each is there for is its name.
func soakKinds() []soakKind {
	const head = "workflow: {id: %s, vars: {go: off}}\nsteps:\n"
	kind := func(id string, share int, body string) soakKind {
		return soakKind{id: id, share: share, spec: fmt.Sprintf(head, id) + body}
	}
	return []soakKind{
		kind("person", 20, `  - {id: A, agent: {type: a, launch: interactive}, gate: GA}
gates:
  - {id: GA, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 9}
`),
		kind("window", 15, `  - {id: A, agent: {type: a, launch: subagent}, gate: GN}
gates:
  - {id: GN, reviewer: {level: notify, from: step}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 9}
`),
		kind("late", 5, `  - {id: A, agent: {type: a, launch: interactive}, gate: GL}
gates:
  - {id: GL, reviewer: {level: human}, timeout: 40m, on_timeout: FAILED, on_pass: {next_step: DONE}}
`),
		kind("passing", 30, `  - {id: A, when: "vars.go == \"on\"", agent: {type: a, launch: interactive}, next_step: DONE}
`),
		kind("ended", 10, `  - {id: A, agent: {type: a, launch: interactive}, next_step: DONE}
`),
		kind("command", 8, `  - {id: A, run: 'echo $SLUICE_RUN >"$SLUICE_RUN_DIR/files/x" 2>/dev/null; test "$SLUICE_ATTEMPT" -gt 1', gate: GC}
  - {id: B, run: [true], gate: GD}
gates:
  - {id: GC, reviewer: {level: auto, from: step}, on_pass: {next_step: B}, on_fail: {next_step: A}, max_retries: 3}
  - {id: GD, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`),
		kind("agent", 5, `  - {id: A, agent: {type: a}, signal: {type: sentinel_file}, gate: GR}
gates:
  - {id: GR, reviewer: {level: auto, agent_type: r}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 3}
`),
		kind("killed", 2, `  - {id: W, agent: {type: a}, next_step: DONE}
`),
		{id: "folder", share: 5, spec: `workflow: {id: folder, vars: {box: none}}
steps:
  - {id: A, agent: {type: a, launch: interactive, worktree: "${{vars.box}}"}, next_step: DONE}
`},
	}
}

// soakClock runs scale times as fast as the machine's, until it is set.
type soakClock struct {
	from, began time.Time
	scale       time.Duration
	set         atomic.Int64 // by how much, in nanoseconds
}

func (c *soakClock) now() time.Time {
	return c.began.Add(time.Since(c.from)*c.scale + time.Duration(c.set.Load()))
}

// pace lets a rescan not come too often by the machine.
func (c *soakClock) pace(d time.Duration) time.Duration {
	return min(d, max(d/c.scale, soakPause))
}

// soak is a daemon in this process that serves some repos.
type soak struct {
	*sandbox
	clock *soakClock
	con   *console.Console
	pace  serve.Timing
	kinds []soakKind
	deck  []int // kinds by share, to draw from
	desks []*desk
}

// desk is one repo, with those who work in it.
type desk struct {
	*soak
	repo   string
	state  string
	client *daemon.Client
	acts   chan daemon.Line
	ended  chan engine.RunEnded
	hands  sync.WaitGroup
	boxes  int
	phases map[string]int

	mu  sync.Mutex
	rnd *rand.Rand // which runs, and who answers how
	bad error      // what those who work met with first
}

func soakSize(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SLUICE_SOAK")
	if text == "" {
		return soakRuns
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < soakRuns {
		t.Fatalf("SLUICE_SOAK=%q: want a number of runs", text)
	}
	return n
}

// newSoak makes the repos.
func newSoak(t *testing.T, seed uint64, scale time.Duration) *soak {
	t.Helper()
	binDir(t)                                                     // not in a folder that goes with this test
	if dir, err := os.MkdirTemp("/dev/shm", "soak"); err == nil { // what is measured is no disk
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		t.Setenv("TMPDIR", dir)
	}
	began := time.Now().Round(0)
	x := &soak{sandbox: newSandbox(t, soakSettings), kinds: soakKinds(), clock: &soakClock{from: time.Now(), began: began, scale: scale}}
	x.put("agent.sh", soakAgent)
	for i, k := range x.kinds {
		for range k.share {
			x.deck = append(x.deck, i)
		}
	}
	x.con = console.New(x.env, strings.NewReader(""), x.log, x.log)
	x.con.Now = x.clock.now
	x.pace = serve.Timing{Pace: x.clock.pace, Look: watcher.Options{Now: x.clock.now, Rescan: watcher.DefaultRescan * scale,
		Settle: time.Second, Cookie: watcher.DefaultCookie * scale, CookieWait: watcher.DefaultCookieWait * scale}}
	for i := range soakRepos {
		name := fmt.Sprintf("repo%d", i)
		x.put(name+"/.workflow/.gitignore", setup.Ignored)
		x.repo = filepath.Join(x.work, name)
		for _, k := range x.kinds {
			x.put(name+"/.workflow/specs/"+k.id+".yaml", k.spec)
		}
		x.commit()
		x.do(x.bin, "watch", "add")
		x.desks = append(x.desks, &desk{soak: x, repo: x.repo, rnd: rand.New(rand.NewPCG(seed, uint64(i))), phases: map[string]int{},
			acts: make(chan daemon.Line, 1<<14), ended: make(chan engine.RunEnded, 2*soakAlive)})
	}
	return x
}

// serve has the daemon serve until it is stopped, at the latest by the test's end.
func (x *soak) serve() (stop func()) {
	t := x.t
	t.Helper()
	home, err := workspace.Home(x.con)
	if err != nil {
		t.Fatal(err)
	}
	w, err := serve.New(serve.Options{Console: x.con, Timing: x.pace, Self: x.bin}, zerolog.New(x.log).With().Timestamp().Logger())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- w.Server(home, nil).Run(ctx, func() { close(ready) }) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, w.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
	for _, d := range x.desks {
		p, err := workspace.At(ctx, x.con, d.repo)
		if err != nil {
			t.Fatal(err)
		}
		d.state, d.client = p.State, daemon.NewClient(p.State)
		t.Cleanup(d.client.Close)
	}
	return stop
}

// follow has every fact acted on, until ctx ends.
func (d *desk) follow(ctx context.Context) {
	d.hands.Go(func() {
		defer close(d.acts)
		from := int64(0)
		for ctx.Err() == nil {
			_ = d.client.Facts(ctx, "", from, true, func(l daemon.Line) error { // a follower that lags is cut off, and asks again
				from = l.Seq + 1
				select {
				case d.acts <- l:
				case <-ctx.Done():
				}
				return nil
			})
		}
	})
	for range soakHands {
		d.hands.Go(func() {
			for l := range d.acts {
				if err := d.act(ctx, l); err != nil && ctx.Err() == nil {
					d.mu.Lock()
					d.bad = cmp.Or(d.bad, err)
					d.mu.Unlock()
				}
			}
		})
	}
}

// chance is true in so many of 100 cases.
func (d *desk) chance(percent int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(100) < percent
}

// act does what a fact asks of a person or an agent.
func (d *desk) act(ctx context.Context, l daemon.Line) error {
	fact, err := engine.DecodeFact(l.Fact)
	if err != nil {
		return err
	}
	switch f := fact.(type) {
	case engine.StepLaunched:
		return d.work(ctx, f)
	case engine.HumanAsked:
		switch {
		case f.Gate == "GL":
			return nil // nobody answers there
		case d.chance(25):
			return d.answer(ctx, f.Run, f.Gate, engine.OutcomeFail)
		}
		return d.answer(ctx, f.Run, f.Gate, engine.OutcomePass)
	case engine.WindowOpened:
		if d.chance(20) {
			return d.answer(ctx, f.Run, f.Gate, engine.OutcomeVeto)
		}
	case engine.RunEnded:
		select {
		case d.ended <- f:
		case <-ctx.Done():
		}
	}
	return nil
}

// work is what whoever takes a step does.
func (d *desk) work(ctx context.Context, f engine.StepLaunched) error {
	flow := flowOf(f.Run)
	switch {
	case flow == "killed", flow == "ended" && d.chance(20):
		return d.ask(ctx, engine.AbortRequested{Run: f.Run, Why: "not wanted any more"})
	case f.Offered && d.chance(20):
		return d.ask(ctx, engine.FileSeen{Name: f.Step + "-done.json", Dir: f.Run, Sentinel: &engine.Sentinel{Step: f.Step, Status: engine.StatusDone}})
	case f.Offered:
		return d.leave(f.Run, f.Step+"-done.json", `{"status": "done", "summary": "it is done"}`)
	}
	return nil
}

// answer is a person's decision, by file or by command.
func (d *desk) answer(ctx context.Context, run, gate, outcome string) error {
	switch {
	case d.chance(30):
		return d.leave(run, gate+"-"+outcome+".md", "Look at it again, please.\n")
	case d.chance(30):
		return d.leave(run, gate+"-"+outcome+".json", `{"feedback": "look at it again, please"}`)
	}
	return d.ask(ctx, engine.Answered{Run: run, Gate: gate, Outcome: outcome, Text: "look at it again, please"})
}

func (d *desk) ask(ctx context.Context, ev engine.Event) error {
	_, err := d.client.Do(ctx, ev, "command")
	return err
}

// leave puts a file into the run's inbox, whole and with the time of the soak's clock.
func (d *desk) leave(run, name, text string) error {
	dir := filepath.Join(d.repo, ".workflow", "signals", run)
	hidden := filepath.Join(dir, "."+name)
	now := d.clock.now()
	if err := os.MkdirAll(dir, 0o755); err != nil { // before the run's first scan there is none yet
		return err
	}
	if err := errors.Join(os.WriteFile(hidden, []byte(text), 0o644), os.Chtimes(hidden, now, now)); err != nil {
		return err
	}
	return os.Rename(hidden, filepath.Join(dir, name))
}

func flowOf(run string) string { return run[:strings.LastIndexByte(run, '-')] }

// start starts a run of the workflows' mix.
func (d *desk) start(ctx context.Context, early bool) error {
	d.mu.Lock()
	k := d.kinds[d.deck[d.rnd.IntN(len(d.deck))]]
	for k.id == "late" && !early { // nobody waits for those
		k = d.kinds[d.deck[d.rnd.IntN(len(d.deck))]]
	}
	d.mu.Unlock()
	ev := engine.RunRequested{Workflow: k.id, Source: k.spec, Parallel: true}
	if k.id == "folder" { // a new one each time
		d.boxes++
		box := fmt.Sprintf("boxes/%d", d.boxes)
		if err := os.MkdirAll(filepath.Join(d.repo, box), 0o755); err != nil {
			return err
		}
		ev.Vars = map[string]any{"box": box}
	}
	done, err := d.client.Do(ctx, ev, "command")
	if err == nil && done.Run == "" {
		err = errors.New(done.Ignored)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", k.id, err)
	}
	return nil
}

// pass plays n more runs, and waits until nothing of them is under way.
func (d *desk) pass(ctx context.Context, n int) error {
	stuck := time.NewTimer(soakStuck)
	defer stuck.Stop()
	for started, ended := 0, 0; ended < n; {
		for ; started < n && started-ended < soakAlive; started++ {
			if err := d.start(ctx, started < n/2); err != nil {
				return err
			}
		}
		select {
		case f := <-d.ended:
			d.phases[flowOf(f.Run)+" "+f.Phase]++
			ended++
			stuck.Reset(soakStuck)
		case <-stuck.C:
			return fmt.Errorf("no run has ended for %v; %d of %d have: %s", soakStuck, ended, n, d.waits(ctx))
		}
	}
	for until := time.Now().Add(waitMost); ; time.Sleep(pollEvery) {
		st, err := d.client.Status(ctx, "")
		if err == nil && st.Notices == 0 && len(st.Health) == 0 {
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("it does not come to rest: %w: %d notices are owed, health %q", err, st.Notices, st.Health)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.bad, os.RemoveAll(filepath.Join(d.repo, "boxes")))
}

// waits returns what the live runs wait for.
func (d *desk) waits(ctx context.Context) string {
	st, err := d.client.Status(ctx, "")
	out := fmt.Sprintf("%v %v", err, st.Health)
	for _, r := range st.Runs {
		if r.Live() {
			out += fmt.Sprintf("\n%s %s: %+v", r.ID, r.Phase, r.Waits)
		}
	}
	return out
}

// pass plays about n more runs in all repos.
func (x *soak) pass(ctx context.Context, n int) {
	x.t.Helper()
	errs := make([]error, len(x.desks))
	var wg sync.WaitGroup
	for i, d := range x.desks {
		wg.Go(func() { errs[i] = d.pass(ctx, n/len(x.desks)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		x.t.Fatal(err)
	}
}

// soakSample is what the daemon holds when nothing is under way. It is this process: the people's clients are in it too.
type soakSample struct {
	runs       int
	week, took time.Duration // by the soak's clock, by the machine's
	fds, tasks int           // tasks: goroutines
	watches    int           // of inotify
	heap, rss  int64
	stateFiles int // in the state folders, without the journals and their snapshots
	workFiles  int // below .workflow, without the audit
	journal    int64
}

func (s soakSample) String() string {
	return fmt.Sprintf("%6d runs  %8s simulated  %7s real  %3d fds  %3d goroutines  %2d watches  %6.2f MB heap  %5.1f MB RSS  %5d files of state  %4d in .workflow  %6.1f MB journal",
		s.runs, s.week.Round(time.Minute), s.took.Round(time.Second), s.fds, s.tasks, s.watches, float64(s.heap)/1e6, float64(s.rss)/1e6, s.stateFiles, s.workFiles, float64(s.journal)/1e6)
}

// sample measures. What ends by itself is given a moment to.
func (x *soak) sample(runs int) soakSample {
	s := soakSample{runs: runs, week: x.clock.now().Sub(x.clock.began), took: time.Since(x.clock.from), fds: math.MaxInt, tasks: math.MaxInt, watches: math.MaxInt}
	for range 10 {
		fds, watches := descriptors()
		s.fds, s.watches, s.tasks = min(s.fds, fds), min(s.watches, watches), min(s.tasks, runtime.NumGoroutine())
		time.Sleep(pollEvery)
	}
	runtime.GC()
	runtime.GC() // what has a finalizer
	if dir := os.Getenv("SLUICE_SOAK_PROFILES"); dir != "" {
		if f, err := os.Create(filepath.Join(dir, fmt.Sprintf("heap-%06d", runs))); err == nil {
			_ = errors.Join(pprof.WriteHeapProfile(f), f.Close()) // for who looks for a leak
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.heap, s.rss = int64(m.HeapAlloc), resident()
	for _, d := range x.desks {
		s.stateFiles += len(filesOf(d.state, "journal.jsonl", "snapshots"))
		s.workFiles += len(filesOf(filepath.Join(d.repo, ".workflow"), "audit"))
		if st, err := os.Stat(filepath.Join(d.state, "journal.jsonl")); err == nil {
			s.journal += st.Size()
		}
	}
	return s
}

// descriptors counts this process's, and the watches of its inotify instances.
func descriptors() (fds, watches int) {
	names, _ := os.ReadDir("/proc/self/fdinfo")
	for _, n := range names {
		b, err := os.ReadFile("/proc/self/fdinfo/" + n.Name())
		if err == nil { // not the one that reads the folder
			fds++
		}
		watches += strings.Count(string(b), "inotify wd:")
	}
	return fds, watches
}

func resident() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	pages := int64(0)
	if f := strings.Fields(string(b)); len(f) > 1 {
		pages, _ = strconv.ParseInt(f[1], 10, 64)
	}
	return pages * int64(os.Getpagesize())
}

// filesOf lists the files below a folder, but for those of some names at its top.
func filesOf(dir string, but ...string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err == nil && slices.Contains(but, rel) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err == nil && !e.IsDir() {
			out = append(out, rel)
		}
		return nil
	})
	return out
}

// tidyUp is what a person does now and then.
func (d *desk) tidyUp(ctx context.Context) error {
	p, err := workspace.Find(ctx, d.con, d.repo)
	if err != nil {
		return err
	}
	old, err := retention.Old(ctx, d.con, p, soakKeep, 0)
	if err != nil {
		return err
	}
	return retention.Remove(ctx, p, old)
}

// held looks at what of the runs is kept: nothing of those that the state has forgotten.
func (d *desk) held(ctx context.Context) error {
	st, err := d.client.Status(ctx, "")
	if err != nil {
		return err
	}
	known := map[string]bool{"rejected": true, "last": true}
	for _, r := range st.Runs {
		known[r.ID] = true
	}
	for _, c := range []struct {
		dir  string
		most int // of runs that are forgotten
	}{
		{filepath.Join(d.state, "attempts"), soakAlive}, {filepath.Join(d.state, "launches"), soakAlive}, // until the next run begins
		{filepath.Join(d.repo, ".workflow/runs"), 0}, {filepath.Join(d.repo, ".workflow/signals"), soakAlive},
	} {
		entries, err := os.ReadDir(c.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		var odd []string
		for _, e := range entries {
			if !known[e.Name()] {
				odd = append(odd, e.Name())
			}
		}
		if len(odd) > c.most {
			return fmt.Errorf("%s holds %d entries, of runs that are forgotten %d: %.200q", c.dir, len(entries), len(odd), odd)
		}
	}
	return nil
}

// check has the repos tidied up, and measures.
func (x *soak) check(ctx context.Context, runs int) soakSample {
	x.t.Helper()
	for _, d := range x.desks {
		if err := d.tidyUp(ctx); err != nil {
			x.t.Fatal(err)
		}
		var err error
		for until := time.Now().Add(waitMost); time.Now().Before(until); time.Sleep(pollEvery) { // the next sweep or scan may have to come
			if err = d.held(ctx); err == nil {
				break
			}
		}
		if err != nil {
			x.t.Error(err)
		}
	}
	s := x.sample(runs)
	x.t.Log(s)
	return s
}

// rssNoise is by how much the daemon's memory may differ between two looks for reasons of its own: the collector's pace on a
// machine under load, and the race detector's books, which are built into it in `make test`.
const rssNoise = 64 << 20

// compare holds the first checkpoints against the last.
func compare(t *testing.T, s []soakSample) {
	t.Helper()
	third := max(len(s)/3, 1)
	middle := func(part []soakSample, of func(soakSample) int64) int64 {
		var v []int64
		for _, p := range part {
			v = append(v, of(p))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	runs := int64(s[len(s)-1].runs - s[0].runs)
	filling := min(runs, max(0, int64(soakFull-s[0].runs))) // runs that the state has not yet had to forget another for
	for _, c := range []struct {
		what string
		of   func(soakSample) int64
		most int64 // that it may grow by
	}{
		{"descriptors", func(s soakSample) int64 { return int64(s.fds) }, 6},
		{"goroutines", func(s soakSample) int64 { return int64(s.tasks) }, 6},
		{"watches", func(s soakSample) int64 { return int64(s.watches) }, 3},
		{"bytes of heap", func(s soakSample) int64 { return s.heap }, 1<<20 + runs*heapOfRun + filling*heapOfEnded},
		{"bytes of memory", func(s soakSample) int64 { return s.rss }, rssNoise + runs*heapOfRun + filling*heapOfEnded},
		{"files of state", func(s soakSample) int64 { return int64(s.stateFiles) }, 300 + filling*4},
		{"files in .workflow", func(s soakSample) int64 { return int64(s.workFiles) }, 100},
	} {
		if from, to := middle(s[:third], c.of), middle(s[len(s)-third:], c.of); to-from > c.most {
			t.Errorf("%s grew from %d to %d over %d runs: %d at most are allowed", c.what, from, to, runs, c.most)
		}
	}
}

const (
	heapOfRun   = 32      // bytes that a run may leave for good: of every so many records the place in the journal is kept in memory
	heapOfEnded = 8 << 10 // and an ended one that the state still has
	soakFull    = 8000    // runs after which the state has its KeepEnded ended ones of each workflow
)

func TestSoak(t *testing.T) {
	size, scale, every := soakSize(t), time.Duration(soakFast), soakRuns/(soakChecks+1)
	if size > soakRuns {
		scale, every = soakSlow, soakEvery
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SLUICE_SOAK_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_SOAK_SEED=%d", seed)
	x := newSoak(t, seed, scale)
	x.serve()
	ctx, stop := context.WithCancel(context.Background())
	for _, d := range x.desks {
		d.follow(ctx)
		defer d.hands.Wait()
	}
	defer stop()
	var all []soakSample
	for runs := 0; runs < size; {
		n := min(every, size-runs) / len(x.desks) * len(x.desks)
		if n == 0 {
			break
		}
		x.pass(ctx, n)
		runs += n
		all = append(all, x.check(ctx, runs))
	}
	warm := min(len(all)-1, max(1, len(all)/10))
	compare(t, all[warm:])
	sum := map[string]int{}
	for _, d := range x.desks {
		for k, n := range d.phases {
			sum[k] += n
		}
	}
	t.Logf("%v", sum)
}
